"""What the suites of feeds share: a source with executions that run, books on connections of their own, visits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import select

from holdfast.config import FeedSettings, Settings, Timings
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Feed, FeedItem, Job, Source
from holdfast.db.raw import RawDatabase
from holdfast.feeds.polling import FeedPolling
from holdfast.frontier import Frontier
from holdfast.types import Attempt, FoundUrl, ListedUrl, Outcome, PolledListing, UrlKind, Visit
from holdfast.urls import parse
from tests.clock import FakeClock

FEED = "http://a.test/feed"
INTERVAL = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Worker:
    """A book with the connection it stands on."""

    book: FeedPolling
    frontier: Frontier
    raw_db: RawDatabase


def _settings(**values: Any) -> Settings:
    limits = {f"feeds_{name}": values.pop(name) for name in list(values) if name in ("items", "waiting", "per_source")}
    return Settings(feeds=FeedSettings(**values), timings=Timings(**limits))


class Bed:
    """One source, and any number of workers that poll its feeds."""

    def __init__(self, url: str, clock: FakeClock, executions: int) -> None:
        self.url, self.clock = url, clock
        self.database = Database(url)
        self._raw_dbs: list[RawDatabase] = []
        now = clock.now()
        with self.database.write() as session:
            source = Source(code="ex", name="ex", enabled=True, config={"seeds": ["http://a.test/"], "feeds": True},
                            created_at=now, updated_at=now)  # fmt: skip
            session.add(source)
            session.flush()
            self.source_id = source.id
            for _ in range(executions):
                job = Job(source_id=source.id, kind="feed", fingerprint="", config={}, created_at=now, details={})
                session.add(job)
                session.flush()
                session.add(Execution(job_id=job.id, number=1, state="running", config={}, output_dir="",
                                      created_at=now, metrics={}, artifacts={}, storage={}))  # fmt: skip
                session.flush()

    def worker(self, execution_id: int = 1, *, start: str | None = None, polls: bool = True, **settings: Any) -> Worker:
        """Open one more worker, as another process would have it."""
        self._raw_dbs.append(connect(self.url))
        raw_db = self._raw_dbs[-1]
        frontier = Frontier(raw_db, self.clock)
        polling = FeedPolling(
            raw_db,
            frontier,
            self.clock,
            _settings(**settings),
            source_id=self.source_id,
            execution_id=execution_id,
            polls=polls,
            start=None if start is None else parse(start).hash64,
        )
        return Worker(polling, frontier, raw_db)

    def close(self) -> None:
        """Let go of all connections."""
        for raw_db in self._raw_dbs:
            raw_db.close()
        self.database.close()

    def visit(self, url: str = FEED, **changes: Any) -> Visit:
        """Return a good visit of a feed now, or one with these changes; time passes a second."""
        self.clock.advance(1)
        kind, depth = changes.pop("kind", UrlKind.SITEMAP), changes.pop("depth", 0)
        attempt = Attempt(id=1, page_id=77, domain_id=1, url=url, url_hash=parse(url).hash64, kind=kind, depth=depth,
                          number=1, priority=3)  # fmt: skip
        facts: dict[str, Any] = {"outcome": Outcome.SUCCESS, "reason": "ok", "status": 200}
        now = self.clock.now()
        return Visit(attempt=attempt, token=1, started_at=now, finished_at=now, **{**facts, **changes})

    def document(self, *paths: str | tuple[str, datetime], url: str = FEED, **changes: Any) -> Visit:
        """Return the visit of a feed that names these paths."""
        items = tuple(listed(path) for path in paths)
        body = changes.pop("content_hash", sha256(str(paths).encode()).hexdigest())
        return self.visit(
            url, listing=PolledListing(is_feed=True, items=items, named=len(items)), content_hash=body, **changes
        )

    def failure(self, status: int | None, url: str = FEED, **changes: Any) -> Visit:
        """Return the visit of a feed that did not go well."""
        outcome = Outcome.FAILED if status is None else Outcome.BLOCKED_4XX if status < 500 else Outcome.BLOCKED_5XX
        listing = None if status is None else PolledListing(**changes)
        return self.visit(url, outcome=outcome, status=status, reason=f"http_{status}", listing=listing)

    def add(self, url: str = FEED, **facts: Any) -> Feed:
        """Let the source have a feed."""
        now = self.clock.now()
        made = Feed(**{"source_id": self.source_id, "url": url, "url_hash": parse(url).hash64, "kind": "feed",
                       "origin": "configured", "created_at": now, "next_poll_at": now, "consecutive_errors": 0,
                       **facts})  # fmt: skip
        with self.database.write() as session:
            session.add(made)
            session.flush()
            return made

    def feed(self, url: str = FEED) -> Feed | None:
        """Return a feed as it is now."""
        with self.database.read() as session:
            one = select(Feed).where(Feed.source_id == self.source_id, Feed.url_hash == parse(url).hash64)
            return session.scalars(one).one_or_none()

    def known(self, url: str = FEED) -> Feed:
        """Return a feed that must be there."""
        found = self.feed(url)
        assert found is not None, f"{url} is no feed"
        return found

    def items(self) -> dict[str, int | None]:
        """Return who took each item, by path."""
        with self.database.read() as session:
            rows = session.query(FeedItem.url, FeedItem.execution_id).order_by(FeedItem.id).all()
        return {url.removeprefix("http://a.test"): execution for url, execution in rows}

    def queued(self) -> list[tuple[int, str, str]]:
        """Return what was enqueued, in order: execution, kind, path."""
        statement = "SELECT c.execution_id, c.kind, p.url FROM page_crawls c JOIN pages p ON p.id = c.page_id"
        with closing(connect(self.url)) as raw_db, raw_db.read() as tx:
            return sorted((row[0], row[1], row[2].removeprefix("http://a.test")) for row in tx.execute(statement))

    def end(self, execution_id: int) -> None:
        """Close an execution."""
        with self.database.write() as session:
            session.get_one(Execution, execution_id).state = "completed"


def listed(path: str | tuple[str, datetime], kind: UrlKind = UrlKind.PAGE) -> ListedUrl:
    """Return a path of the site, with its date if it has one."""
    name, told_at = path if isinstance(path, tuple) else (path, None)
    url = parse(f"http://a.test{name}")
    return ListedUrl(FoundUrl(url.fetch, url.hash64, url.domain, kind, 0, 0), told_at)


def children(paths: Sequence[str | tuple[str, datetime]]) -> PolledListing:
    """Return what an index of sitemaps says."""
    return PolledListing(children=tuple(listed(path, UrlKind.SITEMAP) for path in paths), named=len(paths))


@contextmanager
def open_bed(url: str, clock: FakeClock, executions: int = 2) -> Iterator[Bed]:
    """Open a bed and close it."""
    bed = Bed(url, clock, executions)
    try:
        yield bed
    finally:
        bed.close()
