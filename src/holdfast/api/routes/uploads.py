"""`/api/admin/uploads`: WARC and WACZ files are uploaded in chunks and imported once complete.

The protocol is tus 1.0 with creation, checksum, termination and expiration; any tus client works. The server
stores the received part of an interrupted chunk, unless it was sent with a checksum; after a crash, it
continues after the last synced byte.
"""

from __future__ import annotations

import asyncio
import hmac
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, suppress
from email.utils import format_datetime
from functools import partial
from typing import Annotated, Any

from anyio import CancelScope
from anyio.to_thread import run_sync
from fastapi import Depends, Header, Path, Query, Request, Response
from starlette.requests import ClientDisconnect

from holdfast.api.dependencies import AdminWrite, AdminWriteDep, ArchiveDep, SessionDep, WriteTurnsDep
from holdfast.api.errors import BodyRefused, BodyTooSlow, FieldRefused, ServerBusy, TusVersionRefused
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, Piece, decode_id, piece_of
from holdfast.auth.roles import Permission
from holdfast.config import Settings
from holdfast.db.models import Upload
from holdfast.errors import HoldfastError
from holdfast.operations import long_running, queries, uploads
from holdfast.operations.records import OperationRecord, UploadRecord, operation_record, upload_record
from holdfast.operations.uploads import (
    CHECKSUMS,
    ChecksumMismatch,
    PartFile,
    UploadState,
    UploadTooLarge,
    demand_here,
    open_part,
    remove_part,
)
from holdfast.outside_text import clean
from holdfast.sources.queries import is_code
from holdfast.wiring.archive import Archive

_SILENCE_S = 30.0
"""Maximum wait for the next bytes of a chunk."""

VERSION = "1.0.0"
_PIECE_TYPE = "application/offset+octet-stream"
_EXTENSIONS = "creation,checksum,termination,expiration"
# Bytes that one step on a thread writes, and bytes between two syncs: a kill costs a client at most the latter.
_STEP_BYTES = 1 << 20
_SYNC_BYTES = 16 << 20
# Number of concurrent pieces: each keeps the disk and a thread busy.
_AT_ONCE = 4
_METADATA_CHARS = 4096
_MAX_OFFSET = (1 << 63) - 1

UploadId = Annotated[RowId, Path(description="An upload's id.", examples=[3])]
TusVersion = Annotated[
    str | None, Header(alias="Tus-Resumable", description="1.0.0.", max_length=20, examples=[VERSION])
]
Bytes = Annotated[int, Header(ge=0, le=_MAX_OFFSET)]


def _headers(name: str) -> dict[str, Any]:
    return {"description": name, "schema": {"type": "string"}}


_TUS_HEADERS = {name: _headers(name) for name in ("Tus-Resumable", "Upload-Offset", "Upload-Expires")}
_CREATED: dict[int | str, dict[str, Any]] = {
    201: {"description": "Begun.", "headers": {**_TUS_HEADERS, "Location": _headers("Where its pieces go.")}}
}
_NO_CONTENT: dict[int | str, dict[str, Any]] = {204: {"description": "Done.", "headers": _TUS_HEADERS}}


async def _spoken(version: TusVersion = None) -> None:
    if version != VERSION:
        raise TusVersionRefused


SPEAKS_TUS = Depends(_spoken)
router = LazyRouter(prefix="/api/admin/uploads", tags=["uploads"])


def _tus(row: Upload | None = None, more: Mapping[str, str] | None = None) -> dict[str, str]:
    headers = {"Tus-Resumable": VERSION, "Cache-Control": "no-store", **(more or {})}
    if row is not None:
        headers |= {"Upload-Offset": str(row.received), "Upload-Length": str(row.size)}
        if row.expires_at is not None:
            headers["Upload-Expires"] = format_datetime(row.expires_at, usegmt=True)
        if row.operation_id is not None:
            headers["Holdfast-Operation"] = f"/api/admin/operations/{row.operation_id}"
    return headers


@router.options("", Permission.OPERATE, status_code=204, response_class=Response, responses=_NO_CONTENT)
async def describe_uploads(archive: ArchiveDep) -> Response:
    """Return the supported version and extensions of the protocol, and the maximum file size."""
    return Response(
        status_code=204,
        headers=_tus(
            more={
                "Tus-Version": VERSION,
                "Tus-Extension": _EXTENSIONS,
                "Tus-Max-Size": str(archive.settings.uploads.max_bytes),
                "Tus-Checksum-Algorithm": ",".join(CHECKSUMS),
            }
        ),
    )


