"""Jobs and executions as people look for them. A page is found by an index wherever its order has one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, ScalarSelect, Select, String, case, func, literal, null, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased, defer

from holdfast.db.models import Execution, ExecutionCount, Job, Queue, Source, WarcFile
from holdfast.jobs import schedule_queries
from holdfast.jobs.endings import Counts
from holdfast.jobs.pauses import awaited
from holdfast.jobs.states import State
from holdfast.types import FAILURES
from holdfast.values import dataclass
from holdfast.withdrawals.visibility import visible_source

ADMIN_STATES = (
    "queued",
    "running",
    "retryable",
    "failed",
    "completed",
    "indexing",
    "indexed",
    "index_failed",
    "paused",
    "cancelled",
)
_ADHOC = {
    "queued": "queued",
    "running": "running",
    "stopped": "retryable",
    "failed": "failed",
    "cancelled": "cancelled",
}


class Latest(NamedTuple):
    """A job's newest execution, as far as its state is concerned."""

    state: str
    index_state: str | None = None


def admin_state(state: str | None, *, retries: int, latest: Latest | None, failed: bool = False) -> str:
    """Return the admin word for a job and its latest execution.

    queued is pending, or scheduled without a retry; retryable is scheduled with one, or pending after a run that
    `failed`; what has been crawled shows how far its index is. A job that the scheduler does not run (ad hoc, import)
    is what its execution is.
    """
    if state is None:
        if latest is None:
            return "queued"
        return _ADHOC.get(latest.state) or _indexed(latest)
    if state == State.PENDING:
        return "retryable" if failed else "queued"
    if state == State.SCHEDULED:
        if retries > 0:
            return "retryable"
        return _indexed(latest) if latest is not None and latest.state == "completed" else "queued"
    if state == State.COMPLETED:
        return _indexed(latest) if latest is not None else "completed"
    return state


def _indexed(latest: Latest) -> str:
    return latest.index_state if latest.index_state in ("indexing", "indexed", "index_failed") else "completed"


DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 250
"""Of the lists below `/api/v1`."""
ADMIN_MAX_LIMIT: Final = 500
MAX_OFFSET: Final = 10_000_000
SORTS: Final = ("created_at", "updated_at", "status", "source_name", "next_run_at", "last_run_at", "type")


class JobFilter(NamedTuple):
    """Which jobs that the scheduler runs are listed, and in which order."""

    states: tuple[str, ...] = ()
    source_id: int | None = None
    kind: str | None = None
    search: str = ""
    sort_by: str = "created_at"
    descending: bool = True
    limit: int = DEFAULT_LIMIT
    offset: int = 0


class AdminFilter(NamedTuple):
    """Which jobs are listed, ad-hoc crawls and imports included, newest first."""

    source: str | None = None
    """A source's code."""
    status: str | None = None
    """One of `ADMIN_STATES`."""
    limit: int = DEFAULT_LIMIT
    offset: int = 0


class ListedJob(NamedTuple):
    """A job, its source, and its newest execution if it has any (without its stack and metrics)."""

    job: Job
    source: Source
    latest: Execution | None
    awaited: str | None = None
    """The machine that its queued run waits for, in words."""

    @property
    def retries(self) -> int:
        """How many retries its present run has burnt; trouble of the machine burns none."""
        return self.job.current_retry_count

    @property
    def admin_status(self) -> str:
        """Its state in the words of `/api/admin/jobs`."""
        latest = None if self.latest is None else Latest(self.latest.state, self.latest.index_state)
        tried = self.job.current_retry_count + self.job.infra_retry_count
        failed = self.job.error_message is not None
        return admin_state(self.job.state, retries=tried, latest=latest, failed=failed)


class WarcTotals(NamedTuple):
    """How many WARC files an execution has, and how large they are together."""

    number: int = 0
    size: int = 0


class JobStats(NamedTuple):
    """A job's history in a few figures."""

    total_executions: int
    successful_runs: int
    failed_runs: int
    average_duration_ms: float
    last_execution_at: datetime | None
    next_scheduled_at: datetime | None
    success_rate: float


def sort_word(word: str) -> str:
    """Return the order that is used for a word: an unknown one falls back to created_at."""
    return word if word in SORTS else "created_at"


