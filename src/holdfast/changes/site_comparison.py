"""Comparison of two executions of a source, page by page, in slices of limited size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Self

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.changes.verdict import AnswerKind, answer_of
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job, Snapshot
from holdfast.errors import Invalid, NotFound, UrlRefused
from holdfast.frontier.attempts import last_attempts
from holdfast.index.queries import CaptureRange, holding_of
from holdfast.jobs.endings import DONE, Shortfall
from holdfast.jobs.kinds import FEED
from holdfast.urls import parse_seed
from holdfast.withdrawals.visibility import visible, visible_source

# Limit of captures of one document that are read to find out whether a page moved.
_MAX_TWINS = 50
# Ending reasons of runs that requested everything in scope; a tool's or import's good ending has none.
_ASKED_FOR_ALL = (None, DONE, Shortfall.TRUNCATED)


class SiteCapture(NamedTuple):
    id: int
    execution_id: int
    url: str
    url_hash: int
    captured_at: datetime
    status: int | None
    body_hash: bytes | None
    document_id: int | None
    truncated: str | None = None
    """The value of WARC-Truncated: why the stored body is short."""
    noise: str | None = None

    @property
    def is_ok(self) -> bool:
        """True if the page was found, complete, and shown by the capture."""
        return answer_of(self.status, self.truncated, self.noise) is AnswerKind.OK

    @property
    def has_failed(self) -> bool:
        """True if the capture proves nothing: it failed, was forbidden, was cut off, or shows something else."""
        return answer_of(self.status, self.truncated, self.noise) in (AnswerKind.FAILED, AnswerKind.NOISE)


_COLUMNS: tuple[Any, ...] = (
    *(Snapshot.id, Snapshot.execution_id, Snapshot.url, Snapshot.url_hash, Snapshot.captured_at, Snapshot.status),
    *(Snapshot.body_hash, Snapshot.document_id, Snapshot.truncated, Snapshot.noise),
)


def source_of(session: Session, execution_id: int) -> int:
    """Return the source id of an execution; raise NotFound if the execution is missing or not visible to the
    viewer.
    """
    query = select(Job.source_id).join(Execution, Execution.job_id == Job.id).where(Execution.id == execution_id)
    found = session.scalar(query.where(visible_source(Job.source_id)))
    if found is None:
        raise NotFound(f"there is no execution {execution_id}; see them with: holdfast status")
    return found


Holdings = Mapping[int, CaptureRange]
"""Ranges of the captures of each execution; an execution without a file is missing."""


def holdings_of(session: Session, executions: Collection[int]) -> dict[int, CaptureRange]:
    """Return the capture ranges of these executions. Reads one row per file: call it once per slice of a walk."""
    found = {execution_id: holding_of(session, execution_id) for execution_id in executions}
    return {execution_id: holding for execution_id, holding in found.items() if holding is not None}


def stretch(session: Session, execution_id: int, *, after: int, limit: int) -> list[SiteCapture]:
    rows = session.execute(
        select(*_COLUMNS)
        .where(Snapshot.execution_id == execution_id, Snapshot.is_page, Snapshot.id > after, *visible())
        .order_by(Snapshot.id)
        .limit(limit)
    )
    return [SiteCapture._make(row) for row in rows]


def of_pages(session: Session, holdings: Holdings, pages: Collection[int]) -> dict[tuple[int, int], SiteCapture]:
    """Return the last capture of each of these pages in each execution, keyed by execution and page."""
    # Read only the part of a page's history with the execution's captures.
    rows: list[SiteCapture] = []
    for holding in holdings.values():
        found = session.execute(
            select(*_COLUMNS).where(Snapshot.url_hash.in_(pages), Snapshot.is_page, *holding.clauses(), *visible())
        )
        rows += map(SiteCapture._make, found)
    last: dict[tuple[int, int], SiteCapture] = {}
    for held in sorted(rows, key=lambda held: (held.captured_at, held.id)):
        # Later captures overwrite earlier ones: an execution's last capture represents the page.
        last[held.execution_id, held.url_hash] = held
    return last


def twins(session: Session, holdings: Holdings, document_id: int) -> list[SiteCapture]:
    """Return captures of a document in these executions, by id; only the first few if it is everywhere."""
    found: list[SiteCapture] = []
    for execution_id, holding in holdings.items():
        # Snapshot ids start with the file's id: the index on documents is read only for this execution's range.
        rows = session.execute(
            select(*_COLUMNS)
            .where(
                Snapshot.document_id == document_id,
                Snapshot.id.between(holding.first_id, holding.last_id),
                Snapshot.execution_id + 0 == execution_id,
                Snapshot.is_page,
                *visible(),
            )
            .order_by(Snapshot.id)
            .limit(_MAX_TWINS)
        )
        found += map(SiteCapture._make, rows)
    return found


SLICE = 500


class SourcesDiffer(Invalid):
    """These two executions belong to different sources, so they cannot be compared."""

    code = "sources_differ"


class SiteKind(StrEnum):
    NEW = "new"
    GONE = "gone"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    MOVED = "moved"
    """The same body, at another URL."""
    ERROR = "error"
    """The page existed before; now its state is unknown: the request failed, was forbidden, or was never made."""
    WITHDRAWN = "withdrawn"
    """One of the two captures is under a takedown; no URL is given then."""


class PageDifference(NamedTuple):
    kind: str
    url: str | None = None
    """Current URL; the former one if the page is gone."""
    from_url: str | None = None
    from_snapshot_id: int | None = None
    to_snapshot_id: int | None = None


class Cursor(NamedTuple):
    is_later: bool = True
    after: int = -1

    def __str__(self) -> str:
        return f"{'to' if self.is_later else 'from'}-{self.after}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return a cursor from its text; raise Invalid for any other text."""
        match = re.fullmatch(r"(to|from)-(-1|[0-9]{1,18})", text)
        if not match:
            raise Invalid("invalid cursor; omit it to start from the beginning")
        return cls(match[1] == "to", int(match[2]))


