"""`holdfast job` and its flat names, as people type them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import config
from holdfast.cli.job_show import news
from holdfast.db.models import Execution, Job, WarcFile
from holdfast.jobs.endings import FailureCause, RunEnding, RunResult
from holdfast.jobs.journal import LogBook
from holdfast.jobs.specs import JobSpec
from holdfast.sources import registry
from holdfast.sources.queries import find_source
from holdfast.wiring.jobs import Jobs, open_jobs
from tests.jobs_bed import holder
from tests.typed import Typist


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Typist:
    """A house with one source."""
    typist = Typist(tmp_path / "home", capsys)
    typist("source create ex --seed https://example.org")
    return typist


@pytest.fixture(scope="module")
def _unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A house that no test changes: one source without a job, and the presets with one for hc."""
    home = tmp_path_factory.mktemp("unchanged") / "home"
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        ex = {"code": "ex", "config": {"seeds": ["https://example.org/"]}}
        registry.create(session, jobs.clock, registry.read_spec(ex))
        registry.seed_presets(session, jobs.clock)
        jobs.actions.upsert(session, JobSpec(source_id=find_source(session, "hc").id))
    return home


@pytest.fixture
def refused(_unchanged: Path, capsys: pytest.CaptureFixture[str]) -> Typist:
    """Types mistakes."""
    return Typist(_unchanged, capsys)


def _with(typed: Typist, do: Callable[[Jobs], Any]) -> Any:
    with open_jobs(config.load(home=typed.home)) as jobs:
        return do(jobs)


def _run(typed: Typist, ending: RunEnding, *, lines: int = 0) -> int:
    """Let what is due be run and end like this; return the execution's id."""

    def run(jobs: Jobs) -> int:
        jobs.scheduler.tick()
        lease = jobs.leases.take(holder(jobs.database, "w1"))
        assert lease is not None, "nothing is due"
        book = LogBook(jobs.database, jobs.clock, lease.execution_id, jobs.settings.jobs)
        for number in range(lines):
            book.write("info" if number else "error", "crawler.fetch", f"line {number}", url="https://example.org/")
        book.flush()
        jobs.leases.settle(lease, ending)
        return lease.execution_id

    return int(_with(typed, run))


def _change(typed: Typist, job_id: int, **values: Any) -> None:
    def change(jobs: Jobs) -> None:
        with jobs.database.write() as session:
            row = session.get_one(Job, job_id)
            for name, value in values.items():
                setattr(row, name, value)

    _with(typed, change)


FAILED = RunEnding(result=RunResult.FAILED, failure=FailureCause.CONFIG, error="it broke")
INDEX_FAILED = RunEnding(result=RunResult.COMPLETED, index_state="index_failed")


def test_a_job_through_its_states(typed: Typist) -> None:
    made = typed("create-job --source ex --every 6h --page-limit 100 --depth 2 --json").object
    assert (made["state"], made["status"], made["created"]) == ("scheduled", "queued", True)
    assert made["config"] == {"max_pages": 100, "max_depth": 2}
    assert made["name"].startswith("ex-20")
    assert typed("job pause 1").out == "job 1: paused\n"
    assert typed("job resume --id 1 --json").object["state"] == "scheduled"
    assert typed("job run-now 1").out.startswith("job 1: pending; next run ")
    edited = typed("job edit 1 --every 1d --max-retries 5 --no-adaptive --set delay_s=3 --json").object
    assert (edited["interval_minutes"], edited["interval_type"], edited["max_retries"]) == (1, "days", 5)
    assert (edited["adaptive_scheduling"], edited["config"]["delay_s"], edited["state"]) == (False, 3, "pending")
    assert edited["config"]["max_pages"] == 100, "what is not named stays"
    assert typed("job cancel 1").out == "job 1: cancelled\n"
    assert "holdfast create-job --source ex" in typed("job resume 1").err
    assert typed("create-job --source ex --once --json").object["state"] == "pending", "as the hint says"
    typed("job cancel 1")
    assert typed("job delete 1 --json").object == {"id": 1, "deleted": True}
    assert typed("show-job --id 1").code == 1


