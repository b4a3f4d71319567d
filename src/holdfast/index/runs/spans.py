"""From when to when the captures of a file are, noted for files that were indexed before anybody noted it."""

from __future__ import annotations

from holdfast.db.hot import Hot
from holdfast.index.runs import queries
from holdfast.warc import queries as files

_AT_ONCE = 100


def note_spans(hot: Hot, *, most: int = _AT_ONCE) -> int:
    """Look into some old files and note their spans, or that they have none; return how many were noted.

    What is left waits for the next call. Nobody depends on it: a file without a span is looked into by whoever needs a
    time.
    """
    with hot.read() as tx:
        waiting = files.files_without_span(tx, limit=most)
    noted = 0
    for file_id in waiting:
        with hot.read() as tx:
            span = queries.span_of(tx, file_id)
        with hot.write() as tx:
            noted += files.fill_span(tx, file_id, span)
    return noted
