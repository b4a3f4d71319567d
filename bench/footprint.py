"""`python -m bench.footprint [--urls N] [--postgres]`: bytes a host and a URL, and the delay of the live stream.

Prints one JSON object a line. `robots` is the growth of a process over 20,000 parsed files of 26 lines; `disk` the
growth of the database over so many added URLs, and over a tenth of them that is then fetched and settled; `live` the
time from a committed event of a run until a client of `/api/crawler/events` has read it. `--postgres` starts a server.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

import psycopg

from bench.crawl import HOLDFAST
from bench.frontier import BATCH, EXECUTION, visit
from bench.memory import _resident
from holdfast import config
from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.migrate import upgrade
from holdfast.fetch.robots import RobotsFile
from holdfast.frontier import Frontier
from holdfast.jobs.journal import emit, progress
from holdfast.types import FoundUrl, UrlKind
from tests.postgres import Postgres, find_binaries

HOSTS = 20_000
PORT = 8082


def robots() -> None:
    """Print what a parsed robots.txt costs in memory, and what the cache counts for it."""
    before, kept = _resident(), []
    for host in range(HOSTS):
        rules = "".join(f"Disallow: /section-{host}/private-{number}/\n" for number in range(24))
        kept.append(
            RobotsFile.parse(f"User-agent: *\n{rules}Sitemap: https://{host}.example/s.xml\n".encode(), "holdfast")
        )
    counted = sum(file.memory_bytes() for file in kept)
    _print("robots", bytes_a_host=round((_resident() - before) / HOSTS), counted=round(counted / HOSTS))


def disk(url: str, size: Path | None, urls: int) -> None:
    """Print the bytes that a URL takes on disk: added, and fetched."""
    upgrade(url)
    with closing(connect(url)) as raw_db:
        frontier, chance, sizes = Frontier(raw_db, SystemClock()), random.Random(7), [_size(url, size)]
        for _ in range(urls // BATCH):
            hosts = [chance.randrange(urls // 200) for _ in range(BATCH)]
            frontier.add(EXECUTION, [
                FoundUrl(f"https://host-{host}.example/section/{h % 97}/article-{h % 1_000_000_007}.html", h - 2**63,
                         f"host-{host}.example", UrlKind.PAGE, 3, 1)
                for host, h in ((host, chance.getrandbits(64)) for host in hosts)
            ])  # fmt: skip
        sizes.append(_size(url, size))
        fetched = urls // 10
        visit(raw_db, urls, pages=fetched)
        sizes.append(_size(url, size))
    added, settled = (sizes[1] - sizes[0]) / urls, (sizes[2] - sizes[1]) / fetched
    _print("disk", database=raw_db.dialect, urls=urls, bytes_a_url=round(added), more_when_fetched=round(settled))


def _size(url: str, path: Path | None) -> int:
    if path is not None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.stat().st_size
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(row[0])


def live(home: Path, events: int) -> None:
    """Print how long events of a run take from their commit to a client of the live stream."""
    for words in (
        ["user", "add", "bench", "--role", "operator"],
        ["token", "create", "bench", "x", "--scope", "watch"],
    ):
        said = subprocess.run([str(HOLDFAST), *words, "--home", str(home)], capture_output=True, text=True, check=True)
    token, chance, waits = said.stdout.split()[-1], random.Random(7), list[float]()
    command = [str(HOLDFAST), "api", "--port", str(PORT), "--home", str(home)]
    with ExitStack() as stack:
        server = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(server.send_signal, signal.SIGTERM)
        if server.stdout is None or not server.stdout.readline().startswith("serving"):
            sys.exit("the server did not start")
        database = stack.enter_context(closing(Database(config.load(home=home).database)))
        line = stack.enter_context(socket.create_connection(("127.0.0.1", PORT)))
        head = f"GET /api/crawler/events HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nAuthorization: Bearer {token}\r\n\r\n"
        line.sendall(head.encode())
        if b" 200 " not in (first := line.recv(65536)).splitlines()[0]:
            sys.exit(f"the stream was refused: {first[:200]!r}")
        for number in range(10_000, 10_000 + events):
            time.sleep(chance.random())
            with database.write() as session:
                emit(session, [progress(1, 1, items_found=number, items_indexed=0)], now=SystemClock().now())
            began, heard = time.perf_counter(), b""
            while str(number).encode() not in heard:
                heard += line.recv(65536)
            waits.append((time.perf_counter() - began) * 1000)
    _print("live", events=events, median_ms=round(median(waits)), worst_ms=round(max(waits)))


def _print(name: str, **figures: object) -> None:
    print(json.dumps({"name": name, **figures}), flush=True)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.footprint", description=__doc__)
    parser.add_argument("--urls", type=int, default=500_000)
    parser.add_argument("--events", type=int, default=50)
    parser.add_argument("--postgres", action="store_true", help="measure the disk on PostgreSQL, too")
    options = parser.parse_args()
    robots()
    with tempfile.TemporaryDirectory(prefix="bench-footprint-") as folder:
        path = Path(folder) / "frontier.db"
        disk(f"sqlite:///{path}", path, options.urls)
        binaries = find_binaries()
        if options.postgres and binaries is not None:
            server = Postgres(binaries)
            server.start()
            try:
                disk(server.fresh(), None, options.urls)
            finally:
                server.stop()
        live(Path(folder) / "home", options.events)


if __name__ == "__main__":
    main()