def walk_site(database: Database, earlier: int, later: int) -> Iterator[PageDifference]:
    """Yield the change of every page; raise NotFound, SourcesDiffer or Invalid if the two cannot be compared."""
    cursor: Cursor | None = Cursor()
    while cursor is not None:
        with database.read() as session:
            entries, cursor = site_slice(session, earlier, later, cursor)
        yield from entries


def site_slice(
    session: Session, earlier: int, later: int, cursor: Cursor, *, limit: int = SLICE
) -> tuple[list[PageDifference], Cursor | None]:
    """Return the changes of the next pages, and the cursor of the next slice, None at the end.

    Raise NotFound if an execution is missing, Invalid if both are the same, SourcesDiffer if their sources differ.
    """
    sources = {source_of(session, execution_id) for execution_id in (earlier, later)}
    if earlier == later:
        raise Invalid("name two executions; they are listed by: holdfast status")
    if len(sources) > 1:
        raise SourcesDiffer(
            f"executions {earlier} and {later} are of different sources; name two of one, as holdfast status lists them"
        )
    holdings = holdings_of(session, (earlier, later))
    rows = stretch(session, later if cursor.is_later else earlier, after=cursor.after, limit=limit)
    both = of_pages(session, holdings, {held.url_hash for held in rows}) if rows else {}
    other = earlier if cursor.is_later else later
    alone = [held for held in rows if (other, held.url_hash) not in both]
    hidden = _held(session, holdings.get(other), {held.url_hash for held in alone})
    unproven = set() if cursor.is_later else _unproven(session, later, alone)
    walk = _Walk(session, (earlier, later), holdings, both, hidden=hidden, unproven=unproven)
    entries = [entry for held in rows if (entry := (walk.later if cursor.is_later else walk.earlier)(held))]
    # A full slice may have a successor; pages of the earlier execution alone come last.
    if len(rows) == limit:
        return entries, Cursor(cursor.is_later, rows[-1].id)
    return entries, Cursor(is_later=False) if cursor.is_later else None


def _held(session: Session, holding: CaptureRange | None, pages: Collection[int]) -> set[int]:
    """Return which of these pages an execution has captured, visible or not."""
    if holding is None or not pages:
        return set()
    held = select(Snapshot.url_hash).where(Snapshot.url_hash.in_(pages), Snapshot.is_page, *holding.clauses())
    return set(session.scalars(held))


def _unproven(session: Session, later: int, lost: Collection[SiteCapture]) -> set[int]:
    """Return pages that the later execution lacks without proof that they are gone.

    A page is proven gone if the execution requested everything it found and either did not find the page or was
    redirected from it.
    """
    pages = {held.url_hash for held in lost}
    # A retry continues the frontier of the previous run.
    frontier = func.coalesce(Execution.frontier_id, Execution.id)
    how = select(Execution.state, Execution.reason, Job.kind, frontier).join(Job, Job.id == Execution.job_id)
    state, reason, kind, frontier_id = session.execute(how.where(Execution.id == later)).one()
    if not asked_for_all(kind, state, reason):
        return pages
    asked = last_attempts(session, (frontier_id,), pages, _domains(lost))
    return {attempt.url_hash for attempt in asked if attempt.redirected_to is None}


