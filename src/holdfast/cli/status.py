"""`holdfast status`: the state of executions, from another terminal or afterwards."""

from __future__ import annotations

import dataclasses
import time
from typing import Annotated

import typer

from holdfast.cli.display import Display
from holdfast.cli.formatting import counted, duration, line, outcomes, paused, size
from holdfast.cli.parameters import ExecutionId
from holdfast.cli.printing import Done, runnable
from holdfast.db.raw import RawDatabase
from holdfast.feeds.status import FeedStatus, read_feed_status
from holdfast.jobs import execution_queries
from holdfast.jobs.endings import ending_text
from holdfast.jobs.views.overview import JobsOverview, read_overview
from holdfast.jobs.views.status import ExecutionStatus, is_abandoned, read_status
from holdfast.jobs.waiting import queued_runs, waiting_runs
from holdfast.records import Spelling, encode
from holdfast.wiring import Runtime, open_runtime


def overview_lines(overview: JobsOverview) -> list[str]:
    """Return a line for each problem."""
    shown = [f"ALERT {one.name} since {one.since:%Y-%m-%d %H:%M}: {one.message}" for one in overview.alerts]
    if overview.low_disk:
        where = f" at {overview.low_volume}" if overview.low_volume else ""
        marks = "HOLDFAST_DISK_FREE_BYTES and HOLDFAST_DISK_FREE_PERCENT"
        shown.append(f"low disk{where}: nothing new starts until there is room, by {marks}")
    if overview.write_refused is not None:
        shown.append(f"no room: {overview.write_refused.sentence()}")
    for run in overview.failed:
        what = "index failed" if run.index_state == "index_failed" else run.failure or "failed"
        again = f"; again at {run.next_run_at:%Y-%m-%d %H:%M}" if run.next_run_at else ""
        again = "; a later run went well" if run.mended else again
        why = run.error or "no reason given"
        shown.append(f"failed: execution {run.execution} of {run.source}, {what}: {why}{again}")
    shown += [
        f"left out: {one.turns} turn{'s'[: one.turns > 1]} of {one.source}, before execution {one.execution}"
        for one in overview.skipped
    ]
    if overview.overdue:
        shown.append(f"overdue: {counted(overview.overdue, 'job')} due and not queued; start: holdfast start-worker")
    shown += [f"waits: execution {one.execution} of {one.source}: {one.why}" for one in overview.waiting]
    if overview.queued > len(overview.waiting):
        shown.append(f"waits: {overview.queued - len(overview.waiting):,} more")
    if overview.unindexed:
        shown.append(f"to index: {counted(overview.unindexed, 'execution')}")
    for worker in overview.workers:
        silent = f", gone: silent since {worker.heartbeat_at:%Y-%m-%d %H:%M:%S}, its jobs are taken over"
        name = f"worker {worker.name} (pid {worker.pid}): {counted(worker.jobs, 'job')}"
        shown.append(name + (silent if worker.gone else ""))
    return shown


_SHOWN = 5


def feed_lines(overview: FeedStatus) -> list[str]:
    """Return a line for each problem."""
    disabled = [
        f"feed {one.feed} of {one.source} is disabled ({one.error_type}): {one.url}; "
        f"try again: holdfast feed enable {one.feed}"
        for one in overview.disabled
    ]
    late = [
        f"late: {one.feeds:,} feeds of {one.source} wait to be polled since "
        f"{one.since:%Y-%m-%d %H:%M}; a worker for them: holdfast start-worker --kinds feed"
        for one in overview.late
    ]
    backlog = [
        f"backlog: {one.feeds:,} feeds of {one.source} name more than may wait; the rest is read again, "
        "see docs/feeds.md"
        for one in overview.backlog
    ]
    return [
        *_first(disabled, "{:,} more feeds are disabled: holdfast feed list --disabled"),
        *_first(late, "late: the feeds of {:,} more sources"),
        *_first(backlog, "backlog: feeds of {:,} more sources"),
    ]


def _first(lines: list[str], more: str) -> list[str]:
    return [*lines[:_SHOWN], *([more.format(len(lines) - _SHOWN)] if len(lines) > _SHOWN else ())]


_LOOK_S = 0.5
_IDLE_LOOKS = 4


