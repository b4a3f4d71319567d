"""`holdfast status`: how executions stand, from another terminal or afterwards."""

from __future__ import annotations

import dataclasses
import json as jsonlib
import time
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.display import Display
from holdfast.cli.formatting import counted, duration, line, outcomes, paused, size
from holdfast.cli.parameters import AsJson, ExecutionId, Home
from holdfast.clock import from_micros
from holdfast.db.raw import RawDatabase
from holdfast.feeds.status import FeedStatus, read_feed_status
from holdfast.jobs import execution_queries
from holdfast.jobs.endings import ending_text, ending_word
from holdfast.jobs.views.status import ExecutionStatus, JobsOverview, is_abandoned, read_overview, read_status
from holdfast.wiring import Runtime, open_runtime


def overview_lines(overview: JobsOverview) -> list[str]:
    """Return a line for each thing that deserves a look; none if all is well."""
    shown = [
        f"ALERT {one.name} since {from_micros(one.since):%Y-%m-%d %H:%M}: {one.message}" for one in overview.alerts
    ]
    if overview.low_disk:
        where = f" at {overview.low_volume}" if overview.low_volume else ""
        shown.append(
            f"low disk{where}: nothing new starts until there is room, by HOLDFAST_DISK_FREE_BYTES and"
            " HOLDFAST_DISK_FREE_PERCENT"
        )
    if overview.refusal is not None:
        shown.append(f"no room: {overview.refusal.sentence()}")
    for run in overview.failed:
        what = "index failed" if run.index_state == "index_failed" else run.failure or "failed"
        again = f"; again at {from_micros(run.next_run_at):%Y-%m-%d %H:%M}" if run.next_run_at else ""
        again = "; a later run went well" if run.mended else again
        shown.append(
            f"failed: execution {run.execution_id} of {run.source}, {what}: {run.error or 'no reason given'}{again}"
        )
    shown += [
        f"left out: {one.turns} turn{'s'[: one.turns > 1]} of {one.source}, before execution {one.execution_id}"
        for one in overview.skipped
    ]
    if overview.overdue:
        shown.append(f"overdue: {counted(overview.overdue, 'job')} due and not queued; start: holdfast start-worker")
    shown += [f"waits: execution {one.run.execution_id} of {one.run.source}: {one.why}" for one in overview.waiting]
    if overview.queued > len(overview.waiting):
        shown.append(f"waits: {overview.queued - len(overview.waiting):,} more")
    if overview.unindexed:
        shown.append(f"to index: {counted(overview.unindexed, 'execution')}")
    for worker in overview.workers:
        silent = f"silent since {worker.seen.heartbeat_at:%Y-%m-%d %H:%M:%S}, its jobs are taken over"
        shown.append(
            f"worker {worker.name} (pid {worker.seen.pid}): {counted(worker.jobs, 'job')}"
            + (f", gone: {silent}" if worker.seen.is_gone else "")
        )
    return shown


def overview_object(overview: JobsOverview) -> dict[str, Any]:
    """Return the same for `--json`."""
    return {
        "alerts": [
            {
                "name": one.name,
                "severity": one.severity,
                "since": from_micros(one.since).isoformat(),
                "value": one.value,
                "message": one.message,
            }
            for one in overview.alerts
        ],
        "low_disk": overview.low_disk,
        "low_volume": str(overview.low_volume) if overview.low_volume else None,
        "write_refused": None
        if overview.refusal is None
        else {"at": overview.refusal.at.isoformat(), "message": overview.refusal.message},
        "queued": overview.queued,
        "overdue": overview.overdue,
        "unindexed": overview.unindexed,
        "failed": [
            {
                "execution": run.execution_id,
                "job": run.job_id,
                "source": run.source,
                "failure": run.failure,
                "index_state": run.index_state,
                "error": run.error,
                "at": from_micros(run.finished_at).isoformat(),
                "mended": run.mended,
                "next_run_at": from_micros(run.next_run_at).isoformat() if run.next_run_at else None,
            }
            for run in overview.failed
        ],
        "skipped": [
            {"execution": one.execution_id, "source": one.source, "turns": one.turns} for one in overview.skipped
        ],
        "waiting": [
            {"execution": one.run.execution_id, "job": one.run.job_id, "source": one.run.source, "why": one.why}
            for one in overview.waiting
        ],
        "workers": [
            {
                "name": one.name,
                "pid": one.seen.pid,
                "jobs": one.jobs,
                "gone": one.seen.is_gone,
                "heartbeat_at": one.seen.heartbeat_at.isoformat(),
            }
            for one in overview.workers
        ],
    }


