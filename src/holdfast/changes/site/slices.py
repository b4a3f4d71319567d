"""A whole-site comparison as a walk: first the pages of the later execution, then those that only the earlier one has.

Each slice reads a bounded number of rows and holds no transaction when it is done; the cursor says where to go on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple, Self

from sqlalchemy.orm import Session

from holdfast.changes.site import queries
from holdfast.changes.site.queries import Held
from holdfast.db.engine import Database
from holdfast.errors import Invalid

SLICE = 500


class SourcesDiffer(Invalid):
    """These two executions are of different sources: nothing became of one in the other."""

    code = "sources_differ"


class SiteKind(StrEnum):
    """What became of a page from one execution to the other."""

    NEW = "new"
    GONE = "gone"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    MOVED = "moved"
    """The same body, at another address."""
    ERROR = "error"
    """It was there, and could not be captured again."""


class SiteEntry(NamedTuple):
    """One page."""

    kind: SiteKind
    url: str
    """Where it is; where it was, if it is gone."""
    from_url: str | None = None
    """Where it was, if it moved."""
    from_snapshot_id: int | None = None
    to_snapshot_id: int | None = None


class Cursor(NamedTuple):
    """How far a walk is: which execution's captures are gone through, and behind which."""

    is_later: bool = True
    after: int = -1

    def __str__(self) -> str:
        return f"{'to' if self.is_later else 'from'}-{self.after}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the cursor that was printed so; Invalid if it is none."""
        match = re.fullmatch(r"(to|from)-(-1|[0-9]{1,18})", text)
        if not match:
            raise Invalid("this is no cursor of ours; leave it out to begin at the start")
        return cls(match[1] == "to", int(match[2]))


class SiteSlice(NamedTuple):
    """A stretch of the walk."""

    entries: tuple[SiteEntry, ...]
    following: Cursor | None
    """Where to go on; None at the end."""


def walk_site(database: Database, earlier: int, later: int) -> Iterator[SiteEntry]:
    """Yield what became of every page; NotFound, SourcesDiffer or Invalid if the two cannot be compared."""
    cursor: Cursor | None = Cursor()
    while cursor is not None:
        with database.read() as session:
            found = site_slice(session, earlier, later, cursor)
        yield from found.entries
        cursor = found.following


def site_slice(session: Session, earlier: int, later: int, cursor: Cursor, *, limit: int = SLICE) -> SiteSlice:
    """Return what became of the next pages; NotFound if an execution is not here, Invalid if both are one.

    SourcesDiffer if they are of different sources.
    """
    sources = {queries.source_of(session, execution_id) for execution_id in (earlier, later)}
    if earlier == later:
        raise Invalid("name two executions; they are listed by: holdfast status")
    if len(sources) > 1:
        raise SourcesDiffer(
            f"executions {earlier} and {later} are of different sources; name two of one, as holdfast status lists them"
        )
    holdings = queries.holdings_of(session, (earlier, later))
    rows = queries.stretch(session, later if cursor.is_later else earlier, after=cursor.after, limit=limit)
    both = queries.of_pages(session, holdings, {held.url_hash for held in rows}) if rows else {}
    walk = _Walk(session, (earlier, later), holdings, both)
    entries = [entry for held in rows if (entry := (walk.later if cursor.is_later else walk.earlier)(held))]
    if len(rows) == limit:
        return SiteSlice(tuple(entries), Cursor(cursor.is_later, rows[-1].id))
    return SiteSlice(tuple(entries), Cursor(is_later=False) if cursor.is_later else None)


class _Walk:
    """One slice at work: what both executions hold of its pages."""

    def __init__(
        self,
        session: Session,
        executions: tuple[int, int],
        holdings: queries.Holdings,
        both: dict[tuple[int, int], Held],
    ) -> None:
        self._session, self._holdings, self._both = session, holdings, both
        self._a, self._b = executions
        self._moves: dict[int, list[tuple[Held, Held]]] = {}

    def later(self, held: Held) -> SiteEntry | None:
        """Say what became of a page that the later execution has; None if another capture speaks for it."""
        before, now = self._both.get((self._a, held.url_hash)), self._both[self._b, held.url_hash]
        if now.id != held.id:
            return None
        was_there = before is not None and before.is_ok
        if not now.is_ok:
            if before is None or not was_there:
                return None
            if now.has_failed:
                return SiteEntry(SiteKind.ERROR, now.url, None, before.id, now.id)
            return None if self._moved_away(before) else SiteEntry(SiteKind.GONE, before.url, None, before.id, now.id)
        if before is None or not was_there:
            origin = next((a for a, b in self._moves_of(now) if b.url_hash == now.url_hash), None)
            if origin is None:
                return SiteEntry(SiteKind.NEW, now.url, None, None, now.id)
            return SiteEntry(SiteKind.MOVED, now.url, origin.url, origin.id, now.id)
        same = before.body_hash is not None and before.body_hash == now.body_hash
        return SiteEntry(SiteKind.UNCHANGED if same else SiteKind.CHANGED, now.url, None, before.id, now.id)

    def earlier(self, held: Held) -> SiteEntry | None:
        """Say that a page which only the earlier execution has is gone; None if it moved, or was told of before."""
        if (self._b, held.url_hash) in self._both or self._both[self._a, held.url_hash].id != held.id:
            return None
        if not held.is_ok or self._moved_away(held):
            return None
        return SiteEntry(SiteKind.GONE, held.url, None, held.id, None)

    def _moved_away(self, before: Held) -> bool:
        return any(a.url_hash == before.url_hash for a, _ in self._moves_of(before))

    def _moves_of(self, held: Held) -> list[tuple[Held, Held]]:
        """Return from where to where this body moved: its lost addresses and its new ones, paired in order."""
        if held.document_id is None:
            return []
        known = self._moves.get(held.document_id)
        if known is None:
            known = self._moves[held.document_id] = self._paired(held.document_id)
        return known

    def _paired(self, document_id: int) -> list[tuple[Held, Held]]:
        found = queries.twins(self._session, self._holdings, document_id)
        both = queries.of_pages(self._session, self._holdings, {twin.url_hash for twin in found})

        def only_in(here: int, there: int) -> list[Held]:
            pages = [held for (execution, _), held in both.items() if execution == here and held.is_ok]
            alone = [held for held in pages if not ((other := both.get((there, held.url_hash))) and other.is_ok)]
            return sorted((held for held in alone if held.document_id == document_id), key=lambda held: held.id)

        return list(zip(only_in(self._a, self._b), only_in(self._b, self._a), strict=False))


def count(entries: Iterator[SiteEntry], counts: Counter[str]) -> Iterator[SiteEntry]:
    """Pass entries on, and count them by kind."""
    for entry in entries:
        counts[entry.kind.value] += 1
        yield entry
