"""Jobs and executions as people look for them. A page is found by an index wherever its order has one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from sqlalchemy import ColumnElement, ScalarSelect, Select, String, case, exists, func, literal, null, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, defer

from holdfast.db.models import Execution, ExecutionCount, Job, Queue, Source, WarcFile
from holdfast.jobs.listing.values import (
    ADMIN_MAX_LIMIT,
    AdminFilter,
    Files,
    JobFilter,
    ListedJob,
    Pages,
    bounded_limit,
    sort_word,
)
from holdfast.jobs.projection import Latest, admin_state
from holdfast.jobs.states import State

_SORTED: dict[str, InstrumentedAttribute[object]] = {
    # Ids are given in the order of creation: this order needs no index of its own.
    "created_at": Job.id, "updated_at": Job.updated_at, "status": Job.state, "source_name": Source.name,
    "last_run_at": Job.last_execution_at, "type": Job.kind,
}  # fmt: skip
_NULLABLE = frozenset({"last_run_at"})
_INDEX_STATES = (None, "pending", "indexing", "indexed", "index_failed")
_EXECUTION_STATES = (None, "queued", "running", "stopped", "completed", "cancelled", "failed")
_DONE = ("indexing", "indexed", "index_failed")
_FAILED = ("failed", "timeout", "blocked_4xx", "blocked_5xx")


def list_jobs(session: Session, wanted: JobFilter) -> tuple[list[ListedJob], int]:
    """Return one page of jobs in document 003's order, and how many there are in all (NC-004)."""
    where = _where(wanted)
    total = _count(session, where, named=bool(wanted.search))
    limit, offset = bounded_limit(wanted.limit), max(wanted.offset, 0)
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
    return ordered if word == "created_at" else ordered.order_by(Job.id.desc() if wanted.descending else Job.id)


def _by_next_run(session: Session, wanted: JobFilter, limit: int, offset: int) -> list[tuple[Job, Source]]:
    """Return those that wait for a moment by it, then the rest by id: each part goes by its own index."""
    where, base = _where(wanted), select(Job, Source).join(Source)
    turn = (Job.next_run_at.desc(), Job.id.desc()) if wanted.descending else (Job.next_run_at, Job.id)
    waiting = [*where, Job.next_run_at.is_not(None)]
    rows = _rows(session, base.where(*waiting).order_by(*turn), limit, offset)
    if len(rows) == limit:
        return rows
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
    return [ListedJob(job, source, latest.get(job.id)) for job, source in rows]


def latest_executions(session: Session, job_ids: Sequence[int]) -> dict[int, Execution]:
    """Return the newest execution of each of these jobs that has one, without stack and metrics."""
    ids = [row[0] for row in session.execute(select(_newest(Execution.id)).where(Job.id.in_(job_ids))) if row[0]]
    if not ids:
        return {}
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
    """Return how many jobs are in each state (NC-010); a state without jobs is left out."""
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
    return select(Execution).execution_options(populate_existing=True)


def numbered_execution(session: Session, *, job_id: int, number: int | None) -> Execution | None:
    """Return a job's execution with this number, or its newest."""
    query = _whole().where(Execution.job_id == job_id).order_by(Execution.number.desc()).limit(1)
    return session.scalars(query if number is None else query.where(Execution.number == number)).one_or_none()


def _admin_status() -> ColumnElement[str]:
    """Return document 000's word for a job as SQL; `projection.admin_state` is the same rule, and a test compares."""
    run, index = _newest(Execution.state), _newest(Execution.index_state)
    indexed = case((index.in_(_DONE), index), else_=literal("completed", String()))
    unscheduled = case(
        (run.is_(None), "queued"), (run == "stopped", "retryable"),
        (run.in_(("queued", "running", "failed", "cancelled")), run), else_=indexed,
    )  # fmt: skip
    waiting = case(
        (Job.current_retry_count + Job.infra_retry_count > 0, "retryable"), (run == "completed", indexed),
        else_=literal("queued", String()),
    )  # fmt: skip
    asked_for = case((Job.error_message.is_not(None), "retryable"), else_=literal("queued", String()))
    return case(
        (Job.state.is_(null()), unscheduled),
        (Job.state == State.PENDING.value, asked_for),
        (Job.state == State.SCHEDULED.value, waiting),
        (Job.state == State.COMPLETED.value, indexed),
        else_=Job.state,
    )


