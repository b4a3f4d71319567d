"""Watching a crawl: stalls and errors are noticed in their order, and answered in theirs."""

from __future__ import annotations

from pathlib import Path

from holdfast.zimit.logs import crawl_statistics
from tests.flow.zimit.bed import Bed, Step

GOOD: list[Step] = [{"warc": "b.warc.gz"}, {"stats": [2, 2, 0, 0]}]
HANG: list[Step] = [{"warc": "a.warc.gz"}, {"queue": {"left": 1}}, {"hang": 30}]
WATCH = ("--skip-final-build", "--enable-monitoring", "--stall-timeout-minutes", "20", "--backoff-delay-minutes", "1")
"""Scaled: a look every 30 ms, a stall after 1.2 s (a container must be at work by then), patience of 0.06 s."""
PATIENT = (*WATCH, "--stall-timeout-minutes", "500")
"""The same, but nothing counts as a stall."""
TIMEOUT: Step = {"event": {"logLevel": "error", "message": "Navigation timeout of 90000 ms exceeded"}}
HTTP: Step = {"event": {"logLevel": "warn", "message": "net::ERR_HTTP2_PROTOCOL_ERROR"}}


def _many(count: int, step: Step) -> Step:
    return {"times": {"count": count, "step": step}}


def test_a_crawl_without_statistics_gets_fewer_workers_and_resumes_the_same_attempt(bed: Bed) -> None:
    bed.script(HANG, HANG, GOOD)

    ended = bed.run(*WATCH, "--enable-adaptive-workers", "--initial-workers", "3", "--min-workers", "1")

    assert ended.code == 0, ended.err
    assert bed.stages() == ["initial_crawl_-_attempt_1", *["resume_crawl_-_attempt_1"] * 2]
    assert bed.workers() == ["3", "2", "1"]
    assert '"reason": "no_stats"' in ended.err
    assert (bed.state()["worker_reductions_done"], bed.state()["current_workers"]) == (2, 1)
    assert len(bed.calls("stop")) == 2
    assert len([name for name in bed.warcs() if name.startswith("warcs/")]) == 3


def test_a_standstill_is_noticed_while_pages_are_pending(bed: Bed) -> None:
    bed.script([{"warc": "a.warc.gz"}, {"queue": {"left": 1}}, {"stats": [1, 9, 1, 0]}, {"hang": 30}], GOOD)

    ended = bed.run(*WATCH, "--enable-adaptive-restart", "--max-container-restarts", "1")

    assert ended.code == 0
    assert '"reason": "timeout"' in ended.err
    assert bed.state()["container_restarts_done"] == 1


def test_a_crawl_with_nothing_pending_may_take_its_time(bed: Bed) -> None:
    bed.script([{"stats": [1, 9, 0, 0]}, {"sleep": 2.4}, *GOOD])

    ended = bed.run(*WATCH, "--enable-adaptive-restart", "--stall-timeout-minutes", "30")

    assert ended.code == 0
    assert len(bed.calls("run")) == 1
    assert "crawl.trouble" not in ended.err


def test_timeouts_over_their_threshold_restart_the_container_until_the_limit(bed: Bed) -> None:
    steps = [{"queue": {"left": 1}}, _many(3, TIMEOUT)]
    bed.script([*steps, {"hang": 30}], [*steps, {"await": str(bed.heard)}, *GOOD])
    process = bed.start(
        *PATIENT, "--error-threshold-timeout", "3", "--enable-adaptive-restart", "--max-container-restarts", "1",
    )  # fmt: skip
    bed.wait_to_hear(process, '"event": "crawl.backoff"')

    ended = bed.finish(process)

    assert ended.code == 0
    assert ended.err.count('"reason": "timeout_threshold"') >= 2
    assert bed.state()["container_restarts_done"] == 1


def test_http_errors_without_any_strategy_lead_to_patience(bed: Bed) -> None:
    bed.script([_many(5, HTTP), {"await": str(bed.heard)}, *GOOD])
    process = bed.start(*PATIENT, "--error-threshold-http", "5")
    bed.wait_to_hear(process, '"event": "crawl.backoff"')

    ended = bed.finish(process)

    assert ended.code == 0
    assert len(bed.calls("run")) == 1
    assert '"reason": "http_threshold"' in ended.err
    assert bed.state()["error_counts"]["http"] == 0


def test_errors_below_the_threshold_and_before_progress_do_not_count(bed: Bed) -> None:
    progress: list[Step] = [{"stats": [1, 9, 1, 0]}, _many(4, HTTP), {"stats": [2, 9, 1, 0]}, _many(4, HTTP)]
    bed.script([*progress, {"sleep": 0.2}, *GOOD])

    ended = bed.run(*PATIENT, "--error-threshold-http", "5")

    assert "crawl.trouble" not in ended.err


