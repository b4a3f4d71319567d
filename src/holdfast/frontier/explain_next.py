"""The next events for a URL: queues that contain it, runs that will request it, or why none will."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, func, or_, select, tuple_
from sqlalchemy.orm import Session

from holdfast.clock import from_micros
from holdfast.db.models import AddedUrl, Execution, PageCrawl, Queue, Source
from holdfast.frontier.explain_history import AttemptOnPage, attempts_on
from holdfast.frontier.explain_records import (
    ExplainedDomain,
    ExplainedOutlook,
    ExplainedRobots,
    ExplainedTurn,
    OutlookKind,
)
from holdfast.frontier.explain_sources import Judgements, SourceJudgement
from holdfast.frontier.figures import COUNTED
from holdfast.frontier.outcome_words import outcome_word

_OPEN = ("queued", "running", "stopped")
_ATTEMPTS = 20
_ORDER = list(OutlookKind)


def explain_outlook(
    session: Session,
    pages: Sequence[int],
    judged: Judgements,
    robots: ExplainedRobots,
    domain: ExplainedDomain | None,
    *,
    now: datetime,
) -> ExplainedOutlook:
    at_work = {run.frontier_id for one in judged.in_scope for run in one.runs if run.frontier_id is not None}
    ended = _ended_attempts(session, pages, at_work)
    queued = attempts_on(session, pages, PageCrawl.outcome.is_(None), limit=_ATTEMPTS)
    turns = [
        *_added(session, judged),
        *(_queued(session, row, domain, now) for row in queued),
        *(found for one in judged.in_scope for found in _runs(one, robots, domain, ended)),
    ]
    in_queue = {one.job for one in turns if one.place is not None}
    # Where the frontier of a job has the URL, its place there stands for the job.
    turns = [one for one in turns if one.place is not None or one.job not in in_queue or one.job is None]
    if not turns:
        turns = [turn(OutlookKind.NEVER, sentence=_why_never(judged, domain))]
    turns.sort(key=lambda one: (_ORDER.index(one.kind), one.at or now, one.place or 0))
    return ExplainedOutlook(next=turns[0], all=turns)


def _added(session: Session, judged: Judgements) -> Iterator[ExplainedTurn]:
    identities = {(one.domain, one.hash64) for one in judged.spellings}
    for added, code in _added_by_hand(session, identities):
        why = f"{added.added_by} added it on {added.added_at:%Y-%m-%d %H:%M}; the next run of {code} takes it"
        yield turn(OutlookKind.SCHEDULED, source=code, sentence=why)


def turn(kind: OutlookKind, **values: Any) -> ExplainedTurn:
    """Return an event with these facts; the others are unknown."""
    empty = dict.fromkeys(("source", "job", "execution", "at", "place"))
    return ExplainedTurn(kind=kind, **{**empty, **values})


def _why_never(judged: Judgements, domain: ExplainedDomain | None) -> str:
    if domain is None:
        return "never: no crawl would request this address"
    return f"never: {judged.explained().sentence}"


def _queued(session: Session, row: AttemptOnPage, domain: ExplainedDomain | None, now: datetime) -> ExplainedTurn:
    attempt = row.attempt
    at_work = _execution_at_work_on(session, attempt.execution_id)
    number = at_work.id if at_work is not None else attempt.execution_id
    facts: dict[str, object] = {"source": row.source, "job": row.job_id, "execution": number}
    if at_work is None or at_work.state not in _OPEN:
        state = at_work.state if at_work is not None else "gone"
        why = f"it is in the queue of execution {number}, which is {state} and sends no more requests"
        return turn(OutlookKind.WAITS, **facts, sentence=f"{why}; the next run of {row.source or 'its source'} may")
    place = _place_of(session, attempt)
    facts["place"] = place
    if at_work.state == "stopped":
        return turn(
            OutlookKind.WAITS,
            **facts,
            sentence=f"it is number {place} in the queue of execution {number}, which was stopped; the same crawl "
            "command goes on with it",
        )
    if domain is not None and not domain.allowed:
        return turn(OutlookKind.NEVER, **facts, sentence=f"never: {domain.sentence}")
    if at_work.paused_at is not None:
        why = f"it is number {place} in the queue of execution {number}, {paused_words(at_work)}"
        return turn(OutlookKind.WAITS, **facts, sentence=why)
    if domain is not None and domain.paused_since is not None:
        why = f"it is number {place} in the queue of execution {number}, and an operator has paused {domain.name}"
        return turn(OutlookKind.WAITS, **facts, sentence=why)
    moments = [attempt.scheduled_for, _queue_due_at(session, attempt)]
    dates = [from_micros(one) for one in moments if one]
    if domain is not None:
        dates += [one for one in (domain.next_allowed_at, domain.circuit_open_until) if one is not None]
    at = max(dates, default=now)
    facts["at"] = at if at > now else None
    later = f", not before {at:%Y-%m-%d %H:%M:%S}" if at > now else ""
    nth = f"number {place}" if place <= COUNTED else f"behind more than {COUNTED} others"
    if at_work.state == "running":
        kind = OutlookKind.UNDER_WAY
        sentence = f"it is {nth} in the queue of its domain in execution {number}, which runs now{later}"
    else:
        kind = OutlookKind.QUEUED
        sentence = f"it is {nth} in the queue of its domain in execution {number}, which waits for a worker{later}"
    return turn(kind, **facts, sentence=sentence)


def paused_words(run: Execution) -> str:
    since = f"{run.paused_at:%Y-%m-%d %H:%M}" if run.paused_at is not None else ""
    return f"which an operator has paused since {since}; it goes on with: holdfast resume {run.id}"


def _runs(
    one: SourceJudgement,
    robots: ExplainedRobots,
    domain: ExplainedDomain | None,
    ended: Mapping[int | None, PageCrawl],
) -> Iterator[ExplainedTurn]:
    """Yield what each job of a source that has the URL in scope will do."""
    code = one.source.code
    if (never := _forbidden(one, robots, domain)) is not None:
        yield turn(OutlookKind.NEVER, source=code, sentence=f"never by {code}: {never}")
    elif not one.source.enabled:
        why = f"never by {code}: the source is disabled (holdfast source enable {code})"
        yield turn(OutlookKind.NEVER, source=code, sentence=why)
    elif not one.runs:
        why = f"never by {code}: it has no job (holdfast job create {code})"
        yield turn(OutlookKind.NEVER, source=code, sentence=why)
    else:
        for run in one.runs:
            attempt, number = ended.get(run.frontier_id), run.turn.execution
            if attempt is None:
                yield run.turn
            else:
                word = outcome_word(attempt.outcome, attempt.reason)
                why = f"execution {number} of {code} is done with the page ({word}); a later run requests it again"
                yield turn(OutlookKind.DONE, source=code, job=run.turn.job, execution=number, sentence=why)


def _forbidden(one: SourceJudgement, robots: ExplainedRobots, domain: ExplainedDomain | None) -> str | None:
    """Return why a source will not request a URL whatever its jobs do; None if nothing forbids it."""
    if domain is not None and not domain.allowed:
        return domain.sentence
    if robots.allowed is False and robots.line is not None and one.explained.robots != "ignore":
        return f"{robots.sentence}; it is requested again when robots.txt changes"
    return None


def _ended_attempts(session: Session, pages: Sequence[int], runs: Collection[int]) -> dict[int | None, PageCrawl]:
    """Return the last attempt at these pages in each run (by the run that owns the frontier), if it ended."""
    if not pages or not runs:
        return {}
    rows = session.scalars(
        select(PageCrawl)
        .where(PageCrawl.page_id.in_(pages), PageCrawl.execution_id.in_(runs))
        .order_by(PageCrawl.attempt, PageCrawl.id)
    )
    last = {row.execution_id: row for row in rows}
    return {number: row for number, row in last.items() if row.outcome is not None}


def _added_by_hand(session: Session, identities: Collection[tuple[str, int]]) -> list[tuple[AddedUrl, str]]:
    """Return where a person added a page for the next run of a source, with the source's code."""
    if not identities:
        return []
    rows = session.execute(
        select(AddedUrl, Source.code)
        .join(Source, Source.id == AddedUrl.source_id)
        .where(tuple_(AddedUrl.domain, AddedUrl.url_hash).in_(sorted(identities)), AddedUrl.execution_id.is_(None))
        .order_by(AddedUrl.id)
        .limit(50)
    )
    return [(row[0], row[1]) for row in rows]


