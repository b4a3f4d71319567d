"""A source with feeds on the misbehaving web: the test edits what is published, a real worker polls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from holdfast import config
from holdfast.db.models import Feed, FeedItem, JobEvent
from holdfast.feeds import queries, registry
from holdfast.jobs.administration.source_jobs import follow_feeds, run_soon
from holdfast.sources import registry as sources
from holdfast.sources.queries import find_source
from holdfast.wiring.jobs import Jobs, open_jobs
from tests.flow.crawler import Crawler
from tests.site import Site
from tests.site.wire import Exchange

_QUICK = {
    "HOLDFAST_ALLOW_NETWORKS": "127.0.0.0/8", "HOLDFAST_TIMINGS_JOBS_POLL_S": "0.1", "HOLDFAST_WORKER_PROCESSES": "1",
    "HOLDFAST_FEEDS_MAX_AGE_DAYS": "36500",
}  # fmt: skip
CODE = "ex"


@dataclass
class Press:
    """A feed that the test edits, with an ETag that changes with it."""

    items: list[tuple[str, str]] = field(default_factory=list)
    """Path and date, the newest first."""
    status: int = 200
    edition: int = 1

    def publish(self, path: str, date: str = "Tue, 10 Nov 2026 10:00:00 GMT") -> None:
        """Put an item on top; one that is there already comes back with another date."""
        self.items = [(path, date), *((known, at) for known, at in self.items if known != path)]
        self.edition += 1

    async def serve(self, exchange: Exchange) -> None:
        """Answer as a well-behaved server does."""
        tag = f'"e{self.edition}"'
        if self.status != 200:
            await exchange.reply("no more", status=self.status, media="text/plain")
        elif exchange.request.headers.get("if-none-match") == tag:
            await exchange.reply(status=304, headers=[("ETag", tag)])
        else:
            body = "".join(f"<item><link>{path}</link><pubDate>{date}</pubDate></item>" for path, date in self.items)
            await exchange.reply(f"<rss><channel>{body}</channel></rss>", headers=[("ETag", tag)],
                                 media="application/rss+xml")  # fmt: skip


async def robots(exchange: Exchange) -> None:
    """A robots.txt that names an index of sitemaps."""
    await exchange.reply(f"User-agent: *\nDisallow:\nSitemap: {exchange.url('/map.xml')}\n", media="text/plain")


async def index(exchange: Exchange) -> None:
    """An index with one sitemap of this year, and one of old."""
    parts = (("/part.xml", "2026-11-10"), ("/old.xml", "1801-01-01"))
    body = "".join(f"<sitemap><loc>{exchange.url(path)}</loc><lastmod>{day}</lastmod></sitemap>" for path, day in parts)
    await exchange.reply(f"<sitemapindex>{body}</sitemapindex>", media="application/xml")


async def part(exchange: Exchange) -> None:
    """A sitemap with a page of this year, one of old, and one of another site."""
    pages = ((exchange.url("/listed"), "2026-11-10"), (exchange.url("/ancient"), "1801-01-01"),
             ("https://elsewhere.example/", "2026-11-10"))  # fmt: skip
    body = "".join(f"<url><loc>{url}</loc><lastmod>{day}</lastmod></url>" for url, day in pages)
    await exchange.reply(f"<urlset>{body}</urlset>", media="application/xml")


async def front(exchange: Exchange) -> None:
    """A start page that names its feed, and a page that no poll follows."""
    head = '<link rel="alternate" type="application/rss+xml" href="press.rss">'
    await exchange.reply(f"<html><head>{head}</head><body><a href='/elsewhere'>more</a></body></html>")


async def article(exchange: Exchange) -> None:
    """A page with something it needs, and a link that no poll follows."""
    await exchange.reply(
        "<html><body><img src='/pixel.png'><p>fresh words</p><a href='/not-followed'>x</a></body></html>"
    )


class FeedBed:
    """One source of one site."""

    def __init__(self, crawler: Crawler, site: Site, **fields: Any) -> None:
        self.crawler, self.site = crawler, site
        crawler.environment.update(_QUICK)
        content = {"code": CODE, "config": {"seeds": [site.url(0)], "feeds": True, "delay_s": 0.0, **fields}}
        with self.jobs() as jobs, jobs.database.write() as session:
            sources.create(session, jobs.clock, sources.read_spec(content))

    @contextmanager
    def jobs(self) -> Iterator[Jobs]:
        """Open the jobs of this installation in the test's own process."""
        with open_jobs(config.load(home=self.crawler.home, database_url=self.crawler.database_url)) as jobs:
            yield jobs

    def ask(self) -> None:
        """Make everything due that may be, and queue the poll."""
        with self.jobs() as jobs, jobs.database.write() as session:
            source = find_source(session, CODE)
            follow_feeds(session, jobs.actions, source, jobs.settings.feeds)
            registry.make_due(jobs.clock, queries.feeds_of_source(session, source_id=source.id), jobs.settings.feeds)
            run_soon(session, jobs.clock, jobs.actions, source.id)

    def work(self, **extra: str) -> dict[str, Any]:
        """Let a worker do what is due, and return what it says."""
        self.crawler.environment.update(extra)
        done = self.crawler.run("start-worker", "--once", "--json", timeout_s=120)
        for name in extra:
            del self.crawler.environment[name]
        assert done.returncode == 0, f"{done.stderr}\n{self.crawler.log()[-2000:]}"
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said

    def poll(self, **extra: str) -> Counter[str]:
        """Have the feeds polled and return what was asked for meanwhile, robots.txt left out."""
        before = len(self.site.log())
        self.ask()
        said = self.work(**extra)
        assert said["endings"] == {"completed": 1}, f"{said}\n{self.crawler.log()[-3000:]}"
        return Counter(entry.path for entry in self.site.settled()[before:] if entry.path != "/robots.txt")

    def feeds(self) -> dict[str, Feed]:
        """Return the feeds by their path."""
        with self.jobs() as jobs, jobs.database.read() as session:
            source = find_source(session, CODE)
            rows = queries.feeds_of_source(session, source_id=source.id)
        return {row.url.removeprefix(self.site.url(0, "")): row for row in rows}

    def told_disabled(self) -> list[int]:
        """Return the feeds of which an event says that they were disabled."""
        with self.jobs() as jobs, jobs.database.read() as session:
            details = [row.data.get("details", {}) for row in session.scalars(select(JobEvent).order_by(JobEvent.id))]
        return [one["feed_disabled"] for one in details if "feed_disabled" in one]

    def items(self, feed: Feed) -> dict[str, FeedItem]:
        """Return what a feed named, by path."""
        with self.jobs() as jobs, jobs.database.read() as session:
            rows = queries.items_of(session, source_id=feed.source_id, feed_id=feed.id, limit=1000)
        return {row.url.removeprefix(self.site.url(0, "")): row for row in rows}
