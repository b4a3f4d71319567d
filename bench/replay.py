"""`python -m bench.replay`: captures and CDX lines over HTTP, from a served archive, each request another capture.

The records stand at the end of a file of 1 GB (a hole before them: only the seek matters); the CDX server looks through
a million snapshots that were written straight into the table. Times are a client's, on one kept connection.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from holdfast.clock import to_micros
from holdfast.db import connect
from holdfast.db.raw import Transaction
from holdfast.db.schema import make_fresh

Figure = tuple[str, str, str, bool]
"""Name, figure, what was wanted, whether it was kept: the fields of the bench's Row."""


class Times(NamedTuple):
    """Milliseconds of one kind of request."""

    p50: float
    p95: float
    cpu: float
    """Of the server, a request, measured in its clock ticks."""


CAPTURES = 5
RECORDS = 200
FIRST = datetime(2020, 1, 1, tzinfo=UTC)
STAMP = "20200101000000"
_COLUMNS = (
    "id", "warc_file_id", "execution_id", "source_id", "warc_offset", "warc_length", "record_id", "record_type", "url",
    "url_key", "url_hash", "captured_at", "status", "media_type", "payload_digest", "is_page", "backend", "fidelity",
)  # fmt: skip


def generate(home: Path, snapshots: int, file_bytes: int) -> None:
    """Write the file and the rows."""
    database = f"sqlite:///{(home / 'holdfast.db').resolve()}"
    home.mkdir(parents=True)
    make_fresh(database)
    with closing(connect(database)) as raw_db:
        with raw_db.write() as tx:
            _runtime(tx)
            tx.load("snapshots", _COLUMNS, [*_records(home / "big.warc.gz", file_bytes)])
        for start in range(0, snapshots, 50_000):
            with raw_db.write() as tx:
                tx.load(
                    "snapshots", _COLUMNS, [_row(number) for number in range(start, min(start + 50_000, snapshots))]
                )


def _runtime(tx: Transaction) -> None:
    now = to_micros(FIRST)
    for statement in (
        "INSERT INTO sources(id, code, name, enabled, config, created_at, updated_at)"
        " VALUES (1, 'bench', 'Bench', TRUE, '{}', ?, ?)",
        "INSERT INTO jobs(id, source_id, kind, fingerprint, config, created_at) VALUES (1, 1, 'adhoc', 'f', '{}', ?)",
        "INSERT INTO executions(id, job_id, number, state, config, output_dir, created_at, started_at, run_seconds)"
        " VALUES (1, 1, 1, 'completed', '{}', 'x', ?, ?, 0.0)",
        "INSERT INTO warc_files(id, execution_id, key, state, created_at, index_state, repaired)"
        " VALUES (1, 1, 'big.warc.gz', 'sealed', ?, 'indexed', FALSE)",
    ):
        tx.execute(statement, (now,) * statement.count("?"))


def _records(path: Path, file_bytes: int) -> Iterator[tuple[object, ...]]:
    """Write pages of 40 KB with 200 links behind a hole, one gzip member each, and yield their rows."""
    chooser = random.Random(7)
    with path.open("wb") as file:
        file.truncate(file_bytes)
        file.seek(file_bytes)
        for number in range(RECORDS):
            url = f"http://big.example/page/{number}"
            body = _page(chooser, number)
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
            block = head + body
            fields = (
                f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{number:032x}>\r\n"
                f"WARC-Target-URI: {url}\r\n"
                f"WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
                f"Content-Length: {len(block)}\r\n\r\n"
            )  # fmt: skip
            member = gzip.compress(fields.encode() + block + b"\r\n\r\n", 2)
            offset = file.tell()
            file.write(member)
            yield (
                number + 1, 1, 1, 1, offset, len(member), f"{number:032x}", "response", url,
                f"example,big)/page/{number}", number, to_micros(FIRST), 200, "text/html", "sha256:00", True, "native",
                "high",
            )  # fmt: skip


def _page(chooser: random.Random, number: int) -> bytes:
    links = "".join(
        f'<li class="item"><a href="/page/{chooser.randrange(10**6)}?a={at}&amp;b=c">{chooser.random()}</a>'
        f'<img src="/img/{at}.png" alt=""></li>\n'
        for at in range(200)
    )
    text = " ".join(f"word{chooser.randrange(5000)}" for _ in range(1500))
    return (
        f"<!doctype html><html><head><title>Page {number}</title><link rel=stylesheet href=/s.css></head>"
        f"<body><h1>{number}</h1><p>{text}</p><ul>{links}</ul></body></html>"
    ).encode()


def _row(number: int) -> tuple[object, ...]:
    page, capture = divmod(number, CAPTURES)
    host, path = page % 2000, page // 2000
    url = f"https://www.site{host}.example/section/{path}"
    bits = int.from_bytes(sha256(url.encode()).digest()[:8], "big", signed=True)
    return (
        (1 << 22) + number, 1, 1, 1, number * 1000, 900, None, "response", url,
        f"example,site{host})/section/{path}", bits, to_micros(FIRST) + capture * 86_400_000_000 * 30, 200, "text/html",
        f"sha256:{number:064x}", True, "native", "high",
    )  # fmt: skip


