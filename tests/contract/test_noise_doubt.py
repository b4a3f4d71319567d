"""What is left alone in doubt, rulings that hold for every capture, and the order of judging; on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, event, select, update

from bench import noise_pages
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import (
    Change,
    Document,
    ManualLabel,
    NoiseQueue,
    NoiseSuspect,
    NoiseVerdict,
    SearchOutbox,
    Snapshot,
    WarcFile,
)
from holdfast.errors import NotFound
from holdfast.index.page_marks import marks_of
from holdfast.noise import queries
from holdfast.noise.classifier import judge_pending
from holdfast.noise.labels import restore_labels, set_label
from holdfast.noise.words import NoiseKind, PageFacts, suspect
from holdfast.warc.queries import read_all_again
from holdfast.warc.record import ORDINALS
from holdfast.wiring import open_runtime
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import hide, unhide
from holdfast.worker.after_crawl import AfterCrawl
from holdfast.worker.background import Accounting, BackgroundContext
from tests.archive import Shot, build_archive, days_later, index_all
from tests.editions_bed import adopt

Building = Callable[[Sequence[Shot]], Archive]
HOST = "https://example.org"
PAGE = f"{HOST}/statement"
LONG = "<p>The ministry has published its report on the matter of the harbour, with figures. </p>" * 20


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


def _shot(title: str, main: str, *, url: str = PAGE, day: int = 0, status: int = 200) -> Shot:
    body = noise_pages.html(title, main, template=False)
    return Shot(url=url, body=body, moment=days_later(day), execution=day + 1, status=status)


def _real(*, url: str = PAGE, day: int = 0) -> Shot:
    return _shot("Statement on the harbour", f"<h1>Statement on the harbour</h1>{LONG}", url=url, day=day)


def _blocked(*, url: str = PAGE, day: int = 0, words: str = "Sorry, you have been blocked") -> Shot:
    return _shot("Attention Required!", f"<h1>{words}</h1>", url=url, day=day)


def _missing(name: str, *, day: int = 0, status: int = 200) -> Shot:
    main = f"<h1>Page not found</h1><p>There is no {name} here.</p>"
    return _shot("Page not found | Example", main, url=f"{HOST}/{name}", day=day, status=status)


def _found(archive: Archive) -> dict[str, str]:
    """Judge what waits, and return what is noise, by address and day."""
    assert judge_pending(archive.database, archive.clock).finished
    with archive.database.read() as session:
        rows = session.execute(
            select(Snapshot.url, Snapshot.captured_at, Snapshot.noise)
            .where(Snapshot.noise.is_not(None))
            .order_by(Snapshot.id)
        )
        return {f"{url.removeprefix(HOST)} {(at - days_later(0)).days}": str(noise) for url, at, noise in rows}


def _ids(archive: Archive) -> list[int]:
    with archive.database.read() as session:
        return list(session.scalars(select(Snapshot.id).order_by(Snapshot.id)))


def test_pages_that_differ_behind_their_first_words_are_not_the_same_text(build: Building) -> None:
    made = [*noise_pages.banner_site(), *noise_pages.entries()]
    archive = build([Shot(url=f"{HOST}{page.path}", body=page.body, status=page.status) for page in made])

    assert _found(archive) == {}


def test_an_error_page_may_suggest_others_and_repeat_its_address(build: Building) -> None:
    def page(name: str, offers: Sequence[str]) -> Shot:
        listed = "".join(f"<li>{offer}</li>" for offer in offers)
        main = f"<h1>Oops!</h1><p>We couldn't find \u201c{name}\u201d. Did you mean one of these?</p><ul>{listed}</ul>"
        return _shot("Nothing found - Example", main, url=f"{HOST}/{name}")

    offers = ("Lamps and more", "The old harbour", "Boats of 1920", "A walk", "Letters", "The mill")
    archive = build([page(name, offers[n : n + 3]) for n, name in enumerate(("lamp", "chair", "vase", "pan"))])

    assert set(_found(archive)) == {f"/{name} 0" for name in ("lamp", "chair", "vase", "pan")}


def test_a_start_page_that_is_sent_with_404_elsewhere_is_no_error_page(build: Building) -> None:
    shell = "<div id=app></div><p>You need to enable JavaScript to run this app of ours.</p>"
    archive = build(
        [
            _shot("Our app", shell, url=f"{HOST}/deep/link", status=404),
            _shot("Our app", shell, url=f"{HOST}/"),
            _shot("Our app", shell, url=f"{HOST}/about"),
        ]
    )

    assert _found(archive) == {}


def test_single_traits_prove_nothing(build: Building) -> None:
    made = noise_pages.traits("example.org")
    archive = build([Shot(url=f"{HOST}{page.path}", body=page.body) for page in made])

    assert _found(archive) == {}


@pytest.mark.parametrize(
    ("url", "title", "text", "is_proved"),
    [
        ("https://www.lot.example/", "lot.example", "The domain lot.example is for sale.", True),
        ("https://lot.example/", "Welcome", "lot.example\nThis domain may be for sale.", True),
        ("https://xn--lt-fka.example/", "Willkommen", "l\u00f6t.example steht zum Verkauf.", True),
        ("https://lot.example/", "Lots", "This domain is for sale: other.example. Write to me@lot.example.", False),
        ("https://lot.example/", "Lots", "The name big-lot.example is for sale.", False),
        ("https://lot.example/", "Lots | lot.example", "The house is for sale.", False),
    ],
)
def test_a_domain_is_parked_if_it_is_offered_by_its_own_name(url: str, title: str, text: str, is_proved: bool) -> None:
    said = suspect(PageFacts(url, title, (), text, frozenset()))

    assert (said is not None and said.kind is NoiseKind.PARKED and said.proof is not None) is is_proved


def test_only_a_challenge_has_its_markup() -> None:
    assert marks_of(b"<script src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1'></script>") == ["challenge"]
    assert marks_of(b"<script>window._cf_chl_opt={}</script>") == ["challenge"]
    for ordinary in (
        b"/cdn-cgi/challenge-platform/scripts/jsd/main.js",
        b"/cdn-cgi/challenge-platform/h/b/scripts/jsd/x.js",
    ):
        assert marks_of(b"<script src='" + ordinary + b"'></script>") == []


@pytest.mark.parametrize(
    ("title", "heading"),
    [
        ("Statement on the harbour", "Statement on the harbour"),
        ("Withdrawn: statement on the harbour", "Statement on the harbour (withdrawn)"),
    ],
)
def test_a_page_that_is_replaced_by_a_notice_under_its_name_is_still_the_page(
    build: Building, title: str, heading: str
) -> None:
    notice = "<p>This statement was withdrawn on 4 March by order of the minister and is no longer available.</p>"
    archive = build([_real(), _shot(title, f"<h1>{heading}</h1>{notice}", day=3)])

    assert _found(archive) == {}


def test_a_page_that_is_replaced_by_an_error_of_another_name_is_not(build: Building) -> None:
    sorry = "<h1>We are sorry</h1><p>The page you requested is no longer available.</p>"
    named = "<h1>Statement on the harbour</h1><h2>Page not found</h2><p>Sorry.</p>"
    archive = build([_real(), _shot("Example", sorry, day=3), _shot("Statement on the harbour", named, day=5)])

    assert _found(archive) == {"/statement 3": "soft_404", "/statement 5": "soft_404"}


def test_a_page_that_was_blocked_for_months_is_still_held_against_what_it_was(build: Building) -> None:
    days = 150
    walls = [_blocked(day=day, words=f"Sorry, you have been blocked {'again ' * (day % 7)}") for day in range(1, days)]
    archive = build([_real(), *(replace(wall, execution=2) for wall in walls)])

    assert len(_found(archive)) == days - 1


def test_what_is_withdrawn_is_no_evidence(build: Building) -> None:
    archive = build([_real(), _blocked(day=1), _missing("gone", status=404), _missing("other")])
    hide(archive.database, archive.clock, str(_ids(archive)[0]), reason="asked")
    hide(archive.database, archive.clock, f"{HOST}/gone", reason="asked")

    assert _found(archive) == {}


def test_one_error_page_of_each_text_is_kept_whatever_its_name(build: Building) -> None:
    for day in range(3):
        archive = build([_missing(f"{day}/{n}/logo.html", day=day, status=404) for n in range(3)])
        assert _found(archive) == {}

    with archive.database.read() as session:
        kept = session.scalars(select(NoiseSuspect.snapshot_id)).all()
    assert len(kept) == 1
    # It is still one after all of it was judged once more.
    with archive.database.write() as session:
        session.add(NoiseQueue(first_id=0, last_id=(1 << 63) - 1))
    assert _found(build([_missing("other", day=4)])) == {"/other 4": "soft_404"}
    with archive.database.read() as session:
        assert session.scalars(select(NoiseSuspect.snapshot_id).where(NoiseSuspect.kind.is_(None))).all() == kept


def test_a_ruling_on_a_page_holds_for_captures_that_are_withdrawn_at_that_moment(build: Building) -> None:
    archive = build([_real(), _blocked(day=1), _blocked(day=2, words="So sorry, you have been blocked")])
    assert len(_found(archive)) == 2
    hidden = str(_ids(archive)[1])
    hide(archive.database, archive.clock, hidden, reason="asked")

    given = set_label(archive.database, archive.clock, PAGE, kind=None, reason="it is the page", home=archive.home)
    unhide(archive.database, archive.clock, hidden)

    # The receipt does not tell what is withdrawn.
    assert given.snapshots == 2
    assert _found(archive) == {}
    hide(archive.database, archive.clock, PAGE, reason="asked")
    with pytest.raises(NotFound):
        set_label(archive.database, archive.clock, PAGE, kind=None, reason="why")


def test_rulings_of_the_file_hold_for_captures_that_a_rebuild_leaves_as_they_are(build: Building) -> None:
    archive = build([_missing(name) for name in "abcde"])
    assert len(_found(archive)) == 5
    set_label(archive.database, archive.clock, f"{HOST}/a", kind=None, reason="an entry", home=archive.home)
    set_label(archive.database, archive.clock, str(_ids(archive)[1]), kind=None, reason="an entry", home=archive.home)
    with archive.database.write() as session:
        # An older copy of the database: it knows neither of the rulings.
        session.execute(delete(ManualLabel))
        session.execute(update(Snapshot).values(noise="soft_404"))

    assert restore_labels(archive.database, archive.clock, archive.home) == 2

    assert set(_found(archive)) == {f"/{name} 0" for name in "cde"}


def test_the_newer_ruling_of_the_file_wins_over_the_older_one_of_the_database(build: Building) -> None:
    archive = build([_real()])
    for kind in (NoiseKind.PARKED, None, NoiseKind.BLOCK_PAGE):
        set_label(archive.database, archive.clock, PAGE, kind=kind, reason="as it seems", home=archive.home)
    with archive.database.write() as session:
        last = session.scalars(select(ManualLabel).order_by(ManualLabel.id.desc())).first()
        session.delete(last)
        session.execute(update(Snapshot).values(noise=None))

    assert restore_labels(archive.database, archive.clock, archive.home) == 1
    assert restore_labels(archive.database, archive.clock, archive.home) == 0
    assert _found(archive) == {"/statement 0": "block_page"}
    # One that the file has not heard of is newer than the file.
    set_label(archive.database, archive.clock, PAGE, kind=None, reason="it is the page")
    assert restore_labels(archive.database, archive.clock, archive.home) == 0
    assert _found(archive) == {}


def test_a_capture_whose_document_is_read_anew_is_judged_anew(build: Building) -> None:
    archive = build([_missing(name) for name in "abcd"])
    assert len(_found(archive)) == 4
    with archive.database.write() as session:
        # As an older version of the reader left it.
        session.execute(update(Document).values(version=0, title="A page"))
        session.execute(update(Snapshot).values(noise=None))
        session.execute(delete(NoiseVerdict))

    with closing(connect(archive.settings.database)) as raw_db:
        with raw_db.write() as tx:
            read_all_again(tx, source=None)
        index_all(raw_db, archive.clock, archive.home)

    assert len(_found(archive)) == 4


def test_what_is_new_is_judged_before_what_an_update_queued(build: Building) -> None:
    archive = build([_real(), _real(url=f"{HOST}/b", day=1)])
    with archive.database.write() as session:
        session.execute(delete(NoiseQueue))
        files = list(session.scalars(select(WarcFile.id).order_by(WarcFile.id)))
        session.add_all(NoiseQueue(first_id=n * ORDINALS, last_id=(n + 1) * ORDINALS - 1, late=True) for n in files)
    build([_real(url=f"{HOST}/c", day=2), _real(url=f"{HOST}/d", day=3)])

    order = []
    with archive.database.write() as session:
        while (turn := queries.next_turn(session)) is not None:
            order.append(turn[1] // ORDINALS - files[0])
            assert queries.take(session, turn, until=turn[2])
    assert order == [2, 3, 1, 0]


def test_a_turn_whose_number_was_given_again_is_not_taken(build: Building) -> None:
    archive = build([_real()])
    with archive.database.write() as session:
        session.execute(delete(NoiseQueue))
        session.add(NoiseQueue(id=1, first_id=ORDINALS, last_id=ORDINALS + 90))
        session.flush()

        assert not queries.take(session, (1, ORDINALS, ORDINALS + 9), until=ORDINALS + 9)
        assert queries.take(session, (1, ORDINALS, ORDINALS + 90), until=ORDINALS + 9)


def test_a_process_that_another_outran_goes_on_elsewhere(build: Building) -> None:
    archive = build([_missing("a"), _missing("b", day=1), _missing("c", day=2), _missing("d", day=3)])
    other = Database(archive.settings.database)
    seen: list[str] = []

    def outrun(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        # The other takes the first turn while this one has read it.
        if "FROM snapshots LEFT OUTER JOIN documents" in statement and not seen:
            seen.append(statement)
            with other.write() as session:
                turn = queries.next_turn(session)
                assert turn is not None
                assert queries.take(session, turn, until=turn[2])

    event.listen(archive.database.engine, "before_cursor_execute", outrun)
    done = judge_pending(archive.database, archive.clock)
    event.remove(archive.database.engine, "before_cursor_execute", outrun)
    other.close()

    assert (len(seen), done.captures, done.finished) == (1, 3, True)


def _context(archive: Archive, stack: ExitStack) -> BackgroundContext:
    runtime = stack.enter_context(open_runtime(archive.settings))
    return BackgroundContext(runtime=runtime, database=archive.database, is_stopping=lambda: False, on_end=stack)


def test_a_worker_searches_and_compares_while_captures_wait_to_be_judged(build: Building) -> None:
    archive = build([_real(day=day) for day in range(4)])
    with ExitStack() as stack:
        task = AfterCrawl(_context(archive, stack), judged=1)

        assert task.run_once()

        with archive.database.read() as session:
            assert queries.is_waiting(session)
            assert session.scalars(select(SearchOutbox).where(SearchOutbox.id > 0)).all() == []
            assert session.scalars(select(Change.id)).first() is not None
        while task.run_once():
            pass
        with archive.database.read() as session:
            assert not queries.is_waiting(session)


def test_an_edition_waits_for_its_own_files_only(build: Building) -> None:
    archive = build([_real(), Shot(url="https://other.example/", source="other", execution=1)])
    edition = adopt(archive, "example", 2026, executions=("example-1",), seeds=(PAGE,))
    with ExitStack() as stack:
        task = Accounting(_context(archive, stack))
        with archive.database.write() as session:
            own, strange = session.scalars(select(WarcFile.id).order_by(WarcFile.id))
            assert queries.edition_waits(session, edition)
        assert not task.run_once()

        with archive.database.write() as session:
            session.execute(delete(NoiseQueue).where(NoiseQueue.first_id < strange * ORDINALS))
            assert queries.is_waiting(session)
            assert not queries.edition_waits(session, edition)
        assert own < strange
        assert task.run_once()
