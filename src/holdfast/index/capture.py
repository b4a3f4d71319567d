"""Turns one record into one capture: all columns of its snapshot's row, and its body as far as it is read."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote_plus

from holdfast.clock import to_micros
from holdfast.errors import UrlRefused
from holdfast.parse.document import DocumentKind, kind_of
from holdfast.parse.html import read_directives
from holdfast.parse.page import MAX_PARSED_BYTES
from holdfast.parse.walking import Anchor
from holdfast.types import CUT_RECORD
from holdfast.urls import Base, hash64, normalised_or_plain, page_key, url_key
from holdfast.urls.links import ResolvedLink, edges_of, leading_out
from holdfast.values import dataclass
from holdfast.warc.member import Pulse
from holdfast.warc.payload import Dechunked, DecodeCaps, HttpHead, decode, parse_head
from holdfast.warc.reader import Record
from holdfast.warc.record import BadHead, RecordHead, agrees, hasher_for, parse_date, snapshot_id

# Keep one byte more than is parsed, so that the parser records that the body is longer.
MAX_KEPT_BYTES = MAX_PARSED_BYTES + 1
_MAX_CODED_BYTES = 32 * 1024 * 1024
_SNIFFED_BYTES = 512


class RecordBody(NamedTuple):
    start: bytes
    """The whole body, or the part of it that will be read."""
    size: int
    body_hash: bytes | None
    """SHA-256 of the content-decoded body; None if it could not be decoded completely."""
    digest: str
    """Labelled payload digest: the stated one, or our own."""
    problems: tuple[str, ...]


def read_body(
    head: HttpHead | None, payload: Iterable[bytes], stated: str | None, *, keep: bool, pulse: Pulse
) -> RecordBody:
    """Return the hashes and the start of a payload, and whether its stated digest is correct."""
    coded = head is not None and any(
        coding.strip().lower() not in ("", "identity")
        for value in head.get_all("content-encoding")
        for coding in value.split(",")
    )
    checker = hasher_for(stated) if stated else None
    ours = hashlib.sha256()
    kept_most = _MAX_CODED_BYTES if coded else MAX_KEPT_BYTES if keep else _SNIFFED_BYTES
    kept, kept_bytes, size = list[bytes](), 0, 0
    for piece in payload:
        ours.update(piece)
        if checker is not None:
            checker.update(piece)
        size += len(piece)
        if kept_bytes < kept_most:
            kept.append(piece[: kept_most - kept_bytes])
            kept_bytes += len(kept[-1])
        if len(piece) > 32768 or not size & 0xFFFF:
            pulse()
    problems = []
    if isinstance(payload, Dechunked) and payload.problem is not None:
        problems.append(payload.problem.value)
    # Check only for longer bodies: shorter ones are truncated, which is recorded elsewhere, or were stored decoded.
    elif head is not None and not head.is_chunked and _is_longer(head, size):
        problems.append("beyond_content_length")
    if stated and checker is None:
        problems.append("digest_unknown")
    elif stated and checker is not None and not agrees(stated, checker):
        problems.append("digest_mismatch")
    digest = stated or f"sha256:{ours.hexdigest()}"
    start = b"".join(kept)
    if not coded or head is None or not size:
        return RecordBody(start, size, ours.digest(), digest, tuple(problems))
    return _decoded(head, RecordBody(start, size, None, digest, tuple(problems)), is_whole=kept_bytes == size)


def _is_longer(head: HttpHead, size: int) -> bool:
    """Return True if a body is longer than its header states: some writers add a few bytes, others store it
    decoded.
    """
    stated = (head.get("content-length") or "").strip()
    return len(stated) <= 18 and stated.isascii() and stated.isdigit() and size > int(stated)


_CAPS = DecodeCaps()


def _decoded(head: HttpHead, body: RecordBody, *, is_whole: bool) -> RecordBody:
    if not is_whole:
        return body._replace(start=b"", problems=(*body.problems, "too_large"))
    content, problems = decode(head, body.start, _CAPS)
    # A truncated body is kept, with its hash. A body that we cut gets no hash: two bodies that agree up to our own
    # limit may differ.
    cut = {"too_large", "ratio_exceeded"} & set(problems)
    return RecordBody(
        start=content[:MAX_KEPT_BYTES],
        size=len(content),
        body_hash=None if cut else hashlib.sha256(content).digest(),
        digest=body.digest,
        problems=(*body.problems, *(str(problem) for problem in problems)),
    )


class Identity(NamedTuple):
    url_key: str
    url_hash: int
    group: str
    group_hash: int
    page_key: str | None = None
    """Takedown key of the page where it differs from `url_key`: for requests with data, and for URLs with tracking
    parameters.
    """


def identify(url: str, request_data: str = "") -> Identity:
    """Return the identity of a capture; the data of a request other than GET is part of it."""
    whole = f"{url}{'&' if '?' in url else '?'}{request_data}" if request_data else url
    normalised = normalised_or_plain(whole)
    group = normalised.partition("?")[0]
    key = url_key(whole)
    # Only a query is normalised further than a SURT key, so most URLs need no second key.
    page = page_key(url) if request_data else url_key(normalised) if "?" in whole else key
    return Identity(key, hash64(normalised), group, hash64(group), page if page != key else None)


CAPTURED = ("response", "resource", "revisit")
# URLs that our crawl requests for itself, as `warc.writer` records them.
_OWN_PURPOSES = ("robots", "sitemap", "feed")
# Valid years of a capture. Do not use the clock: one that is years behind would change or drop captures when their file
# is read again.
_CREDIBLE_YEARS = range(1990, 2100)
_BEFORE_XML = b"\xef\xbb\xbf \t\r\n"
_PROLOG_BYTES = 2048
# The root of a sitemap behind declarations and comments.
_SITEMAP = re.compile(
    rb"(?:<\?[^>]{0,400}+>\s{0,64}+|<!--[^>]{0,400}+>\s{0,64}+){0,8}+<(?:[A-Za-z0-9]{1,16}:)?(?:urlset|sitemapindex)[\s>]"
)
_TYPE_CHARS, _ID_CHARS, _DIGEST_CHARS, _URL_CHARS = 255, 255, 255, 65_536
# Types of pages; everything else is hashed and not stored.
_PAGE_TYPES = frozenset(
    {
        "text/html",
        "application/xhtml+xml",
        "application/vnd.wap.xhtml+xml",
        "application/pdf",
        "application/x-pdf",
        "application/force-download",
        "text/xml",
        "application/xml",
        "",
        "application/octet-stream",
        "application/unknown",
        "unknown/unknown",
        "*/*",
        "text/*",
        "text",
    }
)


@dataclass(slots=True, kw_only=True)
class IndexedCapture:
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
    language: str | None = None
    """From the Content-Language header."""
    payload_digest: str | None = None
    body_hash: bytes | None = None
    body: bytes = b""
    body_bytes: int = 0
    kind: DocumentKind = DocumentKind.OTHER
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
    links: list[OutLink] | None = None
    """Groups that it links to; None leaves the stored links unchanged."""
    concurrent_to: frozenset[str] = frozenset()
    is_content: bool = True
    """False if the record says that the crawler fetched it for itself: never a page, even as a revisit of one."""

    @property
    def is_ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def is_captured(head: RecordHead) -> bool:
    """Return True if a record becomes a snapshot: a response, resource or revisit of an http(s) URL."""
    return head.type in CAPTURED and head.url[:8].lower().startswith(("http://", "https://"))


def is_for_crawlers(url: str, body: bytes) -> bool:
    """Return True for files that only crawlers request: robots.txt, or a sitemap of any declared type."""
    # Store and replay it like any other, but not as a page: otherwise search and changes would list it.
    path = url.partition("://")[2].partition("#")[0].partition("?")[0].partition("/")[2]
    if path.lower() == "robots.txt":
        return True
    return body.lstrip(_BEFORE_XML)[:1] == b"<" and _SITEMAP.match(body.lstrip(_BEFORE_XML)[:_PROLOG_BYTES]) is not None


def read_capture(
    record: Record, warc_file_id: int, fallback: datetime | None, *, pulse: Pulse
) -> IndexedCapture | None:
    """Return the capture of a record, reading its block to the end; None if no date can be determined.

    `fallback` is the date of the file's warcinfo. Raise DamagedWarc if the block is incomplete.
    """
    head = record.head
    url = _clean(head.url, _URL_CHARS) or ""
    # If the file ends inside the record, its digest covers missing bytes: no revisit may use it as its original.
    stated = None if record.is_cut else _clean(head.get("WARC-Payload-Digest"), _DIGEST_CHARS)
    is_http = head.type != "resource" and (head.get("Content-Type") or "application/http").lower().startswith(
        "application/http"
    )
    capture = IndexedCapture(
        id=snapshot_id(warc_file_id, record.ordinal),
        offset=record.offset,
        length=record.length,
        record_id=_clean(head.record_id, _ID_CHARS),
        record_type=head.type,
        url=url,
        identity=identify(url),
        captured_at=0,
        payload_digest=stated,
        truncated="unspecified" if record.is_cut else _clean(head.get("WARC-Truncated"), 16),
        concurrent_to=frozenset(
            value.strip().strip("<>").removeprefix("urn:uuid:") for value in head.every("WARC-Concurrent-To")
        ),
        is_content=(head.get("Holdfast-Purpose") or "").strip().lower() not in _OWN_PURPOSES,
    )
    if record.is_cut:
        capture.problems.append(CUT_RECORD)
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
        # A revisit has no body to examine: use its URL and the field of its record.
        own = not capture.is_content or is_for_crawlers(url, b"")
        capture.kind = DocumentKind.OTHER if own else kind_of(b"", capture.media_type)
    else:
        body = read_body(http, payload, stated, keep=_may_be_page(capture.media_type), pulse=pulse)
        if stated and framed is not None and "digest_mismatch" in body.problems and agrees(stated, framed):
            # The digest covers the chunked form, against the standard, but the bytes are intact.
            kept = [problem for problem in body.problems if problem != "digest_mismatch"]
            body = body._replace(problems=(*kept, "digest_of_chunks"))
        _take_body(capture, body)
    moment = _moment(head, http, fallback, capture.problems)
    if moment is None:
        return None
    capture.captured_at = to_micros(moment)
    capture.is_page = capture.kind is not DocumentKind.OTHER
    return capture


def _may_be_page(media_type: str | None) -> bool:
    declared = media_type or ""
    return declared in _PAGE_TYPES or (declared.startswith("text/") and declared not in ("text/css", "text/javascript"))


def _take_head(capture: IndexedCapture, http: HttpHead) -> None:
    capture.status = http.status or None
    if capture.status is None:
        capture.problems.append("no_status")
    capture.media_type = _clean(http.media_type, _TYPE_CHARS)
    capture.charset, capture.language = http.charset, (http.get("content-language") or "").partition(",")[0].strip()
    robots = http.get_all("x-robots-tag")
    capture.noindex = bool(robots) and read_directives(robots, ()).noindex
    location = http.get("location") if 300 <= http.status < 400 else None
    if location:
        capture.redirect_to = _target(capture.url, location)


def _target(url: str, location: str) -> str | None:
    with suppress(UnicodeError):
        # Servers write UTF-8, but the head was read as Latin-1.
        location = location.encode("latin-1").decode("utf-8")
    try:
        return _clean(Base(url).absolute(location), 8192)
    except UrlRefused:
        return None


def _take_body(capture: IndexedCapture, body: RecordBody) -> None:
    capture.payload_digest = body.digest
    capture.body_hash, capture.body_bytes = body.body_hash, body.size
    capture.problems += body.problems
    capture.kind = kind_of(body.start, capture.media_type)
    if not capture.is_content or is_for_crawlers(capture.url, body.start):
        capture.kind = DocumentKind.OTHER
    if capture.kind is not DocumentKind.OTHER and body.body_hash is not None:
        capture.body = body.start


def _take_revisit(capture: IndexedCapture, head: RecordHead) -> None:
    capture.is_not_modified = "not-modified" in (head.get("WARC-Profile") or "")
    capture.refers_to_url = _clean(head.address("WARC-Refers-To-Target-URI"), _URL_CHARS)
    stated = head.get("WARC-Refers-To-Date")
    if stated:
        try:
            capture.refers_to_at = to_micros(parse_date(stated))
        except BadHead:
            capture.problems.append("bad_refers_to_date")


def _moment(head: RecordHead, http: HttpHead | None, fallback: datetime | None, problems: list[str]) -> datetime | None:
    """Return the time of a capture: its date or, recorded as a problem, the date of its server or its file."""
    # The same bytes must always give the same result, whatever this machine's time: files are read again, perhaps
    # elsewhere.

    def credible(moment: datetime) -> bool:
        return moment.year in _CREDIBLE_YEARS

    stated = head.get("WARC-Date") or ""
    # Some writers leave out the zone; the standard means UTC.
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
    """Return a value that both databases accept: PostgreSQL stores no NUL."""
    return (text.replace("\0", "")[:limit].strip() or None) if text else None


MAX_DATA_BYTES = 64 * 1024
_MAX_QUERY_CHARS = 4096
_REQUEST_LINE = re.compile(rb"([A-Za-z]{1,16})[ \t]")
_PART_NAME = re.compile(r'name="([^"]*)"')
_MAX_JSON_DEPTH = 60


def method_of(head: bytes) -> str | None:
    match = _REQUEST_LINE.match(head)
    return match[1].decode().upper() if match else None


def request_data(method: str, head: bytes, body: bytes) -> str:
    """Return the suffix that the request's data adds to the URL when its key is built; empty for a GET."""
    if method in ("GET", "HEAD"):
        return "" if method == "GET" else "__wb_method=HEAD"
    # Build the key of such a request as pywb and warcio do (`__wb_method`, `__wb_post_data`), so that their indexes and
    # ours agree. A request line is not a status line, but the headers below it are parsed the same way.
    query = _query(parse_head(head), body) if body and method in ("POST", "PUT", "PATCH") else ""
    return f"__wb_method={method}&{query}" if query else f"__wb_method={method}"


