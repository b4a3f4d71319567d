"""A nameserver on loopback that says what a test wants, over UDP and TCP, and counts what it was asked."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import dnslib

_DATA = {"A": dnslib.A, "AAAA": dnslib.AAAA, "CNAME": dnslib.CNAME}


class Held(list[str]):
    """Records that are sent only when the same question has come once more, and then for the earlier one alone: a
    nameserver that is slow, without a clock."""


Zone = Callable[[str, str, int], list[str] | int | None]
"""Given name, type (A or AAAA) and how often it was asked before: records, an error code, or None for silence."""


class Nameserver:
    """Answers from a zone; `asked` counts by (name, type)."""

    def __init__(self, zone: Zone, ttl_s: int, sock: socket.socket) -> None:
        self._zone = zone
        self._ttl_s = ttl_s
        self._sock = sock
        self.asked: Counter[tuple[str, str]] = Counter()
        self.last: list[str] | int | None = None
        self._held: dict[tuple[str, str], tuple[bytes, tuple[str, int]]] = {}
        self._streams: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}
        self.address = "{}:{}".format(*sock.getsockname())

    def datagram(self) -> None:
        """Serve one datagram; an answer that is too long for it is marked as cut."""
        data, sender = self._sock.recvfrom(4096)
        question = dnslib.DNSRecord.parse(data).q
        key = str(question.qname).lower(), dnslib.QTYPE[question.qtype]
        if key in self._held:
            self._sock.sendto(*self._held.pop(key))
            return
        answer = self._answer(data)
        if answer is None:
            return
        packed = answer.pack()
        if len(packed) > 1200:
            answer.rr.clear()
            answer.header.tc = 1
            packed = answer.pack()
        if isinstance(self.last, Held):
            self._held[key] = packed, sender
            return
        self._sock.sendto(packed, sender)

    async def stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one TCP connection, as a client opens it for an answer that was cut."""
        self._streams[writer] = asyncio.current_task()
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = int.from_bytes(await reader.readexactly(2), "big")
                answer = self._answer(await reader.readexactly(size))
                if answer is not None:
                    packed = answer.pack()
                    writer.write(len(packed).to_bytes(2, "big") + packed)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        del self._streams[writer]

    async def close(self) -> None:
        """Close the connections that clients left open: the loop of a test must not end before them."""
        tasks = [task for task in self._streams.values() if task is not None]
        for writer in self._streams:
            writer.close()
        await asyncio.gather(*tasks)

    def _answer(self, data: bytes) -> dnslib.DNSRecord | None:
        query = dnslib.DNSRecord.parse(data)
        name, kind = str(query.q.qname).rstrip(".").lower(), dnslib.QTYPE[query.q.qtype]
        found = self._zone(name, kind, self.asked[name, kind])
        self.asked[name, kind] += 1
        self.last = found
        if found is None:
            return None
        reply = query.reply()
        if isinstance(found, int):
            reply.header.rcode = found
            return reply
        for text in found:
            form, _, value = text.partition(" ")
            data = _DATA[form](value)
            reply.add_answer(dnslib.RR(query.q.qname, getattr(dnslib.QTYPE, form), ttl=self._ttl_s, rdata=data))
        return reply


@asynccontextmanager
async def nameserver(zone: Zone, *, ttl_s: int = 60) -> AsyncIterator[Nameserver]:
    """Run a nameserver for the time of a test."""
    # A plain socket, because uvloop's datagram transport sometimes does not close and then holds up its loop.
    loop = asyncio.get_running_loop()
    with _pair() as (sock, stream):
        server = Nameserver(zone, ttl_s, sock)
        loop.add_reader(sock, server.datagram)
        listener = await asyncio.start_server(server.stream, sock=stream)
        try:
            yield server
        finally:
            loop.remove_reader(sock)
            listener.close()
            # A connection that was accepted a moment ago has no task yet.
            await asyncio.sleep(0)
            await server.close()


@contextmanager
def _pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give a datagram and a stream socket on the same port."""
    while True:
        with socket.socket() as stream, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            stream.bind(("127.0.0.1", 0))
            try:
                sock.bind(stream.getsockname())
            except OSError:
                continue
            sock.setblocking(False)
            yield sock, stream
            return
