"""`/api/exports`: snapshots, changes and indexes as files. Streamed; no transaction stays open for a slow reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Path, Query, Request
from starlette.responses import Response, StreamingResponse

from holdfast import failpoints
from holdfast.api.dependencies import ArchiveDep, Since, SourceCode, Until, demand_exports, site_of, source_id_of
from holdfast.api.errors import ExportTooLarge
from holdfast.api.heavy import Streamed, export, gathered, guarded, heavily, heavy_result
from holdfast.api.routes.editions import Code, Year, edition_of
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RowId
from holdfast.auth.roles import Permission
from holdfast.changes.listing import span
from holdfast.errors import Invalid
from holdfast.exports.package import export_cdxj
from holdfast.exports.package_cache import CachedPackage, PackageCache, WantedPackage
from holdfast.exports.queries import ExportReach, execution, records_noted
from holdfast.exports.tables import (
    CDXJ_MEANINGS,
    CHANGE_COLUMNS,
    CHANGE_MEANINGS,
    SNAPSHOT_COLUMNS,
    SNAPSHOT_MEANINGS,
    Format,
    change_rows,
    snapshot_rows,
    write_rows,
)
from holdfast.gzip_streams import gzipped
from holdfast.records import Public, record
from holdfast.replay.headers import partial_content
from holdfast.wiring.archive import Archive

_DEFAULT_ROWS = 1000
MAX_RECORDS = 10_000_000
"""Maximum number of records in WARC files whose CDXJ index is sorted for a request; most captures have two."""

router = LazyRouter(tags=["exports"])
_FORMATS = [form.value for form in Format]
_GATHERED_BYTES = 64 * 1024
Form = Annotated[Format, Query(alias="format", description="jsonl (ndjson is the same) or csv.")]
Compressed = Annotated[bool, Query(description="Whether the file is gzip-compressed.")]
AfterId = Annotated[RowId | None, Query(alias="afterId", description="Rows behind this id.")]
Limit = Annotated[int | None, Query(ge=1, description="Rows at most.")]


@record
class ExportKind:
    """One kind of export."""

    path: Public[str]
    description: Public[str]
    formats: Public[list[str]]


@record
class Exports:
    """The available exports, and their limits."""

    enabled: Public[bool]
    formats: Public[list[str]]
    default_limit: Public[int]
    max_limit: Public[int]
    data_dictionary_url: Public[str | None]
    snapshots: Public[ExportKind]
    changes: Public[ExportKind]
    cdxj: Public[ExportKind]


@router.get("/api/exports", Permission.READ)
def manifest(archive: ArchiveDep) -> Exports:
    """Return what can be exported, the formats, and the limits."""
    settings = archive.settings.api
    return Exports(
        enabled=settings.exports,
        formats=_FORMATS,
        default_limit=_DEFAULT_ROWS,
        max_limit=settings.exports_max_limit,
        data_dictionary_url="/api/exports/columns",
        snapshots=ExportKind(
            path="/api/exports/snapshots", description="Captures of pages, one a row, by id.", formats=_FORMATS
        ),
        changes=ExportKind(
            path="/api/exports/changes", description="Changes of pages, one a row, by id.", formats=_FORMATS
        ),
        cdxj=ExportKind(
            path="/api/exports/cdxj", description="The index of a crawl or a source, sorted by key.", formats=["cdxj"]
        ),
    )


@record
class Column:
    """One column of an export, or one field of an index."""

    name: Public[str]
    meaning: Public[str]


@record
class DataDictionary:
    """Every column of every export, in order."""

    snapshots: Public[list[Column]]
    changes: Public[list[Column]]
    cdxj: Public[list[Column]]


@router.get("/api/exports/columns", Permission.READ)
def columns() -> DataDictionary:
    """Return the meaning of each column of each export."""
    kinds = {"snapshots": SNAPSHOT_MEANINGS, "changes": CHANGE_MEANINGS, "cdxj": CDXJ_MEANINGS}
    return DataDictionary(
        **{
            kind: [Column(name=name, meaning=meaning) for name, meaning in meanings.items()]
            for kind, meanings in kinds.items()
        }
    )


class _RowsWanted(NamedTuple):
    form: Format
    compressed: bool
    source: str | None
    after_id: int | None
    limit: int | None
    days: tuple[datetime | None, datetime | None]


async def rows_wanted(
    form: Form = Format.JSONL,
    compressed: Compressed = False,
    source: SourceCode = None,
    after_id: AfterId = None,
    limit: Limit = None,
    from_: Since = None,
    to: Until = None,
) -> _RowsWanted:
    """Return the parsed parameters of an export of rows; raise Invalid if `from` is after `to`."""
    return _RowsWanted(form, compressed, source, after_id, limit, span(from_, to))


RowsWanted = Annotated[_RowsWanted, Depends(rows_wanted)]


@router.get("/api/exports/snapshots", Permission.READ, has_head=True, errors=(404,), response_class=StreamingResponse)
async def export_snapshots(request: Request, archive: ArchiveDep, wanted: RowsWanted) -> Response:
    """Return page captures by id; continue with `afterId` set to the last row's id."""
    return await _rows(request, archive, wanted, snapshot_rows, SNAPSHOT_COLUMNS)