def test_asking_for_a_run_never_drops_a_schedule(typed: Typist) -> None:
    typed("create-job --source ex --every 6h")
    refused = typed("create-job --source ex")
    assert (refused.code, "holdfast job run-now 1" in refused.err) == (1, True)
    assert typed("job show 1 --json").object["interval_minutes"] == 6

    once = typed("create-job --source ex --once --json").object
    assert (once["interval_minutes"], once["state"], once["created"]) == (None, "pending", False)


def test_a_failed_job_is_shown_explained_and_retried(typed: Typist) -> None:
    typed("create-job --source ex")
    execution = _run(typed, FAILED, lines=3)
    assert "failed" in typed("list-jobs --status failed").out
    shown = typed("show-job --id 1 --json").object
    assert (shown["status"], shown["error"], shown["stats"]["failed_runs"]) == ("failed", "it broke", 1)
    runs = typed("job executions 1 --json").object
    assert (runs["total"], runs["executions"][0]["id"], runs["executions"][0]["failure"]) == (
        1, execution, "infra_error_config",
    )  # fmt: skip
    lines = [json.loads(line) for line in typed("job logs 1 --json").out.splitlines()]
    assert [line["message"] for line in lines] == ["line 0", "line 1", "line 2"]
    assert [line["level"] for line in lines] == ["error", "info", "info"]
    assert typed("job logs 1 --level error --follow").out.endswith("fetch      line 0 url=https://example.org/\n")
    assert typed("job logs 1 --tail 1").out.count("\n") == 1
    assert typed("job logs 1 --all --execution 1").out.count("\n") == 3
    told = [json.loads(line)["status"] for line in typed("job events 1 --json").out.splitlines()]
    assert told == ["pending", "pending", "running", "failed", "failed"]
    after = json.loads(typed("job events --json --limit 1 --after 4").out)
    assert after["id"] == 5

    assert typed("retry-job --id 1").out == "job 1: retryable, to run again with its whole retry budget\n"
    assert [job["id"] for job in typed("list-jobs --status retryable --json").object["jobs"]] == [1]
    again = typed("retry-job --id 1")
    assert (again.code, "job 1 is retryable; only failed and index_failed" in again.err) == (1, True)


def test_a_log_is_followed_to_the_end_of_its_execution(typed: Typist) -> None:
    typed("create-job --source ex")
    with open_jobs(config.load(home=typed.home)) as jobs:
        jobs.scheduler.tick()
        lease = jobs.leases.take(holder(jobs.database, "w1"))
        assert lease is not None
        book = LogBook(jobs.database, jobs.clock, lease.execution_id, jobs.settings.jobs)
        book.write("info", "crawler.fetch", "first")
        book.flush()
        following = news(jobs.database, lease.execution_id, 0, "info")
        assert next(following).message == "first"
        book.write("info", "crawler.fetch", "last")
        book.flush()
        jobs.leases.settle(lease, FAILED)

        assert [line.message for line in following] == ["last"]


def test_where_only_the_index_failed_only_the_index_is_tried_again(typed: Typist) -> None:
    typed("create-job --source ex")
    execution = _run(typed, INDEX_FAILED)
    assert typed("job show 1 --json").object["status"] == "index_failed"

    assert typed("retry-job --id 1 --json").object["retried"] == "index_reset"

    def look(jobs: Jobs) -> tuple[str, str | None, str | None]:
        with jobs.database.read() as session:
            run = session.get_one(Execution, execution)
            return run.state, run.index_state, session.get_one(Job, 1).state

    assert _with(typed, look) == ("completed", "pending", "completed")
    assert typed("retry-job --id 1").code == 1


