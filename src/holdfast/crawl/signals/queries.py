"""Pages whose body is not kept, found by their keywords and domain. What was withdrawn is not found.

A question starts from the rarest of its words and looks the others up. Its window is read in the order of an index, but
its total is counted: that walks through all that it finds, so these are questions of an operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, exists, func, select
from sqlalchemy.orm import Session, aliased

from holdfast.db.models import Domain, Page, SignalLink, SignalPage, SignalWord, Source
from holdfast.db.visibility import visible_page

_ENOUGH = 10_000
"""Of two words that are on more pages than this, neither is rare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which pages are wanted."""

    words: tuple[str, ...] = ()
    """All of them must be there, folded."""
    domain: str | None = None
    limit: int = 20
    offset: int = 0


class PageRow(NamedTuple):
    """One page and what is kept of it."""

    page_id: int
    url: str
    url_hash: int
    domain: str
    source: str | None
    status_code: int | None
    media_type: str | None
    content_hash: str | None
    title: str | None
    description: str | None
    language: str | None
    word_count: int
    links_count: int
    fetched_at: datetime


_COLUMNS = (
    Page.id, Page.url, Page.url_hash, Domain.name, Source.code, SignalPage.status_code, SignalPage.media_type,
    SignalPage.content_hash, SignalPage.title, SignalPage.description, SignalPage.language, SignalPage.word_count,
    SignalPage.links_count, SignalPage.fetched_at,
)  # fmt: skip


def _shown() -> Select[Any]:
    statement: Any = (
        select(*_COLUMNS)
        .select_from(SignalPage)
        .join(Page, Page.id == SignalPage.page_id)
        .join(Domain, Domain.id == Page.domain_id)
        .outerjoin(Source, Source.id == SignalPage.source_id)
    )
    shown: Select[Any] = statement
    return shown


def _found(words: Sequence[str], domain_id: int | None) -> tuple[Select[Any], Any]:
    """Return a statement that selects the ids of pages with these words, and the column that it selects."""
    if words:
        first = aliased(SignalWord)
        statement = select(first.page_id).join(Page, Page.id == first.page_id).where(first.word == words[0])
        for word in words[1:]:
            other = aliased(SignalWord)
            statement = statement.where(exists().where(other.word == word, other.page_id == first.page_id))
        column: Any = first.page_id
    else:
        statement = select(SignalPage.page_id).join(Page, Page.id == SignalPage.page_id)
        column = SignalPage.page_id
    if domain_id is not None:
        statement = statement.where(Page.domain_id == domain_id)
    return statement.where(visible_page(column)), column


def frequency(session: Session, word: str) -> int:
    """Return on how many pages a word is, counted up to where that stops to matter."""
    some = select(SignalWord.page_id).where(SignalWord.word == word).limit(_ENOUGH).subquery()
    return session.scalar(select(func.count()).select_from(some)) or 0


def domain_id(session: Session, name: str) -> int | None:
    """Return the id of a domain."""
    return session.scalar(select(Domain.id).where(Domain.name == name))


def page_ids(session: Session, question: Question, *, domain: int | None) -> list[int]:
    """Return the ids of the pages that a question's window shows, those that were known last first."""
    statement, column = _found(question.words, domain)
    return list(session.scalars(statement.order_by(column.desc()).limit(question.limit).offset(question.offset)))


def total(session: Session, question: Question, *, domain: int | None) -> int:
    """Return how many pages a question finds; all of them are walked through, all pages if it has no word."""
    statement, _ = _found(question.words, domain)
    return session.scalar(select(func.count()).select_from(statement.subquery())) or 0


def pages(session: Session, ids: Sequence[int]) -> dict[int, PageRow]:
    """Return these pages by id."""
    rows = session.execute(_shown().where(SignalPage.page_id.in_(ids)))
    return {row[0]: PageRow._make(row) for row in rows}


def pages_by_hash(session: Session, url_hash: int, *, domain: int | None = None) -> list[PageRow]:
    """Return the pages whose address has this hash; without a domain, with a seek in each domain there is."""
    statement = _shown().where(Page.url_hash == url_hash, visible_page(SignalPage.page_id))
    if domain is not None:
        return [PageRow._make(row) for row in session.execute(statement.where(Page.domain_id == domain))]
    ids = session.scalars(
        select(Page.id).select_from(Domain).join(Page, (Page.domain_id == Domain.id) & (Page.url_hash == url_hash))
    )
    return [PageRow._make(row) for row in session.execute(statement.where(SignalPage.page_id.in_(list(ids))))]


def words_of(session: Session, page_id: int) -> list[tuple[str, int]]:
    """Return the keywords of a page, the most frequent first."""
    rows = session.execute(
        select(SignalWord.word, SignalWord.count)
        .where(SignalWord.page_id == page_id)
        .order_by(SignalWord.count.desc(), SignalWord.word)
    )
    return [(word, count) for word, count in rows]


def links_of(session: Session, page_id: int) -> list[str]:
    """Return where a page leads, as far as that is kept."""
    return list(
        session.scalars(select(SignalLink.to_url).where(SignalLink.page_id == page_id).order_by(SignalLink.to_hash))
    )
