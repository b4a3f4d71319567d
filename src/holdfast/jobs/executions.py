"""One run of a crawl: begun or taken up again, asked to stop, ended. The database holds at most one open per job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.crawl.plan import CrawlPlan
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.jobs import queries
from holdfast.sources.queries import ensure_source

ADHOC = "adhoc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """An execution that may be worked on."""

    execution_id: int
    source_code: str
    output_dir: Path
    resumed: bool
    run_seconds: float
    landing: tuple[str, ...] = ()


class Wish(NamedTuple):
    """Where an execution should write, and whether it may be a new one."""

    home: Path
    output: Path | None = None
    resume_only: bool = False


def begin(database: Database, clock: Clock, plan: CrawlPlan, wish: Wish, *,
          is_working: Callable[[int], bool]) -> Begun:  # fmt: skip
    """Take up the unfinished execution with the same seeds and scope, or begin a new one.

    Conflict if a live process works on it already; NotFound if `resume_only` and there is nothing to resume.
    """
    with database.write() as session:
        job = queries.job_by_fingerprint(session, kind=ADHOC, fingerprint=plan.fingerprint())
        found = queries.open_execution(session, job_id=job.id) if job is not None else None
        if found is not None and is_working(found.id):
            raise Conflict(
                f"execution {found.id} crawls these seeds already; watch it with: holdfast status, "
                "or end it with: holdfast stop"
            )
        if found is None and wish.resume_only:
            raise NotFound("nothing to resume for these seeds and this scope; leave out --resume to start a crawl")
        if found is not None:
            found.state, found.stop_requested, found.finished_at = "running", None, None
            begun = _begun(session, found, resumed=True)
        else:
            begun = _start(session, clock, plan, job, wish)
        if plan.robots == "ignore":
            audit.record(session, clock, action="robots.ignored", subject=f"execution {begun.execution_id}",
                         detail={"reason": plan.robots_reason, "seeds": list(plan.seeds)})  # fmt: skip
        return begun


def _start(session: Session, clock: Clock, plan: CrawlPlan, job: Job | None, wish: Wish) -> Begun:
    now, first = clock.now(), plan.seed_urls()[0]
    if job is None:
        source = ensure_source(session, clock, host=first.host, base_url=f"{first.origin}/")
        job = Job(source_id=source.id, kind=ADHOC, fingerprint=plan.fingerprint(), config={}, created_at=now)
        session.add(job)
        session.flush()
    source = queries.source_of(session, job_id=job.id)
    folder = wish.output or wish.home / "warcs" / source.code / f"{now:%Y%m%dT%H%M%SZ}__{source.code}"
    execution = Execution(
        job_id=job.id, number=queries.last_number(session, job_id=job.id) + 1, state="running", config=plan.public(),
        output_dir=str(folder.resolve()), created_at=now, started_at=now, run_seconds=0.0,
    )  # fmt: skip
    session.add(execution)
    session.flush()
    if wish.output is None:
        execution.output_dir = f"{execution.output_dir}-{execution.id}"
    return _begun(session, execution, resumed=False)


def _begun(session: Session, execution: Execution, *, resumed: bool) -> Begun:
    folder = Path(execution.output_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise Invalid(f"cannot write to {folder}: {exc.strerror}; choose another place with --output") from exc
    return Begun(
        execution_id=execution.id, source_code=queries.source_of(session, job_id=execution.job_id).code,
        output_dir=folder, resumed=resumed, run_seconds=execution.run_seconds,
        landing=tuple(execution.config.get("landing", ())),
    )  # fmt: skip


def end(database: Database, clock: Clock, execution_id: int, *, state: str, reason: str | None, seconds: float) -> None:
    """Say how an execution ended: completed, stopped (may be resumed), cancelled or failed."""
    with database.write() as session:
        execution = queries.execution(session, execution_id)
        assert execution is not None
        execution.state, execution.reason, execution.stop_requested = state, reason, None
        execution.finished_at = clock.now()
        execution.run_seconds += seconds


def request_stop(database: Database, *, execution_id: int | None, cancel: bool) -> list[int]:
    """Ask one execution, or all that run, to drain or to discard; return their ids. NotFound if none runs."""
    with database.write() as session:
        if execution_id is not None:
            one = queries.execution(session, execution_id)
            rows = [one] if one is not None and one.state in queries.OPEN else []
        else:
            rows = queries.latest_executions(session, limit=1000, states=("running",))
        for row in rows:
            row.stop_requested = "cancel" if cancel else "drain"
    if not rows:
        which = "no execution runs" if execution_id is None else f"execution {execution_id} does not run"
        raise NotFound(f"{which}; see them with: holdfast status")
    return [row.id for row in rows]