def test_tool_options_are_patched_only_with_apply_and_only_while_nobody_runs_them(typed: Typist) -> None:
    typed("seed-sources")
    typed("create-job --source hc --set backend=zimit")
    before = typed("job show 1 --json").object["config"]
    assert before == {"backend": "zimit"}
    assert "--relax-perms" in typed("validate-job-config --id 1").out, "no strict installation"
    line = "patch-job-config --id 1 --set-tool-option initial_workers=4 --set-execution-policy resume_policy=fresh_only"
    assert "do it with --apply" in typed(line).out
    assert typed("job show 1 --json").object["config"] == before

    done = typed(f"{line} --apply --json").object
    options = typed("job show 1 --json").object["config"]["zimit"]
    assert (done["applied"], options["tool_options"]["initial_workers"], options["tool_options"]["overwrite"]) == (
        True, 4, False,
    )  # fmt: skip
    assert options["execution_policy"] == {"resume_policy": "fresh_only"}
    assert "--initial-workers 4" in typed("validate-job-config --id 1").out
    _run(typed, INDEX_FAILED)
    refused = typed(f"{line} --apply")
    assert (refused.code, "job 1 is index_failed" in refused.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--set-tool-option nope=1", "tool_options.nope: there is no such option"),
        ("--set-tool-option initial_workers", "is no KEY=VALUE"),
        ("--set-tool-option initial_workers=many", "'many' is not a whole number"),
        ("--set-tool-option enable_monitoring=false", "it needs enable_monitoring"),
        ("--set-tool-option initial_workers=0", "it must be at least 1"),
        ("--set-tool-option vpn_connect_command=rm", "commands come from the server's settings"),
        ("--set-execution-policy capture_backend=x", "must be one of"),
        ("", "nothing to set"),
    ],
)
def test_a_patch_that_cannot_be_is_refused_with_one(refused: Typist, words: str, said: str) -> None:
    ended = refused(f"patch-job-config --id 1 {words} --apply")

    assert (ended.code, ended.out) == (1, "")
    assert said in ended.err
    assert refused("job show 1 --json").object["config"] == {}


def test_a_broken_configuration_is_named_and_the_row_stays(typed: Typist) -> None:
    typed("create-job --source ex --set max_depth=9")
    assert "warning: max_depth" in typed("validate-job-config --id 1").out
    _change(typed, 1, config={"delay_s": "soon"})
    ended = typed("validate-job-config --id 1")
    assert (ended.code, ended.err) == (1, "holdfast: config.delay_s: it must be a number from 0 to 3600\n")
    assert "it cannot run like this: config.delay_s" in typed("job show 1").out
    assert typed("job edit 1 --set delay_s=null --json").object["config"] == {}
    _change(typed, 1, config={"max_pages": 5}, kind="annual")
    assert "an annual job has no cap" in typed("validate-job-config --id 1").err
    assert "an annual job has no cap" in typed("job edit 1 --depth 3").err
    assert "only a source's crawl job recurs" in typed("job edit 1 --every 1d").err
    assert typed("job show 1 --json").object["config"] == {"max_pages": 5}


