"""What a file becomes in the archive, on both databases: rows, ids, revisits, duplicates, groups, a second reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any, cast

import pytest
import zstandard
from sqlalchemy import func, select

from holdfast.clock import SystemClock, digits14
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Document, IndexRun, LinkText, PageGroup, PageLink, SearchOutbox, Snapshot, Source
from holdfast.db.raw import RawDatabase, Row, Transaction
from holdfast.index.forgetting import forget_file
from holdfast.index.indexer import Indexer, index_pending
from holdfast.index.leases import FileToIndex, ReadProgress
from holdfast.index.queries import text_of
from holdfast.index.writing import resolve_some
from holdfast.parse.page import MAX_PARSED_BYTES
from holdfast.replay.finding import candidates
from holdfast.warc.record import ORDINALS
from tests.archive import BEGIN, Shot, add_captures, build_archive, days_later, index_all
from tests.clock import FakeClock
from tests.patience import deadline

PAGE = "https://example.org/a"
LINKS = (
    '<main><h1>Head</h1><p>{}</p><a href="/b">b</a><a href="https://other.org/?q=1">o</a><a href="/x.png">x</a></main>'
)
BODY = LINKS.format("Words that say enough about a page to be taken for its content, and then a few more of them. " * 2)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data directory."""
    return tmp_path / "home"


