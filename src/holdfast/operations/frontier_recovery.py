"""Frees what dead processes held: of this machine at once, of others when their leases expired long ago."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.crawl_process.recovery import recover
from holdfast.db.audit_events import append_event
from holdfast.wiring import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierRecovery:
    """What was freed and mended."""

    domains: int
    processes: int
    files: tuple[str, ...]
    orphan_records: int


def recover_frontier(runtime: Runtime, *, minutes: float | None) -> FrontierRecovery:
    """Free what no live process holds; leases that expired so many minutes ago, or as the settings say."""
    cleaned = recover(runtime)
    # Younger leases may belong to a process of another machine that only lost the database for a moment.
    age_s = runtime.settings.lease.recover_s if minutes is None else minutes * 60.0
    expired = runtime.frontier.recover(older_than_s=age_s)
    done = FrontierRecovery(
        domains=cleaned.domains + expired,
        processes=cleaned.owners,
        files=tuple(cleaned.repaired),
        orphan_records=cleaned.orphans,
    )
    if done.domains or done.processes:
        with runtime.raw_db.write() as tx:
            append_event(
                tx,
                runtime.clock,
                action="frontier.recovered",
                subject="frontier",
                detail={"domains": done.domains, "processes": done.processes, "files": list(done.files)},
            )
    return done
