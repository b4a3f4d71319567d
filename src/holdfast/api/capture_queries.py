"""Queries for the captures of a job across all its runs, and for the crawls of a source, without takedowns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Row, case, cast, func, literal, select
from sqlalchemy.orm import Session, aliased

from holdfast.api.queries import newest_good
from holdfast.crawl.signal_pages import PageStatus, SignalPageRow, domain_id
from holdfast.db.models import (
    Document,
    Domain,
    Execution,
    IndexRun,
    Job,
    Page,
    PageCrawl,
    SignalPage,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.index.queries import holding_of
from holdfast.jobs.admin_records import IndexProgress
from holdfast.types import Outcome
from holdfast.urls import page_key, surt
from holdfast.warc.record import ORDINALS
from holdfast.withdrawals.visibility import visible, visible_address, visible_page, withdrawn_among

_FILES_AT_ONCE = 200
MAX_FILES = 20_000
"""Maximum number of files skipped in one query."""


Captured = Row[int, str, datetime, int | None, str | None, str | None]


def captured_by(session: Session, *, job_id: int, limit: int, offset: int) -> list[Captured]:
    """Return id, url, captured_at, status, language and title of a job's page captures, newest run first.

    Within a run they are in the order of its files.
    """
    # Both orders are those of an index: one seek a run, and only what a page passes over is read.
    rows = session.execute(
        select(Snapshot.id, Snapshot.url, Snapshot.captured_at, Snapshot.status, Document.language, Document.title)
        .select_from(Execution)
        .join(Snapshot, Snapshot.execution_id == Execution.id)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Execution.job_id == job_id, Snapshot.is_page, *visible())
        .order_by(Execution.number.desc(), Snapshot.id)
        .limit(limit)
        .offset(offset)
    )
    return list(rows)


def newest_crawls(session: Session, *, source_id: int, limit: int) -> list[int]:
    """Return the executions with the newest indexed files, newest first."""
    # A snapshot's id begins with its file's, and an index has them by source: one seek a file, however many captures
    # it holds.
    found: dict[int, None] = {}
    top: int | None = None
    for _ in range(MAX_FILES // _FILES_AT_ONCE):
        files = _files_below(session, source_id, top)
        rows = session.execute(select(WarcFile.id, WarcFile.execution_id).where(WarcFile.id.in_(files)))
        owners = {row[0]: row[1] for row in rows}
        for file in files:
            # A dict keeps the order: executions by their newest file.
            found.setdefault(owners[file])
            if len(found) == limit:
                return list(found)
        if len(files) < _FILES_AT_ONCE:
            break
        top = files[-1]
    return list(found)


def _files_below(session: Session, source_id: int, top: int | None) -> list[int]:
    """Return ids of files below `top` that hold captures of a source, newest first, at most one batch."""
    newest = select(func.max(Snapshot.id)).where(Snapshot.source_id == source_id)
    walk = select(
        (newest if top is None else newest.where(Snapshot.id < top * ORDINALS)).scalar_subquery().label("newest"),
        literal(1).label("place"),
    ).cte("walk", recursive=True)
    before = aliased(Snapshot)
    # A snapshot's id begins with its file's: below this number lies the file before.
    lower = walk.c.newest - walk.c.newest % ORDINALS
    following = select(func.max(before.id)).where(before.source_id == source_id, before.id < lower).scalar_subquery()
    walk = walk.union_all(
        select(following, walk.c.place + 1).where(walk.c.newest.is_not(None), walk.c.place < _FILES_AT_ONCE)
    )
    rows = session.scalars(select(walk.c.newest).where(walk.c.newest.is_not(None)).order_by(walk.c.place))
    return [row // ORDINALS for row in rows]


CrawlSummary = Row[int, int, int, datetime | None, datetime | None]


def crawls(session: Session, execution_ids: Sequence[int]) -> list[CrawlSummary]:
    """Return execution_id, records, pages, first and last of these executions, as indexing recorded them.

    `first` is when its first capture began; None if one of its files has no recorded time. Executions without indexed
    files are missing.
    """
    # Files of older versions have no moments noted: of a crawl with one of them nothing is known for sure.
    noted = func.count(WarcFile.last_at) == func.count()
    rows = session.execute(
        select(
            WarcFile.execution_id,
            cast(func.sum(IndexRun.records), BigInteger).label("records"),
            cast(func.sum(IndexRun.pages), BigInteger).label("pages"),
            case((noted, func.min(WarcFile.first_at))).label("first"),
            case((noted, func.max(WarcFile.last_at))).label("last"),
        )
        .join(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(WarcFile.execution_id.in_(execution_ids), WarcFile.index_state == "indexed", IndexRun.records > 0)
        .group_by(WarcFile.execution_id)
        .order_by(WarcFile.execution_id.desc())
    )
    return list(rows)


def index_progress(session: Session, execution_id: int) -> IndexProgress | None:
    """Return how many of an execution's sealed files are indexed; None if indexing has not started."""
    columns = (WarcFile.path, WarcFile.size, WarcFile.index_state, IndexRun.phase, IndexRun.records)
    files = session.execute(
        select(*columns, IndexRun.bytes_done, IndexRun.started_at, IndexRun.progress_at)
        .outerjoin(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(WarcFile.execution_id == execution_id, WarcFile.state == "sealed")
    ).all()
    runs = [one for one in files if one.phase is not None]
    if not runs:
        return None
    latest = max(runs, key=lambda one: one.progress_at)
    done = sum(one.index_state == "indexed" for one in files)
    return IndexProgress(
        phase="done" if done == len(files) else latest.phase,
        warc_index=min(done + 1, len(files)),
        warc_total=len(files),
        current_warc=None if done == len(files) else latest.path.rpartition("/")[2],
        records_processed=sum(one.records for one in runs),
        bytes_processed=sum(one.bytes_done for one in runs),
        bytes_total=sum(one.size or 0 for one in files),
        started_at=min(one.started_at for one in runs),
        last_progress_at=latest.progress_at,
    )


def entry_of_crawl(session: Session, base_url: str, execution_id: int) -> Snapshot | None:
    """Return the last good capture of a source's first page by this execution, if any."""
    within = holding_of(session, execution_id)
    if within is None:
        return None
    return session.scalars(
        newest_good(select(Snapshot)).where(Snapshot.url_key == surt(base_url), *within.clauses()).limit(1)
    ).one_or_none()


CaptureExtent = tuple[int, datetime, datetime]
"""The number of page captures, and the time of the first and the last."""


def extent_of_execution(session: Session, execution_id: int) -> CaptureExtent | None:
    """Return the number and time range of an execution's captures; None if none may be shown."""
    # All its captures are read: a route asks this only where the notes on its files say that they are few.
    count, first, last = session.execute(
        select(func.count(), func.min(Snapshot.captured_at), func.max(Snapshot.captured_at)).where(
            Snapshot.execution_id == execution_id, Snapshot.is_page, *visible()
        )
    ).one()
    return None if first is None else (count, first, last)


def ends_of_execution(session: Session, execution_id: int) -> list[datetime]:
    """Return when the first and last pages of an execution were captured, in file order; costs two seeks."""
    pages = select(Snapshot.captured_at).where(Snapshot.execution_id == execution_id, Snapshot.is_page, *visible())
    found = (session.scalar(pages.order_by(order).limit(1)) for order in (Snapshot.id, Snapshot.id.desc()))
    return [moment for moment in found if moment is not None]


# Pages are counted up to here: an operator pages through a list and does not wait for the count of millions.
_COUNTED = 100_000


_NEWEST_OUTCOME = (
    select(PageCrawl.outcome)
    .where(PageCrawl.page_id == Page.id, PageCrawl.outcome.is_not(None))
    .order_by(PageCrawl.id.desc())
    .limit(1)
    .scalar_subquery()
)
_BLOCKED = Outcome.BLOCKED_ROBOTS.value == _NEWEST_OUTCOME
_WITH_STATUS = {
    None: Page.fetched_at.is_not(None) | Page.failed_at.is_not(None),
    PageStatus.FETCHED: Page.status == "fetched",
    PageStatus.FAILED: (Page.status == "failed") & ~_BLOCKED,
    PageStatus.BLOCKED: (Page.status == "failed") & _BLOCKED,
    PageStatus.NEVER_CRAWLED: Page.status == "discovered",
}


def _crawled(domain: int | None, status: PageStatus | None) -> list[ColumnElement[bool]]:
    """Return the filter for pages with a status and without a known takedown; `_rows` checks the rest.

    With a status, it matches only the newest `_COUNTED` pages, because no index has the status.
    """
    own = [] if domain is None else [Page.domain_id == domain]
    shown = [_WITH_STATUS[status], visible_address(Page.url_hash), visible_page(Page.id), *own]
    if status is not None:
        # No index has it: only the newest pages are searched.
        shown.append(Page.id.in_(select(Page.id).where(*own).order_by(Page.id.desc()).limit(_COUNTED)))
    return shown


def crawled_pages(
    session: Session, *, domain: str | None, status: PageStatus | None, limit: int, offset: int
) -> tuple[list[SignalPageRow], int]:
    """Return pages with a status (default: fetched or failed), newest first, and their total, counted to `_COUNTED`.

    Both are empty if the domain is unknown.
    """
    number = None if domain is None else domain_id(session, domain)
    if domain is not None and number is None:
        return [], 0
    wanted = _crawled(number, status)
    ids = list(session.scalars(select(Page.id).where(*wanted).order_by(Page.id.desc()).limit(limit).offset(offset)))
    # A count of millions would take longer than the page it belongs to.
    some = select(Page.id).where(*wanted).limit(_COUNTED).subquery()
    return _rows(session, ids), session.scalar(select(func.count()).select_from(some)) or 0


def pages_by_hash(session: Session, url_hash: int) -> list[SignalPageRow]:
    """Return the pages whose URL has this hash; costs one seek per domain."""
    ids = session.scalars(
        select(Page.id)
        .select_from(Domain)
        # The unique key of pages begins with the domain: without it every page would be read.
        .join(Page, (Page.domain_id == Domain.id) & (Page.url_hash == url_hash))
        .where(visible_address(Page.url_hash), visible_page(Page.id))
    )
    return _rows(session, list(ids))


def _digest(digest: str | None) -> str | None:
    """Return a digest for display; attempts store it without its algorithm prefix."""
    return digest if digest is None or ":" in digest else f"sha256:{digest}"


def _status(page: Page, ended: PageCrawl | None) -> PageStatus:
    if ended is not None and ended.outcome == Outcome.BLOCKED_ROBOTS.value:
        return PageStatus.BLOCKED
    return PageStatus.NEVER_CRAWLED if page.status == "discovered" else PageStatus(page.status)


def _duration_ms(ended: PageCrawl | None) -> int | None:
    if ended is None or ended.started_at is None or ended.completed_at is None:
        return None
    return (ended.completed_at - ended.started_at) // 1000


def _rows(session: Session, ids: Sequence[int]) -> list[SignalPageRow]:
    """Return these pages in this order, each with its signals or last good attempt, and its last attempt.

    For a page fetched under a spelling that is not in the archive yet, only the key is known.
    """
    closed = select(func.max(PageCrawl.id)).where(PageCrawl.page_id.in_(ids)).group_by(PageCrawl.page_id)
    last = closed.where(PageCrawl.outcome == "success")
    newest = aliased(PageCrawl)
    found: dict[int, Any] = {}
    statement = (
        select(Page, Domain.name, SignalPage, PageCrawl, newest, Source.code)
        .join(Domain, Domain.id == Page.domain_id)
        .outerjoin(SignalPage, SignalPage.page_id == Page.id)
        .outerjoin(PageCrawl, (PageCrawl.page_id == Page.id) & PageCrawl.id.in_(last))
        .outerjoin(newest, (newest.page_id == Page.id) & newest.id.in_(closed.where(PageCrawl.outcome.is_not(None))))
        .outerjoin(Execution, Execution.id == func.coalesce(PageCrawl.execution_id, newest.execution_id))
        .outerjoin(Job, Job.id == Execution.job_id)
        .outerjoin(Source, Source.id == func.coalesce(SignalPage.source_id, Job.source_id))
        .where(Page.id.in_(ids))
    )
    for page, name, signals, attempt, ended, source in session.execute(statement):
        kept = signals or attempt or ended
        found[page.id] = SignalPageRow(
            page_id=page.id,
            url=page.url,
            url_hash=page.url_hash,
            domain=name,
            source=source,
            status_code=getattr(kept, "status_code", None),
            media_type=getattr(kept, "media_type", None),
            content_hash=_digest(getattr(kept, "content_hash", None)),
            title=getattr(kept, "title", None),
            description=getattr(signals, "description", None),
            language=getattr(signals, "language", None) or page.language,
            word_count=getattr(signals, "word_count", None) or 0,
            links_count=getattr(kept, "links_count", None) or 0,
            fetched_at=page.fetched_at or page.failed_at or page.created_at,
            status=_status(page, ended),
            content_length=getattr(attempt, "wire_bytes", None),
            duration_ms=_duration_ms(ended),
            error=None if ended is None or ended.outcome == "success" else ended.message or ended.reason,
        )
    # The clauses above go by hash: a spelling that no capture has yet is hidden by its key alone.
    keys = {one: page_key(row.url) for one, row in found.items()}
    hidden = withdrawn_among(session, keys=set(keys.values()))
    return [found[one] for one in ids if one in found and keys[one] not in hidden]
