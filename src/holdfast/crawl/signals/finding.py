"""Finding pages whose body is not kept: all words of a question, exactly, and one page in full."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from holdfast.crawl.signals import queries
from holdfast.crawl.signals.keywords import asked_for
from holdfast.crawl.signals.queries import PageRow, Question
from holdfast.errors import NotFound
from holdfast.urls import Url, parse, url_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a question found: one window of it, and how much there is in all."""

    pages: tuple[PageRow, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageInFull:
    """One page with its keywords, the most frequent first, and where it leads."""

    page: PageRow
    words: tuple[tuple[str, int], ...]
    links: tuple[str, ...]


_NOTHING = Found(pages=(), total=0)


def find_pages(session: Session, search: str, question: Question) -> Found:
    """Return the pages that have every word of `search`, those that were known last first.

    Words are folded, and small ones (the, of, und) left out if there are others; a text without any word finds
    nothing. An empty one finds everything. Invalid for too many words.
    """
    words = asked_for(search)
    domain = None if question.domain is None else queries.domain_id(session, question.domain)
    if (search.strip() and not words) or (domain is None and question.domain is not None):
        return _NOTHING
    counted = sorted((queries.frequency(session, word), word) for word in words) if len(words) > 1 else []
    asked = replace(question, words=tuple(word for _, word in counted) or tuple(words))
    if counted and counted[0][0] == 0:
        return _NOTHING
    ids = queries.page_ids(session, asked, domain=domain)
    shown = queries.pages(session, ids)
    total = queries.total(session, asked, domain=domain)
    return Found(pages=tuple(shown[page_id] for page_id in ids if page_id in shown), total=total)


def page_of(session: Session, url: Url) -> PageInFull:
    """Return the page of an address in full; NotFound if none is kept."""
    domain = queries.domain_id(session, url.domain)
    rows = queries.pages_by_hash(session, url.hash64, domain=domain) if domain is not None else []
    if not rows:
        raise NotFound(f"no signals are kept of {url.normalised[:200]}; find pages with: holdfast page search WORDS")
    return _in_full(session, rows[0])


def page_by_hash(session: Session, digest: str) -> PageInFull:
    """Return a page by the SHA-256 of its normalised address in hex, or by the first 16 digits; NotFound if none."""
    number = int.from_bytes(bytes.fromhex(digest[:16]), "big", signed=True)
    for row in queries.pages_by_hash(session, number):
        if len(digest) == 16 or url_hash(parse(row.url).normalised) == digest:
            return _in_full(session, row)
    raise NotFound(f"there is no page with the hash {digest[:64]}; they are listed at /api/pages")


def _in_full(session: Session, row: PageRow) -> PageInFull:
    words, links = queries.words_of(session, row.page_id), queries.links_of(session, row.page_id)
    return PageInFull(page=row, words=tuple(words), links=tuple(links))
