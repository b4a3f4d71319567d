"""Places without an end: every page leads to pages that nobody has seen."""

from __future__ import annotations

import secrets

from tests.site.book import Group, html, links
from tests.site.wire import Exchange

trap = Group("trap", "places without an end")


@trap.page("calendar", "a calendar: every month leads to the next")
async def calendar(exchange: Exchange) -> None:
    year, _, month = exchange.rest.partition("/")
    at = (int(year) * 12 + int(month) - 1) if year.isdigit() and month.isdigit() else 2026 * 12
    near = [f"/trap/calendar/{m // 12}/{m % 12 + 1}" for m in (at - 1, at + 1, at + 12)]
    days = [f"/trap/calendar/{at // 12}/{at % 12 + 1}?day={day}" for day in range(1, 29)]
    await exchange.reply(html(f"Calendar {at // 12}-{at % 12 + 1}", links(near + days)))


@trap.page("repeat", "a relative link that adds the same segment each time")
async def repeat(exchange: Exchange) -> None:
    await exchange.reply(html("repeat", '<a href="repeat/">deeper</a>'))


@trap.page("repeat-two", "relative links that add one of two segments")
async def repeat_two(exchange: Exchange) -> None:
    base = exchange.request.path.rstrip("/")
    await exchange.reply(html("repeat", links([f"{base}/about", f"{base}/contact"])))


@trap.page("grow", "a path that grows by one number each time")
async def grow(exchange: Exchange) -> None:
    depth = exchange.rest.count("/") + 1
    await exchange.reply(html("grow", links([f"{exchange.request.path.rstrip('/')}/{depth}"])))


@trap.page("session", "a new session id in every link")
async def session(exchange: Exchange) -> None:
    fresh = [f"/trap/session/{name}?sid={secrets.token_hex(16)}" for name in ("one", "two", "three")]
    await exchange.reply(html("session", links(fresh)))


@trap.page("session-path", "a new session id inside every path")
async def session_path(exchange: Exchange) -> None:
    fresh = [f"/trap/session-path/{name};jsessionid={secrets.token_hex(16)}" for name in ("one", "two")]
    await exchange.reply(html("session", links(fresh)))


@trap.page("facets", "filters that combine without end")
async def facets(exchange: Exchange) -> None:
    chosen = exchange.request.query
    more = [
        "/trap/facets?" + "&".join(f"{key}={value}" for key, value in {**chosen, f"f{n}": "on"}.items())
        for n in range(12)
    ]
    await exchange.reply(html("facets", links(more)))


@trap.page("permutations", "the same parameters in every order")
async def permutations(exchange: Exchange) -> None:
    pairs = ["a=1", "b=2", "c=3", "d=4"]
    orders = ["&".join(pairs[n:] + pairs[:n]) for n in range(4)] + ["&".join(reversed(pairs))]
    await exchange.reply(html("permutations", links(f"/trap/permutations?{order}" for order in orders)))


@trap.page("random", "ten links that are new each time")
async def random_links(exchange: Exchange) -> None:
    await exchange.reply(html("random", links(f"/trap/random/{secrets.token_hex(8)}" for _ in range(10))))
