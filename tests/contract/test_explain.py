"""What is told of an address, on both databases: from the same rows that crawls, jobs and readers go by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from holdfast.db import connect
from holdfast.db.models import Source
from holdfast.frontier import Frontier
from holdfast.frontier.explain import ExplainRequest
from holdfast.index.forgetting import forget_file
from holdfast.jobs.states import JobAction
from holdfast.storage.store import FileKey
from holdfast.types import (
    CircuitState,
    DomainUpdate,
    FoundUrl,
    Outcome,
    RecordRef,
    RobotsAnswer,
    RobotsRecord,
    UrlKind,
    Visit,
)
from holdfast.urls import parse_seed
from holdfast.warc import queries as files
from holdfast.wiring.explain import explain_url
from holdfast.withdrawals.hiding import hide, unhide
from tests.answers import as_record
from tests.api_bed import Server
from tests.archive import BEGIN, Shot, add_captures, index_all
from tests.clock import FakeClock

PAGE = "https://ex.example/a"
ROBOTS = b"User-agent: *\nCrawl-delay: 7\nDisallow: /private\nAllow: /private/open\n"


@pytest.fixture
def frontier(server: Server) -> Iterator[Frontier]:
    """The frontier of the server's database, as a crawl process has it."""
    with closing(connect(server.archive.settings.database)) as raw_db:
        yield Frontier(raw_db, server.clock)


def _explain(server: Server, url: str, **options: Any) -> Any:
    answer = server.get("/api/explain", params={"url": url, **options})
    assert answer.status_code == 200, answer.text
    return as_record(answer)


def _found(url: str, **changes: Any) -> FoundUrl:
    parsed = parse_seed(url)
    return FoundUrl(parsed.fetch, parsed.hash64, parsed.domain, UrlKind.PAGE, 1, 2)._replace(**changes)


def _running(server: Server, code: str = "ex", **config: Any) -> int:
    """Make a source with a job whose execution runs, and return the execution."""
    server.source(code, **config)
    job = server.ask("POST", "/api/v1/jobs", source_id=_id(server, code), url=f"https://{code}.example/")
    assert job.status_code == 201, job.text
    server.bed.party.scheduler.tick()
    return server.bed.party.taken().execution_id


def _id(server: Server, code: str) -> int:
    found = server.get("/api/v1/sources").json()["sources"]
    return next(int(one["id"]) for one in found if one["code"] == code)


def _visit(frontier: Frontier, clock: FakeClock, execution: int, outcome: Outcome, reason: str, **changes: Any) -> None:
    """Lease the next page of an execution, and settle it."""
    (lease,) = frontier.lease(execution, 1, domains=1, pages=1)
    now = clock.now()
    visit = Visit(
        attempt=lease.attempts[0], token=lease.token, outcome=outcome, reason=reason, started_at=now, finished_at=now,
        **changes,
    )  # fmt: skip
    update = DomainUpdate(domain_id=lease.domain_id, token=lease.token, next_allowed_at=now, circuit=CircuitState())
    frontier.settle(execution, 1, [visit], [update])
    frontier.release(execution, 1, [update])


def test_an_address_of_nobody_has_an_answer_and_a_reason(server: Server) -> None:
    found = _explain(server, PAGE)

    assert found.outlook.next.kind == "never"
    assert "there are no sources yet" in found.outlook.next.sentence
    assert (found.robots.known, found.robots.allowed) == ("unknown", None)
    assert found.domain is not None
    assert not found.domain.known
    assert found.attempts.items == []
    assert found.snapshots.count == 0


