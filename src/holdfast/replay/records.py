"""Captures, pages, and page histories, as readers see them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal

from holdfast.records import Operator, Public, record


@record
class HistoryCapture:
    """One capture in the history of its address."""

    id: Public[int]
    captured_at: Public[datetime]
    url: Public[str]
    """As captured."""
    status: Public[int | None]
    media_type: Public[str | None]
    record_type: Public[str]
    """response, resource or revisit."""
    digest: Public[str | None]
    change: Public[str | None]
    """new_page, updated, gone, unchanged, error or noise; null before it was compared."""
    is_change: Public[bool]
    """Whether its content differs from that of the capture before."""
    noise: Public[str | None]
    """The kind of noise that it shows instead of its page."""
    execution_id: Public[int]
    """The execution that captured it."""


@record
class YearCount:
    """Captures of one year."""

    year: Public[int]
    captures: Public[int]


@record
class HistoryDay:
    """Captures of one day."""

    day: Public[date]
    captures: Public[int]
    changes: Public[int]
    statuses: Public[dict[str, int]]
    """By class: 2xx, 3xx, 4xx, 5xx, other."""
    first_snapshot_id: Public[int]
    first_timestamp: Public[datetime]


@record
class History:
    """A page through time: how many captures each year has, and one year in full."""

    items: Public[list[HistoryCapture]]
    next: Public[str | None]
    """Pass this as `cursor` for the next part; null at the end."""
    limit: Public[int]
    url: Public[str]
    years: Public[list[YearCount]]
    year: Public[int]
    """The year of days and items."""
    days: Public[list[HistoryDay]]
    is_cut: Public[bool]
    """Whether there are more captures than are counted."""


@record
class Neighbour:
    """Another capture of the same address."""

    id: Public[int]
    captured_at: Public[datetime]
    url: Public[str]
    status: Public[int | None]


@record
class CaptureView:
    """One capture with all that a reader sees around it."""

    id: Public[int]
    url: Public[str]
    captured_at: Public[datetime]
    title: Public[str | None]
    language: Public[str | None]
    status: Public[int | None]
    media_type: Public[str | None]
    redirect_to: Public[str | None]
    source_code: Public[str]
    source_name: Public[str]
    execution_id: Public[int]
    """The execution that captured it."""
    job_name: Public[str]
    backend: Public[str]
    fidelity: Public[str]
    noise: Public[str | None]
    """The kind of noise that it shows instead of its page."""
    truncated: Public[str | None]
    """Why its body is incomplete."""
    record_id: Public[str | None]
    record_type: Public[str]
    payload_digest: Public[str | None]
    warc_file: Public[str]
    """The file's name."""
    warc_offset: Public[int]
    warc_length: Public[int]
    change: Public[str | None]
    """new_page, updated, gone, unchanged, error or noise; null before it was compared."""
    frame_url: Public[str]
    """URL without a bar, for a frame; temporary for a members' source."""
    frame_seconds: Public[float | None]
    """For how long `frameUrl` of a members' capture is valid; null if it does not expire."""
    permalink: Public[str]
    """Its address for citations."""
    raw_url: Public[str]
    """URL of the bytes as captured."""
    renderer_url: Public[str | None]
    """ReplayWeb.page's URL for a frame; null if it is not installed, or for members' captures."""
    can_compare_live: Public[bool]
    """Whether the client may compare it with the live page."""
    first: Public[Neighbour | None]
    previous: Public[Neighbour | None]
    next: Public[Neighbour | None]
    last: Public[Neighbour | None]
    previous_change: Public[Neighbour | None]
    """Among the nearest thousand captures."""
    next_change: Public[Neighbour | None]
    """Among the nearest thousand captures."""


@record
class Header:
    """One header."""

    name: Public[str]
    value: Public[str]


@record
class CaptureRecord:
    """The WARC record of a capture."""

    snapshot_id: Public[int]
    status_code: Public[int | None]
    reason: Public[str]
    headers: Public[list[Header]]
    """Headers of the response, in their order."""
    record_headers: Public[list[Header]]
    """Headers of the WARC record."""


@record
class CaptureContent:
    """The text of a capture."""

    snapshot_id: Public[int]
    form: Public[Literal["text", "source"]]
    """text: the page's text. source: its markup as sent."""
    text: Public[str | None]
    """Null if it is not text."""
    charset: Public[str | None]
    is_cut: Public[bool]
    """Whether there is more than this."""


@record
class Part:
    """One resource that a page needs."""

    url: Public[str]
    kind: Public[str]
    """img, css, script, font, media, frame, object."""
    snapshot_id: Public[int | None]
    """The capture that replay shows; null if it is missing."""
    capture_timestamp: Public[datetime | None]
    seconds_apart: Public[int | None]
    """From the page to the part; negative if the part is older."""
    status_code: Public[int | None]
    mime_type: Public[str | None]


