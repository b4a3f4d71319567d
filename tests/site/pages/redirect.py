"""Redirects: loops, chains, and targets that must never be dialled."""

from __future__ import annotations

from tests.site.book import Group, html
from tests.site.wire import Exchange

redirect = Group("redirect", "redirects that loop, wander, or point where nobody may go")


@redirect.page("loop", "to itself")
async def loop(exchange: Exchange) -> None:
    await exchange.reply(status=302, headers=[("Location", "/redirect/loop")])


@redirect.page("ping", "to /redirect/pong and back")
async def ping(exchange: Exchange) -> None:
    await exchange.reply(status=302, headers=[("Location", "/redirect/pong")])


@redirect.page("pong", "to /redirect/ping and back")
async def pong(exchange: Exchange) -> None:
    await exchange.reply(status=302, headers=[("Location", "/redirect/ping")])


@redirect.page("hops", "`n` hops (6) before a page", sample="n=1")
async def hops(exchange: Exchange) -> None:
    left = int(exchange.number("n", 6))
    if left == 0:
        await exchange.reply(html("landed"))
    else:
        await exchange.reply(status=302, headers=[("Location", f"/redirect/hops?n={left - 1}")])


@redirect.page("endless", "to an address that is new every time")
async def endless(exchange: Exchange) -> None:
    nth = int(exchange.rest or 0) + 1
    await exchange.reply(status=302, headers=[("Location", f"/redirect/endless/{nth}")])


@redirect.page("other-host", "to the front page of the next host")
async def other_host(exchange: Exchange) -> None:
    await exchange.reply(status=301, headers=[("Location", exchange.url("/", hosts_on=1))])


@redirect.page("tour", "once around all hosts")
async def tour(exchange: Exchange) -> None:
    await exchange.reply(status=302, headers=[("Location", exchange.url("/redirect/tour", hosts_on=1))])


@redirect.page("code", "with the status `status` (301, 302, 303, 307, 308) to /meta/title")
async def code(exchange: Exchange) -> None:
    await exchange.reply(status=int(exchange.number("status", 301)), headers=[("Location", "/meta/title")])


@redirect.page("slash", "adds a slash, as directories do")
async def slash(exchange: Exchange) -> None:
    if exchange.request.path.endswith("/"):
        await exchange.reply(html("a directory"))
    else:
        await exchange.reply(status=301, headers=[("Location", "/redirect/slash/")])


@redirect.page("two-locations", "two Location headers")
async def two_locations(exchange: Exchange) -> None:
    await exchange.reply(status=302, headers=[("Location", "/meta/title"), ("Location", "/redirect/loop")])


for _name, _story, _location in (
    ("relative", "to a relative address with dots", "../meta/./title"),
    ("query-only", "to a query alone", "?again=1"),
    ("fragment", "to an address with a fragment", "/meta/title#part"),
    ("empty", "an empty Location", ""),
    ("spaces", "spaces and umlauts in the Location, unescaped", "/meta/title?q=käse und brot"),
    ("long", "a Location of 100 kB", "/meta/title?q=" + "x" * 100_000),
    ("nonsense", "a Location that is no address", "http://[::::/:::"),
    ("userinfo", "a user and a password in the Location", "http://user:secret@127.0.0.2/"),
    ("loopback", "to a database on this machine", "http://127.0.0.1:5432/"),
    ("metadata", "to the address where clouds keep credentials", "http://169.254.169.254/latest/meta-data/"),
    ("private", "to a private network", "http://10.0.0.1/"),
    ("ipv6-loopback", "to [::1]", "http://[::1]/"),
    ("mapped", "to an IPv4 address inside an IPv6 one", "http://[::ffff:127.0.0.1]/"),
    ("decimal", "to 2130706433, which is 127.0.0.1", "http://2130706433/"),
    ("backslash", "to an address that two parsers read in two ways", "http://127.0.0.1:8888\\@example.com/"),
    ("port", "to a port where no web server is", "http://127.0.0.2:22/"),
    ("file", "to file:///etc/passwd", "file:///etc/passwd"),
    ("ftp", "to ftp:", "ftp://127.0.0.1/x"),
    ("gopher", "to gopher:", "gopher://127.0.0.1:6379/_FLUSHALL"),
    ("data", "to data:", "data:text/html,<script>alert(1)</script>"),
    ("javascript", "to javascript:", "javascript:alert(1)"),
):
    redirect.fixed(_name, _story, b"", status=302, headers=[("Location", _location)])

redirect.fixed("nowhere", "302 without a Location", b"", status=302)
redirect.fixed("choices", "300 with a body of choices", html("choices", '<a href="/meta/title">one</a>'), status=300)
redirect.fixed("not-modified", "304 although nobody asked for a validator", b"", status=304)
redirect.fixed(
    "meta-loop",
    "a page that refreshes to itself at once",
    html("again", head='<meta http-equiv="refresh" content="0; url=/redirect/meta-loop">'),
)
