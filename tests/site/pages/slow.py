"""Servers that take their time: only a deadline over the whole exchange ends most of these."""

from __future__ import annotations

from tests.site.book import Group, html
from tests.site.wire import Exchange

slow = Group("slow", "servers that take their time (`every`, `after`: seconds; `times`: how often)")

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Padding: " + b"x" * 400 + b"\r\n"


async def _drip(exchange: Exchange, data: bytes) -> None:
    """Send one byte at a time."""
    every = exchange.number("every", 0.3)
    for at in range(len(data)):
        await exchange.send(data[at : at + 1])
        await exchange.pause(every)


@slow.page("head", "the head comes one byte at a time", sample="every=0")
async def head(exchange: Exchange) -> None:
    exchange.status = 200
    await _drip(exchange, _HEAD + b"Content-Length: 2\r\n\r\nok")


@slow.page("body", "the head comes at once, the body one byte at a time", sample="every=0")
async def body(exchange: Exchange) -> None:
    page = html("drip", "<p>slowly</p>").encode()
    await exchange.send(_HEAD + b"Content-Length: %d\r\n\r\n" % len(page))
    await _drip(exchange, page)


@slow.page("chunks", "a chunked body, one chunk of one byte at a time, without end", sample="every=0")
async def chunks(exchange: Exchange) -> None:
    await exchange.send(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        await exchange.send(b"1\r\nx\r\n")
        await exchange.pause(exchange.number("every", 0.3))


@slow.page("silent", "the connection is taken, nothing is ever said")
async def silent(exchange: Exchange) -> None:
    await exchange.silence()


@slow.page("stall", "half of the body, then nothing, connection open")
async def stall(exchange: Exchange) -> None:
    await exchange.send(_HEAD + b"Content-Length: 1000\r\n\r\n" + b"<p>" + b"x" * 497)
    await exchange.silence()


@slow.page("stall-head", "half of the head, then nothing, connection open")
async def stall_head(exchange: Exchange) -> None:
    await exchange.send(_HEAD)
    await exchange.silence()


@slow.page("late", "a good answer after `after` seconds", sample="after=0.01")
async def late(exchange: Exchange) -> None:
    await exchange.pause(exchange.number("after", 2.0))
    await exchange.reply(html("late"))


@slow.page("continue", "100 Continue for ever", sample="every=0")
async def again(exchange: Exchange) -> None:
    while True:
        await exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await exchange.pause(exchange.number("every", 0.05))


@slow.page("hints", "103 Early Hints `times` times (10,000), then a good answer", sample="times=20")
async def hints(exchange: Exchange) -> None:
    times = int(exchange.number("times", 10_000))
    await exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" * times)
    await exchange.reply(html("at last"))