def asked_for_all(kind: str, state: str, reason: str | None) -> bool:
    """Return True if a run with this ending requested everything it found; a poll of feeds never does."""
    return state == "completed" and reason in _ASKED_FOR_ALL and kind != FEED


def _domains(pages: Iterable[SiteCapture]) -> set[str]:
    found: set[str] = set()
    for held in pages:
        # URLs from another crawler's files: our frontiers contain none that we refuse.
        with suppress(UrlRefused):
            found.add(parse_seed(held.url).domain)
    return found


class _Walk:
    def __init__(
        self,
        session: Session,
        executions: tuple[int, int],
        holdings: Holdings,
        both: dict[tuple[int, int], SiteCapture],
        *,
        hidden: Collection[int],
        unproven: Collection[int],
    ) -> None:
        """`hidden` pages were captured in the other execution too, but are under a takedown there.

        The other execution could not determine the state of the `unproven` ones.
        """
        self._session, self._holdings, self._both = session, holdings, both
        self._hidden, self._unproven = hidden, unproven
        self._a, self._b = executions
        self._moves: dict[int, list[tuple[SiteCapture, SiteCapture]]] = {}

    def later(self, held: SiteCapture) -> PageDifference | None:
        """Return the change of a page that the later execution has; None if another capture represents it."""
        before, now = self._both.get((self._a, held.url_hash)), self._both[self._b, held.url_hash]
        if now.id != held.id:
            return None
        was_there = before is not None and before.is_ok
        if not now.is_ok:
            if before is None or not was_there:
                return None
            # An outage is not a removal: the page may still exist.
            if now.has_failed:
                return PageDifference(SiteKind.ERROR, now.url, None, before.id, now.id)
            return (
                None if self._moved_away(before) else PageDifference(SiteKind.GONE, before.url, None, before.id, now.id)
            )
        if before is None and held.url_hash in self._hidden:
            return PageDifference(SiteKind.WITHDRAWN)
        if before is None or not was_there:
            origin = next((a for a, b in self._moves_of(now) if b.url_hash == now.url_hash), None)
            if origin is None:
                return PageDifference(SiteKind.NEW, now.url, None, None, now.id)
            return PageDifference(SiteKind.MOVED, now.url, origin.url, origin.id, now.id)
        # Two missing bodies are not known to be equal.
        same = before.body_hash is not None and before.body_hash == now.body_hash
        return PageDifference(SiteKind.UNCHANGED if same else SiteKind.CHANGED, now.url, None, before.id, now.id)

    def earlier(self, held: SiteCapture) -> PageDifference | None:
        """Return the change of a page that only the earlier execution has: gone, or unknown.

        Return None if it moved, or was listed before.
        """
        if (self._b, held.url_hash) in self._both or self._both[self._a, held.url_hash].id != held.id:
            return None
        if held.is_ok and held.url_hash in self._hidden:
            return PageDifference(SiteKind.WITHDRAWN)
        if not held.is_ok or self._moved_away(held):
            return None
        kind = SiteKind.ERROR if held.url_hash in self._unproven else SiteKind.GONE
        return PageDifference(kind, held.url, None, held.id, None)

    def _moved_away(self, before: SiteCapture) -> bool:
        return any(a.url_hash == before.url_hash for a, _ in self._moves_of(before))

    def _moves_of(self, held: SiteCapture) -> list[tuple[SiteCapture, SiteCapture]]:
        """Return the moves of this body: its lost captures and its new ones, paired in order."""
        if held.document_id is None:
            return []
        known = self._moves.get(held.document_id)
        if known is None:
            known = self._moves[held.document_id] = self._paired(held.document_id)
        return known

    def _paired(self, document_id: int) -> list[tuple[SiteCapture, SiteCapture]]:
        found = twins(self._session, self._holdings, document_id)
        both = of_pages(self._session, self._holdings, {twin.url_hash for twin in found})

        def only_in(here: int, there: int) -> list[SiteCapture]:
            pages = [held for (execution, _), held in both.items() if execution == here and held.is_ok]
            alone = [held for held in pages if not ((other := both.get((there, held.url_hash))) and other.is_ok)]
            return sorted((held for held in alone if held.document_id == document_id), key=lambda held: held.id)

        # Pair in order: for a body at many URLs the true pairs are unknown.
        return list(zip(only_in(self._a, self._b), only_in(self._b, self._a), strict=False))


def count_kinds(differences: Iterable[PageDifference], counts: Counter[str]) -> Iterator[PageDifference]:
    for difference in differences:
        counts[difference.kind] += 1
        yield difference