class Rows:
    """All that the index wrote."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)

    def all(self, model: Any) -> list[Any]:
        """Return every row of a table in the order of its key."""
        with self.database.read() as session:
            return list(session.scalars(select(model).order_by(model.__mapper__.primary_key[0])))

    def count(self, model: Any) -> int:
        """Return how many rows a table has."""
        with self.database.read() as session:
            return session.scalar(select(func.count()).select_from(model)) or 0

    def facts(self) -> list[tuple[Any, ...]]:
        """Return the snapshots as plain values, those of the group replaced by its address."""
        groups = {group.id: group.url for group in self.all(PageGroup)}
        columns = [column.key for column in Snapshot.__table__.columns if column.key != "group_id"]
        return [
            (*(getattr(row, name) for name in columns), groups.get(row.group_id or 0)) for row in self.all(Snapshot)
        ]


@pytest.fixture
def rows(migrated_url: str) -> Iterator[Rows]:
    """The tables of the database that the test writes to."""
    opened = Rows(migrated_url)
    yield opened
    opened.database.close()


def _build(home: Path, url: str, shots: list[Shot]) -> None:
    build_archive(home, shots, database_url=url).database.close()


def test_a_response_becomes_a_snapshot_with_its_document_group_and_links(
    home: Path, migrated_url: str, rows: Rows
) -> None:
    _build(home, migrated_url, [Shot(url=PAGE + "?q=2", body=f"<title>T</title>{BODY}")])

    (snapshot,) = rows.all(Snapshot)
    (document,) = rows.all(Document)
    (group,) = rows.all(PageGroup)
    assert snapshot.id == snapshot.warc_file_id * ORDINALS + 1
    assert (snapshot.url_key, snapshot.status, snapshot.is_page) == ("org,example)/a?q=2", 200, True)
    assert (snapshot.captured_at, snapshot.backend, snapshot.compared) == (BEGIN, "native", False)
    assert (snapshot.document_id, snapshot.group_id) == (document.id, group.id)
    assert (document.title, document.headings, document.media_type, document.charset) == (
        "T", "Head", "text/html", "utf-8",
    )  # fmt: skip
    with rows.database.read() as session:
        assert (text_of(session, document.id) or "").startswith("Head\nWords that say")
    assert (group.url, group.snapshot_count, group.latest_id, group.latest_ok_id) == (
        PAGE, 1, snapshot.id, snapshot.id,
    )  # fmt: skip
    links = {link.to_url: link for link in rows.all(PageLink)}
    assert sorted(links) == ["https://example.org/b", "https://other.org/"]
    assert {link.from_hash for link in links.values()} == {group.url_hash}
    assert [(one.kind, one.first_id, one.refs) for one in rows.all(SearchOutbox)] == [
        ("documents", document.id, {"ids": [document.id]}), ("snapshots", snapshot.id, {}),
    ]  # fmt: skip


def test_a_page_captured_again_unchanged_adds_snapshot_rows_only(home: Path, migrated_url: str, rows: Rows) -> None:
    _build(home, migrated_url, [Shot(url=PAGE, body=BODY)])
    before = [rows.count(model) for model in (Document, PageGroup, PageLink)]

    _build(home, migrated_url, [Shot(url=PAGE, body=BODY, moment=days_later(3), execution=2)])

    assert [rows.count(model) for model in (Document, PageGroup, PageLink)] == before
    first, second = rows.all(Snapshot)
    assert first.document_id == second.document_id
    assert second.canonical_id is None
    (group,) = rows.all(PageGroup)
    assert (group.snapshot_count, group.latest_id, group.last_captured_at) == (2, second.id, days_later(3))


def test_of_two_captures_of_one_moment_the_one_stored_last_is_the_latest(
    home: Path, migrated_url: str, rows: Rows
) -> None:
    _build(home, migrated_url, [Shot(url=PAGE, body=BODY)])
    _build(home, migrated_url, [Shot(url=PAGE, body=BODY, execution=2)])

    first, second = rows.all(Snapshot)
    (group,) = rows.all(PageGroup)
    assert first.captured_at == second.captured_at
    assert (group.latest_id, group.latest_ok_id) == (second.id, second.id)


def test_the_same_body_under_another_address_has_its_own_links(home: Path, migrated_url: str, rows: Rows) -> None:
    _build(home, migrated_url, [Shot(url=PAGE, body=BODY)])

    _build(home, migrated_url, [Shot(url="https://twin.org/dir/a", body=BODY, execution=2)])

    second = rows.all(Snapshot)[1]
    assert {link.to_url for link in rows.all(PageLink) if link.snapshot_id == second.id} == {
        "https://twin.org/b", "https://other.org/",
    }  # fmt: skip


def test_revisits_take_document_and_body_from_their_original(home: Path, migrated_url: str, rows: Rows) -> None:
    _build(
        home, migrated_url,
        [
            Shot(url=PAGE, body=BODY),
            Shot(url=PAGE, same_as=PAGE, moment=days_later(1)),
            Shot(url=PAGE, same_as=PAGE, not_modified=True, moment=days_later(2), execution=2),
            Shot(url="https://example.org/alias", same_as=PAGE, moment=days_later(3), execution=2),
        ],
    )  # fmt: skip

    original, *revisits = rows.all(Snapshot)
    assert [row.record_type for row in revisits] == ["revisit"] * 3
    assert {row.original_id for row in revisits} == {original.id}
    assert {(row.document_id, row.body_hash, row.is_page) for row in revisits} == {
        (original.document_id, original.body_hash, True)
    }
    assert {row.media_type for row in revisits} == {"text/html"}
    groups = {group.url: group for group in rows.all(PageGroup)}
    assert groups[PAGE].snapshot_count == 3
    assert groups[PAGE].latest_ok_id == revisits[1].id


def test_a_revisit_that_is_read_before_its_original_finds_it_later(home: Path, migrated_url: str, rows: Rows) -> None:
    shots = [
        Shot(url=PAGE, body=BODY),
        Shot(url=PAGE, same_as=PAGE, not_modified=True, moment=days_later(2), execution=2),
    ]
    archive = build_archive(home, shots, database_url=migrated_url, index=False)
    with closing(connect(migrated_url)) as raw_db, closing(Indexer(raw_db, SystemClock(), home)) as indexer:
        indexer.index_file(2)
        (alone,) = rows.all(Snapshot)
        assert (alone.original_id, alone.is_page, alone.group_id) == (None, False, None)

        indexer.index_file(1)

    original, revisit = rows.all(Snapshot)
    assert (revisit.original_id, revisit.document_id, revisit.is_page) == (original.id, original.document_id, True)
    (group,) = rows.all(PageGroup)
    assert (group.snapshot_count, group.latest_id) == (2, revisit.id)
    assert any(one.kind == "snapshots" and one.first_id <= revisit.id <= one.last_id for one in rows.all(SearchOutbox))
    archive.database.close()


def test_what_a_revisit_asks_of_search_engines_holds_when_its_original_comes_later(
    home: Path, migrated_url: str, rows: Rows
) -> None:
    shots = [
        Shot(url=PAGE, body=BODY),
        Shot(url=PAGE, same_as=PAGE, headers={"X-Robots-Tag": "noindex"}, moment=days_later(2), execution=2),
    ]
    archive = build_archive(home, shots, database_url=migrated_url, index=False)
    with closing(connect(migrated_url)) as raw_db, closing(Indexer(raw_db, SystemClock(), home)) as indexer:
        indexer.index_file(2)
        indexer.index_file(1)
        found = rows.facts()
        again = indexer.index_file(2)

    original, revisit = rows.all(Snapshot)
    assert (original.noindex, revisit.noindex, revisit.original_id) == (False, True, original.id)
    assert again is not None
    assert (again.changed, rows.facts()) == (0, found)
    archive.database.close()


class _CountingDatabase:
    """Like the connection that it wraps; counts the rows that are read."""

    def __init__(self, raw_db: RawDatabase) -> None:
        self._raw_db, self.rows = raw_db, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw_db, name)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a transaction that reads."""
        with self._raw_db.read() as tx:
            yield _CountingTransaction(tx, self)


