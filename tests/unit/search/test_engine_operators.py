"""What the index answers to the operators that ask it: titles, nearness, authors, some of many words."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.search.engine import IndexEntry, IndexReader, Writer


@pytest.fixture
def reader(tmp_path: Path) -> IndexReader:
    """An index of four documents."""
    texts = {
        1: ("Flu shots", "water at the school", "Zoë Doe"),
        2: ("The shot and the flu", "school water", "Jane Doe, Zoe Smith"),
        3: ("Flu", "water " + "word " * 30 + "school", ""),
        4: ("Unrelated", "budget and tax", "Doe"),
    }
    writer = Writer(tmp_path)
    for key, (title, text, author) in texts.items():
        writer.add(IndexEntry(key=key, language="en", title=title, snippet="", text=text, author=author))
    writer.commit()
    writer.close()
    return IndexReader(tmp_path)


def test_authors_are_found_by_all_words_of_a_name(reader: IndexReader) -> None:
    assert sorted(reader.authors(["doe"], limit=10).keys) == [1, 2, 4]
    assert sorted(reader.authors(["zoe", "doe"], limit=10).keys) == [1, 2]
    assert not len(reader.authors(["nobody"], limit=10).keys)


def test_words_of_a_title_stand_side_by_side_in_any_form(reader: IndexReader) -> None:
    assert sorted(reader.in_titles(["flu"], limit=10).keys) == [1, 2, 3]
    assert sorted(reader.in_titles(["flu", "shot"], limit=10).keys) == [1]


def test_nearness_has_no_order(reader: IndexReader) -> None:
    assert sorted(reader.near(["school", "water"], ["en"], distance=2, limit=10).keys) == [1, 2]
    assert sorted(reader.near(["water", "school"], ["en"], distance=1, limit=10).keys) == [2]
    assert sorted(reader.near(["water", "school"], ["en"], distance=30, limit=10).keys) == [1, 2, 3]


def test_some_of_many_words_are_enough(reader: IndexReader) -> None:
    assert sorted(reader.some(["water", "school", "budget"], ["en"], least=2, limit=10).keys) == [1, 2, 3]
    assert reader.some(["water", "school", "budget"], ["en"], least=1, limit=10).count == 4


def test_more_are_counted_than_are_returned(reader: IndexReader) -> None:
    found = reader.in_titles(["flu"], limit=2)

    assert (len(found.keys), found.count) == (2, 3)


def test_letter_finds_all_its_pairs(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    for key, language in enumerate(("ja", "en", "fr"), 1):
        text = " ".join(f"\u6c34{chr(0x5000 + key * 300 + n)}" for n in range(300))
        writer.add(IndexEntry(key=key, language=language, title="", snippet="", text=text))
    writer.add(IndexEntry(key=4, language="ja", title="", snippet="", text="\u706b\u6c34"))
    writer.commit()
    writer.close()
    reader = IndexReader(tmp_path)

    found = reader.with_phrase(["\u6c34"], limit=10)

    assert (sorted(found.keys), found.count) == ([1, 2, 3, 4], 4)
    fire = reader.with_phrase(["\u706b"], limit=10)
    assert (list(fire.keys), fire.count) == ([4], 1)
