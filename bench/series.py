"""What recording costs a crawl: `python -m bench.series [--postgres URL]`. Prints one JSON object.

Batches of 200 visits with 20 links each are settled by turns with the series and with nothing written to it, into one
database, so that both see the same tables at the same size. CPU is this process's, SQLite's included.
`series_us_a_page` is what counting and the statement themselves take; `difference` is between
whole settles, and mostly noise.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import tempfile
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.migrate import upgrade
from holdfast.frontier import Frontier
from holdfast.types import DomainLease, FoundUrl, Outcome, UrlKind, Visit
from holdfast.urls import parse

_BATCHES = 120
_PAGES = 200
_LINKS = 20
EXECUTION = 1


def _found(number: int) -> FoundUrl:
    url = f"https://host-{number % 7}.example/page/{number}"
    return FoundUrl(url, parse(url).hash64, f"host-{number % 7}.example", UrlKind.PAGE, 1, 1)


def _visits(lease: DomainLease, first: int) -> list[Visit]:
    now = SystemClock().now()
    return [
        Visit(
            attempt=attempt,
            token=lease.token,
            outcome=Outcome.SUCCESS,
            reason="ok",
            started_at=now - timedelta(milliseconds=80),
            finished_at=now,
            status=200,
            media_type="text/html",
            wire_bytes=40_000,
            requests=1,
            title="A page",
            # Half of the links are known, as on a real site.
            found=tuple(_found(first + number * _LINKS // 2 + link) for link in range(_LINKS)),
        )
        for number, attempt in enumerate(lease.attempts)
    ]


def run(url: str) -> dict[str, Any]:
    """Settle by turns, and return what both cost a page."""
    upgrade(url)
    frontier = Frontier(connect(url), SystemClock())
    own = [0.0]
    # By name, so that its functions can be taken out for every second batch.
    settling: Any = importlib.import_module("holdfast.frontier.settling")
    add_counts, count_visits = _timed(settling.add_counts, own), _timed(settling.count_visits, own)
    frontier.add(EXECUTION, [_found(number) for number in range(_BATCHES * _PAGES * 2)])
    spent: dict[str, list[float]] = {"with": [], "without": []}
    first = 10_000_000
    for turn in range(_BATCHES):
        (lease,) = frontier.lease(EXECUTION, 1, domains=1, pages=_PAGES)
        visits = _visits(lease, first)
        first += _PAGES * _LINKS
        word = "with" if turn % 2 else "without"
        settling.add_counts = add_counts if word == "with" else _nothing
        settling.count_visits = count_visits if word == "with" else _none
        began = time.process_time()
        frontier.settle(EXECUTION, 1, visits)
        spent[word].append((time.process_time() - began) / len(visits))
        frontier.let_go([(lease.domain_id, lease.token)])
    # The first batches warm up caches and plans.
    cost = {word: statistics.median(times[5:]) * 1e6 for word, times in spent.items()}
    more = own[0] / (_BATCHES // 2 * _PAGES) * 1e6
    return {
        "bench": "series",
        "database": url.partition(":")[0],
        "settle_us_a_page": {word: round(number, 2) for word, number in cost.items()},
        "difference": round(cost["with"] / cost["without"] - 1, 4),
        "series_us_a_page": round(more, 2),
        "share_of_settling": round(more / cost["without"], 4),
        # A page of a crawl costs 2 to 3 ms in all: fetching, parsing, storing.
        "share_of_a_page_of_2_ms": round(more / 2000, 5),
    }


def _timed(call: Any, spent: list[float]) -> Any:
    def timed(*values: Any, **named: Any) -> Any:
        began = time.process_time()
        try:
            return call(*values, **named)
        finally:
            spent[0] += time.process_time() - began

    return timed


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _none(_: Any) -> Any:
    return Counter()


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.series", description=__doc__)
    parser.add_argument("--postgres", help="an empty database to measure instead of SQLite")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(given.postgres or f"sqlite:///{Path(folder) / 'bench.db'}")))


if __name__ == "__main__":
    main()