class _CountingTransaction:
    def __init__(self, tx: Transaction, counted: _CountingDatabase) -> None:
        self._tx, self._counted = tx, counted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        found = self._tx.execute(statement, values)
        self._counted.rows += len(found)
        return found


_COPY = (
    "INSERT INTO snapshots(id, warc_file_id, execution_id, source_id, warc_offset, warc_length, record_type, url,"
    " url_key, url_hash, captured_at, is_page) SELECT ?, warc_file_id, execution_id, source_id, warc_offset,"
    " warc_length, record_type, url, ?, ?, captured_at, is_page FROM snapshots WHERE id = ?"
)


def test_a_file_reads_no_more_however_many_revisits_wait_for_originals_that_never_come(
    home: Path, migrated_url: str, rows: Rows
) -> None:
    shots = [
        Shot(url=PAGE, body=BODY),
        Shot(url=PAGE, same_as=PAGE, moment=days_later(2), execution=2),
        Shot(url="https://example.org/alias", same_as=PAGE, moment=days_later(3), execution=2),
    ]
    build_archive(home, shots, database_url=migrated_url, index=False).database.close()
    read = []
    with closing(connect(migrated_url)) as raw_db:
        counting = _CountingDatabase(raw_db)
        with closing(Indexer(cast(RawDatabase, counting), SystemClock(), home)) as indexer:
            indexer.index_file(2)
            same, _ = (row.id for row in rows.all(Snapshot))
            for start in (10, 20):
                with raw_db.write() as tx:
                    first = start * ORDINALS
                    tx.many(_COPY, [(first + n, f"org,other)/{start + n}", first + n, same) for n in range(6_000)])
                before = counting.rows
                indexer.index_file(1)
                read.append(counting.rows - before)
        found = {row.url: row.original_id for row in rows.all(Snapshot) if row.id < 10 * ORDINALS}
        resolved = resolve_some(raw_db, after=-1, now=0)

    assert found[PAGE] is not None, "at the same address it is found whenever it was read"
    assert read[1] <= read[0]
    assert (found["https://example.org/alias"], resolved) == (None, 1), "the other is found now and then"


class _WaitingHot:
    """Like the connection that it wraps; each write waits until another connection is about to write, too."""

    def __init__(self, raw_db: RawDatabase, line: Barrier) -> None:
        self._raw_db, self._line = raw_db, line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw_db, name)

    def write(self) -> AbstractContextManager[Transaction]:
        """Open a transaction that may write, when both have read."""
        self._line.wait(timeout=deadline(30))
        return self._raw_db.write()


