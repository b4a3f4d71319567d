"""robots.txt in every state; a test names one for a host. Also served below /robots/, to be looked at."""

from __future__ import annotations

import asyncio

from tests.site.book import Group, html
from tests.site.pages.encoding import bomb
from tests.site.wire import Exchange

robots = Group("robots", "robots.txt in every state: `site.robots(host, name)` or `robots={host: name}` at the start")

_STAR = "User-agent: *\n"


def _text(name: str, story: str, body: str | bytes, *, media: str = "text/plain") -> None:
    robots.fixed(name, story, body, media=media)


for _code in (204, 401, 403, 404, 410, 429, 500, 503):
    robots.fixed(str(_code), f"status {_code}", b"" if _code == 204 else html(str(_code)), status=_code)

for _name, _story, _body in (
    ("allow", "everything is allowed", _STAR + "Disallow:\n"),
    ("disallow", "everything is forbidden", _STAR + "Disallow: /\n"),
    (
        "private",
        "/private/ and /status/ are forbidden, /private/open is not",
        _STAR + "Disallow: /private/\nDisallow: /status/\nAllow: /private/open\n",
    ),
    ("ours", "we are forbidden what others may", f"{_STAR}Disallow:\n\nUser-agent: Holdfast\nDisallow: /\n"),
    (
        "ours-twice",
        "two groups for us, which count as one",
        "User-agent: holdfast\nDisallow: /a/\n\nUser-agent: other\nDisallow: /\n\n"
        "User-agent: HOLDFAST\nDisallow: /meta/\n",
    ),
    ("wildcards", "* and $ in rules", _STAR + "Disallow: /*.pdf$\nDisallow: /*?sid=\nAllow: /a/*.html$\n"),
    ("tie", "Allow and Disallow of one length", _STAR + "Disallow: /a/\nAllow: /a/\n"),
    ("delay", "Crawl-delay: 2", _STAR + "Crawl-delay: 2\nDisallow:\n"),
    ("delay-small", "Crawl-delay: 0.0001", _STAR + "Crawl-delay: 0.0001\n"),
    ("delay-huge", "Crawl-delay: 1e99", _STAR + "Crawl-delay: 1e99\n"),
    ("delay-negative", "Crawl-delay: -1", _STAR + "Crawl-delay: -1\n"),
    ("delay-nan", "Crawl-delay: NaN", _STAR + "Crawl-delay: NaN\n"),
    ("delay-many", "ten different Crawl-delay", _STAR + "".join(f"Crawl-delay: {n}\n" for n in range(10))),
    ("empty", "no byte", ""),
    ("comments", "only comments", "# nothing here\n" * 10),
    ("bom", "a byte order mark in front", "\ufeff" + _STAR + "Disallow: /private/\n"),
    ("cr", "lines that end in CR alone", (_STAR + "Disallow: /private/\n").replace("\n", "\r")),
    ("no-newline", "500 kB without a line end", "User-agent: * " + "x" * 500_000),
    ("typos", "spelled as people spell it", "useragent: *\ndissallow: /private/\n"),
    ("sitemaps-many", "10,000 sitemaps", "".join(f"Sitemap: http://127.0.0.2/s{n}.xml\n" for n in range(10_000))),
    (
        "sitemaps-inner",
        "sitemaps on inner addresses and of other schemes",
        "Sitemap: http://127.0.0.1:5432/\nSitemap: file:///etc/passwd\nSitemap: http://169.254.169.254/\n",
    ),
    (
        "long",
        "600 KiB: the rule that matters stands behind the limit",
        _STAR + "# padding\n" * 61_440 + "Disallow: /meta/\n",
    ),
    ("binary", "noise", bytes(range(256)) * 8),
    ("utf-16", "UTF-16", (_STAR + "Disallow: /private/\n").encode("utf-16")),
):
    _text(_name, _story, _body)

_text("html", "an HTML page with status 200", html("Welcome", "<p>User-agent: * Disallow: /</p>"), media="text/html")


@robots.page("sitemaps", "names the sitemap index of its own host")
async def sitemaps(exchange: Exchange) -> None:
    await exchange.reply(f"{_STAR}Disallow:\nSitemap: {exchange.url('/sitemap/index.xml')}\n", media="text/plain")


@robots.page("timeout", "no answer, ever")
async def timeout(exchange: Exchange) -> None:
    await exchange.silence()


@robots.page("reset", "a TCP reset")
async def reset(exchange: Exchange) -> None:
    exchange.reset()


@robots.page("drip", "one byte at a time", sample="every=0")
async def drip(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\n")
    for byte in (_STAR + "Disallow: /\n").encode():
        await exchange.send(bytes([byte]))
        await exchange.pause(exchange.number("every", 0.3))


@robots.page("huge", "100 MB of rules")
async def huge(exchange: Exchange) -> None:
    await exchange.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000014\r\n\r\n" + _STAR.encode()
    )
    for _ in range(1_000):
        await exchange.send(b"Disallow: /x\n".ljust(100, b"#")[:99] * 1_010 + b"#" * 9 + b"\n")


@robots.page("bomb", "packed zeros, 128 MiB", sample="mb=1")
async def packed_bomb(exchange: Exchange) -> None:
    body = await asyncio.to_thread(bomb, "gzip", int(exchange.number("mb", 128)))
    await exchange.reply(body, headers=[("Content-Encoding", "gzip")], media="text/plain")


@robots.page("loop", "leads to itself")
async def loop(exchange: Exchange) -> None:
    await exchange.reply(status=302, headers=[("Location", "/robots.txt")])


@robots.page("other-host", "leads to the rules of the next host")
async def other_host(exchange: Exchange) -> None:
    await exchange.reply(status=301, headers=[("Location", exchange.url("/robots/private", hosts_on=1))])


@robots.page("inner", "leads to an inner address")
async def inner(exchange: Exchange) -> None:
    await exchange.reply(status=302, headers=[("Location", "http://169.254.169.254/robots.txt")])


@robots.page("redirect-5", "five redirects, then rules: the last chain that is followed")
async def redirect_5(exchange: Exchange) -> None:
    await exchange.reply(status=302, headers=[("Location", "/robots/hop/4")])


@robots.page("redirect-6", "six redirects: one too many")
async def redirect_6(exchange: Exchange) -> None:
    await exchange.reply(status=302, headers=[("Location", "/robots/hop/5")])


@robots.page("hop", "one of those redirects")
async def hop(exchange: Exchange) -> None:
    left = int(exchange.rest) if exchange.rest.isdigit() else 0
    if left > 0:
        await exchange.reply(status=302, headers=[("Location", f"/robots/hop/{left - 1}")])
    else:
        await exchange.reply(_STAR + "Disallow: /private/\n", media="text/plain")


@robots.page("turning", "rules at first, status 500 from then on")
async def turning(exchange: Exchange) -> None:
    if exchange.visits == 1:
        await exchange.reply(_STAR + "Disallow: /private/\n", media="text/plain")
    else:
        await exchange.reply(html("broken"), status=500)


@robots.page("recovering", "status 503 twice, then rules")
async def recovering(exchange: Exchange) -> None:
    if exchange.visits <= 2:
        await exchange.reply(html("busy"), status=503)
    else:
        await exchange.reply(_STAR + "Disallow: /private/\n", media="text/plain")
