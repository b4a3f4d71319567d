"""What shows no page is recognised, left out where pages are listed, and can be ruled on; on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from bench import noise_pages
from bench.noise import Score
from bench.noise_pages import MadePage
from holdfast.changes.compute import compute_pending
from holdfast.changes.listing import ChangeScope, page_of_events
from holdfast.db import connect
from holdfast.db.models import AuditEvent, ManualLabel, NoiseQueue, NoiseSuspect, NoiseVerdict, SearchOutbox, Snapshot
from holdfast.db.models.frontier import Domain, Page, PageCrawl
from holdfast.editions.report import write_report
from holdfast.errors import Invalid
from holdfast.noise import queries
from holdfast.noise.classifier import Judged, judge_pending
from holdfast.noise.labels import RULINGS, restore_labels, set_label
from holdfast.noise.words import NoiseKind
from holdfast.search.near_duplicates import SimilarResults
from holdfast.search.outbox import drain
from holdfast.search.search import SearchRequest, SearchService
from holdfast.urls import parse_seed
from holdfast.warc.queries import read_all_again
from holdfast.warc.record import ORDINALS
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import hide
from holdfast.withdrawals.visibility import SnapshotNotFound
from tests.archive import Shot, build_archive, days_later, index_all
from tests.contract.changes_bed import told
from tests.editions_bed import adopt

Building = Callable[[Sequence[Shot]], Archive]
HOST = "https://example.org"
PAGE = f"{HOST}/tides"


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


def _real(words: str = "six", *, day: int = 0, url: str = PAGE) -> Shot:
    text = f"<h1>Tides</h1><p>High water at {words}.</p>" + "<p>The harbour lies open to the west. </p>" * 20
    body = noise_pages.html("Tides at the harbour", text, template=False)
    return Shot(url=url, body=body, moment=days_later(day), execution=day + 1)


def _missing(name: str, *, day: int = 0, status: int = 200) -> Shot:
    body = noise_pages.html("Page not found | Example", f"<h1>Page not found</h1><p>There is no {name} here.</p>")
    return Shot(url=f"{HOST}/{name}", body=body, status=status, moment=days_later(day), execution=day + 1)


def _blocked(url: str = PAGE, *, day: int = 0) -> Shot:
    body = noise_pages.html("Attention Required!", "<h1>Sorry, you have been blocked</h1>", template=False)
    return Shot(url=url, body=body, moment=days_later(day), execution=day + 1)


def _judge(archive: Archive) -> Judged:
    done = judge_pending(archive.database, archive.clock)
    assert done.finished
    return done


def _found(archive: Archive) -> dict[str, str]:
    """Return what is noise, by address and day."""
    with archive.database.read() as session:
        rows = session.execute(
            select(Snapshot.url, Snapshot.captured_at, Snapshot.noise)
            .where(Snapshot.noise.is_not(None))
            .order_by(Snapshot.id)
        )
        return {f"{url.removeprefix(HOST)} {(at - days_later(0)).days}": str(noise) for url, at, noise in rows}


def _id(archive: Archive, url: str) -> int:
    with archive.database.read() as session:
        return session.scalars(select(Snapshot.id).where(Snapshot.url == url).order_by(Snapshot.id)).first() or 0


def _shot(host: str, page: MadePage) -> Shot:
    headers = {} if page.location is None else {"Location": f"https://{host}{page.location}"}
    body = _real().body if page.body == noise_pages.HOME else page.body
    return Shot(url=f"https://{host}{page.path}", body=body, status=page.status, headers=headers)


def test_of_a_fixed_set_nothing_but_noise_is_taken_for_it_and_nearly_all_of_it(build: Building) -> None:
    made: dict[tuple[str, str], MadePage] = {}
    for part in (noise_pages.soft_404s, noise_pages.block_pages, noise_pages.walls, noise_pages.content):
        made |= {("example.org", page.path): page for page in part(6)}
    made |= {("example.org", page.path): page for page in (*noise_pages.banner_site(), *noise_pages.entries())}
    made |= {("like.example", page.path): page for page in noise_pages.traits("like.example")}
    for n in range(3):
        made |= {(f"sale{n}.example", "/"): page for page in noise_pages.parked(f"sale{n}.example")}
        made |= {(f"lot{n}.example", "/"): page for page in noise_pages.parked_by_service(f"lot{n}.example")}
    shots = [_real(url=f"{HOST}/"), *(_shot(host, page) for (host, _), page in made.items())]
    archive = build(shots)

    _judge(archive)

    score = Score()
    with archive.database.read() as session:
        noise = {row[0]: row[1] for row in session.execute(select(Snapshot.url, Snapshot.noise))}
    for (host, path), page in made.items():
        if page.status < 400:
            url = f"https://{host}{path}"
            score.add(url, page.style, page.kind, noise[url])
    assert score.wrong == []
    assert score.other == {}
    missed = {style: (score.right[style], count) for style, count in score.all.items() if score.right[style] < count}
    assert missed == {}
    assert score.content > 80


def test_words_alone_prove_nothing(build: Building) -> None:
    archive = build([_missing("a"), _missing("b"), _missing("c"), _blocked(), _real(url=f"{HOST}/")])

    assert _judge(archive).captures == 5

    assert _found(archive) == {}


def test_the_fourth_address_with_the_same_text_proves_the_first_ones_too(build: Building) -> None:
    _judge(build([_missing("a"), _missing("b"), _missing("c")]))

    archive = build([_missing("d", day=3)])
    _judge(archive)

    assert _found(archive) == {"/a 0": "soft_404", "/b 0": "soft_404", "/c 0": "soft_404", "/d 3": "soft_404"}
    with archive.database.read() as session:
        verdict = queries.verdict_on(session, _id(archive, f"{HOST}/a"))
    assert verdict is not None
    assert "page not found" in verdict.evidence
    assert "at least 4 addresses" in verdict.evidence


def test_one_page_in_many_versions_of_a_manual_is_no_error_page(build: Building) -> None:
    archive = build([_missing(f"v{n}/status/missing.html") for n in range(8)])

    _judge(archive)

    assert _found(archive) == {}


def test_a_text_that_the_site_gave_an_error_status_elsewhere_is_one(build: Building) -> None:
    archive = build([_missing("was-there", status=404), _missing("other")])

    _judge(archive)

    assert _found(archive) == {"/other 0": "soft_404"}


def test_a_block_page_is_known_by_the_page_that_was_there_before_or_comes_later(build: Building) -> None:
    _judge(build([_real(), _blocked(day=1), _blocked(f"{HOST}/new", day=1)]))
    archive = build([_real(url=f"{HOST}/new", day=2)])

    _judge(archive)

    assert _found(archive) == {"/tides 1": "block_page", "/new 1": "block_page"}


def test_a_chore_that_ends_early_goes_on_where_it_was(build: Building) -> None:
    archive = build([_missing(name) for name in "abcdefgh"])

    assert judge_pending(archive.database, archive.clock, is_stopping=lambda: True).captures == 0
    with archive.database.write() as session:
        # As a worker leaves it that took half of the range.
        turn = queries.next_turn(session)
        assert turn is not None
        assert queries.take(session, turn, until=_id(archive, f"{HOST}/b"))
        assert not queries.take(session, turn, until=turn[2])
    _judge(archive)

    assert set(_found(archive)) == {f"/{name} 0" for name in "cdefgh"}
    assert _judge(archive).captures == 0


def _search(archive: Archive, *, noise: bool = False) -> list[tuple[str, str | None]]:
    drain(archive.database, archive.home, archive.clock)
    answer = SearchService(archive.database, archive.home, archive.clock).ask(
        SearchRequest(q="page", noise=noise, similar=SimilarResults.SHOW), wait=True
    )
    assert answer.total == len(answer.hits)
    return sorted((hit.row.url.removeprefix(HOST), hit.row.noise) for hit in answer.hits)


def test_search_leaves_noise_out_unless_it_is_asked_for(build: Building) -> None:
    shot = _real(url=f"{HOST}/about", words="the page")
    archive = build([shot, *(_missing(name) for name in "abcd")])
    # What was taken in before it was judged is found until the next drain.
    assert len(_search(archive)) == 5

    _judge(archive)

    assert _search(archive) == [("/about", None)]
    assert _search(archive, noise=True) == [
        *((f"/{name}", "soft_404") for name in "a"),
        ("/about", None),
        *((f"/{name}", "soft_404") for name in "bcd"),
    ]


def test_a_page_that_was_blocked_for_a_day_is_compared_with_what_it_was(build: Building) -> None:
    archive = build([_real(), _blocked(day=1), _blocked(day=2), _real("seven", day=3), _real("seven", day=4)])
    _judge(archive)
    compute_pending(archive.database, archive.clock)

    assert told(archive) == [
        (0, "new_page", None), (1, "noise", 0), (2, "noise", 0), (3, "updated", 0), (4, "unchanged", 3),
    ]  # fmt: skip
    with archive.database.read() as session:
        for scope, wanted in (
            (ChangeScope(), ["updated", "new_page"]),
            (ChangeScope(noise=True), ["updated", "noise", "noise", "new_page"]),
            (ChangeScope(unchanged=True), ["unchanged", "updated", "new_page"]),
            (ChangeScope(unchanged=True, noise=True), ["unchanged", "updated", "noise", "noise", "new_page"]),
        ):
            events, total, _ = page_of_events(session, scope, offset=0, limit=10)
            assert [event.type for event in events] == wanted
            assert total == len(wanted)


def test_what_was_compared_before_it_was_judged_is_compared_again(build: Building) -> None:
    archive = build([_real(), _blocked(day=1), _real("seven", day=2)])
    compute_pending(archive.database, archive.clock)
    assert [kind for _, kind, _ in told(archive)] == ["new_page", "updated", "updated"]

    _judge(archive)
    compute_pending(archive.database, archive.clock)
    assert told(archive) == [(0, "new_page", None), (1, "noise", 0), (2, "updated", 0)]

    with archive.database.read() as session:
        blocked = session.scalars(select(Snapshot.id).where(Snapshot.noise.is_not(None))).one()
    set_label(archive.database, archive.clock, str(blocked), kind=None, reason="it is so")
    compute_pending(archive.database, archive.clock)
    assert told(archive) == [(0, "new_page", None), (1, "updated", 0), (2, "updated", 1)]


def test_an_address_of_which_only_noise_was_captured_is_missing_from_an_edition(build: Building) -> None:
    archive = build([_real(), *(_missing(name) for name in "abcd")])
    _judge(archive)
    seeds = (PAGE, *(f"{HOST}/{name}" for name in "abcd"))
    number = adopt(archive, "example", 2026, executions=("example-1",), seeds=seeds)

    report = write_report(archive.database, archive.home, archive.clock, number)[0]

    assert report["counts"]["captured_urls"] == 1
    assert report["counts"]["missing_seeds"] == 4
    assert {(one["outcome"], one["reason"]) for one in report["missing_seeds"]} == {("failed", "noise_soft_404")}
    # The site says that there is no such page: crawling again would not bring it.
    assert {seed["gaps"] for seed in report["seeds"]} == {0}


def test_a_crawl_with_a_frontier_of_its_own_counts_noise_and_redirects_to_it_as_missing(build: Building) -> None:
    names = [f"old-{name}" for name in "abcde"]
    away = [Shot(url=f"{HOST}/{name}", body="", status=302, headers={"Location": f"{HOST}/"}) for name in names]
    archive = build([_real(url=f"{HOST}/"), *(_missing(name) for name in "abcd"), *away])
    _judge(archive)
    seeds = (f"{HOST}/", f"{HOST}/a", f"{HOST}/old-a")
    number = adopt(archive, "example", 2026, executions=("example-1",), seeds=seeds)
    with archive.database.write() as session:
        domain = Domain(name="example.org", created_at=archive.clock.now())
        session.add(domain)
        session.flush()
        # As the crawl writes it: a redirect inside the domain is followed, and the record is that of its last hop.
        for url, shown in zip(seeds, (f"{HOST}/", f"{HOST}/a", f"{HOST}/"), strict=True):
            held = session.scalars(select(Snapshot).where(Snapshot.url == shown)).one()
            page = Page(domain_id=domain.id, url_hash=parse_seed(url).hash64, url=url, created_at=archive.clock.now())
            session.add(page)
            session.flush()
            session.add(PageCrawl(
                execution_id=held.execution_id, domain_id=domain.id, page_id=page.id, attempt=1, priority=1, depth=0,
                kind="page", outcome="success", reason="ok", status_code=200, created_at=0, completed_at=1,
                warc_file_id=held.warc_file_id, warc_ordinal=held.id % ORDINALS,
            ))  # fmt: skip

    report = write_report(archive.database, archive.home, archive.clock, number)[0]

    assert report["counts"]["captured_urls"] == 1
    missing = {(one["url"].removeprefix(HOST), one["reason"]) for one in report["missing_seeds"]}
    assert missing == {("/a", "noise_soft_404"), ("/old-a", "noise_soft_404")}


def test_a_ruling_wins_over_what_is_found_now_and_later(build: Building) -> None:
    archive = build([_missing(name) for name in "abcdefg"])
    _judge(archive)
    one = _id(archive, f"{HOST}/a")

    set_label(
        archive.database, archive.clock, str(one), kind=None, reason="an entry of the glossary", home=archive.home
    )
    set_label(archive.database, archive.clock, f"{HOST}/b", kind=None, reason="so is this", home=archive.home)
    set_label(
        archive.database, archive.clock, f"{HOST}/c", kind=NoiseKind.PARKED, reason="it was sold", home=archive.home
    )
    with archive.database.write() as session:
        # All of it once more, as after a new version of the rules.
        session.add(NoiseQueue(first_id=0, last_id=(1 << 63) - 1))
    archive = build([_missing("b", day=2), _missing("h", day=2)])
    _judge(archive)

    assert _found(archive) == {
        "/c 0": "parked", "/d 0": "soft_404", "/e 0": "soft_404", "/f 0": "soft_404", "/g 0": "soft_404",
        "/h 2": "soft_404",
    }  # fmt: skip
    with archive.database.read() as session:
        actions = session.scalars(select(AuditEvent.action).order_by(AuditEvent.id)).all()
        verdict = queries.verdict_on(session, _id(archive, f"{HOST}/c"))
    assert actions == ["noise.cleared", "noise.cleared", "noise.marked"]
    assert verdict is not None
    assert verdict.decided_by
    assert "it was sold" in verdict.evidence


def test_rulings_survive_the_loss_of_the_database(build: Building) -> None:
    archive = build([_missing(name) for name in "abcde"])
    _judge(archive)
    set_label(archive.database, archive.clock, f"{HOST}/a", kind=None, reason="an entry", home=archive.home)
    with (archive.home / RULINGS).open("ab") as file:
        file.write(b'{"snapshot_id": 1, "half\n[]\n')
    with archive.database.write() as session:
        # What a rebuild finds: rows made anew, without anything that was found or ruled.
        for table in (ManualLabel, NoiseSuspect, NoiseVerdict):
            session.execute(delete(table))
        session.execute(update(Snapshot).values(noise=None, truncated="length"))

    assert restore_labels(archive.database, archive.clock, archive.home) == 1
    assert restore_labels(archive.database, archive.clock, archive.home) == 0
    with closing(connect(archive.settings.database)) as raw_db:
        with raw_db.write() as tx:
            read_all_again(tx, source=None)
        index_all(raw_db, archive.clock, archive.home)
    _judge(archive)

    assert _found(archive) == {f"/{name} 0": "soft_404" for name in "bcde"}


def test_a_ruling_needs_a_reason_and_a_capture(build: Building) -> None:
    archive = build([_real()])

    with pytest.raises(Invalid):
        set_label(archive.database, archive.clock, PAGE, kind=None, reason=" ")
    for subject in ("12", "9" * 40):
        with pytest.raises(SnapshotNotFound):
            set_label(archive.database, archive.clock, subject, kind=None, reason="why")


def test_what_is_withdrawn_is_neither_listed_nor_counted(build: Building) -> None:
    archive = build([_missing(name) for name in "abcd"])
    _judge(archive)
    with archive.database.read() as session:
        execution = session.scalars(select(Snapshot.execution_id)).first() or 0
        assert queries.counts_of(session, execution) == {"soft_404": 4}

    hide(archive.database, archive.clock, f"{HOST}/a", reason="asked")

    with archive.database.read() as session:
        assert queries.counts_of(session, execution) == {"soft_404": 3}
        listed = queries.listed(session, source_id=None, kind=None, before=None, limit=10)
    assert f"{HOST}/a" not in {row.url for row in listed}
    with pytest.raises(SnapshotNotFound):
        set_label(archive.database, archive.clock, str(_id(archive, f"{HOST}/a")), kind=None, reason="why")


def test_a_second_reading_of_a_file_changes_nothing(build: Building) -> None:
    archive = build([_missing(name) for name in "abcd"])
    _judge(archive)
    drain(archive.database, archive.home, archive.clock)

    with closing(connect(archive.settings.database)) as raw_db:
        with raw_db.write() as tx:
            read_all_again(tx, source=None)
        index_all(raw_db, archive.clock, archive.home)

    assert _judge(archive).captures == 0
    assert len(_found(archive)) == 4
    with archive.database.read() as session:
        assert session.scalars(select(SearchOutbox).where(SearchOutbox.id > 0)).all() == []