@router.get("/api/exports/changes", Permission.READ, has_head=True, errors=(404,), response_class=StreamingResponse)
async def export_changes(request: Request, archive: ArchiveDep, wanted: RowsWanted) -> Response:
    """Return changes by id, or by time if limited to some days; continue with `afterId` set to the last row's id."""
    return await _rows(request, archive, wanted, change_rows, CHANGE_COLUMNS)


async def _rows(
    request: Request, archive: Archive, wanted: _RowsWanted, read: Callable[..., Any], columns: Sequence[str]
) -> Response:
    name = f"holdfast-{request.url.path.rpartition('/')[2]}.{wanted.form.ending}"
    site = site_of(request, archive.settings)

    def work() -> Response | Streamed:
        rows = read(archive.database, _extent(archive, wanted), site=site)
        lines = write_rows(rows, columns, wanted.form)
        made = _stream(request, lines, wanted.form.media_type, name, compressed=wanted.compressed)
        return made._replace(is_rechecked=True) if isinstance(made, Streamed) else made

    return await export(request, work)


@router.get("/api/exports/cdxj", Permission.READ, has_head=True, errors=(404,), response_class=StreamingResponse)
async def export_cdxj_index(
    request: Request,
    archive: ArchiveDep,
    job_id: Annotated[RowId | None, Query(alias="jobId", description="The crawl's number.")] = None,
    source: SourceCode = None,
    compressed: Compressed = False,
) -> Response:
    """Return the CDXJ index of a crawl or source: captures of any type, sorted by the bytes of their lines."""
    demand_exports(archive)
    if (job_id is None) == (source is None):
        raise Invalid("name either a crawl with jobId or a source")
    return await export(request, lambda: _index(request, archive, (job_id, source), compressed=compressed))


def _index(
    request: Request, archive: Archive, named: tuple[int | None, str | None], *, compressed: bool
) -> Response | Streamed:
    job_id, source = named
    with archive.database.read() as session:
        source_id = source_id_of(session, source)
        if job_id is not None:
            execution(session, job_id)
        records = records_noted(session, execution_id=job_id, source_id=source_id)
    # Sorting takes minutes, and scratch space for all lines: larger exports need an operator's command.
    if records > MAX_RECORDS:
        raise ExportTooLarge(records, MAX_RECORDS)
    scratch = archive.home / "cache"
    scratch.mkdir(parents=True, exist_ok=True)
    lines = export_cdxj(archive.database, scratch, execution_id=job_id, source_id=source_id, disk=archive.settings.disk)
    name = f"index-{source if job_id is None else job_id}.cdxj"
    made = _stream(request, lines, "text/x-cdxj; charset=utf-8", name, compressed=compressed)
    return made._replace(is_holding=True) if isinstance(made, Streamed) else made


def _extent(archive: Archive, wanted: _RowsWanted) -> ExportReach:
    demand_exports(archive)
    settings = archive.settings.api
    with archive.database.read() as session:
        reach = ExportReach(source_id_of(session, wanted.source), *wanted.days)
    if wanted.limit is not None and wanted.limit > settings.exports_max_limit:
        raise Invalid(f"limit: at most {settings.exports_max_limit} rows at once; go on with afterId", field="limit")
    default = min(_DEFAULT_ROWS, settings.exports_max_limit)
    after = -1 if wanted.after_id is None else wanted.after_id
    return reach._replace(after=after, limit=wanted.limit or default)


