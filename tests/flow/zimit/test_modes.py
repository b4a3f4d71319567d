"""The run modes end to end: fresh, resumed, a new phase over earlier WARC files, overwritten, and in the way."""

from __future__ import annotations

import json
import os
from pathlib import Path

from holdfast.zimit.output_directory import read_mapping
from tests.flow.zimit.bed import Bed, Step

GOOD: list[Step] = [{"warc": "a.warc.gz"}, {"stats": [2, 2, 0, 0]}]
ONLY_WARCS = "--skip-final-build"


def _temp_dir(bed: Bed, name: str = ".tmpold", *, warc: bool = True, queue: str | None = None) -> Path:
    """Leave behind what an earlier run leaves."""
    folder = bed.output / name / "collections" / "crawl-1"
    (folder / "archive").mkdir(parents=True)
    (folder / "crawls").mkdir()
    if warc:
        (folder / "archive" / "old.warc.gz").write_bytes(b"an old record")
    if queue is not None:
        (folder / "crawls" / "crawl-1.yaml").write_text(queue)
    return folder


def _config(bed: Bed, turn: int = 0) -> str | None:
    words = bed.zimit(turn)
    return words[words.index("--config") + 1] if "--config" in words else None


def test_a_fresh_crawl_ends_well_and_its_warcs_get_stable_names(bed: Bed) -> None:
    bed.script(GOOD)

    ended = bed.run(ONLY_WARCS, "--initial-workers", "3")

    assert (ended.code, ended.state) == (0, "success"), ended.err
    assert bed.stages() == ["initial_crawl_-_attempt_1"]
    assert "warcs/warc-000001.warc.gz" in bed.warcs()
    state = bed.state()
    assert state["current_workers"] == state["initial_workers"] == 3
    assert [Path(path).name[:4] for path in state["temp_dirs_host_paths"]] == [".tmp"]
    manifest = json.loads((bed.output / "warcs" / "manifest.json").read_text())
    assert manifest["version"] == 1
    assert [entry["link_type"] for entry in manifest["entries"]] == ["hardlink"]


def test_docker_is_called_with_bounds_labels_and_always_keep(bed: Bed) -> None:
    bed.script(GOOD)

    bed.run_installed(ONLY_WARCS, "--docker-shm-size", "1g", "--scopeType", "host", "--depth", "-1")

    argv = bed.calls("run")[0]
    assert argv[:4] == ["run", "--rm", "-v", f"{bed.output}:/output"]
    label = argv[argv.index("--label") + 1]
    assert label.startswith("archive_job=archive-job-")
    assert len(label.rpartition("-")[2]) == 8
    for flag, value in (("--memory", "4g"), ("--memory-swap", "4g"), ("--memory-swappiness", "10"), ("--cpus", "1.5")):
        assert argv[argv.index(flag) + 1] == value
    assert argv[argv.index("--shm-size") + 1] == "1g"
    words = bed.zimit(0)
    assert words[:2] == ["--seeds", "https://example.org/"]
    assert words[-3:] == ["--keep", "--output", "/output"]
    assert words[words.index("--scopeType") + 1] == "host"
    assert "--depth=-1" in words
    seen = set(bed.raw_calls()[0]["env"])
    assert not {name for name in seen if "DATABASE" in name or "TOKEN" in name}


def test_a_saved_queue_is_resumed_with_its_counters_and_the_managed_settings(bed: Bed) -> None:
    _temp_dir(bed, queue="seeds: [https://example.org/]\nextraChromeArgs: [--mine]\nstate: {queued: [1]}\n")
    (bed.output / ".archive_state.json").write_text(json.dumps({"current_workers": 2, "worker_reductions_done": 1}))
    bed.script(GOOD)

    ended = bed.run(
        ONLY_WARCS, "--initial-workers", "4", "--browsertrix-config-json", '{"extraChromeArgs": ["--disable-http2"]}'
    )

    assert ended.code == 0
    assert bed.stages() == ["resume_crawl_-_attempt_1"]
    assert bed.workers() == ["2"]
    assert bed.state()["worker_reductions_done"] == 1
    assert _config(bed) == "/output/.zimit_resume.yaml"
    merged = read_mapping(bed.output / ".zimit_resume.yaml")
    assert merged is not None
    assert merged["extraChromeArgs"] == ["--disable-http2", "--mine"]
    assert merged["state"] == {"queued": [1]}


