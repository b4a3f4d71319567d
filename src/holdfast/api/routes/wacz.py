"""`/api/executions/{id}/wacz`: a crawl as one file that other tools replay; any part of it can be asked for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response, StreamingResponse

from holdfast.api.deps import ArchiveDep
from holdfast.api.errors import answers
from holdfast.api.heavy import Streamed, export
from holdfast.api.roles import PUBLIC
from holdfast.api.routes.coverage import Code, Year, edition_of
from holdfast.errors import NotFound
from holdfast.exports.package_cache import Package, PackageCache
from holdfast.replay.ranges import RangeRefused, wanted_span
from holdfast.wiring.archive import Archive

router = APIRouter(tags=["exports"], dependencies=[PUBLIC])
ExecutionId = Annotated[int, Path(description="The crawl's number.", ge=0, lt=1 << 63)]


@router.head("/api/executions/{id}.wacz", include_in_schema=False, name="wacz_file_head")
@router.get("/api/executions/{id}.wacz", include_in_schema=False, name="wacz_file")
@router.head("/api/executions/{id}/wacz", include_in_schema=False, name="wacz_head")
@router.get(
    "/api/executions/{id}/wacz",
    responses={**answers(404, 409, 422, 503), 206: {}, 304: {}, 416: {}},
    response_class=StreamingResponse,
)
async def wacz(request: Request, archive: ArchiveDep, id: ExecutionId) -> Response:
    """Return a crawl as a WACZ 1.1.1 package, whole or in part; nothing is copied, and a broken download goes on.

    `/api/executions/{id}.wacz` is the same, for tools that go by how a name ends.
    """
    return await export(request, lambda: _send(request, packages_of(request, archive).package(id)))


@router.head("/api/coverage/{source}/{year}/edition.wacz", include_in_schema=False, name="edition_wacz_head")
@router.get(
    "/api/coverage/{source}/{year}/edition.wacz",
    responses={**answers(404, 409, 422, 503), 206: {}, 304: {}, 416: {}},
    response_class=StreamingResponse,
)
async def edition_wacz(request: Request, archive: ArchiveDep, source: Code, year: Year) -> Response:
    """Return an annual edition as one WACZ 1.1.1 package, all its shards in it."""
    return await export(request, lambda: _edition(request, archive, source, year))


def _edition(request: Request, archive: Archive, source: str, year: int) -> Response | Streamed:
    packages = packages_of(request, archive)
    with archive.database.read() as session:
        edition, _ = edition_of(session, source, year)
    return _send(request, packages.edition(edition.id))


def _send(request: Request, package: Package) -> Response | Streamed:
    """Answer with a package, or with the part of it that was asked for."""
    headers = _headers(package)
    if _names(request.headers.get("if-none-match"), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    # RFC 9110, section 14.2: only GET has ranges.
    asked = request.headers.get("range") if request.method == "GET" else None
    condition = request.headers.get("if-range")
    size = package.archive.size
    try:
        span = wanted_span(asked, size) if condition in (None, headers["ETag"]) else None
    except RangeRefused:
        return Response(status_code=416, headers={**headers, "Content-Range": f"bytes */{size}"})
    start, end = span or (0, size)
    headers["Content-Length"] = str(end - start)
    if span is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    status = 200 if span is None else 206
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type="application/wacz")
    return Streamed(package.read(start, end), "application/wacz", headers, status)


def packages_of(request: Request, archive: Archive) -> PackageCache:
    """Return the packages of this server, made at the first request; NotFound where exports are not offered."""
    if not archive.settings.api.exports:
        raise NotFound("exports are not offered here; see HOLDFAST_API_EXPORTS")
    state = request.app.state
    packages: PackageCache | None = getattr(state, "packages", None)
    if packages is None:
        settings = archive.settings
        packages = state.packages = PackageCache(
            archive.database, archive.home, most_bytes=settings.exports.cache_bytes, disk=settings.disk
        )
    return packages


def _headers(package: Package) -> dict[str, str]:
    return {
        "ETag": f'"{package.etag}"',
        "Accept-Ranges": "bytes",
        "Cache-Control": "no-cache",
        "Content-Disposition": f'attachment; filename="{package.name}"',
    }


def _names(header: str | None, etag: str) -> bool:
    """Return whether an If-None-Match header names this tag."""
    tags = [tag.strip().removeprefix("W/") for tag in (header or "").split(",")]
    return etag in tags or tags == ["*"]
