"""One body in, one ParsedPage out, whatever the bytes are: the border that nothing a parser does gets past."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NotRequired, TypedDict, Unpack

from holdfast import log
from holdfast.parse.charset import decode, decode_text
from holdfast.parse.css import css_links
from holdfast.parse.directives import read_directives
from holdfast.parse.html import parse_html
from holdfast.parse.language import guess_language
from holdfast.parse.problems import Problem
from holdfast.parse.scan import scan_links
from holdfast.parse.sitemap import parse_sitemap
from holdfast.parse.sniff import Form, media_type_of, sniff
from holdfast.parse.text import clean_text
from holdfast.types import Link, ParsedPage

AGENT = "holdfast"

# The fetcher keeps up to 100 MB; a tree takes ten times its text, and no page for people is longer than this.
MAX_PARSED_BYTES = 10 * 1024 * 1024

# In XHTML these may close themselves; an HTML parser would take the rest of the page for their text.
_SELF_CLOSED = re.compile(rb"<(script|style|title|textarea|iframe|noscript|xmp)\b([^<>]*)/>", re.I)

_log = log.get(room="parse")


class Reading(TypedDict):
    """How a body is to be read: what its server said of it, and what is wanted."""

    url: str
    media_type: str | None
    """Of the Content-Type header, with or without its parameters."""
    charset: str | None
    """Of the Content-Type header."""
    x_robots: NotRequired[Sequence[str]]
    """The values of all X-Robots-Tag headers."""
    want_text: NotRequired[bool]
    agent: NotRequired[str]
    """Our robots token: `holdfast`, unless the source has another."""


def parse_page(body: bytes, **how: Unpack[Reading]) -> ParsedPage:
    """Return what a content-decoded body says: links, resources, title, language, robots wishes, and text if wanted.

    Never raises: what went wrong is noted in `problems`. It may take long, though: ask `looks_pathological` first, and
    give what is suspicious to a `ParseChild`.
    """
    try:
        return _read(body, how)
    except Exception as error:  # the one place where a parser's own failure ends
        _log.warning("parse.failed", action="parse_page", url=how["url"], error=type(error).__name__)
        return salvaged(body, Problem.PARSE_FAILED)


def salvaged(body: bytes, problem: Problem) -> ParsedPage:
    """Return what a plain scan of the bytes finds in a body that no parser could finish."""
    links = scan_links(body)
    return ParsedPage(links=links, problems=(problem, Problem.LINKS_SCANNED) if links else (problem,))


def _read(body: bytes, how: Reading) -> ParsedPage:
    form, mismatch = sniff(body, how["media_type"])
    problems: list[str] = []
    if len(body) > MAX_PARSED_BYTES and form is not Form.OTHER:
        body = body[:MAX_PARSED_BYTES]
        problems.append(Problem.BODY_CUT)
    if form is Form.HTML:
        if mismatch:
            problems.append(Problem.SNIFFED_HTML)
        return _read_html(body, how, problems)
    if form is Form.OTHER and mismatch:
        problems.append(Problem.TYPE_MISMATCH)
    wishes = read_directives(how.get("x_robots", ()), (), how.get("agent", AGENT))
    if wishes.noarchive:
        problems.append(Problem.NOARCHIVE)
    page = _read_other(form, body, how)
    return replace(page, nofollow=wishes.nofollow, noindex=wishes.noindex, problems=(*problems, *page.problems))


def _read_html(body: bytes, how: Reading, notes: Sequence[str]) -> ParsedPage:
    if "xhtml" in media_type_of(how["media_type"]):
        body = _SELF_CLOSED.sub(rb"<\1\2></\1>", body)
    return parse_html(
        decode(body, how["charset"]),
        agent=how.get("agent", AGENT),
        x_robots=how.get("x_robots", ()),
        want_text=how.get("want_text", False),
        notes=notes,
    )


def _read_other(form: Form, body: bytes, how: Reading) -> ParsedPage:
    """Return what a style sheet, a feed or a plain text says; of anything else, nothing."""
    if form is Form.CSS:
        return ParsedPage(resources=css_links(body, how["charset"]))
    if form is Form.XML:
        found = parse_sitemap(body, how["url"])
        links = [Link(url, "feed") for url in found.urls] + [Link(url, "sitemap") for url in found.children]
        return ParsedPage(links=tuple(links), problems=tuple(set(found.problems) - {Problem.NOT_A_SITEMAP}))
    if form is Form.TEXT:
        text, charset = decode_text(body, how["charset"])
        wanted = clean_text(text) if how.get("want_text", False) else None
        return ParsedPage(charset=charset, text=wanted, language=guess_language(text))
    return ParsedPage()
