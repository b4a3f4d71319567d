"""What links say of pages is computed by the worker, when enough of them have come; on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import event, select

from holdfast.db.models import PageSignal
from holdfast.search.directory import IndexDirectory
from holdfast.search.outbox import drain
from holdfast.search.search import SearchRequest, SearchService
from holdfast.search.signals import is_due, recompute, refresh
from holdfast.urls import hash64
from holdfast.wiring import open_runtime
from holdfast.wiring.archive import Archive
from holdfast.worker.background import BackgroundContext, LinkSignals
from holdfast.worker.loop import BACKGROUND_TASKS
from tests.archive import Shot, build_archive
from tests.clock import FakeClock

_SITE = "https://example.org/"
_DAY = 24 * 3_600 * 1_000_000


def _linking(name: str, *targets: str, execution: int = 1) -> Shot:
    links = "".join(f'<a href="/{target}">{target}</a>' for target in targets)
    return Shot(url=f"{_SITE}{name}", body=f"<title>parrot {name}</title><p>parrot {links}", execution=execution)


@pytest.fixture
def archive(tmp_path: Path, migrated_url: str) -> Iterator[Archive]:
    """Three pages that lead to a fourth."""
    shots = [_linking("a", "hub"), _linking("b", "hub"), _linking("c", "hub"), _linking("hub", "a")]
    opened = build_archive(tmp_path / "home", shots, database_url=migrated_url)
    drain(opened.database, opened.home, opened.clock)
    yield opened
    opened.database.close()


def _inlinks(archive: Archive) -> dict[int, int]:
    with archive.database.read() as session:
        return {row.url_hash: row.inlinks for row in session.scalars(select(PageSignal))}


def test_a_worker_fills_them_once_and_search_ranks_by_them(archive: Archive) -> None:
    assert LinkSignals in BACKGROUND_TASKS
    with ExitStack() as stack:
        runtime = stack.enter_context(open_runtime(archive.settings))
        bench = BackgroundContext(runtime=runtime, database=archive.database, is_stopping=lambda: False, on_end=stack)

        assert LinkSignals(bench).run_once()
        assert not LinkSignals(bench).run_once(), "nothing has come since"

    assert _inlinks(archive)[hash64(f"{_SITE}hub")] == 3
    found = SearchService(archive.database, archive.home, archive.clock).ask(SearchRequest(q="parrot"), wait=True)
    assert found.hits[0].row.url == f"{_SITE}hub"


def test_only_what_changed_is_written(archive: Archive) -> None:
    assert recompute(archive.database, archive.clock) == 4
    written: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.lstrip().upper().startswith(("INSERT", "DELETE", "UPDATE")):
            written.append(statement)

    event.listen(archive.database.engine, "before_cursor_execute", note)
    recompute(archive.database, archive.clock)
    event.remove(archive.database.engine, "before_cursor_execute", note)

    assert written == []


def test_a_worker_that_ends_leaves_them_to_the_next_one(archive: Archive) -> None:
    assert not refresh(archive.database, archive.home, archive.clock, is_stopping=lambda: True)
    assert _inlinks(archive) == {}
    assert not refresh(archive.database, archive.home, archive.clock, most=3), "too many pages for a server"
    assert refresh(archive.database, archive.home, archive.clock)


@pytest.mark.parametrize(
    ("before", "figure", "waited", "due"),
    [
        (None, 0, 0, False), (None, 1, 0, True), (100, 100, 9 * _DAY, False), (100, 109, 3_600_000_000, False),
        (100, 110, 0, True), (100, 101, _DAY, True), (100, 50, _DAY, True),
    ],
)  # fmt: skip
def test_they_are_due_when_the_archive_grew_by_a_tenth_or_at_all_for_a_day(
    before: int | None, figure: int, waited: int, due: bool
) -> None:
    assert is_due(None if before is None else (before, 5 * _DAY), figure, 5 * _DAY + waited) is due


def test_a_clock_that_was_set_back_does_not_keep_them_for_ever(clock: FakeClock) -> None:
    assert is_due((100, 9 * _DAY), 101, 7 * _DAY)


def test_signals_are_not_computed_while_the_index_takes_nothing(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, IndexDirectory(archive.home).writing():
        patch.setattr("holdfast.search.signals.recompute", lambda *_, **__: pytest.fail("they are computed"))
        assert not refresh(archive.database, archive.home, archive.clock)

    assert refresh(archive.database, archive.home, archive.clock)
