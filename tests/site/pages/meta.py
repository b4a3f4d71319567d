"""What pages say about themselves: titles, robots directives, base, canonical, alternates."""

from __future__ import annotations

from tests.site.book import Group, html

meta = Group("meta", "what pages say about themselves, and what they ask of robots")

_A = '<a href="/meta/title">a link</a>'


def _robots(content: str) -> str:
    return f'<meta name="robots" content="{content}">'


for _name, _story, _head, _body in (
    ("title", "an ordinary page with a title", "", "<p>ordinary</p>"),
    ("description", "a description", '<meta name="description" content="What this page is about.">', _A),
    (
        "og",
        "OpenGraph instead of title and description",
        '<meta property="og:title" content="Open"><meta property="og:description" content="Graph">',
        _A,
    ),
    ("nofollow", "robots: nofollow", _robots("nofollow"), _A),
    ("noindex", "robots: noindex", _robots("noindex"), _A),
    ("none", "robots: none", _robots("NONE"), _A),
    ("noarchive", "robots: noarchive", _robots("noarchive"), _A),
    ("other-robot", "nofollow, but for another robot", '<meta name="googlebot" content="nofollow">', _A),
    ("rel-nofollow", "rel=nofollow on the link", "", '<a rel="ugc nofollow" href="/meta/title">x</a>'),
    ("canonical", "a canonical address", '<link rel="canonical" href="/meta/title">', _A),
    ("canonical-host", "a canonical address on another host", '<link rel="canonical" href="http://example.com/">', _A),
    (
        "alternate",
        "alternates in two languages, and feeds",
        '<link rel="alternate" hreflang="fr" href="/meta/french">'
        '<link rel="alternate" type="application/rss+xml" href="/feed/rss">',
        _A,
    ),
    (
        "base",
        "a base address: links are relative to /assets/",
        '<base href="/assets/">',
        '<img src="pixel.png"><a href="../meta/title">x</a>',
    ),
    ("base-host", "a base address on another host", '<base href="http://example.com/x/">', '<a href="y">x</a>'),
    ("base-bad", "a base address that is none", '<base href="javascript:0">', _A),
    (
        "refresh",
        "a meta refresh after five seconds",
        '<meta http-equiv="refresh" content="5; URL=\'/meta/title\'">',
        _A,
    ),
    (
        "srcset",
        "pictures in srcset and picture",
        "",
        '<img src="/assets/pixel.png" srcset="/assets/pixel.png?w=1 1x, /assets/pixel.png?w=2 2x">'
        '<picture><source srcset="/assets/logo.svg"></picture>',
    ),
    ("lazy", "pictures that a script would load", "", '<img data-src="/assets/pixel.png" loading="lazy">'),
    (
        "area",
        "links in a map, a form and an iframe",
        "",
        '<map><area href="/meta/title"></map><form action="/meta/form"></form>'
        '<iframe src="/meta/description"></iframe>',
    ),
):
    meta.fixed(_name, _story, html(_story, _body, head=_head))

meta.fixed("french", "a French page", html("Une page").replace('lang="en"', 'lang="fr-CA"'))

for _name, _value in (
    ("header-noindex", "noindex"),
    ("header-none", "none"),
    ("header-nofollow", "nofollow"),
    ("header-ours", "holdfast: noindex, nofollow"),
    ("header-other", "otherbot: noindex, nofollow"),
    ("header-date", "unavailable_after: 25 Jun 2010 15:00:00 PST"),
):
    meta.fixed(_name, f"X-Robots-Tag: {_value}", html("tagged", _A), headers=[("X-Robots-Tag", _value)])
