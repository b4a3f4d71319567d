"""Cached views of the index: one generation, its columns, and results computed on them.

Reading the manifest costs a few microseconds. While a view is cheap to build, changes are applied before the
response; otherwise in the background, and the old view serves until the new one is built, also while a deleted
index is rebuilt. If there is no index at the start, the view is empty. Cached results can be recomputed and are
dropped with their view; each cache has a size limit for any load (decision 0028).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import field
from itertools import chain
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache
from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.failpoints import reach
from holdfast.search import counting, queries, ranking
from holdfast.search import segments as disk
from holdfast.search.additions import added_segment
from holdfast.search.columns import Columns, Floats, build
from holdfast.search.conditions import HostNames
from holdfast.search.counting import Gate
from holdfast.search.directory import IndexDirectory, IndexMark
from holdfast.search.engine import IndexBroken, IndexReader
from holdfast.search.growth import grow
from holdfast.search.segments import Segment, SegmentManifest
from holdfast.search.writer import read_signals
from holdfast.values import dataclass
from holdfast.withdrawals.visibility import Mark, originals_hidden, stand_ins, visibility_mark

_EMPTY: Final = Segment(
    name="",
    rows=np.empty(0, disk.ROW),
    addresses=np.empty(0, disk.ADDRESS),
    documents=np.empty(0, disk.DOCUMENT),
    cleared=np.empty((0, 2), np.int64),
    strings=b"",
)
# Up to this many captures a new view is built before the answer: new captures are found at once. Building
# takes 0.1 s then. The time itself does not decide: a busy machine would answer from an old view.
_INLINE_ROWS: Final = 100_000
# Otherwise the next one waits 25 times what the last one took (1 s a million captures where columns are built, some
# milliseconds where they grow, and the counts beside): following then costs one request in 25 some time, below what a
# 95th percentile sees.
_REST: Final = 25.0

_log = log.get(room="search")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    directory: IndexDirectory = field(repr=False)
    folder: Path
    manifest: SegmentManifest
    reader: IndexReader | None
    columns: Columns
    segments: dict[str, Segment] = field(repr=False)
    is_grown: bool = False
    """True if it reuses the columns of the previous view, and only adds to them."""


def open_view(directory: IndexDirectory, before: View | None = None) -> View:
    """Open the current state, reusing equal parts of an earlier view; an empty view if there is no index.

    Raise IndexBroken if it is unreadable, or is gone although a view of it was open.
    """
    for _ in range(5):
        mark = directory.mark()
        if mark is None:
            if before is not None and before.manifest.sequence:
                raise IndexBroken("the search index is gone; the next index run, worker or search command rebuilds it")
            return _no_view(directory)
        try:
            view = _open_view(directory, mark.folder, before)
        except IndexBroken:
            # The writer may have merged a segment away between the manifest and the file, or put another index in
            # force and removed this one: look again.
            if directory.mark() == mark:
                raise
            continue
        # Files of a generation are deleted after its name changes: while it is current, the files opened were complete.
        after = directory.mark()
        if after is not None and after.folder == mark.folder:
            return view
    raise IndexBroken("the search index changes faster than it can be read; try again")


def _open_view(directory: IndexDirectory, folder: Path, before: View | None) -> View:
    manifest = disk.read_manifest(folder)
    reach("search.opening", "manifest")
    if not manifest.sequence:
        raise IndexBroken("the search index is gone; try again")
    # The name of a generation never comes again.
    same = before if before is not None and before.folder == folder else None
    known = same.segments if same is not None else {}
    # Segments never change: those of the view before are mapped already.
    segments = {name: known.get(name) or disk.load(folder, name) for name in manifest.segments}
    # Before columns are built, which takes seconds: a broken index must not cost them at every request.
    entries = disk.entries_of(folder)
    if entries is None:
        raise IndexBroken(f"the search index in {folder} is not whole; run: holdfast search-index rebuild")
    grown = None if same is None else _grown(same, manifest, list(segments.values()))
    columns = build([_EMPTY, *segments.values()], read_signals(folder, manifest)) if grown is None else grown
    reach("search.opening", "columns")
    reader = same.reader.reopened() if same is not None and same.reader is not None else IndexReader(entries)
    return View(
        directory=directory,
        folder=folder,
        manifest=manifest,
        reader=reader,
        columns=columns,
        segments=segments,
        is_grown=grown is not None,
    )


def _grown(before: View, manifest: SegmentManifest, segments: list[Segment]) -> Columns | None:
    if manifest.signals != before.manifest.signals:
        return None
    added = added_segment(before.columns, list(before.segments.values()), segments)
    return None if added is None else grow(before.columns, added)


def _no_view(directory: IndexDirectory) -> View:
    folder, manifest = directory.current(), SegmentManifest()
    columns = build([_EMPTY], read_signals(folder, manifest))
    return View(directory=directory, folder=folder, manifest=manifest, reader=None, columns=columns, segments={})


def _nothing(_view: View) -> None:
    pass


class ReaderCache:
    """Provides the newest view. Thread-safe."""

    def __init__(self, home: Path, clock: Clock, *, prepare: Callable[[View], None] = _nothing) -> None:
        """`prepare` precomputes data for requests on a view built in the background, before requests use it."""
        self._directory, self._clock, self._prepare = IndexDirectory(home), clock, prepare
        self._lock = threading.Lock()
        # Replaced together: a view must not be taken for that of a newer mark.
        self._newest: tuple[View | None, IndexMark | None] = None, None
        self._cost_s = 0.0
        self._built_at = 0.0

    def view(self, *, wait: bool = False) -> View:
        """Return a view: with `wait` the newest one, otherwise possibly a slightly older one."""
        view, seen = self._newest
        mark = self._mark(view)
        if view is not None and mark in (None, seen):
            return view
        if view is None or wait or len(view.columns) <= _INLINE_ROWS:
            with self._lock:
                return self._renew(_nothing)
        # The lock is taken here and released by the thread: a second request must not start a second build.
        if self._clock.monotonic() - self._built_at > _REST * self._cost_s and self._lock.acquire(blocking=False):
            try:
                threading.Thread(target=self._renew_beside, name="search view", daemon=True).start()
            except RuntimeError as exc:
                # The system has no thread left: the old view serves, and a later search tries again.
                self._lock.release()
                _log.warning("search.view_failed", error=str(exc))
        return view

    def _mark(self, view: View | None) -> IndexMark | None:
        """Return the mark of the index; None without one: the open view then serves until an index exists again."""
        try:
            return self._directory.mark()
        except IndexBroken:
            if view is None or not view.manifest.sequence:
                raise
            return None

    def is_newest(self, view: View) -> bool:
        return view is self._newest[0]

    def _renew(self, prepare: Callable[[View], None]) -> View:
        # Read under the lock, and before the view is opened: another thread may have renewed it while this one waited,
        # and if the index moves on meanwhile, the next request looks again.
        before, seen = self._newest
        mark = self._mark(before)
        if before is not None and mark in (None, seen):
            return before
        started = self._clock.monotonic()
        view = open_view(self._directory, before)
        prepare(view)
        self._newest = view, mark
        self._built_at = self._clock.monotonic()
        self._cost_s = self._built_at - started
        return view

    def _renew_beside(self) -> None:
        try:
            self._renew(self._prepare)
        # The old view goes on serving; the next question tries again.
        except Exception as exc:
            self._built_at = self._clock.monotonic()
            _log.warning("search.view_failed", error=str(exc))
        finally:
            self._lock.release()


# Rows that kept results may hold altogether: some 40 MB.
_ROWS: Final = 2_000_000
# Rows that a kept result counts for at least: one that found nothing takes memory too, and there is no end of them.
_LEAST_ROWS: Final = 1_000
# Of marks that say which documents each source has: a byte a document and source.
_MARKED_BYTES: Final = 64_000_000

# Gates are kept for this many kinds of viewers at a time: a byte a row.
_GATES: Final = 4
NamedReader = tuple[IndexReader | None, tuple[int, ...]]
"""A reader without link texts that are hidden but still in the index, and the pending changes that hide them."""
# Counts by month that are kept, one for each set of filters: a few kilobytes each.
_VOLUMES: Final = 64

Counts = npt.NDArray[np.int64]


class Sized(Protocol):
    @property
    def size(self) -> int: ...


Kept = TypeVar("Kept", bound=Sized)
Value = TypeVar("Value")


def _weight(kept: Sized) -> int:
    return max(_LEAST_ROWS, kept.size)


def _bytes(marks: npt.NDArray[np.bool_]) -> int:
    return marks.nbytes


class SharedCache(Generic[Value]):
    """The last used values. Thread-safe: each is computed once, and other threads wait for it."""

    def __init__(self, most: int, weight: Callable[[Value], int] | None = None) -> None:
        self._lock = threading.Lock()
        self._values: LRUCache[Hashable, Value] = LRUCache(most, weight)
        self._running: dict[Hashable, Future[Value]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def known(self, key: Hashable = None) -> Value | None:
        with self._lock:
            return self._values.get(key)

    def get(self, work: Callable[[], Value], key: Hashable = None) -> Value:
        """Return the value of a key; raise the error of the work to all who wait for it."""
        with self._lock:
            known, others = self._values.get(key), self._running.get(key)
            if known is not None:
                return known
            if others is None:
                own = self._running[key] = Future[Value]()
        if others is not None:
            return others.result()
        try:
            # Outside the lock: this takes up to a second, and other keys must not wait for it.
            found = work()
            with self._lock:
                self._values[key] = found
            own.set_result(found)
        except BaseException as exc:
            own.set_exception(exc)
            raise
        finally:
            with self._lock:
                del self._running[key]
        return found


_RowByRow = tuple[Gate | None, counting.Owned | None, Floats | None]
"""Gate, owned rows and worth of pages, as far as they are known."""


class ResultCache(Generic[Kept]):
    """Results computed on one view. Thread-safe.

    Data per row are reused from an earlier view if this one extends it.
    """

    def __init__(self, view: View, before: ResultCache[Kept] | None = None) -> None:
        self.view = view
        self._older: _RowByRow = None, None, None
        if before is not None and view.columns.grew_out_of(before.view.columns):
            self._older = before._row_by_row()
        rows, documents = len(view.columns), view.columns.documents.none + 1
        self._static_score = SharedCache[Floats](1)
        self._own_gate = SharedCache[Gate](1)
        self._owned = SharedCache[counting.Owned](1)
        self._hosts = SharedCache[HostNames](1)
        self._documents = SharedCache[npt.NDArray[np.bool_]](max(_MARKED_BYTES, documents), _bytes)
        self._gates = SharedCache[Gate](_GATES)
        self._named: LRUCache[Mark, NamedReader] = LRUCache(_GATES)
        self._lock, self._naming = threading.Lock(), threading.Lock()
        self._volumes = SharedCache[tuple[Counts, bool]](_VOLUMES)
        # The count of everything, as captures and as pages, is always worth keeping.
        self._results = SharedCache[Kept](max(_ROWS, 2 * max(_LEAST_ROWS, rows)), _weight)

    def _row_by_row(self) -> _RowByRow:
        gate, owned, worth = self._own_gate.known(), self._owned.known(), self._static_score.known()
        older = self._older
        return (
            older[0] if gate is None else gate,
            older[1] if owned is None else owned,
            older[2] if worth is None else worth,
        )

    def static_score(self) -> Floats:
        return self._static_score.get(lambda: ranking.static_score(self.view.columns, self._older[2]))

    def documents_of(self, source: int) -> npt.NDArray[np.bool_]:
        return self._documents.get(lambda: counting.documents_of(self.view.columns, source), source)

    def owned(self) -> counting.Owned:
        return self._owned.get(lambda: counting.owned_rows(self.view.columns, self._older[1]))

    def hosts(self) -> HostNames:
        """Return the hosts by name; computed once for each state of the index, for the first `site:`."""
        return self._hosts.get(lambda: HostNames(self.view.columns))

    @property
    def knows_hosts(self) -> bool:
        return self._hosts.known() is not None

    def volume(self, key: Hashable, work: Callable[[], tuple[Counts, bool]]) -> tuple[Counts, bool]:
        """Return the number of captures in each month under some filters, and True if these are all; computed once."""
        return self._volumes.get(work, key)

    def known_gate(self, mark: Mark) -> Gate | None:
        return self._gates.known(mark)

    def known_reader(self, mark: Mark) -> NamedReader | None:
        with self._lock:
            return self._named.get(mark)

    def named_reader(self, session: Session, mark: Mark) -> NamedReader:
        """Return the reader that finds no page by hidden link texts, and the pending changes that hide them."""
        # A large source has many link texts: one request reads them, and the others wait.
        with self._naming:
            known = self.known_reader(mark)
            if known is None or not set(known[1]) <= queries.waiting_changes(session):
                known = self._new_reader(session, known)
                with self._lock:
                    self._named[mark] = known
            return known

    def _new_reader(self, session: Session, known: NamedReader | None) -> NamedReader:
        view, takedowns = self.view, queries.waiting_takedowns(session)
        reader, columns = view.reader, view.columns
        if reader is None:
            return None, tuple(sorted(takedowns))
        try:
            # After the changes were read: the files opened now have no link texts of changes that were drained.
            reader = reader.reopened()
            is_current = view.directory.current() == view.folder
        except IndexBroken:
            is_current = False
        if not is_current:
            # After a rebuild, changes are drained into the new files, and another view follows. The old files may have
            # link texts that were hidden since this view was opened: until then no page is found by link texts.
            return known or (reader.without_names(), ())
        if takedowns:
            groups = columns.groups.known(np.array(sorted(chain.from_iterable(takedowns.values())), np.int64))
            reader = reader.without_names(columns.addresses.keys(columns.of_group.rows(groups)[0]))
        return reader, tuple(sorted(takedowns))

    def gate(self, session: Session) -> tuple[Mark, Gate]:
        """Return the flags of each row for the viewer, with a mark that changes when they do."""
        mark = visibility_mark(session)
        return mark, self._gates.get(lambda: self._new_gate(session, mark), mark)

    def _new_gate(self, session: Session, mark: Mark) -> Gate:
        columns = self.view.columns
        hidden = columns.rows_of_ids(np.array(queries.withdrawn_ids(session), np.int64))
        firsts = columns.rows_of_ids(np.array(stand_ins(session), np.int64))
        if mark.hidden:
            own = columns.rows_of_sources(mark.hidden)
            # A revisit of another source may show a body of theirs.
            bodies = originals_hidden(session, columns.ids[counting.beside(columns, own)].tolist())
            hidden = np.unique(np.concatenate((hidden, own, columns.rows_of_ids(np.array(sorted(bodies), np.int64)))))
        own_gate = self._own_gate.get(lambda: counting.own_gates(columns, self._older[0]))
        return counting.gates(columns, hidden, firsts, own_gate)

    def result(self, key: Hashable, work: Callable[[], Kept]) -> Kept:
        """Return the cached result of this work, or compute it; the least recently used results are evicted."""
        return self._results.get(work, key)

    @property
    def kept(self) -> int:
        return len(self._results)
