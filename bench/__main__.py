"""`python -m bench`: every promise with a figure, measured now, beside its peers. A miss is printed as a miss."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import index, replay, search, warc
from bench.crawl import HOLDFAST, Run, ours, peer, pin_to
from bench.memory import bytes_per_url
from bench.web import SCRIPTS, WORK, missing, served, write
from holdfast import log

PORT = 8080


class Row(NamedTuple):
    """One promise: what was measured, what it should be."""

    name: str
    figure: str
    wanted: str
    kept: bool


def crawl_rows(rounds: int, pages: int) -> list[Row]:
    """Measure the crawl beside Scrapy and wget, interleaved, on one core."""
    site = write("web", hosts=40, pages=pages // 40)
    mine: list[Run] = []
    scrapy: list[Run] = []
    wget: list[Run] = []
    double: list[Run] = []
    default: list[Run] = []
    free_wget: list[Run] = []
    with served(site, PORT):
        for _ in range(rounds):
            mine.append(ours(site))
            scrapy.append(peer(site, "scrapy-warc", limit=700))
            wget.append(peer(site, "wget"))
            double.append(ours(site, workers=2, cores="0,1"))
            default.append(ours(site, workers=None, cores="0,1"))
            free_wget.append(peer(site, "wget", cores="0,1"))
    for run in (*mine, *scrapy, *wget, *double, *default, *free_wget):
        print(f"  {run.name}: {run.pages} pages, {run.cpu_ms_page:.2f} ms CPU a page, {run.pages_s:.0f} pages/s, "
              f"{run.rss_mb:.0f} MB", file=sys.stderr)  # fmt: skip

    def middle(runs: list[Run], field: str) -> float:
        return float(median(getattr(run, field) for run in runs))

    cpu, rate = middle(mine, "cpu_ms_page"), middle(mine, "pages_s")
    rows = [_captured(mine[0], pages)]
    for name, runs, cpu_wanted, rate_wanted in (
        ("scrapy-warc", scrapy, 10.0, 10.0),
        ("wget --warc-file", wget, 1.5, 2.0),
    ):
        less, faster = middle(runs, "cpu_ms_page") / cpu, rate / middle(runs, "pages_s")
        rows.append(
            Row(f"CPU a page, {name} / ours ({cpu:.2f} ms)", f"{less:.1f}x", f">= {cpu_wanted:g}x", less >= cpu_wanted)
        )
        rows.append(
            Row(f"pages/s, ours ({rate:.0f}) / {name}", f"{faster:.1f}x", f">= {rate_wanted:g}x", faster >= rate_wanted)
        )
    usual = middle(default, "pages_s") / middle(free_wget, "pages_s")
    rows.append(Row("pages/s, default crawl / default wget, two cores", f"{usual:.2f}x", ">= 2x", usual >= 2))
    twice = middle(double, "pages_s") / rate
    rows.append(Row("pages/s, two processes / one", f"{twice:.2f}x", ">= 1.5x", twice >= 1.5))
    peak = max(run.rss_mb for run in (*mine, *double))
    rows.append(Row("peak memory of a process", f"{peak:.0f} MB", "<= 180 MB", peak <= 180))
    known = bytes_per_url()
    rows.append(Row("memory of a known URL", f"{known:.0f} bytes", "<= 120", known <= 120))
    return rows


def _captured(run: Run, pages: int) -> Row:
    return Row("pages captured of those that exist", f"{run.pages} of {pages}", "all", run.pages == pages)


def polite_rows(hosts: int) -> list[Row]:
    """Crawl many hosts at a second's delay with two processes; the server's own log judges."""
    site = write("polite", hosts=hosts, pages=20, kb=20, links=40)
    with served(site, PORT, log=True):
        ours(site, workers=2, cores="0,1", delay=1.0)
        judge = subprocess.run([sys.executable, SCRIPTS / "politeness.py", site / "access.log", "--delay", "1.0"],
                               capture_output=True, text=True, check=False)  # fmt: skip
        seconds: Counter[int] = Counter()
        with (site / "access.log").open() as log:
            for line in log:
                end, _, _, _, path = line.split(" ", 4)
                seconds[int(float(end))] += path.strip() != "/robots.txt"
    best = max(sum(seconds[start + i] for i in range(10)) / 10 for start in seconds)
    print(f"  {judge.stdout.strip()}", file=sys.stderr)
    return [
        Row(f"polite: {hosts} hosts at 1 s, best ten seconds", f"{best:.0f} pages/s", ">= 400", best >= 400),
        Row("polite: too early or overlapping", judge.stdout.split(";")[-1].strip(), "0 and 0", judge.returncode == 0),
    ]


def frontier_rows(rows: int) -> list[Row]:
    """Measure the frontier's tables as shipped beside a hash-keyed one, at this many known URLs."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.frontier", "--rows", str(rows), "--folder", str(WORK)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[tuple[str, int], dict[str, float]] = {}
    for line in done.stdout.splitlines():
        print(f"  {line}", file=sys.stderr)
        row = json.loads(line)
        found[row["name"], row["known"]] = row
    small = min(known for _, known in found)
    add, hashed = found["add", rows]["rows_per_s"], found["hashed", rows]["rows_per_s"]
    growth = found["visit", rows]["us_per_row"] / found["visit", small]["us_per_row"]
    return [
        Row(f"frontier.add at {rows:,} known URLs", f"{add / 1000:.0f}k rows/s", ">= 60k", add >= 60_000),
        Row("frontier.add, ours / hash-keyed table", f"{add / hashed:.1f}x", ">= 3x", add >= 3 * hashed),
        Row(f"lease and settle, {rows:,} / {small:,}", f"{growth:.2f}x", "<= 1.5x", growth <= 1.5),
    ]