@router.get("", Permission.OPERATE)
def list_uploads(
    session: SessionDep,
    state: Annotated[UploadState | None, Query(description="Only these.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Piece[UploadRecord]:
    """Return uploads, newest first."""
    before = decode_id(cursor)
    rows = queries.listed_uploads(session, state=state, before=before, limit=limit + 1)
    return piece_of(rows, limit, upload_record, lambda row: row.id)


@router.post(
    "",
    Permission.OPERATE,
    errors=(409, 412, 413, 415, 507),
    status_code=201,
    response_class=Response,
    dependencies=[SPEAKS_TUS],
    responses=_CREATED,
)
def create_upload(
    archive: ArchiveDep,
    admin: AdminWriteDep,
    upload_length: Annotated[Bytes, Header(description="Bytes of the whole file.", examples=[1048576])],
    upload_metadata: Annotated[
        str,
        Header(
            max_length=_METADATA_CHARS,
            description="Pairs of a name and a value in Base64, with commas between them: `source`, the code of the "
            "source, is needed; `filename`, `name` (of a new source), `strict` and `sha256` may be given.",
            examples=["source ZXhhbXBsZQ==,filename Y3Jhd2wud2FyYy5neg=="],
        ),
    ],
) -> Response:
    """Create an upload; its chunks go to `Location`. Rejected immediately if too large, or without room on the
    disk.
    """
    upload = _requested(upload_length, upload_metadata)
    with admin.write() as session:
        row = uploads.create(session, admin.clock, archive.settings, upload)
    return Response(status_code=201, headers=_tus(row, {"Location": f"/api/admin/uploads/{row.id}"}))


def _requested(size: int, metadata: str) -> Upload:
    given = _metadata(metadata)
    source = given.get("source", "")
    if not is_code(source):
        raise FieldRefused("Upload-Metadata.source", "name the code of a source: lower-case letters, digits, hyphens")
    if size == 0:
        raise FieldRefused("Upload-Length", "there is no archive in an empty file")
    sha256 = given.get("sha256", "").lower() or None
    if sha256 is not None and (len(sha256) != 64 or set(sha256) - set("0123456789abcdef")):
        raise FieldRefused("Upload-Metadata.sha256", "it must be 64 hexadecimal digits")
    return Upload(
        size=size,
        # This name is displayed and stored, and never used as a path.
        name=clean(given.get("filename", ""), 200) or "upload",
        source_code=source,
        source_name=clean(given["name"], 200) if given.get("name") else None,
        strict=given.get("strict", "") in ("1", "true", "yes"),
        sha256=sha256,
        metadata_text=metadata,
    )


def _metadata(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in text.split(","):
        name, _, value = pair.strip().partition(" ")
        if not name.isascii() or not name.isprintable() or not name or name in found:
            raise FieldRefused("Upload-Metadata", "write pairs of a name and a value in Base64, each name once")
        try:
            found[name] = b64decode(value.strip(), validate=True).decode()
        except (NoBase64, ValueError):
            raise FieldRefused(f"Upload-Metadata.{name[:60]}", "its value must be text in Base64") from None
    return found


@router.get("/{id}", Permission.OPERATE, errors=(404,))
def get_upload(session: SessionDep, response: Response, id: UploadId) -> UploadRecord:
    """Return the progress of an upload; HEAD returns `Upload-Offset`, where the next chunk begins."""
    row = uploads.find(session, id)
    response.headers.update(_tus(row, {"Upload-Metadata": row.metadata_text} if row.metadata_text else {}))
    return upload_record(row)


@router.head("/{id}", Permission.OPERATE, include_in_schema=False, dependencies=[SPEAKS_TUS], response_class=Response)
def measure_upload(session: SessionDep, id: UploadId) -> Response:
    """Return where the next chunk begins; 410 for an upload that has ended."""
    row = demand_here(uploads.find(session, id))
    return Response(headers=_tus(row, {"Upload-Metadata": row.metadata_text} if row.metadata_text else {}))


@router.patch(
    "/{id}",
    Permission.OPERATE,
    errors=(404, 408, 409, 410, 412, 413, 415, 423, 460, 507),
    status_code=204,
    response_class=Response,
    dependencies=[SPEAKS_TUS],
    responses=_NO_CONTENT,
    openapi_extra={
        "requestBody": {"required": True, "content": {_PIECE_TYPE: {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def append_to_upload(
    request: Request,
    archive: ArchiveDep,
    turns: WriteTurnsDep,
    id: UploadId,
    upload_offset: Annotated[Bytes, Header(description="Where the piece begins.", examples=[0])],
    upload_checksum: Annotated[
        str | None, Header(max_length=200, description="`sha1` or `sha256` and the piece's digest in Base64.")
    ] = None,
) -> Response:
    """Receive the next chunk of a file. The last one queues the import, which `Holdfast-Operation` names."""
    piece = _Piece(archive, turns, id)
    try:
        row = await piece.take(request, offset=upload_offset, checksum=upload_checksum)
    except HoldfastError:
        # A client that is still sending does not read the response: read and drop the rest first, up to a limit.
        await _drop(request)
        raise
    return Response(status_code=204, headers=_tus(row))


async def _drop(request: Request) -> None:
    with suppress(ClientDisconnect, TimeoutError, RuntimeError):
        async with asyncio.timeout(5.0):
            dropped = 0
            async for piece in request.stream():
                dropped += len(piece)
                if dropped > _SYNC_BYTES:
                    return


class _Piece:
    _under_way = 0

    def __init__(self, archive: Archive, turns: AdminWrite, upload_id: int) -> None:
        self._archive, self._turns, self._id = archive, turns, upload_id
        self._settings: Settings = archive.settings

    async def take(self, request: Request, *, offset: int, checksum: str | None) -> Upload:
        """Write the chunk as it arrives; return the updated row."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _PIECE_TYPE:
            raise BodyRefused(f"send a piece as {_PIECE_TYPE}")
        expected = _expected(checksum)
        if _Piece._under_way >= _AT_ONCE:
            raise ServerBusy
        _Piece._under_way += 1
        stack = ExitStack()
        try:
            row = await run_sync(self._read)
            # Check this before its length: the protocol has 409 for a client with a wrong offset, which then requests
            # the right one.
            if row.state != UploadState.RECEIVING or offset != row.received:
                raise uploads.UploadOffset(row.id, row.received)
            length = request.headers.get("content-length", "")
            if length.isdecimal() and offset + int(length[:20]) > row.size:
                raise UploadTooLarge.by_piece(row.id, row.size)
            opened = open_part(self._archive.home, row.id, offset, self._read)
            part = await run_sync(partial(stack.enter_context, opened))
            return await self._write(request, part, row, expected)
        finally:
            _Piece._under_way -= 1
            with CancelScope(shield=True):
                await run_sync(stack.close)

    def _read(self) -> Upload:
        with self._archive.database.read() as session:
            return demand_here(uploads.find(session, self._id))

    async def _write(self, request: Request, part: PartFile, row: Upload, expected: tuple[str, bytes] | None) -> Upload:
        hasher = None if expected is None else uploads.new_hasher(expected[0])
        synced, buffer = part.offset, bytearray()

        def step(content: bytes) -> None:
            part.write(content)
            if hasher is not None:
                hasher.update(content)

        try:
            async for content in self._arriving(request):
                buffer += content
                if part.offset + len(buffer) > row.size:
                    raise UploadTooLarge.by_piece(row.id, row.size)
                if len(buffer) >= _STEP_BYTES:
                    await run_sync(step, bytes(buffer))
                    buffer.clear()
                # Without a checksum, each part counts once it is on disk.
                if hasher is None and part.offset - synced >= _SYNC_BYTES:
                    row = await run_sync(self._keep, part)
                    synced = part.offset
        except (ClientDisconnect, BodyTooSlow):
            # Bytes before the disconnect count, unless their checksum can never be verified.
            if hasher is None:
                with CancelScope(shield=True):
                    await run_sync(step, bytes(buffer))
                    await run_sync(self._keep, part)
            raise
        await run_sync(step, bytes(buffer))
        if hasher is not None and expected is not None and not hmac.compare_digest(hasher.digest(), expected[1]):
            await run_sync(part.cut, synced)
            raise ChecksumMismatch
        return await run_sync(self._keep, part)

    def _keep(self, part: PartFile) -> Upload:
        """Commit the written bytes: first to disk, then in the row."""
        part.sync()
        with self._turns.write() as session:
            clock = self._turns.clock
            return uploads.advance(session, clock, self._settings, self._id, received=part.offset)

    async def _arriving(self, request: Request) -> AsyncIterator[bytes]:
        """Yield received bytes; raise BodyTooSlow if none arrive for too long."""
        silence_s = _SILENCE_S
        stream = request.stream().__aiter__()
        while True:
            try:
                async with asyncio.timeout(silence_s):
                    piece = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise BodyTooSlow(silence_s) from None
            yield piece


def _expected(checksum: str | None) -> tuple[str, bytes] | None:
    if checksum is None:
        return None
    algorithm, _, digest = checksum.strip().partition(" ")
    if algorithm not in CHECKSUMS:
        raise FieldRefused("Upload-Checksum", f"use one of {', '.join(CHECKSUMS)}")
    try:
        return algorithm, b64decode(digest.strip(), validate=True)
    except (NoBase64, ValueError):
        raise FieldRefused("Upload-Checksum", "the digest must be in Base64") from None


@router.delete(
    "/{id}",
    Permission.OPERATE,
    errors=(404, 409, 410, 412),
    status_code=204,
    response_class=Response,
    dependencies=[SPEAKS_TUS],
    responses=_NO_CONTENT,
)
def end_upload(archive: ArchiveDep, admin: AdminWriteDep, id: UploadId) -> Response:
    """End an upload and remove its bytes; rejected while it is being imported: cancel that operation first."""
    with admin.write() as session:
        uploads.terminate(session, admin.clock, id)
    # Delete the bytes after the commit: an open row never lacks its bytes.
    remove_part(archive.home, id)
    return Response(status_code=204, headers=_tus())


@router.post("/{id}/import", Permission.OPERATE, errors=(404, 409, 410), status_code=202)
def import_upload(archive: ArchiveDep, admin: AdminWriteDep, response: Response, id: UploadId) -> OperationRecord:
    """Import a complete upload again after its import failed or was cancelled, without sending it again."""
    with admin.write() as session:
        row = uploads.import_again(session, admin.clock, archive.settings, id)
        assert row.operation_id is not None
        started = operation_record(long_running.find(session, row.operation_id))
    response.headers["Location"] = f"/api/admin/operations/{started.id}"
    return started
