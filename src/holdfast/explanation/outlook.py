"""The next events for a URL: queues that contain it, runs that will request it, or why none will."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from holdfast.clock import from_micros
from holdfast.db.models import Execution, Job, PageCrawl
from holdfast.explanation import queries
from holdfast.explanation.model import (
    ExplainedDomain,
    ExplainedOutlook,
    ExplainedRobots,
    ExplainedTurn,
    OutlookKind,
)
from holdfast.explanation.queries import AttemptOnPage, JobOfSource
from holdfast.explanation.scopes import Judgements, SourceJudgement
from holdfast.frontier.outcome_words import outcome_word
from holdfast.jobs.states import State

_AT_WORK = ("queued", "running")
_OPEN = (*_AT_WORK, "stopped")
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
    at_work = {
        found.latest.frontier_id or found.latest.id
        for one in judged.in_scope
        for found in one.jobs
        if found.latest is not None and found.latest.state in _AT_WORK
    }
    ended = queries.ended_attempts(session, pages, at_work)
    turns = [
        *_added(session, judged),
        *(_queued(session, row, domain, now) for row in queries.open_attempts(session, pages, limit=_ATTEMPTS)),
        *(turn for one in judged.in_scope for turn in _runs(one, robots, domain, ended, now)),
    ]
    in_queue = {turn.job for turn in turns if turn.place is not None}
    # A job whose frontier has the address is told by its place there.
    turns = [turn for turn in turns if turn.place is not None or turn.job not in in_queue or turn.job is None]
    if not turns:
        turns = [_turn(OutlookKind.NEVER, sentence=_why_never(judged, domain))]
    turns.sort(key=lambda turn: (_ORDER.index(turn.kind), turn.at or now, turn.place or 0))
    return ExplainedOutlook(next=turns[0], all=turns)


def _added(session: Session, judged: Judgements) -> Iterator[ExplainedTurn]:
    identities = {(one.domain, one.hash64) for one in judged.spellings}
    for added, code in queries.added_by_hand(session, identities):
        why = f"{added.added_by} added it on {added.added_at:%Y-%m-%d %H:%M}; the next run of {code} takes it"
        yield _turn(OutlookKind.SCHEDULED, source=code, sentence=why)


def _turn(kind: OutlookKind, **values: Any) -> ExplainedTurn:
    empty = dict.fromkeys(("source", "job", "execution", "at", "place"))
    return ExplainedTurn(kind=kind, **{**empty, **values})


def _why_never(judged: Judgements, domain: ExplainedDomain | None) -> str:
    if domain is None:
        return "never: no crawl would request this address"
    return f"never: {judged.told().sentence}"


def _queued(session: Session, row: AttemptOnPage, domain: ExplainedDomain | None, now: datetime) -> ExplainedTurn:
    attempt = row.attempt
    at_work = queries.execution_at_work_on(session, attempt.execution_id)
    number = at_work.id if at_work is not None else attempt.execution_id
    facts: dict[str, object] = {"source": row.source, "job": row.job_id, "execution": number}
    if at_work is None or at_work.state not in _OPEN:
        state = at_work.state if at_work is not None else "gone"
        why = f"it is in the queue of execution {number}, which is {state} and sends no more requests"
        return _turn(OutlookKind.WAITS, **facts, sentence=f"{why}; the next run of {row.source or 'its source'} may")
    place = queries.place_of(session, attempt)
    facts["place"] = place
    if at_work.state == "stopped":
        return _turn(
            OutlookKind.WAITS,
            **facts,
            sentence=f"it is number {place} in the queue of execution {number}, which was stopped; the same crawl "
            "command goes on with it",
        )
    if domain is not None and not domain.allowed:
        return _turn(OutlookKind.NEVER, **facts, sentence=f"never: {domain.sentence}")
    if at_work.paused_at is not None:
        why = f"it is number {place} in the queue of execution {number}, {_paused(at_work)}"
        return _turn(OutlookKind.WAITS, **facts, sentence=why)
    if domain is not None and domain.paused_since is not None:
        why = f"it is number {place} in the queue of execution {number}, and an operator has paused {domain.name}"
        return _turn(OutlookKind.WAITS, **facts, sentence=why)
    moments = [attempt.scheduled_for, queries.queue_due_at(session, attempt)]
    dates = [from_micros(one) for one in moments if one]
    if domain is not None:
        dates += [one for one in (domain.next_allowed_at, domain.circuit_open_until) if one is not None]
    at = max(dates, default=now)
    facts["at"] = at if at > now else None
    later = f", not before {at:%Y-%m-%d %H:%M:%S}" if at > now else ""
    nth = f"number {place}" if place <= queries.COUNTED else f"behind more than {queries.COUNTED} others"
    if at_work.state == "running":
        kind = OutlookKind.UNDER_WAY
        sentence = f"it is {nth} in the queue of its domain in execution {number}, which runs now{later}"
    else:
        kind = OutlookKind.QUEUED
        sentence = f"it is {nth} in the queue of its domain in execution {number}, which waits for a worker{later}"
    return _turn(kind, **facts, sentence=sentence)


def _paused(run: Execution) -> str:
    since = f"{run.paused_at:%Y-%m-%d %H:%M}" if run.paused_at is not None else ""
    return f"which an operator has paused since {since}; it goes on with: holdfast resume {run.id}"


def _runs(
    one: SourceJudgement,
    robots: ExplainedRobots,
    domain: ExplainedDomain | None,
    ended: Mapping[int, PageCrawl],
    now: datetime,
) -> Iterator[ExplainedTurn]:
    """Yield what each job of a source that has the URL in scope will do."""
    code = one.source.code
    jobs = [job for job in one.jobs if job.job.kind != "feed"]
    if (never := _forbidden(one, robots, domain)) is not None:
        yield _turn(OutlookKind.NEVER, source=code, sentence=f"never by {code}: {never}")
    elif not one.source.enabled:
        why = f"never by {code}: the source is disabled (holdfast source enable {code})"
        yield _turn(OutlookKind.NEVER, source=code, sentence=why)
    elif not jobs:
        why = f"never by {code}: it has no job (holdfast job create {code})"
        yield _turn(OutlookKind.NEVER, source=code, sentence=why)
    else:
        yield from (_run(job, code, ended, now) for job in jobs)


def _forbidden(one: SourceJudgement, robots: ExplainedRobots, domain: ExplainedDomain | None) -> str | None:
    """Return why a source will not request a URL whatever its jobs do; None if nothing forbids it."""
    if domain is not None and not domain.allowed:
        return domain.sentence
    if robots.allowed is False and robots.line is not None and one.told.robots != "ignore":
        return f"{robots.sentence}; it is requested again when robots.txt changes"
    return None


def _run(found: JobOfSource, code: str, ended: Mapping[int, PageCrawl], now: datetime) -> ExplainedTurn:
    job, latest = found.job, found.latest
    facts: dict[str, object] = {"source": code, "job": job.id}
    if latest is not None and latest.state in _AT_WORK:
        facts["execution"] = latest.id
        if (attempt := ended.get(latest.frontier_id or latest.id)) is not None:
            word = outcome_word(attempt.outcome, attempt.reason)
            why = f"execution {latest.id} of {code} is done with the page ({word}); a later run requests it again"
            return _turn(OutlookKind.DONE, **facts, sentence=why)
        if latest.paused_at is not None:
            why = f"execution {latest.id} of {code} would request it, {_paused(latest)}"
            return _turn(OutlookKind.WAITS, **facts, sentence=why)
        if latest.state == "running":
            why = f"execution {latest.id} of {code} is running; it requests the page once it finds a link to it"
            return _turn(OutlookKind.UNDER_WAY, **facts, sentence=why)
        at = latest.queued_at if latest.queued_at is not None and latest.queued_at > now else None
        when = f", not before {at:%Y-%m-%d %H:%M:%S}" if at else ""
        why = f"execution {latest.id} of {code} is queued and begins when a worker is free{when}"
        return _turn(OutlookKind.QUEUED, **facts, at=at, sentence=why)
    return _waiting(job, latest, code, now, facts)


def _waiting(job: Job, latest: Execution | None, code: str, now: datetime, facts: dict[str, object]) -> ExplainedTurn:
    if job.next_run_at is not None and job.state in (State.SCHEDULED, State.PENDING):
        if job.next_run_at <= now:
            why = f"job {job.id} of {code} is due; a scheduler queues it (holdfast serve)"
            return _turn(OutlookKind.DUE, **facts, sentence=why)
        why = f"job {job.id} of {code} runs next at {job.next_run_at:%Y-%m-%d %H:%M:%S} UTC"
        return _turn(OutlookKind.SCHEDULED, **facts, at=job.next_run_at, sentence=why)
    if job.state == State.PENDING:
        why = f"job {job.id} of {code} waits for a scheduler to queue it (holdfast serve)"
        return _turn(OutlookKind.DUE, **facts, sentence=why)
    if job.state == State.PAUSED:
        why = f"job {job.id} of {code} is paused by its {job.paused_by}; go on with: holdfast job resume {job.id}"
        return _turn(OutlookKind.WAITS, **facts, sentence=why)
    if job.state == State.FAILED:
        why = f"job {job.id} of {code} failed; try it again with: holdfast job retry {job.id}"
        return _turn(OutlookKind.WAITS, **facts, sentence=why)
    if job.state is None and latest is not None and latest.state == "stopped":
        why = f"execution {latest.id} of {code} was stopped; the same crawl command goes on with it"
        return _turn(OutlookKind.WAITS, **facts, execution=latest.id, sentence=why)
    word = "was a crawl of its own" if job.state is None else f"is {job.state} and has no schedule"
    return _turn(OutlookKind.NEVER, **facts, sentence=f"never again by job {job.id} of {code}: it {word}")
