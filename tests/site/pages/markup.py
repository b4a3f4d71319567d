"""HTML that costs a parser seconds or makes it lose links (faults.md, M5, M6 and the H rows)."""

from __future__ import annotations

import functools
from collections.abc import Callable

from tests.site.book import Group, html, links
from tests.site.wire import Exchange

markup = Group("markup", "HTML built to hurt parsers (`n`: how much of it)")

_LINK = '<a href="/meta/title">the last link</a>'


def _storm(name: str, story: str, default: int, make: Callable[[int], str]) -> None:
    """Add a page that grows with `n`; each size is built once."""
    built = functools.lru_cache(maxsize=4)(make)

    @markup.page(name, f"{story} ({default:,})", sample="n=50")
    async def handler(exchange: Exchange) -> None:
        await exchange.reply(built(int(exchange.number("n", default))))


_storm("div", "nested <div>", 200_000, lambda n: html("div", "<div>" * n + _LINK))
_storm("comment", "`<!--` again and again", 200_000, lambda n: html("comment", "<!--" * n + _LINK))
_storm("a", "`<a a=` again and again", 130_000, lambda n: html("a", "<a a=" * n + _LINK))
_storm(
    "attributes",
    "attributes on one tag",
    100_000,
    lambda n: html("attributes", f"<p {' '.join(f'a{i}={i}' for i in range(n))}>{_LINK}</p>"),
)
_storm("tables", "nested tables", 50_000, lambda n: html("tables", "<table><tr><td>" * n + _LINK))
_storm(
    "adoption",
    "misnested <b> and <p>: the adoption agency's storm",
    50_000,
    lambda n: html("b", "<b><p>" * n + "</b>" * n),
)
_storm(
    "formatting",
    "nested formatting, each with its own attribute",
    20_000,
    lambda n: html("font", "".join(f"<font size={i}>" for i in range(n))),
)
_storm("select", "nested <select> and <option>", 50_000, lambda n: html("select", "<select><option>" * n + _LINK))
_storm("svg", "nested <svg> and <foreignObject>", 30_000, lambda n: html("svg", "<svg><foreignObject>" * n + _LINK))
_storm("template", "nested <template>", 50_000, lambda n: html("template", "<template>" * n + _LINK))
_storm("end-tags", "end tags without a start", 200_000, lambda n: html("end tags", "</div></p></b>" * n + _LINK))
_storm("entities", "character references", 200_000, lambda n: html("entities", "&amp;&lt;&#128512;&notit;" * n))
_storm(
    "attribute-long",
    "bytes in one attribute value",
    1_000_000,
    lambda n: html("long", f'<p title="{"x" * n}">{_LINK}</p>'),
)
_storm("tag-open", "`<` again and again", 500_000, lambda n: html("open", "<" * n + _LINK))
_storm("doctype", "an endless doctype", 500_000, lambda n: "<!DOCTYPE " + "x" * n)
_storm("links", "links on one page", 5_000, lambda n: html("links", links(f"/meta/title?n={i}" for i in range(n))))
_storm("deep-link", "levels above the only link", 2_000, lambda n: html("deep", "<div>" * n + _LINK + "</div>" * n))
_storm("title", "characters in the title", 1_000_000, lambda n: html("t" * n))
_storm("text", "bytes of text without a tag", 5_000_000, lambda n: html("text", "word " * (n // 5)))
_storm("marks", "combining marks on one letter", 1_000_000, lambda n: html("marks", "a" + "\u0301" * n))
_storm(
    "script",
    "bytes of script that is never closed",
    5_000_000,
    lambda n: html("script", "<script>" + "x=1;" * (n // 4)),
)
_storm(
    "css-import",
    "imports in one style element",
    10_000,
    lambda n: html("css", f"<style>{''.join(f'@import url(/assets/import/{i}.css);' for i in range(n))}</style>"),
)
_storm(
    "css-hosts",
    "hosts in one style element",
    10_000,
    lambda n: html(
        "css", f"<style>{''.join(f'.c{i}{{background:url(http://h{i}.invalid/x.png)}}' for i in range(n))}</style>"
    ),
)
_storm(
    "srcset",
    "candidates in one srcset",
    10_000,
    lambda n: html("srcset", f'<img srcset="{", ".join(f"/assets/pixel.png?w={i} {i}w" for i in range(1, n))}">'),
)

for _name, _story, _body in (
    ("nul", "NUL bytes in text, names and addresses", html("n\0ul", '<a hr\0ef="/meta/ti\0tle">a\0b</a>' + _LINK)),
    (
        "controls",
        "control characters, direction marks, zero-width space",
        html("c", "a\x01\x08\x1b[31m\u202egnp\u200b" + _LINK),
    ),
    (
        "cdata",
        "CDATA and conditional comments",
        html("cdata", f"<![CDATA[ <a href=/cdata>x</a> ]]><!--[if IE]>{_LINK}<![endif]-->{_LINK}"),
    ),
    ("no-html", "no html, head or body", f"<title>bare</title><p>bare{_LINK}"),
    ("empty", "only white space", " \n\t "),
    ("two-titles", "two titles, two bodies", "<title>first</title><body><title>second</title><body>" + _LINK),
    ("frames", "a frameset", '<frameset><frame src="/meta/title"><frame src="/meta/description"></frameset>'),
    (
        "xhtml",
        "XHTML with an XML declaration",
        f'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>{_LINK}</body></html>',
    ),
    (
        "injection",
        "titles and text that try to run in whatever shows them",
        html(
            "<img src=x onerror=alert(1)>{{7*7}}${7*7}%s%n",
            "<p>=cmd|' /C calc'!A0</p><p>&lt;script&gt;alert(1)&lt;/script&gt;</p>",
        ),
    ),
    (
        "addresses",
        "links of every shape, most of which are none",
        html(
            "addresses",
            links(
                [
                    "mailto:a@example.com",
                    "javascript:alert(1)",
                    "tel:+49",
                    "data:text/html,x",
                    "file:///etc/passwd",
                    "#top",
                    "",
                    " /meta/title ",
                    "//127.0.0.2/x",
                    "http:///x",
                    "http://[bad/",
                    "HTTP://127.0.0.2/UP",
                    "/%00",
                    "/%zz",
                    "/a/../../../etc/passwd",
                    "/\\..\\x",
                    "http://127.0.0.1:8888\\@example.com/",
                    "http://user:pw@127.0.0.2/",
                    "/meta/title?a=1&amp;b=2",
                    "/käse",
                    "?only=query",
                    "blob:x",
                    "/x" * 4_000,
                ]
            ),
        ),
    ),
):
    markup.fixed(_name, _story, _body)
