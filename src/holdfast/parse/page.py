"""Parses one body into a ParsedPage, whatever the bytes are; no parser error passes this module."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NotRequired, TypedDict, Unpack

from holdfast import log
from holdfast.parse.addresses import address, css_links
from holdfast.parse.charset import BodyForm, DecodedText, ParseProblem, decode, decode_text, media_type_of, sniff
from holdfast.parse.feed import parse_sitemap
from holdfast.parse.html import parse_html, read_directives
from holdfast.parse.text import clean_text, guess_language
from holdfast.types import Link, ParsedPage

_MAX_SCANNED_BYTES = 10 * 1024 * 1024
_MAX_SCANNED_LINKS = 20_000
# Every part is bounded and starts at a fixed word, so that the scan is linear whatever the bytes are.
_HREF = re.compile(
    rb"""href[ \t\n\r\f]{0,8}=[ \t\n\r\f]{0,8}(?:"([^"<>]{1,2048})"|'([^'<>]{1,2048})'|([^\s"'<>]{1,2048}))""", re.I
)


def scan_links(body: bytes) -> tuple[Link, ...]:
    """Return the values of `href=` in a body as links, without repeats, at most 20,000. Never raises."""
    found: dict[str, str] = {}
    for match in _HREF.finditer(body, 0, _MAX_SCANNED_BYTES):
        raw = (match[1] or match[2] or match[3]).decode("utf-8", "replace")
        url = address(html.unescape(raw))
        if url:
            found.setdefault(url, "scan")
            if len(found) == _MAX_SCANNED_LINKS:
                break
    return tuple(map(Link._make, found.items()))


# The fetcher keeps up to 100 MB; a tree takes ten times its text, and no page for people is longer than this.
MAX_PARSED_BYTES = 10 * 1024 * 1024

# In XHTML these may close themselves; an HTML parser would take the rest of the page for their text.
_SELF_CLOSED = re.compile(rb"<(script|style|title|textarea|iframe|noscript|xmp)\b([^<>]*)/>", re.I)

_log = log.get(room="parse")


class ReadingOptions(TypedDict):
    url: str
    media_type: str | None
    charset: str | None
    x_robots: NotRequired[Sequence[str]]
    want_text: NotRequired[bool]


def parse_page(body: bytes, **how: Unpack[ReadingOptions]) -> ParsedPage:
    """Return the parsed content-decoded body: links, resources, title, language, robots directives, and optional text.

    Never raises: failures are listed in `problems`. It may take long, though: call `looks_pathological` first, and
    pass suspicious bodies to a `ParseChild`.
    """
    try:
        return _read(body, how)
    except Exception as error:  # the one place where a parser's own failure ends
        _log.warning("parse.failed", action="parse_page", url=how["url"], error=type(error).__name__)
        return salvaged(body, ParseProblem.PARSE_FAILED)


def salvaged(body: bytes, problem: ParseProblem) -> ParsedPage:
    links = scan_links(body)
    return ParsedPage(links=links, problems=(problem, ParseProblem.LINKS_SCANNED) if links else (problem,))


def _read(body: bytes, how: ReadingOptions) -> ParsedPage:
    form, mismatch = sniff(body, how["media_type"])
    problems: list[str] = []
    if len(body) > MAX_PARSED_BYTES and form is not BodyForm.OTHER:
        body = body[:MAX_PARSED_BYTES]
        problems.append(ParseProblem.BODY_CUT)
    if form is BodyForm.HTML:
        if mismatch:
            problems.append(ParseProblem.SNIFFED_HTML)
        return _read_html(body, how, problems)
    if form is BodyForm.OTHER and mismatch:
        problems.append(ParseProblem.TYPE_MISMATCH)
    directives = read_directives(how.get("x_robots", ()), ())
    if directives.noarchive:
        problems.append(ParseProblem.NOARCHIVE)
    page = _read_other(form, body, how)
    return replace(page, nofollow=directives.nofollow, noindex=directives.noindex, problems=(*problems, *page.problems))


def decode_html(body: bytes, media_type: str | None, charset: str | None) -> DecodedText:
    """Return the decoded markup of an HTML or XHTML body; crawl and index both parse this."""
    # The type decides: in HTML a slash at the end of a start tag means nothing.
    if "xhtml" in media_type_of(media_type):
        body = _SELF_CLOSED.sub(rb"<\1\2></\1>", body)
    return decode(body, charset)


def _read_html(body: bytes, how: ReadingOptions, notes: Sequence[str]) -> ParsedPage:
    return parse_html(
        decode_html(body, how["media_type"], how["charset"]),
        x_robots=how.get("x_robots", ()),
        want_text=how.get("want_text", False),
        notes=notes,
    )


def _read_other(form: BodyForm, body: bytes, how: ReadingOptions) -> ParsedPage:
    if form is BodyForm.CSS:
        named = css_links(body, how["charset"])
        return ParsedPage(resources=named.listed(), resources_over=named.over)
    if form is BodyForm.XML:
        found = parse_sitemap(body, how["url"])
        # `feed` applies to a link to a feed: the items of one are not feeds.
        links = [Link(url, "item") for url in found.urls] + [Link(url, "sitemap") for url in found.children]
        # XML that lists nothing is ordinary (a drawing, data): only a sitemap can be invalid.
        problems = tuple(set(found.problems) - {ParseProblem.NOT_A_SITEMAP})
        return ParsedPage(links=tuple(links), links_over=found.over, problems=problems)
    if form is BodyForm.TEXT:
        text, charset = decode_text(body, how["charset"])
        wanted = clean_text(text) if how.get("want_text", False) else None
        return ParsedPage(charset=charset, text=wanted, language=guess_language(text))
    return ParsedPage()


