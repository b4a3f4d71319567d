"""Attempts: which failures are tried again and how, which end at once, and what each end means to the caller."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from holdfast.jobs.endings import FailureCause
from holdfast.zimit.outcome import FINALIZATION_FAILED, Verdict, classify_exit
from holdfast.zimit.output_directory import SENTINEL
from tests import needs
from tests.flow.zimit.bed import Bed, Ended, Step

GOOD: list[Step] = [{"warc": "b.warc.gz"}, {"stats": [2, 2, 0, 0]}]
ONLY_WARCS = "--skip-final-build"


def _meaning(bed: Bed, ended: Ended) -> Verdict:
    return classify_exit(ended.code, bed.output, f"{ended.out}\n{ended.err}")


@pytest.mark.parametrize("code", [14, 15, 16, 32, 33])
def test_a_limit_that_was_reached_is_a_success(bed: Bed, code: int) -> None:
    """Size, time and disk use, in the numbers of two ages: zimit ends on its own terms, what it captured is whole."""
    bed.script([{"warc": "a.warc.gz"}, {"exit": code}])

    ended = bed.run(ONLY_WARCS)

    assert (ended.code, ended.state) == (0, "success")
    assert len(bed.calls("run")) == 1


def test_a_size_limit_counts_over_all_stages_and_no_container_is_started_beyond_it(bed: Bed) -> None:
    bed.script([{"warc": "a.warc.gz"}, {"yaml": {"left": 8}}, {"exit": 9}])

    ended = bed.run(ONLY_WARCS, "--sizeSoftLimit", "500")

    assert (ended.code, ended.state) == (0, "success"), ended.err
    given = [int(bed.zimit(turn)[bed.zimit(turn).index("--sizeSoftLimit") + 1]) for turn in (0, 1)]
    written = [path.stat() for path in bed.output.glob(".tmp*/collections/*/archive/a.warc.gz")]
    first = min(written, key=lambda file: file.st_mtime_ns)
    assert given == [500, 500 - first.st_size]
    assert len(bed.calls("run")) == 2
    assert "crawl.size_limit_reached" in ended.err


def test_a_failure_with_a_saved_queue_is_resumed_as_the_next_attempt(bed: Bed) -> None:
    bed.script([{"warc": "a.warc.gz"}, {"stats": [1, 9, 1, 0]}, {"yaml": {"left": 8}}, {"exit": 9}], GOOD)

    ended = bed.run(ONLY_WARCS)

    assert ended.code == 0
    assert bed.stages() == ["initial_crawl_-_attempt_1", "resume_crawl_-_attempt_2"]
    assert "/output/.zimit_resume.yaml" in bed.zimit(1)
    assert len([name for name in bed.warcs() if name.startswith("warcs/")]) == 2


def test_a_killed_container_loses_no_warc_and_is_followed_by_a_new_phase(bed: Bed) -> None:
    bed.script([{"warc": "a.warc.gz"}, {"stats": [1, 9, 1, 0]}, {"yaml": "half: [wri"}, {"die": 9}], GOOD)

    ended = bed.run(ONLY_WARCS)

    assert ended.code == 0
    assert bed.stages() == ["initial_crawl_-_attempt_1", "new_crawl_phase_-_attempt_2"]
    assert len([name for name in bed.warcs() if name.startswith("warcs/")]) == 2


def test_attempts_end_at_their_limit(bed: Bed) -> None:
    bed.script([{"exit": 9}])

    ended = bed.run(ONLY_WARCS, "--max-attempts", "3")

    assert (ended.code, ended.state) == (1, "failed_max_attempts")
    assert bed.stages() == [f"initial_crawl_-_attempt_{number}" for number in (1, 2, 3)]
    assert _meaning(bed, ended) == (FailureCause.FAILED, None)


def test_a_flag_that_the_image_does_not_know_is_tried_once(bed: Bed) -> None:
    """F29: unrecognised-argument runs = 1."""
    bed.script(GOOD)

    ended = bed.run(ONLY_WARCS, "--behaviors", "autoscroll")

    assert (ended.code, ended.state) == (1, "failed")
    assert len(bed.calls("run")) == 1
    assert "unrecognized arguments" in bed.log()
    assert _meaning(bed, ended) == (FailureCause.CONFIG, None)


def test_a_flag_that_is_not_ours_to_pass_never_reaches_docker(bed: Bed) -> None:
    ended = bed.run(ONLY_WARCS, "--driver", "evil.js")

    assert ended.code == 2
    assert "archive-tool: error:" in ended.err
    assert bed.raw_calls() == []
    assert _meaning(bed, ended) == (FailureCause.CONFIG, None)


def test_missing_permissions_are_storage_trouble_and_tried_once(bed: Bed) -> None:
    bed.script([{"err": "PermissionError: [Errno 13] Permission denied: '/output/.tmpx'"}, {"exit": 1}])

    ended = bed.run(ONLY_WARCS)

    assert (ended.code, ended.state) == (1, "failed")
    assert len(bed.calls("run")) == 1
    assert _meaning(bed, ended) == (FailureCause.INFRA, None)


def test_what_a_page_says_is_no_storage_trouble(bed: Bed) -> None:
    title = {"event": {"context": "pageStatus", "message": "Page Finished", "details": {"title": "Permission denied"}}}
    bed.script([title, {"exit": 9}])

    ended = bed.run(ONLY_WARCS, "--max-attempts", "1")

    assert _meaning(bed, ended) == (FailureCause.FAILED, None)


def test_a_complete_crawl_is_not_crawled_again_when_only_its_end_failed(bed: Bed) -> None:
    bed.script([{"warc": "a.warc.gz"}, {"stats": [5, 6, 0, 1]}, {"say": "warc2zim failed"}, {"exit": 1}])

    ended = bed.run(ONLY_WARCS)

    assert (ended.code, ended.state) == (1, "failed")
    assert len(bed.calls("run")) == 1
    assert _meaning(bed, ended) == (FailureCause.FAILED, FINALIZATION_FAILED)


def test_an_engine_that_is_down_is_told_apart(bed: Bed) -> None:
    bed.script(GOOD, down=True)

    ended = bed.run(ONLY_WARCS)

    assert (ended.code, ended.state) == (1, "docker_start_failed")
    assert bed.calls("run") == []


def test_a_container_that_cannot_start_is_not_tried_again(bed: Bed) -> None:
    bed.script([{"err": "exec: zimit: executable file not found"}, {"exit": 127}])

    ended = bed.run(ONLY_WARCS)

    assert (ended.code, ended.state) == (1, "docker_start_failed")
    assert len(bed.calls("run")) == 1


def test_storage_that_vanishes_is_never_written_around(bed: Bed, tmp_path: Path) -> None:
    """F28: no attempt spent, no byte written to what stands in its place, and it recovers."""
    mark, away = tmp_path / "mark", tmp_path / "away"
    bed.script(
        [{"warc": "a.warc.gz"}, {"stats": [1, 9, 1, 0]}, {"touch": str(mark)}, {"await": str(bed.heard)}, {"exit": 1}],
        GOOD,
    )
    process = bed.start(ONLY_WARCS, "--enable-monitoring")
    bed.wait_for(mark)
    bed.output.rename(away)
    bed.output.mkdir()
    bed.heard.touch()

    ended = bed.finish(process)

    assert ended.code == 1
    assert list(bed.output.iterdir()) == []
    assert _meaning(bed, ended) == (FailureCause.INFRA, None)
    assert len(bed.calls("run")) == 1
    bed.output.rmdir()
    away.rename(bed.output)
    assert bed.run(ONLY_WARCS).code == 0
    assert len([name for name in bed.warcs() if name.startswith("warcs/")]) == 2


@pytest.mark.parametrize("fault", ["unmounted", "full"])
def test_a_mount_that_goes_away_or_is_full_costs_no_attempt_and_no_byte_beside_it(bed: Bed, fault: str) -> None:
    """F28 with a real mount, under a running container."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(bed.output)]
    if (mounted := subprocess.run(mount, capture_output=True, check=False)).returncode:
        needs.may_mount(mounted.stderr.decode().strip())
    mark = bed.root / "mark"
    trouble: list[Step] = [{"long": 1 << 20}, {"hang": 30}] if fault == "full" else [{"exit": 1}]
    bed.script([{"warc": "a.warc.gz"}, {"touch": str(mark)}, {"await": str(bed.heard)}, *trouble])
    try:
        process = bed.start(ONLY_WARCS)
        bed.wait_for(mark)
        kept = len(bed.warcs())
        if fault == "unmounted":
            subprocess.run(["umount", "-l", bed.output], check=True)
        bed.heard.touch()
        ended = bed.finish(process)
        assert _meaning(bed, ended)[0] is FailureCause.INFRA, ended
        assert len(bed.warcs()) == (kept if fault == "full" else 0)
    finally:
        subprocess.run(["umount", "-l", bed.output], capture_output=True, check=False)
    assert (ended.code, kept, len(bed.calls("run"))) == (1, 1, 1)
    assert list(bed.output.iterdir()) == []