def test_retry_counts_are_reset_with_care(typed: Typist) -> None:
    for number, code in enumerate(("a", "b", "c"), start=1):
        typed(f"source create {code} --seed https://{code}.example")
        typed(f"create-job --source {code}")
        _change(typed, number, current_retry_count=2)
    _change(typed, 2, lock_token="x")

    dry = typed("reset-retry-count --id 1 --json").object
    assert (dry["reset"], dry["applied"], typed("job show 1 --json").object["retries"]) == ([1], False, 2)
    assert typed("reset-retry-count --id 1 --apply").out == "reset: 1\n"
    assert typed("job show 1 --json").object["retries"] == 0
    many = typed("reset-retry-count --id 1 --id 2 --id 99 --apply --json --reason", "the disk was full")
    assert (many.code, many.object["unchanged"], many.object["locked"], many.object["missing"]) == (1, [1], [2], [99])
    bulk = typed("reset-retry-count --state pending --limit 1 --reason why --apply --json").object
    assert bulk["locked"] == [2]
    assert typed("reset-retry-count --source c --limit 5 --reason why --apply").out == "reset: 3\n"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("job show", 2, "name one job"),
        ("job show 1 --id 2", 2, "name one job"),
        ("job show 9", 1, "there is no job 9; see them with: holdfast job list"),
        ("job pause 9", 1, "there is no job 9"),
        ("job run-now 1", 1, "job 1: a job that is pending cannot force-run; it must be one of: scheduled; it waits"),
        ("job resume 1", 1, "it waits for a worker: holdfast start-worker"),
        ("job edit 9 --name x", 1, "there is no job 9"),
        ("job edit 9", 2, "say what to change"),
        ("job logs 9", 1, "there is no job 9"),
        ("job logs 1 --level loud", 2, "debug, info"),
        ("job list --status nope", 2, "'nope' is not one of queued"),
        ("job list --state nope", 2, "'nope' is not one of pending"),
        ("job list --kind nope", 2, "'nope' is not one of crawl"),
        ("job list --sort nope", 2, "'nope' is not one of created_at"),
        ("job list --status failed --search x", 2, "--state knows the other words"),
        ("job list --source nobody", 1, "there is no source 'nobody'"),
        ("create-job --source nobody", 1, "there is no source 'nobody'"),
        ("create-job --source ex --every 6x", 2, "every 6 hours"),
        ("create-job --source ex --every 6h --once", 2, "--once"),
        ("create-job --source ex --every 99999d", 2, "ten years"),
        ("create-job --source ex --set nope=1", 1, "config.nope: there is no such field"),
        ("create-job --source ex --url gopher://x", 1, "url: "),
        ("create-job", 2, "--source"),
        ("job edit 1 --set zimit=5", 1, "config.zimit: it must be an object"),
        ("job edit 1 --seed a.example --set seeds=5", 1, "config.seeds: it must be a list"),
        ("job show 99999999999999999999", 2, "larger than any"),
        ("reset-retry-count", 2, "--id"),
        ("reset-retry-count --id 1 --id 2", 2, "--reason"),
        ("reset-retry-count --state failed --reason x", 2, "--limit"),
        ("reset-retry-count --state nope --reason x --limit 1", 2, "'nope'"),
    ],
)
def test_mistakes_have_their_exit_code_and_a_sentence(refused: Typist, line: str, code: int, said: str) -> None:
    ended = refused(line)

    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_jobs_are_listed_in_both_vocabularies(typed: Typist) -> None:
    typed("source create other --seed https://other.example")
    typed("create-job --source ex --every 6h")
    typed("create-job --source other")

    assert [one["id"] for one in typed("job list --json").object["jobs"]] == [2, 1]
    assert [one["id"] for one in typed("job list --state scheduled --json").object["jobs"]] == [1]
    assert [one["id"] for one in typed("job list --search OTHER --json").object["jobs"]] == [2]
    assert typed("job list --status queued --source ex --json").object["total"] == 1
    assert "go on with --offset 1" in typed("job list --limit 1").out
    assert typed("job list --status failed").out == "no such jobs\n"


def test_job_list_says_what_a_queued_run_waits_for(typed: Typist) -> None:
    typed("create-job --source ex")
    _with(typed, lambda jobs: jobs.scheduler.tick())

    heads, row = typed("job list").out.splitlines()
    start = heads.index("waits for")
    assert row[start:].split()[0] == "contact"
    [job] = typed("job list --json").object["jobs"]
    assert job["latest_execution"]["waits_for"] == "contact"


def test_a_job_that_no_scheduler_runs_is_shown_but_not_managed(typed: Typist) -> None:
    typed("create-job --source ex")
    _change(typed, 1, kind="adhoc", state=None)

    assert typed("job show 1 --json").object["kind"] == "adhoc"
    for action in ("pause 1", "delete 1", "edit 1 --name x"):
        ended = typed(f"job {action}")
        assert (ended.code, "job 1 is of kind adhoc" in ended.err) == (1, True), action


def test_a_job_that_has_files_is_shown_with_them(typed: Typist) -> None:
    typed("create-job --source ex")
    execution = _run(typed, RunEnding(result=RunResult.COMPLETED))

    def add(jobs: Jobs) -> None:
        with jobs.database.write() as session:
            session.add(WarcFile(execution_id=execution, key="a.warc.gz", state="sealed", size=1234,
                                 created_at=jobs.clock.now()))  # fmt: skip

    _with(typed, add)

    shown = typed("job show 1 --json").object
    assert (shown["warc_files"], shown["warc_bytes"]) == (1, 1234)
    assert "1 WARC file, 1,234 bytes" in typed("job show 1").out


def test_real_processes_speak_the_same(typed: Typist) -> None:
    for words, code in ((["list-jobs", "--json"], 0), (["show-job", "--id", "7"], 1), (["show-job", "--id", "x"], 2)):
        command = [sys.executable, "-m", "holdfast.cli.main", *words, "--home", str(typed.home)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        if code == 0:
            assert json.loads(done.stdout) == {"jobs": [], "total": 0, "limit": 50, "offset": 0}
