"""Pages of crawls: lists of all, search among those whose body is not stored, and one page in full."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple
from unicodedata import combining, is_normalized

from sqlalchemy import ColumnElement, Select, exists, func, select
from sqlalchemy.orm import Session, aliased

from holdfast.db.models import (
    Domain,
    Execution,
    Job,
    Page,
    PageCrawl,
    SignalLink,
    SignalPage,
    SignalWord,
    Source,
)
from holdfast.errors import Invalid, NotFound
from holdfast.parse.text import SMALL_WORDS, WORD_MARKS, analysable, nfc, words_of
from holdfast.types import Outcome
from holdfast.urls import Url, normalised_or_plain, page_key, typed_host, url_hash
from holdfast.values import dataclass
from holdfast.withdrawals.visibility import visible_address, visible_page, withdrawn_among

# If two words are on more pages than this, neither is rare: counting further would only take time.
_ENOUGH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalQuery:
    words: tuple[str, ...] = ()
    """Folded words; a page must contain all of them."""
    domain: str | None = None
    limit: int = 20
    offset: int = 0


class PageStatus(StrEnum):
    NEVER_CRAWLED = "never_crawled"
    FETCHED = "fetched"
    FAILED = "failed"
    BLOCKED = "blocked"
    """robots.txt disallows it."""


class SignalPageRow(NamedTuple):
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
    status: PageStatus = PageStatus.FETCHED
    content_length: int | None = None
    """Size in bytes of the last successful response as sent."""
    duration_ms: int | None = None
    """Duration of the last attempt."""
    error: str | None = None


_COLUMNS = (
    Page.id,
    Page.url,
    Page.url_hash,
    Domain.name,
    Source.code,
    SignalPage.status_code,
    SignalPage.media_type,
    SignalPage.content_hash,
    SignalPage.title,
    SignalPage.description,
    SignalPage.language,
    SignalPage.word_count,
    SignalPage.links_count,
    SignalPage.fetched_at,
)


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
    """Return a statement that selects the ids of pages with these words, and its id column."""
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
    """Return the number of pages with a word, counted only up to a limit."""
    some = select(SignalWord.page_id).where(SignalWord.word == word).limit(_ENOUGH).subquery()
    return session.scalar(select(func.count()).select_from(some)) or 0


def domain_id(session: Session, name: str) -> int | None:
    return session.scalar(select(Domain.id).where(Domain.name == name))


def page_ids(session: Session, question: SignalQuery, *, domain: int | None) -> list[int]:
    """Return the ids of the pages in a query's window, most recently seen first."""
    statement, column = _found(question.words, domain)
    return list(session.scalars(statement.order_by(column.desc()).limit(question.limit).offset(question.offset)))


def count_found(session: Session, question: SignalQuery, *, domain: int | None) -> int:
    """Return the number of pages a query matches. Walks all matches, or all pages if the query has no words."""
    statement, _ = _found(question.words, domain)
    return session.scalar(select(func.count()).select_from(statement.subquery())) or 0


def pages(session: Session, ids: Sequence[int]) -> dict[int, SignalPageRow]:
    rows = session.execute(_shown().where(SignalPage.page_id.in_(ids)))
    return {row[0]: SignalPageRow(*row) for row in rows}


def pages_by_hash(session: Session, url_hash: int, *, domain: int | None = None) -> list[SignalPageRow]:
    """Return the pages whose URL has this hash; without a domain, this takes one index seek per domain."""
    statement = _shown().where(Page.url_hash == url_hash, visible_page(SignalPage.page_id))
    if domain is not None:
        return [SignalPageRow(*row) for row in session.execute(statement.where(Page.domain_id == domain))]
    ids = session.scalars(
        select(Page.id).select_from(Domain).join(Page, (Page.domain_id == Domain.id) & (Page.url_hash == url_hash))
    )
    return [SignalPageRow(*row) for row in session.execute(statement.where(SignalPage.page_id.in_(list(ids))))]


