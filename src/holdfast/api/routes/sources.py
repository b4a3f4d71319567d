"""`/api/sources`, a source's editions, and the preview that does not exist yet."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from sqlalchemy.orm import Session

from holdfast.api import queries
from holdfast.api.addresses import browse_url
from holdfast.api.captured.queries import (
    Crawl,
    Extent,
    crawls,
    ends_of_execution,
    entry_of_crawl,
    extent_of_execution,
    newest_crawls,
)
from holdfast.api.deps import ArchiveDep, SessionDep, TotalsDep
from holdfast.api.errors import answers
from holdfast.api.roles import PUBLIC
from holdfast.api.schemas.archive import EditionSummary, SourceSummary
from holdfast.db.models import Snapshot, Source
from holdfast.errors import NotFound
from holdfast.index.queries import hidden_counts
from holdfast.jobs.names import execution_name
from holdfast.jobs.queries import job_names
from holdfast.sources.queries import source_by_code
from holdfast.wiring.archive import Archive

router = APIRouter(tags=["sources"], dependencies=[PUBLIC])
_FEW_RECORDS = 10_000
"""Records that one answer looks at, over all its crawls: where a part of a crawl was withdrawn, the dates of what is
left are looked up. Beyond, crawls keep the dates that were noted of them, and only the count goes without that part."""
_MOST = 200
"""Crawls of one answer: each takes a few seeks."""
Code = Annotated[str, Path(description="A source's code.", max_length=64, examples=["example-org"])]
Language = Annotated[
    str | None, Query(pattern="^[a-z]{2,3}$", description="Which language's entry page to name.", examples=["fr"])
]


@router.get("/api/sources", responses=answers(422, 503))
def sources(archive: ArchiveDep, session: SessionDep, totals: TotalsDep, lang: Language = None) -> list[SourceSummary]:
    """Return every source that has captures, by code."""
    kept = totals.read(session)
    faces = [
        face for one in kept.faces.values() for face in (*one.newest, *one.entry, *one.languages.get(lang or "", ()))
    ]
    shown = queries.snapshots_by_id(session, faces)
    found = []
    for total in kept.listed:
        newest = next((number for number in kept.faces[total.source_id].newest if number in shown), None)
        entry = next((shown[number] for number in kept.faces[total.source_id].entry if number in shown), None)
        topmost = kept.faces[total.source_id].languages.get(lang or "", ())
        entry = next((shown[number] for number in topmost if number in shown), None) or entry
        found.append(
            SourceSummary(
                source_code=total.code, source_name=total.name, base_url=total.base_url,
                description=total.description, record_count=total.snapshots, first_capture=total.first.date(),
                last_capture=total.last.date(), latest_record_id=newest,
                entry_record_id=entry.id if entry else None, entry_browse_url=_browse(archive, entry),
                entry_preview_url=None,
            )
        )  # fmt: skip
    return found


def _browse(archive: Archive, entry: Snapshot | None) -> str | None:
    if entry is None:
        return None
    return browse_url(archive.settings, url=entry.url, captured_at=entry.captured_at, snapshot_id=entry.id)


@router.get("/api/sources/{code}/editions", responses=answers(404, 422, 503))
def editions(
    archive: ArchiveDep,
    session: SessionDep,
    code: Code,
    limit: Annotated[int, Query(ge=1, le=_MOST, description="Crawls of an answer.")] = _MOST,
    offset: Annotated[int, Query(ge=0, le=10_000, description="Newer crawls to leave out.")] = 0,
) -> list[EditionSummary]:
    """Return the crawls of a source that were indexed last, the newest capture first."""
    source = _source(session, code)
    ids = newest_crawls(session, source_id=source.id, limit=offset + limit)[offset:]
    hidden = hidden_counts(session, source_id=source.id, executions=ids)
    found = []
    budget = _FEW_RECORDS
    names = job_names(session, ids)
    for crawl in crawls(session, ids):
        withdrawn = hidden.get(crawl.execution_id, 0)
        is_looked_at = withdrawn > 0 and crawl.records <= budget
        budget -= crawl.records if is_looked_at else 0
        extent = (
            extent_of_execution(session, crawl.execution_id)
            if is_looked_at
            else _noted_extent(session, crawl, withdrawn)
        )
        if extent is None:
            continue
        entry = entry_of_crawl(session, source.base_url, crawl.execution_id) if source.base_url else None
        found.append((extent.last, EditionSummary(
            job_id=crawl.execution_id,
            job_name=execution_name(source.code, crawl.execution_id, names.get(crawl.execution_id)),
            record_count=extent.pages, first_capture=extent.first.date(), last_capture=extent.last.date(),
            entry_browse_url=_browse(archive, entry),
        )))  # fmt: skip
    return [edition for _, edition in sorted(found, key=lambda row: (row[0], row[1].job_id), reverse=True)]


def _noted_extent(session: Session, crawl: Crawl, hidden: int) -> Extent | None:
    """Return what may be shown of a crawl as it was noted by the index, without the pages that were withdrawn since."""
    noted = [moment for moment in (crawl.first, crawl.last) if moment is not None]
    moments, pages = noted or ends_of_execution(session, crawl.execution_id), crawl.pages - hidden
    return Extent(pages, min(moments), max(moments)) if moments and pages > 0 else None


@router.get("/api/sources/{code}/preview", responses=answers(404, 422))
def preview(session: SessionDep, code: Code) -> None:
    """Return a picture of a source's first page. There is none until pages are captured with a browser: always 404."""
    _source(session, code)
    raise NotFound(f"there is no preview of {code}: previews come with browser capture")


def _source(session: Session, code: str) -> Source:
    """Return a source by its code; NotFound if there is none."""
    found = source_by_code(session, code) if "\x00" not in code else None
    if found is None:
        raise NotFound(f"there is no source {code[:64]!r}; they are listed at /api/sources")
    return found
