"""Lists of jobs and executions. A page is found through an index wherever its order has one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any, Final, Literal, NamedTuple, get_args

from sqlalchemy import ColumnElement, ScalarSelect, Select, String, and_, case, func, literal, null, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased, defer

from holdfast.db.models import Execution, ExecutionCount, Job, Queue, Source, WarcFile
from holdfast.jobs import schedule_queries
from holdfast.jobs.endings import Counts
from holdfast.jobs.states import State
from holdfast.jobs.store import JobNotFound, of_source
from holdfast.records import Operator, record
from holdfast.types import FAILURES
from holdfast.withdrawals.visibility import visible_source

AdminState = Literal[
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
]
ADMIN_STATES: tuple[AdminState, ...] = get_args(AdminState)
_RUN, _INDEX = "the state of its run", "the state of its index"
_DONE = ("indexing", "indexed", "index_failed")
_AdminRule = tuple[str | None, str | None, tuple[str | None, ...] | None, str]
# Job state, condition, states of its newest run, status. The first match counts; without one it is the job's state.
_ADMIN_RULES: Final[tuple[_AdminRule, ...]] = (
    # A job that the scheduler does not run (ad hoc, import) has the state of its run.
    (None, None, (None,), "queued"),
    (None, None, ("stopped",), "retryable"),
    (None, None, ("queued", "running", "failed", "cancelled"), _RUN),
    (None, None, None, _INDEX),
    (State.PENDING.value, "has failed", None, "retryable"),
    (State.PENDING.value, None, None, "queued"),
    (State.SCHEDULED.value, "was retried", None, "retryable"),
    (State.SCHEDULED.value, None, ("completed",), _INDEX),
    (State.SCHEDULED.value, None, None, "queued"),
    (State.COMPLETED.value, None, None, _INDEX),
)


def admin_state(
    state: str | None, *, retries: int = 0, run: str | None = None, index: str | None = None, failed: bool = False
) -> str:
    """Return the status in `/api/admin/jobs` from the states of a job, of its newest run, and of that run's index."""
    facts = {None: True, "has failed": failed, "was retried": retries > 0}
    words = {_RUN: run or "", _INDEX: index if index in _DONE else "completed"}
    for job_state, condition, runs, word in _ADMIN_RULES:
        if state == job_state and facts[condition] and (runs is None or run in runs):
            return words.get(word, word) or ""
    return state or ""


def admin_status(job: Job, latest: Execution | None) -> str:
    return admin_state(
        job.state,
        retries=job.current_retry_count + job.infra_retry_count,
        run=latest.state if latest else None,
        index=latest.index_state if latest else None,
        failed=job.error_message is not None,
    )


DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 250
"""Limit of the lists below `/api/v1`."""
ADMIN_MAX_LIMIT: Final = 500
MAX_OFFSET: Final = 10_000_000
SORTS: Final = ("created_at", "updated_at", "status", "source_name", "next_run_at", "last_run_at", "type")


class JobFilter(NamedTuple):
    states: tuple[str, ...] = ()
    source_id: int | None = None
    kind: str | None = None
    search: str = ""
    sort_by: str = "created_at"
    descending: bool = True
    limit: int = DEFAULT_LIMIT
    offset: int = 0


class JobRow(NamedTuple):
    """A job, its source, and its newest execution, if any, without stack and metrics."""

    job: Job
    source: Source
    latest: Execution | None

    @property
    def retries(self) -> int:
        """Retries that its current run has used; machine failures use none."""
        return self.job.current_retry_count

    @property
    def admin_status(self) -> str:
        return admin_status(self.job, self.latest)


def sort_word(word: str) -> str:
    """Return the column to sort by; unknown names fall back to created_at."""
    return word if word in SORTS else "created_at"


def bounded_limit(limit: int, *, most: int = MAX_LIMIT) -> int:
    """Return the requested limit, at most `most`; 0 and less become 50."""
    return min(limit, most) if limit > 0 else DEFAULT_LIMIT


