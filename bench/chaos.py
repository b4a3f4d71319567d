"""The long proof: `python -m bench.chaos` crawls many hosts of the benchmark web while everything is killed at random.

Crawl processes, the supervisor and the database are killed with -9, each start may run under another host name, and the
same command goes on. At the end every page of the web must be captured once, no host asked too early or twice at once
(by the server's own log), and every file sealed and whole. Prints one JSON object; exits 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.crawl import HOLDFAST
from bench.web import SCRIPTS, WORK, missing, served, write
from holdfast.db import connect
from holdfast.warc.reader import read_records
from holdfast.warc.verify import verify_file
from tests.postgres import Postgres, find_binaries

PORT = 8090
_PACE_S = (4.0, 12.0)
"""The least and the most time between two blows."""
_AWAY_S = (0.5, 4.0)
"""How long a killed database stays away."""


class Crawl:
    """The command of a user, started again whenever it was killed, each time on a machine with another name."""

    def __init__(self, site: Path, home: Path, database_url: str, *, delay: float, workers: int) -> None:
        self._home = home
        self._arguments = [
            *(str(HOLDFAST), "crawl", "--seeds", str(site / "seeds.txt"), "--scope", "host", "--delay", str(delay)),
            *("--allow-network", "127.0.0.0/8", "--workers", str(workers), "--no-sitemaps", "--json"),
            *("--contact", "bench@example.org", "--home", str(home)),
        ]
        self._environment = {**os.environ, "HOLDFAST_DATABASE_URL": database_url}
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Type the command, under a host name of its own."""
        self.starts += 1
        name = f"machine-{self.starts}"
        renamed = ["unshare", "--uts", "sh", "-c", f'hostname {name} && exec "$0" "$@"', *self._arguments]
        with (self._home.parent / f"start-{self.starts}.log").open("wb") as log:
            self.process = subprocess.Popen(renamed, env=self._environment, stdout=log, stderr=log)

    def last_words(self) -> str:
        """Return what the last start printed."""
        return (self._home.parent / f"start-{self.starts}.log").read_text()[-3000:]

    def processes(self) -> list[int]:
        """Return the crawl processes that work on this home."""
        found = []
        home = f"HOLDFAST_HOME={self._home.resolve()}\0".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    command = (entry / "cmdline").read_bytes()
                    if b"holdfast.crawl.process" in command and home in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
        return found


def strike(crawl: Crawl, postgres: Postgres, chance: random.Random, blows: Counter[str]) -> None:
    """Kill one of the three, and bring back what does not come back by itself."""
    assert crawl.process is not None
    what = chance.choice(("process", "process", "supervisor", "database"))
    if what == "process":
        if not (victims := crawl.processes()):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(victims), signal.SIGKILL)
    elif what == "supervisor":
        crawl.process.kill()
        crawl.process.wait()
        crawl.start()
    else:
        postgres.kill()
        time.sleep(chance.uniform(*_AWAY_S))
        postgres.start()
    blows[what] += 1


def run(crawl: Crawl, postgres: Postgres, *, blows: int, chance: random.Random, limit_s: float) -> Counter[str]:
    """Crawl to the end through so many blows, or until the time is up."""
    struck: Counter[str] = Counter()
    crawl.start()
    assert crawl.process is not None
    ends = time.monotonic() + limit_s
    next_blow = time.monotonic() + chance.uniform(*_PACE_S)
    while True:
        time.sleep(0.2)
        code = crawl.process.poll()
        if code == 0:
            return struck
        if code is not None:
            struck[f"exit {code}"] += 1
            print(f"start {crawl.starts} ended with {code}: {crawl.last_words()}", file=sys.stderr)
            crawl.start()
        if time.monotonic() > ends:
            sys.exit(f"not done after {limit_s:.0f} s: {dict(struck)}\n{crawl.last_words()}")
        if time.monotonic() >= next_blow and struck.total() < blows:
            strike(crawl, postgres, chance, struck)
            next_blow = time.monotonic() + chance.uniform(*_PACE_S)


