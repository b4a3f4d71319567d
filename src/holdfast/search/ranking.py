"""Scores of captures, from their text and from the signals of their page. Pure arithmetic on columns.

The text's share is its BM25 score divided by the best one, times one to four: the more words a query has, the
less weight the other parts have, which are hints of fixed size. The authority of a page is scaled to 0..1 (a
hundred in-links are 1), so its coefficient is its greatest effect.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from holdfast.search.columns import Columns, Floats
from holdfast.search.places import Places, Rows
from holdfast.search.query import ParsedQuery
from holdfast.search.segments import HAS_QUERY, SAYS_ARCHIVED, TRACKED

VERSION: Final = "v4"
"""The name of the ranking; requests that name the former `v1` to `v3` get this one."""
# Fitted together with the weights of the text (`bench/relevance`), which count titles already.
AUTHORITY: Final = 0.45
_ARCHIVED: Final = -0.6
_QUERY: Final = -0.05
_TRACKING: Final = -0.05
_FULL: Final = float(np.log(101.0))


def breadth_of(question: ParsedQuery) -> str:
    words = question.words.all_words
    if len(words) >= 3 or question.words.phrases or any(char.isdigit() for char in question.text):
        return "specific"
    return "mixed" if len(words) == 2 else "broad"


# Between two statuses; no score is as large. Small enough that 32 bits still distinguish scores.
_STATUS_STEP: Final = 16.0
# By class of status: 2xx before 3xx, then unknown, then errors.
_QUALITY: Final = np.array([0, -1, 2, 1, -1, -1], np.float32)


def static_score(columns: Columns, before: Floats | None = None) -> Floats:
    """Return for each capture the score of its page before any word is read, and the order of statuses.

    `before` belongs to columns that these extend: only the additions are computed.
    """
    first = 0 if before is None else len(before)
    url, doc = columns.url[first:], columns.doc[first:]
    # Of all addresses first, where there are many captures of each.
    places = np.arange(len(columns.url_flags), dtype=np.int32) if before is None else url
    by_address = np.zeros(len(places), np.float32)
    for part in _address_parts(columns, places).values():
        by_address += part
    by_row = (by_address[url] if before is None else by_address) + _archived(columns, doc)
    # The class of status outweighs every score: an error page never comes before a page.
    by_row += (_QUALITY * np.float32(_STATUS_STEP))[columns.profiles["status"]][columns.profile[first:]]
    return by_row if before is None else np.concatenate((before, by_row))


def _address_parts(columns: Columns, places: Places) -> dict[str, Floats]:
    flags = columns.url_flags[places]
    return {
        "queryPenalty": ((flags & HAS_QUERY) != 0) * np.float32(_QUERY),
        "trackingPenalty": ((flags & TRACKED) != 0) * np.float32(_TRACKING),
        "authorityBoost": authority(columns, places) * np.float32(AUTHORITY),
    }


def authority(columns: Columns, places: Places) -> Floats:
    # By logarithm: the hundredth link says less than the first.
    return np.minimum(np.log1p(columns.url_inlinks[places]) / np.float32(_FULL), 1).astype(np.float32)


def _archived(columns: Columns, places: Places) -> Floats:
    found: Floats = ((columns.doc_flags[places] & SAYS_ARCHIVED) != 0) * np.float32(_ARCHIVED)
    return found


def quality(columns: Columns, rows: Rows) -> Floats:
    found: Floats = _QUALITY[columns.profiles["status"]][columns.profile[rows]]
    return found


def parts(columns: Columns, row: int, text: float) -> dict[str, float]:
    found = _address_parts(columns, columns.url[[row]]) | {"archivedPenalty": _archived(columns, columns.doc[[row]])}
    return {"rankText": text} | {name: float(part[0]) for name, part in found.items()}