_SHOWN = 5


def feed_lines(overview: FeedStatus) -> list[str]:
    """Return a line for each thing that deserves a look; none if all is well."""
    shown = [
        f"feed {one.feed_id} of {one.source} is disabled ({one.trouble}): {one.url}; "
        f"try again: holdfast feed enable {one.feed_id}"
        for one in overview.disabled[:_SHOWN]
    ]
    if len(overview.disabled) > _SHOWN:
        shown.append(f"{len(overview.disabled) - _SHOWN:,} more feeds are disabled: holdfast feed list --disabled")
    shown += [
        f"late: {one.feeds:,} feeds of {one.source} wait to be polled since "
        f"{from_micros(one.since):%Y-%m-%d %H:%M}; a worker for them: holdfast start-worker --kinds feed"
        for one in overview.late[:_SHOWN]
    ]
    if len(overview.late) > _SHOWN:
        shown.append(f"late: the feeds of {len(overview.late) - _SHOWN:,} more sources")
    shown += [
        f"backlog: {feeds:,} feeds of {source} name more than may wait; what is left is read again, "
        "see HOLDFAST_FEEDS_WAITING and HOLDFAST_FEEDS_ITEMS"
        for source, feeds in overview.backlogs[:_SHOWN]
    ]
    if len(overview.backlogs) > _SHOWN:
        shown.append(f"backlog: feeds of {len(overview.backlogs) - _SHOWN:,} more sources")
    return shown


def feeds_object(overview: FeedStatus) -> dict[str, Any]:
    """Return the same for `--json`."""
    return {
        "disabled": [
            {
                "feed": one.feed_id,
                "source": one.source,
                "url": one.url,
                "error_type": one.trouble,
                "disabled_at": from_micros(one.disabled_at).isoformat(),
            }
            for one in overview.disabled
        ],
        "late": [
            {"source": one.source, "feeds": one.feeds, "since": from_micros(one.since).isoformat()}
            for one in overview.late
        ],
        "backlog": [{"source": source, "feeds": feeds} for source, feeds in overview.backlogs],
    }


_LOOK_S = 0.5
_IDLE_LOOKS = 4