def test_storage_that_is_not_mounted_is_told_by_its_missing_sentinel(bed: Bed, tmp_path: Path) -> None:
    bed.output.rmdir()
    bed.script(GOOD)

    refused = bed.run(ONLY_WARCS, "--store-root", str(tmp_path))
    left = bed.output.exists()
    (tmp_path / SENTINEL).touch()
    accepted = bed.run(ONLY_WARCS, "--store-root", str(tmp_path))

    assert refused.code == 1
    assert not left
    assert _meaning(bed, refused)[0] is FailureCause.INFRA
    assert accepted.code == 0


def test_store_root_elsewhere_is_a_configuration_error(bed: Bed, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / SENTINEL).touch()

    refused = bed.run(ONLY_WARCS, "--store-root", str(elsewhere))

    assert refused.code == 2
    assert _meaning(bed, refused)[0] is FailureCause.CONFIG


def test_a_disk_that_takes_no_more_stops_the_container_and_keeps_what_is_there(bed: Bed) -> None:
    bed.script([{"warc": "a.warc.gz"}, {"long": 2_000_000}, {"hang": 30}])

    ended = bed.run_installed(ONLY_WARCS, before=("prlimit", "--fsize=200000"))

    assert ended.code == 1
    assert _meaning(bed, ended)[0] is FailureCause.INFRA
    assert len(bed.warcs()) == 1


