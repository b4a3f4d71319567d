"""What can be seen from outside of crawls that run: how far, how fast, since when nothing moved, and who holds them.

Of a tool the directory is looked at, of our own crawler the rows. A directory is first asked, by a process of its own,
whether it answers: who touches a dead mount may never come back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from holdfast.archive_tool.hold import Holder, holder_of
from holdfast.archive_tool.logs import newest_log, read_progress
from holdfast.archive_tool.state import STATE_NAME, load_state
from holdfast.jobs.care import queries
from holdfast.jobs.care.queries import Run
from holdfast.jobs.operating.configuring import effective
from holdfast.jobs.recovering import Sight
from holdfast.wiring.jobs import Jobs
from holdfast.worker.care.probes import Probe, probe

Ask = Callable[[Iterable[Path]], Mapping[Path, Probe]]

TOOLS = ("zimit", "http_warc", "playwright_warc")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSight:
    """One running execution."""

    run: Run
    sight: Sight
    holder: Holder | None
    """The tool that works in the directory; None if none does, and for our own crawler."""
    state_ok: bool
    restarts: int
    errors: dict[str, int]
    log: str | None

    @property
    def is_tool(self) -> bool:
        """Whether `archive-tool` runs it; our own crawler otherwise."""
        return is_tool_run(self.run)

    @property
    def is_annual(self) -> bool:
        """Whether document 001's minima hold for it."""
        return self.run.job.kind in ("annual", "shard")


def is_tool_run(run: Run) -> bool:
    """Return whether an execution is run by `archive-tool`."""
    return run.execution.config.get("backend") in TOOLS


def see_all(jobs: Jobs, *, ask: Ask | None = None) -> list[RunSight]:
    """Look at every execution that runs, by job; nothing is changed. `ask` replaces how directories are asked."""
    now = jobs.clock.now()
    with jobs.database.read() as session:
        runs = queries.running(session)
        rows = {
            run.job.id: (queries.last_progress(session, run), queries.next_due(session, run))
            for run in runs if not is_tool_run(run)
        }  # fmt: skip
    folders = [Path(run.execution.output_dir) for run in runs if run.job.id not in rows]
    health = ask(folders) if ask else probe(folders, jobs.clock, deadline_s=jobs.settings.storage.probe_s)
    sights = []
    for run in runs:
        if run.job.id in rows:
            sights.append(see_native(run, *rows[run.job.id], now=now))
        elif health[Path(run.execution.output_dir)].is_dead:
            sights.append(_see_nothing(run, now=now))
        else:
            sights.append(see_tool(run, now=now))
    return sights


def see_native(run: Run, moved: datetime | None, due: datetime | None, *, now: datetime) -> RunSight:
    """Return how a run of our own crawler gets on: since its counts changed, or it had something to ask for.

    Its pace is what politeness allows, so nothing is said of it; waiting, as a site or its own delay asks, is no
    standstill.
    """
    taken = run.job.lock_acquired_at or run.execution.started_at or now
    since = max(filter(None, (taken, moved, due))) + timedelta(seconds=effective(run.job, run.source).delay_s)
    return RunSight(
        run=run, holder=None, state_ok=True, restarts=0, errors={}, log=None,
        sight=Sight(
            pages=run.execution.items_crawled, running_s=max(0.0, (now - taken).total_seconds()),
            idle_s=max(0.0, (now - since).total_seconds()), pages_per_minute=None,
        ),
    )  # fmt: skip


def see_tool(run: Run, *, now: datetime) -> RunSight:
    """Look at a tool's directory. The newest log counts, whatever the row says; nothing is changed.

    A disk that does not answer shows nothing: the run looks as if nothing had moved since it was taken.
    """
    try:
        return _see_directory(run, Path(run.execution.output_dir), _running_s(run, now), now)
    except OSError:
        return _see_nothing(run, now=now)


def _running_s(run: Run, now: datetime) -> float:
    taken = run.job.lock_acquired_at or run.execution.started_at or now
    return max(0.0, (now - taken).total_seconds())


def _see_nothing(run: Run, *, now: datetime) -> RunSight:
    seconds = _running_s(run, now)
    blind = Sight(pages=run.execution.items_crawled, running_s=seconds, idle_s=seconds, pages_per_minute=None)
    return RunSight(run=run, holder=None, state_ok=False, restarts=0, errors={}, log=None, sight=blind)


def _see_directory(run: Run, folder: Path, running_s: float, now: datetime) -> RunSight:
    log, state = newest_log(folder), load_state(folder, 1)
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
