"""Fetch one page now, to compare it with a capture or to extract it; nothing is stored.

The request passes the address guard, robots.txt, and the lease and delay of its domain, like the requests of a crawl.
Limits: 8 s in total, 4 redirects, 2 MB compressed or decompressed, 4 pages at once in one process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from ipaddress import ip_network
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast.changes.compare import TextComparison, compare, read_text
from holdfast.changes.listing import counts_summary
from holdfast.changes.pairs import TextMode, TextOptions, read_lines, read_record
from holdfast.changes.queries import text_and_headings
from holdfast.changes.verdict import ChangeType
from holdfast.config import Settings
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl_process.requests import DocumentLimits, FetchedDocument, open_polite_client
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot, Source
from holdfast.errors import AddressForbidden, Invalid, Unavailable, UrlRefused
from holdfast.fetch.guard import AddressGuard, demand_public
from holdfast.index.queries import demand_body
from holdfast.parse.child import parse_safely
from holdfast.parse.document import DocumentKind, kind_of
from holdfast.sources.extraction import extraction_rules
from holdfast.types import FetchFailed, FetchProblem
from holdfast.urls import Url, parse, parse_seed, url_hash
from holdfast.warc.payload import parse_head
from holdfast.withdrawals.visibility import visible_snapshot

LIMIT_S: Final = 8.0
MAX_BYTES: Final = 2_000_000
AT_ONCE: Final = 4
_LIMITS = DocumentLimits(request_s=LIMIT_S, body_bytes=MAX_BYTES, redirects=4, patience_s=LIMIT_S / 2)
TURNS = BoundedSemaphore(AT_ONCE)
"""One for each page that this process fetches now."""
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
    """The site did not answer in time, or not with a usable response."""

    code = "live_failed"


class LivePage(NamedTuple):
    """A page as it was answered now."""

    requested_url: str
    url: str
    """Where the redirects ended."""
    status: int
    media_type: str | None
    charset: str | None
    body: bytes
    fetched_at: datetime
    took_s: float

    def facts(self) -> dict[str, Any]:
        """Return what the answer was, for `--json` and the API."""
        return {
            "requested_url": self.requested_url,
            "final_url": self.url,
            "status_code": self.status,
            "content_type": self.media_type,
            "bytes_read": len(self.body),
            "fetched_at": self.fetched_at,
        }


def fetch_live(settings: Settings, address: str, *, contact: str, networks: Sequence[str] = ()) -> LivePage:
    """Fetch a page now. Blocks for up to 8 s; stores nothing. A redirect to another host must lead to a public address.

    UrlRefused, AddressForbidden, RobotsDenied, DomainForbidden, DomainBusy, LiveBusy, LiveTooLarge, LiveFailed.
    """
    url = parse_seed(address)
    allowed = [*map(str, settings.allow_networks), *networks]
    try:
        demand_public(url, AddressGuard(tuple(map(ip_network, allowed))))
    except UrlRefused as exc:
        raise AddressForbidden(str(exc)) from exc
    if not TURNS.acquire(blocking=False):
        raise LiveBusy
    try:
        answer = asyncio.run(_get(settings, url, contact, allowed))
    except TimeoutError:
        raise LiveFailed(f"{url.fetch} did not answer within {LIMIT_S:g} s; try again later") from None
    finally:
        TURNS.release()
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


def extract(page: LivePage) -> dict[str, Any]:
    """Return the answer, text and metadata of an HTML, text or PDF page; Invalid for anything else."""
    kind = kind_of(page.body, page.media_type)
    if kind is DocumentKind.OTHER:
        raise Invalid(f"{page.url} is {page.media_type or 'of an unknown type'}; expected HTML, text or PDF")
    found = parse_safely(page.body, kind=kind.value, media_type=page.media_type, charset=page.charset, url=page.url)
    return page.facts() | {
        "id": url_hash(parse(page.url).normalised),
        "duration_ms": round(page.took_s * 1000),
        "title": found.title,
        "raw_text": found.text,
        "meta_description": found.description,
        "meta_keywords": list(found.keywords),
        "author": found.author,
        "published_date": found.published_at,
        "canonical_url": found.canonical,
        "language": found.language,
        "page_type": found.page_type,
        "word_count": found.word_count,
        "meta": found.details,
        "links": [href for href, _ in found.hrefs],
    }


class LiveDifference(NamedTuple):
    """A capture and the page as it is now."""

    change: ChangeType
    found: TextComparison | None
    """None if the live page is an error page."""
    mode: TextMode
    """The text that was compared."""
    summary: str

    def stats(self) -> dict[str, Any]:
        """Return the difference in figures, for `--json` and the API; those of an error page are null."""
        found = self.found
        return {
            "change_type": self.change.value,
            "summary": self.summary,
            "added_sections": found and found.sections.added,
            "removed_sections": found and found.sections.removed,
            "changed_sections": found and found.sections.changed,
            "added_lines": found and found.added_lines,
            "removed_lines": found and found.removed_lines,
            "change_ratio": found and found.ratio,
            "high_noise": found is not None and found.high_noise,
        }


def comparable_snapshot(session: Session, snapshot_id: int) -> Snapshot:
    """Return a capture that a live page can be compared with; SnapshotNotFound, Invalid without text."""
    found = visible_snapshot(session, snapshot_id)
    demand_body(session, found)
    if found.document_id is None:
        raise Invalid(f"snapshot {snapshot_id} has no text, so it cannot be compared with the live page")
    return found


def compare_live(database: Database, home: Path, archived: Snapshot, page: LivePage, mode: TextMode) -> LiveDifference:
    """Compare a capture with the live page; Invalid if that has no text, SnapshotNotFound after a takedown meanwhile.

    Both are parsed now, in the same way. If the record cannot be read, its indexed main text is compared, and `mode`
    says so.
    """
    with database.read() as session:
        archived = comparable_snapshot(session, archived.id)
    if not 200 <= page.status < 300:
        change = ChangeType.GONE if page.status in (404, 410) else ChangeType.ERROR
        return LiveDifference(change, None, mode, f"The live page answered with status {page.status}")
    if kind_of(page.body, page.media_type) is DocumentKind.OTHER:
        raise Invalid(f"{page.url} is {page.media_type or 'of an unknown type'}; expected HTML, text or PDF")
    options = _options(database, archived, mode)
    before = read_record(database, home, archived, options)
    if before is None:
        mode = TextMode.MAIN
        options = _options(database, archived, mode)
        assert archived.document_id is not None
        with database.read() as session:
            before = read_text(*text_and_headings(session, archived.document_id))
    now = read_lines(page.body, page.media_type, page.charset, page.url, options)
    if now is None:
        raise Invalid(f"{page.url} cannot be parsed")
    found = compare(before, now)
    if not found.hunks:
        return LiveDifference(ChangeType.UNCHANGED, found, mode, "The live page has the same text as the capture")
    summary = counts_summary(
        (found.sections.added, found.sections.removed, found.sections.changed),
        (found.added_lines, found.removed_lines),
        has_high_noise=found.high_noise,
    )
    return LiveDifference(ChangeType.UPDATED, found, mode, summary)


def _options(database: Database, archived: Snapshot, mode: TextMode) -> TextOptions:
    """Return how both pages are parsed: whole, or the main text as the capture's source defines it."""
    if mode is TextMode.FULL:
        return {"whole": True}
    with database.read() as session:
        source = session.get(Source, archived.source_id)
        template = None if source is None else extraction_rules(source.config)
    return {} if template is None else {"template": template}
