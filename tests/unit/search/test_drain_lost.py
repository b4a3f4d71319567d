"""An index that is not there, or not whole: it is never taken for one, and readers keep what they had open."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sqlalchemy import update

from holdfast.db.models import Source
from holdfast.search import outbox
from holdfast.search.directory import IndexDirectory, IndexPending
from holdfast.search.engine import IndexBroken
from holdfast.search.outbox import drain, is_lost, rebuild, take_over_signals
from holdfast.search.readers import ReaderCache
from holdfast.search.search import SearchRequest, SearchService
from tests.search_bed import Bed, pages


def _fresh(bed: Bed, q: str) -> int:
    """Return how much another process finds, which has nothing open."""
    return SearchService(bed.database, bed.home, bed.clock).ask(SearchRequest(q=q), wait=True).total


def _remove(path: Path) -> None:
    path.unlink() if path.is_file() else shutil.rmtree(path)


def _in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_PAGES_AT_ONCE", 2)
    monkeypatch.setattr(outbox, "_COMMIT_REBUILD", 1)


@pytest.mark.parametrize("thrown_away", ["everything", "its generation", "manifest.json", "entries", "in force"])
def test_an_index_in_the_making_is_not_in_force_before_it_is_whole(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, thrown_away: str
) -> None:
    bed.fill(pages([f"parrot {n}" for n in range(6)]))
    directory = IndexDirectory(bed.home)
    if thrown_away == "everything":
        shutil.rmtree(directory.folder)
    elif thrown_away == "its generation":
        shutil.rmtree(directory.current())
    elif thrown_away == "in force":
        directory.discard()
    else:
        _remove(directory.current() / thrown_away)
    _in_small_pieces(monkeypatch)
    seen: list[bool] = []

    def look(_pages: int) -> None:
        seen.append(directory.exists())
        # An empty answer, or one from a part, would be taken for the whole.
        with pytest.raises(IndexBroken, match="rebuild"):
            _fresh(bed, "parrot")

    drain(bed.database, bed.home, bed.clock, progress=look)

    assert seen == [False] * 4
    assert (directory.exists(), _fresh(bed, "parrot")) == (True, 6)


def test_what_a_build_that_died_has_left_is_removed_by_the_next_one(bed: Bed) -> None:
    bed.fill(pages(["parrot one"]))
    directory = IndexDirectory(bed.home)
    left = [directory.fresh(), directory.folder / "999"]
    left[1].mkdir()

    with pytest.raises(RuntimeError):
        rebuild(bed.database, bed.home, bed.clock, progress=_fail)

    assert [path for path in left if path.exists()] == []
    assert _fresh(bed, "parrot") == 1


def _fail(_pages: int) -> None:
    raise RuntimeError("it is ended here")


def test_a_build_that_fails_leaves_nothing_behind(bed: Bed) -> None:
    bed.add(pages(["parrot one"]))

    with pytest.raises(RuntimeError):
        drain(bed.database, bed.home, bed.clock, progress=_fail)

    assert [path for path in IndexDirectory(bed.home).folder.iterdir() if path.is_dir()] == []


def test_an_index_without_a_name_in_force_is_made_anew_once(bed: Bed) -> None:
    bed.fill(pages(["parrot one", "parrot two"]))
    directory = IndexDirectory(bed.home)
    (directory.folder / "current").unlink()  # as earlier versions left their first one

    with pytest.raises(IndexBroken, match="rebuild"):
        _fresh(bed, "parrot")
    assert is_lost(bed.database, bed.home, bed.clock)
    assert drain(bed.database, bed.home, bed.clock).pages == 2

    assert not is_lost(bed.database, bed.home, bed.clock)
    assert drain(bed.database, bed.home, bed.clock).pages == 0
    assert _fresh(bed, "parrot") == 2


def test_signals_make_no_index_where_there_is_none(bed: Bed) -> None:
    bed.fill(pages(["parrot one", "parrot two"]))
    shutil.rmtree(IndexDirectory(bed.home).folder)

    take_over_signals(bed.database, bed.home)

    assert not IndexDirectory(bed.home).exists()
    assert drain(bed.database, bed.home, bed.clock).pages == 2
    assert _fresh(bed, "parrot") == 2


def test_a_running_process_finds_what_is_in_an_index_made_after_the_last_was_thrown_away(bed: Bed) -> None:
    bed.fill(pages(["parrot one", "parrot two", "parrot three"]))
    assert bed.ask("parrot").total == 3
    bed.add(pages(["parrot four", "parrot five"], host="two.test"))
    shutil.rmtree(IndexDirectory(bed.home).folder)

    bed.drain()

    assert bed.ask("parrot").total == _fresh(bed, "parrot") == 5
    assert bed.ask().total == 5


def test_a_running_process_serves_what_it_has_open_until_a_lost_index_is_there_again(bed: Bed) -> None:
    bed.fill(pages(["parrot one", "parrot two"]))
    assert bed.ask("parrot").total == 2
    seen: list[int] = []
    shutil.rmtree(IndexDirectory(bed.home).folder)
    assert bed.ask("parrot").total == 2
    bed.add(pages(["parrot three"], host="two.test"))

    drain(bed.database, bed.home, bed.clock, progress=lambda _pages: seen.append(bed.ask("parrot").total))

    assert seen == [2, 2]
    assert bed.ask("parrot").total == 3


@pytest.mark.parametrize("gone", [".", "manifest.json", "entries"])
def test_an_index_that_is_named_and_not_there_is_told_instead_of_an_empty_answer(bed: Bed, gone: str) -> None:
    bed.fill(pages(["parrot one"]))
    _remove(IndexDirectory(bed.home).current() / gone)

    with pytest.raises(IndexBroken, match="rebuild"):
        _fresh(bed, "parrot")


def test_a_process_that_began_without_an_index_tells_when_one_is_in_the_making(bed: Bed) -> None:
    assert bed.ask().total == 0
    bed.add(pages(["parrot one"]))

    def look(_pages: int) -> None:
        with pytest.raises(IndexPending, match="being made"):
            bed.ask()

    drain(bed.database, bed.home, bed.clock, progress=look)

    assert bed.ask().total == 1


def test_an_archive_without_an_index_is_empty(bed: Bed) -> None:
    assert _fresh(bed, "parrot") == 0
    assert ReaderCache(bed.home, bed.clock).view().manifest.sequence == 0


def test_a_source_has_its_new_name_in_the_facet_at_once(bed: Bed) -> None:
    bed.fill(pages(["parrot one", "parrot two"]))
    assert [one.label for one in bed.ask("parrot").facets["source"]] == ["Demo"]
    with bed.database.write() as session:
        session.execute(update(Source).values(name="Renamed"))

    assert [one.label for one in bed.ask("parrot").facets["source"]] == ["Renamed"]