def test_a_revisit_that_two_indexers_resolve_at_one_moment_is_counted_once(
    home: Path, migrated_url: str, rows: Rows
) -> None:
    alias = "https://example.org/alias"
    _build(home, migrated_url, [Shot(url=PAGE, body=BODY), Shot(url=alias, same_as=PAGE, moment=days_later(3))])
    line = Barrier(2)

    def resolve(_: int) -> int:
        with closing(connect(migrated_url)) as raw_db:
            return resolve_some(cast(RawDatabase, _WaitingHot(raw_db, line)), after=-1, now=0)

    with closing(connect(migrated_url)) as raw_db, raw_db.write() as tx:
        tx.execute(
            "UPDATE snapshots SET original_id = NULL, group_id = NULL, media_type = NULL, is_page = (1 = 0)"
            " WHERE record_type = 'revisit'"
        )
        tx.execute("DELETE FROM page_groups WHERE url = ?", (alias,))
    with ThreadPoolExecutor(2) as pool:
        resolved = sorted(pool.map(resolve, range(2)))

    assert sum(resolved) == 1
    assert {group.url: group.snapshot_count for group in rows.all(PageGroup)} == {PAGE: 1, alias: 1}


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_a_revisit_of_another_address_finds_its_original_in_either_order(
    home: Path, migrated_url: str, rows: Rows, order: tuple[int, int]
) -> None:
    shots = [
        Shot(url=PAGE, body=BODY),
        Shot(url="https://example.org/alias", same_as=PAGE, moment=days_later(3), execution=2),
    ]
    build_archive(home, shots, database_url=migrated_url, index=False).database.close()
    with closing(connect(migrated_url)) as raw_db, closing(Indexer(raw_db, SystemClock(), home)) as indexer:
        for number in order:
            indexer.index_file(number)

    original, revisit = rows.all(Snapshot)
    assert revisit.original_id == original.id


@pytest.mark.parametrize(
    ("visibility", "has_own", "not_modified", "found"),
    [
        ("members", True, False, "open"),
        ("members", True, True, "open"),
        ("members", False, False, None),
        ("public", True, False, "open"),
        ("public", False, False, "club"),
        ("public", False, True, None),
    ],
)
def test_revisit_takes_its_original_from_its_own_source_or_an_equal_public_body(
    home: Path, migrated_url: str, rows: Rows, visibility: str, has_own: bool, not_modified: bool, found: str | None
) -> None:
    club = Shot(url=PAGE, body=BODY, moment=days_later(2), source="club")
    revisit = Shot(url=PAGE, same_as=PAGE, not_modified=not_modified, moment=days_later(3), source="open")
    own = [Shot(url=PAGE, body=BODY, source="open")] if has_own else []
    build_archive(home, [club, revisit, *own], database_url=migrated_url, index=False).database.close()
    with closing(connect(migrated_url)) as raw_db:
        with raw_db.write() as tx:
            tx.execute("UPDATE sources SET visibility = ? WHERE code = 'club'", (visibility,))
        index_all(raw_db, SystemClock(), home)

    sources = {row.id: row.code for row in rows.all(Source)}
    source_of = {row.id: sources[row.source_id] for row in rows.all(Snapshot)}
    [stored] = [row for row in rows.all(Snapshot) if row.record_type == "revisit"]
    assert source_of.get(stored.original_id) == found


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_what_the_crawler_asked_for_itself_stays_no_page_although_it_repeats_one(
    home: Path, migrated_url: str, rows: Rows, order: tuple[int, int]
) -> None:
    shots = [
        Shot(url=PAGE, body=BODY),
        Shot(url=PAGE, same_as=PAGE, purpose="sitemap", moment=days_later(2), execution=2),
    ]
    build_archive(home, shots, database_url=migrated_url, index=False).database.close()
    with closing(connect(migrated_url)) as raw_db, closing(Indexer(raw_db, SystemClock(), home)) as indexer:
        for number in order:
            indexer.index_file(number)

    original, revisit = rows.all(Snapshot)
    assert revisit.original_id == original.id
    assert (original.is_page, revisit.is_page, revisit.group_id) == (True, False, None)
    (group,) = rows.all(PageGroup)
    assert group.snapshot_count == 1


def test_the_earliest_of_a_day_is_canonical_even_if_it_comes_last(home: Path, migrated_url: str, rows: Rows) -> None:
    late, early = BEGIN.replace(hour=20), BEGIN.replace(hour=3)
    _build(home, migrated_url, [Shot(url=PAGE, body=BODY, moment=late), Shot(url=PAGE, body="other", moment=late)])
    assert [row.canonical_id for row in rows.all(Snapshot)] == [None, None]

    _build(home, migrated_url, [Shot(url=PAGE, body=BODY, moment=early, execution=2)])
    _build(home, migrated_url, [Shot(url=PAGE, body=BODY, moment=days_later(1), execution=3)])

    first, other, second, next_day = rows.all(Snapshot)
    assert first.canonical_id == second.id
    assert (other.canonical_id, second.canonical_id, next_day.canonical_id) == (None, None, None)