def _query(head: HttpHead, body: bytes) -> str:
    if head.is_chunked:
        body = b"".join(Dechunked((body,)))
    declared = (head.get("content-type") or "").lower()
    try:
        if declared.startswith("application/x-www-form-urlencoded"):
            query = body.decode()
        elif declared.startswith("multipart/"):
            query = _multipart(head.get("content-type") or "", body)
        elif declared.startswith(("application/json", "text/plain")):
            query = _flat(json.loads(body))
        else:
            query = _binary(body)
    except (ValueError, RecursionError):
        query = _binary(body)
    return query[:_MAX_QUERY_CHARS].replace("\0", "")


def _binary(body: bytes) -> str:
    return "__wb_post_data=" + b64encode(body).decode()


def _multipart(declared: str, body: bytes) -> str:
    boundary = declared.partition("boundary=")[2].partition(";")[0].strip().strip('"').encode()
    if not boundary:
        raise ValueError("no boundary")
    fields = []
    for part in body.split(b"--" + boundary)[1:]:
        head, _, value = part.partition(b"\r\n\r\n")
        name = _PART_NAME.search(head.decode("utf-8", "replace"))
        if name:
            sent = value.removesuffix(b"\r\n").decode("utf-8", "replace")
            fields.append(f"{name[1]}={sent}")
    return "&".join(fields)