@record
class Parts:
    """The parts of a page besides itself, as named by its own markup."""

    snapshot_id: Public[int]
    is_readable: Public[bool]
    """Whether the page could be parsed for this."""
    named: Public[int]
    """Number of parts in the markup; the first 300 are looked up."""
    missing: Public[int]
    """Parts that were looked up and have no capture."""
    earliest_seconds: Public[int | None]
    """Time of the oldest part relative to the page."""
    latest_seconds: Public[int | None]
    """Time of the newest part relative to the page."""
    parts: Public[list[Part]]


@record
class SnapshotDetail:
    """One capture of a page."""

    id: Public[int]
    title: Public[str | None]
    source_code: Public[str]
    source_name: Public[str]
    language: Public[str | None]
    """BCP-47, if known."""
    capture_date: Public[date]
    captured_at: Public[datetime]
    execution_id: Public[int]
    """The execution that captured it."""
    url: Public[str]
    snippet: Public[str | None]
    raw_snapshot_url: Public[str]
    """Path of the raw view."""
    browse_url: Public[str | None]
    """The capture's replay URL."""
    backend: Public[str]
    fidelity: Public[str]
    media_type: Public[str | None]
    status: Public[int | None]
    author: Public[str | None]
    """As the page states it."""
    published_at: Public[datetime | None]
    """As the page states it."""
    modified_at: Public[datetime | None]
    """As the page states it."""
    keywords: Public[list[str]]
    """From the page's own metadata."""
    word_count: Public[int | None]
    """Of the main text; null if it was not extracted."""
    page_type: Public[str | None]
    """article, listing, home, product, reference, form, media or other; null if it was not classified."""
    noise: Public[str | None]
    """The kind of noise that it shows instead of its page: soft_404, block_page, consent_wall, login_wall or
    parked.
    """
    noise_evidence: Public[str | None]
    """Evidence for the noise."""


@record
class Provenance:
    """The origin of a capture."""

    snapshot_id: Public[int]
    execution_id: Public[int]
    job_id: Public[int]
    job_name: Public[str | None]
    edition_id: Public[int | None]
    shard_key: Public[str | None]
    shard_kind: Public[str | None]
    backend: Public[str]
    fidelity: Public[str]
    """high, fallback or unknown."""
    worker_id: Public[int | None]
    """The process that wrote the file; null for imports."""
    settings: Public[dict[str, Any]]
    """Settings of the run, without headers and cookies."""
    warc_info: Public[dict[str, str]]
    """The WARC file's warcinfo fields; empty if it cannot be read now."""
    warc_file: Public[str]
    """The file's name."""
    warc_record_id: Public[str | None]
    warc_offset: Public[int]
    warc_length: Public[int]
    raw_snapshot_path: Public[str]
    """Path of the raw view."""


@record
class LatestCapture:
    """The newest capture of the same page."""

    found: Public[bool]
    id: Public[int | None] = None
    captured_at: Public[datetime | None] = None
    media_type: Public[str | None] = None


@record
class Resolved(LatestCapture):
    """The best capture for an address and a time."""

    resolved_url: Public[str | None] = None
    browse_url: Public[str | None] = None


@record
class PageRecord:
    """One page and its captures."""

    page_id: Operator[int]
    url: Operator[str]
    url_hash: Operator[str]
    domain: Operator[str]
    source: Operator[str | None]
    status_code: Operator[int | None]
    media_type: Operator[str | None]
    content_hash: Operator[str | None]
    title: Operator[str | None]
    description: Operator[str | None]
    language: Operator[str | None]
    word_count: Operator[int]
    links_count: Operator[int]
    fetched_at: Operator[datetime]
    status: Operator[str]
    """never_crawled, fetched, failed or blocked (by robots.txt)."""
    content_length: Operator[int | None]
    """Bytes of the last successful response as sent."""
    duration_ms: Operator[int | None]
    """Of the last attempt."""
    error: Operator[str | None]
    """Why the last attempt failed."""


@record
class Keyword:
    """A case-folded word and its number of occurrences."""

    word: Operator[str]
    count: Operator[int]


@record
class PageDetail(PageRecord):
    """One page with its keywords, the most frequent first, and its links."""

    keywords: Operator[list[Keyword]]
    links: Operator[list[str]]


@record
class PageList:
    """A part of the pages that match a query."""

    pages: Operator[list[PageRecord]]
    total: Operator[int]
    limit: Operator[int]
    offset: Operator[int]