def test_duplicates_are_settled_within_a_source(home: Path, migrated_url: str, rows: Rows) -> None:
    hours = (BEGIN.replace(hour=hour) for hour in (3, 4, 5))
    shots = [
        Shot(url=PAGE, body=BODY, moment=moment, source=source, execution=number)
        for number, (source, moment) in enumerate(zip(("town", "county", "county"), hours, strict=True), 1)
    ]
    _build(home, migrated_url, shots)

    town, county, again = sorted(rows.all(Snapshot), key=lambda row: row.captured_at)
    assert (town.canonical_id, county.canonical_id, again.canonical_id) == (None, None, county.id)


def test_reading_a_file_again_changes_nothing_and_says_nothing(home: Path, migrated_url: str, rows: Rows) -> None:
    shots = [Shot(url=f"https://example.org/{n}", body=BODY.replace("Head", str(n % 7))) for n in range(30)]
    shots += [Shot(url=shots[0].url, same_as=shots[0].url, moment=days_later(1))]
    _build(home, migrated_url, shots)
    before, told = rows.facts(), rows.count(SearchOutbox)
    groups = [(group.url, group.snapshot_count, group.latest_id) for group in rows.all(PageGroup)]

    with closing(connect(migrated_url)) as raw_db, closing(Indexer(raw_db, SystemClock(), home)) as indexer:
        done = indexer.index_file(1)

    assert done is not None
    assert (done.changed, done.snapshots, done.error) == (0, 31, None)
    assert rows.facts() == before
    assert [(group.url, group.snapshot_count, group.latest_id) for group in rows.all(PageGroup)] == groups
    assert rows.count(SearchOutbox) == told


def test_a_row_whose_record_is_no_longer_one_goes_with_the_next_reading(
    home: Path, migrated_url: str, rows: Rows
) -> None:
    _build(home, migrated_url, [Shot(url=PAGE, body=BODY), Shot(url="https://example.org/b", body="two")])
    good = rows.facts()
    with closing(connect(migrated_url)) as raw_db:
        _plant_stale_row(raw_db)
        assert rows.count(Snapshot) == 3

        with closing(Indexer(raw_db, SystemClock(), home)) as indexer:
            indexer.index_file(1)

    assert rows.facts() == good
    assert {group.url: group.snapshot_count for group in rows.all(PageGroup)} == {PAGE: 1, "https://example.org/b": 1}


def test_links_of_a_forgotten_file_stay_with_the_next_capture(home: Path, migrated_url: str, rows: Rows) -> None:
    _build(
        home, migrated_url, [Shot(url=PAGE, body=BODY), Shot(url=PAGE, body=BODY, moment=days_later(1), execution=2)]
    )
    assert {link.snapshot_id for link in rows.all(PageLink)} == {rows.all(Snapshot)[0].id}

    with closing(connect(migrated_url)) as raw_db:
        forget_file(raw_db, SystemClock(), 1)

    (left,) = rows.all(Snapshot)
    assert {(link.snapshot_id, link.to_url) for link in rows.all(PageLink)} == {
        (left.id, "https://example.org/b"), (left.id, "https://other.org/"),
    }  # fmt: skip
    assert {text.snapshot_id for text in rows.all(LinkText)} == {left.id}


def test_body_longer_than_is_parsed_is_noted_as_cut(home: Path, migrated_url: str, rows: Rows) -> None:
    _build(home, migrated_url, [Shot(url=PAGE, body=BODY + "<!--" + "-" * MAX_PARSED_BYTES)])

    (document,) = rows.all(Document)
    assert document.details["problems"] == ["body_cut"]


def _plant_stale_row(raw_db: RawDatabase) -> None:
    columns = "warc_file_id, execution_id, source_id, warc_offset, warc_length, record_type, url, url_key, url_hash"
    rest = "group_id, captured_at, status, body_hash, document_id, is_page"
    with raw_db.write() as tx:
        tx.execute(
            f"INSERT INTO snapshots(id, {columns}, {rest}) SELECT id + 700, {columns}, {rest} FROM snapshots"
            f" WHERE id = {ORDINALS + 1}"
        )
        tx.execute("UPDATE page_groups SET snapshot_count = 2 WHERE url = ?", (PAGE,))


