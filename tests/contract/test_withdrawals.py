"""What is withdrawn disappears at once for every reader, and comes back; on both databases."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import delete, select, text
from sqlalchemy.orm import Session, aliased

from holdfast.changes.compute import compute_pending
from holdfast.clock import digits14
from holdfast.db.engine import Database
from holdfast.db.models import AuditEvent, Change, SearchOutbox, Snapshot, Withdrawal
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.index.queries import open_stored
from holdfast.replay.finding import NotCaptured, candidates
from holdfast.search.outbox import drain
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import WITHDRAWALS, hide, preview_hiding, restore_withdrawals, unhide
from holdfast.withdrawals.recomparing import lock_changes
from holdfast.withdrawals.visibility import (
    SnapshotNotFound,
    visible,
    visible_change,
    visible_snapshot,
    withdrawals_in_force,
    withdrawn_among,
)
from tests.archive import BEGIN, Shot, build_archive, days_later
from tests.client import asking
from tests.patience import deadline

URL = "https://example.org/page"


@pytest.fixture
def archive(tmp_path: Path, migrated_url: str) -> Iterator[Archive]:
    """Three captures of a page, one under http, one posted to; and one of another."""
    shots = [
        Shot(url=URL), Shot(url=URL.replace("https", "http"), moment=days_later(1)),
        Shot(url=URL, method="POST", sent=b"a=1", moment=days_later(2)), Shot(url="https://example.org/other"),
    ]  # fmt: skip
    opened = build_archive(tmp_path / "home", shots, database_url=migrated_url)
    yield opened
    opened.database.close()


def _seen(archive: Archive) -> list[str]:
    with archive.database.read() as session:
        rows = session.scalars(select(Snapshot).where(*visible()).order_by(Snapshot.id))
        return [f"{row.method or 'GET'} {row.url}" for row in rows]


def test_a_hidden_address_takes_all_its_captures_with_it_and_brings_them_back(archive: Archive) -> None:
    before = _seen(archive)
    assert len(before) == 4

    assert hide(archive.database, archive.clock, "example.org/page", reason="asked by the owner").captures == 3

    assert _seen(archive) == ["GET https://example.org/other"]
    with archive.database.read() as session, pytest.raises(NotCaptured):
        candidates(session, URL, digits14(BEGIN))
    with pytest.raises(Conflict):
        hide(archive.database, archive.clock, URL, reason="again")
    assert unhide(archive.database, archive.clock, URL).captures == 3
    assert _seen(archive) == before
    with pytest.raises(NotFound):
        unhide(archive.database, archive.clock, URL)


def test_a_hidden_snapshot_disappears_alone(archive: Archive) -> None:
    with archive.database.read() as session:
        first = session.scalars(select(Snapshot.id).order_by(Snapshot.id).limit(1)).one()

    hide(archive.database, archive.clock, str(first), reason="private")

    assert len(_seen(archive)) == 3
    with archive.database.read() as session, pytest.raises(SnapshotNotFound):
        visible_snapshot(session, first)
    unhide(archive.database, archive.clock, str(first))
    with archive.database.read() as session:
        assert visible_snapshot(session, first).id == first


def test_hiding_is_audited_and_the_search_index_is_told(archive: Archive) -> None:
    hide(archive.database, archive.clock, URL, reason="asked by the owner")
    unhide(archive.database, archive.clock, URL)

    with archive.database.read() as session:
        events = session.scalars(
            select(AuditEvent).where(AuditEvent.action.startswith("snapshot")).order_by(AuditEvent.id)
        )
        told = session.scalars(select(SearchOutbox).where(SearchOutbox.kind == "withdrawal").order_by(SearchOutbox.id))
        assert [(one.action, one.subject, one.detail["reason"]) for one in events] == [
            ("snapshot.hidden", URL, "asked by the owner"), ("snapshot.shown", URL, None),
        ]  # fmt: skip
        assert [(one.refs["hidden"], one.refs["url_key"]) for one in told] == [
            (True, "org,example)/page"), (False, "org,example)/page"),
        ]  # fmt: skip


def test_a_withdrawal_needs_a_reason_and_something_to_withdraw(archive: Archive) -> None:
    with pytest.raises(Invalid):
        hide(archive.database, archive.clock, URL, reason="  ")
    with pytest.raises(Invalid, match="give a reason of 3 to 4,000"):
        hide(archive.database, archive.clock, URL, reason="a" * 4001)
    with pytest.raises(NotFound):
        hide(archive.database, archive.clock, "99", reason="asked for")
    with pytest.raises(Invalid):
        hide(archive.database, archive.clock, "not an address", reason="asked for")
    assert len(_seen(archive)) == 4


def test_no_number_is_too_large_to_be_not_found(archive: Archive) -> None:
    with archive.database.read() as session:
        for number in (0, -1, 2**63, 10**40):
            with pytest.raises(SnapshotNotFound):
                visible_snapshot(session, number)
    for subject in (str(2**63), "9" * 40, f"{2**62}0000", "0" * 30 + "9" * 20):
        with pytest.raises(NotFound):
            hide(archive.database, archive.clock, subject, reason="asked for")
        with pytest.raises(NotFound):
            unhide(archive.database, archive.clock, subject)


@pytest.fixture
def borrowed(tmp_path: Path, migrated_url: str) -> Iterator[Archive]:
    """A page that was captured, found the same on the next day, and another on the third; and a copy elsewhere that
    was found the same as the first."""
    said = "<html><head><title>Zanzibar</title></head><body><p>Some words about it.</p></body></html>"
    shots = [
        Shot(url=URL, body="<html><head><title>Before</title></head><body><p>What was before.</p></body></html>"),
        Shot(url=URL, body=said, moment=days_later(1), execution=2),
        Shot(url=URL, same_as=URL, moment=days_later(2), execution=3),
        Shot(url="https://example.org/copy", same_as=URL, moment=days_later(2), execution=3),
        Shot(url=URL, body=said.replace("words", "verses"), moment=days_later(3), execution=4),
    ]
    opened = build_archive(tmp_path / "home", shots, database_url=migrated_url)
    compute_pending(opened.database, opened.clock)
    drain(opened.database, opened.home, opened.clock)
    yield opened
    opened.database.close()


def _days(archive: Archive) -> list[tuple[str, int]]:
    with archive.database.read() as session:
        rows = session.scalars(select(Snapshot).where(*visible()).order_by(Snapshot.captured_at, Snapshot.url))
        return [(row.url[-4:], (row.captured_at - BEGIN).days) for row in rows]


def _changed(archive: Archive) -> list[tuple[int, int]]:
    """Return the days of what was changed from and to, on the page itself, as readers see it."""
    compute_pending(archive.database, archive.clock)
    before, now = aliased(Snapshot), aliased(Snapshot)
    with archive.database.read() as session:
        rows = session.execute(
            select(before.captured_at, now.captured_at)
            .select_from(Change)
            .join(before, before.id == Change.from_snapshot_id)
            .join(now, now.id == Change.to_snapshot_id)
            .where(now.url == URL, Change.type != "unchanged", *visible_change(Change))
            .order_by(now.captured_at)
        )
        return [((row[0] - BEGIN).days, (row[1] - BEGIN).days) for row in rows]


def test_what_is_withdrawn_takes_its_revisits_with_it_and_brings_them_back(borrowed: Archive) -> None:
    with borrowed.database.read() as session:
        original = session.scalars(select(Snapshot).where(Snapshot.captured_at == days_later(1))).one()
        revisits = session.scalars(select(Snapshot).where(Snapshot.original_id == original.id)).all()
        with open_stored(session, borrowed.home, revisits[0]) as stored:
            assert b"Some words about it" in stored.content(10_000)
        assert preview_hiding(session, str(original.id)).captures == 3
    whole = [("page", 0), ("page", 1), ("copy", 2), ("page", 2), ("page", 3)]
    assert (_days(borrowed), _changed(borrowed)) == (whole, [(0, 1), (2, 3)])

    assert hide(borrowed.database, borrowed.clock, str(original.id), reason="private").captures == 3

    assert (_days(borrowed), _changed(borrowed)) == ([("page", 0), ("page", 3)], [(0, 3)])
    with borrowed.database.read() as session:
        assert withdrawn_among(session, snapshots=[row.id for row in revisits]) == {row.id for row in revisits}
        for revisit in revisits:
            with pytest.raises(SnapshotNotFound):
                visible_snapshot(session, revisit.id)
    with pytest.raises(NotFound, match=f"{revisits[0].id} is hidden with snapshot {original.id}; .* {original.id}$"):
        unhide(borrowed.database, borrowed.clock, str(revisits[0].id))
    with asking(borrowed) as client:
        found = client.get("/api/search?q=zanzibar&view=snapshots").json()
        assert [hit["captureTimestamp"][:10] for hit in found["results"]] == [f"{days_later(3):%Y-%m-%d}"]
        assert {client.get(f"/api/snapshot/{revisit.id}").status_code for revisit in revisits} == {404}
        assert client.get("/cdx?url=example.org/copy").text == ""
        assert len(client.get("/cdx?url=example.org/page").text.splitlines()) == 2
    assert unhide(borrowed.database, borrowed.clock, str(original.id)).captures == 3
    assert (_days(borrowed), _changed(borrowed)) == (whole, [(0, 1), (2, 3)])


def test_a_withdrawn_page_takes_copies_with_it_that_show_its_body(borrowed: Archive) -> None:
    with borrowed.database.read() as session:
        assert preview_hiding(session, URL).captures == 5

    assert hide(borrowed.database, borrowed.clock, URL, reason="private").captures == 5

    assert _days(borrowed) == []
    with borrowed.database.read() as session:
        copy = session.scalars(select(Snapshot.id).where(Snapshot.url == "https://example.org/copy")).one()
    with pytest.raises(NotFound, match=f"{copy} is hidden with the page {URL}; .* {URL}$"):
        unhide(borrowed.database, borrowed.clock, str(copy))
    with asking(borrowed) as client:
        assert client.get("/api/search?q=zanzibar").json()["total"] == 0
    unhide(borrowed.database, borrowed.clock, URL)
    assert len(_days(borrowed)) == 5
    assert _changed(borrowed) == [(0, 1), (2, 3)]


def test_what_is_posted_later_to_a_withdrawn_address_with_a_query_is_hidden_too(
    tmp_path: Path, migrated_url: str
) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url=f"{URL}?z=1&b=2")], database_url=migrated_url)
    hide(archive.database, archive.clock, f"{URL}?b=2&z=1", reason="asked")
    archive.database.close()
    later = Shot(url=f"{URL}?z=1&b=2", method="POST", sent=b"c=3", execution=2, moment=days_later(1))
    archive = build_archive(tmp_path / "home", [later], database_url=migrated_url)

    assert _seen(archive) == []
    archive.database.close()


def test_an_address_that_no_crawl_would_ask_for_is_withdrawn_if_it_is_here(tmp_path: Path, migrated_url: str) -> None:
    odd = "http://example.org:22/page"
    archive = build_archive(tmp_path / "home", [Shot(url=odd)], database_url=migrated_url)

    with pytest.raises(Invalid):
        hide(archive.database, archive.clock, "http://example.org:25/page", reason="asked")
    assert hide(archive.database, archive.clock, odd, reason="asked").captures == 1

    assert _seen(archive) == []
    archive.database.close()


def test_what_was_hidden_is_hidden_again_after_a_lost_database(tmp_path: Path) -> None:
    pages = [f"https://example.org/{name}" for name in "abc"]
    archive = build_archive(tmp_path / "home", [Shot(url=url) for url in pages])
    hide(archive.database, archive.clock, pages[0], reason="before there was a file")
    for url in pages[1:]:
        hide(archive.database, archive.clock, url, reason="asked for", home=archive.home)
    unhide(archive.database, archive.clock, pages[2], home=archive.home)
    assert restore_withdrawals(archive.database, archive.home) == 0
    with archive.database.write() as session:
        session.execute(delete(Withdrawal))

    with (archive.home / WITHDRAWALS).open("a") as lines:
        lines.write(json.dumps({"snapshot_id": 7, "url_key": None, "lifted": False}) + "\n")
        lines.write(json.dumps({"snapshot_id": 8, "url_key": None, "created_at": "a word"}) + "\n")
        whole = json.loads((archive.home / WITHDRAWALS).read_text().splitlines()[1])
        for name, wrong in (
            ("snapshot_id", "seven"), ("snapshot_id", 1 << 70), ("url_key", 7), ("url_key", None), ("reason", None),
            ("created_at", "2026-01-01T00:00:00"), ("lifted", None),
        ):  # fmt: skip
            lines.write(json.dumps({**whole, "url_key": "org,example)/x", name: wrong}) + "\n")
        lines.write("[" * 100_000 + "\n")

    assert restore_withdrawals(archive.database, archive.home) == 2, "a line that is none of ours hinders no other"
    with archive.database.read() as session:
        assert {row.subject for row in withdrawals_in_force(session)} == set(pages[:2])
    archive.database.close()


class _Between(Database):
    """A database on which something happens behind the first transaction that writes."""

    def __init__(self, url: str, happens: Callable[[], object]) -> None:
        super().__init__(url)
        self._happens: Callable[[], object] | None = happens

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session that may write."""
        with super().write() as session:
            yield session
        happens, self._happens = self._happens, None
        if happens is not None:
            happens()