def test_each_source_says_by_which_rule_it_has_the_address_or_leaves_it_out(server: Server) -> None:
    server.source("ex", exclude=["/private"])
    server.source("other", include=["^https://ex[.]example/"])
    server.source("third")
    server.source("loose", seeds=["https://ex.example/"], strip_trailing_slash=True)

    inside = _explain(server, "https://ex.example/a/")
    private = _explain(server, "https://ex.example/private/x")
    seed = _explain(server, "https://ex.example")

    assert {one.source: one.rule for one in inside.sources.in_scope} == {
        "ex": "scope:host", "other": "include:^https://ex[.]example/", "loose": "scope:host",
    }  # fmt: skip
    assert {one.source: one.normalised for one in inside.sources.in_scope if one.normalised} == {
        "loose": "https://ex.example/a"
    }
    assert [(one.source, one.rule) for one in inside.sources.out_of_scope] == [("third", "scope:host")]
    assert {one.source: one.rule for one in private.sources.out_of_scope} == {
        "ex": "exclude:/private", "third": "scope:host",
    }  # fmt: skip
    assert (seed.sources.in_scope[0].rule, "it is a seed" in seed.sources.in_scope[0].sentence) == ("seed", True)
    assert "never by ex: it has no job" in " ".join(turn.sentence for turn in seed.outlook.all)


def test_robots_and_domain_are_told_from_what_is_kept(server: Server, frontier: Frontier) -> None:
    execution = _running(server, delay_s=2.0)
    frontier.add(execution, [_found("https://ex.example/private/x")])
    (lease,) = frontier.lease(execution, 1, domains=1, pages=1)
    now = server.clock.now()
    state = RobotsRecord(
        origin="https://ex.example", answer=RobotsAnswer.RULES, fetched_at=now, checked_at=now, status=200, body=ROBOTS
    )
    opened = CircuitState(state="open", failures=5, opened_at=now, penalty=4.0, unreachable_since=now)
    frontier.release(
        execution,
        1,
        [DomainUpdate(domain_id=lease.domain_id, token=lease.token, next_allowed_at=now + timedelta(seconds=30),
                      circuit=opened, robots=(state,))],
    )  # fmt: skip

    found = _explain(server, "https://ex.example/private/x")
    open_page = _explain(server, "https://ex.example/private/open")

    assert (found.robots.known, found.robots.allowed, found.robots.line) == ("rules", False, 3)
    assert found.robots.rule == "Disallow: /private"
    assert (open_page.robots.allowed, open_page.robots.line) == (True, 4)
    assert found.domain is not None
    assert (found.domain.circuit, found.domain.delay_s, found.domain.penalty) == ("open", 28.0, 4.0)
    assert found.domain.delay_reasons == [
        "slowed 4x after 429 or 503", "robots.txt asks for 7 s", "ex asks for 2 s",
    ]  # fmt: skip
    assert found.domain.next_allowed_at == now + timedelta(seconds=30)
    assert found.domain.circuit_open_until is not None
    server.clock.advance(25 * 3600)
    assert _explain(server, "https://ex.example/private/x").robots.known == "expired"


def test_attempts_come_newest_first_piece_by_piece_with_their_place_in_the_queue(
    server: Server, frontier: Frontier
) -> None:
    execution = _running(server)
    frontier.add(execution, [_found(PAGE, priority=1), _found("https://ex.example/b", priority=3)])

    queued = _explain(server, PAGE)
    _visit(frontier, server.clock, execution, Outcome.SUCCESS, "ok", status=200)
    for number in range(3):
        retry = server.clock.now() + timedelta(seconds=1) if number < 2 else None
        _visit(frontier, server.clock, execution, Outcome.FAILED, "timeout", message="no answer", retry_at=retry)
        server.clock.advance(2)
    first = _explain(server, PAGE, limit=2)
    rest = _explain(server, PAGE, limit=2, cursor=first.attempts.next)

    assert (queued.outlook.next.kind, queued.outlook.next.place, queued.outlook.next.execution) == (
        "under_way", 2, execution,
    )  # fmt: skip
    assert queued.attempts.items[0].outcome is None
    assert [one.number for one in first.attempts.items] == [3, 2]
    assert [one.number for one in rest.attempts.items] == [1]
    assert rest.attempts.next is None
    assert first.attempts.items[0].sentence.endswith("failed (timeout): no answer")
    assert (first.attempts.items[0].source, first.outlook.next.place) == ("ex", None)
    assert server.get("/api/explain", params={"url": PAGE, "cursor": "x"}).status_code == 422