def stored_words(session: Session, page_id: int) -> list[tuple[str, int]]:
    """Return the keywords of a page, most frequent first."""
    rows = session.execute(
        select(SignalWord.word, SignalWord.count)
        .where(SignalWord.page_id == page_id)
        .order_by(SignalWord.count.desc(), SignalWord.word)
    )
    return [(word, count) for word, count in rows]


def links_of(session: Session, page_id: int) -> list[str]:
    """Return the stored links of a page, which may be incomplete."""
    return list(
        session.scalars(select(SignalLink.to_url).where(SignalLink.page_id == page_id).order_by(SignalLink.to_hash))
    )


MAX_WORDS = 256
"""Limit of distinct keywords per page."""
MAX_CHARS = 64
"""Longer runs of letters do not count as words."""
MAX_ASKED = 16
"""Limit of words per query."""
_MAX_COUNT = 32_767
# Characters that folding drops are inside words: a combining mark does not end a word.
_MARKS = "".join(chr(code) for code in range(0x300, 0x10000) if combining(chr(code)))
_RUN = re.compile(rf"[\w{_MARKS}{WORD_MARKS}]+")
_WESTERN = "cp1252"
"""A single-byte encoding with the letters, quotes and dashes of western Europe."""


def _western_table() -> bytes:
    """Return a table that maps each byte to itself if it is a letter or digit, else to a space."""
    shown = [bytes([code]).decode(_WESTERN, "replace") for code in range(256)]
    return bytes(code if char.isalnum() and char != "\ufffd" else 32 for code, char in enumerate(shown))


_LETTERS = _western_table()
_MAX_WRITTEN_CHARS = 4 * MAX_CHARS
# Most characters read for keywords: a page has 256 of them long before.
_READ_CHARS = 200_000


@lru_cache(maxsize=1 << 16)
def _folded(written: str) -> tuple[str, ...]:
    """Return what one written word folds to: one word, none, or several letters in scripts without word breaks."""
    # Cache the folding of letters: folding a whole text letter by letter takes ten times as long as splitting it into
    # words.
    return tuple(word for word in words_of(analysable(written)) if len(word) <= MAX_CHARS)


_SMALL = frozenset(word for line in SMALL_WORDS for written in line.split() for word in _folded(written))


def _written(text: str) -> Counter[str]:
    """Return the words of a text as written, in lower case, with their counts."""
    low = text.lower()
    try:
        # A table of bytes and a split take a tenth of the time of a regular expression.
        found = Counter(low.encode(_WESTERN).translate(_LETTERS).split())
    except UnicodeEncodeError:
        return Counter(_RUN.findall(low))
    return Counter({word.decode(_WESTERN): count for word, count in found.items()})


def _counted(text: str) -> Counter[str]:
    """Return the folded words of a text with their counts, in order of first occurrence."""
    counts: Counter[str] = Counter()
    read = text[:_READ_CHARS]
    for written, count in _written(read if is_normalized("NFC", read) else nfc(read)).items():
        if len(written) <= _MAX_WRITTEN_CHARS:
            for word in _folded(written):
                counts[word] += count
    return counts


def keywords_of(texts: Iterable[str | None]) -> tuple[tuple[str, int], ...]:
    """Return a page's keywords with their counts across its texts: the 256 most frequent, sorted by word."""
    counts: Counter[str] = Counter()
    for text in texts:
        if text:
            counts.update(_counted(text))
    kept = list(counts.items())
    if len(kept) > MAX_WORDS:
        # Sorting is stable, and a Counter keeps insertion order: among equally frequent words the first ones stay,
        # because title and description precede the text.
        kept = sorted(kept, key=lambda item: (item[0] in _SMALL, -item[1]))[:MAX_WORDS]
    return tuple((word, min(count, _MAX_COUNT)) for word, count in sorted(kept))


def asked_for(question: str) -> list[str]:
    """Return the distinct words a page must contain; stop words only if there are no others.

    Raise `Invalid` if the query has too many words.
    """
    asked = list(_counted(question))
    telling = [word for word in asked if word not in _SMALL] or asked
    if len(telling) > MAX_ASKED:
        raise Invalid(f"{len(telling)} words are too many to look for at once; ask for at most {MAX_ASKED}")
    return telling


