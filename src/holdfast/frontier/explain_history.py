"""The history of a URL: attempts, captures, and who may see them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session, aliased

from holdfast.clock import digits14, moment_or_none
from holdfast.db.models import Execution, Job, Page, PageCrawl, Snapshot, Source, WarcFile
from holdfast.frontier.attempts import capture_of
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


class AttemptOnPage(NamedTuple):
    attempt: PageCrawl
    found_on: str | None
    job_id: int | None
    source: str | None


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
    rows = attempts_on(session, pages, *seen, *older, limit=limit + 1)
    shown = rows[:limit]
    captures = _captures_by_id(session, {capture_of(row.attempt) for row in shown})
    paths = _file_paths(session, {row.attempt.warc_file_id for row in shown})
    return ExplainedAttempts(
        items=[_attempt(row, captures, paths) for row in shown],
        next=str(shown[-1].attempt.id) if len(rows) > limit else None,
        limit=limit,
    )


def _attempt(
    row: AttemptOnPage, captures: dict[int | None, Snapshot], paths: dict[int | None, str]
) -> ExplainedAttempt:
    one = row.attempt
    found = from_row(
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
    return replace(found, sentence=f"{_attempt_sentence(found)}{gone}")


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


def _attempt_sentence(found: ExplainedAttempt) -> str:
    where = f"execution {found.execution} of {found.source}" if found.source else f"execution {found.execution}"
    which = f"attempt {found.number} in {where}"
    if found.outcome is None:
        return f"{which} is open: it waits for its request"
    what = found.outcome.value + (f" ({found.reason})" if found.reason and found.reason != found.outcome.value else "")
    status = f", status {found.status}" if found.status is not None else ""
    to = f", redirected to {found.redirected_to}" if found.redirected_to else ""
    message = f": {found.message}" if found.message else ""
    when = f" at {found.completed_at:%Y-%m-%d %H:%M:%S}" if found.completed_at else ""
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
    number, first, last, others = _count_captures(session, url_hash=url_hash, key=key, seen=seen)
    rows = _newest_captures(session, url_hash=url_hash, limit=limit, seen=seen)
    keys = {one.page_key or one.url_key for one, _ in rows}
    hidden = withdrawn_among(session, snapshots=[one.id for one, _ in rows], keys=keys)
    found = ExplainedSnapshots(
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
    return replace(found, sentence=_captures_sentence(found))


def _captures_sentence(found: ExplainedSnapshots) -> str:
    others = f"; {found.other_spellings} more under other spellings (http, www)" if found.other_spellings else ""
    if not found.count:
        return f"it has no captures{others}"
    number = f"{found.count}" if found.is_exact else f"more than {found.count}"
    noun = "capture" if found.count == 1 else "captures"
    return f"it has {number} {noun}, from {found.first_at:%Y-%m-%d} to {found.last_at:%Y-%m-%d}{others}"


def explain_visibility(
    session: Session, snapshots: ExplainedSnapshots, in_scope: Sequence[Source], *, url_hash: int, key: str
) -> ExplainedVisibility:
    """Return who may see the captures, and the active takedowns of the page and of its captures.

    For a page that was never captured, return who may see future captures by the sources that have it in scope.
    """
    of_page = withdrawals_of(session, snapshot_id=None, key=key)
    # Of all its captures, not of those that are shown: the one that was withdrawn may be years old.
    among = [] if of_page else withdrawals_among_captures(session, url_hash=url_hash, limit=_WITHDRAWALS)
    found = [
        ExplainedWithdrawal(id=one.id, snapshot=one.snapshot_id, reason=one.reason, actor=one.actor, at=one.created_at)
        for one in (*of_page, *among)
    ]
    page, single = (found, []) if of_page else ([], found)
    # Captures and not withdrawals: one may hide many, which show the body that it withdraws.
    gone = count_withdrawn(session, url_hash=url_hash, most=COUNTED) if single else 0
    is_all = bool(gone) and snapshots.is_exact and gone >= snapshots.count
    ids = select(Snapshot.source_id).where(Snapshot.url_hash == url_hash).limit(COUNTED).distinct()
    captured = list(session.scalars(select(Source).where(Source.id.in_(ids)).order_by(Source.code)))
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
        return f"the page was withdrawn by {first.actor} on {first.at:%Y-%m-%d}: {first.reason}; readers do not see it"
    if single:
        some = f"at least {gone}" if gone == COUNTED else str(gone)
        which = "all" if seen is Seen.NOBODY else some
        parts.append(f"{which} of its captures {'is' if which == '1' else 'are'} withdrawn: {single[0].reason}")
    return "; ".join(parts) or "everybody may see it"


def attempts_on(session: Session, pages: Sequence[int], *where: ColumnElement[bool], limit: int) -> list[AttemptOnPage]:
    """Return attempts at these pages, newest first."""
    if not pages:
        return []
    via = aliased(Page)
    rows = session.execute(
        select(PageCrawl, via.url, Job.id, Source.code)
        .outerjoin(via, via.id == PageCrawl.via_page_id)
        .outerjoin(Execution, Execution.id == PageCrawl.execution_id)
        .outerjoin(Job, Job.id == Execution.job_id)
        .outerjoin(Source, Source.id == Job.source_id)
        .where(PageCrawl.page_id.in_(pages), *where)
        .order_by(PageCrawl.id.desc())
        .limit(limit)
    )
    return [AttemptOnPage(*row) for row in rows]


def _captures_by_id(session: Session, ids: Collection[int | None]) -> dict[int | None, Snapshot]:
    """Return captures by id; those not indexed yet are missing."""
    known = [number for number in ids if number is not None]
    return {row.id: row for row in session.scalars(select(Snapshot).where(Snapshot.id.in_(known)))} if known else {}


def _file_paths(session: Session, ids: Collection[int | None]) -> dict[int | None, str]:
    """Return the paths of WARC files as stored in their rows, except discarded files."""
    known = [number for number in ids if number is not None]
    if not known:
        return {}
    rows = session.execute(
        select(WarcFile.id, WarcFile.path).where(WarcFile.id.in_(known), WarcFile.state != "discarded")
    )
    return {row[0]: row[1] for row in rows}


def _count_captures(
    session: Session, *, url_hash: int, key: str | None, seen: Sequence[ColumnElement[bool]] = ()
) -> tuple[int, datetime | None, datetime | None, int]:
    """Return the number and time range of a page's captures; with a key, also the number of its other spellings'."""
    this = and_(Snapshot.url_hash == url_hash, *seen)
    counted = select(Snapshot.id).where(this).limit(COUNTED + 1).subquery()
    count = session.scalar(select(func.count()).select_from(counted)) or 0
    first, last = (
        session.scalar(select(Snapshot.captured_at).where(this).order_by(order, Snapshot.id).limit(1))
        for order in (Snapshot.captured_at, Snapshot.captured_at.desc())
    )
    others = 0
    if key is not None:
        other = select(Snapshot.id).where(Snapshot.url_key == key, Snapshot.url_hash != url_hash, *seen).limit(COUNTED)
        others = session.scalar(select(func.count()).select_from(other.subquery())) or 0
    return count, first, last, others


def _newest_captures(
    session: Session, *, url_hash: int, limit: int, seen: Sequence[ColumnElement[bool]] = ()
) -> list[tuple[Snapshot, str | None]]:
    """Return the newest captures of a page with their sources' codes, including those taken down."""
    rows = session.execute(
        select(Snapshot, Source.code)
        .outerjoin(Source, Source.id == Snapshot.source_id)
        .where(Snapshot.url_hash == url_hash, *seen)
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(limit)
    )
    return [(snapshot, code) for snapshot, code in rows]