def bounded_limit(limit: int, *, most: int = MAX_LIMIT) -> int:
    """Return how many rows are read for a wish: at most what the list allows; 0 and less count as 50."""
    return min(limit, most) if limit > 0 else DEFAULT_LIMIT


def stats_of(job: Job) -> JobStats:
    """Return a job's stats; they stand in its row, whatever the length of its history."""
    finished = job.successful_runs + job.failed_runs
    return JobStats(
        total_executions=job.total_runs,
        successful_runs=job.successful_runs,
        failed_runs=job.failed_runs,
        average_duration_ms=job.total_duration_ms / job.total_runs if job.total_runs else 0.0,
        last_execution_at=job.last_execution_at,
        next_scheduled_at=job.next_run_at,
        success_rate=job.successful_runs / finished if finished else 0.0,
    )


_SORTED: dict[str, InstrumentedAttribute[object]] = {
    # Ids are given in the order of creation: this order needs no index of its own.
    "created_at": Job.id,
    "updated_at": Job.updated_at,
    "status": Job.state,
    "source_name": Source.name,
    "last_run_at": Job.last_execution_at,
    "type": Job.kind,
}
_NULLABLE = frozenset({"last_run_at"})
_INDEX_STATES = (None, "pending", "indexing", "indexed", "index_failed")
_EXECUTION_STATES = (None, "queued", "running", "stopped", "completed", "cancelled", "failed")
_DONE = ("indexing", "indexed", "index_failed")


def list_jobs(session: Session, wanted: JobFilter) -> tuple[list[ListedJob], int]:
    """Return one page of the jobs that the scheduler runs, and how many there are in all."""
    where = _where(wanted)
    total = _count(session, where, named=bool(wanted.search))
    limit, offset = bounded_limit(wanted.limit), max(wanted.offset, 0)
    # Empty values last, in one statement, would keep PostgreSQL from its index: two statements each have one.
    if sort_word(wanted.sort_by) == "next_run_at":
        rows = _by_next_run(session, wanted, limit, offset)
    else:
        rows = _rows(session, _ordered(select(Job, Source).join(Source).where(*where), wanted), limit, offset)
    return _with_latest(session, rows), total


def _rows(session: Session, query: Select[Job, Source], limit: int, offset: int) -> list[tuple[Job, Source]]:
    return [(row[0], row[1]) for row in session.execute(query.limit(limit).offset(offset))]


def _ordered(query: Select[Job, Source], wanted: JobFilter) -> Select[Job, Source]:
    word = sort_word(wanted.sort_by)
    column = _SORTED[word]
    order = column.desc() if wanted.descending else column.asc()
    # Where there are no empty values, the clause for them would only keep PostgreSQL from its index.
    ordered = query.order_by(order.nulls_last() if word in _NULLABLE else order)
    # A unique column last: without it two pages of equal values may show a job twice, or never.
    return ordered if word == "created_at" else ordered.order_by(Job.id.desc() if wanted.descending else Job.id)


def _by_next_run(session: Session, wanted: JobFilter, limit: int, offset: int) -> list[tuple[Job, Source]]:
    """Return those that wait for a moment by it, then the rest by id: each part goes by its own index."""
    where, base = _where(wanted), select(Job, Source).join(Source)
    turn = (Job.next_run_at.desc(), Job.id.desc()) if wanted.descending else (Job.next_run_at, Job.id)
    waiting = [*where, Job.next_run_at.is_not(None)]
    rows = _rows(session, base.where(*waiting).order_by(*turn), limit, offset)
    if len(rows) == limit:
        return rows
    # Only a page beyond all waiting jobs has to count them.
    passed = offset + len(rows) if rows else _count(session, waiting, named=bool(wanted.search))
    rest = base.where(*where, Job.next_run_at.is_(None)).order_by(turn[1])
    return rows + _rows(session, rest, limit - len(rows), max(0, offset - passed))


def _count(session: Session, where: Iterable[ColumnElement[bool]], *, named: bool) -> int:
    query = select(func.count()).select_from(Job)
    return session.scalar((query.join(Source) if named else query).where(*where)) or 0


