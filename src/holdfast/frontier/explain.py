"""Assembles an explanation: spelling, scope, robots, domain, attempts, captures, visibility, outlook.

URL            normalised step by step; captures are looked up even if no crawl would request it
rules          of every source, by the configuration of its next run
robots         from the stored record, unless the caller passes a fresh one
rows           of the page under every identity that a source with it in scope gives it
readers        fields are listed one by one, so that new operator fields stay hidden: no workers, files, jobs, process
               messages, people or domain state; the rows behind them were filtered by the viewer's permissions
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from holdfast.config import Settings
from holdfast.db.models import Domain, Page, Source
from holdfast.errors import UrlRefused
from holdfast.frontier.domains import robots_of_origin
from holdfast.frontier.explain_domain import explain_domain
from holdfast.frontier.explain_history import ReplayPath, explain_attempts, explain_snapshots, explain_visibility
from holdfast.frontier.explain_next import explain_outlook, turn
from holdfast.frontier.explain_records import (
    ExplainedAddress,
    ExplainedAttempt,
    ExplainedAttempts,
    ExplainedOutlook,
    ExplainedSource,
    ExplainedSources,
    ExplainedStep,
    ExplainedVisibility,
    Explanation,
    OutlookKind,
    Seen,
)
from holdfast.frontier.explain_robots import explain_robots
from holdfast.frontier.explain_sources import FindNextRuns, Judgements, judge_sources
from holdfast.outside_text import clean
from holdfast.types import RobotsRecord
from holdfast.urls import MAX_URL_CHARS, Url, hash64, normalised_or_plain, page_key, priority, url_hash, url_key
from holdfast.urls.address import host_problem, without_userinfo
from holdfast.urls.steps import Spelling, spell
from holdfast.values import dataclass
from holdfast.withdrawals.visibility import may_see, visible, visible_source, withdrawn_among

DEFAULT_LIMIT = 20
MAX_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest:
    url: str
    """Valid or not."""
    limit: int = DEFAULT_LIMIT
    """Attempts and captures to return, each."""
    before: int | None = None
    """Only attempts with smaller ids."""
    is_reader: bool = False
    """Whether only data visible to the viewer counts, and nothing internal is included."""
    live_robots: RobotsRecord | None = None
    """A robots.txt that the caller has just fetched."""


def explain(
    session: Session,
    settings: Settings,
    request: ExplainRequest,
    *,
    now: datetime,
    find_next_runs: FindNextRuns,
    replay_path: ReplayPath,
) -> Explanation:
    """Return everything known about a URL."""
    given, limit, is_reader, live_robots = request.url, request.limit, request.is_reader, request.live_robots
    text = clean(given, MAX_URL_CHARS + 1) or ""
    bare = without_userinfo(text)
    judged = judge_sources(session, bare, settings, find_next_runs, now=now)
    if is_reader:
        judged = judged._replace(all=[one for one in judged.all if may_see(one.source)])
    spelling, refused = _spelled(text, given, judged)
    url = spelling.url if spelling is not None else None
    normalised = url.normalised if url is not None else normalised_or_plain(bare)[:MAX_URL_CHARS]
    inside = [one.explained for one in judged.in_scope]
    state = live_robots or (robots_of_origin(session, url.origin) if url is not None else None)
    robots = explain_robots(url, state, inside, now=now, live=live_robots is not None)
    domain = explain_domain(session, url.domain, inside, robots, settings, now=now) if url is not None else None
    # To a reader a page that is taken down is one that was never requested.
    is_hidden = is_reader and bool(withdrawn_among(session, keys={page_key(normalised)}))
    pages = [] if is_hidden else _page_ids(session, _identities(url, judged))
    number = hash64(normalised)
    snapshots = explain_snapshots(
        session,
        url_hash=number,
        key=url_key(bare if url is None else url.fetch),
        limit=limit,
        replay_path=replay_path,
        seen=visible() if is_reader else (),
    )
    attempts = explain_attempts(
        session,
        pages,
        before=request.before,
        limit=limit,
        seen=(visible_source(Source.id),) if is_reader else (),
    )
    found = Explanation(
        address=_address(bare, refused, spelling, normalised),
        sources=judged.explained(),
        robots=robots,
        domain=domain,
        attempts=attempts,
        snapshots=snapshots,
        visibility=explain_visibility(
            session,
            snapshots,
            [one.source for one in judged.in_scope],
            url_hash=number,
            key=page_key(normalised),
        ),
        outlook=explain_outlook(session, pages, judged, robots, domain, now=now),
        at=now,
    )
    return for_readers(session, found) if is_reader else found


def _spelled(text: str, given: str, judged: Judgements) -> tuple[Spelling | None, str | None]:
    """Return how a URL is normalised (None if invalid), and why no crawl would request it as given."""
    try:
        spelling = spell(text)
    except UrlRefused as exc:
        # A source may allow what is refused in general: a port where websites rarely live.
        allowing = next((one.policy for one in judged.in_scope if one.policy is not None), None)
        return (None, exc.reason) if allowing is None else (spell(text, allowing), None)
    if text != given:
        # A question mark stands for half a character, and for a NUL: what is explained is not what was given.
        return spelling, "it contains a NUL or half a character, which no URL can contain"
    return spelling, host_problem(text)


def _identities(url: Url | None, judged: Judgements) -> set[tuple[str, int]]:
    """Return the identities of the page: sources with other normalisation rules know it by another hash."""
    spelled = [one.url for one in judged.in_scope if one.url is not None]
    return {(one.domain, one.hash64) for one in (*([url] if url is not None else []), *spelled)}


def _address(bare: str, refused: str | None, spelling: Spelling | None, normalised: str) -> ExplainedAddress:
    url = spelling.url if spelling is not None else None
    return ExplainedAddress(
        given=bare[:MAX_URL_CHARS],
        refused=refused,
        steps=[
            ExplainedStep(step=one.step, after=one.after, sentence=one.sentence)
            for one in (spelling.steps if spelling is not None else ())
        ],
        fetch=url.fetch if url is not None else None,
        normalised=normalised,
        key=url_key(bare if url is None else url.fetch),
        url_hash=url_hash(normalised),
        group=url.group if url is not None else None,
        domain=url.domain if url is not None else None,
        origin=url.origin if url is not None else None,
        priority=priority(url.normalised, None) if url is not None else None,
    )


def _page_ids(session: Session, identities: Collection[tuple[str, int]]) -> list[int]:
    if not identities:
        return []
    rows = session.scalars(
        select(Page.id)
        .join(Domain, Domain.id == Page.domain_id)
        .where(tuple_(Domain.name, Page.url_hash).in_(sorted(identities)))
        .order_by(Page.id)
    )
    return list(rows)


_NEXT: Final = {
    OutlookKind.UNDER_WAY: "a run that is under way will request it",
    OutlookKind.QUEUED: "a run that is about to start will request it",
    OutlookKind.DUE: "a run that is due will request it",
    OutlookKind.SCHEDULED: "the next run of its source will request it",
    OutlookKind.DONE: "the current run has requested it; a later run requests it again",
    OutlookKind.WAITS: "it waits until an operator starts the next run",
}


def for_readers(session: Session, found: Explanation) -> Explanation:
    """Return the part of an explanation that readers may see; it must be made from sources visible to the viewer."""
    attempts = found.attempts.items
    named = {url: page_key(url) for one in attempts for url in (one.found_on, one.redirected_to) if url is not None}
    captures = {one.record.snapshot for one in attempts if one.record is not None and one.record.snapshot is not None}
    hidden = withdrawn_among(session, snapshots=captures, keys=set(named.values()))
    shown: dict[str | None, str] = {url: url for url, key in named.items() if key not in hidden}
    return Explanation(
        address=found.address,
        sources=_sources(found.sources),
        robots=found.robots,
        domain=None,
        attempts=ExplainedAttempts(
            items=[_attempt(one, shown) for one in attempts if one.record is None or one.record.snapshot not in hidden],
            next=found.attempts.next,
            limit=found.attempts.limit,
        ),
        snapshots=found.snapshots,
        visibility=_visibility(found),
        outlook=_outlook(found),
        at=found.at,
    )


def _sources(found: ExplainedSources) -> ExplainedSources:
    codes = ", ".join(one.source for one in found.in_scope)
    return ExplainedSources(
        in_scope=[_source(one) for one in found.in_scope],
        out_of_scope=[],
        out_of_scope_count=0,
        is_all=found.is_all,
        sentence=f"it belongs to {codes}" if codes else "no source that you may see has it in its scope",
    )


def _source(one: ExplainedSource) -> ExplainedSource:
    return ExplainedSource(
        source=one.source,
        enabled=one.enabled,
        job=None,
        in_scope=one.in_scope,
        rule=one.rule,
        sentence=one.sentence,
        normalised=one.normalised,
        max_depth=one.max_depth,
        delay_s=one.delay_s,
        robots=one.robots,
        storage="",
        backend="",
    )


def _attempt(one: ExplainedAttempt, shown: Mapping[str | None, str]) -> ExplainedAttempt:
    status = f", status {one.status}" if one.status is not None else ""
    when = f" on {one.completed_at:%Y-%m-%d %H:%M}" if one.completed_at else ""
    return ExplainedAttempt(
        id=one.id,
        source=one.source,
        job=None,
        execution=one.execution,
        number=one.number,
        kind=one.kind,
        depth=one.depth,
        found_on=shown.get(one.found_on),
        outcome=one.outcome,
        word=one.word,
        reason=one.reason,
        status=one.status,
        message=None,
        media_type=one.media_type,
        wire_bytes=one.wire_bytes,
        redirected_to=shown.get(one.redirected_to),
        scheduled_for=one.scheduled_for,
        started_at=one.started_at,
        completed_at=one.completed_at,
        record=None,
        sentence=f"{one.word}{status}{when}",
    )


def _visibility(found: Explanation) -> ExplainedVisibility:
    codes = {one.source for one in found.sources.in_scope} | {one.source for one in found.snapshots.items}
    members = [code for code in found.visibility.members_only if code in codes]
    seen_by = Seen.MEMBERS if members else Seen.EVERYBODY
    said = f"captures of {', '.join(members)} are for members" if members else "everybody may see it"
    return ExplainedVisibility(seen_by=seen_by, members_only=members, withdrawals=[], sentence=said)


def _outlook(found: Explanation) -> ExplainedOutlook:
    codes = {one.source for one in found.sources.in_scope}
    first = next((one for one in found.outlook.all if one.source in codes and one.kind in _NEXT), None)
    if first is None:
        event = turn(OutlookKind.NEVER, sentence=_why(found))
    else:
        event = turn(first.kind, source=first.source, at=first.at, place=first.place, sentence=_NEXT[first.kind])
    return ExplainedOutlook(next=event, all=[event])


def _why(found: Explanation) -> str:
    if found.address.refused is not None:
        return f"never: {found.address.refused}"
    if not found.sources.in_scope:
        return "never: no source that you may see has it in its scope"
    if found.robots.allowed is False:
        return f"never: {found.robots.sentence}"
    return "no run of its source is planned"
