"""`python -m bench.streams`: what five hundred clients of live streams cost a crawl on the same core and database.

A server with no client and one with all of them take turns beside the same crawl. The CPU that the clients cost, of the
server and of the crawl itself, is held against the CPU of the crawl: that is what the crawl goes slower by when both
share a core, and it can be measured on a machine that has other things to do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Event, Thread

from bench.crawl import HOLDFAST, measured, pin_to
from bench.web import missing, served, write
from holdfast import config
from holdfast.clock import SystemClock
from holdfast.db.engine import Database
from holdfast.jobs.journal import emit, progress

PORT = 8081
PATHS = ("/api/crawler/events", "/api/events", "/api/health/events", "/api/metrics/events", "/api/crawler/events")
_TOLD_S = 0.5
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One crawl beside a server with so many clients."""

    clients: int
    pages: int
    seconds: float
    crawl_cpu_s: float
    server_cpu_s: float
    heard: int
    """Bytes that all clients were sent."""

    @property
    def cpu_ms_page(self) -> float:
        """CPU of crawl and server together, a page."""
        return (self.crawl_cpu_s + self.server_cpu_s) / max(self.pages, 1) * 1000


class Clients:
    """Clients on a thread and a loop of their own, away from the measured core."""

    def __init__(self, port: int, count: int) -> None:
        self._port, self._count = port, count
        self.heard = 0
        self._ready, self._stop = Event(), asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Connect all of them and return when each has been greeted."""
        self._thread.start()
        if not self._ready.wait(120):
            sys.exit("the clients could not all connect")

    def stop(self) -> None:
        """Let all of them go."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        lines = [await self._open(PATHS[number % len(PATHS)]) for number in range(self._count)]
        self._ready.set()
        reading = [asyncio.create_task(self._read(reader)) for reader, _ in lines]
        await self._stop.wait()
        for task in reading:
            task.cancel()
        for _, writer in lines:
            writer.transport.abort()
        await asyncio.gather(*reading, return_exceptions=True)

    async def _open(self, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.splitlines()[0]:
            sys.exit(f"a stream was refused: {head.splitlines()[0]!r}")
        return reader, writer

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(65536):
                self.heard += len(piece)


def cpu_of(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class Telling:
    """Writes an event of a job twice a second, as a run that gets on does."""

    def __init__(self, home: Path) -> None:
        self._home, self._ended, self.told = home, Event(), 0
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        with closing(Database(config.load(home=self._home).database)) as database:
            while not self._ended.wait(_TOLD_S):
                with database.write() as session:
                    event = progress(1, 1, items_found=self.told, items_indexed=0)
                    emit(session, [event], now=SystemClock().now())
                self.told += 1


def beside(site: Path, clients: int, *, core: str = "0") -> Beside:
    """Crawl a site beside a server with so many clients, both on one core and one database."""
    home = Path(tempfile.mkdtemp(prefix="holdfast-streams-", dir=site.parent))
    limits = {
        "HOLDFAST_API_CONNECTIONS_PER_ADDRESS": "1000",
        "HOLDFAST_TIMINGS_SERVER_STREAMS_PER_PRINCIPAL": "1000",
        "HOLDFAST_API_RATE_LIMITING": "false",
        "HOLDFAST_LOG_LEVEL": "ERROR",
    }
    server = subprocess.Popen(
        ["taskset", "-c", core, str(HOLDFAST), "api", "--port", str(PORT), "--home", str(home)],
        stdout=subprocess.PIPE, env={**os.environ, **limits}, text=True,
    )  # fmt: skip
    listening, telling = Clients(PORT, clients), Telling(home)
    try:
        if server.stdout is None or not server.stdout.readline().startswith("serving"):
            sys.exit("the server did not start")
        if clients:
            listening.start()
        telling.start()
        before = cpu_of(server.pid)
        command = [
            "taskset", "-c", core, str(HOLDFAST), "crawl", "--seeds", str(site / "seeds.txt"), "--scope", "host",
            "--delay", "0", "--allow-network", "127.0.0.0/8", "--no-sitemaps", "--contact", "bench@example.org",
            "--json", "--home", str(home),
        ]  # fmt: skip
        done, usage, took = measured(command)
        used = cpu_of(server.pid) - before
        pages = json.loads(done.splitlines()[-1])["pages"]
    finally:
        telling.stop()
        if clients:
            listening.stop()
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        shutil.rmtree(home, ignore_errors=True)
    return Beside(
        clients=clients,
        pages=pages,
        seconds=took,
        crawl_cpu_s=usage[0],
        server_cpu_s=used,
        heard=listening.heard,
    )


def measure(rounds: int, pages: int, clients: int) -> tuple[list[Beside], list[Beside]]:
    """Return crawls without and with clients, in turns."""
    site = write("web", hosts=40, pages=pages // 40)
    without: list[Beside] = []
    with_them: list[Beside] = []
    with served(site, 8080):
        for _ in range(rounds):
            without.append(beside(site, 0))
            with_them.append(beside(site, clients))
    return without, with_them


def main() -> None:
    """Measure and print; exit code 1 if the promise is not kept."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--clients", type=int, default=500)
    asked = parser.parse_args()
    if (lacking := missing()) is not None:
        sys.exit(lacking)
    pin_to(1)
    without, with_them = measure(asked.rounds, asked.pages, asked.clients)
    for one in (*without, *with_them):
        print(
            f"  {one.clients} clients: {one.pages} pages in {one.seconds:.1f} s, crawl {one.crawl_cpu_s:.2f} s and "
            f"server {one.server_cpu_s:.2f} s of CPU, {one.heard:,} bytes heard"
        )
    alone, together = (median(one.cpu_ms_page for one in runs) for runs in (without, with_them))
    crawl = median(one.crawl_cpu_s / one.pages * 1000 for one in without)
    cost = (together - alone) / crawl
    print(f"{asked.clients} clients of live streams cost a crawl {cost:.1%} (wanted: less than 10 %)")
    if cost >= 0.1:
        sys.exit(1)


if __name__ == "__main__":
    main()
