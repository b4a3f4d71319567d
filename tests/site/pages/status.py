"""Refusals and failures, the ways to ask a client to come back later, and pages that only look found."""

from __future__ import annotations

import time
from email.utils import formatdate

from tests.site.book import Group, html, links
from tests.site.wire import Exchange

status = Group("status", "refusals and failures (`times`: fail so often, then succeed; 0 fails for ever)")

_CODES = {
    400: "bad request",
    401: "asks for a password",
    402: "payment required",
    403: "forbidden",
    404: "not found",
    405: "method not allowed",
    407: "asks for a proxy password",
    408: "request timeout",
    410: "gone",
    418: "a teapot",
    425: "too early",
    429: "too many requests",
    451: "withheld for legal reasons",
    500: "internal error",
    502: "bad gateway",
    503: "unavailable",
    504: "gateway timeout",
    520: "a status of one vendor",
}
_DEMANDS = {
    401: [("WWW-Authenticate", 'Basic realm="keep out"')],
    407: [("Proxy-Authenticate", 'Basic realm="keep out"')],
}


def _add(code: int, story: str) -> None:
    @status.page(str(code), story)
    async def handler(exchange: Exchange) -> None:
        times = int(exchange.number("times", 0))
        if times and exchange.visits > times:
            await exchange.reply(html("recovered"))
            return
        headers = list(_DEMANDS.get(code, []))
        if (after := exchange.word("after", "")) != "":
            headers.append(("Retry-After", after))
        await exchange.reply(html(story), status=code, headers=headers)


for _code, _story in _CODES.items():
    _add(_code, f"{_code}, {_story}; `after` adds a Retry-After")


@status.page("busy-date", "503 with a Retry-After date `after` seconds ahead (2), once", sample="after=0")
async def busy_date(exchange: Exchange) -> None:
    if exchange.visits > 1:
        await exchange.reply(html("recovered"))
        return
    moment = formatdate(time.time() + exchange.number("after", 2.0), usegmt=True)
    await exchange.reply(html("busy"), status=503, headers=[("Retry-After", moment)])


for _name, _after in (
    ("after-huge", "99999999999"),
    ("after-negative", "-5"),
    ("after-nan", "NaN"),
    ("after-1900", "Mon, 01 Jan 1900 00:00:00 GMT"),
    ("after-9999", "Fri, 31 Dec 9999 23:59:59 GMT"),
    ("after-words", "in a little while"),
    ("after-empty", ""),
    ("after-fraction", "1.5"),
    ("after-hex", "0x10"),
):
    status.fixed(
        _name, f"429 with `Retry-After: {_after}`", html("busy"), status=429, headers=[("Retry-After", _after)]
    )


@status.page("soft-404", "200 that says not found, with links that are new each time")
async def soft_404(exchange: Exchange) -> None:
    fresh = [f"/status/soft-404/{exchange.visits}-{n}-{len(exchange.rest)}" for n in range(5)]
    await exchange.reply(html("Page not found", "<p>Sorry, we could not find that page.</p>" + links(fresh)))


@status.page("flapping", "200 and 500 in turn")
async def flapping(exchange: Exchange) -> None:
    await exchange.reply(html("flapping"), status=200 if exchange.visits % 2 else 500)


status.fixed("200-empty", "200 without a byte", b"")
status.fixed("204", "204, nothing to say", b"", status=204, media=None)
status.fixed(
    "206", "206, a part that nobody asked for", b"part", status=206, headers=[("Content-Range", "bytes 0-3/999")]
)
