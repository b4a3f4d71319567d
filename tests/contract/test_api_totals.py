"""Totals, lists and lookups show nothing that is withdrawn, and find one crawl among many; on both databases."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert, select, update

from holdfast.clock import digits14
from holdfast.db.models import IndexRun, PageGroup, Snapshot, Source, WarcFile, Withdrawal
from holdfast.index.capture_queries import source_totals, state_of_archive
from holdfast.noise.labels import Finding, write_findings
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hidden_captures import hidden_counts, hidden_groups
from holdfast.withdrawals.hiding import hide, unhide
from tests.archive import BEGIN, Shot, build_archive, days_later
from tests.client import Client, asking
from tests.clock import FakeClock

_HOME = "https://example.org/"
_SHOTS = [
    Shot(url=_HOME),
    Shot(url="https://example.org/notes?page=2", body="<title>Notes</title><p>Two."),
    Shot(url="https://example.org/fr/", body="<html lang=fr><title>Accueil</title><p>Bonjour."),
    Shot(url="https://example.org/gone", status=404, body="<title>Gone</title><p>Nothing."),
    Shot(url=_HOME, body="<title>New</title><p>Other words.", moment=days_later(10), execution=2),
    Shot(url="https://other.org/", source="other", moment=days_later(3)),
]


@pytest.fixture
def own(migrated_url: str, tmp_path: Path) -> Iterator[Archive]:
    """A small archive of two sources for one test alone."""
    built = build_archive(tmp_path / "home", _SHOTS, database_url=migrated_url)
    yield built
    built.database.close()


@pytest.fixture
def own_client(own: Archive) -> Iterator[Client]:
    """A client for it."""
    with asking(own) as open_client:
        yield open_client


def _snapshot(archive: Archive, url: str, at: datetime = BEGIN) -> int:
    with archive.database.read() as session:
        return session.scalars(select(Snapshot.id).where(Snapshot.url == url, Snapshot.captured_at == at)).one()


def _withdraw(archive: Archive, snapshot_id: int) -> None:
    with archive.database.write() as session:
        session.add(Withdrawal(snapshot_id=snapshot_id, subject="x", reason="test", actor="me", created_at=BEGIN))


def test_totals_count_nothing_that_is_withdrawn(own: Archive, own_client: Client) -> None:
    _withdraw(own, _snapshot(own, _HOME, days_later(10)))

    stats, sources = own_client.get("/api/stats").json(), own_client.get("/api/sources").json()

    assert (stats["snapshotsTotal"], stats["pagesTotal"], stats["sourcesTotal"]) == (5, 5, 2)
    assert stats["latestCaptureDate"] == "2024-03-04"
    assert [(one["sourceCode"], one["recordCount"], one["lastCapture"]) for one in sources] == [
        ("example", 4, "2024-03-01"), ("other", 1, "2024-03-04"),
    ]  # fmt: skip


def test_totals_are_counted_anew_after_each_lifting_whatever_clock_it_is_dated_by(own: Archive) -> None:
    home, other = _snapshot(own, _HOME, days_later(10)), _snapshot(own, _HOME)
    states = []

    def look() -> None:
        with own.database.read() as session:
            states.append(state_of_archive(session))

    for number in (home, other):
        hide(own.database, own.clock, str(number), reason="asked to")
    look()
    unhide(own.database, FakeClock(BEGIN + timedelta(hours=1)), str(home))
    look()
    unhide(own.database, FakeClock(BEGIN), str(other))
    look()

    assert len(set(states)) == 3


def test_a_source_of_which_everything_is_withdrawn_is_not_listed(own: Archive, own_client: Client) -> None:
    with own.database.read() as session:
        ids = list(session.scalars(select(Snapshot.id).join(Source).where(Source.code == "other")))
    for snapshot_id in ids:
        _withdraw(own, snapshot_id)

    assert [one["sourceCode"] for one in own_client.get("/api/sources").json()] == ["example"]
    assert own_client.get("/api/sources/other/editions").json() == []
    assert own_client.get("/api/stats").json()["sourcesTotal"] == 1


def test_one_withdrawn_page_makes_no_list_of_crawls_read_them_all(
    own: Archive, own_client: Client, migrated_url: str
) -> None:
    again = [Shot(url=_HOME, moment=days_later(20 + n), execution=3 + n, body=f"<p>{n}") for n in range(5)]
    build_archive(own.home, again, database_url=migrated_url).database.close()
    with own.database.write() as session:
        session.execute(update(IndexRun).values(records=4000))
    hide(own.database, own.clock, _HOME, reason="asked to")
    looked: list[str] = []

    def note(_c: Any, _k: Any, statement: str, *_rest: Any) -> None:
        if "count(*)" in statement and "FROM snapshots" in statement and "snapshots.execution_id" in statement:
            looked.append(statement)

    event.listen(own.database.engine, "before_cursor_execute", note)
    own_client.get("/api/sources/example/editions")
    event.remove(own.database.engine, "before_cursor_execute", note)

    assert len(looked) == 2, "as many crawls as the budget of a request covers, not all"


def test_the_source_for_trying_things_is_not_listed(own: Archive, own_client: Client) -> None:
    with own.database.write() as session:
        session.execute(update(Source).where(Source.code == "other").values(code="test"))

    page = own_client.get("/").text
    assert [one["sourceCode"] for one in own_client.get("/api/sources").json()] == ["example"]
    assert own_client.get("/api/sources/test/editions").status_code == 200
    assert (page.count("<li>"), "5 captures of 4 pages from 1 source" in page) == (1, True)


def test_a_large_edition_counts_by_what_was_noted_of_its_files(own: Archive, own_client: Client) -> None:
    with own.database.write() as session:
        session.execute(update(IndexRun).values(records=6000))
    _withdraw(own, _snapshot(own, "https://example.org/fr/"))

    editions = own_client.get("/api/sources/example/editions").json()

    assert [(one["recordCount"], one["firstCapture"], one["lastCapture"]) for one in editions] == [
        (1, "2024-03-11", "2024-03-11"), (3, "2024-03-01", "2024-03-01"),
    ]  # fmt: skip


def test_a_crawl_whose_files_were_never_noted_is_told_by_its_first_and_last_page(
    own: Archive, own_client: Client
) -> None:
    with own.database.write() as session:
        session.execute(update(WarcFile).values(first_at=None, last_at=None))

    editions = own_client.get("/api/sources/example/editions").json()

    assert [(one["recordCount"], one["firstCapture"]) for one in editions] == [(1, "2024-03-11"), (4, "2024-03-01")]


def test_a_crawl_is_asked_for_among_many_captures_of_an_address(migrated_url: str, tmp_path: Path) -> None:
    shots = [Shot(url=_HOME, body=f"<p>{n}", moment=days_later(n), execution=n + 1) for n in range(40)]
    shots += [Shot(url="https://example.org/q?x=1", body="<p>q", moment=days_later(3), execution=4)]
    built = build_archive(tmp_path / "home", shots, database_url=migrated_url)
    wanted = _snapshot(built, _HOME, days_later(3))
    with built.database.read() as session:
        job = session.get_one(Snapshot, wanted).execution_id

    with asking(built) as open_client:

        def resolved(**more: Any) -> dict[str, Any]:
            params = {"timestamp": digits14(days_later(39)), "jobId": job, **more}
            answer: dict[str, Any] = open_client.get("/api/replay/resolve", params=params).json()
            return answer

        assert resolved(url=_HOME)["snapshotId"] == wanted, "the nearest of that crawl, 36 captures away"
        assert resolved(url="http://www.example.org/")["snapshotId"] == wanted
        assert resolved(url="https://example.org/q?x=2")["resolvedUrl"] == "https://example.org/q?x=1"
        assert resolved(url=_HOME, jobId=job + 1)["snapshotId"] == _snapshot(built, _HOME, days_later(4))
        assert resolved(url=_HOME, jobId=99_999)["found"] is False
        with built.database.write() as session:
            session.execute(update(WarcFile).values(first_at=None, last_at=None))
        assert resolved(url=_HOME)["snapshotId"] == wanted
    built.database.close()


def test_a_page_with_many_withdrawn_captures_is_counted_and_not_loaded(own: Archive) -> None:
    count = 4000
    with own.database.write() as session:
        row = session.get_one(Snapshot, _snapshot(own, _HOME))
        kept = {column.name: getattr(row, column.name) for column in Snapshot.__table__.columns}
        session.execute(insert(Snapshot), [{**kept, "id": row.id + 100 + n} for n in range(count)])
    hide(own.database, own.clock, _HOME, reason="asked")

    def ask() -> tuple[dict[int, int], list[int]]:
        with own.database.read() as session:
            ids = list(session.scalars(select(WarcFile.execution_id).order_by(WarcFile.id)))
            counts = hidden_counts(session, source_id=row.source_id, executions=ids)
            return counts, list(session.scalars(hidden_groups()))

    ask()  # what is loaded and translated once is so
    tracemalloc.start()
    try:
        counts, groups = ask()
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert groups == [row.group_id]
    assert sorted(counts.values()) == [1, count + 1]
    assert held < 100 * count


def test_totals_count_no_taken_down_page_however_many_there_are(own: Archive) -> None:
    def total() -> tuple[int, int]:
        with own.database.read() as session:
            found = source_totals(session)
            return sum(one.pages for one in found), sum(one.snapshots for one in found)

    before, count = total(), 10_001
    with own.database.write() as session:
        row = session.get_one(Snapshot, _snapshot(own, _HOME))
        group = session.get_one(PageGroup, row.group_id)
        columns = {column.name: getattr(group, column.name) for column in PageGroup.__table__.columns}
        kept = {column.name: getattr(row, column.name) for column in Snapshot.__table__.columns}
        groups = [{**columns, "id": 10_000 + n, "url_hash": n, "snapshot_count": 1} for n in range(count)]
        session.execute(insert(PageGroup), groups)
        ids = [row.id + 100 + n for n in range(count)]
        session.execute(insert(Snapshot), [{**kept, "id": one, "group_id": 10_000 + n} for n, one in enumerate(ids)])
        hiding = {"subject": "x", "reason": "test", "actor": "me", "created_at": BEGIN}
        session.execute(insert(Withdrawal), [{**hiding, "snapshot_id": one} for one in ids])

    assert total() == before


def test_no_source_or_page_is_represented_by_what_shows_something_else(own: Archive, own_client: Client) -> None:
    newest, before = _snapshot(own, _HOME, days_later(10)), _snapshot(own, _HOME)
    own_client.get("/api/sources")

    def judge(finding: Finding | None) -> tuple[int | None, dict[str, Any], list[int]]:
        with own.database.write() as session:
            write_findings(session, {newest: finding}, {}, now=BEGIN)
        with own.database.read() as session:
            group = session.scalars(select(PageGroup).where(PageGroup.url == _HOME)).one()
        recent = own_client.get("/api/stats").json()["recentPages"]
        return group.latest_ok_id, own_client.get("/api/sources").json()[0], [one["id"] for one in recent]

    good, source, recent = judge(("block_page", "test"))
    assert (good, source["entryRecordId"]) == (before, before)
    assert source["latestRecordId"] != newest
    assert before in recent
    assert newest not in recent
    good, source, recent = judge(None)
    assert (good, source["latestRecordId"], source["entryRecordId"]) == (newest, newest, newest)
    assert newest in recent
    assert before not in recent