def _where(wanted: JobFilter) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = [Job.deleted_at.is_(None), Job.state.is_not(None)]
    if wanted.states:
        where.append(Job.state.in_(wanted.states))
    if wanted.source_id is not None:
        where.append(Job.source_id == wanted.source_id)
    if wanted.kind is not None:
        where.append(Job.kind == wanted.kind)
    if wanted.search:
        # The words of a search are data: % and _ mean themselves.
        part = wanted.search.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        columns = (Source.name, Source.code, Job.url, Job.name)
        where.append(or_(*(func.lower(column).like(f"%{part}%", escape="\\") for column in columns)))
    return where


def _newest(column: ColumnElement[object] | InstrumentedAttribute[object]) -> ScalarSelect[object]:
    """Return a column of a job's newest execution, for a statement over jobs: one seek a job."""
    return (
        select(column)
        .where(Execution.job_id == Job.id)
        .order_by(Execution.number.desc())
        .limit(1)
        .correlate(Job)
        .scalar_subquery()
    )


def _with_latest(session: Session, rows: Sequence[tuple[Job, Source]]) -> list[ListedJob]:
    latest = latest_executions(session, [job.id for job, _ in rows])
    waits = awaited_machines(session, latest.values())
    found = ((job, source, latest.get(job.id)) for job, source in rows)
    return [ListedJob(job, source, run, waits.get(run.id) if run else None) for job, source, run in found]


def awaited_machines(session: Session, runs: Iterable[Execution]) -> dict[int, str]:
    """Return in words which machine each queued run waits for; a run that any machine may start is left out."""
    queued = {run.id: run.directory for run in runs if run.state == "queued" and run.directory is not None}
    last = {directory: schedule_queries.last_worker(session, directory) for directory in set(queued.values())}
    return {number: awaited(*seen, one) for number, one in queued.items() if (seen := last[one]) is not None}


def latest_executions(session: Session, job_ids: Sequence[int]) -> dict[int, Execution]:
    """Return the newest execution of each of these jobs that has one, without stack and metrics."""
    ids = [row[0] for row in session.execute(select(_newest(Execution.id)).where(Job.id.in_(job_ids))) if row[0]]
    if not ids:
        return {}
    # Stack and metrics may be 30 KB a run: a page of 250 jobs would read megabytes for nothing. `raiseload` makes a
    # reader that needs them fail in a test.
    light = (defer(Execution.stack, raiseload=True), defer(Execution.metrics, raiseload=True))
    return {row.job_id: row for row in session.scalars(select(Execution).where(Execution.id.in_(ids)).options(*light))}


def shown_job(session: Session, job_id: int, *, scheduled: bool = True) -> ListedJob | None:
    """Return one job that is not deleted; `scheduled` leaves out what the scheduler does not run (ad hoc, import)."""
    where = [Job.id == job_id, Job.deleted_at.is_(None)]
    if scheduled:
        where.append(Job.state.is_not(None))
    rows = _rows(session, select(Job, Source).join(Source).where(*where), 1, 0)
    return _with_latest(session, rows)[0] if rows else None


def state_counts(session: Session) -> dict[str, int]:
    """Return how many jobs are in each state; a state without jobs is left out."""
    rows = session.execute(
        select(Job.state, func.count()).where(Job.state.is_not(None), Job.deleted_at.is_(None)).group_by(Job.state)
    )
    return {str(state): count for state, count in rows}


def executions_of(session: Session, *, job_id: int, limit: int, offset: int) -> tuple[list[Execution], int]:
    """Return a page of a job's history, newest first, and how long it is."""
    total = session.scalar(select(func.count()).select_from(Execution).where(Execution.job_id == job_id)) or 0
    page = _whole().where(Execution.job_id == job_id).order_by(Execution.number.desc())
    return list(session.scalars(page.limit(bounded_limit(limit)).offset(max(offset, 0)))), total


def execution(session: Session, execution_id: int) -> Execution | None:
    """Return one execution of any job, whole."""
    return session.scalars(_whole().where(Execution.id == execution_id)).one_or_none()


def _whole() -> Select[Execution]:
    """Return a question for executions with all their columns, even if the session has seen them without."""
    # A session that has listed jobs holds the row without stack and metrics: it is read anew.
    return select(Execution).execution_options(populate_existing=True)


def numbered_execution(session: Session, *, job_id: int, number: int | None) -> Execution | None:
    """Return a job's execution with this number, or its newest."""
    query = _whole().where(Execution.job_id == job_id).order_by(Execution.number.desc()).limit(1)
    return session.scalars(query if number is None else query.where(Execution.number == number)).one_or_none()