_SORTED: dict[str, InstrumentedAttribute[object]] = {
    # Ids increase with creation: this order needs no index of its own.
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


def list_jobs(session: Session, wanted: JobFilter) -> tuple[list[JobRow], int]:
    where = _where(wanted)
    total = _count(session, where, named=bool(wanted.search))
    limit, offset = bounded_limit(wanted.limit), max(wanted.offset, 0)
    # One statement with empty values last would keep PostgreSQL from using its index: two statements each use one.
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
    # Without empty values, the clause for them would only keep PostgreSQL from using its index.
    ordered = query.order_by(order.nulls_last() if word in _NULLABLE else order)
    # Sort by a unique column last: otherwise two pages of equal values may show a job twice, or never.
    return ordered if word == "created_at" else ordered.order_by(Job.id.desc() if wanted.descending else Job.id)


def _by_next_run(session: Session, wanted: JobFilter, limit: int, offset: int) -> list[tuple[Job, Source]]:
    """Return jobs with a next run first, by time, then the rest by id: each part uses its own index."""
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
    where = [Job.deleted_at.is_(None), Job.state.is_not(None), of_source()]
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
    """Return a column of a job's newest execution, as a subquery: one seek per job."""
    return (
        select(column)
        .where(Execution.job_id == Job.id)
        .order_by(Execution.number.desc())
        .limit(1)
        .correlate(Job)
        .scalar_subquery()
    )


def _with_latest(session: Session, rows: Sequence[tuple[Job, Source]]) -> list[JobRow]:
    latest = latest_executions(session, [job.id for job, _ in rows])
    return [JobRow(job, source, latest.get(job.id)) for job, source in rows]


def latest_executions(session: Session, job_ids: Sequence[int]) -> dict[int, Execution]:
    """Return the newest execution of each of these jobs, without stack and metrics."""
    ids = [row[0] for row in session.execute(select(_newest(Execution.id)).where(Job.id.in_(job_ids))) if row[0]]
    if not ids:
        return {}
    # Stack and metrics may be 30 KB a run: a page of 250 jobs would read megabytes for nothing. `raiseload` makes code
    # that needs them fail in a test.
    light = (defer(Execution.stack, raiseload=True), defer(Execution.metrics, raiseload=True))
    return {row.job_id: row for row in session.scalars(select(Execution).where(Execution.id.in_(ids)).options(*light))}


def shown_job(session: Session, job_id: int, *, scheduled: bool = True) -> JobRow:
    """Return one job; raise JobNotFound. `scheduled` excludes ad-hoc crawls and imports."""
    where = [Job.id == job_id, Job.deleted_at.is_(None)]
    if scheduled:
        where.append(Job.state.is_not(None))
    rows = _rows(session, select(Job, Source).join(Source).where(*where), 1, 0)
    if not rows:
        raise JobNotFound
    return _with_latest(session, rows)[0]


def state_counts(session: Session) -> dict[str, int]:
    query = select(Job.state, func.count()).where(*_where(JobFilter())).group_by(Job.state)
    return {str(state): count for state, count in session.execute(query)}


def executions_of(session: Session, *, job_id: int, limit: int, offset: int) -> tuple[list[Execution], int]:
    total = session.scalar(select(func.count()).select_from(Execution).where(Execution.job_id == job_id)) or 0
    page = _whole().where(Execution.job_id == job_id).order_by(Execution.number.desc())
    return list(session.scalars(page.limit(bounded_limit(limit)).offset(max(offset, 0)))), total


def execution_ids(session: Session, *, job_id: int, state: str | None = None) -> list[int]:
    """Return the executions of a job, newest first; those in one state, if it is given."""
    query = select(Execution.id).where(Execution.job_id == job_id).order_by(Execution.number.desc())
    return list(session.scalars(query if state is None else query.where(Execution.state == state)))


def execution(session: Session, execution_id: int) -> Execution | None:
    return session.scalars(_whole().where(Execution.id == execution_id)).one_or_none()


def run_of_source(session: Session, execution_id: int) -> Execution | None:
    """Return a run, unless it is an operation's."""
    query = _whole().join(Job, Job.id == Execution.job_id).where(Execution.id == execution_id, of_source())
    return session.scalars(query).one_or_none()


def _whole() -> Select[Execution]:
    """Select executions with all columns, even if the session has loaded them without some."""
    # Reload the row: a session that has listed jobs has it without stack and metrics.
    return select(Execution).execution_options(populate_existing=True)


def numbered_execution(session: Session, *, job_id: int, number: int | None) -> Execution | None:
    query = _whole().where(Execution.job_id == job_id).order_by(Execution.number.desc()).limit(1)
    return session.scalars(query if number is None else query.where(Execution.number == number)).one_or_none()


def newest_logs(session: Session, job_ids: Sequence[int]) -> Sequence[Any]:
    """Return id, job_id, state and log_lines of some jobs' newest executions: one seek each."""
    last = aliased(Execution)
    number = select(func.max(last.number)).where(last.job_id == Execution.job_id).scalar_subquery()
    columns = Execution.job_id, Execution.id, Execution.state, Execution.log_lines
    query = select(*columns).where(Execution.job_id.in_(job_ids), Execution.number == number)
    return session.execute(query).all()


def _admin_status() -> ColumnElement[str]:
    run, index = _newest(Execution.state), _newest(Execution.index_state)
    facts = {
        "has failed": Job.error_message.is_not(None),
        "was retried": Job.current_retry_count + Job.infra_retry_count > 0,
    }
    words = {_RUN: run, _INDEX: case((index.in_(_DONE), index), else_=literal("completed", String()))}
    whens = []
    for job_state, condition, runs, word in _ADMIN_RULES:
        where = [Job.state.is_(null()) if job_state is None else Job.state == job_state]
        where += [facts[condition]] if condition else []
        if runs is not None:
            where.append(run.is_(None) if runs == (None,) else run.in_(runs))
        whens.append((and_(*where), words.get(word, literal(word, String()))))
    return case(*whens, else_=Job.state)


def states_behind(status: str) -> frozenset[str | None]:
    return frozenset(
        state
        for state, retries, run, index in product((None, *State), (0, 1), _EXECUTION_STATES, _INDEX_STATES)
        for failed in (False, True)
        if admin_state(state, retries=retries, run=run, index=index, failed=failed) == status
    )


def list_admin_jobs(
    session: Session,
    *,
    source: str | None = None,
    status: str | None = None,
    limit: int = DEFAULT_LIMIT,
    offset: int = 0,
) -> tuple[list[JobRow], int]:
    """Return one page of all jobs, ad-hoc crawls and imports included, newest first, and their total number.

    Only those of a source (by code) and with a status of `ADMIN_STATES`, if given.
    """
    where = [Job.deleted_at.is_(None), of_source()]
    if source is not None:
        where.append(Job.source_id == select(Source.id).where(Source.code == source).scalar_subquery())
    if status is not None:
        behind = states_behind(status)
        named = Job.state.in_(sorted(state for state in behind if state is not None))
        # Filter by state first: that uses an index and leaves few rows for the rule, which reads executions.
        where += [or_(named, Job.state.is_(None)) if None in behind else named, _admin_status() == status]
    total = _count(session, where, named=False)
    query = select(Job, Source).join(Source).where(*where).order_by(Job.id.desc())
    rows = _rows(session, query, bounded_limit(limit, most=ADMIN_MAX_LIMIT), max(offset, 0))
    return _with_latest(session, rows), total


def admin_counts(session: Session) -> dict[str, int]:
    """Count the jobs of visible sources by admin status; statuses without jobs are omitted."""
    return _counted(session, _admin_status())


def cleanup_counts(session: Session) -> dict[str, int]:
    """Count jobs by the clean-up status of their newest run; a job that never ran counts as `none`."""
    return _counted(session, func.coalesce(_newest(Execution.cleanup_status), "none"))


def scanned_storage(session: Session) -> tuple[int, dict[str, dict[str, int]]]:
    """Count the newest runs with a measured folder, and their bytes by kind and source; reads one row per job."""
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
    jobs = Job.deleted_at.is_(None), of_source(), visible_source(Job.source_id)
    words = select(word.label("word")).where(*jobs).subquery()
    rows = session.execute(select(words.c.word, func.count()).group_by(words.c.word).order_by(words.c.word))
    return {str(row[0]): row[1] for row in rows}


def files_of(session: Session, execution_ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Return the number of WARC files of each execution and their total size; executions without files are omitted."""
    rows = session.execute(
        select(WarcFile.execution_id, func.count(), func.coalesce(func.sum(WarcFile.size), 0))
        # Discarded files still have rows.
        .where(WarcFile.execution_id.in_(sorted(set(execution_ids))), WarcFile.state != "discarded")
        .group_by(WarcFile.execution_id)
    )
    return {row[0]: (row[1], int(row[2] or 0)) for row in rows}


def counts_of(session: Session, run: Execution) -> Counts:
    """Return the counts of an execution: the settled ones or, before that, those its processes last wrote."""
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
# A rate of fewer runs is meaningless: the first failed run would give "only 0% succeeded".
_ENOUGH_RUNS: Final = 5


@record
class ExecutionFigures:
    """Totals and success rate of runs."""

    total: Operator[int]
    """In total."""
    average_duration_ms: Operator[float]
    """Of the last 24 hours."""
    success_rate: Operator[float]
    """Of the last 24 hours, 0 to 1; 1 without runs."""


@record
class SchedulerMetrics:
    """Counts over all jobs, and results of the runs of the last 24 hours."""

    jobs: Operator[dict[str, int]]
    """By state, all seven."""
    executions: Operator[ExecutionFigures]
    last_check_at: Operator[datetime | None]
    """The last heartbeat of a process that schedules."""
    last_metrics_update: Operator[datetime]
    stale_locks_cleared: Operator[int]
    """In total; if it grows, workers die or hang."""
    warnings: Operator[list[str]]
    """A success rate below 0.8, or repeated stale locks."""
    warning_codes: Operator[list[Literal["low_success", "stale_locks"]]]
    """The code of each warning, in the same order."""


def count_metrics(session: Session, *, now: datetime, last_check_at: datetime | None) -> SchedulerMetrics:
    states = state_counts(session)
    ever, lately = schedule_queries.hours_since(session, None), schedule_queries.hours_since(session, now - WINDOW)
    finished = lately["succeeded"] + lately["failed"]
    runs = finished + lately["cancelled"]
    figures = ExecutionFigures(
        total=ever["succeeded"] + ever["failed"] + ever["cancelled"],
        average_duration_ms=lately["duration_ms"] / runs if runs else 0.0,
        success_rate=lately["succeeded"] / finished if finished else 1.0,
    )
    warnings: list[str] = []
    codes: list[Literal["low_success", "stale_locks"]] = []
    if figures.success_rate < LOW_SUCCESS and finished >= _ENOUGH_RUNS:
        codes.append("low_success")
        warnings.append(f"only {figures.success_rate:.0%} of the runs of the last 24 hours succeeded")
    if lately["stale_locks"] >= _STALE_OFTEN:
        codes.append("stale_locks")
        warnings.append(f"{lately['stale_locks']} stale locks in 24 hours: workers die or hang")
    return SchedulerMetrics(
        jobs={state.value: states.get(state.value, 0) for state in State},
        executions=figures,
        last_check_at=last_check_at,
        last_metrics_update=now,
        stale_locks_cleared=ever["stale_locks"],
        warnings=warnings,
        warning_codes=codes,
    )