def test_a_state_with_wrong_types_is_repaired_field_by_field(bed: Bed) -> None:
    outside = bed.root / ".tmpoutside"
    outside.mkdir()
    state = {"current_workers": "four", "worker_reductions_done": 2, "vpn_rotations_done": -1, "error_counts": [],
             "temp_dirs_host_paths": [str(outside), 7, str(bed.output / ".tmpgone")]}  # fmt: skip
    (bed.output / ".archive_state.json").write_text(json.dumps(state))
    (bed.output / ".zimit_resume.yaml").write_text("a: 1\n")
    bed.script(GOOD)

    assert bed.run(ONLY_WARCS, "--initial-workers", "2", "--cleanup").code == 0
    assert bed.workers() == ["2"]
    assert outside.exists()


def test_permissions_are_relaxed_on_request(bed: Bed) -> None:
    bed.script([{"warc": "a.warc.gz"}, {"mode": "700"}, {"stats": [1, 1, 0, 0]}])

    assert bed.run(ONLY_WARCS, "--relax-perms").code == 0
    modes = [(bed.output / name).stat().st_mode & 0o777 for name in bed.warcs()]
    assert modes == [0o744] * len(modes)


def test_permissions_are_relaxed_round_after_round_while_the_crawl_runs(bed: Bed) -> None:
    marks = [bed.root / "mark-1", bed.root / "mark-2"]
    background: list[Step] = []
    for number, mark in enumerate(marks):
        background += [{"warc": f"{number}.warc.gz"}, {"mode": "700"}, {"touch": str(mark)}, {"await": f"{mark}-seen"}]
    bed.script([*background, {"stats": [2, 2, 0, 0]}])
    process = bed.start(ONLY_WARCS, "--relax-perms")

    for mark in marks:
        bed.wait_for(mark)
        bed.wait_until(lambda: all((bed.output / name).stat().st_mode & 0o044 for name in bed.warcs()))
        Path(f"{mark}-seen").touch()

    assert bed.finish(process).code == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ("--enable-adaptive-workers",),
        ("--enable-adaptive-restart",),
        ("--enable-vpn-rotation", "--vpn-connect-command", "vpn"),
        ("--enable-monitoring", "--enable-vpn-rotation"),
        ("--min-workers", "0"),
        ("--max-container-restarts", "-1"),
        ("--vpn-rotation-frequency-minutes", "-1"),
        ("--max-temp-dirs-before-reset", "0"),
        ("--seeds", "ftp://example.org/"),
        ("--name", "../x"),
        ("--browsertrix-config-json", "{"),
    ],
)
def test_wrong_usage_ends_with_2_before_anything_is_touched(bed: Bed, wrong: tuple[str, ...]) -> None:
    ended = bed.run(ONLY_WARCS, *wrong)

    assert ended.code == 2
    assert "archive-tool: error:" in ended.err
    assert bed.raw_calls() == []
    assert list(bed.output.iterdir()) == []
    assert _meaning(bed, ended) == (FailureCause.CONFIG, None)


