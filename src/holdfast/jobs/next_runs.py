"""What the jobs of a source do next, and by which rules; `frontier` explains URLs with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from holdfast.config import Settings
from holdfast.db.models import Execution, Job, Source
from holdfast.errors import Invalid, UrlRefused
from holdfast.frontier.explain_next import paused_words, turn
from holdfast.frontier.explain_records import ExplainedTurn, OutlookKind
from holdfast.frontier.explain_sources import NextRun, NextRuns
from holdfast.jobs.specs import planned_config
from holdfast.jobs.states import State
from holdfast.jobs.store import backend_of
from holdfast.jobs.views.listing import JobRow, latest_executions
from holdfast.sources.plan import CrawlDefaults, CrawlPlan, crawl_plan, stored_plan
from holdfast.urls import parse_seed

_MAY_RUN = (State.PENDING, State.SCHEDULED, State.RUNNING, State.PAUSED)
# Jobs that may run, of 200 sources: each has one or a few.
_JOBS = 500
_AT_WORK = ("queued", "running")


def next_runs(session: Session, source_ids: Sequence[int], settings: Settings, now: datetime) -> Iterator[NextRuns]:
    """Yield the next runs of these sources, in this order; sources that were deleted meanwhile are skipped."""
    rows = {row.id: row for row in session.scalars(select(Source).where(Source.id.in_(source_ids)))}
    jobs = jobs_of_sources(session, source_ids)
    for source in (rows[number] for number in source_ids if number in rows):
        own = jobs.get(source.id, [])
        plan, job_id, problem = _rules_of(source, own, settings)
        config = next((one.job.config for one in own if one.job.id == job_id), {})
        yield NextRuns(
            source,
            plan,
            job_id,
            problem,
            backend=backend_of("crawl", config, source.config),
            runs=[_next_run(one, now) for one in own if one.job.kind != "feed"],
        )


def jobs_of_sources(session: Session, ids: Sequence[int]) -> dict[int, list[JobRow]]:
    """Return the runnable jobs of these sources, plus each source's newest job and newest crawl job.

    Newest first, each with its newest execution. A source has a finished job for each crawl ever started.
    """
    newest = select(Job.id).where(Job.source_id == Source.id, Job.deleted_at.is_(None)).order_by(Job.id.desc()).limit(1)
    one, crawl = (query.correlate(Source).scalar_subquery() for query in (newest, newest.where(Job.kind == "crawl")))
    chosen = {number for row in session.execute(select(one, crawl).where(Source.id.in_(ids))) for number in row}
    running = select(Execution.job_id).where(Execution.state.in_(_AT_WORK))
    may_run = or_(Job.state.in_(_MAY_RUN), Job.id.in_(running))
    chosen.update(
        session.scalars(
            select(Job.id)
            .where(Job.source_id.in_(ids), Job.deleted_at.is_(None), may_run)
            .order_by(Job.id.desc())
            .limit(_JOBS)
        )
    )
    numbers = [number for number in chosen if number is not None]
    latest = latest_executions(session, numbers)
    found: dict[int, list[JobRow]] = {}
    rows = session.execute(select(Job, Source).join(Source).where(Job.id.in_(numbers)).order_by(Job.id.desc()))
    for job, source in rows:
        found.setdefault(source.id, []).append(JobRow(job, source, latest.get(job.id)))
    return found


def _rules_of(
    source: Source, jobs: list[JobRow], settings: Settings
) -> tuple[CrawlPlan | None, int | None, str | None]:
    """Return the plan of a source's next run (of its crawl job, its newest job, or by default), the id of that job,
    and, without a plan, the reason.
    """
    house = CrawlDefaults(settings.contact or "nobody@example.org", delay_s=settings.politeness.delay_s)
    chosen = next((one for one in jobs if one.job.kind == "crawl"), jobs[0] if jobs else None)
    try:
        if chosen is not None and chosen.job.state is None and chosen.latest is not None:
            # A crawl of its own, without a scheduled job, stores its plan only in its execution.
            stored = chosen.latest.config
            return stored_plan(stored) if stored.get("seeds") else None, chosen.job.id, None
        overrides = chosen.job.config if chosen is not None else {}
        start = chosen.job.url if chosen is not None and chosen.job.url_given else None
        config = planned_config(source, overrides, start=start)
        if not config.seeds:
            return None, None, "it has no seeds"
        plan = crawl_plan(config, house, number=1)
        landing = chosen.latest.config.get("landing") if chosen is not None and chosen.latest is not None else None
        # A place that cannot be read any more widens no scope.
        plan = replace(plan, landing=tuple(_readable(plan, tuple(landing or ()))))
        return plan, chosen.job.id if chosen else None, None
    except (Invalid, TypeError, KeyError, ValueError) as exc:
        return None, chosen.job.id if chosen else None, str(exc)


def _readable(plan: CrawlPlan, landing: tuple[str, ...]) -> Iterator[str]:
    for place in landing:
        try:
            parse_seed(place, plan.normalisation())
        except UrlRefused:
            continue
        yield place


def _next_run(found: JobRow, now: datetime) -> NextRun:
    job, latest, code = found.job, found.latest, found.source.code
    facts: dict[str, object] = {"source": code, "job": job.id}
    if latest is None or latest.state not in _AT_WORK:
        return NextRun(_waiting(job, latest, code, now, facts), None)
    facts["execution"] = latest.id
    if latest.paused_at is not None:
        why = f"execution {latest.id} of {code} would request it, {paused_words(latest)}"
        planned = turn(OutlookKind.WAITS, **facts, sentence=why)
    elif latest.state == "running":
        why = f"execution {latest.id} of {code} is running; it requests the page once it finds a link to it"
        planned = turn(OutlookKind.UNDER_WAY, **facts, sentence=why)
    else:
        at = latest.queued_at if latest.queued_at is not None and latest.queued_at > now else None
        when = f", not before {at:%Y-%m-%d %H:%M:%S}" if at else ""
        why = f"execution {latest.id} of {code} is queued and begins when a worker is free{when}"
        planned = turn(OutlookKind.QUEUED, **facts, at=at, sentence=why)
    return NextRun(planned, latest.frontier_id or latest.id)


def _waiting(job: Job, latest: Execution | None, code: str, now: datetime, facts: dict[str, object]) -> ExplainedTurn:
    if job.next_run_at is not None and job.state in (State.SCHEDULED, State.PENDING):
        if job.next_run_at <= now:
            why = f"job {job.id} of {code} is due; a scheduler queues it (holdfast serve)"
            return turn(OutlookKind.DUE, **facts, sentence=why)
        why = f"job {job.id} of {code} runs next at {job.next_run_at:%Y-%m-%d %H:%M:%S} UTC"
        return turn(OutlookKind.SCHEDULED, **facts, at=job.next_run_at, sentence=why)
    if job.state == State.PENDING:
        why = f"job {job.id} of {code} waits for a scheduler to queue it (holdfast serve)"
        return turn(OutlookKind.DUE, **facts, sentence=why)
    if job.state == State.PAUSED:
        why = f"job {job.id} of {code} is paused by its {job.paused_by}; go on with: holdfast job resume {job.id}"
        return turn(OutlookKind.WAITS, **facts, sentence=why)
    if job.state == State.FAILED:
        why = f"job {job.id} of {code} failed; try it again with: holdfast job retry {job.id}"
        return turn(OutlookKind.WAITS, **facts, sentence=why)
    if job.state is None and latest is not None and latest.state == "stopped":
        why = f"execution {latest.id} of {code} was stopped; the same crawl command goes on with it"
        return turn(OutlookKind.WAITS, **facts, execution=latest.id, sentence=why)
    word = "was a crawl of its own" if job.state is None else f"is {job.state} and has no schedule"
    return turn(OutlookKind.NEVER, **facts, sentence=f"never again by job {job.id} of {code}: it {word}")
