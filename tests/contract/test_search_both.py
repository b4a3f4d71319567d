"""Search on SQLite and PostgreSQL: one order of results, the same counts, plans that do not grow with the archive."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert, update

from holdfast.clock import SystemClock
from holdfast.db.models import SearchOutbox
from holdfast.index.indexer import Interrupted
from holdfast.search import outbox, queries
from holdfast.search.directory import IndexDirectory, IndexElsewhere, this_machine
from holdfast.search.near_duplicates import SimilarResults
from holdfast.search.outbox import drain, rebuild, take_over_signals
from holdfast.search.search import NoIndexHere, ResultKind, SearchAnswer, SearchRequest, SearchService, Sort
from holdfast.search.signals import recompute
from tests.clock import FakeClock
from tests.search_bed import DAY, Bed, Capture, open_bed, pages

_WORDS = ("parrot", "cage", "seed", "flight", "colour", "island", "forest", "feather", "market", "harbour")


def _captures() -> list[Capture]:
    """Return pages with many ties: few words, few moments, two languages, links among them."""
    found = []
    for n in range(60):
        words = [_WORDS[(n * k + k) % len(_WORDS)] for k in range(1, 4 + n % 5)]
        found.append(
            Capture(
                url=f"https://h{n % 3}.test/{'deep/' * (n % 4)}p{n % 40}" + ("?x=1" if n % 7 == 0 else ""),
                title=" ".join(words[:2]).title() if n % 4 else None, text=" ".join([*words, "parrot"]),
                language="fr" if n % 3 == 0 else "en", at=DAY + timedelta(days=n % 6), source=f"s{n % 2}",
                status=200 if n % 9 else 404, says_archived=n % 11 == 0,
                links=(f"https://h0.test/p{n % 5}", "https://h1.test/deep/p1"),
            )
        )  # fmt: skip
    return found


_QUESTIONS: list[dict[str, Any]] = [
    {"q": "parrot"},
    {"q": "parrot", "view": ResultKind.PAGES},
    {"q": "parrot seed"},
    {"q": "parrot seed", "passages": 3},
    {"q": "parrot", "sort": Sort.NEWEST, "non_2xx": True},
    {"q": "title:cage OR url:deep"},
    {"q": "NOT url:deep", "view": ResultKind.PAGES},
    {"q": "h1.test/deep/p1"},
    {"q": "parot"},
    {"q": None},
    {"q": "parrot", "source": "s1", "start": DAY.date(), "language": "fr"},
]


@contextmanager
def _filled(url: str, home: Path) -> Iterator[Bed]:
    with open_bed(url, home) as bed:
        bed.fill(_captures()[:40])
        bed.fill(_captures()[40:])
        recompute(bed.database, bed.clock)
        take_over_signals(bed.database, bed.home)
        yield bed


@pytest.fixture
def bed(migrated_url: str, tmp_path: Path) -> Iterator[Bed]:
    """The pages on each kind of database."""
    with _filled(migrated_url, tmp_path / "home") as filled:
        yield filled


def _told(answer: SearchAnswer) -> Any:
    order = [(hit.row.id, hit.row.url, round(sum(hit.parts.values()), 4), hit.captures) for hit in answer.hits]
    return (
        [*order, *((hit.title, hit.passages) for hit in answer.hits)],
        answer.total,
        answer.mode,
        answer.facets,
        answer.histogram,
        answer.did_you_mean,
    )


@pytest.mark.postgres
def test_both_databases_give_one_order(migrated_sqlite: str, migrated_postgres: str, tmp_path: Path) -> None:
    with _filled(migrated_sqlite, tmp_path / "one") as one, _filled(migrated_postgres, tmp_path / "two") as other:
        for question in _QUESTIONS:
            asked = {**question, "page_size": 100, "explain": True}
            mine, theirs = _told(one.ask(**asked)), _told(other.ask(**asked))
            assert mine == theirs, question
            assert mine[1] > 0, question


def test_a_rebuilt_index_gives_the_same_order(bed: Bed, tmp_path: Path) -> None:
    before = [_told(bed.ask(**{**question, "page_size": 100, "explain": True})) for question in _QUESTIONS]

    other = tmp_path / "other"
    from_sql = replace(bed, home=other, search=SearchService(bed.database, other, bed.clock))
    rebuild(bed.database, other, bed.clock)

    assert [_told(from_sql.ask(**{**question, "page_size": 100, "explain": True})) for question in _QUESTIONS] == before


@pytest.mark.postgres
def test_a_transaction_that_commits_late_is_not_missed(migrated_postgres: str, tmp_path: Path) -> None:
    with open_bed(migrated_postgres, tmp_path / "home") as late:
        late.fill(pages(["parrot one"]))
        [snapshot_id] = late.add(pages(["parrot late"], host="late.test"), outbox=False)
        with late.database.write() as slow:
            slow.add(SearchOutbox(kind="snapshots", first_id=snapshot_id, last_id=snapshot_id, refs={}, created_at=DAY))
            slow.flush()
            late.fill(pages(["parrot two"], host="two.test"))
            assert late.ask("parrot").total == 2

        assert late.drain() == 1
        assert late.ask("parrot").total == 3


def test_a_withdrawal_is_honoured_at_once(bed: Bed) -> None:
    total = bed.ask("parrot").total
    hit = bed.ask("parrot").hits[0].row

    bed.withdraw(url=hit.url)

    found = bed.ask("parrot", page_size=100)
    assert hit.url not in [one.row.url for one in found.hits]
    assert found.total == total - 1 == len(found.hits)


_SCANNED = re.compile(r"(?:SCAN|Seq Scan on) (snapshots|documents|document_texts|page_groups)\b")


def test_no_statement_of_a_result_page_walks_a_table(bed: Bed) -> None:
    asked: list[tuple[str, Any]] = []
    engine = bed.database.engine

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, _x: Any, _many: bool) -> None:
        if statement.lstrip().upper().startswith("SELECT"):
            asked.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    bed.ask("parrot", view=ResultKind.PAGES)
    bed.withdraw(snapshot_id=1)
    bed.withdraw(url="https://h0.test/p0")
    bed.ask("parrot")
    event.remove(engine, "before_cursor_execute", note)

    assert len(asked) >= 6
    explain = "EXPLAIN QUERY PLAN " if engine.dialect.name == "sqlite" else "EXPLAIN "
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql("SET enable_seqscan = off")
        for statement, parameters in asked:
            plan = connection.exec_driver_sql(explain + statement, parameters).all()
            told = "\n".join(str(row[-1]) for row in plan)
            assert not _SCANNED.search(told), f"{statement}\n{told}"


def test_a_second_data_directory_on_one_database_is_refused_until_it_takes_over(bed: Bed, tmp_path: Path) -> None:
    bed.fill(pages(["cockatoo one"]))
    other = tmp_path / "other"
    other.mkdir()
    bed.add(pages(["cockatoo two"], host="two.test"))

    with pytest.raises(IndexElsewhere, match=re.escape(str(bed.home.resolve()))):
        drain(bed.database, other, bed.clock)
    with pytest.raises(NoIndexHere, match="holdfast search-index rebuild"):
        SearchService(bed.database, other, bed.clock).ask(SearchRequest(q="cockatoo"))
    assert bed.drain() == 1, "nothing was taken from the index that has them"

    rebuild(bed.database, other, bed.clock)
    bed.add(pages(["cockatoo three"], host="three.test"))

    assert drain(bed.database, other, bed.clock).changes == 1
    assert SearchService(bed.database, other, bed.clock).ask(SearchRequest(q="cockatoo")).total == 3
    with pytest.raises(IndexElsewhere):
        bed.drain()


def test_an_index_whose_directory_is_gone_is_taken_over_at_once(bed: Bed, tmp_path: Path) -> None:
    bed.fill(pages(["cockatoo one"]))
    other = tmp_path / "other"
    other.mkdir()
    shutil.rmtree(bed.home / "search")
    (bed.home / "search-index-id").unlink()

    assert drain(bed.database, other, bed.clock).pages == 61
    assert SearchService(bed.database, other, bed.clock).ask(SearchRequest(q="cockatoo")).total == 1


def test_an_index_that_lacks_what_a_directory_that_is_gone_had_taken_in_is_made_anew(bed: Bed, tmp_path: Path) -> None:
    other = tmp_path / "other"
    rebuild(bed.database, other, bed.clock)
    bed.add(pages(["cockatoo one"]))
    drain(bed.database, other, bed.clock)
    shutil.rmtree(other)

    assert bed.drain() == 0, "nothing waits"

    assert bed.ask("cockatoo").total == 1


def _keep_unseen(bed: Bed, other: Path) -> None:
    """Let the outbox be that of an index which cannot be seen from here, on a machine of the same name."""
    with bed.database.write() as session:
        row = session.get_one(SearchOutbox, 0)
        row.refs = {**row.refs, "identity": "unseen", "home": str(other.resolve()), "machine": "another boot"}
        row.created_at = bed.clock.now()


def test_of_two_containers_of_one_name_and_path_only_one_takes_in_the_changes(bed: Bed) -> None:
    bed.fill(pages(["cockatoo one"]))
    _keep_unseen(bed, bed.home)
    bed.add(pages(["cockatoo two"], host="two.test"))

    with pytest.raises(IndexElsewhere):
        bed.drain()


def test_an_index_that_is_silent_is_taken_over_with_all_that_it_had_taken_in(bed: Bed, tmp_path: Path) -> None:
    bed.fill(pages(["cockatoo one"]))
    _keep_unseen(bed, tmp_path / "other")
    bed.add(pages(["cockatoo two"], host="two.test"), outbox=False)  # the other one has taken it in
    bed.add(pages(["cockatoo three"], host="three.test"))
    with bed.database.write() as session:
        session.execute(update(SearchOutbox).where(SearchOutbox.id > 0).values(created_at=bed.clock.now()))

    with pytest.raises(IndexElsewhere):
        bed.drain()
    assert isinstance(bed.clock, FakeClock)
    bed.clock.advance(3601)
    with pytest.raises(Interrupted):
        rebuild(bed.database, bed.home, bed.clock, is_stopping=lambda: True, by_force=False)
    bed.drain()

    assert bed.ask("cockatoo").total == 3


class _FastClock(SystemClock):
    def now(self) -> datetime:
        return super().now() + timedelta(hours=3)


@pytest.mark.parametrize("migrated_url", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
def test_outbox_is_kept_from_a_machine_whose_clock_is_fast(bed: Bed, tmp_path: Path) -> None:
    _keep_unseen(bed, tmp_path / "other")
    bed.add(pages(["cockatoo two"], host="two.test"))
    with bed.database.write() as session:
        session.execute(update(SearchOutbox).values(created_at=SystemClock().now()))

    with pytest.raises(IndexElsewhere):
        drain(bed.database, bed.home, _FastClock())


def test_what_an_index_took_in_before_another_had_the_outbox_goes_on_waiting(bed: Bed, tmp_path: Path) -> None:
    bed.fill(pages(["cockatoo one"]))
    bed.add(pages(["cockatoo two"], host="two.test"))

    def taken_over(_pages: int) -> None:
        _keep_unseen(bed, tmp_path / "other")

    with pytest.raises(IndexElsewhere):
        drain(bed.database, bed.home, bed.clock, progress=taken_over)
    with bed.database.read() as session:
        assert queries.waiting_count(session) == 1


def test_an_index_in_the_making_ends_when_another_takes_the_outbox_even_if_that_one_is_gone_again(
    bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_PAGES_AT_ONCE", 20)
    total = bed.ask("parrot").total
    seen: list[int] = []

    def taken_over(count: int) -> None:
        seen.append(count)
        if not count:
            return
        _keep_unseen(bed, tmp_path / "gone")
        with bed.database.write() as session:
            row = session.get_one(SearchOutbox, 0)
            row.refs = {**row.refs, "machine": this_machine()}

    with pytest.raises(IndexElsewhere):
        rebuild(bed.database, bed.home, bed.clock, progress=taken_over)
    assert seen == [0, 20]
    assert IndexDirectory(bed.home).exists(), "the old one serves"

    assert rebuild(bed.database, bed.home, bed.clock) == 60
    assert bed.ask("parrot").total == total


def test_the_next_of_equal_captures_stands_for_a_day_whose_first_was_withdrawn(
    migrated_url: str, tmp_path: Path
) -> None:
    page = Capture(url="https://quiet.test/", title="Quiet", text="parrot alone")
    moments = [DAY + timedelta(hours=hour) for hour in (0, 1, 2, 30)]
    with open_bed(migrated_url, tmp_path / "home") as bed:
        ids = bed.fill([replace(page, at=at) for at in moments])
        shown = {"sort": Sort.NEWEST, "similar": SimilarResults.SHOW}

        def found() -> list[int]:
            return [hit.row.id for hit in bed.ask("parrot", **shown).hits]

        assert found() == [ids[3], ids[0]]
        bed.withdraw(snapshot_id=ids[0])
        assert found() == [ids[3], ids[1]]
        bed.withdraw(snapshot_id=ids[1])
        assert found() == [ids[3], ids[2]]
        bed.withdraw(snapshot_id=ids[3])
        assert found() == [ids[2]]
        bed.withdraw(url=page.url)
        assert found() == []


def test_search_answers_while_very_many_takedowns_wait(bed: Bed) -> None:
    bed.fill(pages(["text"]))
    waiting = {"kind": "withdrawal", "refs": {"hashes": [1], "hidden": True}, "created_at": DAY}
    with bed.database.write() as session:
        session.execute(insert(SearchOutbox), [waiting] * 70_000)

    assert [bed.ask("text").total for _ in range(2)] == [1, 1]
