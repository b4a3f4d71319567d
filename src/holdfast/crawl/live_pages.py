"""Fetches one page live, to compare it with a capture or to extract it; nothing is stored.

The request respects the address guard, robots.txt, and the lease and delay of its domain, as a crawl does.
Limits: 8 s in total, 4 redirects, 2 MB compressed or decompressed, 4 concurrent pages per process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from ipaddress import ip_network
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast.changes.compare import TextComparison, compare, read_text
from holdfast.changes.pairs import TextMode, read_lines, read_record
from holdfast.changes.queries import text_and_headings
from holdfast.changes.records import LiveStats, counts_summary
from holdfast.changes.verdict import ChangeType
from holdfast.config import Settings
from holdfast.crawl.requests import DocumentLimits, FetchedDocument, open_polite_client
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot, Source
from holdfast.errors import AddressForbidden, Invalid, Unavailable, UrlRefused
from holdfast.fetch.guard import AddressGuard, demand_public
from holdfast.frontier.added_urls import AddedPlace
from holdfast.index.queries import demand_body
from holdfast.parse.child import parse_safely
from holdfast.parse.content import SiteTemplate
from holdfast.parse.document import DocumentKind, kind_of
from holdfast.records import Operator, from_row, record
from holdfast.sources.extraction import extraction_rules
from holdfast.sources.plan import CrawlPlan
from holdfast.types import FetchFailed, FetchProblem
from holdfast.urls import Url, parse, parse_seed, url_hash
from holdfast.warc.payload import parse_head
from holdfast.withdrawals.visibility import visible_snapshot

LIMIT_S: Final = 8.0
MAX_BYTES: Final = 2_000_000
AT_ONCE: Final = 4
_LIMITS = DocumentLimits(request_s=LIMIT_S, body_bytes=MAX_BYTES, redirects=4, patience_s=LIMIT_S / 2)
TURNS = BoundedSemaphore(AT_ONCE)
"""One permit for each page that this process may fetch concurrently."""
_BLOCKED = (FetchProblem.ADDRESS_FORBIDDEN, FetchProblem.URL_REFUSED)


class LiveBusy(Unavailable):
    """This process fetches as many live pages as it may."""

    code = "live_busy"
    retry_after_s = 5

    def __init__(self) -> None:
        super().__init__(f"{AT_ONCE} live pages are being fetched already; try again in {self.retry_after_s} s")


class LiveTooLarge(Invalid):
    """The live page is larger than the limit."""

    code = "live_too_large"


class LiveFailed(Unavailable):
    """The site did not respond in time, or its response was unusable."""

    code = "live_failed"


class LivePage(NamedTuple):
    requested_url: str
    url: str
    """URL after redirects."""
    status: int
    media_type: str | None
    charset: str | None
    body: bytes
    fetched_at: datetime
    took_s: float

    def facts(self) -> dict[str, Any]:
        return {
            "requested_url": self.requested_url,
            "final_url": self.url,
            "status_code": self.status,
            "content_type": self.media_type,
            "bytes_read": len(self.body),
            "fetched_at": self.fetched_at,
        }


@contextmanager
def live_turn(url: Url, networks: Iterable[str]) -> Iterator[None]:
    """Hold a permit to request a site while a client waits.

    Raise AddressForbidden for an address outside `networks` that is not public, and LiveBusy if no permit is free.
    """
    try:
        demand_public(url, AddressGuard(tuple(map(ip_network, networks))))
    except UrlRefused as exc:
        raise AddressForbidden(str(exc)) from exc
    if not TURNS.acquire(blocking=False):
        raise LiveBusy
    try:
        yield
    finally:
        TURNS.release()


def fetch_live(settings: Settings, address: str, *, contact: str, networks: Sequence[str] = ()) -> LivePage:
    """Fetch a page live. Blocks for up to 8 s; stores nothing. A redirect to another host must be public.

    Raise UrlRefused, AddressForbidden, RobotsDenied, DomainForbidden, DomainBusy, LiveBusy, LiveTooLarge or
    LiveFailed.
    """
    url = parse_seed(address)
    allowed = [*map(str, settings.allow_networks), *networks]
    try:
        with live_turn(url, allowed):
            answer = asyncio.run(_get(settings, url, contact, allowed))
    except TimeoutError:
        raise LiveFailed(f"{url.fetch} did not answer within {LIMIT_S:g} s; try again later") from None
    if answer is None:
        raise LiveFailed(f"{url.fetch} redirects more than {_LIMITS.redirects} times; use the address where it ends")
    if isinstance(answer, FetchFailed):
        error = AddressForbidden if answer.problem in _BLOCKED else LiveFailed
        raise error(f"{answer.url} cannot be fetched ({answer.problem.value}): {answer.message}")
    if answer.is_cut:
        raise LiveTooLarge(f"{answer.url.fetch} has more than {MAX_BYTES:,} bytes, or ended early; crawl it instead")
    head = parse_head(answer.fetched.response_head)
    return LivePage(
        requested_url=url.fetch,
        url=answer.url.fetch,
        status=answer.fetched.status,
        media_type=head.media_type,
        charset=head.charset,
        body=answer.body,
        fetched_at=answer.fetched.started_at,
        took_s=answer.fetched.took_s,
    )


async def _get(
    settings: Settings, url: Url, contact: str, networks: Sequence[str]
) -> FetchedDocument | FetchFailed | None:
    agent = CrawlPlan(seeds=(url.fetch,), contact=contact, user_agent=settings.user_agent).agent()
    delay_s = settings.politeness.delay_s
    async with (
        asyncio.timeout(LIMIT_S),
        open_polite_client(settings, agent=agent, networks=networks, delay_s=delay_s, only_host=url.host) as client,
    ):
        return await client.get(url, _LIMITS, obey_robots=True)


@record
class FetchedPage:
    """The current text and metadata of a page."""

    id: Operator[str]
    """SHA-256 of the normalised URL."""
    requested_url: Operator[str]
    final_url: Operator[str]
    """After redirects."""
    status_code: Operator[int]
    content_type: Operator[str | None]
    bytes_read: Operator[int]
    """Decompressed size."""
    fetched_at: Operator[datetime]
    duration_ms: Operator[int]
    """Duration of the last request."""
    title: Operator[str | None]
    raw_text: Operator[str]
    """Main text, as the index would store it."""
    meta_description: Operator[str | None]
    meta_keywords: Operator[list[str]]
    author: Operator[str | None]
    published_date: Operator[datetime | None]
    canonical_url: Operator[str | None]
    """Canonical URL as written in the page."""
    language: Operator[str | None]
    page_type: Operator[str]
    word_count: Operator[int]
    meta: Operator[dict[str, str]]
    """Open Graph and JSON-LD values, by name."""
    links: Operator[list[str]]
    """Links of the main text, as written in the page."""
    queued: Operator[AddedPlace | None]
    """Where the URL was queued; null without `capture`."""


def extract(page: LivePage) -> FetchedPage:
    """Return the text and metadata of an HTML, text or PDF page; raise Invalid for any other type."""
    kind = kind_of(page.body, page.media_type)
    if kind is DocumentKind.OTHER:
        raise Invalid(f"{page.url} is {page.media_type or 'of an unknown type'}; expected HTML, text or PDF")
    found = parse_safely(page.body, kind=kind.value, media_type=page.media_type, charset=page.charset, url=page.url)
    return from_row(
        FetchedPage,
        found,
        **page.facts(),
        id=url_hash(parse(page.url).normalised),
        duration_ms=round(page.took_s * 1000),
        raw_text=found.text,
        meta_description=found.description,
        meta_keywords=list(found.keywords),
        published_date=found.published_at,
        canonical_url=found.canonical,
        meta=found.details,
        links=[href for href, *_ in found.hrefs],
        queued=None,
    )


def comparable_snapshot(session: Session, snapshot_id: int) -> Snapshot:
    """Return a capture to compare with a live page; raise SnapshotNotFound, or Invalid if it has no text."""
    found = visible_snapshot(session, snapshot_id)
    demand_body(session, found)
    if found.document_id is None:
        raise Invalid(f"snapshot {snapshot_id} has no text, so it cannot be compared with the live page")
    return found


def compare_live(
    database: Database, home: Path, archived: Snapshot, page: LivePage, mode: TextMode
) -> tuple[LiveStats, TextComparison | None, TextMode]:
    """Compare a capture with the live page; raise Invalid if that has no text, SnapshotNotFound after a takedown.

    Return the figures, the comparison (None if the live page is an error page), and the mode that was used.

    Both are parsed now, in the same way. If the record cannot be read, its indexed main text is compared, and
    `mode` indicates so.
    """
    with database.read() as session:
        archived = comparable_snapshot(session, archived.id)
    if not 200 <= page.status < 300:
        change = ChangeType.GONE if page.status in (404, 410) else ChangeType.ERROR
        return _stats(change, None, f"The live page answered with status {page.status}"), None, mode
    if kind_of(page.body, page.media_type) is DocumentKind.OTHER:
        raise Invalid(f"{page.url} is {page.media_type or 'of an unknown type'}; expected HTML, text or PDF")
    template = None if mode is TextMode.FULL else _template(database, archived)
    before = read_record(database, home, archived, whole=mode is TextMode.FULL, template=template)
    if before is None:
        mode, template = TextMode.MAIN, _template(database, archived)
        assert archived.document_id is not None
        with database.read() as session:
            before = read_text(*text_and_headings(session, archived.document_id))
    is_whole = mode is TextMode.FULL
    now = read_lines(page.body, page.media_type, page.charset, page.url, whole=is_whole, template=template)
    if now is None:
        raise Invalid(f"{page.url} cannot be parsed")
    found = compare(before, now)
    if not found.hunks:
        same = "The live page has the same text as the capture"
        return _stats(ChangeType.UNCHANGED, found, same), found, mode
    summary = counts_summary(found.sections, (found.added_lines, found.removed_lines), has_high_noise=found.high_noise)
    return _stats(ChangeType.UPDATED, found, summary), found, mode


def _template(database: Database, archived: Snapshot) -> SiteTemplate | None:
    """Return where the capture's source has its main text."""
    with database.read() as session:
        source = session.get(Source, archived.source_id)
        return None if source is None else extraction_rules(source.config)


def _stats(change: ChangeType, found: TextComparison | None, summary: str) -> LiveStats:
    added, removed, changed = found.sections if found else (None, None, None)
    return LiveStats(
        change_type=change.value,
        summary=summary,
        added_sections=added,
        removed_sections=removed,
        changed_sections=changed,
        added_lines=None if found is None else found.added_lines,
        removed_lines=None if found is None else found.removed_lines,
        change_ratio=None if found is None else found.ratio,
        high_noise=found is not None and found.high_noise,
    )
