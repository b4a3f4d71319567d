"""The part of an explanation for readers: fields are listed one by one, so that new operator fields stay hidden.

Omits workers, files, jobs, process messages, people, and the state of the domain. The rows behind it were
already filtered by the viewer's permissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy.orm import Session

from holdfast.frontier.explain_next import turn
from holdfast.frontier.explain_records import (
    ExplainedAttempt,
    ExplainedAttempts,
    ExplainedOutlook,
    ExplainedSource,
    ExplainedSources,
    ExplainedVisibility,
    Explanation,
    OutlookKind,
    Seen,
)
from holdfast.urls import page_key
from holdfast.withdrawals.visibility import withdrawn_among

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
