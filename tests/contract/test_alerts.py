"""Alerts and what monitors read: judged once by whoever has the turn, told as events, never falling, bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from threading import Barrier, Thread
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select

from holdfast.db.engine import Database
from holdfast.db.models import Alert, Event, Execution, Job, JobEvent, Owner, Source
from holdfast.jobs.alerts import AlertName, judge, look_for_alerts
from holdfast.jobs.pauses import end_pause
from holdfast.jobs.views.recorded import read_recorded
from holdfast.metrics import RecordedFigures, textfile
from holdfast.series.counting import Counts
from holdfast.series.queries import SeriesPoint, add_to_series
from holdfast.series.thinning import thin_out
from tests.api_bed import Server
from tests.client import asking
from tests.clock import FakeClock

_NOW = FakeClock().now()


def _points(*minutes: dict[str, int], queue: int = 0) -> list[SeriesPoint]:
    points = []
    for number, counts in enumerate(minutes):
        queue += counts.get("queue", 0)
        points.append(SeriesPoint(_NOW + timedelta(minutes=number), Counter(counts), 1, queue))
    return points


_BAD = {"status_2xx": 7, "status_4xx": 2, "status_5xx": 1}


@pytest.mark.parametrize(
    ("points", "fires"),
    [
        (_points(*[_BAD] * 5), {AlertName.HIGH_ERROR_RATE}),
        (_points(*[{"status_2xx": 8, "status_5xx": 2}] * 5), set()),
        (_points(*[_BAD] * 4, {"status_2xx": 9}), set()),
        (_points(*[_BAD] * 4, {}), set()),
        (_points(*[{"status_4xx": 1}] * 5), set()),
        (_points(*[{"queue": 300}] * 5, queue=1000), {AlertName.FRONTIER_BACKLOG}),
        (_points(*[{"queue": 100}] * 5, queue=1000), set()),
        (_points(*[{"queue": 300}] * 5, queue=900), set()),
        ([], set()),
    ],
)
def test_what_is_wrong_for_five_minutes_is_an_alert(points: list[SeriesPoint], fires: set[AlertName]) -> None:
    assert {one.name for one in judge(points, [], now=_NOW)} == fires


def test_a_worker_that_is_silent_for_more_than_two_minutes_is_an_alert() -> None:
    def worker(number: int, seconds: float) -> Owner:
        return Owner(id=number, host="a", kind="worker", heartbeat_at=_NOW - timedelta(seconds=seconds))

    assert judge([], [worker(1, 120)], now=_NOW) == []
    (found,) = judge([], [worker(1, 10), worker(2, 121), worker(3, 200)], now=_NOW)
    assert (found.name, found.value, found.since) == (AlertName.WORKER_SILENT, 200.0, _NOW - timedelta(seconds=200))
    assert "a/3 and 1 more" in found.message


def test_run_without_a_new_page_for_an_hour_is_an_alert() -> None:
    def run(number: int, minutes: float) -> tuple[int, str, datetime]:
        return number, "ex", _NOW - timedelta(minutes=minutes)

    assert judge([], [], [run(1, 60)], now=_NOW) == []
    (found,) = judge([], [], [run(2, 90), run(3, 61), run(1, 5)], now=_NOW)
    assert (found.name, found.value) == (AlertName.CRAWL_STALLED, 5400.0)
    assert "execution 2 of ex and 1 more" in found.message


def test_run_that_only_fails_is_an_alert_until_it_captures(database: Database, clock: FakeClock) -> None:
    number = _execution(database, clock.now())
    with database.write() as session:
        job = session.query(Job).one()
        job.lock_token, job.lock_acquired_at = "t", clock.now()
    _record(database, number, clock.now(), pages=1)
    clock.advance(3700)
    _record(database, number, clock.now(), failed=5)
    _tell(database, "job:progress", number, clock.now())

    assert look_for_alerts(database, clock, every_s=5)
    assert _told(database) == [("alert.firing", "crawl_stalled")]
    _record(database, number, clock.now(), pages=1)
    clock.advance(301)
    assert look_for_alerts(database, clock, every_s=5)
    assert _told(database)[-1] == ("alert.resolved", "crawl_stalled")


def test_paused_and_resumed_runs_are_not_stalled(database: Database, clock: FakeClock) -> None:
    number = _execution(database, clock.now())
    with database.write() as session:
        job, run = session.query(Job).one(), session.query(Execution).one()
        job.lock_token = "t"
        job.lock_acquired_at = run.paused_at = clock.now()
    clock.advance(4000)
    assert look_for_alerts(database, clock, every_s=5)

    with database.write() as session:
        end_pause(session.query(Execution).one(), now=clock.now())
    _tell(database, "job:status", number, clock.now())
    clock.advance(60)
    assert look_for_alerts(database, clock, every_s=5)
    assert _told(database) == []


def test_retry_is_measured_by_the_captures_of_its_frontier(database: Database, clock: FakeClock) -> None:
    first = _execution(database, clock.now())
    with database.write() as session:
        job, run = session.query(Job).one(), session.query(Execution).one()
        job.lock_token, job.lock_acquired_at, run.state = "t", clock.now(), "failed"
        session.add(Execution(job_id=job.id, number=2, state="running", output_dir="", created_at=clock.now(),
                              frontier_id=first))  # fmt: skip
    clock.advance(3700)
    _record(database, first, clock.now(), pages=1)

    assert look_for_alerts(database, clock, every_s=5)
    assert _told(database) == []


def _tell(database: Database, name: str, execution_id: int, at: datetime) -> None:
    with database.write() as session:
        session.add(JobEvent(at=at, name=name, job_id=1, execution_id=execution_id, data={}))


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    opened = Database(migrated_url)
    yield opened
    opened.close()


def _execution(database: Database, now: datetime, code: str = "a") -> int:
    with database.write() as session:
        source = Source(code=code, name=code, created_at=now, updated_at=now)
        session.add(source)
        session.flush()
        job = Job(source_id=source.id, kind="adhoc", fingerprint=code, created_at=now)
        session.add(job)
        session.flush()
        run = Execution(job_id=job.id, number=1, state="running", output_dir="", created_at=now, started_at=now)
        session.add(run)
        session.flush()
        return run.id


def _record(database: Database, execution_id: int, now: datetime, **counts: int) -> None:
    with database.write() as session:
        add_to_series(session, execution_id, Counter(counts), now=now)


def _told(database: Database) -> list[tuple[str, str]]:
    with database.read() as session:
        rows = session.scalars(select(Event).where(Event.name.like("alert.%")).order_by(Event.id))
        return [(row.name, row.data["name"]) for row in rows]


def test_an_alert_fires_once_is_seen_again_and_is_resolved(database: Database, clock: FakeClock) -> None:
    run = _execution(database, clock.now())
    for _ in range(5):
        _record(database, run, clock.now(), **_BAD)
        clock.advance(60)
    for _ in range(3):
        assert look_for_alerts(database, clock, every_s=5)
        assert not look_for_alerts(database, clock, every_s=5), "it is not the turn of anybody"
        clock.advance(5)
    with database.read() as session:
        (row,) = session.scalars(select(Alert)).all()
        assert (row.name, row.severity, row.resolved_at, row.value) == ("high_error_rate", "warning", None, 0.3)
        assert row.last_seen_at > row.since
    # A good minute, and four without any: it is not over before it was well for as long as it had to go wrong.
    _record(database, run, clock.now(), status_2xx=100)
    for _ in range(4):
        clock.advance(60)
        look_for_alerts(database, clock, every_s=5)
    assert _told(database) == [("alert.firing", "high_error_rate")]
    clock.advance(60)
    look_for_alerts(database, clock, every_s=5)

    assert _told(database) == [("alert.firing", "high_error_rate"), ("alert.resolved", "high_error_rate")]
    with database.read() as session:
        (event, *_) = session.scalars(select(Event).order_by(Event.id)).all()
        assert event.data.keys() == {"name", "severity", "since", "value", "message"}
    clock.advance(100 * 86_400)
    look_for_alerts(database, clock, every_s=5)
    with database.read() as session:
        assert session.scalars(select(Alert)).all() == [], "an old one is let go"


def test_a_clock_that_was_a_year_ahead_keeps_nobody_from_looking(database: Database, clock: FakeClock) -> None:
    clock.shift_wall(365 * 86_400)
    assert look_for_alerts(database, clock, every_s=5)
    clock.shift_wall(-365 * 86_400)

    assert look_for_alerts(database, clock, every_s=5)
    clock.shift_wall(-3)
    assert not look_for_alerts(database, clock, every_s=5), "clocks of two machines differ by as much"
    clock.advance(8)
    assert look_for_alerts(database, clock, every_s=5)


def test_of_many_that_look_at_once_one_tells(migrated_url: str, clock: FakeClock) -> None:
    databases = [Database(migrated_url) for _ in range(4)]
    with databases[0].write() as session:
        silent = clock.now() - timedelta(minutes=3)
        session.add(Owner(kind="worker", host="h", pid=1, run_file="x", started_at=silent, heartbeat_at=silent))
    barrier, turns = Barrier(4), []

    def look(database: Database) -> None:
        barrier.wait()
        turns.append(look_for_alerts(database, clock, every_s=30))

    threads = [Thread(target=look, args=(database,)) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(turns) == [False, False, False, True]
    assert _told(databases[0]) == [("alert.firing", "worker_silent")]
    for database in databases:
        database.close()


def _samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _counters(text: str) -> dict[Any, float]:
    kinds = ("counter", "histogram")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        if family.type in kinds and not family.name.startswith("holdfast_http")
        for sample in family.samples
    }


def test_counters_never_fall_over_restarts_and_thinning(server: Server, clock: FakeClock) -> None:
    archive, seen = server.archive, []
    counts: Counts = Counter(pages=3, success=3, status_2xx=3, latency_1s=2, latency_longer=1, latency_ms=99, bytes=7)
    run = _execution(archive.database, server.clock.now())
    for turn in range(4):
        _record(archive.database, run, server.clock.now(), **counts)
        # A server that was just started: it remembers nothing.
        with asking(archive) as client:
            seen.append(_counters(client.get("/metrics").text))
        server.clock.advance(40 * 86_400)
        if turn == 2:
            with archive.database.write() as session:
                row = session.get_one(Execution, run)
                row.state, row.finished_at = "completed", server.clock.now() - timedelta(days=1)
        thin_out(archive.database, now=server.clock.now(), portions=20)

    assert seen[0][("crawler_pages_fetched_total", ())] == 3
    assert seen[-1][("crawler_pages_fetched_total", ())] == 12
    assert seen[-1][("crawler_crawl_duration_seconds_bucket", (("le", "1.0"),))] == 8
    assert seen[-1][("crawler_crawl_duration_seconds_count", ())] == 12
    assert seen[-1][("holdfast_jobs_pages_crawled_total", (("source", "a"),))] == 12
    for before, after in pairwise(seen):
        assert all(after[name] >= value for name, value in before.items())


def test_the_text_file_says_what_the_route_says(server: Server) -> None:
    archive = server.archive
    run = _execution(archive.database, server.clock.now())
    _record(archive.database, run, server.clock.now(), pages=2, success=2, failed=1, queue=5, blocked_robots=4)
    server.clock.advance(60)

    routed = _samples(server.get("/metrics").text)
    with archive.database.read() as session:
        written = _samples(textfile(RecordedFigures(read_recorded(session, archive.clock))).decode())

    assert written[("crawler_robots_denials", ())] == 4
    assert written[("crawler_frontier_size", (("status", "pending"),))] == 5
    assert {name: routed[name] for name in written} == written


def test_alerts_are_listed_newest_first_piece_by_piece(server: Server) -> None:
    now = server.clock.now()
    with server.archive.database.write() as session:
        for number in range(3):
            resolved = None if number == 2 else now
            session.add(Alert(name="worker_silent", severity="critical", since=now, last_seen_at=now, value=1.5,
                              resolved_at=resolved, message=f"m{number}"))  # fmt: skip
            session.flush()

    first = server.get("/api/alerts?limit=2").json()
    rest = server.get(f"/api/alerts?limit=2&cursor={first['next']}").json()

    assert [one["message"] for one in (*first["items"], *rest["items"])] == ["m2", "m1", "m0"]
    assert [one["state"] for one in first["items"]] == ["firing", "resolved"]
    assert rest["next"] is None
    assert [one["message"] for one in server.get("/api/alerts?state=firing").json()["items"]] == ["m2"]
    assert server.get("/api/alerts?cursor=junk").status_code == 422
    assert server.get("/api/alerts?state=maybe").status_code == 422


def test_the_time_series_has_the_documented_arrays_and_can_be_narrowed(server: Server) -> None:
    database, clock = server.archive.database, server.clock
    runs = [_execution(database, clock.now(), code) for code in ("one", "two")]
    for run, pages in zip(runs, (3, 5), strict=True):
        _record(database, run, clock.now() - timedelta(minutes=90), pages=pages, success=pages, failed=1, queue=10)

    whole = server.get("/api/stats/timeseries?hours=2").json()
    assert whole["stepSeconds"] == 60
    assert len(whole["timestamps"]) == len(whole["pagesCrawled"]) == len(whole["pagesFailed"]) in (120, 121)
    assert (sum(whole["pagesCrawled"]), sum(whole["pagesFailed"]), whole["queue"][-1]) == (8, 2, 20)
    assert sum(server.get("/api/stats/timeseries?source=one").json()["pagesCrawled"]) == 3
    assert sum(server.get(f"/api/stats/timeseries?execution={runs[1]}&step=3600").json()["outcomes"]["success"]) == 5
    since = (clock.now() - timedelta(minutes=60)).isoformat().replace("+00:00", "Z")
    assert sum(server.get(f"/api/stats/timeseries?from={since}").json()["pagesCrawled"]) == 0


def test_a_step_is_no_finer_than_what_is_kept_and_points_are_bounded(server: Server) -> None:
    since = (server.clock.now() - timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%S")

    assert server.get(f"/api/stats/timeseries?from={since}&step=60").json()["stepSeconds"] == 3600
    assert server.get("/api/stats/timeseries?hours=160&step=60").json()["field"] == "step"
    assert server.get("/api/stats/timeseries?from=2026-01-01&to=2025-01-01").json()["field"] == "from"
    for bad in ("from=2999-01-01T00:00:00Z", "from=0001-01-01T00:00:00", "step=61", "hours=0", "execution=-1",
                "from=2026-01-01&to=2025-01-01", "source=%00"):  # fmt: skip
        assert server.get(f"/api/stats/timeseries?{bad}").status_code in (404, 422), bad
    assert server.get("/api/stats/timeseries?execution=999").status_code == 404
    for early in ("to=0001-01-01T00:00:00Z", "from=0001-01-01T00:00:00%2B14:00&to=0001-01-02T00:00:00Z"):
        refused = server.get(f"/api/stats/timeseries?{early}").json()
        assert (refused["code"], refused["field"]) == ("bad_span", early.partition("=")[0])


def test_alerts_are_refused_without_a_credential(server: Server) -> None:
    with asking(server.archive, as_admin=False) as reader:
        for path in ("/api/alerts", "/api/stats/timeseries"):
            assert reader.get(path).status_code == 401
