"""The words of links, kept for the pages that they lead to: bounded, told to search once, hidden with who said them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import delete, select

from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Document, LinkText, SearchOutbox, Snapshot
from holdfast.index.indexer import Indexer
from holdfast.index.queries import link_words
from holdfast.urls import hash64
from holdfast.withdrawals.hiding import hide, unhide
from tests.archive import Shot, build_archive, days_later

TARGET = "https://example.org/target"
PROSE = "Words that say enough about a page to be taken for its content, and then a few more of them. " * 2


def _linking(*links: tuple[str, str], note: str = "") -> str:
    anchors = "".join(f'<p><a href="{href}">{words}</a></p>' for href, words in links)
    return f"<title>Links</title><main><h1>Head {note}</h1><p>{PROSE}</p>{anchors}</main>"


class Bed:
    """An archive that grows."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self.url = home, url
        self.database = Database(url)

    def add(self, *shots: Shot) -> None:
        """Capture and index."""
        build_archive(self.home, shots, database_url=self.url).database.close()

    def words(self, url: str = TARGET) -> list[str]:
        """Return the words of links to an address, in order."""
        with self.database.read() as session:
            return [one.text for one in link_words(session, [hash64(url)])]

    def told(self) -> list[int]:
        """Return the documents that search was told of, and forget them."""
        with self.database.write() as session:
            rows = session.scalars(select(SearchOutbox).where(SearchOutbox.kind == "documents")).all()
            session.execute(delete(SearchOutbox))
            return sorted(number for row in rows for number in row.refs["ids"])

    def document_of(self, url: str) -> int:
        """Return the document of an address."""
        with self.database.read() as session:
            found = session.scalar(select(Snapshot.document_id).where(Snapshot.url == url).order_by(Snapshot.id.desc()))
            assert found is not None
            return found


@pytest.fixture
def bed(tmp_path: Path, migrated_url: str) -> Iterator[Bed]:
    """An empty archive on each database."""
    made = Bed(tmp_path / "home", migrated_url)
    yield made
    made.database.close()


def test_words_of_links_are_kept_for_their_target_the_newest_first(bed: Bed) -> None:
    bed.add(Shot(url="https://example.org/a", body=_linking(("/target#part", "The tides"), ("/other", "Boats"))))
    bed.add(Shot(url="https://far.org/x", body=_linking((TARGET, "Tide tables")), execution=2))
    bed.add(Shot(url="https://www.example.org/b", body=_linking((TARGET, "the TIDES")), execution=3))

    assert bed.words() == ["the TIDES", "Tide tables"]
    with bed.database.read() as session:
        found = link_words(session, [hash64(TARGET), hash64("https://example.org/other"), 5])
    assert {(one.text, one.host_hash == 0) for one in found} == {
        ("the TIDES", True), ("Tide tables", False), ("Boats", True),
    }  # fmt: skip


def test_words_that_tell_nothing_are_not_kept(bed: Bed) -> None:
    told = ["Read more »", "here", "12", "https://example.org/target", "»", "Lire la suite", "こちら"]
    for number, words in enumerate(told):
        bed.add(Shot(url=f"https://example.org/{number}", body=_linking(("/target", words)), execution=number + 1))

    assert bed.words() == []


def test_one_host_gives_a_few_words_its_own_some_more_and_all_together_a_bounded_number(bed: Bed) -> None:
    shots = [
        Shot(url=f"https://{host}/{n}", body=_linking((TARGET, f"Words {n} of {host}")))
        for host, count in [("example.org", 30), *((f"h{number}.org", 8) for number in range(20))]
        for n in range(count)
    ]
    bed.add(*shots)

    with bed.database.read() as session:
        found = link_words(session, [hash64(TARGET)])
        stored = list(session.scalars(select(LinkText.host_hash)))
    assert len(found) == 64
    counts = [sum(one.host_hash == host for one in found) for host in {one.host_hash for one in found}]
    assert max(counts) <= 16
    assert sorted(counts)[-2] <= 4
    assert sum(host == 0 for host in stored) <= 32