def _flat(content: Any) -> str:
    counts: dict[str, int] = {}
    pairs = []
    for name, value in _leaves("", content, _MAX_JSON_DEPTH):
        counts[name] = counts.get(name, 0) + 1
        shown = name if counts[name] == 1 else f"{name}.{counts[name]}_"
        pairs.append(f"{quote_plus(shown)}={quote_plus(_plain(value))}")
    return "&".join(pairs)


def _leaves(name: str, content: Any, depth: int) -> Iterator[tuple[str, Any]]:
    # A hostile body of thousands of brackets would otherwise recurse as deep as Python's stack allows.
    if depth == 0:
        raise ValueError("nested too deeply")
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _leaves(str(key), value, depth - 1)
    elif isinstance(content, list):
        for value in content:
            yield from _leaves(name, value, depth - 1)
    elif name:
        yield name, content


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


OutLink = tuple[int, str, tuple[str, ...]]
"""A link to another group: its hash, its URL, and the significant words of its anchor text and next to it."""


_POINTING = " .…»›→>"
_LETTER = re.compile(r"[^\W\d_]")
# Link texts that fit any target, in the languages of most pages.
_TELLS_NOTHING = frozenset(
    (
        *("here", "click here", "this", "this page", "link", "more", "read more", "learn more", "see more", "details"),
        *(
            "continue",
            "continue reading",
            "next",
            "next page",
            "prev",
            "previous",
            "previous page",
            "back",
            "up",
            "top",
        ),
        *("home", "index", "contents", "table of contents", "website", "source", "download"),
        *("ici", "cliquez ici", "lire la suite", "en savoir plus", "suivant", "précédent", "accueil", "retour", "lien"),
        *("hier", "mehr", "weiter", "zurück", "weiterlesen", "mehr erfahren", "startseite"),
        *("aquí", "leer más", "más", "siguiente", "anterior", "inicio", "qui", "continua", "avanti", "indietro"),
        *("clique aqui", "saiba mais", "próximo", "подробнее", "далее", "назад", "здесь"),
        *("こちら", "続きを読む", "次へ", "前へ", "更多", "下一页", "上一页", "首页", "المزيد", "هنا"),
    )
)


