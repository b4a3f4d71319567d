"""Follow-up of a run: closes the execution, updates counters, sets the next run. Works on locked rows only."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.config import Settings
from holdfast.db.models import Execution, Job, JobEvent, Source, Upload
from holdfast.jobs import endings, schedule_queries
from holdfast.jobs.endings import (
    CAP_S,
    MAX_ERROR_CHARS,
    MAX_STACK_CHARS,
    BackendVerdict,
    Counts,
    FailureCause,
    Retry,
    RetryDecision,
    RunEnding,
    RunResult,
    after_failure,
    note_start_page,
)
from holdfast.jobs.journal import completed, prune_beyond, status
from holdfast.jobs.kinds import FEED
from holdfast.jobs.pauses import end_pause, worked_s
from holdfast.jobs.slots import Placement, following_turn, missed_turns
from holdfast.jobs.states import State, move, state_of
from holdfast.jobs.store import OWN, backend_of, interval_of, schedule_of_job
from holdfast.outside_text import clean
from holdfast.series.queries import add_to_series

# Maps the retries of the table of endings to the failure kinds of the retry budget.
_BY_RULE = {Retry.NO: FailureCause.CONFIG, Retry.LATER: FailureCause.INFRA}


def close_operation(session: Session, job: Job, execution: Execution, *, now: datetime) -> None:
    """Close the job of an operation whose execution has ended: nothing follows it.

    The upload of an import that did not succeed has failed: it can be imported again, or expires.
    """
    move(job, State(execution.state), now=now)
    if execution.state == "completed":
        return
    # Do this here, not where an import fails: its process may have died, or never have started.
    waiting = select(Upload).where(Upload.operation_id == execution.id, Upload.state == "received")
    for row in session.scalars(waiting.with_for_update()):
        # Give it as much time as it had from its last byte on, by the settings of then.
        kept = (row.expires_at or now) - row.updated_at
        row.state, row.updated_at, row.expires_at = "failed", now, now + kept


class RunSettler:
    def __init__(self, settings: Settings, placement: Placement) -> None:
        self._settings, self._timings, self._placement = settings.jobs, settings.timings, placement

    def settle(
        self, session: Session, job: Job, execution: Execution, ending: RunEnding, *, now: datetime
    ) -> list[JobEvent]:
        """Close an execution, release its job and set what follows; return the events to publish."""
        # Compute this before clearing the lock: the working time counts from when the lease started.
        _spend(execution, job, now)
        if job.source_id is not None:
            of = schedule_queries.job_and_source(session, job.id)
            record_progress(session, of, execution, _final(execution, ending), now=now)
        _close(execution, ending, now)
        _free(job, now)
        if job.source_id is None:
            close_operation(session, job, execution, now=now)
            return []
        duration = execution.duration_ms or 0
        job.last_execution_at = now
        job.total_runs += 1
        job.total_duration_ms += duration
        events = [
            completed(
                job.id,
                execution.id,
                ending.result,
                duration_ms=duration,
                items_indexed=execution.items_indexed,
                error=execution.error,
            )
        ]
        if ending.result is RunResult.COMPLETED:
            job.successful_runs += ending.rule.is_success
            events += self._succeeded(session, job, execution, ending, now)
        elif ending.result is RunResult.FAILED:
            job.failed_runs += 1
            events += self._failed(session, job, execution, ending, now)
        # A job that a person cancelled during the run is cancelled already. A discarded run leaves the schedule
        # unchanged.
        elif state_of(job) is State.RUNNING:
            if schedule_of_job(job) is None:
                events.append(move(job, State.CANCELLED, now=now, execution_id=execution.id))
            else:
                events += self._completed(session, job, execution, ending, now)
        # Record it before the commit, so that the next placement in this process counts this job.
        self._placement.note(job.id, job.next_run_at, interval_of(job.interval_minutes, job.interval_type))
        session.flush()
        prune_beyond(session, job_id=job.id, number=execution.number - self._settings.history_rows, now=now)
        failed = "failed" if ending.result is RunResult.FAILED else "cancelled"
        kind = "succeeded" if ending.rule.is_success else failed
        schedule_queries.count_hour(session, now, **{kind: 1, "duration_ms": duration})
        return events

    def hand_back(
        self, session: Session, job: Job, execution: Execution, *, now: datetime, reason: str
    ) -> list[JobEvent]:
        """Return an execution to the queue, at its old place; close it instead if its job is cancelled."""
        # Close the execution of a cancelled job here: no worker would ever lease it again. A cancelled operation has
        # nothing to seal: it needs no worker that has its files.
        is_operation = job.source_id is None
        if state_of(job) is State.CANCELLED or (is_operation and execution.stop_requested is not None):
            ending = RunEnding(
                result=RunResult.CANCELLED, reason=reason, counts=reported(execution), metrics=execution.metrics
            )
            return self.settle(session, job, execution, ending, now=now)
        _spend(execution, job, now)
        _free(job, now)
        # A stop request stays in the row: the next holder reads it.
        execution.state = "queued"
        event = move(job, State.SCHEDULED, now=now, execution_id=execution.id, reason=reason)
        return [] if is_operation else [event]

    def lose(self, session: Session, job: Job, execution: Execution | None, *, now: datetime) -> list[JobEvent]:
        """Release a job from a silent holder: another worker continues, or the job fails if that happened too
        often.
        """
        # End the silent holder's hold first; if the holder wakes, its token matches no row.
        schedule_queries.end_hold(session, job_id=job.id, epoch=job.lock_epoch, ending="lease_lost", now=now)
        if execution is None:
            _free(job, now)
            if state_of(job) is not State.RUNNING:
                return []
            events = [move(job, State.SCHEDULED, now=now, reason="orphaned")]
            # Make it due now: it was due already when its holder died.
            job.next_run_at = now
            return events
        # The time since its last heartbeat (perhaps a night without power) is not working time.
        _spend(execution, job, job.lock_heartbeat_at or now)
        job.lock_acquired_at = None
        # A run of weeks may lose many workers: count only losses without progress in between.
        done = execution.items_crawled + execution.items_failed
        in_vain = 0 if done > execution.lost_items else execution.takeovers
        # A paused run makes no progress.
        execution.takeovers = in_vain + (execution.paused_at is None)
        execution.lost_items = max(done, execution.lost_items)
        # A page that kills its worker each time would be retried forever. The runner of operations counts by itself.
        is_over = job.source_id is not None and execution.takeovers > self._timings.jobs_takeovers
        if is_over and state_of(job) is State.RUNNING:
            message = f"its owners fell silent {execution.takeovers} times"
            ending = RunEnding(
                result=RunResult.FAILED, failure=FailureCause.LEASE_LOST, reason="lease_lost", error=message
            )
            return self.settle(session, job, execution, ending, now=now)
        return self.hand_back(session, job, execution, now=now, reason="lease_lost")

    def _succeeded(
        self, session: Session, job: Job, execution: Execution, ending: RunEnding, now: datetime
    ) -> list[JobEvent]:
        # Items that a poll did not reach wait for the next poll.
        if ending.rule.retry is Retry.YES and state_of(job) is State.RUNNING and job.kind != FEED:
            again = self._retry(session, job, FailureCause.FAILED)
            if again is not None:
                job.error_message = ending.sentence()
                return [self._again(job, execution, again, ending, now)]
        job.current_retry_count = job.infra_retry_count = 0
        job.error_message = None
        return self._completed(session, job, execution, ending, now) if state_of(job) is State.RUNNING else []

    def _completed(
        self, session: Session, job: Job, execution: Execution, ending: RunEnding, now: datetime
    ) -> list[JobEvent]:
        """Schedule the job's next turn; a job that runs once stays completed."""
        events = [move(job, State.COMPLETED, now=now, execution_id=execution.id)]
        schedule = schedule_of_job(job)
        if schedule is None:
            return events
        note_start_page(job, ending.start, now=now)
        interval = schedule.interval
        if job.adaptive_scheduling:
            interval = endings.interval(interval, job.unchanged_count)
        last = job.rhythm_at or job.due_at or now
        if (left_out := missed_turns(schedule, last, interval=interval, now=now)) > 0:
            # No worker was available, or the run took longer than its interval: missed turns are skipped.
            execution.metrics = {**execution.metrics, "skipped_turns": left_out}
            events.append(status(job.id, State.COMPLETED, execution_id=execution.id, skipped_turns=left_out))
        # Count from the last regular turn, not from now: retries and long runs must not shift the rhythm.
        turn = following_turn(schedule, last, interval=interval, now=now)
        return [*events, *self._next(session, job, turn, now)]

    def _next(self, session: Session, job: Job, turn: datetime, now: datetime) -> list[JobEvent]:
        job.rhythm_at = turn
        events = [move(job, State.SCHEDULED, now=now, next_run_at=turn.isoformat())]
        # Its source may have been disabled during the run: a run continues to its end, and then its job is paused.
        if schedule_queries.job_and_source(session, job.id)[1].enabled:
            job.next_run_at = job.rhythm_at
            return events
        events.append(move(job, State.PAUSED, now=now, reason="source_disabled"))
        job.paused_by = "source"
        return events

    def _failed(
        self, session: Session, job: Job, execution: Execution, ending: RunEnding, now: datetime
    ) -> list[JobEvent]:
        # Set it also before a retry: it shows why the job waits.
        job.last_failure_at, job.error_message = now, execution.error or execution.reason
        if state_of(job) is not State.RUNNING:
            return []
        failure = _BY_RULE.get(ending.rule.retry) or ending.failure or FailureCause.FAILED
        # The tool's own fallback does not apply to storage or configuration failures: there the retry budget decides.
        if ending.verdict is not None and failure is FailureCause.FAILED:
            again = _apply_retry_rule(job, ending.verdict)
        else:
            again = self._retry(session, job, failure)
        if again is None:
            return [move(job, State.FAILED, now=now, execution_id=execution.id, failure=failure.value)]
        return [self._again(job, execution, again, ending, now)]

    def _again(
        self, job: Job, execution: Execution, again: RetryDecision, ending: RunEnding, now: datetime
    ) -> JobEvent:
        """Schedule the retry of a run that failed, or that left URLs unfetched."""
        wait, job.current_retry_count, job.infra_retry_count = again
        # A retry that starts before the site may be requested again would only occupy a worker.
        wait = max(wait, min((ending.not_before or now) - now, timedelta(seconds=CAP_S)))
        why = {"failure": (ending.failure or FailureCause.FAILED).value} if ending.result is RunResult.FAILED else {}
        event = move(
            job,
            State.SCHEDULED,
            now=now,
            execution_id=execution.id,
            reason=ending.reason,
            retry_in_s=wait.total_seconds(),
            **why,
        )
        job.next_run_at = now + wait
        return event

    def _retry(self, session: Session, job: Job, failure: FailureCause) -> RetryDecision | None:
        _, source = schedule_queries.job_and_source(session, job.id)
        return after_failure(failure, job, self._timings, backend=backend_of(job.kind, job.config, source.config))


