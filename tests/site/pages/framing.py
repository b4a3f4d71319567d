"""Bodies whose length is a lie, and connections that end in the middle."""

from __future__ import annotations

from tests.site.book import Group
from tests.site.wire import Exchange

framing = Group("framing", "lengths that lie, chunks that do not add up, connections that break")

_BODY = b"<!DOCTYPE html><title>framing</title><p>the body as it was meant</p>"
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"


def _sized(length: bytes, body: bytes = _BODY) -> bytes:
    return _OK + b"Content-Length: " + length + b"\r\n\r\n" + body


@framing.page("reset", "half of the body, then a TCP reset")
async def reset(exchange: Exchange) -> None:
    await exchange.send(_sized(b"100000", _BODY * 20))
    await exchange.pause(0.02)
    exchange.reset()


@framing.page("reset-first", "a TCP reset instead of an answer")
async def reset_first(exchange: Exchange) -> None:
    exchange.reset()


@framing.page("close-first", "the connection is closed without a word")
async def close_first(exchange: Exchange) -> None:
    exchange.keep = False


@framing.page("close-head", "the connection is closed in the middle of the head")
async def close_head(exchange: Exchange) -> None:
    await exchange.send(_OK + b"X-Cut: he")


@framing.page("garbage-after", "a good answer, then garbage on the kept connection")
async def garbage_after(exchange: Exchange) -> None:
    await exchange.reply(_BODY)
    await exchange.send(b"\x00\xff garbage that nobody asked for \r\n\r\n" * 5)
    exchange.keep = True


@framing.page("endless", "chunks of 16 KiB without end")
async def endless(exchange: Exchange) -> None:
    await exchange.send(_CHUNKED)
    chunk = b"4000\r\n" + b"<p>all work and no play</p>\n".ljust(0x4000, b"x") + b"\r\n"
    while True:
        await exchange.send(chunk * 4)


@framing.page("endless-close", "a body without a length that never closes")
async def endless_close(exchange: Exchange) -> None:
    await exchange.send(_OK + b"Connection: close\r\n\r\n")
    while True:
        await exchange.send(b"x" * 65_536)


@framing.page("confetti", "`times` (300,000) chunks of one byte", sample="times=100")
async def confetti(exchange: Exchange) -> None:
    await exchange.send(_CHUNKED)
    left = int(exchange.number("times", 300_000))
    while left > 0:
        await exchange.send(b"1\r\nx\r\n" * min(left, 10_000))
        left -= 10_000
    await exchange.send(b"0\r\n\r\n")


for _name, _story, _data in (
    ("short", "Content-Length promises more than comes", _sized(b"5000")),
    ("long", "more comes than Content-Length promised", _sized(b"20")),
    ("no-length", "no length at all: the body ends with the connection", _OK + b"Connection: close\r\n\r\n" + _BODY),
    ("length-negative", "Content-Length: -1", _sized(b"-1")),
    ("length-plus", "Content-Length: +68", _sized(b"+%d" % len(_BODY))),
    ("length-huge", "Content-Length: 99999999999999999999", _sized(b"99999999999999999999")),
    ("length-word", "Content-Length: many", _sized(b"many")),
    ("length-twice", "two Content-Length that differ", _sized(b"10\r\nContent-Length: 68")),
    (
        "length-and-chunks",
        "Content-Length and chunked at once",
        _OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(_BODY), _BODY),
    ),
    ("chunk-huge", "chunk size FFFFFFFFFFFFFFFF", _CHUNKED + b"FFFFFFFFFFFFFFFF\r\n" + _BODY),
    ("chunk-overflow", "a chunk size of forty digits", _CHUNKED + b"1" + b"0" * 39 + b"\r\n" + _BODY),
    ("chunk-negative", "chunk size -1", _CHUNKED + b"-1\r\n" + _BODY + b"\r\n0\r\n\r\n"),
    ("chunk-0x", "chunk size 0x44", _CHUNKED + b"0x44\r\n" + _BODY + b"\r\n0\r\n\r\n"),
    ("chunk-word", "chunk size zz", _CHUNKED + b"zz\r\n" + _BODY + b"\r\n0\r\n\r\n"),
    ("chunk-empty", "an empty line where a chunk size should be", _CHUNKED + b"\r\n" + _BODY + b"\r\n0\r\n\r\n"),
    (
        "chunk-extension",
        "a chunk extension of 1 MB",
        _CHUNKED + b"5;" + b"x" * 1_000_000 + b"\r\nhello\r\n0\r\n\r\n",
    ),
    ("chunk-cut", "the connection closes in the middle of a chunk", _CHUNKED + b"400\r\n" + _BODY),
    ("chunk-unfinished", "whole chunks, but no last one", _CHUNKED + b"%x\r\n%b\r\n" % (len(_BODY), _BODY)),
    ("chunk-no-crlf", "a chunk longer than its size", _CHUNKED + b"5\r\n" + _BODY + b"\r\n0\r\n\r\n"),
    (
        "chunk-trailers",
        "good chunks, then trailers",
        _CHUNKED + b"%x\r\n%b\r\n0\r\nX-Checksum: 1\r\nSet-Cookie: late=1\r\n\r\n" % (len(_BODY), _BODY),
    ),
    (
        "chunked-twice",
        "Transfer-Encoding: chunked, chunked",
        _OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "transfer-gzip",
        "Transfer-Encoding: gzip, which nobody offered",
        _OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ),
):
    framing.raw(_name, _story, _data)
