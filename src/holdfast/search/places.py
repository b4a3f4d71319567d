"""Extensible mappings: keys to places in a column, owners to their rows, places to texts.

The content at build time is stored in immutable sorted arrays. Later additions are stored in a small sorted
part beside them, which each state of the index has for itself: the cost of adding depends on the additions
since the build.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int32]
Places = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]

_NO_KEYS = np.empty(0, np.int64)
_NO_PLACES = np.empty(0, np.int32)


class Incidence:
    __slots__ = ("_has_late", "_late_owners", "_late_rows", "_rows", "_starts")

    def __init__(self, owner_of_row: Places, owners: int) -> None:
        # Stable, so that the rows of an owner stay in the order of time.
        self._rows: Rows = np.argsort(owner_of_row, kind="stable").astype(np.int32)
        self._starts: Ids = np.zeros(owners + 1, np.int64)
        np.cumsum(np.bincount(owner_of_row, minlength=owners), out=self._starts[1:])
        self._late_owners, self._late_rows = _NO_PLACES, _NO_PLACES
        self._has_late: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self._rows) + len(self._late_rows)

    @property
    def fixed(self) -> int:
        return len(self._rows)

    def grown(self, owner_of_row: Places, first: int, owners: int) -> Incidence:
        """Return a copy with other rows from `first` on, and perhaps more owners.

        `first` is the number of the next row, or of one that is not fixed.
        """
        found = object.__new__(Incidence)
        found._rows, found._starts = self._rows, self._starts
        if owners >= len(self._starts):
            found._starts = np.pad(self._starts, (0, owners + 1 - len(self._starts)), mode="edge")
        stays = self._late_rows < first
        late = np.concatenate((self._late_owners[stays], owner_of_row))
        rows = np.arange(first, first + len(owner_of_row), dtype=np.int32)
        # Two runs that are sorted already, which a stable sort only merges.
        order = np.argsort(late, kind="stable")
        found._late_owners, found._late_rows = late[order], np.concatenate((self._late_rows[stays], rows))[order]
        # A byte an owner: late rows are searched only for owners that have some.
        found._has_late = np.zeros(len(found._starts) - 1, np.bool_)
        found._has_late[late] = True
        return found

    def rows(self, owners: Places) -> tuple[Rows, npt.NDArray[np.int64]]:
        starts = self._starts[owners]
        counts = self._starts[owners + 1] - starts
        early = self._rows[_runs(starts, counts)]
        late = _NO_PLACES if self._has_late is None else np.flatnonzero(self._has_late[owners])
        if not len(late):
            return early, counts
        low = np.searchsorted(self._late_owners, owners[late], side="left")
        more = np.searchsorted(self._late_owners, owners[late], side="right") - low
        # Put in behind the others of their owners.
        at = _runs(np.cumsum(counts)[late] + np.cumsum(more) - more, more)
        found = np.empty(len(early) + len(at), np.int32)
        is_early = np.ones(len(found), np.bool_)
        is_early[at] = False
        found[is_early] = early
        found[at] = self._late_rows[_runs(low, more)]
        counts[late] += more
        return found, counts

    def of(self, owner: int, first: int, end: int) -> Rows:
        """Return the rows of one owner from `first` to below `end`, in the order of time; few or none are copied."""
        rows = self._rows[self._starts[owner] : self._starts[owner + 1]]
        if self._has_late is not None and self._has_late[owner]:
            low, high = np.searchsorted(self._late_owners, (owner, owner + 1)).tolist()
            rows = np.concatenate((rows, self._late_rows[low:high]))
        low, high = np.searchsorted(rows, (first, end)).tolist()
        return rows[low:high]


def _runs(starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    total = int(counts.sum())
    if not total:
        return _NO_PLACES
    before = np.cumsum(counts) - counts
    found = np.repeat((starts - before).astype(np.int32), counts)
    # No loop over owners: a common word has a hundred thousand documents.
    found += np.arange(total, dtype=np.int32)
    return found


class Numbering:
    """Maps SQL keys to places in a column: a table for dense keys, binary search for others."""

    __slots__ = ("_keys", "_late", "_late_places", "_table", "none")

    def __init__(self, keys: Ids, none: int | None = None) -> None:
        """`keys` are ascending and distinct; `none` is the place of missing keys, by default their number.

        If keys will be added, `none` must be larger than all their places, or be -1.
        """
        self._keys = keys
        self.none = len(keys) if none is None else none
        self._late, self._late_places = _NO_KEYS, _NO_PLACES
        self._table: Places | None = None
        # Ids of documents are dense, hashes of addresses are not: a table of 2^63 places would be asked for.
        if len(keys) and keys[0] >= 0 and keys[-1] < 8 * len(keys) + 1_000_000:
            self._table = np.full(int(keys[-1]) + 2, self.none, np.int32)
            self._table[keys] = np.arange(len(keys), dtype=np.int32)

    def __len__(self) -> int:
        return len(self._keys) + len(self._late)

    def grown(self, keys: Ids) -> Numbering:
        """Return a copy with more keys, distinct and new, at the next places."""
        found = object.__new__(Numbering)
        found._keys, found._table, found.none = self._keys, self._table, self.none
        late = np.concatenate((self._late, keys))
        places = np.arange(len(self), len(self) + len(keys), dtype=np.int32)
        order = np.argsort(late, kind="stable")
        found._late, found._late_places = late[order], np.concatenate((self._late_places, places))[order]
        return found

    def numbered(self, keys: Ids) -> tuple[Numbering, Places, npt.NDArray[np.int64]]:
        """Return a copy with the missing keys added, the place of each key, and the first occurrence of each new
        one.
        """
        distinct, first, of_key = np.unique(keys, return_index=True, return_inverse=True)
        places = self.places(distinct)
        new = np.flatnonzero(places == self.none)
        if not len(new):
            return self, places[of_key], new
        places[new] = np.arange(len(self), len(self) + len(new))
        return self.grown(distinct[new]), places[of_key], first[new]

    def places(self, keys: Ids) -> Places:
        """Return the place of each key; `none` for a missing one."""
        found = self._early(keys)
        if len(self._late):
            missing = np.flatnonzero(found == self.none)
            at = np.searchsorted(self._late, keys[missing])
            at[at == len(self._late)] = 0
            here = self._late[at] == keys[missing]
            found[missing[here]] = self._late_places[at[here]]
        return found

    def _early(self, keys: Ids) -> Places:
        count = len(self._keys)
        if self._table is not None:
            last = len(self._table) - 1
            return self._table[np.where((keys < 0) | (keys > last), last, keys)]
        if not count:
            return np.full(len(keys), self.none, np.int32)
        at = np.searchsorted(self._keys, keys)
        at[at == count] = count - 1
        return np.where(self._keys[at] == keys, at, self.none).astype(np.int32)

    def known(self, keys: Ids) -> Places:
        places = self.places(keys)
        found: Places = places[places != self.none]
        return found

    def keys(self, places: Places) -> Ids:
        found = np.empty(len(places), np.int64)
        early = places < len(self._keys)
        found[early] = self._keys[places[early]]
        found[~early] = self._late[np.argsort(self._late_places)][places[~early] - len(self._keys)]
        return found


class Strings:
    __slots__ = ("_blobs", "_lengths", "_number", "_starts")

    def __init__(self, blobs: Sequence[mmap.mmap | bytes], number: Ids, starts: Ids, lengths: Ids) -> None:
        """The arrays may have spare room behind their texts, which the owner of the blobs may fill: see `put`."""
        self._blobs, self._number, self._starts, self._lengths = blobs, number, starts, lengths

    def put(self, first: int, number: int, starts: Ids, lengths: Ids) -> None:
        """Add texts at the places from `first` on, which no state of the index uses yet."""
        end = first + len(starts)
        self._number[first:end], self._starts[first:end], self._lengths[first:end] = number, starts, lengths

    def holding(self, places: Places, needle: bytes) -> Places:
        blobs = self._blobs
        starts = self._starts[places]
        ends = starts + self._lengths[places]
        found = [
            needle in blobs[number][start:end]
            for number, start, end in zip(self._number[places].tolist(), starts.tolist(), ends.tolist(), strict=True)
        ]
        return places[np.array(found, np.bool_)] if found else places

    def at(self, place: int) -> str:
        start = int(self._starts[place])
        return self._blobs[int(self._number[place])][start : start + int(self._lengths[place])].decode()
