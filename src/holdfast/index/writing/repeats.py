"""Record ids that a file uses for different bodies: ids are to be unique, and who refers to one may mean another."""

from __future__ import annotations

from holdfast.db.hot import Hot
from holdfast.index.capture import Capture
from holdfast.index.writing import queries
from holdfast.index.writing.late import SeenKeys
from holdfast.warc.ids import ORDINALS

_MOST = 1000


class RepeatedIds:
    """Notes ids that come a second time, in two megabytes whatever the size of the file; the rows then decide."""

    def __init__(self) -> None:
        self._seen = SeenKeys(), SeenKeys()
        self._suspects: set[str] = set()

    def add(self, capture: Capture) -> None:
        """Note the id of one capture."""
        one = capture.record_id
        if one is None or len(self._suspects) >= _MOST:
            return
        # Two looks: of a hundred thousand ids one alone suspects every hundredth, both together hardly any.
        keys = one, f"{one} again"
        if all(key in seen for key, seen in zip(keys, self._seen, strict=True)):
            self._suspects.add(one)
        for key, seen in zip(keys, self._seen, strict=True):
            seen.add(key)

    def confirmed(self, hot: Hot, warc_file_id: int) -> list[tuple[str, int]]:
        """Return the ids that stand for different bodies in this file, with the place of the first of each."""
        if not self._suspects:
            return []
        first = warc_file_id * ORDINALS
        with hot.read() as tx:
            return queries.ambiguous_ids(tx, sorted(self._suspects), first_id=first, last_id=first + ORDINALS - 1)
