"""Derived rows set right, on both databases: groups, pages without one, duplicates, links."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import AuditEvent, PageGroup, PageLink, SearchOutbox, Snapshot
from holdfast.db.raw import RawDatabase
from holdfast.index import maintenance
from holdfast.index.maintenance import LinkReader, dedupe, group_pages, rebuild_groups, restore
from holdfast.parse.child import ParseChild
from tests.archive import BEGIN, Shot, build_archive

_TEXT = "<p>" + "Words that say enough about a page to be taken for its content. " * 3 + "</p>"
LINKED = f"<main>{_TEXT}<a href='/b'>b</a><a href='/c'>c</a></main>"
SHOTS = [
    Shot(url="https://example.org/", body=LINKED),
    Shot(url="https://example.org/b?x=1"),
    Shot(url="https://example.org/", body=LINKED, moment=BEGIN + timedelta(hours=1), execution=2),
    Shot(url="https://example.org/", body=LINKED, moment=BEGIN + timedelta(days=1), execution=2),
    Shot(url="https://other.example/", source="other"),
]


class House:
    """A small archive, and its rows."""

    def __init__(self, url: str, home: Path) -> None:
        build_archive(home, SHOTS, database_url=url).database.close()
        self.home, self.clock = home, SystemClock()
        self.raw_db: RawDatabase = connect(url)
        self.database = Database(url)
        with self.database.write() as session:
            session.execute(delete(SearchOutbox))

    def groups(self) -> list[tuple[object, ...]]:
        """Return the groups as they are."""
        with self.database.read() as session:
            rows = session.scalars(select(PageGroup).order_by(PageGroup.url))
            return [(row.url, row.snapshot_count, row.first_captured_at, row.last_captured_at, row.latest_id,
                     row.latest_ok_id) for row in rows]  # fmt: skip

    def canonical(self) -> list[int | None]:
        """Return what each snapshot calls canonical."""
        with self.database.read() as session:
            return list(session.scalars(select(Snapshot.canonical_id).order_by(Snapshot.id)))

    def told(self) -> int:
        """Return how many words were left for search."""
        with self.database.read() as session:
            return len(list(session.scalars(select(SearchOutbox.id))))


@pytest.fixture
def house(migrated_url: str, tmp_path: Path) -> Iterator[House]:
    opened = House(migrated_url, tmp_path / "home")
    yield opened
    opened.raw_db.close()
    opened.database.close()


def _nothing(_count: int) -> None:
    pass


def test_wrong_groups_are_counted_and_rewritten_and_right_ones_left_alone(house: House) -> None:
    right = house.groups()
    assert rebuild_groups(house.raw_db, apply=True, seen=_nothing).wrong == 0
    with house.database.write() as session:
        session.execute(
            update(PageGroup).where(PageGroup.url == "https://example.org/").values(snapshot_count=9, latest_id=1)
        )
        session.execute(update(PageGroup).where(PageGroup.url == "https://other.example/").values(latest_ok_id=None))
        source_id = session.scalars(select(PageGroup.source_id).where(PageGroup.url.like("%other%"))).one()
        session.add(PageGroup(source_id=source_id, url="https://other.example/gone", url_hash=7, snapshot_count=3,
                              first_captured_at=BEGIN, last_captured_at=BEGIN, latest_id=1))  # fmt: skip
    dry = rebuild_groups(house.raw_db, apply=False, seen=_nothing)
    assert (dry.looked, dry.wrong, dry.empty) == (4, 3, 1)
    assert house.groups() != right
    assert rebuild_groups(house.raw_db, source_id=source_id, apply=False, seen=_nothing).wrong == 2

    rebuild_groups(house.raw_db, apply=True, seen=_nothing)

    assert house.groups() == right


def test_pages_without_a_group_get_theirs_back(house: House) -> None:
    right = house.groups()
    with house.database.write() as session:
        session.execute(update(Snapshot).values(group_id=None))
        session.execute(delete(PageGroup).where(PageGroup.url == "https://example.org/b"))
    assert group_pages(house.raw_db, house.clock, apply=False, seen=_nothing) == 5
    assert house.told() == 0

    assert group_pages(house.raw_db, house.clock, apply=True, seen=_nothing) == 5

    assert house.groups() == right
    assert group_pages(house.raw_db, house.clock, apply=True, seen=_nothing) == 0
    assert house.told() > 0


def test_duplicates_are_let_go_and_settled_again(house: House) -> None:
    right = house.canonical()
    assert sum(one is not None for one in right) == 1
    assert dedupe(house.raw_db, house.clock, execution_id=None, apply=True, seen=_nothing).changed == 0

    dry = restore(house.raw_db, house.clock, execution_id=None, apply=False, seen=_nothing)
    assert (dry.looked, dry.changed, house.canonical()) == (1, 0, right)
    assert restore(house.raw_db, house.clock, execution_id=1, apply=True, seen=_nothing).changed == 0
    assert restore(house.raw_db, house.clock, execution_id=2, apply=True, seen=_nothing).changed == 1
    assert set(house.canonical()) == {None}
    with house.database.read() as session:
        assert session.scalars(select(AuditEvent.action)).one() == "snapshot.dedup_undone"

    dry = dedupe(house.raw_db, house.clock, execution_id=None, apply=False, seen=_nothing)
    assert (dry.looked, dry.changed, set(house.canonical())) == (5, 1, {None})
    before = house.told()
    assert dedupe(house.raw_db, house.clock, execution_id=2, apply=True, seen=_nothing).changed == 1
    assert house.canonical() == right
    assert house.told() == before + 1


def test_links_come_back_once_for_each_address_and_text(house: House) -> None:
    def links() -> list[tuple[int, str]]:
        query = select(PageLink.snapshot_id, PageLink.to_url).order_by(PageLink.snapshot_id, PageLink.to_url)
        with house.database.read() as session:
            return [(row[0], row[1]) for row in session.execute(query)]

    right = links()
    assert [url for _, url in right] == ["https://example.org/b", "https://example.org/c"]
    with house.database.write() as session:
        session.execute(delete(PageLink))
    with closing(ParseChild(deadline_s=10.0)) as child:
        reader = LinkReader(house.database, house.raw_db, house.home, child, clock=SystemClock())
        done = reader.backfill(execution_id=None, seen=_nothing)
        assert (done.links, done.failed, links()) == (2, {}, right)
        next(house.home.glob("warcs/other/*/*.warc.gz")).unlink()
        lost = reader.backfill(execution_id=None, seen=_nothing)
    assert (lost.links, len(lost.failed)) == (0, 1)


def test_a_walk_goes_on_behind_the_last_row_of_one_execution(house: House) -> None:
    with house.raw_db.read() as tx:
        first, second = maintenance.captures_after(tx, after=0, execution_id=1, limit=10)[:2]
        again = maintenance.captures_after(tx, after=first[0], execution_id=1, limit=1)

    assert again == [second]
