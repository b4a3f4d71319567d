"""F28 with a real mount: the storage of one source goes away under its crawl, and comes back."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs, patience
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import until
from tests.flow.plant import Plant
from tests.site import Site

_PAGES = 60


class Mount:
    """A disk of its own at a folder, that can be taken away and brought back with what is on it."""

    def __init__(self, disk: Path, at: Path) -> None:
        self._disk, self.at = disk, at

    def go(self) -> None:
        """Unmount it, whoever has files open there."""
        subprocess.run(["umount", "--lazy", str(self.at)], check=True)

    def come(self) -> None:
        """Mount it."""
        subprocess.run(["mount", "--bind", str(self._disk), str(self.at)], check=True)


@pytest.fixture
def plant(crawler: Crawler) -> Iterator[Plant]:
    """An installation with small WARC files, whose infrastructure retries come at once."""
    made = Plant(
        crawler,
        settings={
            "HOLDFAST_WARC_BYTES": "4096",
            "HOLDFAST_TIMINGS_JOBS_INFRA_COOLDOWN_S": "1",
            "HOLDFAST_TIMINGS_JOBS_INFRA_RETRIES": "1000",
        },
    )
    yield made
    made.end()


@pytest.fixture
def mount(plant: Plant, tmp_path: Path) -> Iterator[Mount]:
    """A disk where the source `ex` stores its captures; the test is skipped where nobody may mount."""
    disk, at = tmp_path / "disk", plant.crawler.home / "warcs" / "ex"
    disk.mkdir()
    at.mkdir(parents=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if made.returncode:
        needs.may_mount(made.stderr.decode().strip())
    found = Mount(disk, at)
    found.come()
    yield found
    plant.end()
    subprocess.run(["umount", "--lazy", str(at)], capture_output=True, check=False)
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_storage_that_is_unmounted_under_a_crawl_costs_no_retry_and_no_byte_below_it(
    plant: Plant, mount: Mount
) -> None:
    with Site.plain(hosts=2, pages=_PAGES) as site:
        job_id = plant.job("ex", site.url(0), max_depth=-1, delay_s=0.1)
        other = plant.job("other", site.url(1), max_depth=-1)
        worker = plant.worker(concurrency=2)
        until(lambda: len(list(mount.at.rglob("*.warc.gz"))) > 2, within_s=60, what="some files sealed")
        mount.go()
        until(lambda: len(_failures(plant, job_id)) >= 3, within_s=60, what="noticed, and tried again twice")
        until(lambda: plant.a_job(other).state == "completed", within_s=60, what="the other source goes on")
        job = plant.a_job(job_id)
        written = list(mount.at.rglob("*"))
        mount.come()
        until(lambda: plant.a_job(job_id).state == "completed", within_s=60, what="it goes on by itself")
        worker.terminate()
        worker.join(patience.deadline(30))
    runs = [run for run in plant.executions() if run.job_id == job_id]

    assert written == [], "not a byte, not a folder below the mount"
    assert {failure for failure in _failures(plant, job_id)} == {"infra_error"}
    assert job.current_retry_count == 0
    assert job.infra_retry_count >= 3
    assert {run.output_dir for run in runs} == {runs[0].output_dir}
    assert runs[-1].state == "completed"
    assert plant.a_job(other).total_runs == 1


def _failures(plant: Plant, job_id: int) -> list[str | None]:
    return [run.failure for run in plant.executions() if run.job_id == job_id and run.state == "failed"]


def test_a_crawl_without_a_job_begins_nothing_while_the_storage_of_captures_is_away(crawler: Crawler) -> None:
    with Site.plain(hosts=1, pages=2) as site:
        crawl = [site.url(0, "/"), "--allow-network", "127.0.0.0/8", "--delay", "0", "--no-sitemaps"]
        assert crawler.run("crawl", *crawl).returncode == 0
        store = crawler.home / "warcs"
        store.rename(crawler.home / "away")
        store.mkdir()  # as a mount point without its mount

        refused = crawler.run("crawl", *crawl)
        left = list(store.iterdir())
        store.rmdir()
        (crawler.home / "away").rename(store)
        again = crawler.crawl(site.url(0, "/"), "--delay", "0", "--no-sitemaps")

    assert (refused.returncode, left) == (1, [])
    assert "is gone or not writable" in refused.stderr
    assert (again["execution"], again["resumed"], again["state"]) == (2, False, "completed"), "none was begun meanwhile"


@pytest.mark.parametrize("is_empty_below", [True, False])
def test_a_crawl_of_its_own_whose_folder_vanishes_stops_and_is_resumed_when_it_is_back(
    crawler: Crawler, tmp_path: Path, *, is_empty_below: bool
) -> None:
    output, away = tmp_path / "out", tmp_path / "away"
    with Site.plain(hosts=2, pages=_PAGES) as site:
        crawl = [site.url(0), site.url(1), "--delay", "0.1", "--output", str(output)]
        process = crawler.start(*crawl, HOLDFAST_WARC_BYTES="4096")
        until(lambda: len(list(output.glob("*.warc.gz"))) > 2, within_s=60, what="some files sealed")
        output.rename(away)
        if is_empty_below:
            output.mkdir()
        _, told = process.communicate(timeout=patience.deadline(120))
        below = [path.name for path in output.iterdir() if path.suffix == ".gz"] if is_empty_below else []
        state = crawler.run("status", "--json").stdout
        refused = crawler.run("crawl", *crawl, "--allow-network", "127.0.0.0/8")
        shutil.rmtree(output, ignore_errors=True)
        away.rename(output)
        result = crawler.crawl(*crawl)

    assert process.returncode == 1
    assert "has vanished while it was written to" in told
    assert '"state": "stopped"' in state
    assert (refused.returncode, "is its storage mounted" in refused.stderr) == (1, True)
    assert below == []
    assert (result["state"], result["resumed"], result["queue"]) == ("completed", True, 0)
