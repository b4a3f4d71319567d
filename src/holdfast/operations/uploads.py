"""Files that arrive in pieces and are imported once complete.

The row stores how many bytes count: they are synced to disk first. Bytes beyond that, from a killed server,
are cut off when the next piece arrives. We name the file ourselves; the client's name is only displayed. A
file lock allows one writer at a time, in any process, and the kernel releases it when that process dies.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from sqlalchemy.orm import Session

from holdfast import audit, log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.db.audit_events import acting_user
from holdfast.db.engine import Database, machine_clock, moment_in
from holdfast.db.models import Execution, Upload
from holdfast.errors import Conflict, Invalid, NoSpace, NotFound
from holdfast.jobs.kinds import OperationKind
from holdfast.operations import queries
from holdfast.operations.long_running import OperationRequest, start
from holdfast.processes.directory_id import directory_id
from holdfast.processes.disk import demand_room
from holdfast.storage.disk import disk_error

AT_ONCE = 100
"""Limit of open uploads."""
EXPIRE_S = 86_400.0
"""Seconds after which an upload expires that receives no more bytes, or whose import failed."""

_FOLDER = "uploads"
_NAME = re.compile(r"upload-([0-9]{1,19})")
_STRAY_AGE = timedelta(days=1)
_log = log.get()


class UploadState(StrEnum):
    RECEIVING = "receiving"
    RECEIVED = "received"
    IMPORTED = "imported"
    FAILED = "failed"
    TERMINATED = "terminated"
    EXPIRED = "expired"


class UploadTooLarge(Invalid):
    """The file is larger than this server accepts, or a piece exceeds the declared size."""

    code = "upload_too_large"

    @classmethod
    def by_limit(cls, most: int) -> UploadTooLarge:
        return cls(f"an upload may have {most:,} bytes here; raise HOLDFAST_UPLOADS_MAX_BYTES, or send less")

    @classmethod
    def by_piece(cls, upload_id: int, size: int) -> UploadTooLarge:
        return cls(f"upload {upload_id} has {size:,} bytes and this piece exceeds them; send only the rest")


class UploadNoRoom(NoSpace):
    """The disk has no room for the file."""

    code = "upload_no_room"


class UploadNotFound(NotFound):
    """The upload does not exist."""

    code = "upload_not_found"

    def __init__(self, upload_id: int) -> None:
        super().__init__(
            f"there is no upload {upload_id}; they are listed at /api/admin/uploads, and with: holdfast upload list"
        )


class UploadGone(NotFound):
    """The upload has ended, and its bytes were deleted."""

    code = "upload_gone"

    def __init__(self, upload_id: int, state: str) -> None:
        super().__init__(f"upload {upload_id} is {state}; begin another")


class UploadOffset(Conflict):
    """The piece does not start at the end of the stored bytes."""

    code = "upload_offset"

    def __init__(self, upload_id: int, received: int) -> None:
        super().__init__(f"upload {upload_id} has {received:,} bytes; send on from there")


class UploadLocked(Conflict):
    """Another request writes to the same upload."""

    code = "upload_locked"

    def __init__(self, upload_id: int) -> None:
        super().__init__(f"upload {upload_id} is being written by another request; ask for its offset, then go on")


class UploadOpen(Conflict):
    """The same bytes are being uploaded already."""

    code = "upload_open"

    def __init__(self, upload_id: int) -> None:
        super().__init__(f"upload {upload_id} is of the same file; go on with that one, or end it first")


class UploadsFull(Conflict):
    """The limit of open uploads is reached."""

    code = "uploads_full"

    def __init__(self, most: int) -> None:
        super().__init__(f"{most} uploads are open, as many as this server keeps; finish or end some first")


class UploadBusy(Conflict):
    """The upload is complete and is being imported."""

    code = "upload_busy"

    def __init__(self, upload_id: int, operation_id: int | None) -> None:
        super().__init__(
            f"upload {upload_id} is being imported by operation {operation_id}; cancel that first, or wait for its end"
        )


class ChecksumMismatch(Invalid):
    """The piece does not match its checksum; nothing of it was stored."""

    code = "checksum_mismatch"

    def __init__(self) -> None:
        super().__init__("the piece does not have the checksum that was sent with it; send it again")


def uploads_folder(home: Path) -> Path:
    return home / _FOLDER


def part_path(home: Path, upload_id: int) -> Path:
    return uploads_folder(home) / f"upload-{upload_id}"


def create(session: Session, clock: Clock, settings: Settings, new: Upload) -> Upload:
    """Start an upload in the caller's transaction; `new` has its size, names, source and digest.

    Raise UploadTooLarge, UploadNoRoom, UploadsFull; UploadOpen if the same bytes are being uploaded.
    """
    limits, now = settings.uploads, clock.now()
    if new.size > limits.max_bytes:
        raise UploadTooLarge.by_limit(limits.max_bytes)
    if len(queries.open_uploads(session)) >= AT_ONCE:
        raise UploadsFull(AT_ONCE)
    _demand_room(settings, new.size + queries.outstanding_bytes(session))
    made = queries.insert_upload(
        session,
        {
            "source_code": new.source_code,
            "source_name": new.source_name,
            "name": new.name,
            "strict": bool(new.strict),
            "sha256": new.sha256,
            "metadata_text": new.metadata_text or "",
            "size": new.size,
            "state": UploadState.RECEIVING.value,
            "actor": acting_user(),
            "created_at": now,
            "updated_at": now,
            "expires_at": now + timedelta(seconds=EXPIRE_S),
        },
    )
    if made is None:
        raise UploadOpen(queries.open_by_digest(session, new.sha256) or 0)
    subject, detail = f"upload {made}", {"source": new.source_code, "name": new.name, "bytes": new.size}
    audit.record(session, clock, action="upload.created", subject=subject, detail=detail)
    path = part_path(settings.home, made)
    try:
        # An existing file belongs to a row that was lost with an older database. Remove it and never write to it: an
        # import may have linked it into the archive.
        path.unlink(missing_ok=True)
        path.open("xb").close()
    except OSError as exc:
        raise no_room_or(exc, path) from exc
    return find(session, made)


def _demand_room(settings: Settings, size: int) -> None:
    folder = uploads_folder(settings.home)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        demand_room(folder, settings.disk, for_bytes=size)
    except NoSpace as exc:
        raise UploadNoRoom(str(exc)) from exc
    except OSError as exc:
        raise no_room_or(exc, folder) from exc


def no_room_or(exc: OSError, path: Path) -> Exception:
    """Return the exception for a failed write: UploadNoRoom if the disk is full, else one with the reason."""
    if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return UploadNoRoom("the disk has no room for this upload; make room, and send on from its offset")
    return disk_error(exc, f"cannot write {path.name}: {exc.strerror or exc}")


def find(session: Session, upload_id: int) -> Upload:
    found = queries.upload_by_id(session, upload_id)
    if found is None:
        raise UploadNotFound(upload_id)
    return found


def demand_here(row: Upload) -> Upload:
    """Return an upload whose bytes are stored; raise UploadGone otherwise."""
    if row.state in (UploadState.TERMINATED, UploadState.EXPIRED, UploadState.IMPORTED):
        raise UploadGone(row.id, row.state)
    return row


class PartFile:
    """The file of one upload, locked by one request; writes append to the bytes that count."""

    def __init__(self, path: Path, fd: int, offset: int) -> None:
        self._path, self._fd = path, fd
        self.offset = offset
        """Where the next byte goes."""

    def write(self, piece: bytes) -> None:
        """Write a piece; raise UploadNoRoom if the disk is full."""
        try:
            at = 0
            while at < len(piece):
                at += os.pwrite(self._fd, piece[at:], self.offset + at)
        except OSError as exc:
            raise no_room_or(exc, self._path) from exc
        self.offset += len(piece)

    def sync(self) -> None:
        try:
            os.fdatasync(self._fd)
        except OSError as exc:
            raise no_room_or(exc, self._path) from exc

    def cut(self, size: int) -> None:
        os.ftruncate(self._fd, size)
        self.offset = size


@contextmanager
def open_part(home: Path, upload_id: int, offset: int, read: Callable[[], Upload]) -> Iterator[PartFile]:
    """Lock an upload's file for writing; raise UploadLocked if another request has it, UploadOffset or UploadGone.

    `read` returns the row of the upload, and is called after the file is locked.
    """
    path = part_path(home, upload_id)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError as exc:
        raise UploadGone(upload_id, "lost: its file is not here any more") from exc
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise UploadLocked(upload_id) from exc
        # Read the row under the lock: an older row would cut off what the previous request wrote. A complete upload's
        # file is linked into the archive, and must never be written again.
        row = demand_here(read())
        if offset != row.received or row.state != UploadState.RECEIVING:
            raise UploadOffset(row.id, row.received)
        if os.fstat(fd).st_size < row.received:
            raise UploadGone(row.id, "damaged: its file is shorter than the received bytes")
        part = PartFile(path, fd, row.received)
        part.cut(row.received)
        yield part
    finally:
        os.close(fd)


def advance(session: Session, clock: Clock, settings: Settings, upload_id: int, *, received: int) -> Upload:
    """Store the count of synced bytes; queue the import in the same transaction once complete.

    Raise UploadGone; UploadOffset if it no longer receives bytes.
    """
    row = demand_here(_held(session, upload_id))
    if row.state != UploadState.RECEIVING:
        raise UploadOffset(row.id, row.received)
    now = clock.now()
    row.received, row.updated_at = received, now
    row.expires_at = now + timedelta(seconds=EXPIRE_S)
    if received == row.size:
        _queue_import(session, clock, row, settings.home)
    session.flush()
    return row


def _held(session: Session, upload_id: int) -> Upload:
    found = queries.upload_by_id(session, upload_id, for_update=True)
    if found is None:
        raise UploadNotFound(upload_id)
    return found


def _queue_import(session: Session, clock: Clock, row: Upload, home: Path) -> None:
    # A retry uses the directory with the bytes, whichever server gets the request.
    before = session.get(Execution, row.operation_id) if row.operation_id is not None else None
    request = OperationRequest(
        OperationKind.IMPORT,
        flight=f"upload {row.id}",
        subject=f"{row.name} into {row.source_code}",
        parameters={"upload": row.id, "source": row.source_code, "name": row.name},
    )
    directory = (before and before.directory) or directory_id(home)
    row.operation_id = start(session, clock, request, directory=directory).execution.id
    row.state = UploadState.RECEIVED.value


def import_again(session: Session, clock: Clock, settings: Settings, upload_id: int) -> Upload:
    """Queue the import of a complete upload again after it failed or was cancelled.

    Raise UploadGone, UploadBusy; UploadOffset if bytes are missing.
    """
    row = demand_here(_held(session, upload_id))
    if row.state == UploadState.RECEIVED:
        raise UploadBusy(row.id, row.operation_id)
    if row.received < row.size:
        raise UploadOffset(row.id, row.received)
    _queue_import(session, clock, row, settings.home)
    row.updated_at = clock.now()
    row.expires_at = row.updated_at + timedelta(seconds=EXPIRE_S)
    session.flush()
    return row


def terminate(session: Session, clock: Clock, upload_id: int) -> Upload:
    """End an upload; its bytes may be deleted after the commit. Raise UploadGone or UploadBusy."""
    row = demand_here(_held(session, upload_id))
    if row.state == UploadState.RECEIVED:
        raise UploadBusy(row.id, row.operation_id)
    row.state, row.expires_at, row.updated_at = UploadState.TERMINATED.value, None, clock.now()
    audit.record(session, clock, action="upload.terminated", subject=f"upload {row.id}", detail={"name": row.name})
    session.flush()
    return row


def settle_imported(
    database: Database, clock: Clock, home: Path, upload_id: int, *, store_result: Callable[[Session], None]
) -> None:
    """Mark an upload as imported, and delete its bytes; `store_result` raises LeaseLost if another worker imports it.

    Failed and cancelled imports are recorded by the end of their operation.
    """
    with database.write() as session:
        store_result(session)
        row = _held(session, upload_id)
        row.state, row.expires_at, row.updated_at = UploadState.IMPORTED.value, None, clock.now()
    remove_part(home, upload_id)


def remove_part(home: Path, upload_id: int) -> None:
    with suppress(OSError):
        part_path(home, upload_id).unlink(missing_ok=True)


def remove_expired(database: Database, clock: Clock, settings: Settings) -> int:
    """End expired uploads and delete their bytes, and files without a row; return how many ended."""
    home = settings.home
    with database.read() as session:
        now = moment_in(session, clock)
        found = queries.expired_uploads(session, now)
    count = sum(_expire(database, clock, home, upload_id) for upload_id in found)
    folder = uploads_folder(home)
    if folder.is_dir():
        with database.read() as session:
            known = queries.open_uploads(session)
        # Use the clock of file times, not the database's.
        young = (machine_clock(clock).now() - _STRAY_AGE).timestamp()
        for path in folder.iterdir():
            match = _NAME.fullmatch(path.name)
            if match is None or int(match[1]) in known:
                continue
            with suppress(OSError):
                # Recent files may belong to a row that is just being written.
                if path.stat().st_mtime < young:
                    path.unlink()
    return count


def _expire(database: Database, clock: Clock, home: Path, upload_id: int) -> bool:
    with database.write() as session:
        row = queries.upload_by_id(session, upload_id, for_update=True)
        # Check again under the lock: a piece may have arrived since.
        now = moment_in(session, clock)
        if row is None or row.expires_at is None or row.expires_at > now or row.state not in queries.REMOVABLE:
            return False
        row.state, row.expires_at, row.updated_at = UploadState.EXPIRED.value, None, now
    remove_part(home, upload_id)
    _log.info("upload.expired", upload=upload_id)
    return True


CHECKSUMS = ("sha1", "sha256")
"""Checksum algorithms for a piece; the protocol requires the first."""


def new_hasher(algorithm: str) -> hashlib._Hash:
    # It detects transmission errors, not attackers.
    return hashlib.sha1(usedforsecurity=False) if algorithm == "sha1" else hashlib.sha256()
