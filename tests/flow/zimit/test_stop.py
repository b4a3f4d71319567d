"""Stopping: by signal, twice, by kill -9, and two at once. WARC files lost: none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from holdfast.zimit.output_directory import holder_of, last_end
from holdfast.zimit.warc_files import warcs_below
from tests import patience
from tests.flow.zimit.bed import Bed, Step

GOOD: list[Step] = [{"warc": "b.warc.gz"}, {"stats": [2, 2, 0, 0]}]
ONLY_WARCS = "--skip-final-build"


def _hanging(mark: Path) -> list[Step]:
    return [
        {"warc": "a.warc.gz"}, {"queue": {"left": 1}}, {"stats": [1, 9, 1, 0]}, {"touch": str(mark)}, {"hang": 30},
    ]  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_container_keeps_the_warcs_and_leaves_a_state_to_resume(
    bed: Bed, number: signal.Signals
) -> None:
    bed.script(_hanging(bed.root / "mark"), GOOD)
    process = bed.start(ONLY_WARCS)
    bed.wait_for(bed.root / "mark")
    process.send_signal(number)

    stopped = bed.finish(process)

    assert (stopped.code, stopped.state) == (1, "stopped"), stopped.err
    assert len(bed.calls("stop")) == 1
    assert bed.running() == []
    assert len(bed.warcs()) == 1
    assert len(bed.state()["temp_dirs_host_paths"]) == 1
    assert last_end(bed.output) == ("stopped", 1)
    assert json.loads((bed.output / ".zimit_resume.yaml").read_text()) == {"left": 1}
    if number is signal.SIGTERM:
        resumed = bed.run(ONLY_WARCS)
        assert resumed.code == 0
        assert bed.stages()[-1] == "resume_crawl_-_attempt_1"
        assert len([name for name in bed.warcs() if name.startswith("warcs/")]) == 2


def test_the_stand_in_deletes_its_warcs_when_it_is_not_told_to_keep_them(bed: Bed) -> None:
    """M19 itself: what the tool guards against is really what happens without it."""
    left = {}
    for keep in (False, True):
        mark = bed.root / f"mark-{keep}"
        bed.script(_hanging(mark))
        command = ["docker", "run", "--rm", "-v", f"{bed.output}:/output", "--label", "mine=1", "image", "zimit"]
        container = subprocess.Popen([*command, *(["--keep"] if keep else [])], env=bed.variables)
        bed.wait_for(mark)
        ident = subprocess.run(
            ["docker", "ps", "-q", "--filter", "label=mine=1"], env=bed.variables, capture_output=True, check=True,
            text=True,
        ).stdout.strip()  # fmt: skip
        subprocess.run(["docker", "stop", "-t", "5", ident], env=bed.variables, check=True, capture_output=True)
        assert container.wait(timeout=patience.deadline(10)) == 3
        left[keep] = len(bed.warcs())

    assert left == {False: 0, True: 1}


def test_a_second_signal_takes_the_grace_away(bed: Bed) -> None:
    bed.script([{"deaf": True}, *_hanging(bed.root / "mark")])
    process = bed.start(ONLY_WARCS, "--time-scale", "0.2")
    bed.wait_for(bed.root / "mark")
    process.terminate()
    bed.wait_until(lambda: bool(bed.calls("stop")))
    begun = time.monotonic()
    process.terminate()

    stopped = bed.finish(process)

    assert stopped.state == "stopped"
    assert bed.calls("stop")[0][1:3] == ["-t", "18"]
    assert time.monotonic() - begun < patience.allowed(10)
    assert len(bed.warcs()) == 1


def test_a_stop_during_the_wait_between_attempts_is_immediate(bed: Bed) -> None:
    bed.script([{"warc": "a.warc.gz"}, {"exit": 9}])
    process = bed.start(ONLY_WARCS, "--backoff-delay-minutes", "600")
    bed.wait_for(bed.output / ".archive_state.json")
    bed.wait_until(lambda: bool(bed.state()["temp_dirs_host_paths"]))
    process.terminate()

    stopped = bed.finish(process, timeout_s=20)

    assert (stopped.code, stopped.state) == (1, "stopped")
    assert len(bed.calls("run")) == 1


def test_what_a_killed_tool_left_running_is_stopped_before_the_next_run(bed: Bed) -> None:
    bed.script(_hanging(bed.root / "mark"), GOOD)
    process = bed.start(ONLY_WARCS)
    bed.wait_for(bed.root / "mark")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(patience.deadline(10))
    assert len(bed.running()) == 1
    assert (holder_of(bed.output), last_end(bed.output)) == (None, None)

    ended = bed.run(ONLY_WARCS)

    assert ended.code == 0
    assert "container.orphan" in ended.err
    assert len(bed.calls("stop")) == 1
    assert len([name for name in bed.warcs() if name.startswith("warcs/")]) == 2


def test_one_directory_has_one_tool(bed: Bed) -> None:
    bed.script(_hanging(bed.root / "mark"))
    first = bed.start(ONLY_WARCS)
    bed.wait_for(bed.root / "mark")
    holder = holder_of(bed.output)

    second = bed.run(ONLY_WARCS)
    first.terminate()

    assert second.code == 1
    assert "another archive-tool" in second.err
    assert holder == first.pid
    assert bed.finish(first).state == "stopped"
    assert len(bed.calls("run")) == 1


MOMENTS = ("made", "first", "queue", "second")
"""When it may happen: before any file, between two, after a queue was saved, at the end of the crawl."""


@pytest.mark.parametrize(
    ("victim", "moment"), [("both", "made"), ("container", "first"), ("tool", "queue"), ("both", "second")]
)
def test_whoever_is_killed_and_whenever_no_warc_file_is_lost(bed: Bed, victim: str, moment: str) -> None:
    """F29: WARCs lost 0; the next run joins what is there, and every file is whole under a stable name."""
    steps: dict[str, list[Step]] = {
        "made": [], "first": [{"warc": "a.warc.gz"}, {"stats": [1, 9, 1, 0]}], "queue": [{"yaml": {"left": 8}}],
        "second": [{"warc": "b.warc.gz"}, {"stats": [2, 9, 1, 0]}],
    }  # fmt: skip
    before = [step for name in MOMENTS[: MOMENTS.index(moment) + 1] for step in steps[name]]
    bed.script([*before, {"touch": str(bed.root / "mark")}, {"hang": 60}], GOOD)
    process = bed.start(ONLY_WARCS, "--max-attempts", "1")
    bed.wait_for(bed.root / "mark")
    captured = [file.path.read_bytes() for file in warcs_below(bed.output)]
    if victim != "container":
        os.kill(process.pid, signal.SIGKILL)
    if victim != "tool":
        for pid in bed.running():
            os.kill(pid, signal.SIGKILL)
    assert process.wait(patience.deadline(20))

    ended = bed.run(ONLY_WARCS)

    assert ended.code == 0, ended.err
    stable = [file.path.read_bytes() for file in warcs_below(bed.output / "warcs")]
    assert len(captured) == {"made": 0, "first": 1, "queue": 1, "second": 2}[moment]
    assert all(data in stable for data in captured)
    assert len(stable) == len(captured) + 1
    assert bed.stages()[-1].startswith("resume" if moment in MOMENTS[2:] else "new" if captured else "initial")
