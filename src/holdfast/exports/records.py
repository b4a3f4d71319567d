"""Which records a package holds, and where: the execution's own, and those of earlier ones that its revisits need.

A 304 is not listed: pywb would answer with it, and wabac.js with nothing. What it confirmed is listed, so a reader who
asks for that moment gets the nearest capture, which is the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.db.engine import Database
from holdfast.exports import queries
from holdfast.exports.cdxj import cdxj_line
from holdfast.exports.queries import IndexRow
from holdfast.exports.zipping import FileRange
from holdfast.warc.roots import placed

ORIGINALS = "originals"
"""The member that holds bodies which earlier executions captured."""
_ENDINGS = (".warc.gz", ".warc")


class Records:
    """The records of one package; gathers what is borrowed while the index is written."""

    def __init__(self, database: Database, home: Path, names: Mapping[int, str]) -> None:
        self._database, self._home, self._names = database, home, names
        self._paths: dict[int, Path | None] = {}
        self._places: dict[int, tuple[str, int]] = {}
        self._segments: dict[str, list[FileRange]] = {}
        self._sizes: dict[str, int] = {}

    def lines(self, batch: Sequence[IndexRow]) -> Iterator[bytes]:
        """Yield the index lines of some captures, and of what they borrow and nobody has listed yet."""
        originals = self._originals(row.original_id for row in batch if row.original_id is not None)
        for original in originals.values():
            if original.warc_file_id not in self._names and original.id not in self._places and self._borrow(original):
                name, offset = self._places[original.id]
                yield cdxj_line(original, name, offset=offset)
        for row in batch:
            if row.warc_file_id in self._names and not (row.record_type == "revisit" and row.status == 304):
                yield cdxj_line(row, self._names[row.warc_file_id])

    def borrowed(self) -> list[tuple[str, list[FileRange]]]:
        """Return the members that hold what is borrowed: their names and pieces."""
        return sorted(self._segments.items())

    def _originals(self, ids: Iterable[int]) -> dict[int, IndexRow]:
        wanted = sorted(set(ids))
        if not wanted:
            return {}
        with self._database.read() as session:
            rows = queries.originals(session, wanted)
            unknown = {row.warc_file_id for row in rows} - self._names.keys() - self._paths.keys()
            paths = queries.file_paths(session, sorted(unknown))
        for file_id in unknown:
            self._paths[file_id] = placed(self._home, paths.get(file_id))
        return {row.id: row for row in rows}

    def _borrow(self, original: IndexRow) -> bool:
        """Give a record a place in a member of its own kind; False if there is none, or its file is gone."""
        path = self._paths.get(original.warc_file_id)
        ending = next((end for end in _ENDINGS if path is not None and path.name.endswith(end)), None)
        if path is None or ending is None:
            return False
        name = f"{ORIGINALS}{ending}"
        self._places[original.id] = name, self._sizes.get(name, 0)
        self._segments.setdefault(name, []).append(FileRange(path, original.offset, original.length))
        self._sizes[name] = self._sizes.get(name, 0) + original.length
        return True
