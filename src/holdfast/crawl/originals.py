"""The originals of pages that were captured before: which can be read, and what they said.

A 304 is worth asking for only if the page's original can be read: its links lead on where the new answer has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from holdfast.db.hot import Hot
from holdfast.errors import HoldfastError, NotFound
from holdfast.types import Attempt, Original
from holdfast.warc import queries as files
from holdfast.warc.outfile import OPEN_SUFFIX
from holdfast.warc.payload import HttpHead
from holdfast.warc.reader import read_response_at
from holdfast.warc.roots import StrayFile, locate, placed


class Originals:
    """Where original records lie; paths are learned on the database's thread and used from any."""

    def __init__(self, hot: Hot, home: Path) -> None:
        self._hot, self._home = hot, home.resolve()
        self._paths: dict[int, Path | None] = {}
        self._spoiled: set[tuple[int, int]] = set()

    def learn(self, attempts: Iterable[Attempt]) -> None:
        """Look up the files of these attempts' originals; called on the database's thread."""
        unknown = {a.original.warc_file_id for a in attempts if a.original is not None} - self._paths.keys()
        if not unknown:
            return
        with self._hot.read() as tx:
            for file_id in unknown:
                self._paths[file_id] = self._placed(files.path_of(tx, file_id))

    def _placed(self, stored: str | None) -> Path | None:
        """Return where a file lies, by the name that it has once it is sealed; None if it is not there."""
        if (path := placed(self._home, stored)) is not None or stored is None:
            return path
        try:
            path = locate(self._home, stored)
            return path if path.with_name(f"{path.name}{OPEN_SUFFIX}").is_file() else None
        except (StrayFile, OSError):
            return None

    def readable(self, attempt: Attempt) -> bool:
        """Return whether this attempt's original can be read, as far as we know."""
        original = attempt.original
        if original is None or self._paths.get(original.warc_file_id) is None:
            return False
        return not self._spoiled or (original.warc_file_id, original.offset) not in self._spoiled

    def load(self, original: Original) -> tuple[HttpHead, bytes] | None:
        """Return an original's head and transfer-decoded body; None if it cannot be read after all, now and later."""
        path = self._paths.get(original.warc_file_id)
        if path is None:
            return None
        # A file that a process of this crawl still writes has its other name; it may be sealed between two looks.
        for place in (path, path.with_name(f"{path.name}{OPEN_SUFFIX}"), path):
            try:
                return read_response_at(place, original.offset)
            except NotFound:
                continue
            except (HoldfastError, OSError):
                break
        self._spoiled.add((original.warc_file_id, original.offset))
        return None