def _apply_retry_rule(job: Job, verdict: BackendVerdict) -> RetryDecision | None:
    """Apply a backend's own decision. A reset count starts at 1, for the next run is a retry in the same folder."""
    if verdict.job_config is not None:
        job.config = verdict.job_config
    if not verdict.again:
        return None
    return timedelta(), 1 if verdict.resets_count else job.current_retry_count + 1, 0


def _spend(execution: Execution, job: Job, until: datetime) -> None:
    if job.lock_acquired_at is not None:
        spent_s = worked_s(job.lock_acquired_at, until, paused_at=execution.paused_at)
        # Never return a negative time: a silent holder's last heartbeat may precede the end of a pause.
        execution.run_seconds = max(0.0, execution.run_seconds + spent_s)


def reported(execution: Execution) -> Counts:
    return Counts(**{one.name: getattr(execution, one.name) for one in fields(Counts)})


def record_progress(
    session: Session, of: tuple[Job, Source], execution: Execution, counts: Counts, *, now: datetime
) -> None:
    """Add to the time series what an external tool's run did since the last report; our own crawler adds its own."""
    job, source = of
    if backend_of(job.kind, job.config, source.config) in OWN:
        return
    before = reported(execution)
    # A restarted tool may count from zero again: the work that it reported before remains.
    crawled = max(0, counts.items_crawled - before.items_crawled)
    failed = max(0, counts.items_failed - before.items_failed)
    progress = Counter(pages=crawled, success=crawled, failed=failed, queue=_waiting(counts) - _waiting(before))
    add_to_series(session, execution.id, progress, now=now)