def test_the_stable_queue_wins_over_a_newer_one(bed: Bed) -> None:
    _temp_dir(bed, queue="from: temp\n")
    (bed.output / ".zimit_resume.yaml").write_text("from: stable\n")
    bed.script(GOOD)

    bed.run(ONLY_WARCS)

    assert bed.stages() == ["resume_crawl_-_attempt_1"]
    assert (bed.output / ".zimit_resume.yaml").read_text() == "from: stable\n"


def test_a_half_written_queue_is_none_and_earlier_warcs_are_joined(bed: Bed) -> None:
    _temp_dir(bed, queue="seeds: [https://exam")
    (bed.output / ".archive_state.json").write_text(json.dumps({"current_workers": 1, "container_restarts_done": 4}))
    bed.script(GOOD)

    ended = bed.run(ONLY_WARCS, "--initial-workers", "2")

    assert ended.code == 0
    assert bed.stages() == ["new_crawl_phase_-_attempt_1"]
    assert bed.state()["container_restarts_done"] == 0
    assert bed.workers() == ["2"]
    assert {"warcs/warc-000001.warc.gz", "warcs/warc-000002.warc.gz"} <= set(bed.warcs())


def test_a_finished_zim_is_in_the_way_of_a_build_and_of_nothing_else(bed: Bed) -> None:
    (bed.output / "job.zim").write_bytes(b"ZIM")
    bed.script(GOOD)

    refused = bed.run()
    skipped = bed.run(ONLY_WARCS)

    assert (refused.code, refused.state) == (1, "failed")
    assert "--overwrite" in refused.err
    assert skipped.code == 0
    assert len(bed.calls("run")) == 1


def test_overwriting_begins_anew_and_builds_from_its_own_warcs(bed: Bed) -> None:
    _temp_dir(bed, queue="from: before\n")
    (bed.output / ".zimit_resume.yaml").write_text("from: before\n")
    (bed.output / ".archive_state.json").write_text(json.dumps({"current_workers": 1, "worker_reductions_done": 2}))
    (bed.output / "job.zim").write_bytes(b"ZIM")
    bed.script(GOOD, [{"zim": "job.zim"}])

    ended = bed.run("--overwrite", "--initial-workers", "3", "--title", "A title", "--scopeType", "host")

    assert ended.code == 0, ended.err
    assert bed.stages() == ["initial_crawl_-_attempt_1", "final_build"]
    assert bed.workers() == ["3"]
    assert _config(bed) is None
    build = bed.zimit(1)
    warcs = build[build.index("--warcs") + 1].split(",")
    assert len(warcs) == 1
    assert warcs[0].startswith("/output/warcs/warc-")
    assert "--title" in build
    assert "--scopeType" not in build
    assert {"--overwrite", "--keep"} <= set(build)


def test_a_final_build_joins_all_warcs_and_a_failed_one_leaves_only_the_build_to_do(bed: Bed) -> None:
    _temp_dir(bed)
    bed.script(GOOD, [{"say": "conversion failed"}, {"exit": 9}], [])

    ended = bed.run()

    assert (ended.code, ended.state) == (1, "warc_complete_finalization_failed")
    build = bed.zimit(1)
    assert build[build.index("--warcs") + 1].count(",") == 1
    assert len(bed.calls("run")) == 2

    again = bed.run("--resume-policy", "fresh_only")

    assert (again.code, again.state) == (0, "success")
    assert bed.stages()[1:] == ["final_build", "final_build"]
    assert "--warcs" in bed.zimit(2)


def test_a_build_without_warcs_is_its_own_failure(bed: Bed) -> None:
    bed.script([{"stats": [1, 1, 0, 0]}])

    ended = bed.run()

    assert (ended.code, ended.state) == (1, "failed_no_warcs")


