"""What a dead path leaves in the rows: sights and deeds. Who opens the session ends it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.models import Recovery
from holdfast.jobs.care.queries import Run, add_recovery


def note(session: Session, clock: Clock, runs: Iterable[Run], action: str, reason: str) -> None:
    """Note a sight of a path, or a deed for it, with each of its jobs."""
    now = clock.now()
    for run in runs:
        add_recovery(session, Recovery(
            job_id=run.job.id, execution_id=run.execution.id, at=now, action=action, reason=reason,
            pages=run.execution.items_crawled,
        ))  # fmt: skip


def record_steps(session: Session, clock: Clock, path: str, detail: dict[str, Any]) -> None:
    """Keep in the audit log what was done about a dead path, step by step."""
    audit.record(session, clock, action="storage.path_freed", subject=f"path {path}", detail=detail)