def _waiting(counts: Counts) -> int:
    return max(0, counts.items_total - counts.items_crawled - counts.items_failed)


def _final(execution: Execution, ending: RunEnding) -> Counts:
    """Return the counts of a run. If it failed without any, keep those it reported before."""
    counts = ending.counts
    if ending.result is not RunResult.FAILED or any(counts.items):
        return counts
    known = reported(execution)
    return replace(
        known,
        cpu_ms=_most(counts.cpu_ms, known.cpu_ms),
        peak_memory_bytes=_most(counts.peak_memory_bytes, known.peak_memory_bytes),
    )


def _close(execution: Execution, ending: RunEnding, now: datetime) -> None:
    counts, metrics = _final(execution, ending), ending.metrics
    if ending.result is RunResult.FAILED and not any(ending.counts.items):
        metrics = metrics or execution.metrics
    execution.state, execution.failure = ending.result.value, ending.failure
    # A tool's output is untrusted text: PostgreSQL rejects NUL, and then no ending could be written at all.
    execution.reason = clean(ending.reason, MAX_ERROR_CHARS)
    execution.shortfalls = dict(ending.shortfalls)
    execution.finished_at, execution.stop_requested = now, None
    end_pause(execution, now=now)
    began = execution.started_at or now
    execution.duration_ms = max(0, round((now - began).total_seconds() * 1000))
    # The log of a machine that lost power may contain NUL, and a path any bytes.
    execution.error = clean(ending.error, MAX_ERROR_CHARS)
    # The end of a stack trace names the error.
    execution.stack = clean(ending.stack and ending.stack[-MAX_STACK_CHARS:], MAX_STACK_CHARS)
    execution.exit_code, execution.stage, execution.metrics = ending.exit_code, ending.stage, metrics
    for one in fields(Counts):
        setattr(execution, one.name, getattr(counts, one.name))
    execution.index_state = ending.index_state
    # A retry continues in the same directory: the files of the previous run still exist.
    execution.artifacts = {**(execution.artifacts or {}), **ending.artifacts}


def _most(one: int | None, other: int | None) -> int | None:
    return max((number for number in (one, other) if number is not None), default=None)


def _free(job: Job, now: datetime) -> None:
    job.lock_token = job.lock_owner_id = job.lock_owner = job.lock_acquired_at = job.lock_heartbeat_at = None
    job.updated_at = now
