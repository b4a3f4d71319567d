"""An engine that does nothing by itself, on a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from threading import Event
from typing import Any, cast

from holdfast.config import Settings
from holdfast.crawl.engine import CrawlEngine, EngineFactories
from holdfast.crawl.outcomes import PageUnderWay
from holdfast.crawl.progress import CrawlLimits
from holdfast.crawl.settling import FrontierSession, PendingResults
from holdfast.crawl.writer_thread import CaptureWriter
from holdfast.types import FetchRequest, FoundUrl, Outcome, UrlKind, Visit
from tests.unit.crawl.bed import Answer, Bed, attempt, fetched, make_bed


class Table:
    """A writer that takes pages and finishes none by itself."""

    def __init__(self) -> None:
        self.no_space = Event()
        self.taken: list[PageUnderWay] = []

    def put(self, page: PageUnderWay) -> None:
        self.taken.append(page)


def make_engine(bed: Bed) -> CrawlEngine:
    nothing = cast(Any, None)
    session = FrontierSession(
        frontier=nothing, originals=bed.originals, clock=bed.clock, execution_id=1, owner_id=1
    )  # fmt: skip
    results = PendingResults(session, nothing, bed.progress, nothing, forget=lambda _found: None)
    limits = CrawlLimits(bed.plan, bed.progress, ends_at=None)
    factories = EngineFactories(
        make_worker=lambda lease, lease_until: bed.make_worker(lease, lease_until, engine),
        make_writer=lambda: cast(CaptureWriter, Table()),
        read_again=lambda _reread: [],
    )
    engine = CrawlEngine(session, results, limits, bed.scope, bed.settings, factories)
    engine.look_for_room()
    return engine


def inside(work: Callable[[Bed, CrawlEngine], Awaitable[None]], settings: Settings | None = None) -> None:
    """Do something on a loop with an engine that does nothing by itself."""

    async def run() -> None:
        bed = make_bed({}, settings=settings)
        engine = make_engine(bed)
        try:
            await work(bed, engine)
        finally:
            engine.close()

    asyncio.run(run())


def page_under_way(bed: Bed, path: str = "x", body: bytes = b"page") -> PageUnderWay:
    one = attempt(f"http://a.test/{path}")
    hop = fetched(FetchRequest(url=one.url), Answer(body=body), bed.clock)
    return PageUnderWay(attempt=one, token=7, started_at=bed.clock.now(), hops=[hop], reason="ok")


def visit_of(bed: Bed, page: PageUnderWay, found: int = 0) -> Visit:
    assert page.attempt is not None
    now = bed.clock.now()
    links = tuple(FoundUrl(f"http://a.test/{n}", n, "a.test", UrlKind.PAGE, 1, 1) for n in range(found))
    return Visit(attempt=page.attempt, token=7, outcome=Outcome.SUCCESS, reason="ok", started_at=now,
                 finished_at=now, found=links)  # fmt: skip