def test_a_post_is_another_page_than_the_get(home: Path, migrated_url: str, rows: Rows) -> None:
    _build(home, migrated_url, [Shot(url=PAGE), Shot(url=PAGE, method="POST", sent=b"b=2&a=1")])

    get, post = rows.all(Snapshot)
    assert (get.method, post.method) == (None, "POST")
    assert post.url_key == "org,example)/a?__wb_method=post&a=1&b=2"
    assert get.url_hash != post.url_hash
    with rows.database.read() as session:
        assert [one.id for one in candidates(session, PAGE, digits14(BEGIN))] == [get.id]


def test_files_of_one_source_share_groups_and_those_of_another_do_not(
    home: Path, migrated_url: str, rows: Rows
) -> None:
    _build(home, migrated_url, [Shot(url=PAGE), Shot(url=PAGE, source="second")])

    assert [(group.url, group.snapshot_count) for group in rows.all(PageGroup)] == [(PAGE, 1), (PAGE, 1)]


def test_what_waits_is_read_once_by_whoever_comes_first(home: Path, migrated_url: str, rows: Rows) -> None:
    archive = build_archive(home, [Shot(url=PAGE)], database_url=migrated_url, index=False)
    with closing(connect(migrated_url)) as raw_db:
        assert [done.snapshots for done in index_all(raw_db, archive.clock, home)] == [1]
        assert index_all(raw_db, archive.clock, home) == []
        add_captures(raw_db, archive.settings, FakeClock(), [Shot(url=PAGE, execution=2)])
        assert [done.snapshots for done in index_all(raw_db, archive.clock, home)] == [1]
    archive.database.close()


def test_an_unforeseen_error_ends_one_file_and_is_told(home: Path, migrated_url: str, rows: Rows) -> None:
    archive = build_archive(
        home, [Shot(url=PAGE), Shot(url=PAGE, execution=2)], database_url=migrated_url, index=False
    )  # fmt: skip
    clock = SystemClock()
    with (
        closing(connect(migrated_url)) as raw_db,
        closing(Indexer(raw_db, clock, home, on_progress=_fail_in_the_first_file)) as indexer,
    ):
        first, second = index_pending(indexer, raw_db, clock)
    archive.database.close()

    assert first.error == "unexpected ZeroDivisionError: a bug"
    assert (second.error, second.snapshots) == (None, 1)
    assert [run.phase for run in rows.all(IndexRun)] == ["failed", "finished"]


def _fail_in_the_first_file(file: FileToIndex, _progress: ReadProgress) -> None:
    if file.id == 1:
        raise ZeroDivisionError("a bug")


class _Overtaken:
    """A transaction in which a newer program has stored its reading of all documents just before ours is stored."""

    def __init__(self, tx: Transaction, newer: bytes) -> None:
        self._tx, self._newer = tx, newer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def many(self, statement: str, rows: Any) -> None:
        if statement.startswith("INSERT INTO documents("):
            self._tx.execute("UPDATE documents SET version = 99, title = 'Newer'")
            self._tx.execute("UPDATE document_texts SET text = ?", (self._newer,))
        self._tx.many(statement, rows)


class _OvertakenDatabase:
    def __init__(self, raw_db: RawDatabase, newer: bytes) -> None:
        self._raw_db, self._newer = raw_db, newer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw_db, name)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._raw_db.write() as tx:
            yield cast(Transaction, _Overtaken(tx, self._newer))


def test_an_older_program_replaces_neither_the_document_nor_the_text_of_a_newer_one(
    home: Path, migrated_url: str, rows: Rows
) -> None:
    _build(home, migrated_url, [Shot(url=PAGE, body=BODY)])
    newer = zstandard.ZstdCompressor().compress(b"What the newer program read")
    with closing(connect(migrated_url)) as raw_db:
        with raw_db.write() as tx:
            tx.execute("UPDATE documents SET version = 1")
        overtaken = cast(RawDatabase, _OvertakenDatabase(raw_db, newer))
        with closing(Indexer(overtaken, SystemClock(), home)) as indexer:
            indexer.index_file(1)

    (document,) = rows.all(Document)
    with rows.database.read() as session:
        assert (document.version, document.title, text_of(session, document.id)) == (
            99, "Newer", "What the newer program read",
        )  # fmt: skip
