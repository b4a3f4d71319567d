"""Words that stand side by side within a block of a page are a phrase; those of two blocks are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.parse.document import DocumentKind, parse_document
from holdfast.parse.text import REST_MARK
from holdfast.search.analysis import LANGUAGES
from holdfast.search.engine import IndexEntry, IndexReader, Writer
from holdfast.search.query import plain
from holdfast.search.query_terms import TextWeights, query_terms

_PROSE = "Enough words to be taken for the content of a page by anybody who reads it, and then a few more of them. " * 2


def _index(folder: Path, body: str, kind: DocumentKind = DocumentKind.HTML) -> IndexReader:
    page = parse_document(body.encode(), kind=kind, media_type=None, charset="utf-8")
    text, _, rest = page.visible.partition(REST_MARK)
    writer = Writer(folder)
    writer.add(IndexEntry(key=1, language="en", title="", snippet="", text=text, rest=rest))
    writer.commit()
    writer.close()
    return IndexReader(folder)


def _finds(reader: IndexReader, query: str) -> bool:
    return reader.words(query_terms(plain(query), query), LANGUAGES, TextWeights(), limit=10).count > 0


@pytest.mark.parametrize("place", ["<main><p>{}</p>{}</main>", "<main><p>{}</p></main><aside>{}</aside>"])
@pytest.mark.parametrize(
    "markup",
    [
        "<p>red\nkite</p>",
        "<p>red <a href=/x>kite</a></p>",
        "<p>red<br>kite</p>",
        "<pre>red\n  kite</pre>",
        "<pre>red<b>\n</b>kite</pre>",
        "<p>caf\u00e9 \u4e16 red<br>\nkite</p>",
    ],
)
def test_phrase_matches_across_lines_of_a_block(tmp_path: Path, markup: str, place: str) -> None:
    reader = _index(tmp_path, place.format(_PROSE, markup))

    assert _finds(reader, '"red kite"')


@pytest.mark.parametrize("place", ["<main><p>{}</p>{}</main>", "<main><p>{}</p></main><aside>{}</aside>"])
@pytest.mark.parametrize(
    "markup",
    [
        "<p>red</p><p>kite</p>",
        "<ul><li>red<li>kite</ul>",
        "<table><tr><td>red<td>kite</table>",
        "<p>red<br><br>kite</p>",
        "<p>red</p><p><br>kite</p>",
        "<pre>red\n \nkite</pre>",
        "<div>red<p>kite</p></div>",
    ],
)
def test_phrase_does_not_match_across_blocks(tmp_path: Path, markup: str, place: str) -> None:
    reader = _index(tmp_path, place.format(_PROSE, markup))

    assert _finds(reader, "red kite")
    assert not _finds(reader, '"red kite"')


def test_phrase_matches_across_lines_of_a_plain_text_paragraph(tmp_path: Path) -> None:
    reader = _index(tmp_path, "A long red\r\nkite flew.\r\n\r\nAnother day.", DocumentKind.TEXT)

    assert _finds(reader, '"red kite"')
    assert not _finds(reader, '"flew another"')


@pytest.mark.parametrize("markup", ["<p>東京\n都庁</p>", "<p>東京\r\n  <b>都</b>庁</p>", "<pre>東京\n都庁</pre>"])
def test_line_end_does_not_part_a_word_of_an_unspaced_script(tmp_path: Path, markup: str) -> None:
    assert _finds(_index(tmp_path, f"<main>{markup}</main>"), "東京都庁")


def test_stored_text_has_a_line_for_each_line_of_a_block() -> None:
    page = parse_document(
        b"<main>a<br>b<pre>c\n\x03d</pre></main>", kind=DocumentKind.HTML, media_type=None, charset=None
    )

    assert page.text == "a\nb\nc\nd"