def test_a_page_hidden_again_while_it_is_shown_is_hidden_by_the_lines_too(archive: Archive, migrated_url: str) -> None:
    hide(archive.database, archive.clock, URL, reason="first", home=archive.home)

    def again() -> None:
        hide(archive.database, archive.clock, URL, reason="second", home=archive.home)

    with closing(_Between(migrated_url, again)) as database:
        unhide(database, archive.clock, URL, home=archive.home)

    last = json.loads((archive.home / WITHDRAWALS).read_text().splitlines()[-1])
    with archive.database.read() as session:
        in_force = withdrawals_in_force(session)
    assert [row.reason for row in in_force] == ["second"]
    assert (last["reason"], last["lifted"]) == ("second", False)


_WAITS = (
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


# SQLite has one writer: there hiding cannot begin before the comparison has ended.
@pytest.mark.parametrize("migrated_url", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
def test_hiding_waits_for_a_comparison_under_way_and_its_mark_stays(archive: Archive) -> None:
    with archive.database.read() as session:
        first = session.scalars(select(Snapshot.id).where(Snapshot.url == URL).order_by(Snapshot.id)).first()
    wanted = (archive.database, archive.clock, str(first))
    hiding = threading.Thread(target=hide, args=wanted, kwargs={"reason": "asked"})
    never = threading.Event()
    with archive.database.write() as session:
        lock_changes(session)
        hiding.start()
        for _ in range(int(deadline(60) * 20)):
            with archive.database.read() as other:
                waits = other.scalar(text(_WAITS))
            if waits or not hiding.is_alive() or never.wait(0.05):
                break
        session.execute(text("UPDATE snapshots SET compared = true"))
    hiding.join(deadline(60))

    with archive.database.read() as session:
        assert session.scalars(select(Snapshot.compared).where(Snapshot.id == first)).one() is False


def test_the_feed_of_changes_has_what_lies_behind_many_that_may_not_be_seen(
    tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = [f"https://example.org/hidden/{number}" for number in range(6)]
    shots = [Shot(url=URL, body=f"<p>Edition {day}.", moment=days_later(day), execution=day + 1) for day in (0, 1)]
    shots += [
        Shot(url=url, body=f"<p>Edition {day}.", moment=days_later(day), execution=day + 1)
        for url in hidden
        for day in (2, 3)
    ]
    archive = build_archive(tmp_path / "home", shots, database_url=migrated_url)
    compute_pending(archive.database, archive.clock)
    for url in hidden:
        hide(archive.database, archive.clock, url, reason="private")
    monkeypatch.setattr("holdfast.api.routes.changes.MAX_ITEMS", 1)

    with asking(archive) as client:
        told = client.get("/api/changes/rss").text

    assert told.count("<item>") == 1
    assert URL in told
    archive.database.close()