def states_behind(status: str) -> frozenset[str | None]:
    """Return the job states that may show as this word of document 000."""
    return frozenset(
        state
        for state, retries, run, index in product((None, *State), (0, 1), _EXECUTION_STATES, _INDEX_STATES)
        for failed in (False, True)
        if admin_state(state, retries=retries, latest=Latest(run, index) if run else None, failed=failed) == status
    )


def list_admin_jobs(session: Session, wanted: AdminFilter) -> tuple[list[ListedJob], int]:
    """Return one page of all jobs, ad-hoc crawls and imports included, newest first, and how many there are (HA-081).

    A status that is no word of document 000 finds nothing.
    """
    where: list[ColumnElement[bool]] = [Job.deleted_at.is_(None)]
    if wanted.source is not None:
        where.append(Job.source_id == select(Source.id).where(Source.code == wanted.source).scalar_subquery())
    if wanted.status is not None:
        behind = states_behind(wanted.status)
        named = Job.state.in_(sorted(state for state in behind if state is not None))
        where += [or_(named, Job.state.is_(None)) if None in behind else named, _admin_status() == wanted.status]
    total = _count(session, where, named=False)
    query = select(Job, Source).join(Source).where(*where).order_by(Job.id.desc())
    rows = _rows(session, query, bounded_limit(wanted.limit, most=ADMIN_MAX_LIMIT), max(wanted.offset, 0))
    return _with_latest(session, rows), total


def admin_counts(session: Session) -> dict[str, int]:
    """Return how many jobs document 000 would call by each of its words (HA-083); words without jobs are left out."""
    return _counted(session, _admin_status())


def cleanup_counts(session: Session) -> dict[str, int]:
    """Return how many jobs' newest runs were cleaned up, and how far; a job that never ran counts as none."""
    return _counted(session, func.coalesce(_newest(Execution.cleanup_status), "none"))


def _counted(session: Session, word: ColumnElement[str]) -> dict[str, int]:
    words = select(word.label("word")).where(Job.deleted_at.is_(None)).subquery()
    rows = session.execute(select(words.c.word, func.count()).group_by(words.c.word).order_by(words.c.word))
    return {str(row[0]): row[1] for row in rows}


def files_of(session: Session, execution_ids: Iterable[int]) -> dict[int, Files]:
    """Return how many WARC files these executions have, and of what size; those without any are left out."""
    rows = session.execute(
        select(WarcFile.execution_id, func.count(), func.coalesce(func.sum(WarcFile.size), 0))
        .where(WarcFile.execution_id.in_(sorted(set(execution_ids))), WarcFile.state != "discarded")
        .group_by(WarcFile.execution_id)
    )
    return {row[0]: Files(row[1], int(row[2] or 0)) for row in rows}


def pages_of(session: Session, run: Execution) -> Pages:
    """Return how far an execution is: as it was settled, or, before that, as its processes last wrote."""
    settled = Pages(run.items_crawled, run.items_total, run.items_failed)
    if any(settled):
        return settled
    frontier = run.frontier_id or run.id
    counts = list(session.scalars(select(ExecutionCount.counts).where(ExecutionCount.execution_id == frontier)))
    waiting = session.scalar(select(func.coalesce(func.sum(Queue.open), 0)).where(Queue.execution_id == frontier)) or 0
    crawled = sum(count.get("pages", 0) for count in counts)
    failed = sum(count.get("outcomes", {}).get(word, 0) for count in counts for word in _FAILED)
    return Pages(crawled, crawled + failed + int(waiting), failed)


def settled_pages(session: Session) -> list[tuple[str, int, int]]:
    """Return, by source, the pages crawled and failed of runs whose processes kept no totals of their own (zimit)."""
    counted = exists().where(ExecutionCount.execution_id == func.coalesce(Execution.frontier_id, Execution.id))
    rows = session.execute(
        select(Source.code, func.sum(Execution.items_crawled), func.sum(Execution.items_failed))
        .join(Job, Job.source_id == Source.id)
        .join(Execution, Execution.job_id == Job.id)
        .where(or_(Execution.items_crawled > 0, Execution.items_failed > 0), ~counted)
        .group_by(Source.code)
    )
    return [(row[0], int(row[1] or 0), int(row[2] or 0)) for row in rows]
