"""Any two captures of one page held against each other. Reading stores nothing: there are as many pairs as captures
squared, and a reader does not wait for a writer.

The diffs of neighbours are made and kept by `changes.compute`; others are made when they are asked for, in work that
is bounded by counting it (`changes.alignment`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TypedDict

from sqlalchemy.orm import Session

from holdfast.changes import listing, queries
from holdfast.changes.compare import VERSION, WHOLE_VERSION, ComparableText, Hunk, compare, read_text
from holdfast.changes.listing import ListedChange
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
from holdfast.warc.reader import DamagedWarc
from holdfast.withdrawals.visibility import visible_snapshot


class TextOptions(TypedDict, total=False):
    """Which text of an HTML page is compared: its main content without any of them."""

    whole: bool
    """All that the page shows."""
    template: SiteTemplate
    """Where the pages of its source have their content."""


def read_record(database: Database, home: Path, found: Snapshot, options: TextOptions) -> ComparableText | None:
    """Return the lines of a stored record; None if it cannot be read any more, or has no text."""
    try:
        # The session ends before the parser begins: that may take seconds.
        with database.read() as session, open_stored(session, home, found) as stored:
            body = stored.content(MAX_PARSED_BYTES)
            charset = stored.head.charset if stored.head is not None else None
    except (NotFound, DamagedWarc, OSError):
        return None
    return read_lines(body, found.media_type, charset, found.url, options)


def read_lines(
    body: bytes, media_type: str | None, charset: str | None, url: str, options: TextOptions
) -> ComparableText | None:
    """Parse a body as HTML, text or PDF, whichever it is; None if it is none of them, or its parser failed."""
    kind = kind_of(body, media_type)
    if kind is DocumentKind.OTHER:
        return None
    document = parse_safely(body, kind=kind.value, media_type=media_type, charset=charset, url=url, **options)
    return read_text(document.text, "\n".join(document.headings)) if document.text or not document.problems else None


class PairMismatch(Invalid):
    """These two captures are not of one page."""

    code = "pair_mismatch"


class NothingToCompare(NotFound):
    """This capture has none before it."""

    code = "nothing_to_compare"


class TextMode(StrEnum):
    """Which text of a page is compared."""

    MAIN = "main"
    """Its content, as the index keeps it."""
    FULL = "full"
    """All that it shows, with what stands around the content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two captures and what differs between them."""

    event: ListedChange
    earlier: Snapshot | None
    """None for the first capture of a page."""
    later: Snapshot
    hunks: tuple[Hunk, ...] | None
    """None if the two cannot be compared as text."""
    touched: tuple[str, ...] = ()
    truncated: bool = False
    mode: TextMode
    """The text that was compared."""


class WantedComparison(NamedTuple):
    """What is to be compared: a capture with an earlier one, or with the one before it."""

    later: int
    earlier: int | None = None
    mode: TextMode = TextMode.MAIN


def compare_captures(database: Database, home: Path, clock: Clock, wanted: WantedComparison) -> Compared:
    """Return what differs between two captures of a page.

    SnapshotNotFound, PairMismatch, or NothingToCompare if nothing is known of what was before. Where a record cannot be
    read for the full text, the main text is compared, and `mode` says so.
    """
    with database.read() as session:
        later = visible_snapshot(session, wanted.later)
        known = listing.event_at(session, wanted.later)
        earlier = _earlier(session, later, known, wanted.earlier)
        now, before = _capture(session, later), None if earlier is None else _capture(session, earlier)
        pair = None if before is None else comparable(before, now)
        # The same text under two bodies: there is nothing to compare.
        if pair is not None and pair[0] == pair[1]:
            pair = None
        # A diff shows the words of both: none of them may be those of a capture that is hidden.
        for one in (earlier, later) if pair is not None else ():
            if one is not None:
                demand_body(session, one)
    found, mode = None, wanted.mode
    if pair is not None and earlier is not None:
        found, mode = _diff(database, home, clock, _Two(pair, earlier, later), wanted.mode)
    is_known = known is not None and known.from_snapshot_id == (None if earlier is None else earlier.id)
    with database.read() as session:
        event = known if known is not None and is_known else _event(session, later, _verdict(now, before))
    hunks, touched = unpack(found.body) if found is not None else (None, ())
    if found is None and event.type == ChangeType.UNCHANGED:
        hunks = ()
    return Compared(
        event=_with_diff(event, found),
        earlier=earlier,
        later=later,
        hunks=hunks,
        touched=touched,
        truncated=(found is not None and found.truncated) or now.broke_off or (before is not None and before.broke_off),
        mode=mode,
    )


class _Two(NamedTuple):
    """Two captures whose text can be compared."""

    documents: tuple[int, int]
    earlier: Snapshot
    later: Snapshot


def _diff(database: Database, home: Path, clock: Clock, two: _Two, mode: TextMode) -> tuple[Diff, TextMode]:
    """Return the diff, as it is kept or made now, and of which text it is; one that is not kept has the id 0."""
    version = WHOLE_VERSION if mode is TextMode.FULL else VERSION
    with database.read() as session:
        found = queries.diff(session, two.documents, version)
    if found is not None:
        return found, mode
    a, b = _wholes(database, home, two) if mode is TextMode.FULL else _mains(database, two)
    if a is None or b is None:
        # The records are read for the full text only; the main text is in the database and still there.
        return _diff(database, home, clock, two, TextMode.MAIN)
    # Not stored: there are as many pairs as captures squared, and a reader must not wait for the writer.
    return Diff(id=0, **queries.diff_values(two.documents, compare(a, b), clock.now(), version)), mode


def _mains(database: Database, two: _Two) -> list[ComparableText]:
    with database.read() as session:
        return [read_text(*queries.text_and_headings(session, one)) for one in two.documents]


def _wholes(database: Database, home: Path, two: _Two) -> list[ComparableText | None]:
    return [read_record(database, home, one, {"whole": True}) for one in (two.earlier, two.later)]


def _earlier(session: Session, later: Snapshot, known: ListedChange | None, wanted: int | None) -> Snapshot | None:
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
    before = queries.neighbours(session, [later.id])[later.id].before
    if before is None:
        raise NothingToCompare(f"there is no capture of this page before {later.id}; name another with fromSnapshotId")
    return visible_snapshot(session, before)


def _capture(session: Session, row: Snapshot) -> ComparedCapture:
    return queries.captures(session, [row.id])[row.id]


def _verdict(now: ComparedCapture, before: ComparedCapture | None) -> ChangeVerdict:
    """Return what to say of two captures that need not be neighbours."""
    if before is None:
        return ChangeVerdict(ChangeType.NEW_PAGE, None)
    found = judge(now, before, before if before.is_answered else None)
    return (
        ChangeVerdict(ChangeType.UPDATED, before)
        if found.type == ChangeType.NEW_PAGE
        else found._replace(before=before)
    )


def _event(session: Session, later: Snapshot, verdict: ChangeVerdict) -> ListedChange:
    """Return an event for a pair that is not in the table."""
    source, before = listing.source(session, later.source_id), verdict.before
    return ListedChange(
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
        diff_id=None,
        added_sections=None,
        removed_sections=None,
        changed_sections=None,
        added_lines=None,
        removed_lines=None,
        ratio=None,
        diff_noise=None,
        truncated=None,
        has_diff=None,
        version=None,
        error=verdict.error,
        computed_at=None,
    )


def _with_diff(event: ListedChange, found: Diff | None) -> ListedChange:
    if found is None:
        return event
    return event._replace(
        diff_id=found.id,
        added_sections=found.added_sections,
        removed_sections=found.removed_sections,
        changed_sections=found.changed_sections,
        added_lines=found.added_lines,
        removed_lines=found.removed_lines,
        ratio=found.ratio,
        diff_noise=found.high_noise,
        truncated=found.truncated,
        has_diff=found.body is not None,
        version=found.version,
    )