def test_what_a_discarded_run_stored_is_not_said_to_be_there(server: Server, frontier: Frontier) -> None:
    execution = _running(server)
    frontier.add(execution, [_found(PAGE)])
    with closing(connect(server.archive.settings.database)) as raw_db:
        with raw_db.write() as tx:
            file_id = files.insert_file(
                tx, execution_id=execution, owner_id=1, key=FileKey("warcs/ex/a.warc.gz"), now=0
            )
        record = RecordRef(warc_file_id=file_id, ordinal=1, offset=753, length=99)
        _visit(frontier, server.clock, execution, Outcome.SUCCESS, "ok", status=200, record=record)
        kept = _explain(server, PAGE).attempts.items[0]
        forget_file(raw_db, server.clock, file_id)
    gone = _explain(server, PAGE).attempts.items[0]

    assert kept.record is not None
    assert (kept.record.warc_file, kept.record.offset) == ("warcs/ex/a.warc.gz", 753)
    assert gone.record is None
    assert gone.sentence == f"{kept.sentence}; what it stored was discarded"


def test_a_domain_that_is_held_names_its_holder(server: Server, frontier: Frontier) -> None:
    execution = _running(server)
    frontier.add(execution, [_found(PAGE)])
    frontier.lease(execution, 77, domains=1, pages=1)

    found = _explain(server, PAGE).domain

    assert found is not None
    assert found.holder is not None
    assert found.holder.owner == 77
    assert "owner 77 holds it" in found.sentence


def test_what_comes_next_follows_the_job(server: Server) -> None:
    job_id = server.recurring(minutes=600)

    def outlook() -> tuple[str, str]:
        turn = _explain(server, PAGE).outlook.next
        return turn.kind, turn.sentence

    server.bed.set_next_run(job_id, server.clock.now() + timedelta(hours=3))
    kind, sentence = outlook()
    assert (kind, "runs next at" in sentence) == ("scheduled", True)
    server.bed.set_next_run(job_id, server.clock.now())
    assert outlook()[0] == "due"
    server.bed.party.scheduler.tick()
    assert outlook()[0] == "queued"
    server.bed.party.taken()
    assert outlook()[0] == "under_way"


def test_a_paused_job_waits_and_a_disabled_source_never_comes(server: Server) -> None:
    job_id = server.recurring()
    server.bed.set_next_run(job_id, server.clock.now() + timedelta(hours=3))
    server.bed.party.act(job_id, JobAction.PAUSE)
    paused = _explain(server, PAGE).outlook.next
    assert server.ask("POST", f"/api/v1/sources/{_id(server, 'ex')}/disable").status_code == 200
    disabled = _explain(server, PAGE).outlook.next

    assert (paused.kind, f"holdfast job resume {job_id}" in paused.sentence) == ("waits", True)
    assert (disabled.kind, "the source is disabled" in disabled.sentence) == ("never", True)


def test_captures_are_counted_and_withdrawals_told(server: Server) -> None:
    archive = server.archive
    shots = [
        Shot(url=PAGE, source="ex", body=f"<p>{number} words</p>", moment=BEGIN + timedelta(days=number))
        for number in range(4)
    ]
    with closing(connect(archive.settings.database)) as raw_db:
        add_captures(raw_db, archive.settings, server.clock, [*shots, Shot(url="http://ex.example/a", source="ex")])
        index_all(raw_db, server.clock, archive.home)

    found = _explain(server, PAGE, limit=3)
    hide(archive.database, server.clock, str(found.snapshots.items[0].id), reason="asked for", home=archive.home)
    one_gone = _explain(server, PAGE)
    ids = [one.id for one in one_gone.snapshots.items]
    hide(archive.database, server.clock, str(ids[-1]), reason="an old one", home=archive.home)
    old_gone = _explain(server, PAGE, limit=2)
    for number in ids[1:-1]:
        hide(archive.database, server.clock, str(number), reason="the rest", home=archive.home)
    each_gone = _explain(server, PAGE, limit=1)
    hide(archive.database, server.clock, PAGE, reason="a court", home=archive.home)
    all_gone = _explain(server, PAGE)

    assert (found.snapshots.count, len(found.snapshots.items), found.snapshots.other_spellings) == (4, 3, 1)
    assert found.snapshots.items[0].captured_at == BEGIN + timedelta(days=3)
    assert found.snapshots.items[0].replay_path == f"/web/20240304120000/{PAGE}"
    assert found.visibility.seen_by == "everybody"
    assert (one_gone.visibility.seen_by, [w.reason for w in one_gone.visibility.withdrawals]) == ("some", ["asked for"])
    # Also where the capture that is gone is none of those that are shown.
    assert [w.reason for w in old_gone.visibility.withdrawals] == ["asked for", "an old one"]
    assert old_gone.visibility.sentence == "2 of its captures are withdrawn: asked for"
    assert (each_gone.visibility.seen_by, each_gone.visibility.sentence) == (
        "nobody",
        "all of its captures are withdrawn: asked for",
    )
    assert all_gone.visibility.seen_by == "nobody"
    assert "a court; readers do not see it" in all_gone.visibility.sentence
    assert all(one.withdrawn for one in all_gone.snapshots.items)