def captured(home: Path) -> tuple[Counter[str], int, list[str]]:
    """Return how often each address has a response in the sealed files, how many files, and what is wrong with them."""
    found: Counter[str] = Counter()
    faults = [f"{path.name} is open" for path in home.rglob("*.open")]
    files = sorted(home.rglob("*.warc.gz"))
    for path in files:
        if not (checked := verify_file(path)).ok:
            faults.append(f"{path.name}: {checked.problems[:1]}")
        found.update(_responses(path))
    return found, len(files), faults


def _responses(path: Path) -> Iterator[str]:
    for record in read_records(path):
        if record.head.type == "response" and (url := record.head.get("WARC-Target-URI")) is not None:
            yield url


def settled(database_url: str) -> tuple[dict[str, int], int, int]:
    """Return attempts by outcome, pages with two successes, and attempts that are still open."""
    twice = (
        "SELECT count(*) FROM (SELECT 1 FROM page_crawls WHERE outcome = 'success'"
        " GROUP BY execution_id, page_id HAVING count(*) > 1) x"
    )
    with closing(connect(database_url)) as raw_db, raw_db.read() as tx:
        outcomes = {
            str(word): int(count) for word, count in tx.execute("SELECT outcome, count(*) FROM page_crawls GROUP BY 1")
        }
        return outcomes, int(tx.execute(twice)[0][0]), outcomes.pop("None", 0)


def main() -> None:
    """Crawl, strike, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("hosts", 2000), ("pages", 100), ("kb", 4), ("links", 20), ("blows", 40), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=5400.0, help="seconds after which it is given up")
    asked = parser.parse_args()
    if (lack := missing()) is not None or (binaries := find_binaries()) is None:
        sys.exit(lack or "PostgreSQL is not installed; `tools/services` installs it")
    site = write("chaos", hosts=asked.hosts, pages=asked.pages, kb=asked.kb, links=asked.links, port=PORT)
    folder = Path(tempfile.mkdtemp(prefix="holdfast-chaos-", dir=WORK))
    postgres = Postgres(binaries)
    url = postgres.fresh()
    crawl = Crawl(site, folder / "home", url, delay=asked.delay, workers=asked.workers)
    began = time.monotonic()
    try:
        with served(site, PORT, log=True):
            chance = random.Random(asked.seed)
            blows = run(crawl, postgres, blows=asked.blows, chance=chance, limit_s=asked.limit)
            took = time.monotonic() - began
        judged = subprocess.run(
            [sys.executable, SCRIPTS / "politeness.py", site / "access.log", "--delay", str(asked.delay)],
            capture_output=True,
            text=True,
            check=False,
        )
        report = _report(site, folder / "home", url, blows, judged)
        print(json.dumps({"seconds": round(took), "starts": crawl.starts, **report}, indent=1))
        sys.exit(0 if report["kept"] else 1)
    finally:
        if crawl.process is not None and crawl.process.poll() is None:
            crawl.process.kill()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _report(
    site: Path, home: Path, url: str, blows: Counter[str], judged: subprocess.CompletedProcess[str]
) -> dict[str, object]:
    wanted = set((site / "urls.txt").read_text().split())
    found, files, faults = captured(home)
    outcomes, twice, still_open = settled(url)
    missing_pages = sorted(wanted - set(found))
    kept = not missing_pages and not faults and not twice and not still_open and judged.returncode == 0
    return {
        "blows": dict(blows),
        "pages": len(wanted),
        "captured": len(wanted & set(found)),
        "missing": missing_pages[:5],
        "asked again after a blow": sum(count - 1 for one, count in found.items() if one in wanted),
        "settled twice": twice,
        "still open": still_open,
        "outcomes": outcomes,
        "files": files,
        "faults": faults[:5],
        "politeness": judged.stdout.strip(),
        "kept": kept,
    }


if __name__ == "__main__":
    main()
