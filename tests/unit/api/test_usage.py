"""What is counted, and that counting waits for nobody."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest

from holdfast.api import lifespan
from holdfast.api.middleware.request_ids import usage_of
from holdfast.feedback import UsageTally, Use
from tests.client import Client, asking
from tests.clock import FakeClock
from tests.unit.api.conftest import MakeArchive, MakeClient

_REPORT = {"category": "takedown", "description": "Please take this page down, it is mine."}


def _searches(tally: UsageTally) -> int:
    [counts] = tally.days(1).values()
    return counts[Use.SEARCH]


@pytest.mark.parametrize(
    ("method", "path", "use"),
    [("GET", "/api/search", Use.SEARCH), ("GET", "/api/snapshot/12", Use.DETAIL),
     ("GET", "/api/snapshots/12/view", Use.DETAIL), ("GET", "/api/snapshots/12/views", None),
     ("GET", "/api/snapshots/raw/12", Use.RAW), ("GET", "/api/snapshots/12/latest", None),
     ("HEAD", "/api/search", None), ("GET", "/api/searches", None), ("GET", "/api/snapshot/x", None)],
)  # fmt: skip
def test_which_requests_count(method: str, path: str, use: Use | None) -> None:
    assert usage_of(method, path) == use


def test_only_good_answers_count(empty_client: Client) -> None:
    client = empty_client
    client.get("/api/snapshot/1")
    client.post("/api/reports", json=_REPORT)
    client.post("/api/reports", json={})

    totals = client.get("/api/usage").json()["totals"]

    assert totals == {"searchRequests": 0, "snapshotDetailViews": 0, "rawSnapshotViews": 0, "reportSubmissions": 1}


def test_the_window_ends_today_and_has_a_row_a_day(
    make_client: MakeClient, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.api.routes.archive.USAGE_DAYS", 3)
    client = make_client()
    client.post("/api/reports", json=_REPORT)
    clock.advance(86_400)
    client.post("/api/reports", json=_REPORT)

    shown = client.get("/api/usage").json()
    clock.advance(2 * 86_400)
    later = client.get("/api/usage").json()

    assert [(day["date"], day["reportSubmissions"]) for day in shown["daily"]] == [
        ("2026-08-31", 0), ("2026-09-01", 1), ("2026-09-02", 1)
    ]  # fmt: skip
    assert (shown["enabled"], shown["windowDays"], shown["totals"]["reportSubmissions"]) == (True, 3, 2)
    assert later["totals"]["reportSubmissions"] == 1


def test_counting_that_is_off_shows_nothing(make_client: MakeClient) -> None:
    client = make_client(usage=False)
    client.post("/api/reports", json=_REPORT)

    shown = client.get("/api/usage").json()

    assert (shown["enabled"], shown["daily"], set(shown["totals"].values())) == (False, [], {0})


def test_what_was_counted_survives_in_the_database(make_archive: MakeArchive) -> None:
    archive = make_archive()
    first = UsageTally(archive.database, archive.clock)
    for _ in range(3):
        first.count(Use.RAW)
    first.flush()
    second = UsageTally(archive.database, archive.clock)
    second.count(Use.RAW)
    second.flush()
    second.flush()

    with asking(archive) as client:
        assert client.get("/api/usage").json()["totals"]["rawSnapshotViews"] == 4


def test_counts_are_kept_while_the_database_is_away(make_archive: MakeArchive) -> None:
    archive = make_archive()
    tally = UsageTally(archive.database, archive.clock)
    tally.count(Use.SEARCH)
    path = archive.home / "holdfast.db"
    archive.database.close()
    path.rename(path.with_suffix(".away"))
    path.mkdir()

    tally.flush()
    path.rmdir()
    path.with_suffix(".away").rename(path)

    assert _searches(tally) == 1
    tally.flush()
    assert _searches(UsageTally(archive.database, archive.clock)) == 1


def test_what_cannot_be_written_now_and_then_ends_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifespan, "_FLUSH_S", 0.0)
    tried, written = Counter[str](), threading.Event()

    def broken() -> None:
        tried["broken"] += 1
        raise ZeroDivisionError

    def good() -> None:
        tried["good"] += 1
        if tried["good"] == 2:
            written.set()

    async def run() -> None:
        writing = asyncio.create_task(lifespan._write_counts((broken, good)))
        while not (written.is_set() or writing.done()):  # noqa: ASYNC110 - a thread sets no event of the loop
            await asyncio.sleep(0.001)
        assert not writing.done()
        writing.cancel()

    asyncio.run(run())
    assert tried["broken"] >= 2
