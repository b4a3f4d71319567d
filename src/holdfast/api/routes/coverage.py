"""`/api/coverage`: how much of a source was kept in a year, and the account of it as files that anybody may read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from sqlalchemy.orm import Session
from starlette.responses import Response, StreamingResponse

from holdfast.api.deps import ArchiveDep, SessionDep
from holdfast.api.errors import answers
from holdfast.api.heavy import Streamed, heavily
from holdfast.api.roles import PUBLIC
from holdfast.api.schemas.archive import Coverage
from holdfast.db.models import Edition, Source
from holdfast.editions.publishing import open_public, public_summary
from holdfast.editions.queries import edition as find_edition
from holdfast.editions.refusals import EditionNotFound
from holdfast.errors import NotFound
from holdfast.sources.queries import source_by_code

router = APIRouter(tags=["sources"], dependencies=[PUBLIC])
Code = Annotated[str, Path(description="A source's code.", max_length=64, examples=["example-org"])]
Year = Annotated[int, Path(ge=1970, le=9999, examples=[2026])]
_FILES = "coverage-report.json, coverage.csv, frozen.jsonl, comparison-<year>.json or comparison-<year>.csv."


@router.get("/api/coverage/{source}/{year}", responses=answers(404, 422, 503))
def coverage(session: SessionDep, source: Code, year: Year) -> Coverage:
    """Return how much of a source was kept in a year, of all that was meant to be."""
    row, kept = edition_of(session, source, year)
    return Coverage(
        edition_id=row.id, source_code=kept.code, source_name=kept.name, year=row.year, status=row.status,
        search_ready=row.search_ready, research_ready=row.research_ready,
        intended_url_count=row.intended_url_count, captured_url_count=row.captured_url_count,
        failed_url_count=row.failed_url_count, missing_url_count=row.missing_url_count,
        excluded_url_count=row.excluded_url_count, fallback_url_count=row.fallback_url_count,
        shard_count=row.shard_count, indexed_shard_count=row.indexed_shard_count,
        needs_review_shard_count=row.needs_review_shard_count, backend_counts=row.backend_counts,
        coverage_summary=public_summary(session, row), generated_at=row.generated_at,
    )  # fmt: skip


@router.get("/api/coverage/{source}/{year}/{file}", responses=answers(404, 422, 503), response_class=StreamingResponse)
async def coverage_file(
    request: Request,
    archive: ArchiveDep,
    source: Code,
    year: Year,
    file: Annotated[str, Path(max_length=64, description=_FILES, examples=["coverage.csv"])],
) -> Response:
    """Return a file of an edition; what was withdrawn since it was written is taken out as it is read."""

    def work() -> Streamed:
        with archive.database.read() as session:
            row, kept = edition_of(session, source, year)
        most = archive.settings.exports.cache_bytes
        opened = open_public(archive.database, archive.home, row, kept, file, cache_bytes=most)
        headers = {"Content-Disposition": f'attachment; filename="{opened.name}"', "Cache-Control": "no-cache"}
        return Streamed(iter(opened.chunks), opened.form.value, headers)

    return await heavily(request, work)


def edition_of(session: Session, code: str, year: int) -> tuple[Edition, Source]:
    """Return an edition and its source by code and year; NotFound."""
    kept = source_by_code(session, code) if "\x00" not in code else None
    if kept is None:
        raise NotFound(f"there is no source {code[:64]!r}; they are listed at /api/sources")
    found = find_edition(session, source_id=kept.id, year=year)
    if found is None:
        raise EditionNotFound(
            f"there is no edition of {code} for {year}; its crawls are at /api/sources/{code}/editions"
        )
    return found, kept
