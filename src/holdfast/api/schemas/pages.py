"""Pages that were fetched, as the API shows them."""

from __future__ import annotations

from datetime import datetime

from holdfast.api.schemas.base import Answer


class PageSummary(Answer):
    """One page and what is kept of it."""

    id: int
    url: str
    url_hash: str
    domain: str
    source_code: str | None
    status_code: int | None
    content_type: str | None
    content_hash: str | None
    title: str | None
    description: str | None
    language: str | None
    word_count: int
    links_count: int
    crawled_at: datetime


class Keyword(Answer):
    """A folded word and how often it occurs."""

    word: str
    count: int


class PageDetail(PageSummary):
    """One page with its keywords, the most frequent first, and the addresses that it leads to."""

    keywords: list[Keyword]
    links: list[str]


class PageList(Answer):
    """One window of what a question finds."""

    pages: list[PageSummary]
    total: int
    limit: int
    offset: int
