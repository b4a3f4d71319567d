"""Pages found by their keywords: all of them, exactly, never by walking; what was withdrawn is not found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Connection, event, select, text

from holdfast.crawl.signal_pages import SignalPageRow, SignalQuery, find_pages, keywords_of, page_by_hash, page_of
from holdfast.db.engine import Database
from holdfast.db.models import PageSignal, Withdrawal
from holdfast.errors import NotFound
from holdfast.frontier import Frontier
from holdfast.search.signals import recompute
from holdfast.types import FoundUrl as Address
from holdfast.types import Signals, UrlKind
from holdfast.urls import hash64, parse
from tests.clock import FakeClock
from tests.contract.frontier_bed import EXECUTION, Bed

_PAGES = 1500


def _text(number: int) -> str:
    """Return what a page says: `all` on every page, `third` on every third, `page7` on one; and an accent."""
    third = "third" if number % 3 == 0 else "other"
    return f"all {third} page{number} Hôpital{number % 50}"


def _fill(bed: Bed, frontier: Frontier) -> None:
    urls = [parse(f"https://{'a' if number % 2 else 'b'}.example/{number}") for number in range(_PAGES)]
    numbers = {url.hash64: number for number, url in enumerate(urls)}
    found = [Address(url.fetch, url.hash64, url.domain, UrlKind.PAGE, 1, 1) for url in urls]
    frontier.add(EXECUTION, found)
    for lease in frontier.lease(EXECUTION, 7, domains=2, pages=_PAGES):
        visits = []
        for attempt in lease.attempts:
            number = numbers[attempt.url_hash]
            target = f"https://a.example/{number % 7}"
            kept = Signals(
                description=None, words=keywords_of([_text(number)]), from_hash=attempt.url_hash,
                links=((hash64(target), target),), links_count=1,
            )  # fmt: skip
            visits.append(bed.visit(lease, attempt, signals=kept, title=f"Page {number}"))
        frontier.settle(EXECUTION, 7, visits)


@pytest.fixture
def database(bed: Bed) -> Iterator[Database]:
    """Pages enough for a planner to prefer an index."""
    _fill(bed, bed.frontier)
    with closing(Database(bed.url)) as opened:
        with opened.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ANALYZE"))
        yield opened


def _find(database: Database, search: str, **question: Any) -> tuple[list[SignalPageRow], int]:
    with database.read() as session:
        return find_pages(session, search, SignalQuery(**question))


def test_every_word_must_be_there(database: Database) -> None:
    def numbers(search: str, **question: Any) -> list[str]:
        return [row.title or "" for row in _find(database, search, **question)[0]]

    assert numbers("page7") == ["Page 7"]
    assert numbers("PAGE9 third") == ["Page 9"]
    assert numbers("page7 third") == numbers("page7 nowhere") == numbers("page") == []
    assert len(numbers("hopital7", limit=100)) == _PAGES // 50
    assert numbers("…") == []


def test_totals_are_exact_and_windows_part_the_whole(database: Database) -> None:
    whole, total = _find(database, "all third", limit=_PAGES)
    parts = [_find(database, "third all", limit=90, offset=offset) for offset in range(0, _PAGES, 90)]

    assert total == len(whole) == _PAGES // 3
    assert {total for _, total in parts} == {_PAGES // 3}
    assert [row.url for rows, _ in parts for row in rows] == [row.url for row in whole]
    assert _find(database, "", limit=3)[1] == _PAGES


def test_a_domain_narrows_a_question_and_an_unknown_one_finds_nothing(database: Database) -> None:
    found, total = _find(database, "third", domain="a.example", limit=1000)

    assert total == len(found) == _PAGES // 6
    assert {row.domain for row in found} == {"a.example"}
    assert _find(database, "", domain="a.example")[1] == _PAGES // 2
    assert _find(database, "third", domain="c.example") == ([], 0)


def test_what_was_withdrawn_is_hidden_at_once(database: Database, clock: FakeClock) -> None:
    address = parse("https://b.example/6")
    with database.write() as session:
        session.add(Withdrawal(url_key=address.key, subject=address.fetch, reason="asked", actor="tests",
                               created_at=clock.now()))  # fmt: skip

    assert _find(database, "page6") == ([], 0)
    assert _find(database, "third")[1] == _PAGES // 3 - 1
    with database.read() as session:
        with pytest.raises(NotFound):
            page_of(session, address)
        with pytest.raises(NotFound):
            page_by_hash(session, address.url_hash)


def test_a_page_is_found_by_its_address_and_by_its_hash(database: Database) -> None:
    address = parse("https://a.example/7")
    with database.read() as session:
        by_address, by_hash = page_of(session, address), page_by_hash(session, address.url_hash)
        short = page_by_hash(session, address.url_hash[:16])
        with pytest.raises(NotFound):
            page_by_hash(session, address.url_hash[:-1] + ("0" if address.url_hash[-1] != "0" else "1"))

    assert by_address == by_hash == short
    assert dict(by_hash.words) == {"all": 1, "other": 1, "page7": 1, "hopital7": 1}
    assert by_hash.links == ("https://a.example/0",)


def test_links_of_such_pages_count_in_the_link_graph(database: Database, clock: FakeClock) -> None:
    recompute(database, clock)

    with database.read() as session:
        inlinks = session.scalar(select(PageSignal.inlinks).where(PageSignal.url_hash == hash64("https://a.example/1")))
    # Every seventh page leads there; number 1 leads to itself, which does not count.
    assert inlinks == len(range(1, _PAGES, 7)) - 1


def _plans(database: Database, ask: Callable[[], object]) -> list[str]:
    asked: list[tuple[str, Any]] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def note(_connection: Connection, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        asked.append((statement, parameters))

    ask()
    event.remove(database.engine, "before_cursor_execute", note)
    explain = "EXPLAIN QUERY PLAN " if database.engine.dialect.name == "sqlite" else "EXPLAIN "
    with database.engine.connect() as connection:
        if explain == "EXPLAIN ":  # so few rows are quicker walked; what cannot be looked up is walked even so
            connection.exec_driver_sql("SET enable_seqscan = off")
        return [
            str(row[-1])
            for statement, parameters in asked
            if statement.startswith("SELECT")
            for row in connection.exec_driver_sql(explain + statement, parameters)
        ]


@pytest.mark.parametrize("search", ["page7", "page7 all", "all third page9", "hopital7 all"])
def test_a_question_looks_words_up_and_walks_no_table(database: Database, search: str) -> None:
    plan = _plans(database, lambda: _find(database, search, limit=20))

    steps = "\n".join(plan)
    walked = ("SCAN signal", "SCAN pages", "Seq Scan on signal", "Seq Scan on pages")
    assert not any(word in steps for word in walked), steps
    assert "pk_signal_words" in steps or "sqlite_autoindex_signal_words" in steps, steps
