"""zimit behind a real worker process: from the queue to the search page, through a kill and through a drain."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.db.models import Execution
from tests import forked, patience
from tests.flow.commands import Terminal
from tests.flow.zimit.bed import Step
from tests.flow.zimit_bed import COMMAND, WHOLE, ZimitBed, open_zimit_bed


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[ZimitBed]:
    with open_zimit_bed(tmp_path, None) as made:
        yield made


def _worker(bed: ZimitBed) -> subprocess.Popen[str]:
    kept = {name: value for name, value in bed.engine.variables.items() if not name.startswith("HOLDFAST_")}
    settings = {
        "HOLDFAST_ZIMIT_COMMAND": COMMAND, "HOLDFAST_DISK_FREE_BYTES": "0", "HOLDFAST_DISK_FREE_PERCENT": "0",
        "HOLDFAST_CONTACT": "t@example.org",
    }  # fmt: skip
    command = [sys.executable, "-m", "holdfast.cli.main", "start-worker", "--once", "--poll-interval", "0.1", "--json"]
    return forked.Popen(
        [*command, "--home", str(bed.settings.home)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**kept, **settings}, start_new_session=True,
    )  # fmt: skip


def _finished(worker: subprocess.Popen[str]) -> dict[str, int]:
    out, err = worker.communicate(timeout=patience.deadline(90))
    assert worker.returncode == 0, err[-3000:]
    endings: dict[str, int] = json.loads(out)["endings"]
    return endings


def _execution(bed: ZimitBed) -> Execution:
    with bed.jobs.database.read() as session:
        [row] = session.query(Execution).all()
    return row


def _waiting(bed: ZimitBed, *, then: list[Step]) -> list[Step]:
    mark = str(bed.engine.root / "mark")
    return [{"warc": "a.warc.gz"}, {"queue": {"left": 1}}, {"stats": [1, 9, 1, 0]}, {"touch": mark}, *then]


def test_a_killed_worker_s_tool_is_taken_over_a_drained_one_stops_it_and_the_third_ends_on_the_search_page(
    bed: ZimitBed, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.job()
    bed.engine.script(_waiting(bed, then=[{"hang": 60}]), WHOLE)
    first = _worker(bed)
    bed.engine.wait_for(bed.engine.root / "mark")
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()

    second = _worker(bed)
    bed.engine.wait_until(lambda: "a tool that was left behind goes on" in bed.lines(_execution(bed).id))
    assert len(bed.engine.calls("run")) == 1, "it is followed, not started again"
    second.terminate()
    assert _finished(second) == {"released": 1}
    assert bed.processes() == []

    assert _finished(_worker(bed)) == {"completed": 1}
    assert "/output/.zimit_resume.yaml" in bed.engine.zimit(1)
    done = _execution(bed)
    assert (done.state, done.takeovers, done.items_crawled, done.index_state) == ("completed", 1, 30, "indexed")
    found = Terminal(bed.settings.home, capsys).type("search", "kept", "--json").object
    assert [hit["originalUrl"] for hit in found["results"]] == ["https://example.org/a.warc.gz"]
    assert len(bed.snapshots()) == 2
