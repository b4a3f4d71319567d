"""What a connection may cost that nothing comes from, or goes to, any more."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing

import uvicorn
from starlette.types import Receive, Scope, Send

from holdfast.wiring.http_protocol import strict_http


async def _serve_one_that_does_not_read() -> bool:
    is_let_go = asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await asyncio.wait_for(_told(receive), 60)) != "http.disconnect":
            await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
        is_let_go.set()

    async def _told(receive: Receive) -> str:
        try:
            return str((await asyncio.wait_for(receive(), 0.001))["type"])
        except TimeoutError:
            return ""

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        http = strict_http(head_bytes=32_768, head_s=10.0, write_s=0.2)
        server = uvicorn.Server(uvicorn.Config(endless, http=http, log_config=None, lifespan="off", ws="none"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        with closing(socket.create_connection(listener.getsockname())) as line:
            line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await asyncio.wait_for(is_let_go.wait(), 30)
        server.should_exit = True
        await serving
    return is_let_go.is_set()


def test_a_client_that_does_not_read_is_let_go() -> None:
    assert asyncio.run(_serve_one_that_does_not_read())
