"""The WARC disk is full, or nearly so: fetching pauses with a name, nothing fails, it goes on when there is room."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from holdfast.errors import Unavailable
from holdfast.warc.verify import verify_file
from tests import needs, patience
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import extra, lost, rows, seeds, settled, settled_twice, until
from tests.site import Site
from tests.site.book import html, links

_PAGES = 24
_PAGE_BYTES = 120_000
_COUNTS = "SELECT counts FROM execution_counts"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two mebibytes, of which a third of the site fits."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        needs.may_mount(mounted.stderr.decode().strip())
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def site() -> Iterator[Site]:
    """Pages that do not compress, one of them too large to be held in memory."""
    chance = random.Random(8)
    with Site.start(hosts=2, pages=1) as running:
        paths = [f"/noise/{n}" for n in range(_PAGES)]
        running.serve("/start", html("start", links([*paths, "/large"])))
        for path in paths:
            running.serve(path, chance.randbytes(_PAGE_BYTES), media="application/pdf")
        running.serve("/large", chance.randbytes(1_500_000), media="application/pdf")
        yield running


def _is_full(crawler: Crawler) -> bool:
    """Return whether a process has said so in its totals; `crawl.log` lies on the full disk."""
    return settled(crawler) > 0 and any("no_space" in str(counts) for (counts,) in rows(crawler, _COUNTS))


def _waits_and_goes_on(crawler: Crawler, process: subprocess.Popen[str], make_room: Callable[[], None]) -> None:
    until(lambda: _is_full(crawler), within_s=30, what="the crawl pauses")
    said = json.loads(crawler.run("status", "1", "--json").stdout)
    assert (said["state"], said["condition"]) == ("running", "no_space")
    assert "goes on by itself" in said["trouble"], "what is wrong and what helps is said, not only that it is"
    make_room()
    until(lambda: not _is_full(crawler) or process.poll() is not None, within_s=10, what="it goes on by itself")
    result = crawler.finish(process)

    captured = [found for url, found in crawler.outcomes().items() if "/noise/" in url or "/large" in url]
    assert captured == [("success", "ok")] * (_PAGES + 1)
    assert result["state"] == "completed"
    assert set(result["outcomes"]) == {"success"}, "no attempt failed"
    assert crawler.faults() == []


def test_a_full_disk_pauses_the_crawl_until_there_is_room(crawler: Crawler, site: Site, small_disk: Path) -> None:
    process = crawler.start(
        site.url(0, "/start"), "--delay", "0", "--no-sitemaps", "--output", str(small_disk / "warcs")
    )

    def make_room() -> None:
        _resize(small_disk, "32m")

    _waits_and_goes_on(crawler, process, make_room)


def test_a_limit_on_the_size_of_files_pauses_the_crawl_until_it_is_lifted(crawler: Crawler, site: Site) -> None:
    limit = 1_800_000
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        process = crawler.start(site.url(0, "/start"), "--delay", "0", "--no-sitemaps")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    def make_room() -> None:
        for pid in crawler.processes():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)

    _waits_and_goes_on(crawler, process, make_room)


def test_a_crawl_whose_time_runs_out_on_a_full_disk_blames_the_storage_and_no_server(
    crawler: Crawler, site: Site
) -> None:
    kept = {"HOLDFAST_DISK_FREE_BYTES": str(10**18)}
    process = crawler.start(site.url(0, "/start"), "--delay", "0", "--no-sitemaps", "--max-time", "1s", **kept)
    out, err = process.communicate(timeout=patience.deadline(60))

    said = json.loads(out.splitlines()[-1])
    assert (process.returncode, said["state"], said["reason"]) == (1, "failed", "storage"), err
    told = json.loads(crawler.run("status", "1", "--json").stdout)["error"]
    assert "kept free: make room" in told
    assert "HOLDFAST_DISK_FREE_BYTES" in told
    assert set(crawler.outcomes().values()) == {("open", "")}, "what was not asked for is not given up"


_REFUSES = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE UPDATE ON page_crawls FOR EACH STATEMENT EXECUTE FUNCTION refuse()"""