class Server:
    """A served archive, a connection to it, and what it has cost."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._pid, self._port = process.pid, port
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def cpu_s(self) -> float:
        """Return the CPU seconds of the server so far."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def time(self, targets: Sequence[str], host: str) -> Times:
        """Return how long each of these took; the first tenth only warms up."""
        headers = {"Host": f"{host}:{self._port}", "Accept-Encoding": "identity"}
        took = []
        before = self.cpu_s()
        for target in targets:
            began = time.perf_counter()
            self.connection.request("GET", target, headers=headers)
            response = self.connection.getresponse()
            body = response.read()
            took.append((time.perf_counter() - began) * 1000)
            assert response.status == 200, (target, response.status)
            assert body, target
        ordered = sorted(took[len(took) // 10 :])
        cpu_ms = (self.cpu_s() - before) / len(targets) * 1000
        return Times(ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)], cpu_ms)


@contextmanager
def serving(home: Path) -> Iterator[Server]:
    """Serve the archive in a process of its own."""
    # Generated captures were never compared; a server that caught up with a million of them would measure that.
    quiet = {"HOLDFAST_API_RATE_LIMITING": "false", "HOLDFAST_API_CHANGES": "false", "HOLDFAST_LOG_LEVEL": "WARNING"}
    variables = {**os.environ, **quiet}
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast.cli.main", "api", "--port", "0", "--home", str(home)], text=True,
        stdout=subprocess.PIPE, env=variables,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = re.search(r"http://[^:]+:(\d+)", process.stdout.readline())
        assert found is not None
        server = Server(process, int(found[1]))
        yield server
        server.connection.close()
    finally:
        process.terminate()
        process.wait(20)


def measure(home: Path, snapshots: int, requests: int) -> dict[str, Times]:
    """Return the times of each kind of request."""
    chooser = random.Random(11)
    pages = snapshots // CAPTURES

    def lookup(page: int) -> str:
        return f"/cdx?url=site{page % 2000}.example/section/{page // 2000}&output=json"

    big = "http://big.example/page/"
    kinds: dict[str, tuple[str, int, Callable[[int], str]]] = {
        "raw view": ("localhost", RECORDS, lambda number: f"/api/snapshots/raw/{number + 1}"),
        "/web/…id_/": ("replay.localhost", RECORDS, lambda number: f"/web/{STAMP}id_/{big}{number}"),
        "/web/…/ rewritten": ("replay.localhost", RECORDS, lambda number: f"/web/{STAMP}/{big}{number}"),
        "CDX lookup": ("localhost", pages, lookup),
        "CDX closest": ("localhost", pages, lambda page: f"{lookup(page)}&closest=2020&limit=1"),
        "CDX prefix, 50 lines": (
            "localhost", pages, lambda page: f"/cdx?url=site{page % 2000}.example/*&limit=50",
        ),
    }  # fmt: skip

    def asked(name: str, count: int) -> Times:
        host, among, make = kinds[name]
        return server.time([make(chooser.randrange(among)) for _ in range(count)], host)

    with serving(home) as server:
        for name in kinds:  # a server that has just started still loads what search needs
            asked(name, 100)
        return {name: asked(name, requests) for name in kinds}


_WANTED = {"raw view": 15.0, "/web/…id_/": 15.0, "CDX lookup": 5.0}


def figures(folder: Path, snapshots: int = 1_000_000, requests: int = 500) -> list[Figure]:
    """Generate what is missing, measure, and return the promises of the issue with their figures."""
    home = folder / f"replay-{snapshots}"
    if not (home / "ready").exists():
        subprocess.run(["rm", "-rf", str(home)], check=True)
        generate(home, snapshots, 10**9)
        (home / "ready").touch()
    rows: list[Figure] = []
    for name, times in measure(home, snapshots, requests).items():
        print(
            json.dumps({"name": name, **{key: round(value, 2) for key, value in times._asdict().items()}}),
            file=sys.stderr,
        )
        limit = _WANTED.get(name)
        where = f"at {snapshots:,}" if name.startswith("CDX") else "at the end of 1 GB"
        wanted = f"< {limit:g} ms" if limit else "shown"
        rows.append((f"{name}, p95 {where}", f"{times.p95:.1f} ms", wanted, limit is None or times.p95 < limit))
    return rows


def main() -> None:
    """Measure and print one line a figure."""
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=__doc__)
    parser.add_argument("--snapshots", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    for name, figure, wanted, kept in figures(options.folder, options.snapshots, options.requests):
        print(f"{name:<48} {figure:>12} {wanted:>10}  {'kept' if kept else 'MISSED'}")


if __name__ == "__main__":
    main()
