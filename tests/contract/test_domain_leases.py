"""Commands that ask a site for something hold its domain meanwhile, as a crawl does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast.config import Settings
from holdfast.crawl.recovery import recover
from holdfast.crawl.requests import (
    DocumentLimits,
    DomainForbidden,
    hold_domains,
    open_leases,
    open_polite_client,
)
from holdfast.errors import Unavailable
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.types import DomainUpdate, RobotsAnswer, RobotsRecord
from holdfast.urls import parse
from holdfast.wiring import Runtime, open_runtime
from tests import patience
from tests.site import Site

_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, database_url=None if database_url.startswith("sqlite") else database_url)


@pytest.fixture
def crawl(settings: Settings) -> Iterator[Runtime]:
    """What a crawl beside us stands on."""
    with open_runtime(settings) as runtime:
        yield runtime


def _owner(runtime: Runtime) -> int:
    return OwnerProcess(
        runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind="process", execution_id=None
    ).id


def test_a_domain_that_a_crawl_holds_is_not_asked(crawl: Runtime, settings: Settings) -> None:
    owner = _owner(crawl)
    lease = crawl.frontier.lease_named(owner, "a.example")
    assert lease is not None

    slept: list[float] = []
    with open_leases(settings, delay_s=1.0) as leases:
        assert leases.try_take("a.example") is None
        with pytest.raises(Unavailable, match="is being crawled"):
            leases.take("a.example", patience_s=5.0, sleep=slept.append)
        assert sum(slept) == 5.0

        update = DomainUpdate(domain_id=lease.domain_id, token=lease.token, circuit=lease.circuit,
                              next_allowed_at=crawl.clock.now() + timedelta(seconds=9))  # fmt: skip
        crawl.frontier.release(0, owner, [update])
        wait_s = leases.try_take("a.example")
        assert wait_s is not None
        assert 9.0 - patience.allowed(4.0) < wait_s <= 9.0, "the delay of the one before is kept"


def test_a_crawl_does_not_ask_what_a_command_holds_and_waits_its_delay_after_it(
    crawl: Runtime, settings: Settings
) -> None:
    owner = _owner(crawl)
    with hold_domains(settings, ["b.example", "a.example", "a.example"], delay_s=25.0) as leases:
        assert crawl.frontier.lease_named(owner, "a.example") is None
        assert crawl.frontier.lease_named(owner, "b.example") is None
        assert leases.renew()

    lease = crawl.frontier.lease_named(owner, "a.example")
    assert lease is not None
    assert not lease.taken_over, "it was given back"
    assert lease.next_allowed_at > crawl.clock.now() + timedelta(seconds=15)


def test_a_command_that_lost_a_domain_is_told_so(crawl: Runtime, settings: Settings) -> None:
    with hold_domains(settings, ["a.example"], delay_s=0.0) as leases:
        crawl.frontier.free([row[0] for row in _rows(crawl, "SELECT id FROM owners WHERE kind = 'visitor'")])
        assert crawl.frontier.lease_named(_owner(crawl), "a.example") is not None

        assert not leases.renew()


def _rows(runtime: Runtime, statement: str) -> list[tuple[int, ...]]:
    with runtime.raw_db.read() as tx:
        return [tuple(row) for row in tx.execute(statement)]


def test_robots_of_a_host_that_is_being_crawled_are_those_that_the_crawl_has_read(
    crawl: Runtime, settings: Settings, site: Site
) -> None:
    url = parse(site.url(0, "/a/p1.html"))
    owner = _owner(crawl)
    lease = crawl.frontier.lease_named(owner, url.domain)
    assert lease is not None
    now = crawl.clock.now()
    known = RobotsRecord(origin=url.origin, answer=RobotsAnswer.RULES, fetched_at=now, checked_at=now, status=200,
                        body=b"User-agent: *\nDisallow: /a/\n")  # fmt: skip
    update = DomainUpdate(domain_id=lease.domain_id, token=lease.token, circuit=lease.circuit, next_allowed_at=now,
                          robots=(known,))  # fmt: skip
    crawl.frontier.release(0, owner, [update])
    assert crawl.frontier.lease_named(owner, url.domain) is not None

    async def ask() -> RobotsRecord:
        async with open_polite_client(settings, agent="t", networks=_NETWORKS, delay_s=0.0) as solo:
            return await solo.robots(url)

    assert asyncio.run(ask()) == known
    assert site.log() == [], "nothing was asked beside the crawl"


def test_a_command_heeds_retry_after_and_leaves_it_to_those_who_come_next(
    crawl: Runtime, settings: Settings, site: Site
) -> None:
    url = parse(site.url(0, "/status/503?after=600"))

    async def ask() -> None:
        async with open_polite_client(settings, agent="t", networks=_NETWORKS, delay_s=0.0) as solo:
            await solo.get(url, DocumentLimits(request_s=10.0))
            with pytest.raises(Unavailable, match="is rate-limited"):
                await solo.get(url, DocumentLimits(request_s=10.0))

    asyncio.run(ask())
    assert len(site.log()) == 1
    assert crawl.frontier.lease_named(_owner(crawl), url.domain) is None
    assert crawl.frontier.is_barred(url.domain)


def test_a_command_does_not_shorten_a_rest_that_it_found(crawl: Runtime, settings: Settings) -> None:
    owner, until = _owner(crawl), crawl.clock.now() + timedelta(seconds=25)
    lease = crawl.frontier.lease_named(owner, "a.example")
    assert lease is not None
    update = DomainUpdate(domain_id=lease.domain_id, token=lease.token, circuit=lease.circuit, next_allowed_at=until)
    crawl.frontier.release(0, owner, [update])

    with open_leases(settings, delay_s=1.0) as leases:
        assert leases.try_take("a.example") is not None

    again = crawl.frontier.lease_named(owner, "a.example")
    assert again is not None
    assert abs(again.next_allowed_at - until) < timedelta(seconds=1)


def test_a_command_that_takes_a_domain_over_waits_for_the_delay_that_its_robots_file_asks_for(
    crawl: Runtime, settings: Settings
) -> None:
    dead, now = _owner(crawl), crawl.clock.now()
    lease = crawl.frontier.lease_named(dead, "a.example")
    assert lease is not None
    known = RobotsRecord(origin="https://a.example", answer=RobotsAnswer.RULES, fetched_at=now, checked_at=now,
                        status=200, body=b"User-agent: *\nCrawl-delay: 20\n")  # fmt: skip
    update = DomainUpdate(domain_id=lease.domain_id, token=lease.token, circuit=lease.circuit, next_allowed_at=now,
                          robots=(known,))  # fmt: skip
    crawl.frontier.release(0, dead, [update])
    assert crawl.frontier.lease_named(dead, "a.example") is not None
    crawl.frontier.free([dead])

    with open_leases(settings, delay_s=1.0) as leases:
        assert leases.try_take("a.example") == 20.0


def test_without_a_database_nothing_is_made(tmp_path: Path, site: Site) -> None:
    home = tmp_path / "home"

    async def ask() -> RobotsRecord:
        async with open_polite_client(Settings(home=home), agent="t", networks=_NETWORKS, delay_s=0.0) as solo:
            return await solo.robots(parse(site.url(0, "/")))

    assert asyncio.run(ask()).answer is not RobotsAnswer.UNREACHABLE
    assert not home.exists()


def _forbid(runtime: Runtime, domain: str) -> None:
    owner = _owner(runtime)
    assert runtime.frontier.lease_named(owner, domain) is not None
    runtime.frontier.free([owner])
    with runtime.raw_db.write() as tx:
        tx.execute("UPDATE domains SET is_allowed = false WHERE name = ?", (domain,))


def test_a_forbidden_domain_is_named_at_once_and_not_waited_for(crawl: Runtime, settings: Settings) -> None:
    _forbid(crawl, "a.example")

    slept: list[float] = []
    with (
        pytest.raises(DomainForbidden, match=r"a\.example is forbidden"),
        hold_domains(settings, ["a.example"], delay_s=1.0, sleep=slept.append),
    ):
        raise AssertionError("it was held")
    assert slept == []


def test_twins_are_held_unless_they_are_forbidden_and_waited_for_if_a_crawl_has_them(
    crawl: Runtime, settings: Settings
) -> None:
    _forbid(crawl, "www.a.example")
    owner = _owner(crawl)
    twins = ["www.a.example", "www.b.example"]
    with hold_domains(settings, ["a.example", "b.example"], twins=twins, delay_s=0.0, sleep=lambda _s: None):
        assert crawl.frontier.lease_named(owner, "www.b.example") is None

    assert crawl.frontier.lease_named(owner, "www.b.example") is not None
    with (
        pytest.raises(Unavailable, match=r"www\.b\.example is being crawled"),
        hold_domains(settings, ["b.example"], twins=twins, delay_s=0.0, patience_s=1.0, sleep=lambda _s: None),
    ):
        raise AssertionError("it was held")


def test_domains_that_are_held_for_long_are_not_freed_by_a_start_on_another_machine(
    crawl: Runtime, settings: Settings
) -> None:
    with open_leases(settings, delay_s=1.0) as leases:
        leases.take("a.example", sleep=lambda _: None)
        with crawl.raw_db.write() as tx:  # begun an hour ago, where its run file cannot be seen from here
            tx.execute(
                "UPDATE owners SET host = 'far', run_file = '/far/x.run', heartbeat_at = heartbeat_at - 3600000000"
                " WHERE kind = 'visitor'"
            )

        assert leases.renew()
        recover(crawl)

        assert leases.renew()


def test_command_keeps_operator_delay_and_penalty(crawl: Runtime, settings: Settings, site: Site) -> None:
    owner, url = _owner(crawl), parse(site.url(0, "/page"))
    lease = crawl.frontier.lease_named(owner, url.domain)
    assert lease is not None
    circuit, now = replace(lease.circuit, penalty=4.0), crawl.clock.now()
    update = DomainUpdate(domain_id=lease.domain_id, token=lease.token, circuit=circuit, next_allowed_at=now)
    crawl.frontier.release(0, owner, [update])
    with crawl.raw_db.write() as tx:
        tx.execute("UPDATE domains SET delay_s = 30.0 WHERE id = ?", [lease.domain_id])

    async def main() -> None:
        async with open_polite_client(settings, agent="t", networks=_NETWORKS, delay_s=1.0) as solo:
            await solo.get(url, DocumentLimits(request_s=10.0))
            with pytest.raises(Unavailable, match="rate-limited"):
                await solo.get(url, DocumentLimits(request_s=10.0, patience_s=100.0))

    asyncio.run(main())
    after = crawl.frontier.lease_named(owner, url.domain)
    assert after is None, "the domain rests"
    assert len(site.log()) == 1