@pytest.mark.postgres
def test_a_server_without_room_is_told_by_status_and_by_the_ending(
    tmp_path: Path, site: Site, postgres_url: str
) -> None:
    crawler = Crawler(tmp_path / "home", database_url=postgres_url)
    crawler.run("status")
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(_REFUSES)
    process = crawler.start(site.url(0, "/start"), "--delay", "0", "--no-sitemaps", "--max-time", "5s")
    out, err = process.communicate(timeout=patience.deadline(60))

    said = json.loads(out.splitlines()[-1])
    assert (process.returncode, said["state"], said["reason"]) == (1, "failed", "storage"), err
    told = json.loads(crawler.run("status", "1", "--json").stdout)["error"]
    assert "refused for want of room" in told
    assert "the disk of the database is full" in told
    assert "no room: the last write was refused" in crawler.run("status").stdout


def _is_paused(crawler: Crawler) -> bool:
    """Return whether a process has said that it waits for room, whatever it has settled."""
    if not (crawler.home / "holdfast.db").exists():
        return False
    try:
        return any("no_space" in str(counts) for (counts,) in rows(crawler, _COUNTS))
    except Unavailable:  # the tables are not there yet
        return False


@pytest.mark.parametrize("small", ["captures", "database"])
def test_below_the_mark_of_free_space_nothing_is_asked_for_until_there_is_more(
    tmp_path: Path, site: Site, small_disk: Path, small: str
) -> None:
    _resize(small_disk, "16m")
    places = {"captures": tmp_path, "database": tmp_path, small: small_disk}
    crawler = Crawler(places["database"] / "home", environment={"HOLDFAST_DISK_FREE_BYTES": "8000000"})
    filler = small_disk / "filler"
    filler.write_bytes(bytes(10_000_000))
    process = crawler.start(
        site.url(0, "/noise/1"), "--delay", "0", "--no-sitemaps", "--depth", "0", "--output",
        str(places["captures"] / "warcs"),
    )  # fmt: skip
    until(lambda: _is_paused(crawler), within_s=30, what="the crawl waits for room")
    asked = len(site.log())
    filler.unlink()
    result = crawler.finish(process)

    assert asked == 0
    assert (result["state"], result["outcomes"]) == ("completed", {"success": 1})
    assert crawler.faults() == []


def test_a_full_disk_of_the_database_is_waited_for_and_nothing_is_lost(tmp_path: Path, small_disk: Path) -> None:
    crawler, output = Crawler(small_disk / "home"), tmp_path / "warcs"
    with Site.plain(hosts=8, pages=120) as site:
        process = crawler.start(*seeds(site), "--delay", "0", "--no-sitemaps", "--output", str(output))
        log = output / "crawl.log"
        until(
            lambda: log.exists() and "the disk of the database is full" in log.read_text(),
            within_s=60,
            what="it is full",
        )
        whole = crawler.run("check-db")
        _resize(small_disk, "64m")
        result = crawler.finish(process)
        missing, again = lost(crawler, site), extra(site)

    assert (whole.returncode, whole.stdout.splitlines()[-1]) == (0, "ok")
    assert (result["state"], set(result["outcomes"])) == ("completed", {"success"})
    assert missing == []
    assert again <= 8, "what was in flight when a lease ended: one page of each domain"
    assert settled_twice(crawler) == 0
    assert crawler.faults() == []


def _resize(disk: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


@pytest.mark.soak
def test_what_was_captured_before_is_sound_while_the_disk_is_full(
    crawler: Crawler, site: Site, small_disk: Path
) -> None:
    """Told to stop while it waits, a crawl seals what it has; the same command goes on where it stopped."""
    command = [site.url(0, "/start"), "--delay", "0", "--no-sitemaps", "--output", str(small_disk / "warcs")]
    process = crawler.start(*command)
    until(lambda: _is_full(crawler), within_s=30, what="the crawl pauses")
    process.terminate()
    stopped = crawler.finish(process)

    assert stopped["state"] == "stopped"
    assert stopped["queue"] > 0
    assert set(stopped["outcomes"]) <= {"success"}
    assert all(verify_file(path).ok for path in small_disk.rglob("*.warc.gz"))
    _resize(small_disk, "32m")
    result = crawler.crawl(*command)
    assert (result["state"], result["resumed"]) == ("completed", True)
    assert set(result["outcomes"]) == {"success"}
    assert os.path.commonpath([*result["warc_files"], str(small_disk)]) == str(small_disk)
