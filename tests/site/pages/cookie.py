"""Cookies: floods, claims on other people's domains, and walls."""

from __future__ import annotations

from tests.site.book import Group, html
from tests.site.wire import Exchange

cookie = Group("cookie", "cookies in masses, for others' domains, and demanded")


@cookie.page("echo", "prints the Cookie and Authorization headers that it was sent")
async def echo(exchange: Exchange) -> None:
    headers = exchange.request.headers
    said = f"cookie={headers.get('cookie', '')}\nauthorization={headers.get('authorization', '')}\n"
    await exchange.reply(said, media="text/plain")


@cookie.page("set", "sets a cookie and leads to /cookie/echo")
async def set_one(exchange: Exchange) -> None:
    headers = [("Set-Cookie", "visit=1; Path=/"), ("Location", "/cookie/echo")]
    await exchange.reply(status=302, headers=headers)


@cookie.page("leave", "sets a cookie and leads to /cookie/echo on the next host")
async def leave(exchange: Exchange) -> None:
    headers = [("Set-Cookie", "visit=1; Path=/"), ("Location", exchange.url("/cookie/echo", hosts_on=1))]
    await exchange.reply(status=302, headers=headers)


@cookie.page("wall", "leads to itself until its cookie comes back")
async def wall(exchange: Exchange) -> None:
    if "pass=1" in exchange.request.headers.get("cookie", ""):
        await exchange.reply(html("behind the wall"))
    else:
        await exchange.reply(status=302, headers=[("Set-Cookie", "pass=1; Path=/"), ("Location", "/cookie/wall")])


def _set(*values: str) -> list[tuple[str, str]]:
    return [("Set-Cookie", value) for value in values]


for _name, _story, _headers in (
    ("flood", "1,000 cookies", _set(*(f"c{n}={n}; Path=/" for n in range(1_000)))),
    ("big", "one cookie of 8 kB", _set("big=" + "x" * 8_000)),
    ("suffix", "cookies for .com, .co.uk and another domain", _set("a=1; Domain=.com", "b=1; Domain=.co.uk")),
    ("foreign", "a cookie for example.com", _set("a=1; Domain=example.com")),
    ("odd", "cookies that are hardly cookies", _set("", "=", "novalue", "a=1; Expires=never", "b=\xff\xfe")),
    ("expired", "a cookie that deletes itself", _set("visit=; Max-Age=0; Path=/")),
):
    cookie.fixed(_name, _story, html(_story), headers=_headers)
