"""What can be seen from outside of crawls that run: how far, how fast, since when nothing moved, and who holds them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from holdfast.archive_tool.hold import Holder, holder_of
from holdfast.archive_tool.logs import newest_log, read_progress
from holdfast.archive_tool.state import STATE_NAME, load_state
from holdfast.jobs.care.queries import Run
from holdfast.jobs.recovering import Sight

_TOOLS = ("zimit", "http_warc", "playwright_warc")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSight:
    """One running execution of zimit."""

    run: Run
    sight: Sight
    holder: Holder | None
    """The tool that works in the directory; None if none does."""
    state_ok: bool
    restarts: int
    errors: dict[str, int]
    log: str | None

    @property
    def is_annual(self) -> bool:
        """Whether document 001's minima hold for it."""
        return self.run.job.kind in ("annual", "shard")


def is_tool_run(run: Run) -> bool:
    """Return whether an execution is run by `archive-tool`."""
    return run.execution.config.get("backend") in _TOOLS


def see(run: Run, *, now: datetime) -> RunSight:
    """Look at a running execution's directory. The newest log counts, whatever the row says; nothing is changed."""
    folder = Path(run.execution.output_dir)
    log, state = newest_log(folder), load_state(folder, 1)
    taken = run.job.lock_acquired_at or run.execution.started_at or now
    running_s = max(0.0, (now - taken).total_seconds())
    progress = None if log is None else read_progress(log)
    moved = None if progress is None else progress.changed_at
    if moved is None and log is not None:
        moved = datetime.fromtimestamp(log.stat().st_mtime, UTC)
    # A log of an earlier holder says nothing about how long this one has been idle.
    idle_s = running_s if moved is None else min(running_s, max(0.0, (now - moved).total_seconds()))
    return RunSight(
        run=run, holder=holder_of(folder), state_ok=_is_state_ok(folder), restarts=state.container_restarts,
        errors=dict(state.errors), log=None if log is None else str(log),
        sight=Sight(
            pages=0 if progress is None else progress.last.crawled, running_s=running_s, idle_s=idle_s,
            pages_per_minute=None if progress is None else progress.pages_per_minute,
        ),
    )  # fmt: skip


def _is_state_ok(folder: Path) -> bool:
    try:
        return isinstance(json.loads((folder / STATE_NAME).read_bytes()), dict)
    except (OSError, ValueError):
        return False