def _stream(
    request: Request, lines: Iterable[bytes], media_type: str, name: str, *, compressed: bool
) -> Response | Streamed:
    """Return the lines as a file; if compressed, as a gzip file that clients do not unpack by themselves."""
    name, media_type = (f"{name}.gz", "application/gzip") if compressed else (name, media_type)
    # Send gzip as a file, not as an encoding: a client that decompresses by itself would store other bytes than the
    # name says.
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    if request.method == "HEAD":
        return Response(headers=headers, media_type=media_type)
    pieces = gathered(_reaching(lines), size=_GATHERED_BYTES)
    return Streamed(gzipped(pieces) if compressed else pieces, media_type, headers)


def _reaching(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines; a test can stall the first step."""
    failpoints.reach("export.piece")
    yield from lines


ExecutionId = Annotated[RowId, Path(description="The crawl's number.")]


@router.get(
    "/api/executions/{id}/wacz",
    Permission.READ,
    has_head=True,
    errors=(404, 409),
    responses={206: {}, 304: {}, 416: {}},
    response_class=StreamingResponse,
)
async def wacz(request: Request, archive: ArchiveDep, id: ExecutionId) -> Response:
    """Return a crawl as a WACZ 1.1.1 package, whole or by range; nothing is copied, and downloads can be resumed.

    `/api/executions/{id}.wacz` is the same, for tools that depend on the file extension.
    """
    return await _answer_package(request, packages_of(request, archive), lambda packages: packages.of_execution(id))


@router.get(
    "/api/coverage/{source}/{year}/edition.wacz",
    Permission.READ,
    has_head=True,
    errors=(404, 409),
    responses={206: {}, 304: {}, 416: {}},
    response_class=StreamingResponse,
)
async def edition_wacz(request: Request, archive: ArchiveDep, source: Code, year: Year) -> Response:
    """Return an annual edition, with all its shards, as one WACZ 1.1.1 package."""

    def named(packages: PackageCache) -> WantedPackage:
        with archive.database.read() as session:
            edition, _ = edition_of(session, source, year)
        return packages.of_edition(edition.id)

    return await _answer_package(request, packages_of(request, archive), named)


async def _answer_package(
    request: Request, packages: PackageCache, named: Callable[[PackageCache], WantedPackage]
) -> Response:
    """Return a package. A cached one does not wait for another package that is being built."""

    def send_ready() -> Response | Streamed | None:
        ready = packages.ready(named(packages))
        return None if ready is None else _send(request, ready)

    made = await heavy_result(request, guarded(request, send_ready))
    if made is not None:
        return await heavily(request, lambda: made)
    return await export(request, lambda: _send(request, packages.made(named(packages))))


def _send(request: Request, package: CachedPackage) -> Response | Streamed:
    headers = _headers(package)
    if _names(request.headers.get("if-none-match"), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    # RFC 9110, section 14.2: only GET has ranges.
    asked = request.headers.get("range") if request.method == "GET" else None
    condition = request.headers.get("if-range")
    part = partial_content(asked, package.archive.size, if_range=condition, etag=headers["ETag"])
    if part.content_range is not None:
        headers["Content-Range"] = part.content_range
    if part.status == 416:
        return Response(status_code=416, headers=headers)
    headers["Content-Length"] = str(part.end - part.start)
    if request.method == "HEAD":
        return Response(status_code=part.status, headers=headers, media_type="application/wacz")
    return Streamed(package.read(part.start, part.end), "application/wacz", headers, part.status)


def packages_of(request: Request, archive: Archive) -> PackageCache:
    """Return the package cache of this server, created on first use; raise NotFound if exports are disabled."""
    demand_exports(archive)
    state = request.app.state
    packages: PackageCache | None = getattr(state, "packages", None)
    if packages is None:
        settings = archive.settings
        packages = state.packages = PackageCache(
            archive.database, archive.home, most_bytes=settings.exports.cache_bytes, disk=settings.disk
        )
    return packages


def _headers(package: CachedPackage) -> dict[str, str]:
    return {
        "ETag": f'"{package.etag}"',
        "Accept-Ranges": "bytes",
        "Cache-Control": "no-cache",
        "Content-Disposition": f'attachment; filename="{package.name}"',
    }


def _names(header: str | None, etag: str) -> bool:
    """Return whether an If-None-Match header contains this ETag."""
    tags = [tag.strip().removeprefix("W/") for tag in (header or "").split(",")]
    return etag in tags or tags == ["*"]
