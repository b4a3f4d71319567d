"""Reports and usage counts on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import feedback
from holdfast.db.engine import Database
from holdfast.feedback import Category, ReportReceipt, ReportStatus, UsageTally, Use, find_report
from tests.clock import FakeClock


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """An empty database of each kind."""
    opened = Database(migrated_url)
    yield opened
    opened.close()


def _submit(database: Database, clock: FakeClock, **changed: Any) -> ReportReceipt:
    report = {"category": Category.TAKEDOWN, "description": "Ünïcode 🦀 and 'quotes'; DROP TABLE x", **changed}
    return feedback.submit(database, clock, **report)


def test_a_report_is_kept_word_for_word(database: Database, clock: FakeClock) -> None:
    receipt = _submit(database, clock, snapshot_id=(1 << 63) - 1, page_url="https://a.example/")
    assert receipt.report_id is not None

    with database.read() as session:
        row = find_report(session, receipt.report_id)

    assert (row.category, row.description, row.status) == ("takedown", "Ünïcode 🦀 and 'quotes'; DROP TABLE x", "new")
    assert (row.snapshot_id, row.page_url, row.created_at) == ((1 << 63) - 1, "https://a.example/", clock.now())


def test_a_honeypot_writes_nothing(database: Database, clock: FakeClock) -> None:
    receipt = _submit(database, clock, website="x")

    with database.read() as session:
        assert feedback.reports(session, limit=10) == ([], 0)
    assert receipt == ReportReceipt(report_id=None, status=ReportStatus.NEW, received_at=clock.now())


def test_reports_are_listed_newest_first_by_status_and_category(database: Database, clock: FakeClock) -> None:
    for category in (Category.TAKEDOWN, Category.GENERAL_FEEDBACK, Category.TAKEDOWN):
        _submit(database, clock, category=category)

    with database.read() as session:
        rows, total = feedback.reports(session, status="new", category="takedown", limit=1, offset=1)
        none, zero = feedback.reports(session, status="resolved", limit=9)

    assert ([row.id for row in rows], total) == ([1], 2)
    assert (none, zero) == ([], 0)


def test_counts_of_two_processes_add_up(database: Database, clock: FakeClock) -> None:
    tallies = [UsageTally(database, clock) for _ in range(2)]
    for tally in tallies:
        tally.count(Use.SEARCH)
        tally.count(Use.SEARCH)
        tally.count(Use.RAW)
        tally.flush()
    clock.advance(86_400)
    tallies[0].count(Use.SEARCH)

    days = tallies[0].days(2)

    assert [(day[Use.SEARCH], day[Use.RAW], day[Use.DETAIL]) for day in days.values()] == [
        (4, 2, 0), (1, 0, 0)
    ]  # fmt: skip