def test_captures_that_are_hidden_with_the_one_whose_body_they_show_are_counted(server: Server) -> None:
    archive, copy = server.archive, "https://ex.example/copy"
    shots = [
        Shot(url=PAGE, source="copies", body="<p>some words</p>"),
        *(Shot(url=copy, source="copies", same_as=PAGE, moment=BEGIN + timedelta(days=day))
          for day in (1, 2)),
    ]  # fmt: skip
    with closing(connect(archive.settings.database)) as raw_db:
        add_captures(raw_db, archive.settings, server.clock, shots)
        index_all(raw_db, server.clock, archive.home)
    [original] = _explain(server, PAGE).snapshots.items

    before = _explain(server, copy).visibility
    hide(archive.database, server.clock, str(original.id), reason="private", home=archive.home)
    with_it = _explain(server, copy).visibility
    unhide(archive.database, server.clock, str(original.id), home=archive.home)
    hide(archive.database, server.clock, PAGE, reason="a court", home=archive.home)
    with_page = _explain(server, copy).visibility

    assert (before.seen_by, before.withdrawals) == ("everybody", [])
    assert (with_it.seen_by, [one.snapshot for one in with_it.withdrawals]) == ("nobody", [original.id])
    assert with_it.sentence == "all of its captures are withdrawn: private"
    assert (with_page.seen_by, [one.snapshot for one in with_page.withdrawals]) == ("nobody", [None])
    assert with_page.sentence == "all of its captures are withdrawn: a court"


@pytest.mark.parametrize(
    "url",
    ["https://u:hunter2@ex.example/", "u:hunter2@ex.example", "http://u:hunter2@[::1]:99999/", "ftp://u:hunter2@ex.example/x",
     "https://ex.example/\x00/hunter", "https://bücher.example/ü?ö=1", "a" * 8_000, "https://" + "a." * 3_000,
     "https://ex.example/" + "%00" * 500, "javascript:alert(1)", "\ud800".encode("utf-8", "replace").decode(),
     "data:text/html,<script>", "http://[", "//", "?", "http://ex.example:5432/", "https://ex.example/" + "../" * 900],
)  # fmt: skip
def test_whatever_the_address_is_there_is_an_answer_without_its_password(server: Server, url: str) -> None:
    server.source("ex")
    answer = server.get("/api/explain", params={"url": url})

    assert answer.status_code == (422 if "\x00" in url else 200) or answer.status_code == 414, answer.text
    assert "hunter2" not in answer.text


def test_a_source_that_allows_a_port_has_what_is_refused_in_general(server: Server) -> None:
    refused = _explain(server, "http://ex.example:5432/")
    assert refused.robots.sentence.startswith("no robots.txt applies")
    server.source("ex", seeds=["http://ex.example:5432/"], allow_ports=[5432])
    allowed = _explain(server, "http://ex.example:5432/a")

    assert (refused.address.fetch, refused.domain) == (None, None)
    assert "port 5432" in (refused.address.refused or "")
    assert (allowed.address.refused, allowed.sources.in_scope[0].rule) == (None, "scope:host")
    assert allowed.address.domain == "ex.example:5432"