class NewestLog(NamedTuple):
    """How long the log of a job's newest execution is."""

    job_id: int
    execution_id: int
    state: str
    lines: int


def newest_logs(session: Session, job_ids: Sequence[int]) -> list[NewestLog]:
    """Return how long the newest logs of some jobs are: one seek each."""
    last = aliased(Execution)
    number = select(func.max(last.number)).where(last.job_id == Execution.job_id).scalar_subquery()
    columns = Execution.job_id, Execution.id, Execution.state, Execution.log_lines
    query = select(*columns).where(Execution.job_id.in_(job_ids), Execution.number == number)
    return [NewestLog(*row) for row in session.execute(query)]


def _admin_status() -> ColumnElement[str]:
    """Return the admin status of a job as SQL; `admin_state` is the same rule, and a test compares them."""
    run, index = _newest(Execution.state), _newest(Execution.index_state)
    indexed = case((index.in_(_DONE), index), else_=literal("completed", String()))
    unscheduled = case(
        (run.is_(None), "queued"),
        (run == "stopped", "retryable"),
        (run.in_(("queued", "running", "failed", "cancelled")), run),
        else_=indexed,
    )
    waiting = case(
        (Job.current_retry_count + Job.infra_retry_count > 0, "retryable"),
        (run == "completed", indexed),
        else_=literal("queued", String()),
    )
    asked_for = case((Job.error_message.is_not(None), "retryable"), else_=literal("queued", String()))
    return case(
        (Job.state.is_(null()), unscheduled),
        (Job.state == State.PENDING.value, asked_for),
        (Job.state == State.SCHEDULED.value, waiting),
        (Job.state == State.COMPLETED.value, indexed),
        else_=Job.state,
    )


def states_behind(status: str) -> frozenset[str | None]:
    """Return the job states that may show as this admin status."""
    return frozenset(
        state
        for state, retries, run, index in product((None, *State), (0, 1), _EXECUTION_STATES, _INDEX_STATES)
        for failed in (False, True)
        if admin_state(state, retries=retries, latest=Latest(run, index) if run else None, failed=failed) == status
    )


def list_admin_jobs(session: Session, wanted: AdminFilter) -> tuple[list[ListedJob], int]:
    """Return one page of all jobs, ad-hoc crawls and imports included, newest first, and how many there are.

    A status that is none of `ADMIN_STATES` finds nothing.
    """
    where: list[ColumnElement[bool]] = [Job.deleted_at.is_(None)]
    if wanted.source is not None:
        where.append(Job.source_id == select(Source.id).where(Source.code == wanted.source).scalar_subquery())
    if wanted.status is not None:
        behind = states_behind(wanted.status)
        named = Job.state.in_(sorted(state for state in behind if state is not None))
        # The states first: they go by an index and leave few rows for the rule, which looks at executions.
        where += [or_(named, Job.state.is_(None)) if None in behind else named, _admin_status() == wanted.status]
    total = _count(session, where, named=False)
    query = select(Job, Source).join(Source).where(*where).order_by(Job.id.desc())
    rows = _rows(session, query, bounded_limit(wanted.limit, most=ADMIN_MAX_LIMIT), max(wanted.offset, 0))
    return _with_latest(session, rows), total


def admin_counts(session: Session) -> dict[str, int]:
    """Return how many jobs of sources that the viewer may see have each admin status; one without jobs is left out."""
    return _counted(session, _admin_status())


def cleanup_counts(session: Session) -> dict[str, int]:
    """Return how many jobs' newest runs were cleaned up, and how far; a job that never ran counts as none."""
    return _counted(session, func.coalesce(_newest(Execution.cleanup_status), "none"))


def scanned_storage(session: Session) -> tuple[int, dict[str, dict[str, int]]]:
    """Return how many jobs' newest runs had their folder weighed, and its bytes by kind and source; a row a job."""
    sizes: dict[str, dict[str, int]] = {kind: {} for kind in ("output", "tmp", "tmp_non_warc")}
    rows = session.execute(
        select(Source.code, _newest(Execution.storage))
        .select_from(Job)
        .join(Source, Source.id == Job.source_id)
        .where(Job.deleted_at.is_(None))
    )
    weighed = [(code, weight) for code, weight in rows if isinstance(weight, dict) and weight.get("scanned_at")]
    for code, weight in weighed:
        for kind, by_source in sizes.items():
            by_source[code] = by_source.get(code, 0) + int(weight.get(f"{kind}_bytes") or 0)
    return len(weighed), sizes