def test_a_state_that_cannot_be_kept_ends_the_run_and_its_container(bed: Bed) -> None:
    (bed.output / ".archive_state.json.new").mkdir()
    bed.script(GOOD)

    ended = bed.run(ONLY_WARCS)

    assert (ended.code, ended.state) == (1, "failed_state_error")
    assert bed.calls("run") == []


def test_a_state_that_can_no_longer_be_kept_stops_the_container(bed: Bed) -> None:
    mark = bed.root / "mark"
    error: Step = {"event": {"logLevel": "error", "message": "net::ERR_FAILED"}}
    bed.script([{"warc": "a.warc.gz"}, {"touch": str(mark)}, {"await": str(bed.heard)}, error, {"hang": 30}])
    process = bed.start(ONLY_WARCS, "--enable-monitoring")
    bed.wait_for(mark)
    (bed.output / ".archive_state.json.new").mkdir()
    bed.heard.touch()

    ended = bed.finish(process)

    assert (ended.code, ended.state) == (1, "failed_state_error")
    assert bed.running() == []
    assert len(bed.warcs()) == 1


def test_a_warc_that_the_container_cannot_name_is_its_own_failure(bed: Bed) -> None:
    (bed.output / "warcs").mkdir()
    (bed.output / "warcs" / "a,b.warc.gz").write_bytes(b"x")
    bed.script(GOOD)

    ended = bed.run()

    assert (ended.code, ended.state) == (1, "failed_warc_path_conversion")
    assert len(bed.calls("run")) == 1


def test_a_queue_that_poisons_itself_is_not_resumed_for_ever(bed: Bed) -> None:
    managed = ("--browsertrix-config-json", '{"extraChromeArgs": ["--disable-http2"]}')
    phrase = "ERROR:No entry found to push to the ZIM, WARC file(s) is unprocessable and looks probably mostly empty"
    bed.script([{"warc": "a.warc.gz"}, {"yaml": {"a": 1}}, {"stats": [0, 2, 0, 2]}, {"say": phrase}, {"exit": 1}], GOOD)

    ended = bed.run(ONLY_WARCS, *managed, "--auto-reset-poisoned-state")

    assert ended.code == 0
    assert bed.stages() == ["initial_crawl_-_attempt_1", "new_crawl_phase_-_attempt_2"]
    assert not (bed.output / ".zimit_resume.yaml").exists()
    assert len([name for name in bed.warcs() if name.startswith("warcs/")]) == 2