@runnable(opened=open_runtime, example="status --watch")
def status(
    runtime: Runtime,
    execution: ExecutionId = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep showing it until it ends.")] = False,
) -> Done:
    """Show running and recent executions, or one of them; failures, waiting jobs with the reason, and workers."""
    raw_db, clock = runtime.raw_db, runtime.clock
    if execution is not None or watch:
        one = execution if execution is not None else _latest(raw_db)
        return _seen(runtime, _follow(runtime, one) if watch else _read(runtime, one))
    with raw_db.read() as tx:
        ids = execution_queries.latest_executions(tx, limit=10)
    found = [_seen(runtime, _read(runtime, execution_id)) for execution_id in ids]
    # Use raw statements only: users type `status` often, and loading SQLAlchemy would take most of its time.
    overall = read_overview(raw_db, clock, runtime.settings, run_folder=runtime.run_folder)
    feeds = read_feed_status(raw_db, clock, runtime.settings.feeds)
    lines = [str(one.sentence) for one in found]
    lines += [] if found else ["no executions yet; start one with: holdfast crawl https://example.org"]
    report = {"executions": [one.record for one in found], "jobs": overall, "feeds": feeds}
    return Done(report, [*lines, *overview_lines(overall), *feed_lines(feeds)])


def _read(runtime: Runtime, execution_id: int) -> ExecutionStatus:
    """Return the status of an execution; if queued, also why it waits."""
    shown = read_status(runtime.raw_db, runtime.clock, execution_id)
    if shown.state != "queued":
        return shown
    with runtime.raw_db.read() as tx:
        queued = queued_runs(tx, limit=1, ids=[execution_id])
    waiting = waiting_runs(runtime.raw_db, runtime.clock, runtime.settings, queued)
    return dataclasses.replace(shown, trouble=next((wait.sentence for _, wait in waiting), None))


def _latest(raw_db: RawDatabase) -> int:
    with raw_db.read() as tx:
        # Prefer a running one, else the newest.
        running = execution_queries.latest_executions(tx, limit=1, running=True)
        return next(iter(running or execution_queries.latest_executions(tx, limit=1)), 0)


def _follow(runtime: Runtime, execution_id: int) -> ExecutionStatus:
    display, idle = Display(runtime.clock), 0
    with display.running():
        while (shown := read_status(runtime.raw_db, runtime.clock, execution_id)).state == "running":
            display.show(shown)
            # Require several times in a row: a crawl that just started has its row shortly before its processes.
            idle = idle + 1 if _is_abandoned(runtime, shown) else 0
            if idle >= _IDLE_LOOKS:
                break
            time.sleep(_LOOK_S)
    return shown


def _is_abandoned(runtime: Runtime, shown: ExecutionStatus) -> bool:
    # Check only runs with state running: this reads the run files, one by one.
    return shown.state == "running" and is_abandoned(
        runtime.raw_db, runtime.clock, shown.execution_id, folder=runtime.run_folder
    )


def _seen(runtime: Runtime, shown: ExecutionStatus) -> Done:
    """Return an execution, and whether a process works on it as far as this machine can see."""
    # After a kill or a power failure, no process works on it.
    abandoned, stop = _is_abandoned(runtime, shown), f"holdfast stop {shown.execution_id}"
    facts = {**encode(shown, spelling=Spelling.COMMAND), "is_abandoned": abandoned}
    hint = f"\n       no process works on it: the same crawl command resumes it, {stop} ends it"
    return Done(facts, describe(shown) + (hint if abandoned else ""))


def describe(shown: ExecutionStatus) -> str:
    """Return an execution as a few lines."""
    head = f"{shown.execution_id:>5}  {shown.source}  {ending_text(shown.state, shown.reason)}"
    if (brought := shown.imported) is not None:
        files, records = counted(brought.files, "file"), counted(brought.records, "record")
        return f"{head}\n       imported {files}, {records}, {size(brought.bytes)}"
    if shown.state == "running":
        slow = [f"\n       slow: {row['domain']} {row['seconds']} s, {row['why']}" for row in shown.slow]
        return f"{head}\n       {line(shown)}{_recent(shown)}" + "".join(slow)
    if shown.state == "queued" and (waits := paused(shown)) is not None:  # its worker released it meanwhile
        head += f"\n       {waits}"
    report = f"\n       {shown.sentence}" if shown.shortfalls else f"\n       {shown.trouble}" if shown.trouble else ""
    again = f"; tried again at {shown.retry_at:%Y-%m-%d %H:%M} UTC" if shown.retry_at and report else ""
    return (
        f"{head}{report}{again}\n       {counted(shown.pages, 'page')}, {counted(shown.requests, 'request')}, "
        f"{size(shown.bytes)}, "
        f"{duration(shown.run_seconds)}, {shown.queue:,} queued; {outcomes(shown)}"
    )


def _recent(shown: ExecutionStatus) -> str:
    found = shown.recent
    if found is None:
        return ""
    errors = "" if found.error_share is None else f", {found.error_share:.0%} of the answers 4xx or 5xx"
    slow = "" if found.p95_s is None else f", 95 % within {found.p95_s:g} s"
    return f"\n       last 5 minutes: {counted(found.pages, 'page')}, {found.failed:,} failed{errors}{slow}"
