"""What a connection may cost that nothing comes from, or goes to, any more."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.wiring.http_protocol import ConnectionLimits, strict_http
from holdfast.wiring.server import client_key
from tests import patience


async def _serve_one_that_does_not_read() -> bool:
    is_let_go = asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await asyncio.wait_for(_told(receive), patience.deadline(60))) != "http.disconnect":
            await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
        is_let_go.set()

    async def _told(receive: Receive) -> str:
        try:
            return str((await asyncio.wait_for(receive(), 0.001))["type"])
        except TimeoutError:
            return ""

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        limits = ConnectionLimits(in_all=10, per_address=10)
        http = strict_http(head_bytes=32_768, head_s=10.0, write_s=0.2, limits=limits)
        server = uvicorn.Server(uvicorn.Config(endless, http=http, log_config=None, lifespan="off", ws="none"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        with closing(socket.create_connection(listener.getsockname())) as line:
            line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await asyncio.wait_for(is_let_go.wait(), patience.deadline(30))
        server.should_exit = True
        await serving
    return is_let_go.is_set()


def test_a_client_that_does_not_read_is_let_go() -> None:
    assert asyncio.run(_serve_one_that_does_not_read())


_ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def _answer(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
    await send({"type": "http.response.body", "body": b"served"})


@asynccontextmanager
async def _server(limits: ConnectionLimits) -> AsyncIterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        http = strict_http(head_bytes=32_768, head_s=60.0, write_s=60.0, limits=limits)
        server = uvicorn.Server(uvicorn.Config(_answer, http=http, log_config=None, lifespan="off", ws="none"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


async def _holding(stack: AsyncExitStack, port: int, count: int, host: str) -> list[asyncio.StreamWriter]:
    """Open connections from an address, each with half a request."""
    lines = []
    for _ in range(count):
        _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
        stack.callback(writer.close)
        writer.write(b"GET / HTTP/1.1\r\nHost: loc")
        await writer.drain()
        lines.append(writer)
    return lines


async def _ask(port: int, host: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
    with closing(writer):
        writer.write(_ASK)
        return await asyncio.wait_for(reader.read(), patience.deadline(60))


async def _ask_until_served(port: int, host: str) -> bytes:
    async with asyncio.timeout(60):
        answer = await _ask(port, host)
        while b" 200 " not in answer:
            answer = await _ask(port, host)
    return answer


async def _hold_all_of_one_address() -> tuple[bytes, bytes, bytes]:
    limits = ConnectionLimits(in_all=100, per_address=5)
    async with _server(limits) as port, AsyncExitStack() as stack:
        held = await _holding(stack, port, 5, "127.0.0.2")
        refused, other = await _ask(port, "127.0.0.2"), await _ask(port, "127.0.0.3")
        held[0].close()
        after = await _ask_until_served(port, "127.0.0.2")
    return refused, other, after


def test_an_address_that_holds_all_its_connections_is_told_so_and_others_are_served() -> None:
    refused, other, after = asyncio.run(_hold_all_of_one_address())

    head, _, body = refused.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: 5" in head.lower()
    assert json.loads(body)["code"] == "too_many_connections"
    assert other.endswith(b"served")
    assert after.endswith(b"served"), "one that is closed makes room"


async def _hold_through_a_proxy() -> bytes:
    limits = ConnectionLimits(in_all=100, per_address=2, trusted_proxies=["127.0.0.0/29"])
    async with _server(limits) as port, AsyncExitStack() as stack:
        await _holding(stack, port, 10, "127.0.0.2")
        return await _ask(port, "127.0.0.2")


def test_the_connections_of_a_trusted_proxy_are_those_of_many_clients() -> None:
    assert asyncio.run(_hold_through_a_proxy()).endswith(b"served")


async def _hold_all_of_the_server() -> tuple[bytes, bytes]:
    limits = ConnectionLimits(in_all=6, per_address=5)
    async with _server(limits) as port, AsyncExitStack() as stack:
        held = await _holding(stack, port, 3, "127.0.0.2") + await _holding(stack, port, 3, "127.0.0.3")
        refused = await _ask(port, "127.0.0.4")
        held[0].close()
        return refused, await _ask_until_served(port, "127.0.0.4")


def test_connections_that_ask_nothing_count_towards_all_that_the_server_holds() -> None:
    refused, after = asyncio.run(_hold_all_of_the_server())

    assert refused.startswith(b"HTTP/1.1 503 ")
    assert after.endswith(b"served")


def test_a_household_is_one_client_and_so_is_everything_that_is_no_address() -> None:
    assert client_key("2001:db8::1") == client_key("2001:db8::ffff") != client_key("2001:db8:0:1::1")
    assert client_key("::ffff:192.0.2.1") == client_key("192.0.2.1")
    assert client_key("made up") == client_key("") == "unknown"


async def _ask_all(pieces: list[bytes], *, app: ASGIApp) -> bytes:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        http = strict_http(
            head_bytes=32_768, head_s=60.0, write_s=30.0, limits=ConnectionLimits(in_all=10, per_address=10)
        )
        server = uvicorn.Server(uvicorn.Config(app, http=http, log_config=None, lifespan="off", ws="none"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        answer = await asyncio.wait_for(reader.read(), patience.deadline(60))
        writer.close()
        server.should_exit = True
        await serving
    return answer


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    told = f"<{scope['method']} {scope['path']} {body.decode()}>".encode()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(told)).encode())]}
    )
    await send({"type": "http.response.body", "body": told})


_LAST = b"GET /last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_requests_that_are_sent_ahead_are_answered_in_their_order_however_they_arrive(size: int) -> None:
    asked = (
        b"GET /a%20b?c=%20 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        b"POST /c HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab\n\nc"
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + _LAST
    )

    answer = asyncio.run(_ask_all([asked[at : at + size] for at in range(0, len(asked), size)], app=_echo))

    assert [part.partition(b">")[0] for part in answer.split(b"<")[1:]] == [
        b"GET /a b ", b"POST /c ab\n\nc", b"GET /ws ", b"GET /last "]  # fmt: skip


def test_chunks_are_put_together_and_what_comes_right_behind_them_is_not_taken_for_a_request() -> None:
    chunks = (
        b"POST /c HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )

    answer = asyncio.run(_ask_all([chunks + _LAST], app=_echo))

    assert b"<POST /c abcde>" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


def test_chunks_that_are_no_chunks_are_refused() -> None:
    begun = b"POST /c HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"

    answers = [asyncio.run(_ask_all([begun + chunk], app=_echo)) for chunk in (b"xyz\r\n", b"3\nabc\n0\n\n")]

    assert [answer.split()[1] for answer in answers] == [b"400", b"400"]


async def _refusal(request: bytes, *, head_s: float) -> bytes:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        limits = ConnectionLimits(in_all=10, per_address=10)
        http = strict_http(head_bytes=32_768, head_s=head_s, write_s=30.0, limits=limits)
        server = uvicorn.Server(uvicorn.Config(_answer, http=http, log_config=None, lifespan="off", ws="none"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(request)
        answer = await asyncio.wait_for(reader.read(), patience.deadline(60))
        writer.close()
        server.should_exit = True
        await serving
    return answer


@pytest.mark.parametrize(
    ("request_head", "head_s", "status"),
    [
        (b"garbage\r\n\r\n", 60.0, b"400"),
        (b"\x16\x03\x01\x02\x00", 60.0, b"400"),
        (b"\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 60.0, b"400"),
        (b"GET / HTTP/1.1\nHost: localhost\n", 60.0, b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: 1\n\r\n\r\n", 60.0, b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: 1\r2\r\n\r\n", 60.0, b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: 1\x002\r\n\r\n", 60.0, b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX : 1\r\n\r\n", 60.0, b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n X: 1\r\n\r\n", 60.0, b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX\r\n\r\n", 60.0, b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 60.0, b"400"),
        (b"GET /  HTTP/1.1\r\nHost: localhost\r\n\r\n", 60.0, b"400"),
        (b"GET /\tHTTP/1.1\r\nHost: localhost\r\n\r\n", 60.0, b"400"),
        (b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 60.0, b"400"),
        (b"GET / HTTP/0.9\r\nHost: localhost\r\n\r\n", 60.0, b"400"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 60.0, b"400"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\nx", 60.0, b"400"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1, 1\r\n\r\nx", 60.0, b"400"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nx", 60.0, b"400"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 60.0, b"400"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 60.0, b"400"),
        (
            b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            60.0,
            b"400",
        ),
        (b"POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 60.0, b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", 60.0, b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 33_000, 60.0, b"431"),
        (b"GET / HTTP/1.1\r\n", 0.1, b"408"),
    ],
)
def test_a_head_that_is_refused_is_answered_like_every_other_error(
    request_head: bytes, head_s: float, status: bytes
) -> None:
    head, _, body = asyncio.run(_refusal(request_head, head_s=head_s)).partition(b"\r\n\r\n")

    told = json.loads(body)

    assert head.split()[1] == status
    assert b"content-type: application/json" in head.lower()
    assert set(told) == {"error", "detail", "code", "requestId"}
    assert told["code"] == "invalid"
