"""What links say of a page finds it: in a first reading, when the links come later, and not once they are withdrawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.db.models import Source
from holdfast.search import outbox, queries, readers
from holdfast.search.near_duplicates import SimilarResults
from holdfast.search.outbox import drain, rebuild
from holdfast.search.search import ResultKind, SearchRequest, SearchService
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import hide, tell_search, unhide
from holdfast.withdrawals.viewers import PUBLIC, Visibility, seen_by
from tests.archive import Shot, build_archive, days_later

Building = Callable[[Sequence[Shot]], Archive]
MAP = "https://harbour.test/m/7"
FRONT = "https://harbour.test/"


@pytest.fixture
def build(tmp_path: Path, migrated_url: str) -> Iterator[Building]:
    """Build, and add to, one archive."""
    opened: list[Archive] = []

    def make(shots: Sequence[Shot]) -> Archive:
        opened.append(build_archive(tmp_path / "home", shots, database_url=migrated_url))
        return opened[-1]

    yield make
    for archive in opened:
        archive.database.close()


def _map() -> Shot:
    return Shot(url=MAP, body="<title>Sheet 7</title><main><img src=x.png><p>Scale one to ten thousand.</p></main>")


def _front(words: str, *, day: int = 0, url: str = FRONT) -> Shot:
    body = (
        "<title>Harbour</title><main><h1>Harbour</h1><p>Boats come and go with the water, and the office is open from"
        f" nine to five on every day but Sunday.</p><p><a href='{MAP}'>{words}</a></p></main>"
    )
    return Shot(url=url, body=body, moment=days_later(day), execution=day + 1)


def _found(archive: Archive, query: str) -> list[str]:
    drain(archive.database, archive.home, archive.clock)
    search = SearchService(archive.database, archive.home, archive.clock)
    answer = search.ask(SearchRequest(q=query, view=ResultKind.PAGES), wait=True)
    return [hit.row.url for hit in answer.hits]


def _captures(archive: Archive, query: str) -> list[str]:
    drain(archive.database, archive.home, archive.clock)
    search = SearchService(archive.database, archive.home, archive.clock)
    request = SearchRequest(q=query, non_2xx=True, similar=SimilarResults.SHOW)
    return [hit.row.url for hit in search.ask(request, wait=True).hits]


def test_a_page_is_found_first_by_what_links_to_it_say(build: Building) -> None:
    archive = build([_front("Chart of the tidal basin"), _map()])

    assert _found(archive, "tidal basin chart")[0] == MAP
    assert _found(archive, "sheet")[0] == MAP


def test_links_that_come_later_name_the_page_too_and_a_rebuild_gives_the_same(build: Building) -> None:
    archive = build([_map()])
    assert _found(archive, "tidal basin") == []

    archive = build([_front("Chart of the tidal basin", day=1)])
    later = _found(archive, "tidal basin")
    rebuild(archive.database, archive.home, archive.clock)

    assert later[0] == MAP
    assert _found(archive, "tidal basin") == later


def test_what_a_withdrawn_page_says_of_others_is_withdrawn_with_it(build: Building) -> None:
    archive = build([_front("Chart of the tidal basin"), _map()])
    assert _found(archive, "tidal basin")[0] == MAP

    hide(archive.database, archive.clock, FRONT, reason="asked")
    hidden = _found(archive, "tidal basin")
    unhide(archive.database, archive.clock, FRONT)

    assert hidden == []
    assert _found(archive, "tidal basin")[0] == MAP


@pytest.mark.parametrize("query", ["tidal basin", "tidal AND basin", "tidal -sunday"])
def test_link_words_of_a_page_find_nothing_at_once_after_its_takedown(build: Building, query: str) -> None:
    archive = build([_front("Chart of the tidal basin"), _map()])
    assert MAP in _found(archive, query)
    search = SearchService(archive.database, archive.home, archive.clock)

    def found() -> list[str]:
        return [hit.row.url for hit in search.ask(SearchRequest(q=query, view=ResultKind.PAGES), wait=True).hits]

    assert MAP in found()
    hide(archive.database, archive.clock, FRONT, reason="asked")
    assert found() == [], "before the drain"
    drain(archive.database, archive.home, archive.clock)
    assert found() == []
    unhide(archive.database, archive.clock, FRONT)
    drain(archive.database, archive.home, archive.clock)
    assert MAP in found()


@pytest.mark.parametrize("seen_before", [True, False], ids=["searched-between", "not-searched-between"])
@pytest.mark.parametrize("kind", ["takedown", "members"])
@pytest.mark.parametrize("work", ["drain", "drain and rebuild", "rebuild and drain, old files kept"])
def test_hidden_link_words_find_nothing_in_an_old_view(
    build: Building, monkeypatch: pytest.MonkeyPatch, kind: str, work: str, *, seen_before: bool
) -> None:
    archive = build([_front("Chart of the tidal basin"), Shot(url=MAP, body=_map().body, source="other")])
    drain(archive.database, archive.home, archive.clock)
    # The view is never replaced, as in a large archive while a new one is being built.
    monkeypatch.setattr(readers, "_INLINE_ROWS", 0)
    monkeypatch.setattr(readers, "_REST", float("inf"))
    search = SearchService(archive.database, archive.home, archive.clock)

    def found() -> list[str]:
        with seen_by(PUBLIC):
            return [hit.row.url for hit in search.ask(SearchRequest(q="tidal basin", view=ResultKind.PAGES)).hits]

    assert MAP in found()
    generation = search.generation()
    if kind == "takedown":
        hide(archive.database, archive.clock, FRONT, reason="asked")
    else:
        with archive.database.write() as session:
            source = session.scalars(select(Source).order_by(Source.id)).first()
            assert source is not None
            source.visibility = Visibility.MEMBERS.value
            tell_search(session, archive.clock, source.id)
    assert not seen_before or found() == []
    if work.endswith("kept"):
        # A process that is killed after the swap leaves the files of the view; the drain writes the new ones.
        monkeypatch.setattr("holdfast.search.directory.shutil.rmtree", lambda *_, **__: None)
        rebuild(archive.database, archive.home, archive.clock)
    drain(archive.database, archive.home, archive.clock)
    if work.endswith("rebuild"):
        # The files of the view are gone: it cannot read which link texts were hidden.
        rebuild(archive.database, archive.home, archive.clock)

    assert found() == []
    assert search.generation() == generation


def test_every_spelling_of_a_page_loses_the_words_of_a_withdrawn_page_and_gets_new_ones(build: Building) -> None:
    old, new = "https://harbour.test/a%7eb", "https://harbour.test/a~b"
    sheet = "<title>Sheet {0}</title><main><p>Scale one to {0} thousand.</p></main>"
    gone = "https://harbour.test/gone"
    archive = build(
        [
            Shot(url=old, body=sheet.format("eleven")),
            Shot(url=new, body=sheet.format("twelve"), moment=days_later(1)),
            Shot(url=gone, body=sheet.format("thirteen"), status=404),
            Shot(url=FRONT, body=(
                f"<title>Harbour</title><main><p>Boats come and go with the water, and the office is open.</p>"
                f"<p><a href='{new}'>Quixotic secret</a> <a href='{gone}'>Quixotic loss</a></p></main>"
            )),
        ]
    )  # fmt: skip
    everything = {FRONT, old, new, gone}
    assert set(_captures(archive, "quixotic")) == everything

    hide(archive.database, archive.clock, FRONT, reason="asked")
    assert _captures(archive, "quixotic") == []
    unhide(archive.database, archive.clock, FRONT)
    assert set(_captures(archive, "quixotic")) == everything


def test_one_host_cannot_vote_a_page_up_with_a_thousand_links(build: Building) -> None:
    pushed = [_front(f"basin basin {n}", url=f"https://spam{n % 3}.test/{n}") for n in range(60)]
    archive = build([*pushed, _map(), Shot(url="https://basin.test/basin", body=(
        "<title>The basin</title><main><h1>The basin</h1><p>The basin of the harbour was dug long ago.</p></main>"
    ))])  # fmt: skip

    assert _found(archive, "basin")[0] == "https://basin.test/basin"


def test_a_stopped_change_of_visibility_continues_where_it_was(
    build: Building, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_PAGES_AT_ONCE", 1)
    fronts = [_front(f"Chart {day}", day=day, url=f"{FRONT}{day}") for day in range(4)]
    archive = build([*fronts, Shot(url=MAP, body=_map().body, source="other")])
    drain(archive.database, archive.home, archive.clock)
    with archive.database.write() as session:
        source = session.scalars(select(Source).order_by(Source.id)).first()
        assert source is not None
        source.visibility = Visibility.MEMBERS.value
        tell_search(session, archive.clock, source.id)
    asked, read = list[int](), queries.named_by_source

    def reading(session: Session, source_id: int, *, after: int, limit: int) -> tuple[list[int], int] | None:
        asked.append(after)
        return read(session, source_id, after=after, limit=limit)

    monkeypatch.setattr(queries, "named_by_source", reading)
    finished = False
    while not finished:
        # In its second slice, which the next drain reads again.
        stopping = partial(_has_passed, asked, len(asked) + 1)
        finished = drain(archive.database, archive.home, archive.clock, is_stopping=stopping).finished

    assert len(asked) == 2 * len(fronts)
    assert asked[::2] == sorted(set(asked))[:-1]
    with seen_by(PUBLIC):
        assert _found(archive, "chart") == []


def _has_passed(asked: list[int], count: int) -> bool:
    return len(asked) > count
