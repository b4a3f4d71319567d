"""How the jobs stand altogether, as `holdfast status` shows it: only what deserves a look."""

from __future__ import annotations

from typing import Any

from holdfast.cli.wording import counted
from holdfast.clock import from_micros
from holdfast.jobs.standing.standing import Standing


def lines(standing: Standing) -> list[str]:
    """Return a line for each thing that deserves a look; none if all is well."""
    shown = []
    if standing.low_disk:
        where = f" at {standing.low_volume}" if standing.low_volume else ""
        shown.append(
            f"low disk{where}: nothing new starts until there is room, by HOLDFAST_DISK_FREE_BYTES and"
            " HOLDFAST_DISK_FREE_PERCENT"
        )
    if standing.refusal is not None:
        shown.append(f"no room: {standing.refusal.sentence()}")
    for run in standing.failed:
        what = "index failed" if run.index_state == "index_failed" else run.failure or "failed"
        again = f"; again at {from_micros(run.next_run_at):%Y-%m-%d %H:%M}" if run.next_run_at else ""
        again = "; a later run went well" if run.mended else again
        shown.append(
            f"failed: execution {run.execution_id} of {run.source}, {what}: {run.error or 'no reason given'}{again}"
        )
    shown += [
        f"left out: {one.turns} turn{'s'[: one.turns > 1]} of {one.source}, before execution {one.execution_id}"
        for one in standing.skipped
    ]
    if standing.overdue:
        shown.append(f"overdue: {counted(standing.overdue, 'job')} due and not queued; start: holdfast start-worker")
    shown += [f"waits: execution {one.run.execution_id} of {one.run.source}: {one.why}" for one in standing.waiting]
    if standing.queued > len(standing.waiting):
        shown.append(f"waits: {standing.queued - len(standing.waiting):,} more")
    if standing.unindexed:
        shown.append(f"to index: {counted(standing.unindexed, 'execution')}")
    for worker in standing.workers:
        silent = f"silent since {worker.seen.heartbeat_at:%Y-%m-%d %H:%M:%S}, its jobs are taken over"
        shown.append(f"worker {worker.name} (pid {worker.seen.pid}): {counted(worker.jobs, 'job')}"
                     + (f", gone: {silent}" if worker.seen.is_gone else ""))  # fmt: skip
    return shown


def as_object(standing: Standing) -> dict[str, Any]:
    """Return the same for `--json`."""
    return {
        "low_disk": standing.low_disk, "low_volume": str(standing.low_volume) if standing.low_volume else None,
        "write_refused": None
        if standing.refusal is None
        else {"at": standing.refusal.at.isoformat(), "message": standing.refusal.message},
        "queued": standing.queued, "overdue": standing.overdue,
        "unindexed": standing.unindexed,
        "failed": [
            {"execution": run.execution_id, "job": run.job_id, "source": run.source, "failure": run.failure,
             "index_state": run.index_state, "error": run.error, "at": from_micros(run.finished_at).isoformat(),
             "mended": run.mended,
             "next_run_at": from_micros(run.next_run_at).isoformat() if run.next_run_at else None}
            for run in standing.failed
        ],
        "skipped": [
            {"execution": one.execution_id, "source": one.source, "turns": one.turns} for one in standing.skipped
        ],
        "waiting": [
            {"execution": one.run.execution_id, "job": one.run.job_id, "source": one.run.source, "why": one.why}
            for one in standing.waiting
        ],
        "workers": [
            {"name": one.name, "pid": one.seen.pid, "jobs": one.jobs, "gone": one.seen.is_gone,
             "heartbeat_at": one.seen.heartbeat_at.isoformat()}
            for one in standing.workers
        ],
    }  # fmt: skip