@dataclass(frozen=True, slots=True, kw_only=True)
class PageInFull:
    page: SignalPageRow
    words: tuple[tuple[str, int], ...]
    links: tuple[str, ...]


def find_pages(session: Session, search: str, question: SignalQuery) -> tuple[list[SignalPageRow], int]:
    """Return the pages that contain every word of `search`, most recently seen first, and how many there are in all.

    Words are folded, and stop words (the, of, und) dropped if there are others. A text without any word finds
    nothing; an empty one finds everything. Raise `Invalid` for too many words.
    """
    words = asked_for(search)
    domain = None if question.domain is None else domain_id(session, typed_host(question.domain))
    if (search.strip() and not words) or (domain is None and question.domain is not None):
        return [], 0
    # Start with the rarest word: scan its pages, and look up the others for each.
    counted = sorted((frequency(session, word), word) for word in words) if len(words) > 1 else []
    asked = replace(question, words=tuple(word for _, word in counted) or tuple(words))
    if counted and counted[0][0] == 0:
        return [], 0
    ids = page_ids(session, asked, domain=domain)
    shown = pages(session, ids)
    total = count_found(session, asked, domain=domain)
    return [shown[page_id] for page_id in ids if page_id in shown], total


def page_of(session: Session, url: Url) -> PageInFull:
    """Return the page of a URL in full; raise `NotFound` if it is not stored."""
    domain = domain_id(session, url.domain)
    rows = pages_by_hash(session, url.hash64, domain=domain) if domain is not None else []
    if not rows:
        raise NotFound(f"no signals are kept of {url.normalised[:200]}; find pages with: holdfast page search WORDS")
    return _in_full(session, rows[0])


def page_by_hash(session: Session, digest: str) -> PageInFull:
    """Return a page by the hex SHA-256 of its normalised URL, or the first 16 digits; raise `NotFound` if missing."""
    number = int.from_bytes(bytes.fromhex(digest[:16]), "big", signed=True)
    for find in (pages_by_hash, crawled_by_hash):
        for row in find(session, number):
            # The database stores 64 bits; compare a whole digest, too.
            if len(digest) == 16 or url_hash(normalised_or_plain(row.url)) == digest:
                return _in_full(session, row)
    raise NotFound(f"there is no page with the hash {digest[:64]}; they are listed at /api/pages")


def _in_full(session: Session, row: SignalPageRow) -> PageInFull:
    words, links = stored_words(session, row.page_id), links_of(session, row.page_id)
    return PageInFull(page=row, words=tuple(words), links=tuple(links))


# Counting stops here: an operator who pages through a list must not wait for a count of millions.
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
    """Return the filter for pages with a status and without a known takedown; `_crawled_rows` checks the rest.

    With a status, it matches only the newest `_COUNTED` pages, because no index has the status.
    """
    own = [] if domain is None else [Page.domain_id == domain]
    shown = [_WITH_STATUS[status], visible_address(Page.url_hash), visible_page(Page.id), *own]
    if status is not None:
        # No index has it, so search only the newest pages.
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
    # A count of millions would take longer than the page of results.
    some = select(Page.id).where(*wanted).limit(_COUNTED).subquery()
    return _crawled_rows(session, ids), session.scalar(select(func.count()).select_from(some)) or 0


def crawled_by_hash(session: Session, url_hash: int) -> list[SignalPageRow]:
    """Return the pages of any storage whose URL has this hash; costs one seek per domain."""
    ids = session.scalars(
        select(Page.id)
        .select_from(Domain)
        # The unique key of pages starts with the domain: without it the query would read every page.
        .join(Page, (Page.domain_id == Domain.id) & (Page.url_hash == url_hash))
        .where(visible_address(Page.url_hash), visible_page(Page.id))
    )
    return _crawled_rows(session, list(ids))


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


def _crawled_rows(session: Session, ids: Sequence[int]) -> list[SignalPageRow]:
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
    # The clauses above compare hashes: only the key hides a spelling that no capture has yet.
    keys = {one: page_key(row.url) for one, row in found.items()}
    hidden = withdrawn_among(session, keys=set(keys.values()))
    return [found[one] for one in ids if one in found and keys[one] not in hidden]