def _vpn(bed: Bed, text: str) -> Path:
    """Put a VPN command on PATH that notes each call."""
    calls = bed.root / "vpn.log"
    said = "' '.join([*sys.argv[1:], *sorted(os.environ)]) + '\\n'"
    note = f"import sys, os, time\nopen({str(calls)!r}, 'a').write({said})\n"
    bed.program("vpn-connect", note + text)
    calls.touch()
    return calls


def test_strategies_go_from_workers_over_vpn_to_restart(bed: Bed) -> None:
    calls = _vpn(bed, "")
    bed.script(HANG, [*HANG[:2], {"stats": [1, 9, 1, 0]}, {"hang": 30}], GOOD)

    ended = bed.run(
        *WATCH, "--initial-workers", "2", "--enable-adaptive-workers", "--max-worker-reductions", "1",
        "--enable-vpn-rotation", "--vpn-connect-command", "vpn-connect --country 'New Zealand'",
        "--max-vpn-rotations", "1", "--enable-adaptive-restart", "--max-container-restarts", "1",
    )  # fmt: skip

    assert ended.code == 0, ended.err
    state = bed.state()
    assert (state["worker_reductions_done"], state["vpn_rotations_done"], state["container_restarts_done"]) == (1, 1, 1)
    assert bed.workers() == ["2", "1", "1"]
    called = calls.read_text().splitlines()
    assert len(called) == 1
    assert called[0].startswith("--country New Zealand ")
    assert "HOLDFAST_DATABASE_URL" not in called[0]
    order = [ended.err.index(word) for word in ("crawl.workers_reduced", "vpn.rotated", "crawl.restart")]
    assert order == sorted(order)


def test_a_vpn_is_not_changed_more_often_than_it_may(bed: Bed) -> None:
    calls = _vpn(bed, "")
    bed.script([*HANG[:2], {"hang": 30}], GOOD)

    ended = bed.run(
        *WATCH, "--enable-vpn-rotation", "--vpn-connect-command", "vpn-connect", "--max-vpn-rotations", "9",
        "--vpn-rotation-frequency-minutes", "6000", "--enable-adaptive-restart",
    )  # fmt: skip

    assert ended.code == 0
    assert len(calls.read_text().splitlines()) == 1
    assert (bed.state()["vpn_rotations_done"], bed.state()["container_restarts_done"]) == (1, 1)


def test_a_vpn_command_that_hangs_or_is_missing_is_not_counted(bed: Bed) -> None:
    _vpn(bed, "time.sleep(30)")

    for words in ("vpn-connect hang", "no-such-command"):
        bed.script(HANG, GOOD)
        ended = bed.run(
            *WATCH, "--enable-vpn-rotation", "--vpn-connect-command", words, "--enable-adaptive-restart",
            "--resume-policy", "fresh_only",
        )  # fmt: skip

        assert ended.code == 0, ended.err
        assert bed.state()["vpn_rotations_done"] == 0
        assert bed.state()["container_restarts_done"] == 1
        for path in (bed.engine / "containers").iterdir():
            path.unlink()


def test_a_container_that_ignores_the_signal_is_killed_after_its_grace_with_its_warcs(bed: Bed) -> None:
    bed.script([{"deaf": True}, *HANG], GOOD)

    ended = bed.run(*WATCH, "--enable-adaptive-restart")

    assert ended.code == 0
    assert bed.calls("stop")[0][1:3] == ["-t", "1"]
    assert len([name for name in bed.warcs() if name.startswith("warcs/")]) == 2


def test_hostile_lines_are_neither_progress_nor_errors(bed: Bed) -> None:
    """W13: an endless line, bytes that are no text, and statistics that a page only talks about."""
    fake = '{"context": "crawlStatus", "message": "Crawl statistics", "details": {"crawled": 99, "total": 99}}'
    title = {"event": {"context": "pageStatus", "message": "Page Finished", "details": {"title": fake}}}
    error = {"event": {"context": "pageStatus", "message": "Page Finished", "details": {"title": "net::ERR_FAILED"}}}
    bed.script([
        {"stats": [1, 2, 1, 0]}, title, _many(20, error), {"long": 8 << 20}, {"bytes": "ff00fe8080"},
        {"event": {"context": "crawlStatus", "message": "Crawl statistics", "details": {}}}, {"sleep": 0.2},
        {"warc": "a.warc.gz"},
    ])  # fmt: skip

    ended = bed.run(*PATIENT, "--error-threshold-http", "5")

    assert ended.code == 0
    assert "crawl.trouble" not in ended.err
    found = crawl_statistics(bed.output)
    assert found is not None
    assert (found.crawled, found.total) == (1, 2)