def warc_rows() -> list[Row]:
    """Measure the WARC writer beside warcio."""
    figures = warc.measure(write("web", hosts=40, pages=250))
    faster = figures.warcio_us / figures.ours_us
    return [
        Row(f"WARC writer, warcio / ours ({figures.ours_us:.0f} us)", f"{faster:.1f}x", ">= 6x", faster >= 6),
        Row("WARC size, ours / zlib 6", f"{figures.size_ratio:.3f}x", "<= 1.15x", figures.size_ratio <= 1.15),
    ]


def index_rows(pages: int) -> list[Row]:
    """Measure the index beside a plain one."""
    with tempfile.TemporaryDirectory() as folder:
        return [Row(*row) for row in index.measure(Path(folder), pages).rows()]


def search_rows(snapshots: int) -> list[Row]:
    """Measure search on generated archives, the largest of this many snapshots."""
    return [Row(*row) for row in search.figures(WORK, snapshots)]


def replay_rows(snapshots: int) -> list[Row]:
    """Measure replay and CDX over HTTP."""
    return [Row(*row) for row in replay.figures(WORK, snapshots)]


def main() -> None:
    """Measure what was asked for and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", default=["crawl", "polite", "warc", "frontier", "index", "search", "replay"]
    )
    parser.add_argument("--rounds", type=int, default=1, help="interleaved rounds of the crawl")
    parser.add_argument("--pages", type=int, default=10_000, help="pages of the crawl")
    parser.add_argument("--hosts", type=int, default=1000, help="hosts of the polite crawl")
    parser.add_argument("--rows", type=int, default=10_000_000, help="known URLs of the frontier")
    parser.add_argument("--snapshots", type=int, default=1_000_000, help="snapshots of search and replay")
    parser.add_argument("--indexed", type=int, default=3000, help="pages of the index")
    options = parser.parse_args()
    log.configure("WARNING")
    if (why := missing()) is not None:
        sys.exit(f"bench: {why}")
    if not HOLDFAST.exists() or shutil.which("nginx") is None:
        sys.exit("bench: needs `make setup services peers` first")
    if len(os.sched_getaffinity(0)) > 1:
        pin_to(max(os.sched_getaffinity(0)))
    WORK.mkdir(exist_ok=True)
    tempfile.tempdir = str(WORK)
    measure: dict[str, Callable[[], list[Row]]] = {
        "warc": warc_rows, "crawl": lambda: crawl_rows(options.rounds, options.pages),
        "polite": lambda: polite_rows(options.hosts), "frontier": lambda: frontier_rows(options.rows),
        "index": lambda: index_rows(options.indexed), "search": lambda: search_rows(options.snapshots),
        "replay": lambda: replay_rows(options.snapshots),
    }  # fmt: skip
    rows = [row for part in options.parts for row in measure[part]()]
    width = max(len(row.name) for row in rows)
    for row in rows:
        print(f"{row.name:<{width}}  {row.figure:>22}  {row.wanted:>10}  {'kept' if row.kept else 'MISSED'}")
    sys.exit(0 if all(row.kept for row in rows) else 1)


if __name__ == "__main__":
    main()
