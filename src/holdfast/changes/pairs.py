"""Comparison of any two captures of one page. Reading stores nothing: there are as many pairs as captures squared,
and a reader does not wait for a writer.

`changes.compute` computes and stores the diffs of neighbours; others are computed on request, with the work
limited by counting it (`changes.alignment`).
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from sqlalchemy.orm import Session

from holdfast.changes import listing, queries
from holdfast.changes.compare import VERSION, WHOLE_VERSION, ComparableText, DiffHunk, compare, read_text
from holdfast.changes.records import ChangeEvent
from holdfast.changes.rendering import unpack
from holdfast.changes.verdict import ChangeType, ChangeVerdict, ComparedCapture, comparable, judge
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import Diff, Snapshot
from holdfast.errors import Invalid, NotFound
from holdfast.index.queries import demand_body, open_stored
from holdfast.parse.child import parse_safely
from holdfast.parse.content import SiteTemplate
from holdfast.parse.document import DocumentKind, kind_of
from holdfast.parse.page import MAX_PARSED_BYTES
from holdfast.values import dataclass
from holdfast.warc.reader import DamagedWarc
from holdfast.withdrawals.visibility import visible_snapshot


def read_record(
    database: Database, home: Path, found: Snapshot, *, whole: bool, template: SiteTemplate | None = None
) -> ComparableText | None:
    """Parse the body of a capture like `read_lines`; return None if it cannot be read, too."""
    try:
        # End the session before parsing, which may take seconds.
        with database.read() as session, open_stored(session, home, found) as stored:
            body = stored.content(MAX_PARSED_BYTES)
            charset = stored.head.charset if stored.head is not None else None
    except (NotFound, DamagedWarc, OSError):
        return None
    return read_lines(body, found.media_type, charset, found.url, whole=whole, template=template)


def read_lines(
    body: bytes,
    media_type: str | None,
    charset: str | None,
    url: str,
    *,
    whole: bool,
    template: SiteTemplate | None = None,
) -> ComparableText | None:
    """Parse a body as HTML, text or PDF; return None for other types, and if the parser failed.

    `whole` reads the whole visible page; `template` locates the main content on pages of the source.
    """
    kind = kind_of(body, media_type)
    if kind is DocumentKind.OTHER:
        return None
    document = parse_safely(
        body, kind=kind.value, media_type=media_type, charset=charset, url=url, whole=whole, template=template
    )
    return read_text(document.text, "\n".join(document.headings)) if document.text or not document.problems else None


class PairMismatch(Invalid):
    """These two captures are not of the same page."""

    code = "pair_mismatch"


class NothingToCompare(NotFound):
    """There is no earlier capture to compare with."""

    code = "nothing_to_compare"


class TextMode(StrEnum):
    MAIN = "main"
    FULL = "full"
    """All visible text, including what surrounds the main content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    event: ChangeEvent
    earlier: Snapshot | None
    """None for the first capture of a page."""
    later: Snapshot
    hunks: list[DiffHunk] | None
    """None if the two cannot be compared as text."""
    touched: tuple[str, ...] = ()
    truncated: bool = False
    mode: TextMode


def compare_captures(
    database: Database, home: Path, clock: Clock, later_id: int, earlier_id: int | None = None, *, mode: TextMode
) -> Compared:
    """Return the differences between a capture and an earlier one of its page, by default the one just before it.

    Raise SnapshotNotFound, PairMismatch, or NothingToCompare if no earlier capture is known. If a record cannot be
    read for the full text, the main text is compared, and `mode` says so.
    """
    with database.read() as session:
        later = visible_snapshot(session, later_id)
        known = listing.event_at(session, later_id)
        earlier = _earlier(session, later, known, earlier_id)
        now, before = _capture(session, later), None if earlier is None else _capture(session, earlier)
        pair = None if before is None else comparable(before, now)
        # Both bodies have the same text: there is nothing to compare.
        if pair is not None and pair[0] == pair[1]:
            pair = None
        # A diff shows words of both documents: neither may belong to a hidden capture.
        for one in (earlier, later) if pair is not None else ():
            if one is not None:
                demand_body(session, one)
    found = None
    if pair is not None and earlier is not None:
        found, mode = _diff(database, home, clock, pair, (earlier, later), mode)
    is_known = known is not None and known.from_snapshot_id == (None if earlier is None else earlier.id)
    with database.read() as session:
        event = known if known is not None and is_known else _event(session, later, _verdict(now, before))
    hunks, touched = unpack(found.body) if found is not None else (None, ())
    if found is None and event.type == ChangeType.UNCHANGED:
        hunks = []
    return Compared(
        event=_with_diff(event, found),
        earlier=earlier,
        later=later,
        hunks=hunks,
        touched=touched,
        truncated=(found is not None and found.truncated) or now.broke_off or (before is not None and before.broke_off),
        mode=mode,
    )


