"""One record becomes one capture: everything that a snapshot's row says of it, and its body as far as it is read."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime

from holdfast.clock import to_micros
from holdfast.errors import UrlRefused
from holdfast.index.bodies import Body, Pulse, read_body
from holdfast.index.keys import Identity, identify
from holdfast.parse.directives import read_directives
from holdfast.parse.document import Kind, kind_of
from holdfast.parse.page import AGENT
from holdfast.urls import Base
from holdfast.warc.digest import agrees, hasher_for
from holdfast.warc.ids import snapshot_id
from holdfast.warc.payload import HttpHead
from holdfast.warc.reader import Record
from holdfast.warc.record import BadHead, RecordHead, parse_date

CAPTURED = ("response", "resource", "revisit")
_OWN_PURPOSES = ("robots", "sitemap", "feed")
"""What our crawl asks for on its own account, as `warc.exchange` writes it down."""
_CREDIBLE_YEARS = range(1990, 2100)
"""Years in which a capture may have been made. No clock is asked: one that is years behind would give captures other
dates, or take them out, when their file is read again."""
_BEFORE_XML = b"\xef\xbb\xbf \t\r\n"
_PROLOG_BYTES = 2048
_SITEMAP = re.compile(
    rb"(?:<\?[^>]{0,400}+>\s{0,64}+|<!--[^>]{0,400}+>\s{0,64}+){0,8}+<(?:[A-Za-z0-9]{1,16}:)?(?:urlset|sitemapindex)[\s>]"
)
"""The root of a sitemap behind declarations and comments."""
_TYPE_CHARS, _ID_CHARS, _DIGEST_CHARS, _URL_CHARS = 255, 255, 255, 65_536
# What a page may be called; everything else is hashed and not kept.
_PAGE_TYPES = frozenset(
    {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml", "application/pdf", "application/x-pdf",
     "application/force-download", "text/xml", "application/xml", "", "application/octet-stream",
     "application/unknown", "unknown/unknown", "*/*", "text/*", "text"}
)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Capture:
    """One record that can be replayed, on its way into the archive."""

    id: int
    offset: int
    length: int
    record_id: str | None
    record_type: str
    url: str
    identity: Identity
    captured_at: int
    method: str | None = None
    status: int | None = None
    media_type: str | None = None
    charset: str | None = None
    """As the header declares it."""
    language: str | None = None
    """Of the Content-Language header."""
    payload_digest: str | None = None
    body_hash: bytes | None = None
    body: bytes = b""
    body_bytes: int = 0
    kind: Kind = Kind.OTHER
    noindex: bool = False
    is_not_modified: bool = False
    refers_to_url: str | None = None
    refers_to_at: int | None = None
    redirect_to: str | None = None
    truncated: str | None = None
    problems: list[str] = field(default_factory=list)
    document_key: tuple[bytes, str, str] | None = None
    document_id: int | None = None
    original_id: int | None = None
    is_page: bool = False
    group_id: int | None = None
    links: list[tuple[int, str]] | None = None
    """(hash, address) of the groups that it links to; None if what is stored stays as it is."""
    concurrent_to: frozenset[str] = frozenset()
    is_content: bool = True
    """False if the crawler asked for it on its own account, as its record says: never a page, whatever it repeats."""

    @property
    def is_ok(self) -> bool:
        """Whether it shows the page itself."""
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a capture takes from its file."""

    warc_file_id: int
    pulse: Pulse


def is_captured(head: RecordHead) -> bool:
    """Whether a record becomes a snapshot: a response, resource or revisit of an http(s) address."""
    return head.type in CAPTURED and head.url[:8].lower().startswith(("http://", "https://"))


def is_for_crawlers(url: str, body: bytes) -> bool:
    """Whether a capture is what only crawlers ask for: robots.txt, or a sitemap whatever its declared type.

    It is kept and replayed like any other; it is no page that anybody would search, count or compare.
    """
    path = url.partition("://")[2].partition("#")[0].partition("?")[0].partition("/")[2]
    if path.lower() == "robots.txt":
        return True
    return body.lstrip(_BEFORE_XML)[:1] == b"<" and _SITEMAP.match(body.lstrip(_BEFORE_XML)[:_PROLOG_BYTES]) is not None