# Below this no family takes 200 ms: the worst, distinct formatting, needs 10 KB for it.
_MIN_BYTES = 8 * 1024
# A tree takes ten times its markup and more, and the worker's memory is bounded.
_MAX_BYTES = 8 * 1024 * 1024
# Start and end tags: 50,000 links take 130 ms, 100 of them with the interpreter's lock held.
_MAX_TAGS = 100_000

# A harmful flood is longer than the distance of two samples: 10 KB of formatting, 40 KB of anything else.
_WINDOW_BYTES, _STRIDE_BYTES, _MAX_WINDOWS = 256, 8 * 1024, 256

# lexbor needs 3 ns for the square of the depth: 200 ms at 8,000. The deepest of 218 pages had 31.
_MAX_DEPTH = 3_000
# Each block opened inside n of these gets n copies: 1,400 of them in 20 KB made a tree of 330 MB.
_MAX_FORMATTING = 400
# Number in the sample, not in the page: HTML has 110 names; none of 218 pages used more than 43.
_MAX_NAMES = 150
_NAMES_FROM_BYTES = 256 * 1024
# One tag may be long (an image inside its address), but not have this many parts: lexbor compares each with each.
_MAX_TAG_BYTES, _MAX_TAG_PARTS = 24 * 1024, 6_000
# How often the search for such tags may read a body.
_MOST_READ = 4

_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)")
_FIRST_ATTRIBUTE = re.compile(rb"<[a-zA-Z][a-zA-Z0-9]*\s+([a-zA-Z_:@][^\s=>/\"']*)")
_WHOLE_TAG = re.compile(rb"<[^\"'>]*+(?:\"[^\"]*+\"[^\"'>]*+|'[^']*+'[^\"'>]*+)*+>")
_PART_ENDS = b" \t\n\r\f/=\"'"

# These end by themselves, or never open: an excess of them is ordinary old markup.
_UNNESTED = frozenset(
    b"area base br col embed frame hr img input link meta param source track wbr command keygen p li dt dd tr td th "
    b"thead tbody tfoot colgroup caption option head title script style textarea "
    b"path rect circle ellipse line polygon polyline stop use image".split()
)
_FORMATTING = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())


def looks_pathological(body: bytes) -> str | None:
    """Return the reason why a body must not be parsed in this process; None if it is safe.

    The reasons: huge, nodes, nesting, formatting, names, attributes.
    """
    size = len(body)
    if size < _MIN_BYTES:
        return None
    if size > _MAX_BYTES:
        return "huge"
    if b"\0" in body[:_WINDOW_BYTES]:
        body = body.replace(b"\0", b"")  # this is probably UTF-16: the markup is between the zeros
        size = len(body)
    stride = max(_STRIDE_BYTES, size // _MAX_WINDOWS)
    windows = [_TAG.findall(body, at, at + _WINDOW_BYTES) for at in range(0, size, stride)]
    # A sample without any tag is text, a script, or the inside of one huge tag: only then check further.
    if not all(windows) and _has_endless_tag(body, windows, stride):
        return "attributes"
    reason = _judge(windows, stride / _WINDOW_BYTES)
    if reason is None and size >= _NAMES_FROM_BYTES and _has_strange_attributes(body, stride):
        return "names"
    return reason


def _judge(windows: list[list[tuple[bytes, bytes]]], scale: float) -> str | None:
    open_now: dict[bytes, int] = {}
    depth = deepest = stray = formatting = most_formatting = tags = 0
    for window in windows:
        tags += len(window)
        for slash, tag in window:
            name = tag.lower()
            if name in _UNNESTED:
                continue
            change = 1
            if slash:
                if not open_now.get(name):
                    stray += 1
                    continue
                change = -1
            open_now[name] = open_now.get(name, 0) + change
            depth += change
            if name in _FORMATTING:
                formatting += change
                if formatting > most_formatting:
                    most_formatting = formatting
        if depth > deepest:
            deepest = depth
    # Samples cut elements in two, which looks like nesting or like stray ends, by about one a sample.
    noise = len(windows)
    if tags * scale > _MAX_TAGS:
        return "nodes"
    if max(deepest, stray) > _MAX_DEPTH / scale + noise:
        return "nesting"
    if most_formatting > _MAX_FORMATTING / scale + noise / 4:
        return "formatting"
    return "names" if len(open_now) > _MAX_NAMES else None


def _has_strange_attributes(body: bytes, stride: int) -> bool:
    names: set[bytes] = set()
    for at in range(0, len(body), stride):
        names.update(_FIRST_ATTRIBUTE.findall(body, at, at + _WINDOW_BYTES))
    return len(names) > _MAX_NAMES


def _has_endless_tag(body: bytes, windows: list[list[tuple[bytes, bytes]]], stride: int) -> bool:
    """Return True if a sample without tags is inside a tag with thousands of attributes, not in text or a script."""
    judged, left = -1, _MOST_READ * len(body)
    for number, window in enumerate(windows):
        if window:
            continue
        start = body.rfind(b"<", 0, number * stride)
        if start == judged or start < 0:
            continue
        judged = start
        if _WHOLE_TAG.match(body, start, start + _MAX_TAG_BYTES) or not body[start + 1 : start + 2].isalpha():
            continue
        whole = _WHOLE_TAG.match(body, start)
        tag = body[start : whole.end() if whole else len(body)]
        # For an unclosed tag everything after it is read: many of them would be read as many times.
        left -= len(tag)
        if left < 0 or len(tag) - len(tag.translate(None, _PART_ENDS)) > _MAX_TAG_PARTS:
            return True
    return False
