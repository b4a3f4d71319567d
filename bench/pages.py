"""`python -m bench.pages`: what each GET of the browser application takes, as the first request of a fresh process.

The addresses are those that `web/src` names, with ids and dates of the archive filled in; a page is a folder there.
Each is requested as soon as the server says that it serves. Wall time says what a reader waits on an idle machine; CPU
time of the server, which includes what runs beside requests, changes less where others use the machine.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

import httpx

from bench.serve import serving

WANTED_MS = 500
SEARCH_MS = 300
"""For the first search."""
_TOKEN = "the admin token of the bench"
_WEB = Path(__file__).resolve().parent.parent / "web" / "src"
_ASKED = re.compile(r"GET\(\"(/api/[^\"]+)\"|fetch\([\"`](/api/[^\"`$?]+)[\"`?]")
_LIVE = "/api/snapshots/{id}/compare-live"
"""Fetches a page of another site, which takes as long as that takes."""


class Sample(NamedTuple):
    """What stands in an archive, to fill addresses with."""

    source: str
    source_id: int
    job: int
    execution: int
    earlier_execution: int
    snapshot: int
    earlier_snapshot: int
    url: str
    moment: str
    word: str

    @classmethod
    def of(cls, home: Path) -> Sample:
        """Read it from an archive: its largest source, the newest run of that, and its page with the most captures."""
        with closing(sqlite3.connect(home / "holdfast.db")) as db:
            source, code = db.execute(
                "SELECT s.id, s.code FROM snapshots c JOIN sources s ON s.id = c.source_id"
                " GROUP BY s.id ORDER BY count(*) DESC LIMIT 1"
            ).fetchone()
            runs = [row[0] for row in db.execute(
                "SELECT DISTINCT execution_id FROM snapshots WHERE source_id = ? ORDER BY 1 DESC LIMIT 2", (source,)
            )]  # fmt: skip
            (job,) = db.execute("SELECT job_id FROM executions WHERE id = ?", runs[:1]).fetchone()
            (page,) = db.execute(
                "SELECT url_hash FROM snapshots WHERE source_id = ? AND is_page GROUP BY url_hash"
                " ORDER BY count(*) DESC LIMIT 1", (source,)
            ).fetchone()  # fmt: skip
            captures = db.execute(
                "SELECT id, url, strftime('%Y%m%d%H%M%S', captured_at / 1000000, 'unixepoch') FROM snapshots"
                " WHERE url_hash = ? AND is_page ORDER BY captured_at DESC LIMIT 2", (page,)
            ).fetchall()  # fmt: skip
            (title,) = db.execute("SELECT title FROM documents WHERE title > '' ORDER BY id LIMIT 1").fetchone()
        last, before = captures[0], captures[-1]
        return cls(code, source, job, runs[0], runs[-1], last[0], before[0], last[1], last[2], title.split()[0])


def _queries(one: Sample) -> dict[str, list[dict[str, object]]]:
    """Return the queries that pages send with an address, as their hooks write them."""
    ever = {"from": "1970-01-01", "pageSize": 40}
    return {
        "/api/changes": [ever, {"from": "1970-01-01", "pageSize": 5}, {**ever, "source": one.source}],
        "/api/changes/compare": [{"toSnapshotId": one.snapshot, "fromSnapshotId": one.earlier_snapshot}],
        "/api/changes/site": [{"from": one.earlier_execution, "to": one.execution, "limit": 50}],
        "/api/history": [{"url": one.url}],
        "/api/explain": [{"url": one.url}],
        "/api/replay/resolve": [{"url": one.url, "timestamp": one.moment}],
        "/api/search": [{"q": one.word}, {"view": "snapshots", "pageSize": 1}, {"q": one.word, "view": "snapshots"}],
        "/api/health": [{"details": "true"}],
        "/api/stats/timeseries": [{"hours": 1}, {"hours": 8784}],
        "/api/stats/activity": [{"hours": 24}],
        "/api/admin/takedowns/preview": [{"url": one.url}],
        "/api/v1/jobs": [{}, {"status": "running", "limit": 20}],
        "/api/domains": [{}, {"state": "unreachable", "limit": 20}],
    }


def requests_of(one: Sample) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the addresses that pages request, with the pages; 404 answers an id that is not in the archive."""
    year = one.moment[:4]
    named = defaultdict[str, set[str]](set)
    for file in _WEB.rglob("*.ts*"):
        for found in _ASKED.finditer(file.read_text()):
            named[(found[1] or found[2]).rstrip("/")].add(str(file.relative_to(_WEB).parent))
    queries = _queries(one)
    ids = {"snapshots": one.snapshot, "sources": one.source_id, "jobs": one.job, "executions": one.execution}
    for path in sorted(named.keys() - {_LIVE}):
        kind = path.rpartition("/{id}")[0].rpartition("/")[2]
        filled = (
            path.replace("{id}", str(ids.get(kind, 1))).replace("{code}", one.source).replace("{source}", one.source)
        )
        filled = filled.replace("{year}", year).replace("{earlier}", str(int(year) - 1))
        filled = filled.replace("{domain}", quote(httpx.URL(one.url).host))
        for query in queries.get(path, [{}]):
            yield (f"{filled}?{urlencode(query)}" if query else filled), frozenset(named[path])


class Took(NamedTuple):
    """What one request took."""

    address: str
    status: int
    wall_ms: float
    cpu_ms: float

    @property
    def is_slow(self) -> bool:
        """Whether it took longer than it may, by both clocks: the machine may be busy, and CPU time comes in steps."""
        return min(self.wall_ms, self.cpu_ms) > (SEARCH_MS if self.address.startswith("/api/search?") else WANTED_MS)

    def __str__(self) -> str:
        return f"{self.wall_ms:7.0f} ms  {self.cpu_ms:6.0f} ms of CPU  {self.status}  {self.address[:120]}"


def first_request(home: Path, address: str) -> Took:
    """Start a server on an archive, and ask it this alone."""
    with (
        serving(home, HOLDFAST_API_ADMIN_TOKEN=_TOKEN) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60) as client,
    ):
        named = {"Host": f"localhost:{server.port}"}
        before, began = server.cpu_s(), time.perf_counter()
        answer = client.get(address, headers={**named, "x-admin-token": _TOKEN})
        took = time.perf_counter() - began
        return Took(address, answer.status_code, took * 1000, (server.cpu_s() - before) * 1000)


def main() -> None:
    """Measure and print one line a request, then the slowest of each page."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="data directory of a SQLite archive")
    parser.add_argument("--only", default="", help="addresses that contain this")
    options = parser.parse_args()
    slow, slowest = 0, dict[str, Took]()
    for address, pages in requests_of(Sample.of(options.home)):
        if options.only not in address:
            continue
        took = first_request(options.home, address)
        slow += took.is_slow
        print(took, flush=True)
        for page in pages:
            slowest[page] = max(took, slowest.get(page, took), key=lambda one: one.cpu_ms)
    for page, took in sorted(slowest.items()):
        print(f"{page:<20} {took}", flush=True)
    print(f"{slow} requests took more than {WANTED_MS} ms ({SEARCH_MS} ms for a search)", flush=True)
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