def read_capture(record: Record, around: Surroundings, fallback: datetime | None) -> Capture | None:
    """Return what a record says, its block read to the end; None if it has no date and nothing tells one.

    `fallback` is the date of the file's warcinfo. DamagedWarc if the block is not whole.
    """
    head = record.head
    url = _clean(head.url, _URL_CHARS) or ""
    stated = _clean(head.get("WARC-Payload-Digest"), _DIGEST_CHARS)
    is_http = head.type != "resource" and (head.get("Content-Type") or "application/http").lower().startswith(
        "application/http"
    )
    capture = Capture(
        id=snapshot_id(around.warc_file_id, record.ordinal), offset=record.offset, length=record.length,
        record_id=_clean(head.record_id, _ID_CHARS), record_type=head.type, url=url, identity=identify(url),
        captured_at=0, payload_digest=stated, truncated=_clean(head.get("WARC-Truncated"), 16),
        concurrent_to=frozenset(value.strip().strip("<>").removeprefix("urn:uuid:")
                                for value in head.every("WARC-Concurrent-To")),
        is_content=(head.get("Holdfast-Purpose") or "").strip().lower() not in _OWN_PURPOSES,
    )  # fmt: skip
    if head.is_url_encoded_anew:
        capture.problems.append("address_bytes")
    framed = hasher_for(stated) if stated else None
    on_framed = framed.update if framed is not None else None
    http, payload = record.http(on_framed) if is_http and head.content_length else (None, record.block())
    if http is not None:
        _take_head(capture, http)
    elif is_http and head.type != "revisit":
        capture.problems.append("no_status")
    elif not is_http:
        declared = _clean(head.get("Content-Type"), _TYPE_CHARS)
        capture.media_type, capture.status = (declared or "").partition(";")[0].strip().lower() or None, 200
    if head.type == "revisit":
        _take_revisit(capture, head)
        for _ in payload:
            pass
        own = not capture.is_content or is_for_crawlers(url, b"")
        capture.kind = Kind.OTHER if own else kind_of(b"", capture.media_type)
    else:
        body = read_body(http, payload, stated, keep=_may_be_page(capture.media_type), pulse=around.pulse)
        if stated and framed is not None and "digest_mismatch" in body.problems and agrees(stated, framed):
            # Made before the chunks were taken apart: not as the standard says, and yet the bytes are what they were.
            kept = [problem for problem in body.problems if problem != "digest_mismatch"]
            body = body._replace(problems=(*kept, "digest_of_chunks"))
        _take_body(capture, body)
    moment = _moment(head, http, fallback, capture.problems)
    if moment is None:
        return None
    capture.captured_at = to_micros(moment)
    capture.is_page = capture.kind is not Kind.OTHER
    return capture


def _may_be_page(media_type: str | None) -> bool:
    declared = media_type or ""
    return declared in _PAGE_TYPES or (declared.startswith("text/") and declared not in ("text/css", "text/javascript"))


def _take_head(capture: Capture, http: HttpHead) -> None:
    capture.status = http.status or None
    if capture.status is None:
        capture.problems.append("no_status")
    capture.media_type = _clean(http.media_type, _TYPE_CHARS)
    capture.charset, capture.language = http.charset, (http.get("content-language") or "").partition(",")[0].strip()
    robots = http.get_all("x-robots-tag")
    capture.noindex = bool(robots) and read_directives(robots, (), AGENT).noindex
    location = http.get("location") if 300 <= http.status < 400 else None
    if location:
        capture.redirect_to = _target(capture.url, location)


def _target(url: str, location: str) -> str | None:
    with suppress(UnicodeError):
        # Servers write UTF-8 where the head was read as Latin-1.
        location = location.encode("latin-1").decode("utf-8")
    try:
        return _clean(Base(url).absolute(location), 8192)
    except UrlRefused:
        return None


def _take_body(capture: Capture, body: Body) -> None:
    capture.payload_digest = body.digest
    capture.body_hash, capture.body_bytes = body.body_hash, body.size
    capture.problems += body.problems
    capture.kind = kind_of(body.start, capture.media_type)
    if not capture.is_content or is_for_crawlers(capture.url, body.start):
        capture.kind = Kind.OTHER
    if capture.kind is not Kind.OTHER and body.body_hash is not None:
        capture.body = body.start


def _take_revisit(capture: Capture, head: RecordHead) -> None:
    capture.is_not_modified = "not-modified" in (head.get("WARC-Profile") or "")
    capture.refers_to_url = _clean(head.address("WARC-Refers-To-Target-URI"), _URL_CHARS)
    stated = head.get("WARC-Refers-To-Date")
    if stated:
        try:
            capture.refers_to_at = to_micros(parse_date(stated))
        except BadHead:
            capture.problems.append("bad_refers_to_date")


def _moment(head: RecordHead, http: HttpHead | None, fallback: datetime | None, problems: list[str]) -> datetime | None:
    """Return when a capture was made: its date, or with a note what its server or its file says.

    The same bytes always give the same answer, whatever the time is here.
    """

    def credible(moment: datetime) -> bool:
        return moment.year in _CREDIBLE_YEARS

    stated = head.get("WARC-Date") or ""
    for text in (stated, f"{stated}Z"):
        try:
            moment = parse_date(text)
        except BadHead:
            continue
        if credible(moment):
            if text != stated:
                problems.append("bad_date")
            return moment
    problems.append("bad_date")
    try:
        served = parsedate_to_datetime((http.get("date") if http is not None else None) or "")
        if served.tzinfo is not None and credible(served):
            return served
    except ValueError:
        pass
    return fallback


def _clean(text: str | None, limit: int) -> str | None:
    """Return a value that both databases take: PostgreSQL stores no NUL."""
    return (text.replace("\0", "")[:limit].strip() or None) if text else None
