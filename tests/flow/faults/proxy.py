"""A TCP proxy that misbehaves on demand, to stand between a worker and a database, a cache or a site.

pass       bytes go through
drop       bytes vanish in both directions; closing still goes through
delay      every piece waits `delay_s` first
throttle   at most `bytes_per_s` in each direction
half-open  the other side has vanished: nothing goes through, not even a close
reset      every connection is reset, and every new one at once

A mode holds from the moment it is set, for connections that stand and for new ones. A connection that lost bytes can
never be whole again, so it is reset when it is told to pass.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from enum import StrEnum
from types import TracebackType

_PIECE_BYTES = 16 * 1024


class Mode(StrEnum):
    """What the proxy does with bytes."""

    PASS = "pass"
    DROP = "drop"
    DELAY = "delay"
    THROTTLE = "throttle"
    HALF_OPEN = "half-open"
    RESET = "reset"


class _Pair:
    """The two sockets of one connection, and whether bytes between them were lost."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter | None) -> None:
        self.client, self.server = client, server
        self.spoiled = False

    def reset(self) -> None:
        for writer in (self.client, self.server):
            if writer is not None and not writer.is_closing():
                sock = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()


class Proxy:
    """A running proxy in a thread of its own; use it as a context, set its mode at any time."""

    def __init__(self, host: str, port: int, *, delay_s: float = 0.1, bytes_per_s: float = 10_000.0) -> None:
        self._target = (host, port)
        self._delay_s, self._bytes_per_s = delay_s, bytes_per_s
        self._mode = Mode.PASS
        self._pairs: set[_Pair] = set()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),), name="proxy")
        self.accepted = 0
        """Connections taken so far: shows who dials in a busy loop."""
        self.port = 0

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    @property
    def mode(self) -> Mode:
        """What happens to bytes now."""
        return self._mode

    def set_mode(self, mode: Mode) -> None:
        """Change what happens to bytes; returns when the change is in force."""
        asyncio.run_coroutine_threadsafe(self._change(mode), self._loop).result()

    async def _change(self, mode: Mode) -> None:
        self._mode = mode
        for pair in list(self._pairs):
            if mode is Mode.RESET or (pair.spoiled and mode not in (Mode.DROP, Mode.HALF_OPEN)):
                pair.reset()

    async def _run(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for pair in list(self._pairs):
            pair.reset()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.wait(others)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side is done."""
        self.accepted += 1
        pair = _Pair(writer, None)
        self._pairs.add(pair)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if self._mode is Mode.RESET:
                pair.reset()
            elif self._mode is Mode.HALF_OPEN:
                pair.spoiled = True
                await self._stop.wait()
            else:
                upstream, pair.server = await asyncio.open_connection(*self._target)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._carry(reader, pair.server, pair), name="client to server")
                    tasks.create_task(self._carry(upstream, writer, pair), name="server to client")
        pair.reset()
        self._pairs.discard(pair)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pair: _Pair) -> None:
        """Move bytes in one direction as the mode of the moment says."""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_PIECE_BYTES):
                if self._mode is Mode.DELAY:
                    await asyncio.sleep(self._delay_s)
                elif self._mode is Mode.THROTTLE:
                    await asyncio.sleep(len(data) / self._bytes_per_s)
                if self._mode in (Mode.DROP, Mode.HALF_OPEN):
                    pair.spoiled = True
                    continue
                writer.write(data)
                await writer.drain()
        if self._mode is Mode.HALF_OPEN:
            pair.spoiled = True
            await self._stop.wait()
        if not writer.is_closing():
            writer.write_eof()