def _diff(
    database: Database,
    home: Path,
    clock: Clock,
    documents: tuple[int, int],
    sides: tuple[Snapshot, Snapshot],
    mode: TextMode,
) -> tuple[Diff, TextMode]:
    """Return the stored or newly computed diff and the mode of its text; a diff that is not stored has the id 0."""
    version = WHOLE_VERSION if mode is TextMode.FULL else VERSION
    with database.read() as session:
        found = queries.diff(session, documents, version)
    if found is not None:
        return found, mode
    if mode is TextMode.FULL:
        a, b = (read_record(database, home, one, whole=True) for one in sides)
    else:
        with database.read() as session:
            a, b = (read_text(*queries.text_and_headings(session, one)) for one in documents)
    if a is None or b is None:
        # Only the full text needs the records; the main text is still in the database.
        return _diff(database, home, clock, documents, sides, TextMode.MAIN)
    # Do not store the diff: the number of pairs is quadratic, and a reader must not wait for the writer.
    return Diff(id=0, **queries.diff_values(documents, compare(a, b), clock.now(), version)), mode


def _earlier(session: Session, later: Snapshot, known: ChangeEvent | None, wanted: int | None) -> Snapshot | None:
    if wanted is not None:
        earlier = visible_snapshot(session, wanted)
        same_group = later.group_id is not None and later.group_id == earlier.group_id
        if later.url_hash != earlier.url_hash and not same_group:
            raise PairMismatch(
                f"snapshots {wanted} and {later.id} are not of one page; see /api/snapshots/{later.id}/timeline"
            )
        return earlier
    if known is not None:
        return None if known.from_snapshot_id is None else visible_snapshot(session, known.from_snapshot_id)
    before = queries.neighbours(session, [later.id])[later.id][0]
    if before is None:
        raise NothingToCompare(f"there is no capture of this page before {later.id}; name another with fromSnapshotId")
    return visible_snapshot(session, before)


def _capture(session: Session, row: Snapshot) -> ComparedCapture:
    return queries.captures(session, [row.id])[row.id]


def _verdict(now: ComparedCapture, before: ComparedCapture | None) -> ChangeVerdict:
    if before is None:
        return ChangeVerdict(ChangeType.NEW_PAGE, None)
    found = judge(now, before, before if before.is_answered else None)
    return (
        ChangeVerdict(ChangeType.UPDATED, before)
        if found.type == ChangeType.NEW_PAGE
        else found._replace(before=before)
    )


def _event(session: Session, later: Snapshot, verdict: ChangeVerdict) -> ChangeEvent:
    source, before = listing.source(session, later.source_id), verdict.before
    return ChangeEvent(
        id=None,
        type=verdict.type.value,
        source_code=source.code,
        source_name=source.name,
        group=listing.group_url(session, later.group_id),
        from_snapshot_id=before.id if before else None,
        to_snapshot_id=later.id,
        from_captured_at=before.captured_at if before else None,
        to_captured_at=later.captured_at,
        from_execution_id=before.execution_id if before else None,
        to_execution_id=later.execution_id,
        error=verdict.error,
    )


def _with_diff(event: ChangeEvent, found: Diff | None) -> ChangeEvent:
    if found is None:
        return event
    names = (*queries.SECTION_COUNTS, "added_lines", "removed_lines", "ratio", "truncated")
    measured = {name: getattr(found, name) for name in names}
    return replace(event, diff_id=found.id, diff_noise=found.high_noise, has_diff=found.body is not None, **measured)