def test_fresh_only_keeps_the_warcs_and_clears_the_queue(bed: Bed) -> None:
    _temp_dir(bed, queue="from: before\n")
    (bed.output / ".zimit_resume.yaml").write_text("from: before\n")
    bed.script(GOOD)

    ended = bed.run(ONLY_WARCS, "--resume-policy", "fresh_only")

    assert ended.code == 0
    assert bed.stages() == ["new_crawl_phase_-_attempt_1"]
    assert not (bed.output / ".tmpold").exists()
    assert not (bed.output / ".zimit_resume.yaml").exists()
    assert (bed.output / "warcs" / "warc-000001.warc.gz").read_bytes() == b"an old record"


def test_too_many_temporary_directories_are_cleared_with_their_warcs_kept(bed: Bed) -> None:
    for number in range(3):
        _temp_dir(bed, f".tmp{number}", queue="from: before\n")
    bed.script(GOOD)

    ended = bed.run(ONLY_WARCS, "--max-temp-dirs-before-reset", "2")

    assert ended.code == 0
    assert bed.stages() == ["new_crawl_phase_-_attempt_1"]
    assert len([name for name in bed.warcs() if name.startswith("warcs/")]) == 4
    assert not (bed.output / ".tmp0").exists()


def test_a_poisoned_queue_is_not_resumed_and_is_cleared_on_request(bed: Bed) -> None:
    managed = ("--browsertrix-config-json", '{"extraChromeArgs": ["--disable-http2"]}')
    phrase = "No entry found to push to the ZIM, WARC file(s) is unprocessable and looks probably mostly empty"
    _temp_dir(bed, queue="from: before\n")
    log = bed.output / "archive_resume_crawl_-_attempt_1_20200101_000000.combined.log"
    stats = {"context": "crawlStatus", "message": "Crawl statistics"}
    details = {"crawled": 0, "total": 2, "pending": 0, "failed": 2}
    log.write_text(f"{json.dumps({**stats, 'details': details})}\nERROR:{phrase}\n")
    os.utime(log, (1, 1))
    bed.script(GOOD)

    kept = bed.run(ONLY_WARCS, *managed)
    for path in bed.output.glob("archive_new*"):
        path.unlink()
    (bed.output / ".zimit_resume.yaml").write_text("from: before\n")
    cleared = bed.run(ONLY_WARCS, *managed, "--auto-reset-poisoned-state")

    assert kept.code == cleared.code == 0
    assert bed.stages()[-1] == "new_crawl_phase_-_attempt_1"
    assert "resume_crawl_-_attempt_1" not in bed.stages()[1:]
    assert _config(bed, 0) == "/output/.browsertrix_managed_config.yaml"
    assert not (bed.output / ".tmpold").exists()
    assert not (bed.output / ".zimit_resume.yaml").exists()


def test_cleanup_removes_everything_but_the_warcs(bed: Bed) -> None:
    bed.script([*GOOD, {"yaml": {"a": 1}}])

    ended = bed.run(ONLY_WARCS, "--cleanup")

    assert ended.code == 0
    assert bed.warcs() == ["warcs/warc-000001.warc.gz"]
    assert not list(bed.output.glob(".tmp*"))
    assert not (bed.output / ".archive_state.json").exists()


def test_a_dry_run_prints_the_plan_and_touches_nothing(bed: Bed) -> None:
    _temp_dir(bed, queue="from: before\n")
    before = sorted(bed.output.rglob("*"))

    ended = bed.run("--dry-run", "--enable-monitoring", "--enable-adaptive-workers", "--initial-workers", "2")

    assert ended.code == 0
    assert "run mode: Resume" in ended.out
    assert "--keep" in ended.out
    assert "adaptive: workers" in ended.out
    assert bed.raw_calls() == []
    assert sorted(bed.output.rglob("*")) == before


def test_container_limits_come_from_the_flags(bed: Bed) -> None:
    bed.script(GOOD)

    bed.run(ONLY_WARCS, "--docker-memory", "8g", "--docker-cpus", "3")

    argv = bed.calls("run")[0]
    for flag, value in (("--memory", "8g"), ("--memory-swap", "8g"), ("--cpus", "3")):
        assert argv[argv.index(flag) + 1] == value
    assert bed.run(ONLY_WARCS, "--docker-cpus", "0").code != 0
