"""What a reader has open: one generation of the index and the columns that belong to it, followed as they change.

A look at the manifest costs a few microseconds. Small changes are taken over before the answer, large ones beside it:
the old view serves until the new one is built. It refuses nothing; without an index it is empty.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from holdfast import log
from holdfast.clock import Clock
from holdfast.search import segments as disk
from holdfast.search.columns import Columns, build
from holdfast.search.directory import IndexDirectory
from holdfast.search.engine import IndexBroken, IndexReader
from holdfast.search.segments import Segment, SegmentManifest
from holdfast.search.writer import read_signals

_EMPTY: Final = Segment(
    name="",
    rows=np.empty(0, disk.ROW),
    addresses=np.empty(0, disk.ADDRESS),
    documents=np.empty(0, disk.DOCUMENT),
    cleared=np.empty((0, 2), np.int64),
    strings=b"",
)
_INLINE_S: Final = 0.1
"""A view that took less to build is built again before the answer: what was just taken in is found at once."""
_REST: Final = 25.0
"""Otherwise the next build waits 25 times what the last one took (1 s a million captures): following then costs one
request in 25 some time, below what a 95th percentile sees."""

_log = log.get(room="search")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One state of the index, complete and unchanging."""

    folder: Path
    manifest: SegmentManifest
    reader: IndexReader | None
    columns: Columns
    segments: dict[str, Segment] = field(repr=False)


def open_view(folder: Path, before: View | None = None) -> View:
    """Open the state that is in force in a generation's folder, taking over from an earlier view what is the same."""
    for attempt in range(5):
        try:
            return _open_view(folder, before)
        except IndexBroken:
            # The writer may have merged a segment away between the manifest and the file: look again.
            if attempt == 4 or not _changed(folder, before):
                raise
    raise IndexBroken("the search index changes faster than it can be read; try again")


def _changed(folder: Path, before: View | None) -> bool:
    return before is None or disk.read_manifest(folder) != before.manifest


def _open_view(folder: Path, before: View | None) -> View:
    manifest = disk.read_manifest(folder)
    same = before is not None and before.folder == folder
    known = before.segments if before is not None and same else {}
    segments = {name: known.get(name) or disk.load(folder, name) for name in manifest.segments}
    columns = build([_EMPTY, *segments.values()], read_signals(folder, manifest))
    reader = before.reader if before is not None and same else None
    if reader is not None:
        reader = reader.reopened()
    elif manifest.sequence:
        reader = IndexReader(folder / "entries")
    return View(folder=folder, manifest=manifest, reader=reader, columns=columns, segments=segments)


def _nothing(_view: View) -> None:
    pass


class ReaderCache:
    """Hands out the newest view; safe to ask from several threads."""

    def __init__(self, home: Path, clock: Clock, *, prepare: Callable[[View], None] = _nothing) -> None:
        """`prepare` works out what requests will ask of a view that is built beside them, before they get it."""
        self._place, self._clock, self._prepare = IndexDirectory(home), clock, prepare
        self._lock = threading.Lock()
        self._view: View | None = None
        self._cost_s = 0.0
        self._built_at = 0.0
        self._seen: tuple[str, int, int] | None = None

    def view(self, *, wait: bool = False) -> View:
        """Return a view; with `wait` the newest one, otherwise perhaps one that is a little older."""
        mark = self._mark()
        view = self._view
        if view is not None and mark == self._seen:
            return view
        if view is None or wait or self._cost_s < _INLINE_S:
            with self._lock:
                return self._renew(mark, _nothing)
        if self._clock.monotonic() - self._built_at > _REST * self._cost_s and self._lock.acquire(blocking=False):
            threading.Thread(target=self._renew_beside, args=(mark,), name="search view", daemon=True).start()
        return view

    def _mark(self) -> tuple[str, int, int]:
        folder = self._place.current()
        try:
            found = (folder / "manifest.json").stat()
        except FileNotFoundError:
            return str(folder), 0, 0
        return str(folder), found.st_mtime_ns, found.st_ino

    def _renew(self, mark: tuple[str, int, int], prepare: Callable[[View], None]) -> View:
        if self._view is not None and mark == self._seen:
            return self._view
        started = self._clock.monotonic()
        view = open_view(self._place.current(), self._view)
        prepare(view)
        self._view, self._seen = view, mark
        self._built_at = self._clock.monotonic()
        self._cost_s = self._built_at - started
        return view

    def _renew_beside(self, mark: tuple[str, int, int]) -> None:
        try:
            self._renew(mark, self._prepare)
        except Exception as exc:  # the old view goes on serving; the next question tries again
            self._built_at = self._clock.monotonic()
            _log.warning("search.view_failed", error=str(exc))
        finally:
            self._lock.release()
