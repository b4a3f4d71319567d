"""The robots files of a domain: which answer is in force when a re-read fails, is busy, or cannot be read."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable

import pytest

from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.politeness import Pace
from holdfast.crawl.robots_gate import MEMORY_BYTES
from holdfast.types import FetchProblem, LeaseRefusal, RobotsAnswer, RobotsRecord
from tests.unit.crawl.bed import Answer, Bed, Line, attempt, make_bed

_ROBOTS, _WWW, _PAGE = "http://a.test/robots.txt", "http://www.a.test/robots.txt", "http://a.test/x"
_RULES = b"User-agent: *\nDisallow: /private\n"


def _work(worker: DomainWorker, url: str = _PAGE) -> bool:
    return asyncio.run(worker.work(attempt(url)))


def _reasons(bed: Bed) -> list[str]:
    return [page.reason for page in bed.pages if page.attempt is not None]


@pytest.mark.parametrize("first", [Answer(404), Answer(body=_RULES)])
@pytest.mark.parametrize("later", [Answer(500), FetchProblem.TIMEOUT, FetchProblem.CONNECT])
def test_the_last_answer_stays_in_force_for_a_day_of_failed_re_reads(first: Answer, later: Line) -> None:
    bed = make_bed({_ROBOTS: [first, later], _PAGE: Answer()})
    worker = bed.worker()
    assert _work(worker)

    for hours in (1, 5, 12, 5.5):
        bed.clock.advance(hours * 3600)
        assert _work(worker), "the page is asked for"
    assert worker.politeness.circuit.unreachable_since is None
    assert _reasons(bed) == ["ok"] * 5
    assert bed.web.urls.count(_ROBOTS) == 5, "each time it was tried anew"

    bed.clock.advance(3600)
    assert not _work(worker), "after a day nothing is known any more"
    assert worker.politeness.circuit.unreachable_since == bed.clock.now()


def test_a_robots_file_is_read_once_more_when_an_operator_asks_for_it() -> None:
    bed = make_bed({_ROBOTS: [Answer(body=_RULES), Answer(body=b"User-agent: *\nDisallow: /\n")], _PAGE: Answer()})
    first = bed.worker()
    assert _work(first)
    bed.clock.advance(5)

    known = tuple(first.politeness.robots.values())
    later = bed.worker(robots=known, robots_after=bed.clock.now())
    bed.clock.advance(1)
    assert _work(later)
    assert _work(later)

    assert bed.web.urls.count(_ROBOTS) == 2, "once, not before each page"
    assert _reasons(bed)[1:] == ["robots:line 2"] * 2


def test_half_an_hour_of_failures_of_the_first_read_does_not_close_the_domain_before_its_time() -> None:
    bed = make_bed({_ROBOTS: Answer(500)})
    worker, began = bed.worker(), bed.clock.now()
    given_up_after = None
    while given_up_after is None:
        assert not _work(worker)
        assert worker.put_off_until is not None
        if worker.politeness.gives_up(next_try_at=worker.put_off_until, since=began):
            given_up_after = (bed.clock.now() - began).total_seconds()
        bed.clock.advance((worker.put_off_until - bed.clock.now()).total_seconds())

    assert 1800 <= given_up_after < 1860
    assert bed.web.urls.count(_ROBOTS) == 35


def _led_to_www(known: RobotsAnswer | None, body: bytes = b"", refusal: LeaseRefusal = LeaseRefusal.HELD) -> Bed:
    led = Answer(301, headers=(("Location", _WWW),))
    bed = make_bed({_ROBOTS: led, _PAGE: Answer()}, borrow=lambda _domain: refusal)
    if known is not None:
        now = bed.clock.now()
        bed.recalled["http://www.a.test"] = RobotsRecord(
            origin="http://www.a.test", answer=known, fetched_at=now, checked_at=now, status=200, body=body
        )
    return bed


def test_a_robots_file_on_a_host_of_another_process_is_known_from_what_that_one_has_read() -> None:
    bed = _led_to_www(RobotsAnswer.RULES, _RULES)
    worker = bed.worker()

    assert _work(worker)
    assert _work(worker, "http://a.test/private")
    assert _reasons(bed) == ["ok", "robots:line 2"]
    assert _WWW not in bed.web.urls


@pytest.mark.parametrize("known", [None, RobotsAnswer.UNREACHABLE])
def test_a_host_that_another_process_holds_is_busy_and_not_unreachable(known: RobotsAnswer | None) -> None:
    bed = _led_to_www(known)
    worker = bed.worker()

    for _ in range(1000):
        assert not _work(worker)
        assert worker.put_off_until is not None
        assert not worker.politeness.gives_up(next_try_at=worker.put_off_until, since=bed.clock.now())
        bed.clock.advance(2)
    assert worker.politeness.circuit.unreachable_since is None


def _looks_within(bed: Bed, seconds: float) -> int:
    """Work on a page whenever that is due, for so long; return how often robots.txt was asked for."""
    until = bed.clock.monotonic() + seconds
    while bed.clock.monotonic() < until:
        worker = bed.worker()
        assert not _work(worker)
        assert worker.put_off_until is not None
        bed.clock.advance((worker.put_off_until - bed.clock.now()).total_seconds())
    return bed.web.urls.count(_ROBOTS)


def test_a_robots_file_on_a_host_that_stays_busy_is_looked_at_ever_more_seldom() -> None:
    assert _looks_within(_led_to_www(None), 3600) <= 65


def test_a_robots_file_on_a_host_that_may_not_be_asked_is_unreachable() -> None:
    bed = _led_to_www(None, refusal=LeaseRefusal.BARRED)
    worker = bed.worker()

    assert not _work(worker)
    assert worker.politeness.robots["http://a.test"].answer is RobotsAnswer.UNREACHABLE
    assert worker.politeness.circuit.unreachable_since == bed.clock.now(), "the domain is given up some time"


def test_rules_of_a_host_that_rests_are_known_from_what_was_read_there() -> None:
    bed = _led_to_www(RobotsAnswer.RULES, _RULES, refusal=LeaseRefusal.BARRED)

    assert _work(bed.worker())
    assert _reasons(bed) == ["ok"]


def test_rules_that_were_read_stay_in_force_while_their_host_is_busy() -> None:
    paces: list[Pace] = []

    def lend(_domain: str) -> Pace | LeaseRefusal:
        return paces.pop() if paces else LeaseRefusal.HELD

    led = Answer(301, headers=(("Location", _WWW),))
    bed = make_bed({_ROBOTS: led, _WWW: Answer(body=_RULES), _PAGE: Answer()}, borrow=lend)
    paces.append(Pace(bed.clock, first_at=0.0, lease_until=float("inf")))
    worker = bed.worker()
    assert _work(worker)

    bed.clock.advance(23 * 3600)
    assert _work(worker)
    assert _work(worker, "http://a.test/private")
    assert _reasons(bed) == ["ok", "ok", "robots:line 2"]
    assert bed.web.urls.count(_ROBOTS) == 2, "not before every page"
    bed.clock.advance(60)
    assert _work(worker)
    assert bed.web.urls.count(_ROBOTS) == 3


_GZIP = ("Content-Encoding", "gzip")
_PACKED = gzip.compress(b"User-agent: *\nDisallow: /private\n" * 200)


def _unreadable() -> dict[str, Answer]:
    corrupt = bytearray(_PACKED)
    corrupt[len(corrupt) // 2] ^= 0xFF
    return {
        "corrupt gzip": Answer(body=bytes(corrupt), headers=(_GZIP,)),
        "gzip cut in half": Answer(body=_PACKED[: len(_PACKED) // 2], headers=(_GZIP,)),
        "not gzip at all": Answer(body=_RULES, headers=(_GZIP,)),
        "three codings": Answer(body=_PACKED, headers=(("Content-Encoding", "gzip, gzip, gzip"),)),
        "an unknown coding": Answer(body=_PACKED, headers=(("Content-Encoding", "lzma"),)),
    }


@pytest.mark.parametrize("answer", _unreadable().values(), ids=_unreadable().keys())
def test_a_robots_file_that_cannot_be_read_forbids_as_a_server_error_does(answer: Answer) -> None:
    bed = make_bed({_ROBOTS: answer, _PAGE: Answer()})
    worker = bed.worker()

    assert not _work(worker)
    assert bed.web.urls == [_ROBOTS]
    assert worker.politeness.robots["http://a.test"].answer is RobotsAnswer.UNREACHABLE


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_robots_file_that_is_longer_than_we_read_is_obeyed_as_far_as_it_goes(pack: Callable[[bytes], bytes]) -> None:
    body = _RULES + b"# nothing\n" * 200_000
    headers = () if pack is bytes else (_GZIP,)
    bed = make_bed({_ROBOTS: Answer(body=pack(body), headers=headers), _PAGE: Answer()})
    worker = bed.worker()

    assert _work(worker)
    assert _work(worker, "http://a.test/private")
    assert _reasons(bed) == ["ok", "robots:line 2"]


def test_a_page_of_errors_in_an_odd_coding_is_still_no_robots_file() -> None:
    bed = make_bed({_ROBOTS: Answer(404, body=b"x", headers=(("Content-Encoding", "lzma"),)), _PAGE: Answer()})

    assert _work(bed.worker())
    assert _reasons(bed) == ["ok"]


def test_a_worker_that_visits_a_domain_takes_no_sitemaps_from_the_one_that_crawls_it() -> None:
    bed = make_bed({}, seeds=("http://a.test/", "http://www.a.test/"))
    now, body = bed.clock.now(), b"Sitemap: http://www.a.test/map.xml\n"
    state = RobotsRecord(
        origin="http://www.a.test", answer=RobotsAnswer.RULES, fetched_at=now, checked_at=now, status=200, body=body
    )
    bed.worker("www.a.test", robots=(state,))  # made for one request, and given back

    worker = bed.worker("www.a.test", robots=(state,))

    assert [one.url for one in worker.gate.take_sitemaps()] == ["http://www.a.test/map.xml"]
    assert list(bed.worker("www.a.test", robots=(state,)).gate.take_sitemaps()) == [], "once per process"
    assert bed.robots.offered.maxsize == 100_000


def test_parsed_robots_files_take_no_more_memory_than_they_may_however_many_hosts_send_large_ones() -> None:
    rules = b"User-agent: *\n" + b"".join(b"Disallow: /%x*\n" % number for number in range(20_000))
    hosts = [f"http://h{number}.test" for number in range(12)]
    bed = make_bed(
        {f"{host}/robots.txt": Answer(body=rules) for host in hosts} | {f"{host}/": Answer() for host in hosts}
    )
    for host in hosts:
        assert _work(bed.worker(host.removeprefix("http://")), f"{host}/")

    files = bed.robots.parsed
    assert 0 < len(files) < len(hosts)
    assert sum(file.memory_bytes() for file in files.values()) <= MEMORY_BYTES
    assert _work(bed.worker("h0.test"), "http://h0.test/1f")
    assert _reasons(bed)[-1] == "robots:line 33", "what was forgotten is parsed again"
