"""Acts of operators on crawls: stopping a run, and releasing the leases of dead processes.

Leases are released immediately on this machine, elsewhere long after they expired.
"""

from __future__ import annotations

from holdfast.config import Settings
from holdfast.crawl import stopping
from holdfast.crawl.recovery import recover
from holdfast.db.audit_events import append_event
from holdfast.operations.overview import StopReceipt
from holdfast.records import Operator, record
from holdfast.wiring import Runtime, open_runtime

LEASE_AGE_S = 900.0
"""Age from which `frontier recover` releases an expired lease: far beyond a lease's 60 s, so its owner is dead."""


@record
class RecoverReceipt:
    """Leases and files of dead processes that were released and repaired."""

    recovered: Operator[int]
    """Domains that can be crawled again."""
    processes: Operator[int]
    """Dead processes that were cleaned up."""
    files: Operator[list[str]]
    """WARC files that were repaired and sealed."""
    orphan_records: Operator[int]
    """Records that stay in the files and will be fetched again."""


def recover_frontier(runtime: Runtime, *, minutes: float | None) -> RecoverReceipt:
    """Release everything that no live process holds, and leases that expired `minutes` (or `LEASE_AGE_S`) ago."""
    cleaned = recover(runtime)
    # Younger leases may belong to another machine's process that lost the database only briefly.
    age_s = LEASE_AGE_S if minutes is None else minutes * 60.0
    expired = runtime.frontier.recover(older_than_s=age_s)
    done = RecoverReceipt(
        recovered=cleaned.domains + expired,
        processes=cleaned.owners,
        files=list(cleaned.repaired),
        orphan_records=cleaned.orphans,
    )
    if done.recovered or done.processes:
        with runtime.raw_db.write() as tx:
            subject, detail = "frontier", {"domains": done.recovered, "processes": done.processes, "files": done.files}
            append_event(tx, runtime.clock, action="frontier.recovered", subject=subject, detail=detail)
    return done


def stop_execution(settings: Settings, execution_id: int, *, discard: bool) -> StopReceipt:
    """Request an execution to drain, or to be discarded; raise NotFound."""
    with open_runtime(settings) as runtime:
        ids = stopping.ask_to_stop(runtime, execution_id=execution_id, cancel=discard)
        held = stopping.still_held(runtime, ids)
    return StopReceipt(execution_ids=ids, held=held)
