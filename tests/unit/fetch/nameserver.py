"""A nameserver on loopback that says what a test wants, over UDP and TCP, and counts what it was asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import dnslib

_DATA = {"A": dnslib.A, "AAAA": dnslib.AAAA, "CNAME": dnslib.CNAME}

Zone = Callable[[str, str, int], list[str] | int | None]
"""Given name, type (A or AAAA) and how often it was asked before: records, an error code, or None for silence."""


class Nameserver(asyncio.DatagramProtocol):
    """Answers from a zone; `asked` counts by (name, type)."""

    def __init__(self, zone: Zone, ttl_s: int) -> None:
        self._zone = zone
        self._ttl_s = ttl_s
        self.asked: Counter[tuple[str, str]] = Counter()
        self.address = ""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = self._answer(data)
        if answer is None:
            return
        packed = answer.pack()
        if len(packed) > 1200:
            answer.rr.clear()
            answer.header.tc = 1
            packed = answer.pack()
        self._transport.sendto(packed, addr)

    async def stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one TCP connection, as a client opens it for an answer that was cut."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = int.from_bytes(await reader.readexactly(2), "big")
                answer = self._answer(await reader.readexactly(size))
                if answer is not None:
                    packed = answer.pack()
                    writer.write(len(packed).to_bytes(2, "big") + packed)
        writer.close()

    def _answer(self, data: bytes) -> dnslib.DNSRecord | None:
        query = dnslib.DNSRecord.parse(data)
        name, kind = str(query.q.qname).rstrip(".").lower(), dnslib.QTYPE[query.q.qtype]
        found = self._zone(name, kind, self.asked[name, kind])
        self.asked[name, kind] += 1
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
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: Nameserver(zone, ttl_s), ("127.0.0.1", 0))
    host, port = transport.get_extra_info("sockname")[:2]
    listener = await asyncio.start_server(server.stream, host, port)
    server.address = f"{host}:{port}"
    try:
        yield server
    finally:
        transport.close()
        listener.close()
        await asyncio.sleep(0)