@lru_cache(maxsize=4096)
def _telling(text: str) -> str:
    """Return a link's text if it describes the target; empty for a bare URL, a number or `read more`."""
    low = text.lower()
    if low in _TELLS_NOTHING or "://" in low:
        return ""
    if text[:1].isalpha() and text[-1] not in _POINTING:
        return text
    return "" if _LETTER.search(text) is None or low.strip(_POINTING) in _TELLS_NOTHING else text


def outlinks(url: str, base: str | None, anchors: Sequence[Anchor], *, own_hash: int) -> list[OutLink]:
    """Return the groups that these links lead to, in order, each once, with the longest link text for each."""
    try:
        resolved, _ = Base(url, base).each([href for href, _, _ in anchors])
    except UrlRefused:
        return []
    links: dict[int, ResolvedLink] = {}
    texts: dict[int, str] = {}
    besides: dict[int, str] = {}
    for link, (_, text, beside) in zip(resolved, anchors, strict=True):
        if link is not None:
            number = link[2]
            links.setdefault(number, link)
            if text and (number not in texts or len(text) > len(texts[number])) and (text := _telling(text)):
                texts[number] = text
            if beside:
                besides.setdefault(number, beside)
    leading = leading_out(links.values(), own_hash=own_hash)
    edges = edges_of(leading)
    words, others = dict.fromkeys(edges, ""), dict[int, str]()
    for to_hash, link in leading:
        # Pages of one group may differ only in their queries.
        text = texts.get(link[2], "")
        if len(text) > len(words.get(to_hash, text)):
            words[to_hash] = text
        if link[2] in besides:
            others.setdefault(to_hash, besides[link[2]])
    return [
        (to_hash, link[1].partition("?")[0], tuple(filter(None, (words[to_hash], others.get(to_hash)))))
        for to_hash, link in edges.items()
    ]


def resolved(url: str, base: str | None, href: str | None) -> str | None:
    if not href:
        return None
    try:
        return Base(url, base).absolute(href)
    except UrlRefused:
        return None