def test_search_is_told_of_a_target_once_for_each_new_word(bed: Bed) -> None:
    bed.add(Shot(url=TARGET, body="<title>Target</title><p>Text</p>"))
    target = bed.document_of(TARGET)
    page = "https://example.org/a"
    assert bed.told() == [target]

    bed.add(Shot(url=page, body=_linking(("/target", "The tides")), execution=2))
    assert bed.told() == sorted([target, bed.document_of(page)])
    # Captured again as it was, and changed with the same words: nothing is new for the target.
    bed.add(Shot(url=page, body=_linking(("/target", "The tides")), execution=3, moment=days_later(1)))
    assert bed.told() == []
    bed.add(Shot(url=page, body=_linking(("/target", "The tides"), note="b"), execution=4, moment=days_later(2)))
    assert bed.told() == [bed.document_of(page)]
    bed.add(Shot(url=page, body=_linking(("/target", "Ebb and flow"), note="c"), execution=5, moment=days_later(3)))
    assert bed.told() == sorted([target, bed.document_of(page)])
    assert bed.words() == ["Ebb and flow", "The tides"]


def test_a_file_that_is_read_again_tells_search_nothing_new(bed: Bed) -> None:
    bed.add(Shot(url=TARGET), Shot(url="https://example.org/a", body=_linking(("/target", "The tides"))))
    bed.told()
    with closing(connect(bed.url)) as raw_db, closing(Indexer(raw_db, SystemClock(), bed.home)) as indexer:
        indexer.index_file(1)

    assert bed.told() == []
    assert bed.words() == ["The tides"]


def test_what_a_hidden_page_says_of_others_is_hidden_with_it_and_comes_back(bed: Bed) -> None:
    bed.add(Shot(url=TARGET), Shot(url="https://example.org/a", body=_linking(("/target", "A secret name"))))
    target = bed.document_of(TARGET)
    bed.told()

    hide(bed.database, SystemClock(), "https://example.org/a", reason="asked")
    assert (bed.words(), bed.told()) == ([], [target])
    unhide(bed.database, SystemClock(), "https://example.org/a")
    assert (bed.words(), bed.told()) == (["A secret name"], [target])


def test_a_page_that_asked_to_stay_out_of_search_names_no_other(bed: Bed) -> None:
    bed.add(
        Shot(url="https://example.org/a", body="<meta name=robots content=noindex>" + _linking(("/target", "Words")))
    )

    assert bed.words() == []


def test_a_body_is_read_by_the_template_of_each_source_and_by_none(bed: Bed, migrated_url: str) -> None:
    body = f"<title>T</title><body><div class=left><p>{PROSE}</p></div><div class=right><p>Right. {PROSE}</p></div>"
    shot = Shot(url="https://example.org/a", body=body)
    bed.add(shot)
    bed.add(Shot(url="https://example.org/a", body=body, source="second", execution=2))
    with closing(connect(migrated_url)) as raw_db:
        with raw_db.write() as tx:
            tx.execute("UPDATE sources SET config = ? WHERE code = 'second'", ('{"extract": {"main": "div.right"}}',))
        with closing(Indexer(raw_db, SystemClock(), bed.home)) as indexer:
            indexer.index_file(1)
            indexer.index_file(2)

    with bed.database.read() as session:
        shown = [
            session.get(Document, row.document_id) for row in session.scalars(select(Snapshot).order_by(Snapshot.id))
        ]
    plain, chosen = shown
    assert plain is not None
    assert chosen is not None
    assert plain.media_type == "text/html"
    assert chosen.media_type.startswith("text/html;template=")
    assert chosen.text_chars < plain.text_chars
    assert (chosen.word_count, chosen.page_type) == (len(f"Right. {PROSE}".split()), "other")
