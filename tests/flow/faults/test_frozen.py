"""F13, F15, F33: owners that are dead, frozen, or cut off from the database while the web still answers them."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastwarc.warc import ArchiveIterator

from holdfast.clock import SystemClock, to_micros
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.storage.roots import key_of
from holdfast.warc import queries as files
from holdfast.warc.manifest import add_to_manifest
from holdfast.warc.writer import WarcWriter
from tests import patience
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import arm, disarmed, grown, lost, rows, seeds, settled, settled_twice, total, until
from tests.flow.faults.proxy import Mode, Proxy
from tests.flow.faults.team import Team
from tests.site import Site, judge
from tests.site.log import Entry

_LEASE_S = patience.period(1.0)
_SHORT = {"HOLDFAST_TIMINGS_LEASE_SECONDS": str(_LEASE_S), "HOLDFAST_TIMINGS_LEASE_RENEW_S": str(_LEASE_S / 4)}
_DELAY_S = 0.1
_AWAKE_S = 0.3
_NAMES = ("one", "two")


def _by(log: list[Entry], name: str) -> list[Entry]:
    return [entry for entry in log if (entry.user_agent or "").startswith(name)]


def _wait(seconds: float) -> None:
    """Let time pass that is itself the fault: a freeze, a cut."""
    time.sleep(seconds)


def _freeze(crawler: Crawler, site: Site, *, times: int, folder: Path) -> None:
    """Freeze one of two processes again and again for longer than its lease, each time with a result in its hands."""
    crawler.environment.update(_SHORT)
    team = Team(crawler, seeds(site), delay_s=_DELAY_S)
    members = {team.start(name, HOLDFAST_FAILPOINT=f"before_sync:stop:0:{arm(folder)}").pid: name for name in _NAMES}
    late: list[Entry] = []
    for _ in range(times):
        grown(site, by=20)
        arm(folder, "before_sync")
        sleeper = until(lambda: next(filter(_is_stopped, members), 0), within_s=30, what="a freeze")
        _wait(1.5 * _LEASE_S)
        others = rows(crawler, f"SELECT name FROM domains WHERE lease_owner <> {_owner(crawler, sleeper)}")
        woken_at = time.monotonic()
        os.kill(sleeper, signal.SIGCONT)
        _wait(_AWAKE_S)
        late += [
            entry for entry in _by(site.log(), members[sleeper])
            if woken_at < entry.start < woken_at + _AWAKE_S and (f"{entry.host}:{entry.port}",) in others
        ]  # fmt: skip
    team.finish()
    log = site.settled()
    refused = total(crawler, "refused")
    print(f"{times} freezes: {len(late)} late requests, {refused} results refused, {len(log)} requests")

    assert lost(crawler, site) == []
    # Sent from what was under way when it froze: more of that the slower answers come, never a second one for a host.
    assert len(late) <= patience.allowed(times)
    assert max(Counter(entry.host for entry in late).values(), default=0) <= times
    assert refused >= times
    assert settled_twice(crawler) == 0
    assert judge(log, delay_s=_DELAY_S) == []
    assert crawler.faults() == []


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("T")


def _owner(crawler: Crawler, pid: int) -> int:
    return int(rows(crawler, f"SELECT id FROM owners WHERE pid = {pid} AND kind = 'process'")[0][0])


def test_a_frozen_process_loses_its_domains_and_its_late_results_are_refused(crawler: Crawler, tmp_path: Path) -> None:
    with Site.plain(hosts=8, pages=30) as site:
        _freeze(crawler, site, times=2, folder=tmp_path / "tokens")


def test_a_page_whose_result_was_refused_brings_its_links_when_the_same_process_reads_it_again(
    crawler: Crawler, tmp_path: Path
) -> None:
    tokens = arm(tmp_path / "tokens", "before_sync")
    with Site.plain(hosts=4, pages=12) as site:
        team = Team(crawler, seeds(site), delay_s=0.05, size=1)
        pid = team.start("one", HOLDFAST_FAILPOINT=f"before_sync:stop:1:{tokens}").pid
        until(lambda: _is_stopped(pid), within_s=30, what="a freeze")
        freed = team.free(_owner(crawler, pid))
        os.kill(pid, signal.SIGCONT)
        team.finish()
        missing = lost(crawler, site)

    assert freed == 4
    assert total(crawler, "refused") >= 1
    assert missing == []
    assert crawler.faults() == []


def test_a_page_that_is_read_again_before_its_first_result_is_refused_brings_its_links(
    crawler: Crawler, tmp_path: Path
) -> None:
    reading, settling = arm(tmp_path / "reading", "parse"), arm(tmp_path / "settling", "before_sync")
    held = f"parse:hold:0:{reading},before_sync:hold:0:{settling}"
    with Site.plain(hosts=1, pages=2) as site:
        team = Team(crawler, seeds(site), delay_s=0.05, size=1)
        pid = team.start("one", HOLDFAST_FAILPOINT=held, HOLDFAST_TIMINGS_CRAWL_PARSE_S="120").pid
        until(lambda: disarmed(reading), within_s=30, what="the front page is being read")
        lease = _lease(crawler, site)
        team.free(_owner(crawler, pid))
        until(lambda: _lease(crawler, site)[0] >= lease[0] + 2, within_s=30, what="the same process has it again")
        _wait(1.0)  # more than it needs to ask again, if it means to
        (reading / "go").touch()
        until(lambda: disarmed(settling), within_s=30, what="the first result is about to be refused")
        _wait(0.5)  # what was asked for again is read
        (settling / "go").touch()
        team.finish()
        missing = lost(crawler, site)

    assert total(crawler, "refused") >= 1
    assert missing == []
    assert crawler.faults() == []


def test_a_page_that_was_being_read_when_its_process_was_stopped_is_not_given_up(
    crawler: Crawler, tmp_path: Path
) -> None:
    reading, deadline_s = arm(tmp_path / "reading", "parse"), patience.period(2.0)
    crawler.environment.update(
        {"HOLDFAST_TIMINGS_LEASE_SECONDS": "60", "HOLDFAST_TIMINGS_CRAWL_PARSE_S": str(deadline_s)}
    )
    with Site.plain(hosts=1, pages=2) as site:
        team = Team(crawler, seeds(site), delay_s=0.05, size=1)
        pid = team.start("one", HOLDFAST_FAILPOINT=f"parse:hold:0:{reading}").pid
        until(lambda: disarmed(reading), within_s=30, what="the front page is being read")
        os.kill(pid, signal.SIGSTOP)
        _wait(1.5 * deadline_s)
        os.kill(pid, signal.SIGCONT)
        _wait(0.5)  # it looks at its writer four times a second
        (reading / "go").touch()
        endings = team.finish()
        missing = lost(crawler, site)

    assert (endings, missing) == (["done"], [])
    assert "crawl.parse_hangs" not in crawler.log()


def _lease(crawler: Crawler, site: Site) -> tuple[int, int]:
    host = urlsplit(site.url(0)).netloc
    [(token, owner)] = rows(crawler, f"SELECT lease_token, coalesce(lease_owner, 0) FROM domains WHERE name = '{host}'")
    return (int(token), int(owner)) if owner else (0, 0)


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_ten_freezes_lose_nothing(crawler: Crawler, tmp_path: Path) -> None:
    with Site.plain(hosts=8, pages=200) as site:
        _freeze(crawler, site, times=10, folder=tmp_path / "tokens")


@pytest.mark.postgres
def test_a_process_cut_off_from_the_database_stops_asking_before_its_lease_ends(
    crawler: Crawler, postgres_url: str
) -> None:
    crawler.database_url = postgres_url
    crawler.environment.update(_SHORT)
    target = urlsplit(postgres_url)
    assert target.hostname is not None
    assert target.port is not None
    # Enough pages that hosts of the one that is cut off have some left, however late the other one starts.
    with Site.plain(hosts=8, pages=72) as site, Proxy(target.hostname, target.port) as proxy:
        team = Team(crawler, seeds(site), delay_s=_DELAY_S)
        through = postgres_url.replace(f":{target.port}/", f":{proxy.port}/")
        team.start("cut", HOLDFAST_DATABASE_URL=through)
        team.start("free")
        until(
            lambda: all(len(_by(site.log(), name)) > 20 for name in ("cut", "free")), within_s=30, what="both at work"
        )
        proxy.set_mode(Mode.DROP)
        cut_at = time.monotonic()
        _wait(3 * _LEASE_S)
        back_at = time.monotonic()
        dialled = proxy.accepted
        proxy.set_mode(Mode.PASS)
        endings = team.finish()
        log = site.settled()
        missing = lost(crawler, site)
    cut_hosts = {entry.host for entry in _by(log, "cut") if entry.start < cut_at}
    rescues = [entry.start for entry in _by(log, "free") if entry.start > cut_at and entry.host in cut_hosts]
    rescued_s = min(rescues) - cut_at
    during = [entry for entry in _by(log, "cut") if cut_at + 0.9 * _LEASE_S < entry.start < back_at]
    refused = total(crawler, "refused")
    print(f"asked while cut off {len(during)}, rescue {rescued_s:.2f} s, dialled {proxy.accepted}, {refused} refused")

    assert during == []
    assert endings == ["done", "done"]
    assert proxy.accepted > dialled
    # The lease, a look, and the full delay that a domain taken over waits. If the cut fell into a transaction, its rows
    # stay locked on the server until the connection breaks: then rescue comes with the end of the cut.
    assert rescued_s <= 3 * _LEASE_S + patience.allowed(2.0)
    assert missing == []
    assert settled_twice(crawler) == 0
    assert judge(log, delay_s=_DELAY_S) == []
    assert proxy.accepted < 60
    assert crawler.faults() == []


def test_a_start_seals_the_files_of_the_dead_and_leaves_those_of_the_living_alone(
    crawler: Crawler, request: pytest.FixtureRequest
) -> None:
    with Site.plain(hosts=6, pages=12) as site:
        process = crawler.start(*seeds(site), "--delay", "0.1", "--workers", "2")
        until(lambda: settled(crawler) > 5, within_s=20, what="some pages")
        until(lambda: len(list(crawler.home.rglob("*.open"))) == 2, within_s=20, what="both processes write")
        dead = crawler.processes()
        for pid in (process.pid, *dead):
            os.kill(pid, signal.SIGKILL)
        process.communicate()
        stale = sorted(crawler.home.rglob("*.open"))
        raw_db, clock = crawler.raw_db(), SystemClock()
        living = OwnerProcess(raw_db, clock, run=RunFile(crawler.home / "run"), kind="process", execution_id=1)
        sealed_path = stale[0].with_name("living.warc.gz")
        with raw_db.write() as tx:
            key = key_of(crawler.home, sealed_path)
            file_id = files.insert_file(tx, execution_id=1, owner_id=living.id, key=key, now=to_micros(clock.now()))
        writer = WarcWriter.create(sealed_path.parent, "living", file_id, {}, clock)
        request.addfinalizer(writer.abandon)
        before = writer.path.read_bytes()

        again = crawler.start(*seeds(site), "--delay", "0.1", "--workers", "2")
        started_at = time.monotonic()
        until(lambda: not any(path.exists() for path in stale), within_s=10, what="the dead ones' files sealed")
        took_s = time.monotonic() - started_at
        crawler.finish(again)
        missing = lost(crawler, site)

    print(f"{len(stale)} stale files sealed {took_s:.1f} s after the command")
    assert len(stale) == 2
    assert took_s < patience.allowed(5)
    assert missing == []
    assert writer.path.read_bytes() == before
    assert rows(crawler, f"SELECT state FROM warc_files WHERE id = {file_id}") == [("open",)]
    for path_of_dead in stale:
        with path_of_dead.with_suffix("").open("rb") as stream:
            assert next(iter(ArchiveIterator(stream))).headers["WARC-Type"] == "warcinfo"
    sealed = writer.seal()
    add_to_manifest(file_id, sealed)
    living.end()
    raw_db.close()
    assert crawler.faults() == []
