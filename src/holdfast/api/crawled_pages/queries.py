"""Pages that were fetched, of sources of every storage: what the frontier and the last good attempt know of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from holdfast.crawl.signals.queries import PageRow, domain_id
from holdfast.db.models import Domain, Execution, Job, Page, PageCrawl, SignalPage, Source
from holdfast.db.visibility import visible_address, visible_page, withdrawn_among
from holdfast.urls import page_key

_COUNTED = 100_000
"""Pages are counted up to here: an operator pages through a list and does not wait for the count of millions."""


class PageWindow(NamedTuple):
    """A window of pages, and how many there are in all."""

    pages: list[PageRow]
    total: int


def _fetched(domain: int | None) -> list[ColumnElement[bool]]:
    """Return the clauses of pages that were fetched and are not known to be withdrawn: see `_rows` for the rest."""
    shown = (Page.fetched_at.is_not(None), visible_address(Page.url_hash), visible_page(Page.id))
    return [*shown, *([] if domain is None else [Page.domain_id == domain])]


def fetched_pages(session: Session, *, domain: str | None, limit: int, offset: int) -> PageWindow:
    """Return pages that were fetched, those that were known last first; none of a domain that was never met."""
    number = None if domain is None else domain_id(session, domain)
    if domain is not None and number is None:
        return PageWindow([], 0)
    wanted = _fetched(number)
    ids = list(session.scalars(select(Page.id).where(*wanted).order_by(Page.id.desc()).limit(limit).offset(offset)))
    some = select(Page.id).where(*wanted).limit(_COUNTED).subquery()
    return PageWindow(_rows(session, ids), session.scalar(select(func.count()).select_from(some)) or 0)


def fetched_by_hash(session: Session, url_hash: int) -> list[PageRow]:
    """Return the fetched pages whose address has this hash: one seek in each domain there is."""
    ids = session.scalars(
        select(Page.id)
        .select_from(Domain)
        .join(Page, (Page.domain_id == Domain.id) & (Page.url_hash == url_hash))
        .where(*_fetched(None))
    )
    return _rows(session, list(ids))


def _digest(digest: str | None) -> str | None:
    """Return a digest as it is shown; an attempt keeps it without the name of its kind."""
    return digest if digest is None or ":" in digest else f"sha256:{digest}"


def _rows(session: Session, ids: Sequence[int]) -> list[PageRow]:
    """Return these pages in this order, each with its signals or, without any, with its last good attempt.

    A page that was fetched under a spelling that the archive has not read yet is known by its key alone.
    """
    last = (
        select(func.max(PageCrawl.id))
        .where(PageCrawl.page_id.in_(ids), PageCrawl.outcome == "success")
        .group_by(PageCrawl.page_id)
    )
    found: dict[int, Any] = {}
    statement = (
        select(Page, Domain.name, SignalPage, PageCrawl, Source.code)
        .join(Domain, Domain.id == Page.domain_id)
        .outerjoin(SignalPage, SignalPage.page_id == Page.id)
        .outerjoin(PageCrawl, (PageCrawl.page_id == Page.id) & PageCrawl.id.in_(last))
        .outerjoin(Execution, Execution.id == PageCrawl.execution_id)
        .outerjoin(Job, Job.id == Execution.job_id)
        .outerjoin(Source, Source.id == func.coalesce(SignalPage.source_id, Job.source_id))
        .where(Page.id.in_(ids))
    )
    for page, name, signals, attempt, source in session.execute(statement):
        kept = signals or attempt
        found[page.id] = PageRow(
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
            fetched_at=page.fetched_at or page.created_at,
        )
    keys = {one: page_key(row.url) for one, row in found.items()}
    hidden = withdrawn_among(session, keys=set(keys.values()))
    return [found[one] for one in ids if one in found and keys[one] not in hidden]
