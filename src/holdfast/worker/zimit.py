"""Runs executions with zimit: `archive-tool` as a subprocess, followed, stopped gently, its exit read from files.

A tool that a dead worker left behind is adopted, and a finished crawl is not run again: the directory records
both. This module writes no job or execution, except for the execution's configuration, which the index reads.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from holdfast.config import Settings
from holdfast.crawl.recovery import open_store, recover
from holdfast.crawl.requests import DomainBusy, DomainForbidden, DomainLeases, hold_domains
from holdfast.db.engine import Database
from holdfast.errors import HoldfastError, Unavailable
from holdfast.imports.importer import KEPT
from holdfast.index.indexer import Interrupted
from holdfast.jobs.endings import BackendVerdict, FailureCause, RunEnding, RunResult, Shortfall, StartPage
from holdfast.jobs.execution_queries import note_artifacts, store_config
from holdfast.jobs.leases import ExecutionLease
from holdfast.jobs.specs import job_config, start_url
from holdfast.jobs.store import plain_name
from holdfast.sources.config import SourceConfig, zimit_job
from holdfast.sources.contact import known_contact
from holdfast.urls import parse, twins_of
from holdfast.wiring import Runtime, open_runtime
from holdfast.wiring.jobs import zimit_config
from holdfast.worker.runner import LEAVING, RunnerHolding, StopReason, audit_ignored_robots, failure_of
from holdfast.worker.tool_process import (
    KILLED,
    AdoptedTool,
    StartedTool,
    Tool,
    ToolFollower,
    ToolGuard,
    counts_of,
    end_of_log,
    keep_files,
    start_page_in,
)
from holdfast.zimit import outcome
from holdfast.zimit.docker import crawl_environment, docker_environment, find_program
from holdfast.zimit.errors import OutputBusy
from holdfast.zimit.flags import Backend, backend_of, tool_command
from holdfast.zimit.logs import crawl_statistics, newest_log
from holdfast.zimit.output_directory import STATE_NAME, OutputDirectory, holder_of, last_end, open_place
from holdfast.zimit.warc_files import discover_warcs

_DOMAIN_WAIT_S = 30.0
"""How long a run waits for a host that another crawl is fetching from; then it is retried later."""
_STOP_S = 150.0
"""Timeout for a tool to stop its container and exit: the tool itself allows its container two minutes."""

_TURN_S = 0.2
_FOLLOW_S = 1.0
_RENEW_S = 10.0
# Share of a lease that a tool has to end gracefully before it expires, and after which it is renewed at the latest. A
# database that is unavailable for half a minute, as during a restart, ends no tool.
_GENTLY, _RENEW = 0.25, 0.25
# How long a killed tool may take to end.
_LAST_S = 10.0
_ASKED_BY_ANOTHER = "another crawl asks a host of this one"
_NOT_RENEWED = "the database did not answer for so long that another crawl may ask a host of this one"


class ZimitRunner:
    def __init__(self, settings: Settings, outer: Mapping[str, str] = os.environ) -> None:
        self._settings, self._outer = settings, outer

    def run(self, lease: ExecutionLease, holding: RunnerHolding) -> RunEnding | None:
        """Run the tool to its end and return the ending; None releases the execution."""
        with open_runtime(self._settings) as runtime, closing(Database(self._settings.database)) as database:
            run = _Run(runtime, database, lease, holding)
            try:
                return run.run(self._outer)
            # The worker ends while registering files: the next one continues.
            except Interrupted:
                return None
            except (HoldfastError, OSError) as exc:
                return run.broken(exc)


class _Run:
    def __init__(self, runtime: Runtime, database: Database, lease: ExecutionLease, holding: RunnerHolding) -> None:
        self._runtime, self._database, self._lease, self._holding = runtime, database, lease, holding
        self._settings, self._dir = runtime.settings, lease.output_dir
        self._config: SourceConfig
        self._place: OutputDirectory
        self._log_path: Path | None = None
        self._lost: str | None = None
        """Why the hosts of this run are not its own any more, None while they are."""

    def run(self, outer: Mapping[str, str]) -> RunEnding | None:
        self._config = job_config(self._lease.job, self._lease.source)
        job = zimit_config(self._config, self._settings)
        self._prepare(job)
        # A crawl that finished while no worker ran is registered and indexed, not repeated.
        end = last_end(self._dir) if holder_of(self._dir) is None else None
        if end is not None and outcome.is_complete(verdict := self._meaning(end[1], None)):
            self._holding.note("info", "lifecycle", "the crawl had come to its end before; only its files are seen to")
            return self._completed(end[1], verdict[1])
        host = self._settings.zimit
        program = find_program(host.command, outer)
        command = tool_command(job, host, name=self._name(), output_dir=self._dir, program=program)
        try:
            # Lease the domains like our own crawls: two crawlers would request a host twice as often as either may.
            with self._hold_domains(job) as leases:
                ended = self._crawl(command, outer, leases)
        except (DomainBusy, DomainForbidden, Interrupted) as exc:
            ended = self._end_left_behind()
            # Release the job for a later attempt: nothing failed, and no retry is used up.
            if isinstance(exc, DomainBusy) and self._holding.poll_signals() is None:
                self._come_back(str(exc))
                return None
            if isinstance(exc, DomainForbidden) and self._holding.poll_signals() is None:
                # A later attempt would not help: an operator has to decide.
                raise
        if ended is None:
            return None
        # Another crawl may request a host of this one now; a crawl that was complete by then is kept.
        if self._lost is not None and self._holding.stop is None and not outcome.is_complete(self._meaning(*ended)):
            self._come_back(f"{self._lost}; the tool was stopped")
            return None
        return self._conclude(*ended)

    def _hold_domains(self, job: SourceConfig) -> AbstractContextManager[DomainLeases]:
        """Lease the hosts of the seeds, so that no other crawl fetches from them; raise DomainBusy on timeout.

        Includes their www twins: seeds often redirect there, and the scope of a host has both. Raise DomainForbidden
        if a seed is forbidden, Interrupted if this run must end while it waits.
        """
        # A worker that just died on this machine may still hold them.
        recover(self._runtime)

        def sleep(seconds: float) -> None:
            if self._holding.wait(seconds) is not None:
                raise Interrupted

        seeds = [parse(seed) for seed in job.seeds]
        return hold_domains(
            self._settings,
            [seed.domain for seed in seeds],
            twins=[domain for seed in seeds for domain in twins_of(seed)],
            delay_s=max(self._config.delay_s or 0.0, self._settings.politeness.delay_s),
            patience_s=_DOMAIN_WAIT_S,
            sleep=sleep,
        )

    def _come_back(self, why: str) -> None:
        """Release the execution for a later run."""
        self._holding.rest_s = self._settings.timings.jobs_infra_cooldown_s
        self._holding.note("warning", "lifecycle", why, tried_again_in_s=self._holding.rest_s)

    def _end_left_behind(self) -> tuple[int, Path | None] | None:
        """End a tool that a dead worker left behind, if any: its host is not ours, or the run must end."""
        holder = holder_of(self._dir)
        if holder is None:
            return KILLED, None
        tool = AdoptedTool(self._dir, holder)
        code = self._watch(tool, None)
        return None if code is None else (code, tool.log_path)

    def _crawl(
        self, command: list[str], outer: Mapping[str, str], leases: DomainLeases
    ) -> tuple[int, Path | None] | None:
        """Run the tool to its end, or follow one that a dead worker left behind; return its exit code and log."""
        while True:
            holder = holder_of(self._dir)
            # A tool outlives its worker: start no second one beside it.
            if holder is not None:
                self._holding.note("warning", "lifecycle", "a tool that was left behind goes on", pid=holder)
                tool: Tool = AdoptedTool(self._dir, holder)
            else:
                environment = environment_of(self._settings, outer)
                tool = StartedTool(command, self._dir, environment, self._runtime.clock.now())
            code = self._watch(tool, leases)
            if code is None:
                return None
            # An adopted tool without an end record was killed: restart it in the same directory.
            if holder is None or code != KILLED or self._lost is not None or self._holding.stop is not None:
                return code, tool.log_path

    def _prepare(self, job: SourceConfig) -> None:
        """Create the directory and record its content; raise StoreMissing rather than write to unmounted storage."""
        store_root = self._settings.zimit.store_root
        store = store_root.resolve() if store_root else open_store(self._settings.home, self._lease.source.code)
        # From here on the directory is identified by device and inode, so nothing is written through a vanished mount.
        self._place = open_place(self._dir, store)
        backend = backend_of(job.zimit.execution_policy)
        engine = "zimit" if backend == Backend.BROWSERTRIX.value else backend
        content = {"backend": engine, "execution_policy": {}, **zimit_job(job)}
        with self._runtime.raw_db.write() as tx:
            store_config(tx, execution_id=self._lease.execution_id, config=json.dumps(content))
            audit_ignored_robots(tx, self._runtime.clock, self._lease.execution_id, job)

    def _name(self) -> str:
        """Return the crawl's name: its job's, or the date on which its first run was queued.

        Stable for a directory; two shards of one day have different names.
        """
        queued_at = self._lease.named_at or self._runtime.clock.now()
        return plain_name(self._lease.job.name) or self._config.job_name(self._lease.source.code, queued_at)

    def _watch(self, tool: Tool, leases: DomainLeases | None) -> int | None:
        """Follow a tool until it ends and return its exit code; None if this run cannot wait for that.

        It is requested to end once our leases of its hosts are lost or about to expire.
        """
        if leases is None:
            self._lost = _ASKED_BY_ANOTHER
        good_until = (lambda: math.inf) if leases is None else (lambda: leases.good_until)
        gently_s = self._settings.timings.lease_seconds * _GENTLY
        with ToolGuard(tool, good_until, self._runtime.clock, gently_s=gently_s) as guard:
            return self._follow(tool, guard, leases)

    def _follow(self, tool: Tool, guard: ToolGuard, leases: DomainLeases | None) -> int | None:
        clock = self._runtime.clock
        follower = ToolFollower(self._dir, tool.log_path, self._holding, clock)
        deadline, look_at, killed = math.inf, 0.0, False
        renew_s = min(_RENEW_S, self._settings.timings.lease_seconds * _RENEW)
        renew_at = clock.monotonic() + renew_s
        while (code := tool.poll()) is None:
            stop_reason = self._holding.wait(_TURN_S)
            now = clock.monotonic()
            if now >= look_at:
                follower.look()
                self._note_log()
                self._holding.flush()
                look_at = now + _FOLLOW_S
            # Renew the owner row of long runs: a start on another machine would take the run for dead after two
            # minutes.
            if leases is not None and now >= renew_at:
                renew_at = now + renew_s
                # If only this machine is disconnected, the guard ends the tool in time.
                with suppress(Unavailable):
                    if not leases.renew():
                        self._lost = _ASKED_BY_ANOTHER
            if guard.lapsed and self._lost is None:
                self._lost = _NOT_RENEWED
            if (stop_reason is not None or self._lost is not None) and deadline == math.inf:
                guard.ask_to_end()
                deadline = now + _STOP_S
                why = "domain_lost" if stop_reason is None else stop_reason.name.lower()
                self._holding.note("info", "lifecycle", "the tool is asked to end", word=why)
            # Do not wait for the tool: it keeps its WARC files, and the next worker adopts it or its directory.
            if stop_reason in (StopReason.NOW, StopReason.LOST):
                guard.ask_to_end(2)
                return None
            if now >= deadline and killed:
                # Even SIGKILL did not end the tool: it runs on another machine, or is stuck in the kernel.
                return None
            if now >= deadline:
                self._holding.note("error", "error", "the tool did not end in time and is killed")
                tool.kill()
                killed, deadline = True, now + _LAST_S
        if guard.lapsed and self._lost is None:
            self._lost = _NOT_RENEWED
        follower.look()
        return code

    def _note_log(self) -> None:
        found = newest_log(self._dir, crawls_only=True)
        if found is None or found == self._log_path:
            return
        # If the database is unavailable, the next poll writes this.
        with suppress(Unavailable), self._runtime.raw_db.write() as tx:
            note_artifacts(tx, execution_id=self._lease.execution_id, found={"combined_log": str(found)})
            self._log_path = found

    def _meaning(self, code: int, log_path: Path | None) -> outcome.Verdict:
        return outcome.classify_exit(code, self._dir, end_of_log(self._dir, log_path))

    def _conclude(self, code: int, log_path: Path | None) -> RunEnding | None:
        """Return the ending for an exit code and a stop reason. A finished crawl counts as finished in any case."""
        # A vanished mount took its logs along: files at this path are not of this run.
        self._place.check_identity()
        verdict, stop_reason = self._meaning(code, log_path), self._holding.stop
        # Check this first: an operator may discard even a finished crawl.
        if stop_reason is StopReason.DISCARD:
            self._discard()
            return RunEnding(result=RunResult.CANCELLED, reason="discarded", exit_code=code)
        if outcome.is_complete(verdict):
            return self._completed(code, verdict[1])
        if stop_reason is StopReason.FINISH:
            return replace(self._completed(code, outcome.STOPPED), reason="stopped")
        if stop_reason is StopReason.CANCEL:
            return replace(self._completed(code, outcome.STOPPED), result=RunResult.CANCELLED, reason="cancelled")
        if stop_reason in LEAVING or verdict[1] == outcome.STOPPED:
            # The run continues in the same directory, with this worker or another.
            return None
        return self._failed(code, verdict, end_of_log(self._dir, log_path))

    def _discard(self) -> None:
        """Delete the directory, except for files that an earlier run in it added to the archive."""
        for path in sorted(self._dir.iterdir()):
            # An earlier run in this directory registered these files: snapshots may reference them.
            if path.name == KEPT:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        if not (self._dir / KEPT).exists():
            self._dir.rmdir()

    def _completed(self, code: int, stage: str | None) -> RunEnding:
        registered, errors = self._keep_files()
        error = errors[0] if errors else None
        if error is None and stage == outcome.FINALIZATION_FAILED:
            error = outcome.failure_reason(self._dir, end_of_log(self._dir, None), code)
        return replace(
            self._ending(RunResult.COMPLETED),
            exit_code=code,
            stage=stage,
            index_state="pending" if registered else "index_failed",
            reason=self._shortcoming(registered, errors, stage),
            error=error,
            start=self._start(),
        )

    def _keep_files(self) -> tuple[int, list[str]]:
        return keep_files(self._runtime, self._database, self._lease.execution_id, self._dir, self._holding)

    def _shortcoming(self, registered: int, errors: list[str], stage: str | None) -> str | None:
        if not registered:
            return "no_warcs"
        if errors:
            return "damaged_warcs"
        found = crawl_statistics(self._dir)
        if found is not None and found.limit_hit:
            return Shortfall.MAX_PAGES.value
        return "build_failed" if stage == outcome.FINALIZATION_FAILED else None

    def _start(self) -> StartPage:
        """Return the observation of the start page; empty unless it decides when the job runs next."""
        job, url = self._lease.job, start_url(self._lease.job, self._lease.source)
        if url is None or not (job.schedule_enabled and job.adaptive_scheduling):
            return StartPage()
        return start_page_in([file.path for file in discover_warcs(self._dir)], url)

    def _failed(self, code: int, verdict: outcome.Verdict, text: str) -> RunEnding:
        failure, stage = verdict[0] or FailureCause.FAILED, verdict[1]
        # Captures of a failed crawl stay in the archive, whatever happens to the job.
        if failure is FailureCause.FAILED:
            try:
                self._keep_files()
            except (HoldfastError, OSError) as exc:
                self._holding.note("warning", "error", "files of the failed crawl were not registered", error=str(exc))
        ending = replace(
            self._ending(RunResult.FAILED),
            exit_code=code,
            failure=failure,
            reason=failure.value,
            error=outcome.failure_reason(self._dir, text, code),
            stage=stage,
        )
        return self._rescued(ending) if failure is FailureCause.FAILED else ending

    def _rescued(self, ending: RunEnding) -> RunEnding:
        """Apply the policy's fallback, if it has one for this failure; the job's configuration keeps it."""
        policy = zimit_config(self._config, self._settings).zimit.execution_policy
        # A promotion is itself a retry: count the fallback's failures from there.
        failures = self._lease.job.current_retry_count + (0 if outcome.is_promoted(policy) else 1)
        found = outcome.after_failure(policy, failures)
        if found is None:
            return ending
        stage, following = found
        again, changed = stage != outcome.EXHAUSTED, following != policy
        self._holding.note("warning", "lifecycle", "rescue", stage=stage, again=again, backend=backend_of(following))
        # A fallback starts with its own failure count.
        promoted = self._promoted(following) if changed else None
        return replace(
            ending, stage=stage, verdict=BackendVerdict(again=again, resets_count=changed, job_config=promoted)
        )

    def _promoted(self, policy: Mapping[str, Any]) -> dict[str, Any]:
        zimit = {**asdict(self._config.zimit), "execution_policy": dict(policy)}
        return {**self._lease.job.config, "zimit": {**zimit, "passthrough_args": list(zimit["passthrough_args"])}}

    def broken(self, exc: HoldfastError | OSError) -> RunEnding:
        """Return the ending for an error around the run."""
        self._holding.note("error", "error", str(exc), code=getattr(exc, "code", None))
        failure, ending = failure_around(exc, self._dir), self._ending(RunResult.FAILED)
        return replace(ending, failure=failure, reason=failure.value, error=str(exc))

    def _ending(self, result: RunResult) -> RunEnding:
        found, log = crawl_statistics(self._dir), newest_log(self._dir, crawls_only=True)
        zim = min(self._dir.glob("*.zim"), default=None)
        files = {"combined_log": log, "state_file": self._dir / STATE_NAME, "final_zim": zim}
        return RunEnding(
            result=result,
            counts=counts_of(found),
            metrics=found.as_json() if found else {},
            artifacts={kind: str(path) for kind, path in files.items() if path is not None and path.is_file()},
        )


def failure_around(exc: Exception, output_dir: Path) -> FailureCause:
    """Return the cause of an error around a run: storage, machine or a busy directory; the rest needs a person."""
    is_infra = isinstance(exc, OutputBusy) or failure_of(exc, output_dir) is FailureCause.INFRA
    return FailureCause.INFRA if is_infra else FailureCause.CONFIG


def environment_of(settings: Settings, outer: Mapping[str, str]) -> dict[str, str]:
    """Return the tool's environment, with contact and User-Agent from our settings for the crawl of its fallback.

    Its own settings are flags.
    """
    made = {**docker_environment(outer), **crawl_environment(outer)}
    for name, value in (("CONTACT", known_contact(settings)), ("USER_AGENT", settings.user_agent)):
        if value:
            # The tool may not read our settings file: pass the settings of its own crawl in its environment.
            made[f"HOLDFAST_{name}"] = value
    if settings.allow_networks:
        made["HOLDFAST_ALLOW_NETWORKS"] = ",".join(map(str, settings.allow_networks))
    return made