def _counted(session: Session, word: ColumnElement[str]) -> dict[str, int]:
    words = select(word.label("word")).where(Job.deleted_at.is_(None), visible_source(Job.source_id)).subquery()
    rows = session.execute(select(words.c.word, func.count()).group_by(words.c.word).order_by(words.c.word))
    return {str(row[0]): row[1] for row in rows}


def files_of(session: Session, execution_ids: Iterable[int]) -> dict[int, WarcTotals]:
    """Return how many WARC files these executions have, and of what size; those without any are left out."""
    rows = session.execute(
        select(WarcFile.execution_id, func.count(), func.coalesce(func.sum(WarcFile.size), 0))
        # Files that were thrown away have rows still.
        .where(WarcFile.execution_id.in_(sorted(set(execution_ids))), WarcFile.state != "discarded")
        .group_by(WarcFile.execution_id)
    )
    return {row[0]: WarcTotals(row[1], int(row[2] or 0)) for row in rows}


def counts_of(session: Session, run: Execution) -> Counts:
    """Return how far an execution is: as it was settled, or, before that, as its processes last wrote."""
    settled = Counts(items_crawled=run.items_crawled, items_failed=run.items_failed, items_total=run.items_total)
    if any(settled.items):
        return settled
    frontier = run.frontier_id or run.id
    counts = list(session.scalars(select(ExecutionCount.counts).where(ExecutionCount.execution_id == frontier)))
    waiting = session.scalar(select(func.coalesce(func.sum(Queue.open), 0)).where(Queue.execution_id == frontier)) or 0
    crawled = sum(count.get("pages", 0) for count in counts)
    failed = sum(count.get("outcomes", {}).get(word, 0) for count in counts for word in FAILURES)
    return Counts(items_crawled=crawled, items_failed=failed, items_total=crawled + failed + int(waiting))


WINDOW: Final = timedelta(hours=24)
LOW_SUCCESS: Final = 0.8
_STALE_OFTEN: Final = 3
# A rate of fewer runs says nothing: the first run that fails would be "only 0% succeeded".
_ENOUGH_RUNS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerMetrics:
    """Counts over all jobs, and how the runs of the last 24 hours went."""

    jobs: dict[str, int]
    """By state, all seven."""
    executions_total: int
    """Of all time."""
    average_duration_ms: float
    success_rate: float
    """1.0 if nothing ran."""
    finished_recently: int
    """Runs that the rate is of: those of the last 24 hours that succeeded or failed."""
    stale_locks_cleared: int
    """Of all time."""
    stale_locks_recent: int
    last_check_at: datetime | None
    """When the scheduler looked for due jobs last."""
    last_metrics_update: datetime

    def warnings(self) -> tuple[str, ...]:
        """Return what deserves a look: many failures, or holders that keep falling silent."""
        found = []
        if self.success_rate < LOW_SUCCESS and self.finished_recently >= _ENOUGH_RUNS:
            found.append(f"only {self.success_rate:.0%} of the runs of the last 24 hours succeeded")
        if self.stale_locks_recent >= _STALE_OFTEN:
            found.append(f"{self.stale_locks_recent} stale locks in 24 hours: workers die or hang")
        return tuple(found)


def count_metrics(session: Session, *, now: datetime, last_check_at: datetime | None) -> SchedulerMetrics:
    """Count the jobs by state and add up the hours."""
    states = state_counts(session)
    ever, lately = schedule_queries.hours_since(session, None), schedule_queries.hours_since(session, now - WINDOW)
    finished = lately["succeeded"] + lately["failed"]
    runs = finished + lately["cancelled"]
    return SchedulerMetrics(
        jobs={state.value: states.get(state.value, 0) for state in State},
        executions_total=ever["succeeded"] + ever["failed"] + ever["cancelled"],
        average_duration_ms=lately["duration_ms"] / runs if runs else 0.0,
        success_rate=lately["succeeded"] / finished if finished else 1.0,
        finished_recently=finished,
        stale_locks_cleared=ever["stale_locks"],
        stale_locks_recent=lately["stale_locks"],
        last_check_at=last_check_at,
        last_metrics_update=now,
    )
