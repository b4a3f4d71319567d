"""What fault tests share: patience with a deadline, kills at moments that can be repeated, failpoints by token."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests import patience
from tests.flow.crawler import Crawler, fetched
from tests.site import Site

T = TypeVar("T")


def until(condition: Callable[[], T], *, within_s: float, what: str) -> T:
    """Return what the condition gives as soon as that is something; fail with these words if it takes too long."""
    deadline = time.monotonic() + patience.deadline(within_s)
    while True:
        began = time.process_time()
        if found := condition():
            return found
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        # To ask costs milliseconds of CPU where a database is opened for it: no core is kept busy by asking.
        threading.Event().wait(min(max(0.01, 3 * (time.process_time() - began)), 0.1))


def grown(site: Site, *, by: int) -> None:
    """Wait until the site was asked so often again."""
    goal = len(site.log()) + by
    until(lambda: len(site.log()) >= goal, within_s=30, what=f"{by} more requests")


def seeds(site: Site) -> list[str]:
    """Return the front page of every host."""
    return [site.url(host) for host in range(len(site.hosts))]


def rows(crawler: Crawler, statement: str) -> list[tuple[Any, ...]]:
    """Return what a statement gives."""
    with closing(crawler.raw_db()) as raw_db, raw_db.read() as tx:
        return tx.execute(statement)


def settled(crawler: Crawler) -> int:
    """Return how many attempts are closed; 0 while there is no database yet. A crawl that could not begin fails."""
    found = 0
    if crawler.database_url is not None or (crawler.home / "holdfast.db").exists():
        try:
            found = int(rows(crawler, "SELECT coalesce(sum(succeeded + failed + ruled_out), 0) FROM queues")[0][0])
        except Exception as exc:
            if "queues" not in str(exc):  # the tables are not there yet
                raise
    if not found:
        crawler.demand_begun()
    return found


def total(crawler: Crawler, count: str) -> int:
    """Return the sum of one running total over all processes."""
    with closing(crawler.raw_db()) as raw_db, raw_db.read() as tx:
        if raw_db.dialect == "postgresql":
            found = tx.execute(f"SELECT coalesce(sum((counts->>'{count}')::bigint), 0) FROM execution_counts")
        else:
            found = tx.execute(f"SELECT coalesce(sum(json_extract(counts, '$.{count}')), 0) FROM execution_counts")
    return int(found[0][0])


def settled_twice(crawler: Crawler) -> int:
    """Return how many pages have two attempts that both ended well."""
    return int(
        rows(
            crawler,
            "SELECT count(*) FROM (SELECT page_id FROM page_crawls WHERE outcome = 'success'"
            " GROUP BY execution_id, page_id HAVING count(*) > 1) twice",
        )[0][0]
    )


def lost(crawler: Crawler, site: Site) -> list[str]:
    """Return the pages of the site that were not captured."""
    outcomes = crawler.outcomes()
    return [url for url in site.urls() if outcomes.get(url, ("absent", ""))[0] != "success"]


def extra(site: Site) -> int:
    """Return how many requests for pages were more than one a page."""
    counts = fetched(site.log())
    return counts.total() - len(counts)


@dataclass(slots=True)
class Killer:
    """Kills crawl processes one after the other, each after a random amount of progress."""

    crawler: Crawler
    site: Site
    chance: random.Random
    number: signal.Signals = signal.SIGKILL

    def strike(self, process: subprocess.Popen[str], times: int) -> int:
        """Kill so often and return how many processes were hit: fewer if the crawl ends before."""
        for struck in range(times):
            goal = len(self.site.log()) + self.chance.randrange(10, 40)
            while len(self.site.log()) < goal:
                if process.poll() is not None:
                    return struck
                threading.Event().wait(0.005)
            victims = until(
                lambda: self.crawler.processes() or process.poll() is not None, within_s=10, what="a victim"
            )
            if not isinstance(victims, list):
                return struck
            os.kill(self.chance.choice(victims), self.number)
        return times


def arm(folder: Path, *places: str, times: int = 1) -> Path:
    """Lay tokens for failpoints into a folder and return it: each place acts so often, over all processes."""
    folder.mkdir(exist_ok=True)
    for place in places:
        for number in range(times):
            (folder / f"{place}.{number}").touch()
    return folder


def disarmed(folder: Path) -> bool:
    """Return whether every token was taken."""
    return not any(folder.iterdir())
