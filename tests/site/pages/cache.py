"""Validators, true and false, and pages that change."""

from __future__ import annotations

from tests.site.book import Group, html
from tests.site.wire import Exchange

cache = Group("cache", "validators, true and false, and pages that change")

_MODIFIED = "Tue, 01 Sep 2026 10:00:00 GMT"


async def _validated(exchange: Exchange, headers: list[tuple[str, str]], *, known: bool) -> None:
    if known:
        await exchange.reply(status=304, headers=headers)
    else:
        await exchange.reply(html("kept", "<p>the same words every time</p>"), headers=headers)


@cache.page("etag", "a strong ETag, and 304 to who knows it")
async def etag(exchange: Exchange) -> None:
    known = exchange.request.headers.get("if-none-match") == '"v1"'
    await _validated(exchange, [("ETag", '"v1"')], known=known)


@cache.page("etag-weak", "a weak ETag, and 304 to who knows it")
async def etag_weak(exchange: Exchange) -> None:
    known = exchange.request.headers.get("if-none-match") == 'W/"v1"'
    await _validated(exchange, [("ETag", 'W/"v1"')], known=known)


@cache.page("modified", "a Last-Modified, and 304 to who knows it")
async def modified(exchange: Exchange) -> None:
    known = exchange.request.headers.get("if-modified-since") == _MODIFIED
    await _validated(exchange, [("Last-Modified", _MODIFIED)], known=known)


@cache.page("changing", "other words at every request, no validator")
async def changing(exchange: Exchange) -> None:
    await exchange.reply(html(f"edition {exchange.visits}", f"<p>words of edition {exchange.visits}</p>"))


@cache.page("revision", "other words, and another ETag, at every `every`-th request (2)")
async def revision(exchange: Exchange) -> None:
    number = 1 + (exchange.visits - 1) // max(1, int(exchange.number("every", 2)))
    tag = f'"r{number}"'
    if exchange.request.headers.get("if-none-match") == tag:
        await exchange.reply(status=304, headers=[("ETag", tag)])
    else:
        await exchange.reply(html(f"revision {number}"), headers=[("ETag", tag)])


@cache.page("etag-lie", "one ETag for words that change")
async def etag_lie(exchange: Exchange) -> None:
    await exchange.reply(html(f"edition {exchange.visits}"), headers=[("ETag", '"same"')])


@cache.page("always-304", "304 to everybody who sends any validator, though the words changed")
async def always_304(exchange: Exchange) -> None:
    headers = exchange.request.headers
    known = "if-none-match" in headers or "if-modified-since" in headers
    await _validated(exchange, [("ETag", f'"e{exchange.visits}"')], known=known)


@cache.page("deaf", "an ETag, but never a 304")
async def deaf(exchange: Exchange) -> None:
    await _validated(exchange, [("ETag", '"v1"')], known=False)


@cache.page("clock", "only the time of day changes: no real change")
async def clock(exchange: Exchange) -> None:
    stamp = f"{exchange.visits % 24:02d}:00"
    await exchange.reply(html("kept", f"<p>the same words every time</p><footer>printed at {stamp}</footer>"))
