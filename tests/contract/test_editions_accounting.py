"""The background task that accounts for editions, on both databases: when it works, and when it leaves off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast import config
from holdfast.editions.edition_files import draft, edition_folder
from holdfast.wiring import open_runtime
from holdfast.worker.background import Accounting, BackgroundContext
from tests.clock import FakeClock
from tests.editions_bed import EditionBed, open_edition_bed


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[EditionBed]:
    with open_edition_bed(migrated_url, clock, tmp_path) as opened:
        opened.jobs.source("hc")
        opened.schedule("hc")
        yield opened


def test_an_edition_at_rest_is_accounted_for_unless_the_worker_ends_or_another_is_at_it(bed: EditionBed) -> None:
    stopping = True
    with open_runtime(config.load(home=bed.home, database_url=bed.database.url)) as runtime, ExitStack() as on_end:
        context = BackgroundContext(runtime=runtime, database=bed.database, is_stopping=lambda: stopping, on_end=on_end)
        task = Accounting(context)
        waits = task.run_once()
        bed.ran(("https://hc.example/", "success", "ok"))
        stopped = task.run_once()
        untouched = bed.edition("hc").generated_at
        stopping = False
        with draft(edition_folder(bed.home, "hc", 2026)):
            busy = task.run_once()
        done, again = task.run_once(), task.run_once()

    assert (waits, stopped, untouched, busy) == (False, False, None, False)
    assert (done, again) == (True, False)
    assert bed.edition("hc").status == "research_ready"
    assert [row["url"] for row in bed.ledger("hc")] == ["https://hc.example/"]


def test_an_edition_that_somebody_is_at_does_not_keep_others_waiting(bed: EditionBed) -> None:
    bed.jobs.source("phac")
    bed.schedule("phac")
    bed.clock.advance(10)
    bed.ran(("https://hc.example/", "success", "ok"))
    bed.ran(("https://phac.example/", "success", "ok"))
    with open_runtime(config.load(home=bed.home, database_url=bed.database.url)) as runtime, ExitStack() as on_end:
        task = Accounting(
            BackgroundContext(runtime=runtime, database=bed.database, is_stopping=lambda: False, on_end=on_end)
        )
        with draft(edition_folder(bed.home, "hc", 2026)):
            steps = [task.run_once(), task.run_once()]

    assert steps == [True, False]
    assert (bed.edition("hc").generated_at, bed.edition("phac").status) == (None, "research_ready")
