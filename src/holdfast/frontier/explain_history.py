"""The history of a URL: attempts, captures, and who may see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from holdfast.clock import digits14, moment_or_none
from holdfast.db.models import PageCrawl, Snapshot, Source
from holdfast.frontier import explain_queries as queries
from holdfast.frontier.attempts import capture_of
from holdfast.frontier.explain_queries import AttemptOnPage
from holdfast.frontier.explain_records import (
    ExplainedAttempt,
    ExplainedAttempts,
    ExplainedRecord,
    ExplainedSnapshot,
    ExplainedSnapshots,
    ExplainedVisibility,
    ExplainedWithdrawal,
    Seen,
)
from holdfast.frontier.figures import COUNTED
from holdfast.frontier.outcome_words import outcome_word
from holdfast.records import from_row
from holdfast.types import Outcome, UrlKind
from holdfast.withdrawals.viewers import Visibility
from holdfast.withdrawals.visibility import count_withdrawn, withdrawals_among_captures, withdrawals_of, withdrawn_among

_WITHDRAWALS = 100
ReplayPath = Callable[[str, str, str], str]
"""Returns the path of a replayed capture: of its 14 digits, the modifier and the URL."""


def explain_attempts(
    session: Session,
    pages: Sequence[int],
    *,
    before: int | None,
    limit: int,
    seen: Sequence[ColumnElement[bool]] = (),
) -> ExplainedAttempts:
    """Return attempts older than `before`, newest first; `seen` filters out those the viewer may not see."""
    older = [] if before is None else [PageCrawl.id < before]
    rows = queries.attempts_on(session, pages, *seen, *older, limit=limit + 1)
    shown = rows[:limit]
    captures = queries.captures_by_id(session, {capture_of(row.attempt) for row in shown})
    paths = queries.file_paths(session, {row.attempt.warc_file_id for row in shown})
    return ExplainedAttempts(
        items=[_attempt(row, captures, paths) for row in shown],
        next=str(shown[-1].attempt.id) if len(rows) > limit else None,
        limit=limit,
    )


def _attempt(
    row: AttemptOnPage, captures: dict[int | None, Snapshot], paths: dict[int | None, str]
) -> ExplainedAttempt:
    one = row.attempt
    told = from_row(
        ExplainedAttempt,
        one,
        source=row.source,
        job=row.job_id,
        execution=one.execution_id,
        number=one.attempt,
        kind=UrlKind(one.kind),
        found_on=row.found_on,
        outcome=None if one.outcome is None else Outcome(one.outcome),
        word=outcome_word(one.outcome, one.reason),
        status=one.status_code,
        scheduled_for=moment_or_none(one.scheduled_for),
        started_at=moment_or_none(one.started_at),
        completed_at=moment_or_none(one.completed_at),
        record=_record(one, captures, paths),
        sentence="",
    )
    is_gone = one.warc_file_id is not None and one.warc_file_id not in paths
    gone = "; what it stored was discarded" if is_gone else ""
    return replace(told, sentence=f"{_attempt_sentence(told)}{gone}")


def _record(
    one: PageCrawl, captures: Mapping[int | None, Snapshot], paths: Mapping[int | None, str]
) -> ExplainedRecord | None:
    if one.warc_file_id is None or one.warc_offset is None or one.warc_file_id not in paths:
        return None
    capture = captures.get(capture_of(one))
    return ExplainedRecord(
        warc_file=paths[one.warc_file_id],
        warc_file_id=one.warc_file_id,
        offset=one.warc_offset,
        length=one.warc_length,
        snapshot=capture.id if capture is not None else None,
        record_id=capture.record_id if capture is not None else None,
        digest=one.payload_digest,
    )


def _attempt_sentence(told: ExplainedAttempt) -> str:
    where = f"execution {told.execution} of {told.source}" if told.source else f"execution {told.execution}"
    which = f"attempt {told.number} in {where}"
    if told.outcome is None:
        return f"{which} is open: it waits for its request"
    what = told.outcome.value + (f" ({told.reason})" if told.reason and told.reason != told.outcome.value else "")
    status = f", status {told.status}" if told.status is not None else ""
    to = f", redirected to {told.redirected_to}" if told.redirected_to else ""
    message = f": {told.message}" if told.message else ""
    when = f" at {told.completed_at:%Y-%m-%d %H:%M:%S}" if told.completed_at else ""
    return f"{which} ended{when}: {what}{status}{to}{message}"


def explain_snapshots(
    session: Session,
    *,
    url_hash: int,
    key: str | None,
    limit: int,
    replay_path: ReplayPath,
    seen: Sequence[ColumnElement[bool]] = (),
) -> ExplainedSnapshots:
    """Return the newest captures, taken down or not, and their total; `seen` as in `explain_attempts`."""
    number, first, last, others = queries.count_captures(session, url_hash=url_hash, key=key, seen=seen)
    rows = queries.newest_captures(session, url_hash=url_hash, limit=limit, seen=seen)
    keys = {one.page_key or one.url_key for one, _ in rows}
    hidden = withdrawn_among(session, snapshots=[one.id for one, _ in rows], keys=keys)
    told = ExplainedSnapshots(
        count=min(number, COUNTED),
        is_exact=number <= COUNTED,
        first_at=first,
        last_at=last,
        other_spellings=others,
        items=[
            from_row(
                ExplainedSnapshot,
                one,
                source=code,
                execution=one.execution_id,
                digest=one.payload_digest,
                replay_path=replay_path(digits14(one.captured_at), "", one.url),
                duplicate_of=one.canonical_id,
                withdrawn=one.id in hidden or (one.page_key or one.url_key) in hidden,
            )
            for one, code in rows
        ],
        sentence="",
    )
    return replace(told, sentence=_captures_sentence(told))


def _captures_sentence(told: ExplainedSnapshots) -> str:
    others = f"; {told.other_spellings} more under other spellings (http, www)" if told.other_spellings else ""
    if not told.count:
        return f"it has no captures{others}"
    number = f"{told.count}" if told.is_exact else f"more than {told.count}"
    noun = "capture" if told.count == 1 else "captures"
    return f"it has {number} {noun}, from {told.first_at:%Y-%m-%d} to {told.last_at:%Y-%m-%d}{others}"


def explain_visibility(
    session: Session, snapshots: ExplainedSnapshots, in_scope: Sequence[Source], *, url_hash: int, key: str
) -> ExplainedVisibility:
    """Return who may see the captures, and the active takedowns of the page and of its captures.

    For a page that was never captured, return who may see future captures by the sources that have it in scope.
    """
    of_page = withdrawals_of(session, snapshot_id=None, key=key)
    # Of all its captures, not of those that are shown: the one that was withdrawn may be years old.
    among = [] if of_page else withdrawals_among_captures(session, url_hash=url_hash, limit=_WITHDRAWALS)
    told = [
        ExplainedWithdrawal(id=one.id, snapshot=one.snapshot_id, reason=one.reason, actor=one.actor, at=one.created_at)
        for one in (*of_page, *among)
    ]
    page, single = (told, []) if of_page else ([], told)
    # Captures and not withdrawals: one may hide many, which show the body that it withdraws.
    gone = count_withdrawn(session, url_hash=url_hash, most=COUNTED) if single else 0
    is_all = bool(gone) and snapshots.is_exact and gone >= snapshots.count
    captured = queries.sources_of_captures(session, url_hash=url_hash)
    sources = captured or in_scope
    members = [source.code for source in sources if source.visibility == Visibility.MEMBERS]
    seen = _seen_by(bool(page) or is_all, bool(single), len(members), len(sources))
    return ExplainedVisibility(
        seen_by=seen,
        members_only=members,
        withdrawals=(page + single)[:_WITHDRAWALS],
        sentence=_visibility_sentence(seen, page, single, gone, _for_members(members, is_captured=bool(captured))),
    )


def _seen_by(is_all_withdrawn: bool, is_any_withdrawn: bool, members: int, sources: int) -> Seen:
    if is_all_withdrawn:
        return Seen.NOBODY
    if members and members == sources:
        return Seen.MEMBERS
    return Seen.SOME if is_any_withdrawn or members else Seen.EVERYBODY


def _for_members(members: Sequence[str], *, is_captured: bool) -> list[str]:
    if not members:
        return []
    names = ", ".join(members)
    return [f"captures of {names} are for members" if is_captured else f"what {names} captures of it is for members"]


def _visibility_sentence(
    seen: Seen, page: Sequence[ExplainedWithdrawal], single: Sequence[ExplainedWithdrawal], gone: int, parts: list[str]
) -> str:
    if page:
        first = page[0]
        return f"the page was withdrawn by {first.actor} on {first.at:%Y-%m-%d}: {first.reason}; nobody sees it"
    if single:
        some = f"at least {gone}" if gone == COUNTED else str(gone)
        which = "all" if seen is Seen.NOBODY else some
        parts.append(f"{which} of its captures {'is' if which == '1' else 'are'} withdrawn: {single[0].reason}")
    return "; ".join(parts) or "everybody may see it"
