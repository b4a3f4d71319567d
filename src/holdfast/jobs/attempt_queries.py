"""Outcomes of executions' attempts on pages, as far as their frontiers store them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import and_, exists, select
from sqlalchemy.orm import Session, aliased

from holdfast.db.models.frontier import Domain, Page, PageCrawl

_Next = aliased(PageCrawl)


def is_retried(one: Any) -> Any:
    """SQL condition: another attempt followed this one, so that it is not the page's result."""
    return exists().where(
        _Next.execution_id == one.execution_id,
        _Next.domain_id == one.domain_id,
        _Next.page_id == one.page_id,
        _Next.attempt == one.attempt + 1,
    )


def attempts_on(
    session: Session, executions: Collection[int], pages: Collection[int], domains: Collection[str]
) -> Sequence[Any]:
    """Return the last attempts on these pages, by their columns' names."""
    if not executions or not pages:
        return []
    # Pages are unique within a domain: without it the hash alone would scan every domain of the archive.
    places = select(Domain.id).where(Domain.name.in_(domains)).scalar_subquery()
    return session.execute(
        select(
            Page.url_hash,
            PageCrawl.execution_id,
            PageCrawl.outcome,
            PageCrawl.reason,
            PageCrawl.status_code,
            PageCrawl.redirected_to,
            PageCrawl.warc_file_id,
            PageCrawl.warc_ordinal,
        )
        .join(PageCrawl, and_(PageCrawl.domain_id == Page.domain_id, PageCrawl.page_id == Page.id))
        .where(
            Page.domain_id.in_(places),
            Page.url_hash.in_(pages),
            PageCrawl.execution_id.in_(executions),
            ~is_retried(PageCrawl),
        )
    ).all()
