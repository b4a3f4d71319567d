"""The words of links, kept for the pages that they lead to: bounded, told to search once, hidden with who said them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import delete, select

from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Document, LinkText, PageGroup, SearchOutbox, Snapshot
from holdfast.index.indexer import Indexer
from holdfast.index.queries import link_words
from holdfast.noise.labels import write_findings
from holdfast.urls import hash64
from holdfast.withdrawals.hiding import hide, unhide
from holdfast.withdrawals.visibility import named_by
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
            return [text for _, _, text in link_words(session, [hash64(url)])]

    def told(self) -> list[int]:
        """Return the documents that search was told of, themselves or by their address, and forget them."""
        with self.database.write() as session:
            rows = session.scalars(select(SearchOutbox)).all()
            found = {number for row in rows if row.kind == "documents" for number in row.refs["ids"]}
            hashes = {one for row in rows for one in row.refs.get("hashes", ())}
            named = select(Snapshot.document_id).join(PageGroup, PageGroup.id == Snapshot.group_id)
            found.update(session.scalars(named.where(PageGroup.url_hash.in_(hashes))))
            session.execute(delete(SearchOutbox))
            return sorted(found)

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
    assert {(text, host_hash == 0) for _, host_hash, text in found} == {
        ("the TIDES", True), ("Tide tables", False), ("Boats", True),
    }  # fmt: skip


def test_what_a_list_says_beside_a_link_is_kept_for_its_target(bed: Bed) -> None:
    listed = "<ul><li><a href=/target>tides(1)</a> — when the water rises</li><li><a href=/b>boats</a></li></ul>"
    bed.add(Shot(url="https://example.org/a", body=f"<title>Links</title><main><p>{PROSE}</p>{listed}</main>"))

    assert sorted(bed.words()) == ["tides(1)", "when the water rises"]
    assert bed.words("https://example.org/b") == ["boats"]


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
    counts = Counter(host_hash for _, host_hash, _ in found).values()
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


def _linking_as(words: str, *, page: str, day: int = 0, host: str = "https://example.org") -> Shot:
    body = _linking(("https://example.org/target", words), note=f"{page} {day}")
    return Shot(url=f"{host}/{page}", body=body, execution=day + 1, moment=days_later(day))


def test_the_room_of_withdrawn_words_goes_to_the_next_page_that_says_others(bed: Bed) -> None:
    bed.add(Shot(url=TARGET), *(_linking_as(f"Slander number {n}", page=f"p{n}") for n in range(16)))
    bed.add(_linking_as("An honest name", page="late", day=1))
    assert "An honest name" not in bed.words()
    for n in range(15):
        hide(bed.database, SystemClock(), f"https://example.org/p{n}", reason="asked")
    bed.told()

    bed.add(_linking_as("The honest name of it", page="new", day=2))

    assert bed.words() == ["The honest name of it", "Slander number 15"]
    assert bed.document_of(TARGET) in bed.told()


def test_withdrawn_words_of_another_host_leave_room_for_its_own_and_stay_where_there_is_some(bed: Bed) -> None:
    far = "https://far.org"
    bed.add(Shot(url=TARGET), _linking_as("Kept words", page="kept"))
    bed.add(*(_linking_as(f"Far words {n}", page=f"p{n}", day=1, host=far) for n in range(4)))
    for page in (*(f"{far}/p{n}" for n in range(4)), "https://example.org/kept"):
        hide(bed.database, SystemClock(), page, reason="asked")

    bed.add(_linking_as("Far and fair", page="new", day=2, host=far), _linking_as("Near and fair", page="n", day=2))
    for page in (*(f"{far}/p{n}" for n in range(4)), "https://example.org/kept"):
        unhide(bed.database, SystemClock(), page)

    # Of its own host there was room, so nothing had to go.
    assert sorted(bed.words()) == ["Far and fair", "Kept words", "Near and fair"]


def test_words_that_a_withdrawn_page_said_first_count_for_the_next_page_that_says_them(bed: Bed) -> None:
    bed.add(Shot(url=TARGET), _linking_as("Harbour tides", page="a"))
    hide(bed.database, SystemClock(), "https://example.org/a", reason="asked")
    bed.told()

    bed.add(_linking_as("Harbour tides", page="a", day=1))
    assert bed.words() == [], "the page itself, captured again, stays hidden"
    bed.add(_linking_as("Harbour tides", page="b", day=2))

    assert bed.words() == ["Harbour tides"]
    assert bed.document_of(TARGET) in bed.told()


def test_words_that_a_withdrawn_page_says_beside_others_take_no_place_from_them(bed: Bed) -> None:
    bed.add(Shot(url=TARGET), Shot(url="https://example.org/a"))
    hide(bed.database, SystemClock(), "https://example.org/a", reason="asked")

    slander = [("/target", "Harbour tides"), *((f"/target#{n}", f"Slander number {n}") for n in range(20))]
    bed.add(
        Shot(url="https://example.org/a", body=_linking(*slander[:1]), execution=2, moment=days_later(1)),
        *(
            Shot(url=f"https://example.org/a?utm_source={n}", body=_linking(one), execution=2, moment=days_later(1))
            for n, one in enumerate(slander[1:])
        ),
        _linking_as("Harbour tides", page="b", day=1),
        _linking_as("An honest name", page="c", day=1),
    )

    assert sorted(bed.words()) == ["An honest name", "Harbour tides"]


def test_words_of_another_host_in_one_file_are_four(bed: Bed) -> None:
    bed.add(*(_linking_as(f"Words {n}", page=f"p{n}", host="https://far.org") for n in range(20)))

    with bed.database.read() as session:
        assert len(session.scalars(select(LinkText.text)).all()) == 4


def test_words_go_with_the_capture_that_said_them(bed: Bed) -> None:
    bed.add(Shot(url=TARGET), _linking_as("A name", page="a"))
    bed.told()
    with closing(connect(bed.url)) as raw_db:
        with raw_db.write() as tx:
            # As if the second record had been no capture when the file was written.
            ((path,),) = tx.execute("SELECT key FROM warc_files")
        file = bed.home / path
        with closing(Indexer(raw_db, SystemClock(), bed.home)) as indexer:
            with bed.database.read() as session:
                end = session.scalar(select(Snapshot.warc_offset).where(Snapshot.url.endswith("/a")))
            file.write_bytes(file.read_bytes()[:end])
            indexer.index_file(1)

    with bed.database.read() as session:
        assert session.scalars(select(LinkText.text)).all() == []
    assert bed.document_of(TARGET) in bed.told()


def test_a_withdrawal_tells_search_of_every_page_that_it_named(bed: Bed) -> None:
    targets = [f"https://example.org/t{n}" for n in range(7)]
    bed.add(
        *(Shot(url=url) for url in targets),
        Shot(url="https://example.org/a", body=_linking(*((url, f"Words of {url[-2:]}") for url in targets))),
    )

    with bed.database.read() as session:
        key = session.scalar(select(Snapshot.url_key).where(Snapshot.url == "https://example.org/a"))
        parts = list(named_by(session, snapshot_id=None, key=key, at_once=3))

    assert [len(part) for part in parts] == [3, 3, 1]
    assert [one for part in parts for one in part] == sorted(map(hash64, targets))


def test_words_on_a_capture_that_shows_no_page_count_for_nothing_until_it_does(bed: Bed) -> None:
    bed.add(Shot(url=TARGET), _linking_as("A wall", page="a"))
    with bed.database.read() as session:
        found = session.scalar(select(Snapshot.id).where(Snapshot.url.endswith("/a")))
    bed.told()
    assert found is not None

    with bed.database.write() as session:
        write_findings(session, {found: ("soft_404", "test")}, {}, now=SystemClock().now())
    assert (bed.words(), bed.document_of(TARGET) in bed.told()) == ([], True)
    with bed.database.write() as session:
        write_findings(session, {found: None}, {}, now=SystemClock().now())
    assert (bed.words(), bed.document_of(TARGET) in bed.told()) == (["A wall"], True)


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