def test_a_paused_run_is_told_of_what_it_has_queued_and_of_what_it_may_come_to(
    server: Server, frontier: Frontier
) -> None:
    execution = _running(server)
    frontier.add(execution, [_found(PAGE)])
    assert server.ask("POST", "/api/admin/crawls/pause", execution=execution).status_code == 200
    queued = _explain(server, PAGE).outlook.next
    later = _explain(server, f"{PAGE}/not-met-yet").outlook.next
    server.ask("POST", "/api/admin/crawls/resume", execution=execution)

    assert (queued.kind, later.kind) == ("waits", "waits")
    assert all(f"holdfast resume {execution}" in one.sentence for one in (queued, later))
    assert _explain(server, PAGE).outlook.next.kind == "under_way"


def test_explain_says_that_the_running_run_is_done_with_the_page(server: Server, frontier: Frontier) -> None:
    execution = _running(server)
    frontier.add(execution, [_found(PAGE)])
    _visit(frontier, server.clock, execution, Outcome.SUCCESS, "ok", status=200)

    turn = _explain(server, PAGE).outlook.next

    assert (turn.kind, turn.execution) == ("done", execution)
    assert "is done with the page (captured); a later run requests it again" in turn.sentence
    with server.archive.database.read() as session:
        told = explain_url(server.archive, session, ExplainRequest(url=PAGE, is_reader=True)).outlook.next
    assert told.sentence == "the current run has requested it; a later run requests it again"
    assert "once it finds a link to it" in _explain(server, f"{PAGE}/not-met-yet").outlook.next.sentence


def test_a_paused_domain_and_an_address_that_a_person_added_are_told(server: Server, frontier: Frontier) -> None:
    execution = _running(server)
    frontier.add(execution, [_found(PAGE)])
    paused = server.ask("PUT", "/api/domains/ex.example/settings", paused=True)
    assert paused.status_code == 200, paused.text
    rests = _explain(server, PAGE)
    server.source("later", seeds=["https://later.example/"])
    added = server.ask("POST", "/api/frontier/add", urls=["https://later.example/x"], source="later")
    assert added.status_code in (200, 202), added.text
    waits = _explain(server, "https://later.example/x")

    assert rests.domain is not None
    assert rests.domain.paused_since is not None
    assert (rests.outlook.next.kind, "has paused ex.example" in rests.outlook.next.sentence) == ("waits", True)
    assert waits.outlook.next.kind == "due"
    assert any("the next run of later takes it" in turn.sentence for turn in waits.outlook.all)


def test_captures_of_a_members_source_are_for_members(server: Server) -> None:
    archive = server.archive
    with closing(connect(archive.settings.database)) as raw_db:
        add_captures(raw_db, archive.settings, server.clock, [Shot(url=PAGE, source="mem")])
        index_all(raw_db, server.clock, archive.home)
    with archive.database.write() as session:
        session.execute(update(Source).values(visibility="members"))

    found = _explain(server, PAGE).visibility

    assert (found.seen_by, found.members_only, found.sentence) == (
        "members", ["mem"], "captures of mem are for members",
    )  # fmt: skip


def test_a_page_that_a_members_source_will_capture_is_not_called_everybodys(server: Server) -> None:
    server.source("ex")
    with server.archive.database.write() as session:
        session.execute(update(Source).values(visibility="members"))

    found = _explain(server, PAGE).visibility
    nobodys = _explain(server, "https://elsewhere.example/").visibility

    assert (found.seen_by, found.members_only) == ("members", ["ex"])
    assert found.sentence == "what ex captures of it is for members"
    assert nobodys.seen_by == "everybody"


def test_explain_judges_sources_that_name_the_site_first(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for code in ("aa", "bb", "ex"):
        server.source(code)
    monkeypatch.setattr("holdfast.frontier.explain_sources._SEEDS", 0)

    found = _explain(server, "https://shop.ex.example/a")
    assert [one.source for one in (*found.sources.in_scope, *found.sources.out_of_scope)] == ["ex"]
    assert not found.sources.is_all
    assert server.get("/api/v1/sources/names").json() == [
        {"id": _id(server, code), "code": code, "name": code, "enabled": True, "is_yearly": False}
        for code in ("aa", "bb", "ex")
    ]
