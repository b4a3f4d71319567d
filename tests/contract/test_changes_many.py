"""Changes of more sources than one answer looks into: what is listed is in order, and is not said to be all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import pytest
from sqlalchemy import event, insert

from holdfast.changes.listing import ChangeScope, page_of_events
from holdfast.db.engine import Database
from holdfast.db.models import Change, Source
from holdfast.exports.queries import ExportReach
from holdfast.exports.tables import change_rows

BEGIN = datetime(2024, 3, 1, tzinfo=UTC)
SOURCES, CRAWLS, CHANGES = 230, 2, 3


class Row(NamedTuple):
    """A change that was written: when, under which number, of whom."""

    at: datetime
    id: int
    source: int
    execution: int


def _rows() -> list[Row]:
    """Return the changes of all sources, two crawls each, mixed in time and in number."""
    chance = Random(7)
    rows = [
        Row(BEGIN + timedelta(days=crawl, seconds=chance.randrange(80_000)), 0, source, source * CRAWLS + crawl)
        for source in range(1, SOURCES + 1)
        for crawl in range(CRAWLS)
        for _ in range(CHANGES)
    ]
    # One large crawl, the newest of all: it alone fills more than its share of a list.
    rows += [Row(BEGIN + timedelta(days=CRAWLS, seconds=second), 0, 9, 9 * CRAWLS + 1) for second in range(300)]
    chance.shuffle(rows)
    return [row._replace(id=number) for number, row in enumerate(rows, 1)]


ROWS = _rows()


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """Sources and their changes, without captures: lists of changes ask for none."""
    with closing(Database(migrated_url)) as opened:
        with opened.write() as session:
            session.execute(insert(Source), [_source(number) for number in range(1, SOURCES + 1)])
            session.execute(insert(Change), [_change(row) for row in ROWS])
        yield opened


def _source(number: int) -> dict[str, Any]:
    return {"id": number, "code": f"s{number}", "name": "X", "created_at": BEGIN, "updated_at": BEGIN, "config": {},
            "enabled": True}  # fmt: skip


def _change(row: Row) -> dict[str, Any]:
    return {
        "id": row.id, "source_id": row.source, "url_hash": row.id, "to_snapshot_id": row.id,
        "to_execution_id": row.execution, "to_captured_at": row.at, "type": "updated", "computed_at": BEGIN,
    }  # fmt: skip


def _newest(rows: list[Row]) -> list[int]:
    return [row.id for row in sorted(rows, reverse=True)]


def test_changes_of_all_sources_are_listed_and_counted(database: Database) -> None:
    with database.read() as session:
        events, total, is_exact = page_of_events(session, ChangeScope(), offset=0, limit=10_000)

    assert [one.id for one in events] == _newest(ROWS)
    assert (total, is_exact) == (len(ROWS), True)


def test_the_latest_crawls_are_listed_in_order_as_far_as_they_are_known(database: Database) -> None:
    latest = _newest([row for row in ROWS if row.execution % CRAWLS == CRAWLS - 1])
    with database.read() as session:
        events, total, is_exact = page_of_events(session, ChangeScope(latest=True), offset=0, limit=10_000)
        later, _, _ = page_of_events(session, ChangeScope(latest=True), offset=310, limit=20)

    listed = [one.id for one in events]
    assert listed == latest[: len(listed)]
    assert len(listed) > 310, "behind the large crawl come the others"
    assert (total, is_exact) == (len(listed), False)
    assert [one.id for one in later] == latest[310:330]


def test_the_latest_crawl_of_one_source_is_complete(database: Database) -> None:
    with database.read() as session:
        events, _, is_exact = page_of_events(session, ChangeScope(source_id=9, latest=True), offset=0, limit=10_000)

    assert [one.id for one in events] == _newest([row for row in ROWS if row.execution == 9 * CRAWLS + 1])
    assert is_exact


@pytest.mark.parametrize("days", [False, True])
def test_an_export_asks_for_nothing_between_the_changes_of_a_source(database: Database, days: bool) -> None:
    since = BEGIN + timedelta(days=1)
    reach = ExportReach(9, since if days else None)
    wanted = [row for row in ROWS if row.source == 9 and (not days or row.at >= since)]
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if "FROM changes" in statement:
            asked.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    found = [row[0] for row in change_rows(database, reach, site="")]
    event.remove(database.engine, "before_cursor_execute", note)

    assert found == [row.id for row in (sorted(wanted) if days else wanted)]
    assert len(asked) <= 5, "one page, and the end of it"
    pieces: list[Any] = []
    while part := [
        row[0] for row in change_rows(database, reach._replace(after=pieces[-1] if pieces else -1, limit=70), site="")
    ]:
        pieces += part
    assert pieces == found
