"""Passages of a search on SQLite and PostgreSQL: what is read for them, and what is shown where no word is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from holdfast.db.models import Document
from holdfast.search.search import BadSearch, SearchAnswer
from tests.search_bed import Bed, Capture, open_bed

_TEXT = (
    "Harbour lights\nHarbour lights of the north\nThe keeper of the harbour lights them before the sun has gone down.\n"
    "Each of the lights burns oil, and each of them is seen from a ship that is ten miles away."
)


@pytest.fixture
def bed(migrated_url: str, tmp_path: Path) -> Iterator[Bed]:
    """A page with a heading, and one whose words stand in its title alone."""
    with open_bed(migrated_url, tmp_path / "home") as opened:
        opened.fill(
            [
                Capture(url="https://h.test/1", title="Harbour lights", text=_TEXT),
                Capture(url="https://h.test/2", title="Lighthouse", text="It stands on a rock. " * 20),
            ]
        )
        with opened.database.write() as session:
            session.execute(update(Document).values(headings="Harbour lights of the north"))
        yield opened


def _texts(answer: SearchAnswer) -> list[list[str]]:
    return [["".join(piece.text for piece in passage) for passage in hit.passages] for hit in answer.hits]


def test_one_passage_is_shown_and_no_heading(bed: Bed) -> None:
    [[shown]] = _texts(bed.ask("harbour lights"))

    assert shown == "The keeper of the harbour lights them before the sun has gone down."


def test_several_passages_are_shown_on_request(bed: Bed) -> None:
    [shown] = _texts(bed.ask("harbour lights", passages=2))

    assert shown[0] == "The keeper of the harbour lights them before the sun has gone down."
    assert shown[1].startswith("Each of the lights burns oil")


@pytest.mark.parametrize("passages", [0, 6])
def test_more_passages_than_there_may_be_are_refused(bed: Bed, passages: int) -> None:
    with pytest.raises(BadSearch, match="passages"):
        bed.ask("harbour", passages=passages)


@pytest.mark.parametrize("query", ["lighthouse", "h.test/2", "title:lighthouse"])
def test_the_stored_snippet_is_shown_where_no_word_stands_in_the_text(bed: Bed, query: str) -> None:
    [[shown]] = _texts(bed.ask(query))

    assert shown.startswith("It stands on a rock. It stands")
    assert len(shown) <= 240


def test_words_are_marked_as_they_were_meant(bed: Bed) -> None:
    [hit] = bed.ask("harbuor").hits

    assert [piece.text for piece in hit.title if piece.hit] == ["Harbour"]
    assert "harbour" in [piece.text for piece in hit.passages[0] if piece.hit]
