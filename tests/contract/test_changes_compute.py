"""Captures become changes, on both databases: what is said of each, late arrivals, nothing withdrawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import event, func, select

from holdfast.changes import compute as compute_module
from holdfast.changes import listing, queries
from holdfast.changes.compute import compute_pending
from holdfast.changes.listing import ChangeScope
from holdfast.changes.pairs import TextMode, compare_captures
from holdfast.db.models import Change, Diff, Snapshot, Withdrawal
from holdfast.types import Truncated
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import hide, unhide
from tests.archive import Shot, build_archive, days_later, pdf
from tests.contract.changes_bed import PAGE, Building, compute, day, open_building, page, told


@pytest.fixture
def building(tmp_path: Path, migrated_url: str) -> Iterator[Building]:
    """Build an archive of this test alone."""
    with open_building(tmp_path / "home", migrated_url) as build:
        yield build


def test_captures_are_told_apart(building: Building) -> None:
    archive = building(
        [day(0, "one"), day(1, "one"), day(2, "two"), day(3, None, status=404), day(4, None, status=404)]
    )

    result = compute(archive)

    assert told(archive) == [
        (0, "new_page", None), (1, "unchanged", 0), (2, "updated", 1), (3, "gone", 2), (4, "unchanged", 3),
    ]  # fmt: skip
    assert (result.looked_at, result.events, result.diffs) == (5, 5, 1)
    assert result.types == {"new_page": 1, "unchanged": 2, "updated": 1, "gone": 1}


def test_what_each_source_leaves_over_is_counted(building: Building, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = building([])
    monkeypatch.setattr(queries, "source_ids", lambda _session: [1, 2, 3])

    def left_over(self: compute_module._Run, source_id: int) -> None:
        self.result.left += {1: 2, 2: 0, 3: 1}[source_id]

    monkeypatch.setattr(compute_module._Run, "source", left_over)

    assert compute(archive).left == 3


def test_an_outage_is_an_error_and_not_a_rewrite(building: Building) -> None:
    archive = building(
        [day(0, "one"), day(1, None, status=503), day(2, "one"), day(3, None, status=403), day(4, "two")]
    )

    compute(archive)

    assert told(archive) == [
        (0, "new_page", None), (1, "error", 0), (2, "unchanged", 0), (3, "error", 2), (4, "updated", 2),
    ]  # fmt: skip
    with archive.database.read() as session:
        assert session.scalars(select(Change.error).where(Change.type == "error").order_by(Change.id)).all() == [
            "the server answered 503", "the server answered 403",
        ]  # fmt: skip


def test_a_page_that_was_never_there_is_an_error_and_then_new(building: Building) -> None:
    archive = building([day(0, None, status=404), day(1, "one")])

    compute(archive)

    assert told(archive) == [(0, "error", None), (1, "new_page", None)]


def test_a_revisit_is_unchanged(building: Building) -> None:
    archive = building([
        day(0, "one"),
        replace(day(1, "one"), same_as=PAGE),
        replace(day(2, "one"), same_as=PAGE, not_modified=True),
    ])  # fmt: skip

    compute(archive)

    assert [row[1] for row in told(archive)] == ["new_page", "unchanged", "unchanged"]


def test_a_capture_that_broke_off_removes_no_lines_and_what_follows_is_held_against_the_whole_one(
    building: Building,
) -> None:
    half = replace(day(1, "one"), body=page("one")[:60], truncated=Truncated.DISCONNECT)
    archive = building([day(0, "one"), half, day(2, "one"), day(3, "two")])

    compute(archive)

    assert told(archive) == [(0, "new_page", None), (1, "error", 0), (2, "unchanged", 0), (3, "updated", 2)]
    with archive.database.read() as session:
        said = session.scalars(select(Change.error).where(Change.type == "error")).one()
    assert said == "the body broke off (disconnect)"


def test_sections_and_lines_are_counted(building: Building) -> None:
    archive = building([day(0, "The pier is open"), day(1, "The pier is closed")])

    compute(archive)

    with archive.database.read() as session:
        (diff,) = session.scalars(select(Diff)).all()
    assert (diff.added_sections, diff.removed_sections, diff.changed_sections) == (0, 0, 1)
    assert (diff.added_lines, diff.removed_lines, diff.high_noise, diff.truncated) == (1, 1, False, False)
    assert 0 < diff.ratio < 0.6


@pytest.mark.parametrize(
    ("media_type", "bodies"),
    [
        ("application/pdf", (pdf("High water at six"), pdf("Low water at six"))),
        ("text/plain", (b"High water at six", b"Low water at six")),
    ],
)
@pytest.mark.parametrize("mode", list(TextMode))
def test_pdf_and_plain_text_are_compared(
    building: Building, media_type: str, bodies: tuple[bytes, bytes], mode: TextMode
) -> None:
    shots = [
        Shot(url=f"{PAGE}.file", media_type=media_type, body=body, moment=days_later(n), execution=n + 1)
        for n, body in enumerate(bodies)
    ]
    archive = building(shots)
    compute(archive)

    with archive.database.read() as session:
        last = session.scalars(select(Change).order_by(Change.id.desc()).limit(1)).one()
    found = compare_captures(archive.database, archive.settings.home, archive.clock, last.to_snapshot_id, mode=mode)
    assert (last.type, last.diff_id is not None, found.event.diff_available) == ("updated", True, True)
    assert (found.mode, found.event.added_lines, found.event.removed_lines) == (mode, 1, 1)


def test_pdf_without_text_is_updated_without_a_diff(building: Building) -> None:
    scan = Shot(url=f"{PAGE}.pdf", media_type="application/pdf", body=pdf(""))
    archive = building([scan, replace(scan, body=pdf("", title="Two"), moment=days_later(1), execution=2)])
    compute(archive)

    with archive.database.read() as session:
        last = session.scalars(select(Change).order_by(Change.id.desc()).limit(1)).one()
    assert (last.type, last.diff_id) == ("updated", None)


def test_pages_that_differ_in_their_query_are_two_pages(building: Building) -> None:
    archive = building([day(0, "one", url=f"{PAGE}?a=1"), day(1, "two", url=f"{PAGE}?a=2")])

    compute(archive)

    assert [row[1] for row in told(archive)] == ["new_page", "new_page"]


def test_a_second_run_finds_nothing_and_changes_nothing(building: Building) -> None:
    archive = building([day(0, "one"), day(1, "two")])
    compute(archive)
    before = _rows(archive)

    again = compute(archive)

    assert (again.looked_at, again.events) == (0, 0)
    assert _rows(archive) == before


def test_a_backfill_says_the_same_again(building: Building) -> None:
    archive = building([day(0, "one"), day(1, "two")])
    compute(archive)
    before = _rows(archive)

    again = compute(archive, backfill=True)

    assert (again.looked_at, again.events, again.diffs) == (2, 2, 0)
    assert _rows(archive) == before


def test_a_capture_that_arrives_late_stands_between_its_neighbours(building: Building) -> None:
    archive = building([day(0, "one"), day(4, "three")])
    compute(archive)
    assert told(archive)[1] == (4, "updated", 0)

    archive = building([day(2, "two")])
    compute(archive)

    assert told(archive) == [(0, "new_page", None), (2, "updated", 0), (4, "updated", 2)]


def test_a_late_first_capture_makes_the_next_one_no_longer_new(building: Building) -> None:
    archive = building([day(3, "one")])
    compute(archive)

    archive = building([day(1, "one")])
    compute(archive)

    assert told(archive) == [(1, "new_page", None), (3, "unchanged", 1)]


def test_a_late_capture_reaches_past_an_outage(building: Building) -> None:
    archive = building([day(0, "one"), day(3, None, status=500), day(4, "two")])
    compute(archive)
    assert told(archive)[2] == (4, "updated", 0)

    archive = building([day(2, "two")])
    compute(archive)

    assert told(archive) == [(0, "new_page", None), (2, "updated", 0), (3, "error", 2), (4, "unchanged", 2)]


def test_equal_moments_are_ordered_by_id(building: Building) -> None:
    archive = building([day(0, "one"), replace(day(0, "two"), execution=2), replace(day(0, "three"), execution=3)])

    compute(archive)

    with archive.database.read() as session:
        rows = session.scalars(select(Change).order_by(Change.to_snapshot_id)).all()
    assert [row.from_snapshot_id for row in rows] == [None, rows[0].to_snapshot_id, rows[1].to_snapshot_id]


def test_duplicates_of_a_day_are_passed_over(building: Building) -> None:
    archive = building([day(0, "one"), day(0.1, "one"), day(0.2, "two")])

    compute(archive)

    assert told(archive) == [(0, "new_page", None), (0.2, "updated", 0)]
    assert compute(archive).looked_at == 0


def test_what_is_withdrawn_is_compared_with_nothing(building: Building) -> None:
    archive = building([day(0, "one"), day(1, "secret"), day(2, "two")])
    _withdraw(archive, days_later(1))

    compute(archive)

    assert told(archive) == [(0, "new_page", None), (2, "updated", 0)]


def test_sources_are_compared_apart(building: Building) -> None:
    archive = building([day(0, "one"), replace(day(1, "two"), source="other")])

    assert compute(archive, source_id=1).events == 1
    compute(archive)

    assert [row[1] for row in told(archive)] == ["new_page", "new_page"]


def test_events_can_be_limited_and_the_rest_follows(building: Building) -> None:
    archive = building([day(n, f"words {n}") for n in range(5)])

    assert compute(archive, max_events=2).events == 2
    assert compute(archive, max_events=2).events == 2
    compute(archive)

    assert [row[1] for row in told(archive)] == ["new_page", *["updated"] * 4]


def test_a_dry_run_counts_and_writes_nothing(building: Building) -> None:
    archive = building([day(0, "one"), day(1, "two")])

    result = compute(archive, dry_run=True)

    assert result.types == {"new_page": 1, "updated": 1}
    assert told(archive) == []
    assert compute(archive).events == 2


def test_only_what_was_captured_lately_is_compared(building: Building) -> None:
    archive = building([day(0, "one")])

    assert compute(archive, since_days=1).looked_at == 0
    assert compute(archive, since_days=100_000).looked_at == 1


def test_bodies_that_were_compared_before_are_not_compared_again(building: Building) -> None:
    archive = building([
        day(0, "one"), day(1, "two"), day(0, "one", url=f"{PAGE}/copy"), day(1, "two", url=f"{PAGE}/copy"),
        day(2, "one"), day(3, "two"),
    ])  # fmt: skip

    result = compute(archive)

    assert result.types["updated"] == 4
    assert result.diffs == 2, "from one to two, and back"


def _rows(archive: Archive) -> list[tuple[object, ...]]:
    with archive.database.read() as session:
        rows = session.scalars(select(Change).order_by(Change.id)).all()
        diffs = session.scalars(select(Diff.id)).all()
        waiting = session.scalars(select(Snapshot.compared).order_by(Snapshot.id)).all()
    facts: list[tuple[object, ...]] = [
        (row.id, row.type, row.from_snapshot_id, row.to_snapshot_id, row.diff_id) for row in rows
    ]
    return [*facts, tuple(diffs), tuple(waiting)]


def _withdraw(archive: Archive, moment: object) -> None:
    with archive.database.write() as session:
        found = session.scalars(select(Snapshot).where(Snapshot.captured_at == moment)).one()
        session.add(Withdrawal(
            snapshot_id=found.id, subject=str(found.id), reason="asked", actor="tests", created_at=archive.clock.now()
        ))  # fmt: skip


def _shown(archive: Archive) -> list[tuple[float, float | None]]:
    """Return the changes that readers see: the day of each, and the day that it was held against."""
    with archive.database.read() as session:
        events = listing.page_of_events(session, ChangeScope(unchanged=True), offset=0, limit=100)[0]
    start = days_later(0)
    days = [(event.to_captured_at - start, event.from_captured_at) for event in reversed(events)]
    return [(at.days, None if since is None else (since - start).days) for at, since in days]


def _id_of(archive: Archive, moment: object) -> str:
    with archive.database.read() as session:
        return str(session.scalars(select(Snapshot.id).where(Snapshot.captured_at == moment)).one())


def test_the_change_behind_a_hidden_capture_is_told_again_without_a_backfill(building: Building) -> None:
    archive = building([day(0, "one"), day(1, "two"), day(2, None, status=503), day(3, "three"), day(4, "four")])
    compute(archive)
    assert _shown(archive) == [(0, None), (1, 0), (2, 1), (3, 1), (4, 3)]

    hide(archive.database, archive.clock, _id_of(archive, days_later(1)), reason="private")
    assert _shown(archive) == [(0, None), (4, 3)], "hidden at once, on either side"
    compute(archive)
    assert _shown(archive) == [(0, None), (2, 0), (3, 0), (4, 3)]

    unhide(archive.database, archive.clock, _id_of(archive, days_later(1)))
    compute(archive)
    assert _shown(archive) == [(0, None), (1, 0), (2, 1), (3, 1), (4, 3)]


def test_what_was_captured_while_a_page_was_hidden_is_told_when_it_is_shown_again(building: Building) -> None:
    archive = building([day(0, "one"), day(1, "two")])
    compute(archive)
    hide(archive.database, archive.clock, PAGE, reason="asked by the owner")
    archive = building([day(2, "three")])
    compute(archive)
    assert _shown(archive) == []

    unhide(archive.database, archive.clock, PAGE)
    compute(archive)

    assert _shown(archive) == [(0, None), (1, 0), (2, 1)]


def test_a_reader_who_compares_any_two_captures_writes_nothing(tmp_path: Path, migrated_url: str) -> None:
    shots = [
        Shot(url=PAGE, body=f"<p>version {number}", moment=days_later(number), execution=number)
        for number in range(1, 6)
    ]
    archive = build_archive(tmp_path / "home", shots, database_url=migrated_url)
    compute_pending(archive.database, archive.clock)
    written: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE", "BEGIN IMMEDIATE")):
            written.append(statement)

    with archive.database.read() as session:
        ids = list(session.scalars(select(Snapshot.id).order_by(Snapshot.captured_at)))
        before = session.scalar(select(func.count()).select_from(Diff))
    event.listen(archive.database.engine, "before_cursor_execute", note)
    for mode in TextMode:
        for later in ids:
            for earlier in ids:
                if earlier < later:
                    assert compare_captures(
                        archive.database, archive.home, archive.clock, later, earlier, mode=mode
                    ).hunks
    event.remove(archive.database.engine, "before_cursor_execute", note)

    assert written == []
    with archive.database.read() as session:
        assert session.scalar(select(func.count()).select_from(Diff)) == before == len(ids) - 1
    archive.database.close()