def status(
    execution: ExecutionId = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep showing it until it ends.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Show running and recent executions, or one of them; and what failed, what waits and why, and who works.

    Example: holdfast status --watch
    """
    with open_runtime(config.load(home=home)) as runtime:
        raw_db, clock = runtime.raw_db, runtime.clock
        if execution is not None or watch:
            one = execution if execution is not None else _latest(raw_db)
            shown = _follow(runtime, one) if watch else read_status(raw_db, clock, one)
            print(jsonlib.dumps(_as_seen(runtime, shown)) if json else describe(shown) + _abandoned(runtime, shown))
            return
        with raw_db.read() as tx:
            ids = execution_queries.latest_executions(tx, limit=10)
        found = [read_status(raw_db, clock, execution_id) for execution_id in ids]
        # Raw statements only: `status` is typed again and again, and SQLAlchemy would take most of its time to load.
        overall = read_overview(raw_db, clock, runtime.settings, run_folder=runtime.run_folder)
        objects = [_as_seen(runtime, one) for one in found] if json else []
        lines = [] if json else [describe(one) + _abandoned(runtime, one) for one in found]
        feeds = read_feed_status(raw_db, clock, runtime.settings.feeds)
    if json:
        report = {"executions": objects, "jobs": overview_object(overall), "feeds": feeds_object(feeds)}
        print(jsonlib.dumps(report))
        return
    if not found:
        print("no executions yet; start one with: holdfast crawl https://example.org")
    print("\n".join([*lines, *overview_lines(overall), *feed_lines(feeds)]))


def _latest(raw_db: RawDatabase) -> int:
    with raw_db.read() as tx:
        # What runs is meant first; the newest otherwise.
        ids = execution_queries.latest_executions(tx, limit=1, running=True) or execution_queries.latest_executions(
            tx, limit=1
        )
    return ids[0] if ids else 0


def _follow(runtime: Runtime, execution_id: int) -> ExecutionStatus:
    """Show an execution until it ends, or until it is plain that no process works on it."""
    display, idle = Display(runtime.clock), 0
    with display.running():
        while (shown := read_status(runtime.raw_db, runtime.clock, execution_id)).state == "running":
            display.show(shown)
            # Several looks in a row: a crawl that has just begun has its row a moment before its processes.
            idle = idle + 1 if _is_abandoned(runtime, shown) else 0
            if idle >= _IDLE_LOOKS:
                break
            time.sleep(_LOOK_S)
    return shown


def _is_abandoned(runtime: Runtime, shown: ExecutionStatus) -> bool:
    # Only of those that are said to run: who works is asked of the run files, one by one.
    return shown.state == "running" and is_abandoned(
        runtime.raw_db, runtime.clock, shown.execution_id, folder=runtime.run_folder
    )


def _as_seen(runtime: Runtime, shown: ExecutionStatus) -> dict[str, Any]:
    """Return an execution for `--json`, with whether a process works on it as far as can be told from here."""
    return {**as_object(shown), "is_abandoned": _is_abandoned(runtime, shown)}


def _abandoned(runtime: Runtime, shown: ExecutionStatus) -> str:
    """Return what to say of a crawl whose processes are gone without a word: a kill, or a machine without power."""
    if not _is_abandoned(runtime, shown):
        return ""
    stop = f"holdfast stop {shown.execution_id}"
    return f"\n       no process works on it: the same crawl command resumes it, {stop} ends it"


def describe(shown: ExecutionStatus) -> str:
    """Return an execution as a few lines."""
    head = f"{shown.execution_id:>5}  {shown.source}  {ending_text(shown.state, shown.reason)}"
    if (brought := shown.imported) is not None:
        files, records = counted(brought.files, "file"), counted(brought.records, "record")
        return f"{head}\n       imported {files}, {records}, {size(brought.bytes)}"
    if shown.state == "running":
        slow = [f"\n       slow: {row['domain']} {row['seconds']} s, {row['why']}" for row in shown.slow]
        return f"{head}\n       {line(shown, shown.pages_s)}{_recent(shown)}" + "".join(slow)
    if shown.state == "queued" and (waits := paused(shown)) is not None:  # its worker handed it back meanwhile
        head += f"\n       {waits}"
    report = f"\n       {shown.sentence}" if shown.shortfalls else f"\n       {shown.trouble}" if shown.trouble else ""
    again = f"; tried again at {shown.retry_at:%Y-%m-%d %H:%M} UTC" if shown.retry_at and report else ""
    return (
        f"{head}{report}{again}\n       {counted(shown.pages, 'page')}, {counted(shown.requests, 'request')}, "
        f"{size(shown.bytes)}, "
        f"{duration(shown.run_seconds)}, {shown.queue:,} queued; {outcomes(shown)}"
    )


def _recent(shown: ExecutionStatus) -> str:
    """Return what it did in the last five minutes, if anything."""
    found = shown.recent
    if found is None:
        return ""
    errors = "" if found.error_share is None else f", {found.error_share:.0%} of the answers 4xx or 5xx"
    slow = "" if found.p95_s is None else f", 95 % within {found.p95_s:g} s"
    return f"\n       last 5 minutes: {counted(found.pages, 'page')}, {found.failed:,} failed{errors}{slow}"


def as_object(shown: ExecutionStatus) -> dict[str, Any]:
    """Return an execution for `--json`."""
    return {
        "execution": shown.execution_id,
        "source": shown.source,
        "state": shown.state,
        "ending": ending_word(shown.state, shown.reason),
        "reason": shown.reason,
        "shortfalls": shown.shortfalls,
        "sentence": shown.sentence,
        "error": shown.error,
        "research_ready": shown.rule.is_ready if shown.sentence is not None else None,
        "retry_at": shown.retry_at.isoformat() if shown.retry_at else None,
        "condition": shown.condition if shown.state == "running" else None,
        "paused_at": shown.paused_at.isoformat() if shown.paused_at else None,
        "paused_by": shown.paused_by,
        "paused_seconds": round(shown.paused_seconds, 1),
        "trouble": shown.trouble,
        "imported": None if shown.imported is None else shown.imported._asdict(),
        "pages": shown.pages,
        "pages_s": shown.pages_s,
        "requests": shown.requests,
        "bytes": shown.bytes,
        "queue": shown.queue,
        "recent": None if shown.recent is None else dataclasses.asdict(shown.recent),
        "active_domains": shown.active_domains,
        "outcomes": shown.outcomes,
        "slow": list(shown.slow),
        "seconds": round(shown.run_seconds, 3),
        "output_dir": str(shown.output_dir),
        "started_at": shown.started_at.isoformat() if shown.started_at else None,
        "finished_at": shown.finished_at.isoformat() if shown.finished_at else None,
    }


app_command = status
