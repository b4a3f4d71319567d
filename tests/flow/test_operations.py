"""The operators' commands around zimit's directories: dry unless told, refusing what would lose something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from holdfast.db.models import Execution, Job, Recovery, WarcFile
from holdfast.jobs.endings import RunEnding
from holdfast.jobs.leases import ExecutionLease
from holdfast.operations.crawl_watchdog import DEPLOY_LOCK
from holdfast.worker.runner import StopReason
from holdfast.zimit.output_directory import holder_of
from tests import forked, patience
from tests.flow.commands import Terminal
from tests.flow.zimit_bed import COMMAND, WHOLE, ZimitBed, open_zimit_bed


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[ZimitBed]:
    with open_zimit_bed(tmp_path, None) as made:
        yield made


@pytest.fixture
def terminal(bed: ZimitBed, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(bed.settings.home, capsys)


def _crawled(bed: ZimitBed, *, indexed: bool = True) -> ExecutionLease:
    """Return the lease of a crawl that came to its end."""
    bed.job()
    bed.engine.script(WHOLE)
    lease = bed.take()
    bed.crawl_unseen(lease)
    assert bed.settled(lease) == "completed"
    if indexed:
        bed.index()
        with bed.jobs.database.write() as session:
            session.execute(update(Execution).values(index_state="indexed"))
    return lease


def _temp_dirs(lease: ExecutionLease) -> list[Path]:
    return [path for path in lease.output_dir.iterdir() if path.name.startswith(".tmp")]


@pytest.mark.parametrize(
    "name",
    ["job-storage-report", "verify-warcs", "verify-warc-manifest", "data-integrity-report", "consolidate-warcs",
     "cleanup-job", "compact-warcs", "reset-crawl-state", "run-db-job"],
)  # fmt: skip
def test_a_job_that_is_not_there_ends_with_1(bed: ZimitBed, terminal: Terminal, name: str) -> None:
    said = terminal.type(name, "--id", "77")

    assert (said.code, "77" in said.err) == (1, True), said
    assert terminal.type(name, "--id", "x").code == 2


def test_a_directory_is_weighed_and_the_figures_kept_on_request(bed: ZimitBed, terminal: Terminal) -> None:
    lease = _crawled(bed)

    [row] = terminal.type("job-storage-report", "--id", "1", "--json").object["runs"]
    assert row["warc_files"] == 1
    assert 0 < row["warc_bytes"] < row["output_bytes"]
    assert row["tmp_bytes"] == row["warc_bytes"], "a file with three names counts once"
    assert bed.execution(lease.execution_id).storage == {}

    assert terminal.type("job-storage-report", "--source", "ex", "--apply").code == 0
    stored = bed.execution(lease.execution_id).storage
    assert (stored["warc_bytes"], "scanned_at" in stored) == (row["warc_bytes"], True)


def test_a_clean_up_waits_for_the_index(bed: ZimitBed, terminal: Terminal) -> None:
    lease = _crawled(bed, indexed=False)

    said = terminal.type("cleanup-job", "--id", "1")

    assert (said.code, "only indexed or index_failed runs are cleaned up" in said.err) == (1, True)
    assert len(_temp_dirs(lease)) == 1


@pytest.mark.parametrize(("mode", "status"), [("temp", "temp_cleaned"), ("temp-nonwarc", "temp_nonwarc_cleaned")])
def test_a_clean_up_removes_what_is_temporary_and_the_archive_stays(
    bed: ZimitBed, terminal: Terminal, mode: str, status: str
) -> None:
    lease = _crawled(bed)

    said = terminal.type("cleanup-job", "--id", "1", "--mode", mode, "--json")

    assert (said.code, said.object["temp_dirs"], said.object["state_removed"]) == (0, 1, True), said
    done = bed.execution(lease.execution_id)
    assert (done.cleanup_status, "state_file" in done.artifacts) == (status, False)
    assert done.cleaned_at is not None
    assert _temp_dirs(lease) == []
    assert (bed.settings.home / bed.files()[0].path).is_file()
    again = terminal.type("cleanup-job", "--id", "1", "--mode", mode)
    assert (again.code, "nothing to clean up" in again.out) == (0, True)


def test_a_directory_in_which_a_retry_is_to_go_on_is_left_alone(bed: ZimitBed, terminal: Terminal) -> None:
    bed.job()
    bed.engine.script([{"warc": "a.warc.gz"}, {"exit": 127}])
    lease = bed.take()
    assert bed.settled(lease) == "scheduled"
    assert terminal.type("reset-crawl-state", "--id", "1").code == 0, "it only waits so far"
    bed.jobs.scheduler.tick()

    for name in ("reset-crawl-state", "consolidate-warcs", "compact-warcs", "cleanup-job"):
        said = terminal.type(name, "--execution", str(lease.execution_id))
        assert (said.code, "queued" in said.err) == (1, True), said
        other = terminal.type(name, "--execution", str(lease.execution_id), "--id", "77")
        assert (other.code, "not of job 77" in other.err) == (1, True), other


def test_an_unknown_mode_is_refused(bed: ZimitBed, terminal: Terminal) -> None:
    assert terminal.type("cleanup-job", "--id", "1", "--mode", "all").code == 2


def test_rows_that_name_a_temporary_file_are_never_left_without_it(bed: ZimitBed, terminal: Terminal) -> None:
    lease = _crawled(bed)
    [temporary] = lease.output_dir.glob(".tmp*/collections/crawl-*/archive/*.warc.gz")
    stored = str(temporary.relative_to(bed.settings.home.resolve()))
    with bed.jobs.database.write() as session:
        session.execute(update(WarcFile).values(key=stored))

    refused = terminal.type("cleanup-job", "--id", "1", "--mode", "temp", "--force")
    assert (refused.code, temporary.is_file()) == (1, True)

    assert terminal.type("cleanup-job", "--id", "1", "--mode", "temp-nonwarc").code == 0
    assert bed.files()[0].path.endswith("warcs/warc-000001.warc.gz")
    assert (bed.settings.home / bed.files()[0].path).is_file()


def test_files_that_stand_nowhere_else_are_removed_only_by_force(bed: ZimitBed, terminal: Terminal) -> None:
    lease = _crawled(bed)
    [temp] = _temp_dirs(lease)
    (temp / "only.warc.gz").write_bytes(b"bytes")

    refused = terminal.type("cleanup-job", "--id", "1")
    assert (refused.code, "only.warc.gz" in refused.err) == (1, True)
    assert terminal.type("cleanup-job", "--id", "1", "--force").code == 0
    assert _temp_dirs(lease) == []


def test_where_archived_pages_are_served_temporary_files_go_only_by_force(
    bed: ZimitBed, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = _crawled(bed)
    monkeypatch.setenv("HOLDFAST_REPLAY_ORIGIN", "http://replay.example.org")

    refused = terminal.type("cleanup-job", "--id", "1", "--mode", "temp")
    assert (refused.code, "archived pages are served from this installation" in refused.err) == (1, True)
    assert len(_temp_dirs(lease)) == 1
    assert bed.execution(lease.execution_id).cleanup_status == "none"
    assert terminal.type("cleanup-job", "--id", "1", "--mode", "temp", "--force").code == 0
    assert _temp_dirs(lease) == []


def test_where_archived_pages_are_served_a_clean_up_that_keeps_warc_files_is_free(
    bed: ZimitBed, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = _crawled(bed)
    monkeypatch.setenv("HOLDFAST_REPLAY_ORIGIN", "http://replay.example.org")

    assert terminal.type("cleanup-job", "--id", "1", "--mode", "temp-nonwarc").code == 0
    assert _temp_dirs(lease) == []


def test_files_and_their_manifest_are_verified(bed: ZimitBed, terminal: Terminal, tmp_path: Path) -> None:
    lease = _crawled(bed)
    report, figures = tmp_path / "report.json", tmp_path / "warcs.prom"

    good = terminal.type("verify-warcs", "--id", "1", "--level", "2", "--report", str(report), "--metrics-file",
                         str(figures))  # fmt: skip
    assert (good.code, json.loads(report.read_text())["warcs_ok"]) == (0, 1)
    assert 'holdfast_warc_verify_files{result="ok"} 1.0' in figures.read_text()
    assert terminal.type("verify-warc-manifest", "--id", "1", "--level", "hash").out.endswith("Status: OK\n")
    assert terminal.type("data-integrity-report", "--id", "1", "--json").object["verdict"] == "pass"

    stable = lease.output_dir / "warcs" / "warc-000001.warc.gz"
    stable.write_bytes(stable.read_bytes()[:-20])
    bad = terminal.type("verify-warcs", "--id", "1", "--json")
    assert (bad.code, bad.object["errors"]["corrupt_or_unreadable"]) == (1, 1)
    assert terminal.type("verify-warc-manifest", "--id", "1").out.endswith("Status: FAILED\n")
    assert terminal.type("data-integrity-report", "--id", "1").code == 1


def test_damage_is_moved_aside_and_the_job_crawls_again(bed: ZimitBed, terminal: Terminal) -> None:
    lease = _crawled(bed, indexed=False)
    stable = lease.output_dir / "warcs" / "warc-000001.warc.gz"
    stable.write_bytes(stable.read_bytes()[:-20])  # all three names are one file

    dry = terminal.type("verify-warcs", "--id", "1", "--quarantine")
    assert (dry.code, stable.is_file()) == (1, True)
    said = terminal.type("verify-warcs", "--id", "1", "--quarantine", "--apply", "--json")

    assert (said.code, said.object["runs_again"], len(said.object["quarantined"])) == (1, True, 1)
    assert "warcs_quarantine" in said.object["quarantined"][0]
    assert [file.state for file in bed.files()] == ["discarded"]
    job = bed.row(1)
    assert (job.state, job.current_retry_count) == ("scheduled", 0)
    bed.engine.script([{"warc": "b.warc.gz"}, {"stats": [2, 2, 0, 0]}])
    again = bed.take()
    assert again.output_dir == lease.output_dir
    assert bed.settled(again) == "completed"
    assert [file.state for file in bed.files()] == ["discarded", "sealed"]


def test_nothing_is_moved_that_snapshots_point_into(bed: ZimitBed, terminal: Terminal) -> None:
    _crawled(bed)

    said = terminal.type("verify-warcs", "--id", "1", "--quarantine", "--apply")

    assert (said.code, "snapshots" in said.err) == (1, True)


def test_a_crawl_s_memory_is_forgotten_only_with_apply(bed: ZimitBed, terminal: Terminal) -> None:
    lease = _crawled(bed)

    dry = terminal.type("reset-crawl-state", "--id", "1", "--json").object
    assert (dry["temp_dirs"], dry["state"], dry["applied"], len(_temp_dirs(lease))) == (1, True, False, 1)
    assert terminal.type("reset-crawl-state", "--id", "1", "--apply").code == 0
    assert _temp_dirs(lease) == []
    assert not (lease.output_dir / ".archive_end.json").exists()


def test_smaller_copies_are_measured_then_staged(bed: ZimitBed, terminal: Terminal) -> None:
    _crawled(bed)

    dry = terminal.type("compact-warcs", "--id", "1", "--json").object
    assert (dry["applied"], dry["files"]) == (False, [])
    assert terminal.type("consolidate-warcs", "--id", "1", "--json").object["reused"] == 1


def test_a_directory_that_was_filled_elsewhere_is_registered_and_indexed(bed: ZimitBed, terminal: Terminal) -> None:
    bed.engine.script(WHOLE)
    assert bed.engine.run("--skip-final-build").code == 0
    folder = str(bed.engine.output)

    made = terminal.type("register-job-dir", "--source", "old", "--output-dir", folder, "--name", "old-1", "--json")
    assert (made.code, made.object["warcs"]) == (0, 1), made
    twice = terminal.type("register-job-dir", "--source", "old", "--output-dir", folder)
    assert (twice.code, "is the directory of execution" in twice.err) == (1, True)

    indexed = terminal.type("index-job", "--id", str(made.object["job"]), "--json")
    assert (indexed.code, indexed.object["snapshots"]) == (0, 1), indexed
    shown = terminal.type("show-job", "--id", str(made.object["job"]), "--json").object
    assert (shown["status"], shown["latest_execution"]["items_indexed"]) == ("indexed", 1)
    [snapshot] = bed.snapshots()
    assert (snapshot.backend, snapshot.fidelity) == ("zimit", "high")
    assert terminal.type("register-job-dir", "--source", "old", "--output-dir", folder + "/no").code == 1


def test_a_canary_is_small_and_made_only_with_apply(bed: ZimitBed, terminal: Terminal) -> None:
    bed.job()

    dry = terminal.type("create-canary-job", "--source", "ex", "--json").object
    assert (dry["job"], dry["config"]["zimit"]["passthrough_args"]) == (None, ["--pageLimit", "5", "--depth", "1"])
    made = terminal.type("create-canary-job", "--source", "ex", "--pages", "2", "--apply", "--json").object
    assert bed.row(made["job"]).kind == "canary"
    assert terminal.type("create-canary-job", "--source", "no").code == 1


def _variables(bed: ZimitBed) -> dict[str, str]:
    kept = {name: value for name, value in bed.engine.variables.items() if not name.startswith("HOLDFAST_")}
    return {**kept, "HOLDFAST_ZIMIT_COMMAND": COMMAND, "HOLDFAST_DISK_FREE_BYTES": "0",
            "HOLDFAST_DISK_FREE_PERCENT": "0"}  # fmt: skip


def _typed(bed: ZimitBed, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast.cli.main", *words]
    return forked.run(
        command, capture_output=True, text=True, env=_variables(bed), timeout=patience.deadline(60), check=False
    )


def test_one_run_of_a_job_is_crawled_and_indexed_here_and_now(bed: ZimitBed, terminal: Terminal) -> None:
    bed.job()
    bed.engine.script(WHOLE)

    done = _typed(bed, "run-db-job", "--id", "1", "--json", "--home", str(bed.settings.home))

    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["state"], facts["pages"], facts["index"]) == ("completed", 30, "indexed")
    assert terminal.type("search", "kept", "--json").object["total"] == 1
    again = terminal.type("run-db-job", "--id", "1")
    assert (again.code, "only one that waits" in again.err) == (1, True)


def test_reconcile_indexes_what_status_says_waits(bed: ZimitBed, terminal: Terminal) -> None:
    bed.job()
    bed.engine.script(WHOLE)
    crawled = _typed(bed, "run-db-job", "--id", "1", "--no-index", "--json", "--home", str(bed.settings.home))
    assert json.loads(crawled.stdout)["index"] == "pending", crawled.stderr
    assert terminal.type("status", "--json").object["jobs"]["unindexed"] == 1

    done = terminal.type("reconcile-completed-indexing", "--apply", "--json").object

    assert ([one["execution"] for one in done["unindexed"]], done["indexed"], done["errors"]) == ([1], 1, [])
    assert terminal.type("status", "--json").object["jobs"]["unindexed"] == 0
    assert terminal.type("search", "kept", "--json").object["total"] == 1


def test_zimit_without_a_job_is_refused_when_strict(bed: ZimitBed) -> None:
    words = ("run-job", "--name", "test", "--seeds", "https://example.org/", "--home", str(bed.settings.home))
    strict = {**_variables(bed), "HOLDFAST_API_ENVIRONMENT": "production"}
    command = [sys.executable, "-m", "holdfast.cli.main", *words]

    done = forked.run(command, capture_output=True, text=True, env=strict, timeout=patience.deadline(60), check=False)

    assert (done.returncode, "HOLDFAST_ZIMIT_ACCEPT_UNGUARDED" in done.stderr) == (1, True)
    assert bed.engine.calls("run") == []


def test_the_tool_is_run_without_a_job_and_zimits_flags_stand_behind_two_dashes(
    bed: ZimitBed, terminal: Terminal
) -> None:
    bed.engine.script(WHOLE)
    words = ("run-job", "--name", "test", "--seeds", "https://example.org/")

    done = _typed(bed, *words, "--home", str(bed.settings.home), "--json", "--", "--scopeType", "host")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "success"
    argv = bed.engine.zimit(0)
    assert argv[argv.index("--scopeType") + 1] == "host"
    assert (argv[argv.index("--pageExtraDelay") + 1], "--config" in argv) == ("1", True), "it is as polite as a job"
    assert bed.files() == []
    refused = terminal.type(*words, "--driver", "evil.js")
    assert (refused.code, "--driver" in refused.err) == (1, True)
    before = sorted(bed.settings.home.rglob("*"))
    odd = terminal.type("run-job", "--name", "../../evil", "--seeds", "https://example.org/")
    assert (odd.code, "--name" in odd.err, sorted(bed.settings.home.rglob("*"))) == (1, True, before)


def test_run_job_takes_several_seeds_after_one_flag(bed: ZimitBed) -> None:
    bed.engine.script(WHOLE)
    seeds = ("https://example.org/", "https://example.org/fr/")

    done = _typed(
        bed, "run-job", "--name", "test", "--home", str(bed.settings.home), "--json", "--seeds", *seeds,
        "--", "--scopeType", "host",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    argv = bed.engine.zimit(0)
    assert argv[argv.index("--seeds") + 1] == ",".join(seeds)
    assert argv[argv.index("--scopeType") + 1] == "host"


@pytest.fixture
def stalled(bed: ZimitBed) -> Iterator[tuple[ExecutionLease, list[RunEnding | None]]]:
    """A crawl that runs, and looks as if no page had come for two hours."""
    bed.job(tool_options={"max_container_restarts": 2})
    mark = bed.engine.root / "mark"
    bed.engine.script([{"warc": "a.warc.gz"}, {"queue": {"left": 1}}, {"stats": [1, 9, 1, 0]}, {"touch": str(mark)},
                       {"hang": 60}], WHOLE)  # fmt: skip
    lease = bed.take()
    with bed.running(lease) as (holding, ends):
        bed.engine.wait_for(mark)
        # The container touches the mark; the tool writes the container's output to the log, a moment later.
        bed.engine.wait_until(lambda: _statistics(lease) is not None)
        _age(bed, lease, hours=2)
        yield lease, ends
        holding.ask(StopReason.DISCARD)  # unless the test has ended it


Stalled = tuple[ExecutionLease, list[RunEnding | None]]


def test_status_and_metrics_report_a_stalled_crawl(
    stalled: Stalled, bed: ZimitBed, terminal: Terminal, tmp_path: Path
) -> None:
    status = terminal.type("watchdog-status")
    assert (status.code, "STALLED" in status.out) == (1, True)
    assert terminal.type("watchdog-status", "--json").object["crawls"][0]["pages"] == 1

    figures = tmp_path / "crawls.prom"
    assert terminal.type("metrics-textfile", "--out", str(figures)).code == 0
    text = figures.read_text()
    assert 'holdfast_crawl_running_job_stalled{job_id="1",source="ex"} 1.0' in text
    assert 'holdfast_crawl_running_job_state_file_ok{job_id="1",source="ex"} 1.0' in text
    assert 'holdfast_jobs_by_status{status="running"} 1.0' in text


def test_a_stalled_crawl_is_left_alone_in_a_dry_run_and_during_a_deployment(
    stalled: Stalled, bed: ZimitBed, terminal: Terminal
) -> None:
    [dry] = terminal.type("auto-recover", "--json").object["crawls"]
    assert (dry["action"], dry["done"]) == ("restart_stalled", False)
    assert dry["raised"] == {"max_container_restarts": 6}

    (bed.settings.home / DEPLOY_LOCK).touch()
    quiet = terminal.type("auto-recover", "--apply", "--json").object
    assert (quiet["deploying"], quiet["crawls"]) == (True, [])
    assert holder_of(stalled[0].output_dir) is not None
    assert bed.row(1).config == {}


def test_a_stalled_crawl_is_helped_and_goes_on_where_it_was(
    stalled: Stalled, bed: ZimitBed, terminal: Terminal
) -> None:
    lease, ends = stalled
    [helped] = terminal.type("auto-recover", "--apply", "--json").object["crawls"]
    assert helped["done"] is True
    bed.engine.wait_until(lambda: ends == [None])  # its worker hands it back
    bed.jobs.leases.release(lease)

    with bed.jobs.database.read() as session:
        [row] = session.query(Recovery).all()
    assert (row.action, row.reason, row.pages) == ("restart_stalled", "stalled", 1)
    again = bed.take()
    assert again.execution_id == lease.execution_id
    assert bed.settled(again) == "completed"
    assert "/output/.zimit_resume.yaml" in bed.engine.zimit(1)
    assert bed.row(1).config["zimit"]["tool_options"]["max_container_restarts"] == 6


def _age(bed: ZimitBed, lease: ExecutionLease, *, hours: int) -> None:
    """Let it look as if a crawl had run for hours without a new page."""
    before = bed.jobs.clock.now() - timedelta(hours=hours)
    with bed.jobs.database.write() as session:
        session.execute(update(Job).values(lock_acquired_at=before))
    found = _statistics(lease)
    assert found is not None
    log, line = found
    log.write_text(log.read_text().replace(json.loads(line)["timestamp"], before.isoformat()))
    os.utime(log, (before.timestamp(), before.timestamp()))


def _statistics(lease: ExecutionLease) -> tuple[Path, str] | None:
    """Return the log with a whole line of crawl statistics, and that line; None if it is not written yet."""
    for log in lease.output_dir.glob("archive_*.combined.log"):
        for line in log.read_text().splitlines(keepends=True):
            if "Crawl statistics" in line and line.endswith("\n"):
                return log, line
    return None


def test_a_backoff_is_cut_short_when_nothing_runs_but_never_a_cooldown(bed: ZimitBed, terminal: Terminal) -> None:
    job_id = bed.job()
    later = bed.jobs.clock.now() + timedelta(hours=1)
    waits = {"state": "scheduled", "next_run_at": later, "current_retry_count": 1}
    with bed.jobs.database.write() as session:
        session.execute(update(Job).values(**waits, infra_retry_count=1))
    assert terminal.type("auto-recover", "--apply", "--json").object["woken"] == []
    with bed.jobs.database.write() as session:
        session.execute(update(Job).values(infra_retry_count=0))

    assert terminal.type("auto-recover", "--json").object["woken"] == [job_id]
    assert bed.row(job_id).next_run_at == later
    assert terminal.type("auto-recover", "--apply", "--json").object["woken"] == [job_id]
    woken = bed.row(job_id).next_run_at
    assert woken is not None
    assert woken < later


def test_annual_jobs_get_the_minima_of_annual_crawls(bed: ZimitBed, terminal: Terminal) -> None:
    job_id = bed.job()
    with bed.jobs.database.write() as session:
        watched = {"zimit": {"tool_options": {"enable_monitoring": True}}}
        session.execute(update(Job).values(kind="annual", details={"campaign_year": 2026}, config=watched))

    dry = terminal.type("reconcile-annual-tool-options", "--year", "2026", "--json").object["jobs"]
    wanted = {"max_container_restarts": 20, "error_threshold_timeout": 50, "error_threshold_http": 50,
              "backoff_delay_minutes": 2}  # fmt: skip
    assert [row["raised"] for row in dry] == [wanted]
    assert bed.row(job_id).config == watched
    assert terminal.type("reconcile-annual-tool-options", "--year", "2026", "--apply").code == 0
    options = {"skip_final_build": True, "enable_monitoring": True, **wanted}
    assert bed.row(job_id).config["zimit"]["tool_options"] == options
    assert terminal.type("reconcile-annual-tool-options", "--year", "2025", "--json").object["jobs"] == []
