"""Sources that zimit crawls: run by a worker, registered, indexed; and what each bad end means for the job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from holdfast.cli.index import index
from holdfast.db import connect
from holdfast.db.models import AuditEvent, Execution, Job
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.errors import Invalid, Unavailable
from holdfast.index.writing import index_transaction
from holdfast.jobs.administration.maintenance import make_due
from holdfast.jobs.endings import FailureCause
from holdfast.jobs.views.listing import shown_job
from holdfast.jobs.views.status import read_status
from holdfast.warc.manifest import read_manifest
from holdfast.worker.runner import StopReason
from holdfast.zimit.outcome import FINALIZATION_FAILED
from holdfast.zimit.output_directory import read_mapping
from tests.flow.crawler import FAST
from tests.flow.zimit.bed import Step
from tests.flow.zimit_bed import WHOLE, ZimitBed, open_zimit_bed
from tests.jobs_bed import holder
from tests.site import Site


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[ZimitBed]:
    with open_zimit_bed(tmp_path, None) as made:
        yield made


def test_a_source_is_crawled_by_zimit_registered_and_indexed(database_url: str, tmp_path: Path) -> None:
    with open_zimit_bed(tmp_path, database_url) as bed:
        job_id = bed.job(passthrough_args=["--scopeType", "host"], tool_options={"initial_workers": 2})
        bed.engine.script(WHOLE)
        lease = bed.take()

        state = bed.settled(lease)
        bed.index()

        done = bed.execution(lease.execution_id)
        assert (state, done.index_state, done.exit_code, done.config["backend"]) == ("completed", "pending", 0, "zimit")
        assert (done.items_crawled, done.items_total, done.items_failed) == (30, 31, 1)
        assert Path(done.artifacts["combined_log"]).name.endswith(".combined.log")
        assert Path(done.artifacts["state_file"]).is_file()
        argv = bed.engine.zimit(0)
        assert "--keep" in argv
        assert argv[argv.index("--workers") + 1] == "2"
        assert argv[argv.index("--scopeType") + 1] == "host"
        assert (argv[argv.index("--depth") + 1], argv[argv.index("--adminEmail") + 1]) == ("3", "t@example.org")
        assert argv[argv.index("--config") + 1] == "/output/.browsertrix_managed_config.yaml"
        assert read_mapping(lease.output_dir / ".browsertrix_managed_config.yaml") == {"useRobots": True}
        [file] = bed.files()
        folder = lease.output_dir / "archive"
        assert file.path == str((folder / "warc-000001.warc.gz").relative_to(bed.settings.home.resolve()))
        assert [*read_manifest(folder)] == [file.id]
        [snapshot] = bed.snapshots()
        assert (snapshot.url, snapshot.backend, snapshot.fidelity) == ("https://example.org/a.warc.gz", "zimit", "high")
        assert "crawl statistics" in bed.lines(lease.execution_id)
        assert bed.told[-1].items_crawled == 30
        with closing(connect(bed.settings.database)) as raw_db:
            assert read_status(raw_db, bed.jobs.clock, lease.execution_id).pages == 30
        assert bed.row(job_id).current_retry_count == 0


def test_delay_quota_and_robots_of_a_source_reach_zimit_and_ignoring_robots_is_audited(bed: ZimitBed) -> None:
    quota = {"delay_s": 1.5, "quota_bytes": 5_000, "robots": "ignore", "robots_reason": "we run that site"}
    bed.job(quota, tool_options={"initial_workers": 2})
    bed.engine.script(WHOLE)
    lease = bed.take()

    assert bed.settled(lease) == "completed"

    argv = bed.engine.zimit(0)
    assert (argv[argv.index("--pageExtraDelay") + 1], argv[argv.index("--sizeSoftLimit") + 1]) == ("3", "5000")
    assert "--config" not in argv
    with bed.jobs.database.read() as session:
        [event] = session.scalars(select(AuditEvent).where(AuditEvent.action == "robots.ignored"))
    assert (event.subject, event.detail["reason"]) == (f"execution {lease.execution_id}", "we run that site")


def test_no_secret_reaches_the_engine(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script(WHOLE)
    bed.settled(bed.take())

    seen = {name for call in bed.engine.raw_calls() for name in call["env"]}
    assert not {"HOLDFAST_DATABASE_URL", "HOLDFAST_ADMIN_TOKEN"} & seen


def test_trouble_of_the_machine_waits_for_its_cooldown_and_burns_no_retry(bed: ZimitBed) -> None:
    """F28: budget spent 0."""
    job_id = bed.job()
    bed.engine.script(WHOLE, down=True)
    lease = bed.take()

    state = bed.settled(lease)

    job, done = bed.row(job_id), bed.execution(lease.execution_id)
    assert (state, done.failure, job.current_retry_count, job.infra_retry_count) == ("scheduled", "infra_error", 0, 1)
    assert job.next_run_at is not None
    assert done.finished_at is not None
    assert job.next_run_at - done.finished_at == timedelta(seconds=bed.settings.timings.jobs_infra_cooldown_s)


def test_storage_that_is_not_mounted_is_the_machines_fault_and_nothing_is_written(tmp_path: Path) -> None:
    with open_zimit_bed(tmp_path, None, store_root=str(tmp_path / "home")) as bed:
        bed.job()
        lease = bed.take()

        ending = bed.run(lease)

        assert ending is not None
        assert ending.failure is FailureCause.INFRA
        assert not lease.output_dir.exists()
        assert bed.engine.raw_calls() == []


def test_storage_that_goes_away_under_a_crawl_costs_no_retry_and_no_byte_beside_it(bed: ZimitBed) -> None:
    """F28: budget spent 0, bytes written by mistake 0, and it recovers."""
    job_id = bed.job()
    mark, away = bed.engine.root / "mark", bed.engine.root / "away"
    bed.engine.script([{"warc": "a.warc.gz"}, {"stats": [1, 9, 1, 0]}, {"touch": str(mark)},
                       {"await": str(bed.engine.heard)}, {"exit": 1}], WHOLE)  # fmt: skip
    lease = bed.take()
    with bed.running(lease) as (_holding, ends):
        bed.engine.wait_for(mark)
        lease.output_dir.rename(away)
        lease.output_dir.mkdir()
        bed.engine.heard.touch()
    [ending] = ends
    assert ending is not None
    assert ending.failure is FailureCause.INFRA
    assert list(lease.output_dir.iterdir()) == []
    bed.jobs.leases.settle(lease, ending)
    job = bed.row(job_id)
    assert (job.state, job.current_retry_count, job.infra_retry_count) == ("scheduled", 0, 1)

    lease.output_dir.rmdir()
    away.rename(lease.output_dir)
    with bed.jobs.database.write() as session:
        make_due(session, bed.jobs.clock, job_id)
    assert bed.settled(bed.take()) == "completed"
    assert len(bed.files()) == 2


def test_a_flag_that_the_image_does_not_know_is_tried_once_and_never_again(bed: ZimitBed) -> None:
    """F29: unrecognised-argument runs = 1."""
    job_id = bed.job(passthrough_args=["--behaviors", "autoscroll"])
    bed.engine.script(WHOLE)
    lease = bed.take()

    assert bed.settled(lease) == "failed"
    bed.jobs.scheduler.tick()

    assert bed.execution(lease.execution_id).failure == "infra_error_config"
    assert bed.row(job_id).current_retry_count == 0
    assert bed.jobs.leases.take(holder(bed.jobs.database, "w1")) is None
    assert len(bed.engine.calls("run")) == 1


def test_a_configuration_that_could_not_run_is_refused_before_anything_is_queued(bed: ZimitBed) -> None:
    with pytest.raises(Invalid, match=r"^zimit\.passthrough_args: "):
        bed.job(passthrough_args=["--driver", "evil.js"])

    assert bed.jobs.leases.take(holder(bed.jobs.database, "w1")) is None


def test_a_command_that_is_not_there_is_a_matter_of_configuration(tmp_path: Path) -> None:
    with open_zimit_bed(tmp_path, None, command="no-such-tool --x") as bed:
        bed.job()

        ending = bed.run(bed.take())

        assert ending is not None
        assert (ending.failure, "no-such-tool" in (ending.error or "")) == (FailureCause.CONFIG, True)


def test_a_crawl_that_is_complete_is_indexed_although_its_end_failed(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script([{"warc": "a.warc.gz"}, {"stats": [5, 6, 0, 1]}, {"say": "warc2zim failed"}, {"exit": 1}])
    lease = bed.take()

    state = bed.settled(lease)
    bed.index()

    done = bed.execution(lease.execution_id)
    assert (state, done.stage, done.exit_code, done.index_state) == ("completed", FINALIZATION_FAILED, 1, "pending")
    assert done.reason == "build_failed"
    assert len(bed.snapshots()) == 1


def test_a_crawl_that_reached_its_limit_says_so(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script([{"warc": "a.warc.gz"}, {"stats": [5, 9, 0, 0, 1]}])
    lease = bed.take()

    assert bed.settled(lease) == "completed"
    assert bed.execution(lease.execution_id).reason == "max_pages"


TWO_FILES: list[Step] = [{"warc": "a.warc.gz"}, {"warc": "b.warc.gz"}, {"stats": [2, 2, 0, 0]}]
BUILDS: dict[str, list[Step]] = {
    "fails": [{"say": "warc2zim: cannot build"}, {"exit": 9}],
    "is refused": [{"say": "zimit: error: unrecognized arguments: --zim-file"}, {"exit": 2}],
    "has no room": [{"say": "No space left on device"}, {"exit": 1}],
    "cannot start": [{"exit": 127}],
}


def test_a_database_that_blinks_while_files_are_registered_is_no_damage_of_theirs(
    bed: ZimitBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = bed.job()
    bed.engine.script(TWO_FILES, WHOLE)
    lease = bed.take()
    asked: list[object] = []

    def blinks(raw_db: RawDatabase) -> AbstractContextManager[Transaction]:
        asked.append(raw_db)
        if len(asked) == 2:
            raise Unavailable("the database did not take the transaction")
        return index_transaction(raw_db)

    monkeypatch.setattr("holdfast.imports.importer.index_transaction", blinks)
    ending = bed.run(lease)
    assert ending is not None
    assert (ending.failure, ending.reason) == (FailureCause.INFRA, "infra_error")
    bed.jobs.leases.settle(lease, ending)
    assert bed.row(job_id).current_retry_count == 0

    with bed.jobs.database.write() as session:
        make_due(session, bed.jobs.clock, job_id)
    again = bed.take()
    assert bed.settled(again) == "completed"
    assert bed.execution(again.execution_id).reason is None
    bed.index()
    assert {one.url for one in bed.snapshots()} >= {"https://example.org/a.warc.gz", "https://example.org/b.warc.gz"}


@pytest.mark.parametrize("how", BUILDS)
def test_a_complete_crawl_outlives_a_final_build_that(bed: ZimitBed, how: str) -> None:
    job_id = bed.job(tool_options={"skip_final_build": False}, execution_policy=POLICY)
    bed.engine.script(TWO_FILES, BUILDS[how], WHOLE, WHOLE)
    lease = bed.take()

    state = bed.settled(lease)
    bed.index()

    done = bed.execution(lease.execution_id)
    assert (state, done.stage, done.exit_code, done.index_state) == ("completed", FINALIZATION_FAILED, 1, "pending")
    assert (done.items_crawled, done.items_total, len(bed.snapshots())) == (2, 2, 2)
    assert done.error is not None
    assert (how == "cannot start") is ("final_build" not in done.error)
    assert len(bed.engine.calls("run")) == 2, "the site is crawled once, whatever the fallback"
    assert (bed.row(job_id).current_retry_count, bed.row(job_id).failed_runs) == (0, 0)


def test_a_final_build_that_was_stopped_goes_on_without_another_crawl(bed: ZimitBed) -> None:
    bed.job(tool_options={"skip_final_build": False})
    mark = bed.engine.root / "mark"
    bed.engine.script(TWO_FILES, [{"touch": str(mark)}, {"await": str(bed.engine.heard)}], [])
    lease = bed.take()
    with bed.running(lease) as (holding, ends):
        bed.engine.wait_for(mark)
        holding.ask(StopReason.DRAIN)
    assert ends == [None], "it is handed back"

    assert bed.settled(lease) == "completed"

    assert len(bed.files()) == 2
    assert ["--warcs" in bed.engine.zimit(turn) for turn in range(3)] == [False, True, True]


def test_the_index_command_makes_a_job_indexed(bed: ZimitBed, capsys: pytest.CaptureFixture[str]) -> None:
    job_id = bed.job()
    bed.engine.script(WHOLE)
    bed.settled(bed.take())

    index(follow=False, source=None, workers=1, search=False, status=False, json=True, home=bed.settings.home)

    with bed.jobs.database.read() as session:
        listed = shown_job(session, job_id)
    assert (listed.admin_status, listed.latest and listed.latest.items_indexed) == ("indexed", 1)
    assert json.loads(capsys.readouterr().out)["finished"]


def test_a_recurring_job_of_zimit_adapts_to_its_start_page(bed: ZimitBed) -> None:
    job_id = bed.job(seeds=["https://example.org/a.warc.gz"])
    with bed.jobs.database.write() as session:
        job = session.get_one(Job, job_id)
        job.interval_minutes, job.schedule_enabled = 60, True
    bed.engine.script(WHOLE)

    ending = bed.run(bed.take())

    assert ending is not None
    assert (ending.start.content_hash or "").startswith("sha256:")


def test_why_a_crawl_failed_stands_on_the_job(bed: ZimitBed) -> None:
    job_id = bed.job()
    bed.engine.script([{"stats": [1, 9, 1, 0]}, {"say": "browser crashed: out of handles"}, {"exit": 127}])
    lease = bed.take()

    bed.settled(lease)

    assert "browser crashed: out of handles" in (bed.row(job_id).error_message or "")
    assert "browser crashed: out of handles" in (bed.execution(lease.execution_id).error or "")


def test_a_crawl_without_any_file_says_that_there_is_nothing_to_index(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script([{"stats": [0, 0, 0, 0]}])
    lease = bed.take()

    assert bed.settled(lease) == "completed"
    assert bed.execution(lease.execution_id).index_state == "index_failed"


def test_a_failed_crawl_is_retried_in_the_same_directory_and_loses_no_file(bed: ZimitBed) -> None:
    job_id = bed.job(passthrough_args=["--pageLimit", "5"])
    failing: list[Step] = [{"warc": "a.warc.gz"}, {"stats": [1, 9, 1, 0]}, {"yaml": {"left": 8}}, {"exit": 127}]
    bed.engine.script(failing, [{"warc": "b.warc.gz"}, {"stats": [9, 9, 0, 0]}])
    first = bed.take()

    assert bed.settled(first) == "scheduled"
    assert bed.execution(first.execution_id).failure == "failed"
    assert len(bed.files()) == 1, "what a failed crawl captured is kept at once"
    second = bed.take()
    assert (second.output_dir, second.resumed) == (first.output_dir, True)
    assert bed.settled(second) == "completed"
    bed.index()

    assert bed.row(job_id).current_retry_count == 0
    assert [file.execution_id for file in bed.files()] == [first.execution_id, second.execution_id]
    assert [snapshot.url.rpartition("/")[2] for snapshot in bed.snapshots()] == ["a.warc.gz", "b.warc.gz"]


POLICY = {"resume_policy": "fresh_only", "fallback_backend": "http_warc"}


def test_a_fresh_failure_leads_to_the_fallback_which_captures_and_is_told_apart(bed: ZimitBed, site: Site) -> None:
    bed.engine.environment |= {**FAST, "HOLDFAST_POLITENESS_DELAY_S": "0"}
    job_id = bed.job({"delay_s": 0}, execution_policy=POLICY, seeds=[site.url(0, "/")],
                     passthrough_args=["--pageLimit", "3"])  # fmt: skip
    bed.engine.script([{"exit": 127}])
    first = bed.take()

    assert bed.settled(first) == "scheduled"
    assert bed.execution(first.execution_id).stage == "promoted_to_http_warc"
    assert bed.row(job_id).config["zimit"]["execution_policy"] == {
        **POLICY, "capture_backend": "http_warc", "primary_backend": "browsertrix",
        "last_promoted_from_backend": "browsertrix", "last_promotion_reason": "1 fresh failures",
    }  # fmt: skip
    assert bed.row(job_id).current_retry_count == 1

    second = bed.take()
    assert second.output_dir == first.output_dir
    assert bed.settled(second) == "completed"
    bed.index()
    assert bed.execution(second.execution_id).config["backend"] == "http_warc"
    assert {(one.backend, one.fidelity) for one in bed.snapshots()} == {("http_warc", "fallback")}
    assert len(bed.engine.calls("run")) == 1
    assert bed.row(job_id).current_retry_count == 0


def test_two_failures_of_the_fallback_are_the_end(tmp_path: Path) -> None:
    promoted = {**POLICY, "capture_backend": "http_warc", "primary_backend": "browsertrix"}
    with open_zimit_bed(tmp_path, None, contact=None) as bed:
        bed.job(execution_policy=promoted)
        with bed.jobs.database.write() as session:
            session.execute(update(Job).values(current_retry_count=1))  # as a promotion leaves it

        ends = []
        for _ in range(2):
            lease = bed.take()
            ends.append((bed.settled(lease), bed.execution(lease.execution_id).stage))

        assert ends == [("scheduled", "fallback_failed"), ("failed", "fallback_exhausted")]
        assert bed.engine.raw_calls() == []


def test_zimit_is_named_after_its_job(bed: ZimitBed) -> None:
    job_id = bed.job()
    with bed.jobs.database.write() as session:
        session.get_one(Job, job_id).name = "ex-2026 shard/fr"
    bed.engine.script(WHOLE)

    assert bed.settled(bed.take()) == "completed"

    argv = bed.engine.zimit(0)
    assert argv[argv.index("--name") + 1] == "ex-2026-shard-fr"


def test_zimit_without_a_job_name_has_the_date_it_was_queued(bed: ZimitBed) -> None:
    bed.job()
    bed.jobs.scheduler.tick()
    with bed.jobs.database.write() as session:
        session.query(Execution).one().created_at = datetime(2025, 12, 31, 23, tzinfo=UTC)
    bed.engine.script(WHOLE)

    assert bed.settled(bed.take()) == "completed"

    argv = bed.engine.zimit(0)
    assert argv[argv.index("--name") + 1] == "ex-20251231"


def test_zimit_log_is_named_while_the_run_goes_on(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script([{"warc": "a.warc.gz"}, {"stats": [1, 9, 1, 0]}, {"hang": 60}])
    lease = bed.take()

    with bed.running(lease) as (holding, _ends):
        bed.engine.wait_until(lambda: "combined_log" in bed.execution(lease.execution_id).artifacts)
        assert Path(bed.execution(lease.execution_id).artifacts["combined_log"]).is_file()
        holding.ask(StopReason.DISCARD)
