"""One domain at work, without a network: what an answer means for the attempt and for the domain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.config import Settings
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.outcomes import PageUnderWay
from holdfast.crawl.politeness import Pace
from holdfast.errors import NoSpace
from holdfast.types import (
    Attempt,
    DomainChange,
    Fetched,
    FetchFailed,
    FetchProblem,
    FetchRequest,
    LeaseRefusal,
    Outcome,
    Truncated,
)
from tests.clock import FakeClock
from tests.unit.crawl.bed import Answer, Bed, Line, attempt, make_bed

_ROBOTS = "http://a.test/robots.txt"


@dataclass(frozen=True)
class Clocked:
    """A client that is one function."""

    fetch: Callable[[FetchRequest], Coroutine[Any, Any, Fetched | FetchFailed]]


def _work(worker: DomainWorker, one: Attempt) -> bool:
    return asyncio.run(worker.work(one))


def _only(bed: Bed) -> PageUnderWay:
    """Return the one attempt that was handed over."""
    [page] = [page for page in bed.pages if page.attempt is not None]
    return page


def test_a_page_is_asked_after_its_robots_file_and_both_are_handed_over() -> None:
    bed = make_bed({"http://a.test/x": Answer()})

    assert _work(bed.worker(), attempt("http://a.test/x"))
    assert bed.web.urls == [_ROBOTS, "http://a.test/x"]
    assert [page.reason for page in bed.pages] == ["robots", "ok"]


def test_a_forbidden_page_is_not_asked_and_the_line_is_named() -> None:
    bed = make_bed({_ROBOTS: Answer(body=b"User-agent: *\nDisallow: /x\n")})

    assert _work(bed.worker(), attempt("http://a.test/x"))
    assert bed.web.urls == [_ROBOTS]
    assert (_only(bed).outcome, _only(bed).reason) == (Outcome.BLOCKED_ROBOTS, "robots:line 2")
    assert _only(bed).message == "Disallow: /x"


@pytest.mark.parametrize("line", [Answer(500), Answer(429), FetchProblem.TIMEOUT, FetchProblem.DNS])
def test_a_robots_file_that_cannot_be_read_puts_the_domain_off_and_the_page_stays_open(
    line: Answer | FetchProblem,
) -> None:
    bed = make_bed({_ROBOTS: line})
    worker = bed.worker()

    assert not _work(worker, attempt("http://a.test/x"))
    assert worker.put_off_until == bed.clock.now() + timedelta(seconds=2)
    assert worker.politeness.circuit.unreachable_since == bed.clock.now()
    assert not [page for page in bed.pages if page.attempt is not None]


def test_an_address_that_may_never_be_dialled_is_excluded_at_once_and_nothing_is_remembered() -> None:
    bed = make_bed({_ROBOTS: FetchProblem.ADDRESS_FORBIDDEN})
    worker = bed.worker()

    assert _work(worker, attempt("http://a.test/x"))
    assert (_only(bed).outcome, _only(bed).reason) == (Outcome.EXCLUDED, "address_forbidden")
    assert not worker.politeness.robots, "with its network allowed tomorrow, it is asked at once"


def test_a_robots_file_that_leads_to_a_domain_of_another_process_is_asked_for_again_soon_without_blame() -> None:
    away = Answer(301, headers=(("Location", "http://b.test/robots.txt"),))
    bed = make_bed({_ROBOTS: away}, borrow=lambda _domain: LeaseRefusal.HELD)
    worker = bed.worker()

    assert not _work(worker, attempt("http://a.test/x"))
    assert worker.put_off_until == bed.clock.now() + timedelta(seconds=2)
    assert "http://b.test/robots.txt" not in bed.web.urls
    assert not worker.politeness.robots


def test_a_robots_file_that_leads_elsewhere_is_asked_in_the_turn_of_that_domain() -> None:
    away = Answer(301, headers=(("Location", "http://b.test/rules"),))
    rules = Answer(body=b"User-agent: *\nDisallow: /x\nCrawl-delay: 9\n")
    bed = make_bed({_ROBOTS: away, "http://b.test/rules": rules})
    other = Pace(bed.clock, first_at=0.0, lease_until=float("inf"), delay=lambda: 5.0)
    bed = make_bed({_ROBOTS: away, "http://b.test/rules": rules}, borrow=lambda _domain: other)
    worker = bed.worker()

    assert _work(worker, attempt("http://a.test/x"))
    assert _only(bed).reason == "robots:line 2"
    assert other.next_at >= bed.clock.monotonic() + 5.0, "by its own delay, not by ours"
    assert worker.politeness.delay_s == 9.0, "the rules are ours, wherever they were read"


def test_a_crawl_delay_counts_from_the_request_that_brought_it() -> None:
    bed = make_bed({_ROBOTS: Answer(body=b"User-agent: *\nCrawl-delay: 30\nDisallow: /x\n")})
    worker = bed.worker()
    asked_at = bed.clock.monotonic()

    _work(worker, attempt("http://a.test/x"))
    assert worker.pace.next_at >= asked_at + 30.0


def test_a_domain_that_was_taken_over_waits_as_long_as_its_robots_file_asks() -> None:
    first = make_bed({_ROBOTS: Answer(body=b"User-agent: *\nCrawl-delay: 30\nDisallow: /x\n")})
    worker = first.worker()
    _work(worker, attempt("http://a.test/x"))
    known = tuple(worker.politeness.robots.values())

    later = first.worker(robots=known, taken_over=True)
    assert later.pace.next_at >= first.clock.monotonic() + 30.0


def test_redirects_inside_the_domain_are_followed_and_five_are_enough() -> None:
    answers = {f"http://a.test/{n}": Answer(302, headers=(("Location", f"/{n + 1}"),)) for n in range(20)}
    bed = make_bed({**answers, "http://a.test/short": Answer(302, headers=(("Location", "/end"),)),
                    "http://a.test/end": Answer()})  # fmt: skip

    _work(bed.worker(), attempt("http://a.test/short"))
    assert [hop.url for hop in _only(bed).hops] == ["http://a.test/short", "http://a.test/end"]
    bed.pages.clear()
    _work(bed.worker(), attempt("http://a.test/0"))
    assert (_only(bed).outcome, _only(bed).reason) == (Outcome.FAILED, "too_many_redirects")
    assert len(_only(bed).hops) == 6


def test_a_hop_to_an_origin_whose_robots_file_cannot_be_read_leaves_the_attempt_open_and_keeps_the_hop() -> None:
    bed = make_bed({
        "http://a.test/x": Answer(301, headers=(("Location", "https://a.test/x"),)),
        "https://a.test/robots.txt": Answer(503),
    })  # fmt: skip
    worker = bed.worker()

    assert not _work(worker, attempt("http://a.test/x"))
    assert worker.put_off_until is not None
    assert [page.hops[0].url for page in bed.pages] == [
        _ROBOTS, "https://a.test/robots.txt", "http://a.test/x",
    ]  # fmt: skip
    assert {page.attempt for page in bed.pages} == {None}


def test_retry_after_holds_the_whole_domain_and_the_retry_waits_as_long() -> None:
    bed = make_bed({"http://a.test/x": Answer(503, headers=(("Retry-After", "7"),))})
    worker = bed.worker()

    assert _work(worker, attempt("http://a.test/x"))
    assert worker.pace.next_at >= bed.clock.monotonic() + 7.0
    retry_at = _only(bed).retry_at
    assert retry_at is not None
    assert retry_at >= bed.clock.now() + timedelta(seconds=7)
    assert worker.politeness.has_news, "a kill must not make us forget it"
    assert worker.put_off_until is None, "seven seconds are waited for"


def test_a_robots_file_may_ask_for_time_too() -> None:
    bed = make_bed({_ROBOTS: Answer(503, headers=(("Retry-After", "9"),))})
    worker = bed.worker()

    _work(worker, attempt("http://a.test/x"))
    assert worker.pace.next_at >= bed.clock.monotonic() + 9.0


def test_a_domain_that_must_rest_for_long_is_given_back_and_given_up_if_that_is_beyond_the_horizon() -> None:
    bed = make_bed({"http://a.test/x": Answer(429, headers=(("Retry-After", "99999999999"),))})
    worker = bed.worker()

    assert _work(worker, attempt("http://a.test/x"))
    until = worker.put_off_until
    assert until is not None
    assert until >= bed.clock.now() + timedelta(hours=23)
    assert worker.politeness.gives_up(next_try_at=until, since=bed.clock.now())


def test_other_answers_may_ask_for_time_but_not_for_a_day() -> None:
    bed = make_bed({"http://a.test/x": Answer(404, headers=(("Retry-After", "86400"),))})
    worker = bed.worker()

    _work(worker, attempt("http://a.test/x"))
    most = bed.clock.monotonic() + Settings().politeness.max_delay_s
    assert most - 1.0 <= worker.pace.next_at <= most + 1.0
    assert worker.politeness.circuit.unreachable_since is None


@pytest.mark.parametrize(
    ("status", "outcome", "again"),
    [(200, Outcome.SUCCESS, False), (404, Outcome.BLOCKED_4XX, False), (408, Outcome.BLOCKED_4XX, True),
     (425, Outcome.BLOCKED_4XX, True), (429, Outcome.BLOCKED_4XX, True), (500, Outcome.BLOCKED_5XX, True)],
)  # fmt: skip
def test_a_status_decides_outcome_and_retry(status: int, outcome: Outcome, again: bool) -> None:
    bed = make_bed({"http://a.test/x": Answer(status)})

    _work(bed.worker(), attempt("http://a.test/x"))
    assert (_only(bed).outcome, _only(bed).retry_at is not None) == (outcome, again)


def test_the_last_attempt_is_not_retried() -> None:
    bed = make_bed({"http://a.test/x": Answer(500)})

    _work(bed.worker(), attempt("http://a.test/x", number=4))
    assert _only(bed).retry_at is None


def test_a_304_that_nobody_asked_for_is_no_capture() -> None:
    bed = make_bed({"http://a.test/x": Answer(304, body=b"")})

    _work(bed.worker(), attempt("http://a.test/x", etag='"v1"'))
    assert "If-None-Match" not in dict(bed.web.asked[-1].headers), "we have no copy that it could stand for"
    assert (_only(bed).outcome, _only(bed).reason) == (Outcome.FAILED, "not_modified_unasked")


def test_a_body_that_the_disk_does_not_take_leaves_the_attempt_open_and_says_so() -> None:
    bed = make_bed({"http://a.test/x": NoSpace("full")})
    worker = bed.worker()

    assert not _work(worker, attempt("http://a.test/x"))
    assert worker.put_off_until is not None
    assert bed.progress.storage_refused_at == bed.clock.monotonic()
    assert not [page for page in bed.pages if page.attempt is not None]


def test_a_request_that_was_interrupted_counts_as_asked() -> None:
    bed = make_bed({_ROBOTS: asyncio.CancelledError()})
    worker = bed.worker()

    with pytest.raises(asyncio.CancelledError):
        _work(worker, attempt("http://a.test/x"))
    assert worker.pace.next_at >= bed.clock.monotonic() + 1.0


def test_only_an_answer_of_the_domain_itself_says_that_it_is_private() -> None:
    away = Answer(301, headers=(("Location", "http://b.test/rules"),))
    rules = Answer(body=b"User-agent: *\nDisallow: /x\n", ip="10.0.0.1")
    other = Pace(FakeClock(), first_at=0.0, lease_until=float("inf"))
    bed = make_bed(
        {_ROBOTS: away, "http://b.test/rules": rules}, borrow=lambda _domain: other, allow_networks=("10.0.0.1/32",)
    )
    worker = bed.worker()

    _work(worker, attempt("http://a.test/x"))
    assert _only(bed).reason == "robots:line 2"
    assert worker.politeness.delay_s == 1.0, "our own domain is public, wherever its robots.txt leads"


def test_a_host_that_is_away_costs_a_page_none_of_its_last_tries_and_opens_the_circuit() -> None:
    bed = make_bed({"http://a.test/x": [*[FetchProblem.CONNECT] * 40, Answer()]})
    worker, minutes = bed.worker(), 0
    while not _work(worker, attempt("http://a.test/x", number=4)):
        assert worker.put_off_until == bed.clock.now() + timedelta(seconds=60)
        bed.clock.advance(60)
        minutes += 1

    assert minutes == 40
    assert _only(bed).outcome is Outcome.SUCCESS
    assert worker.politeness.circuit.unreachable_since is None


@pytest.mark.parametrize("line", [Answer(500), Answer(502), FetchProblem.TIMEOUT, FetchProblem.DISCONNECTED])
def test_host_that_answers_another_page_keeps_its_circuit_closed(line: Line) -> None:
    bed = make_bed({"http://a.test/good": Answer(), "http://a.test/bad": line})
    worker = bed.worker()

    _work(worker, attempt("http://a.test/good"))
    for number in range(1, 12):
        assert _work(worker, attempt("http://a.test/bad", id=number)), "it is tried, whatever came of those before"

    assert bed.web.urls.count("http://a.test/good") == 3, "once as a page, and twice to see whether the host is up"
    assert worker.politeness.circuit.state == "closed"
    assert worker.politeness.circuit.unreachable_since is None


@pytest.mark.parametrize("line", [Answer(500), FetchProblem.CONNECT])
def test_host_that_fails_its_check_is_left_alone(line: Line) -> None:
    bed = make_bed({"http://a.test/good": [Answer(), line, line, Answer()], "http://a.test/bad": Answer(500)})
    worker = bed.worker()
    _work(worker, attempt("http://a.test/good"))
    for number in range(1, 6):
        assert _work(worker, attempt("http://a.test/bad", id=number))

    assert not _work(worker, attempt("http://a.test/x")), "the page stays open"
    assert worker.put_off_until == bed.clock.now() + timedelta(seconds=60)
    bed.clock.advance(60)
    assert _work(worker, attempt("http://a.test/bad", id=6)), "a minute later one page is tried"
    bed.clock.advance(10)
    assert not _work(worker, attempt("http://a.test/x")), "and the check decides again"
    bed.clock.advance(60)
    assert _work(worker, attempt("http://a.test/bad", id=7))
    bed.clock.advance(10)
    assert _work(worker, attempt("http://a.test/x"))
    assert worker.politeness.circuit.unreachable_since is None


@pytest.mark.parametrize("line", [Answer(500), Answer(429), Answer(503), FetchProblem.TIMEOUT])
def test_host_that_never_answered_well_is_left_alone_after_five(line: Line) -> None:
    bed = make_bed({"http://a.test/bad": line})
    worker = bed.worker()
    for number in range(1, 6):
        assert worker.put_off_until is None
        _work(worker, attempt("http://a.test/bad", id=number))
        bed.clock.advance(20)

    assert worker.put_off_until is not None
    assert worker.politeness.circuit.state == "open"


def test_host_check_leaves_out_what_robots_txt_forbids_now() -> None:
    rules = Answer(body=b"User-agent: *\nDisallow: /good\n")
    bed = make_bed({_ROBOTS: [Answer(404), rules], "http://a.test/bad": Answer(500)})
    _work(bed.worker(), attempt("http://a.test/good"))
    bed.clock.advance(2 * 86_400)
    worker = bed.worker()
    for number in range(1, 6):
        _work(worker, attempt("http://a.test/bad", id=number))

    assert _work(worker, attempt("http://a.test/x")), "the rule is no outage: the page itself is asked"
    assert bed.web.urls.count("http://a.test/good") == 1
    assert worker.politeness.circuit.state == "closed"


def test_host_check_asks_the_page_when_the_last_answer_is_forgotten() -> None:
    bed = make_bed({"http://a.test/good": Answer(), "http://a.test/bad": Answer(500)})
    worker = bed.worker()
    _work(worker, attempt("http://a.test/good"))
    for number in range(1, 6):
        _work(worker, attempt("http://a.test/bad", id=number))
    assert worker.politeness.in_doubt
    bed.client.answered.clear()  # ten thousand other hosts have answered since

    assert _work(worker, attempt("http://a.test/bad", id=6))
    assert (worker.politeness.in_doubt, worker.put_off_until is not None) == (False, True), "that one decides"


def test_a_page_whose_answer_does_not_come_uses_up_its_tries() -> None:
    bed = make_bed({"http://a.test/x": FetchProblem.TIMEOUT})

    assert _work(bed.worker(), attempt("http://a.test/x", number=4))
    assert (_only(bed).outcome, _only(bed).retry_at) == (Outcome.TIMEOUT, None)


def test_an_attempt_begins_with_its_request_and_ends_with_its_answer() -> None:
    hop = Answer(302, headers=(("Location", "/y"),), took_s=0.5)
    bed = make_bed({"http://a.test/x": hop, "http://a.test/y": Answer(took_s=0.25)})
    asked = bed.web.fetch
    at: list[datetime] = []

    async def fetch(request: FetchRequest) -> Fetched | FetchFailed:
        bed.clock.advance(30.0)  # what the turn, robots.txt and a name cost
        at.append(bed.clock.now())
        return await asked(request)

    bed.connect(Clocked(fetch))
    assert _work(bed.worker(), attempt("http://a.test/x"))
    page = _only(bed)
    assert len(at) == 3
    assert page.started_at == at[-1]
    assert page.answered_at == at[-1] + timedelta(seconds=0.25)


@pytest.mark.parametrize("why", [Truncated.DISCONNECT, Truncated.TIME])
def test_a_body_that_broke_off_is_tried_again_like_a_timeout_and_fails_when_it_stays_so(why: Truncated) -> None:
    bed = make_bed({"http://a.test/x": Answer(body=b"<p>46 of 5,000 bytes", truncated=why)})
    worker = bed.worker()
    retries = bed.settings.politeness.retries

    _work(worker, attempt("http://a.test/x"))
    _work(worker, attempt("http://a.test/x", number=retries + 1))

    first, last = (page for page in bed.pages if page.attempt is not None)
    assert (first.outcome, first.reason, first.retry_at is not None) == (Outcome.FAILED, "truncated", True)
    assert (last.outcome, last.reason, last.retry_at) == (Outcome.FAILED, "truncated", None)
    assert last.hops[0].truncated is why, "what came of it is handed over to be stored"
    assert worker.politeness.circuit.failures == 0, "the server is there"


def test_a_body_that_our_own_limit_cut_is_a_success() -> None:
    bed = make_bed({"http://a.test/x": Answer(truncated=Truncated.LENGTH)})

    _work(bed.worker(), attempt("http://a.test/x"))
    assert (_only(bed).outcome, _only(bed).retry_at) == (Outcome.SUCCESS, None)


def test_where_a_redirect_leads_is_followed_though_its_body_broke_off() -> None:
    away = Answer(302, headers=(("Location", "/y"),), truncated=Truncated.DISCONNECT)
    bed = make_bed({"http://a.test/x": away, "http://a.test/y": Answer()})

    _work(bed.worker(), attempt("http://a.test/x"))
    assert (_only(bed).outcome, _only(bed).reason) == (Outcome.SUCCESS, "ok")


def test_an_error_page_that_broke_off_is_the_error_that_it_says() -> None:
    bed = make_bed({"http://a.test/x": Answer(404, truncated=Truncated.DISCONNECT)})

    _work(bed.worker(), attempt("http://a.test/x"))
    assert (_only(bed).outcome, _only(bed).reason) == (Outcome.BLOCKED_4XX, "http_404")


def test_a_chain_of_redirects_over_domains_that_is_too_long_is_a_failure_of_its_own() -> None:
    away = Answer(302, headers=(("Location", "http://b.test/"),))
    bed = make_bed({"http://a.test/x": away}, scope="any")
    worker = bed.worker()

    _work(worker, attempt("http://a.test/x", hops=4))
    _work(worker, attempt("http://a.test/x", hops=5))

    fifth, sixth = (page for page in bed.pages if page.attempt is not None)
    assert (fifth.outcome, fifth.reason) == (Outcome.SUCCESS, "redirected")
    assert (sixth.outcome, sixth.reason, sixth.redirected_to) == (
        Outcome.FAILED,
        "too_many_redirects",
        "http://b.test/",
    )
    assert sixth.retry_at is None


@pytest.mark.parametrize("headers", [(), (("Location", ""),), (("Location", "  "),)])
def test_a_redirect_that_leads_nowhere_is_no_success(headers: tuple[tuple[str, str], ...]) -> None:
    bed = make_bed({"http://a.test/x": Answer(301, headers=headers)})

    assert _work(bed.worker(), attempt("http://a.test/x"))
    assert (_only(bed).outcome, _only(bed).reason) == (Outcome.FAILED, "redirect_without_location")
    assert len(_only(bed).hops) == 1, "what was answered is kept"


@pytest.mark.parametrize(
    ("told", "reason"),
    [("bytes 0-9/1000", "partial_unasked"), (None, "partial_unasked"), ("bytes 0-9/*", "partial_unasked"),
     ("bytes 0-16/17", "ok")],
)  # fmt: skip
def test_a_part_that_nobody_asked_for_is_no_page(told: str | None, reason: str) -> None:
    headers = (("Content-Range", told),) if told is not None else ()
    bed = make_bed({"http://a.test/x": Answer(206, headers=headers)})

    assert _work(bed.worker(), attempt("http://a.test/x"))
    assert _only(bed).reason == reason


def test_no_request_leaves_after_the_lease_however_long_that_lasts() -> None:
    bed = make_bed({"http://a.test/x": Answer()})
    worker = bed.worker()
    worker.pace.lease_until = bed.clock.monotonic() + 1000.0

    assert asyncio.run(worker.work(attempt("http://a.test/x")))
    assert [request.before_send() for request in bed.web.asked if request.before_send] == [1000.0, 1000.0]


def _broken_line(request: FetchRequest, bed: Bed) -> FetchFailed:
    return FetchFailed(url=request.url, problem=FetchProblem.DISCONNECTED, message="", started_at=bed.clock.now(),
                       took_s=2.0, sent_s=0.0, kept_connection=not request.fresh_connection)  # fmt: skip


@pytest.mark.parametrize("broken", [_ROBOTS, "http://a.test/x"])
def test_a_kept_connection_that_broke_is_replaced_and_costs_the_page_no_try(broken: str) -> None:
    bed = make_bed({"http://a.test/x": Answer()})
    sent: list[tuple[str, bool]] = []

    async def fetch(request: FetchRequest) -> Fetched | FetchFailed:
        bed.clock.advance(2.0)  # the next turn has come when the answer has
        sent.append((request.url, request.fresh_connection))
        if request.url == broken and not request.fresh_connection:
            return _broken_line(request, bed)
        return await bed.web.fetch(request)

    bed.connect(Clocked(fetch))

    assert _work(bed.worker(), attempt("http://a.test/x"))
    assert [fresh for url, fresh in sent if url == broken] == [False, True]
    assert (_only(bed).outcome, _only(bed).reason) == (Outcome.SUCCESS, "ok")


def test_a_line_that_breaks_again_ends_the_try() -> None:
    bed = make_bed({})
    sent: list[bool] = []

    async def fetch(request: FetchRequest) -> Fetched | FetchFailed:
        bed.clock.advance(2.0)
        if request.url == _ROBOTS:
            return await bed.web.fetch(request)
        sent.append(request.fresh_connection)
        return replace(_broken_line(request, bed), kept_connection=True)

    bed.connect(Clocked(fetch))

    assert _work(bed.worker(), attempt("http://a.test/x"))
    assert sent == [False, True]
    assert _only(bed).reason == "disconnected"


def test_an_operators_change_ends_the_work_on_a_domain_once_and_the_next_delay_is_the_new_one() -> None:
    bed = make_bed({"http://a.test/x": Answer()})
    worker = bed.worker(changed_at=bed.clock.now())
    assert _work(worker, attempt("http://a.test/x"))
    worker.refill([attempt("http://a.test/y")], limit=50)
    known = DomainChange(1, bed.clock.now(), 9.0)
    assert not worker.hear(known), "its lease knew of it"

    bed.clock.advance(0.1)
    change = DomainChange(1, bed.clock.now(), 30.0)
    assert worker.hear(change)
    assert not worker.hear(change)

    assert (worker.dry, len(worker.queue)) == (True, 0)
    rest = worker.update().next_allowed_at - bed.clock.now()
    assert 29.5 <= rest.total_seconds() <= 30.1, "the next holder waits for the new delay"


def test_no_change_makes_a_domain_faster_than_its_plan() -> None:
    bed = make_bed({})
    worker = bed.worker()
    before = worker.politeness.delay_s

    worker.hear(DomainChange(1, bed.clock.now(), 0.0))

    assert worker.politeness.delay_s == before


@pytest.mark.parametrize("end", ["give_back", "make_way"])
def test_pages_that_come_after_a_worker_was_told_to_leave_are_not_taken(end: str) -> None:
    bed = make_bed({})
    worker = bed.worker(attempts=(attempt("http://a.test/1"),))
    getattr(worker, end)()

    worker.refill([attempt("http://a.test/2", id=2)], limit=1)

    assert (list(worker.queue), worker.holding) == ([], set())
