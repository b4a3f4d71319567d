"""The smaller rules of 1.2 and 1.3, each by the real command: where queues lie, who counts, what is no WARC file."""

from __future__ import annotations

import json
import signal

import pytest

from tests.flow.zimit.bed import Bed, Step

GOOD: list[Step] = [{"warc": "b.warc.gz"}, {"stats": [2, 2, 0, 0]}]
ONLY_WARCS = "--skip-final-build"
EMPTY = "No entry found to push to the ZIM, WARC file(s) is unprocessable and looks probably mostly empty"


def test_workers_among_zimits_flags_win(bed: Bed) -> None:
    bed.script(GOOD)

    assert bed.run(ONLY_WARCS, "--initial-workers", "3", "--workers=5").code == 0
    assert bed.workers() == ["5"]
    assert bed.state()["initial_workers"] == 5


@pytest.mark.parametrize(
    "shape",
    ["collections/crawl-1/crawls/crawl-9.yml", "crawls/mine.yaml", "collections/crawl-1/crawl-9.yaml"],
)  # fmt: skip
def test_a_queue_is_found_in_each_of_its_places_and_old_workers_are_capped(bed: Bed, shape: str) -> None:
    saved = bed.output / ".tmpold" / shape
    saved.parent.mkdir(parents=True)
    saved.write_text("left: 7\n")
    (bed.output / ".archive_state.json").write_text(json.dumps({"current_workers": 8}))
    bed.script(GOOD)

    assert bed.run(ONLY_WARCS, "--initial-workers", "2").code == 0
    assert bed.stages() == ["resume_crawl_-_attempt_1"]
    assert (bed.output / ".zimit_resume.yaml").read_text() == "left: 7\n"
    assert bed.workers() == ["2"]


def test_a_directory_that_is_not_announced_is_the_newest_and_both_outputs_have_logs(bed: Bed) -> None:
    (bed.output / ".tmpold").mkdir()
    bed.script([{"mute": True}, {"yaml": {"left": 3}}, {"err": "to the other"}, {"exit": 9}], GOOD)

    ended = bed.run(ONLY_WARCS)

    assert ended.code == 0
    assert bed.stages() == ["initial_crawl_-_attempt_1", "resume_crawl_-_attempt_2"]
    assert json.loads((bed.output / ".zimit_resume.yaml").read_text()) == {"left": 3}
    logs = {path.name.split(".", 1)[1]: path.read_text() for path in bed.output.glob("archive_initial*")}
    assert sorted(logs) == ["combined.log", "stderr.log", "stdout.log"]
    assert logs["stderr.log"] == "to the other\n"
    assert "to the other" in logs["combined.log"]
    assert "to the other" not in logs["stdout.log"]


def test_a_standstill_with_an_unknown_number_of_pending_pages_is_one(bed: Bed) -> None:
    unknown = {"context": "crawlStatus", "message": "Crawl statistics", "details": {"crawled": 1, "total": 9}}
    bed.script([{"queue": {"left": 1}}, {"event": unknown}, {"hang": 30}], GOOD)

    ended = bed.run(ONLY_WARCS, "--enable-monitoring", "--stall-timeout-minutes", "20", "--enable-adaptive-restart")

    assert ended.code == 0
    assert '"reason": "timeout"' in ended.err
    assert bed.state()["container_restarts_done"] == 1


def test_a_container_that_shows_up_late_is_found_and_stopped_by_its_id(bed: Bed) -> None:
    bed.script([{"warc": "a.warc.gz"}, {"hang": 30}], hidden=3)
    process = bed.start(ONLY_WARCS)
    bed.wait_to_hear(process, "container.started")
    process.send_signal(signal.SIGTERM)

    assert bed.finish(process).state == "stopped"
    asked = [call for call in bed.calls("ps") if "archive_job" in call[3]]
    assert len(asked) == 4
    assert len(bed.calls("stop")) == 1


def test_a_queue_without_managed_settings_is_resumed_whatever_the_last_build_said(bed: Bed) -> None:
    (bed.output / ".zimit_resume.yaml").write_text("left: 2\n")
    log = bed.output / "archive_resume_crawl_-_attempt_1_20200101_000000.combined.log"
    log.write_text(f"ERROR:{EMPTY}\n")
    bed.script(GOOD)

    assert bed.run(ONLY_WARCS, "--auto-reset-poisoned-state").code == 0
    assert "/output/.zimit_resume.yaml" in bed.zimit(0)


def test_names_go_on_after_the_highest_and_a_broken_manifest_is_made_anew_without_what_is_no_file(bed: Bed) -> None:
    (bed.output / "warcs").mkdir()
    (bed.output / "warcs" / "warc-000007.warc.gz").write_bytes(b"seven")
    (bed.output / "warcs" / "manifest.json").write_text('{"entries": 3')
    temp = bed.output / ".tmpold" / "collections" / "crawl-1" / "archive"
    temp.mkdir(parents=True)
    (temp / "empty.warc.gz").touch()
    (temp / "dangling.warc.gz").symlink_to(temp / "nowhere")
    (temp / "plain.warc").write_bytes(b"plain")
    (temp / "notes.txt").write_bytes(b"x")
    bed.script(GOOD)

    assert bed.run(ONLY_WARCS).code == 0
    assert bed.stages() == ["new_crawl_phase_-_attempt_1"]
    entries = json.loads((bed.output / "warcs" / "manifest.json").read_text())["entries"]
    assert sorted(entry["stable_name"] for entry in entries) == [
        "warc-000007.warc.gz", "warc-000008.warc", "warc-000009.warc.gz",
    ]  # fmt: skip
    again = bed.run(ONLY_WARCS)
    assert again.code == 0
    assert len(json.loads((bed.output / "warcs" / "manifest.json").read_text())["entries"]) == 4