def _place_of(session: Session, attempt: PageCrawl) -> int:
    """Return the position of an attempt in its queue, counted up to COUNTED plus one."""
    same = (
        PageCrawl.execution_id == attempt.execution_id,
        PageCrawl.domain_id == attempt.domain_id,
        PageCrawl.outcome.is_(None),
    )
    if attempt.scheduled_for is None:
        ahead = and_(
            PageCrawl.scheduled_for.is_(None),
            or_(
                PageCrawl.priority > attempt.priority,
                and_(PageCrawl.priority == attempt.priority, PageCrawl.id < attempt.id),
            ),
        )
    else:
        # Deferred attempts come after all attempts without a scheduled time.
        ahead = or_(
            PageCrawl.scheduled_for.is_(None),
            PageCrawl.scheduled_for < attempt.scheduled_for,
            and_(PageCrawl.scheduled_for == attempt.scheduled_for, PageCrawl.id < attempt.id),
        )
    found = select(PageCrawl.id).where(*same, ahead).limit(COUNTED).subquery()
    return 1 + (session.scalar(select(func.count()).select_from(found)) or 0)


def _queue_due_at(session: Session, attempt: PageCrawl) -> int | None:
    """Return the earliest time at which an attempt's queue is polled, in microseconds."""
    return session.scalar(
        select(Queue.due_at).where(Queue.execution_id == attempt.execution_id, Queue.domain_id == attempt.domain_id)
    )


def _execution_at_work_on(session: Session, frontier_id: int) -> Execution | None:
    """Return the execution that currently works on a frontier: its own, or the last one that continues it."""
    job_id = select(Execution.job_id).where(Execution.id == frontier_id).scalar_subquery()
    return session.scalars(
        select(Execution)
        .where(Execution.job_id == job_id, or_(Execution.id == frontier_id, Execution.frontier_id == frontier_id))
        .order_by(Execution.id.desc())
        .limit(1)
    ).one_or_none()
