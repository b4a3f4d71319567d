"""How the attempts of executions on pages ended: what their frontiers keep of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import and_, exists, select
from sqlalchemy.orm import Session, aliased

from holdfast.db.models.frontier import Domain, Page, PageCrawl

_Next = aliased(PageCrawl)


def is_retried(one: Any) -> Any:
    """Return whether an attempt was followed by another: the last one is how a page stands."""
    return exists().where(
        _Next.execution_id == one.execution_id,
        _Next.domain_id == one.domain_id,
        _Next.page_id == one.page_id,
        _Next.attempt == one.attempt + 1,
    )


class LastAttempt(NamedTuple):
    """How an execution's last attempt on a page ended."""

    url_hash: int
    execution_id: int
    outcome: str | None
    reason: str | None
    status_code: int | None
    redirected_to: str | None
    warc_file_id: int | None
    warc_ordinal: int | None


def attempts_on(
    session: Session, executions: Collection[int], pages: Collection[int], domains: Collection[str]
) -> list[LastAttempt]:
    """Return how these executions' attempts on a few pages of these domains ended."""
    if not executions or not pages:
        return []
    # Pages are unique within a domain: without it the hash alone would scan every domain of the archive.
    places = select(Domain.id).where(Domain.name.in_(domains)).scalar_subquery()
    rows = session.execute(
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
    )
    return [LastAttempt._make(row) for row in rows]
