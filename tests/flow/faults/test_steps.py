"""F03: death at each step of append, sync, commit, seal, rename, register; and death of whoever cleans up after it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from tests.flow.crawler import Crawler
from tests.flow.faults.bed import arm, disarmed, extra, lost, rows, seeds, settled, settled_twice, until
from tests.flow.faults.team import Team
from tests.site import Site

_STEPS = {
    "after_append": 10, "before_sync": 1, "after_sync": 1, "after_commit": 1, "seal_synced": 0, "after_rename": 0,
    "after_manifest": 0, "after_register": 0,
}  # fmt: skip
"""Each place, and how often a process passes it before it may die there."""
_CLEANING = ("recovery_freed", "recovery_adopted", "recovery_listed", "recovery_sealed")


def _spec(places: dict[str, int], folder: Path) -> str:
    return ",".join(f"{place}:kill:{skip}:{folder}" for place, skip in places.items())


def _orphans(crawler: Crawler) -> int:
    """Return how many captures of pages no row points to."""
    pointed = {(row[0], row[1]) for row in rows(crawler, "SELECT warc_file_id, warc_offset FROM page_crawls")}
    ids = {Path(path).name: number for number, path in rows(crawler, "SELECT id, key FROM warc_files")}
    found = 0
    for path in crawler.warcs():
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response, parse_http=False):
                robots = str(record.headers["WARC-Target-URI"]).endswith("/robots.txt")
                found += not robots and (ids[path.name], record.stream_pos) not in pointed
    return found


def _survives(crawler: Crawler, tokens: Path, *, times: int) -> None:
    arm(tokens, *_STEPS, times=times)
    with Site.plain(hosts=12, pages=max(20, 10 * times)) as site:
        process = crawler.start(
            *seeds(site), "--delay", "0.05", "--workers", "4", HOLDFAST_FAILPOINT=_spec(_STEPS, tokens),
            HOLDFAST_WARC_BYTES="20000",
        )  # fmt: skip
        result = crawler.finish(process, timeout_s=100)
        missing, again = lost(crawler, site), extra(site)
    deaths = len(_STEPS) * times
    orphans = _orphans(crawler)
    print(f"{deaths} deaths, {again} pages asked again, {orphans} orphans")

    assert disarmed(tokens), sorted(tokens.iterdir())
    assert missing == []
    assert settled_twice(crawler) == 0
    assert result["state"] == "completed"
    assert again <= deaths * 12
    assert orphans <= again
    assert crawler.faults() == []


def test_death_at_any_step_leaves_no_row_without_its_bytes(crawler: Crawler, tmp_path: Path) -> None:
    _survives(crawler, tmp_path / "tokens", times=2)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_ten_deaths_at_every_step_leave_no_row_without_its_bytes(crawler: Crawler, tmp_path: Path) -> None:
    _survives(crawler, tmp_path / "tokens", times=10)


def test_whoever_cleans_up_may_die_too_and_the_next_goes_on_from_there(crawler: Crawler, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    with Site.plain(hosts=6, pages=12) as site:
        team = Team(crawler, seeds(site), delay_s=0.1, size=1)
        victim = team.start("first")
        until(lambda: settled(crawler) > 5, within_s=20, what="some pages")
        victim.kill()
        victim.wait()
        team.forget(victim)
        torn = next(crawler.home.rglob("*.open"))
        with torn.open("ab") as file:
            file.write(b"half a record")
        for place in _CLEANING:
            arm(tokens, place)
            assert _clean_up(crawler, dict.fromkeys(_CLEANING, 0), tokens) == -signal.SIGKILL, place
            assert disarmed(tokens)
        report = team.recover()
        team.start("second")
        team.finish()
        missing = lost(crawler, site)

    assert report.owners == 1
    assert missing == []
    assert rows(crawler, "SELECT max(crashes) FROM page_crawls")[0][0] <= 1
    assert len(list(crawler.home.rglob("*.tail.bad"))) == 1
    assert crawler.faults() == []


def _clean_up(crawler: Crawler, places: dict[str, int], tokens: Path) -> int:
    """Clean up in a process of its own, as every start does; return how that ended."""
    code = (
        "from holdfast import config, wiring; from holdfast.crawl.recovery import recover\n"
        "with wiring.open_runtime(config.load()) as ground: recover(ground)"
    )
    variables = {**crawler.variables, "HOLDFAST_HOME": str(crawler.home), "HOLDFAST_FAILPOINT": _spec(places, tokens)}
    return subprocess.run([sys.executable, "-c", code], env=variables, check=False).returncode
