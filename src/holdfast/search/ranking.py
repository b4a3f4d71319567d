"""Scores: how well a capture answers, from its text and from what is known of its page. Pure arithmetic on columns.

The text's share is its BM25 score over the best one found, so it lies between 0 and 1 and the other parts are hints of
known size beside it. Of the coefficients v1 and v4 are flat, v2 and v3 go by the query's breadth; every signal of the
link graph is brought to 0..1 (a hundred in-links are 1), so a coefficient is the most it can do.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from holdfast.search.asked import TextWeights
from holdfast.search.columns import Columns, Floats
from holdfast.search.places import Places, Rows
from holdfast.search.query import ParsedQuery
from holdfast.search.segments import HAS_QUERY, SAYS_ARCHIVED, TRACKED

TITLE_ANY: Final = 1
TITLE_ALL: Final = 2
TITLE_PHRASE: Final = 4
TITLE_EXACT: Final = 8


class Ranking(StrEnum):
    """Which coefficients are used; the newest is the default."""

    V1 = "v1"
    V2 = "v2"
    V3 = "v3"
    V4 = "v4"


class Breadth(StrEnum):
    """How much a query asks for: one word is broad, three or more, digits or quotes are specific."""

    BROAD = "broad"
    MIXED = "mixed"
    SPECIFIC = "specific"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """What each part of a score weighs."""

    authority: float
    hubness: float = 0.0
    pagerank: float = 0.0
    depth: float
    archived: float
    query: float = -0.10
    tracking: float = -0.10
    title_all: float = 0.0
    title_any: float = 0.0
    title_phrase: float = 0.0
    title_exact: float = 0.0
    recency: float = 0.0


_V1: Final = Coefficients(authority=0.05, depth=-0.01, archived=0.0, title_phrase=0.20)
# Fitted together with the weights of the text (`bench/relevance.py`), which count titles already.
_V4: Final = Coefficients(authority=0.45, depth=0.0, archived=-0.6, query=-0.05, tracking=-0.05)
FITTED: Final = TextWeights(
    body=4.0,
    near=5.3,
    title=1.2,
    heads=0.28,
    heads_all=6.4,
    heads_equal=12.0,
    exact=1.5,
    exact_heads=1.0,
    # Not fitted: the manuals are in English, and their entries in no quotes.
    title_run=16.0,
    heads_run=16.0,
    foreign=30.0,
    whole=2.0,
    whole_heads=64.0,
    parts=48.0,
    anchors=4.0,
    anchors_all=8.0,
    anchors_equal=64.0,
    exact_anchors=2.25,
    path=3.5,
)
"""What a word is worth where it stands: fitted on one half of the entries of two manuals' indexes."""
_TABLE: Final = {
    (Ranking.V2, Breadth.BROAD): Coefficients(
        authority=0.30, hubness=0.08, pagerank=0.12, depth=-0.03, archived=-0.8, title_all=0.20, title_any=0.10
    ),
    (Ranking.V2, Breadth.MIXED): Coefficients(
        authority=0.20, depth=-0.02, archived=-0.6, title_all=0.20, title_any=0.10
    ),
    (Ranking.V2, Breadth.SPECIFIC): Coefficients(
        authority=0.05, depth=-0.01, archived=0.0, title_all=0.20, title_any=0.10
    ),
    (Ranking.V3, Breadth.BROAD): Coefficients(
        authority=0.35,
        hubness=0.10,
        pagerank=0.15,
        depth=-0.04,
        archived=-1.0,
        title_all=0.25,
        title_any=0.12,
        title_exact=0.35,
        recency=0.15,
    ),
    (Ranking.V3, Breadth.MIXED): Coefficients(
        authority=0.25,
        depth=-0.025,
        archived=-0.8,
        title_all=0.22,
        title_any=0.10,
        title_phrase=0.15,
        title_exact=0.30,
        recency=0.08,
    ),
    (Ranking.V3, Breadth.SPECIFIC): Coefficients(
        authority=0.08,
        depth=-0.015,
        archived=-0.3,
        title_all=0.20,
        title_any=0.05,
        title_phrase=0.15,
        title_exact=0.25,
    ),
}
_DAY_MICROS: Final = 86_400_000_000
# Slashes beyond this do not count: a deep page is deep.
_DEEPEST: Final = 8
_FULL: Final = float(np.log(101.0))
# A week is as fresh as it gets.
_FRESHEST: Final = float(np.log(1 + 365 / 7))


def breadth_of(question: ParsedQuery) -> Breadth:
    """Return how broad a query is."""
    words = question.words.all_words
    if len(words) >= 3 or question.words.phrases or any(char.isdigit() for char in question.text):
        return Breadth.SPECIFIC
    return Breadth.MIXED if len(words) == 2 else Breadth.BROAD


def coefficients(ranking: Ranking, breadth: Breadth) -> Coefficients:
    """Return what the parts weigh for a version and a breadth."""
    fixed = {Ranking.V1: _V1, Ranking.V4: _V4}.get(ranking)
    return _TABLE[ranking, breadth] if fixed is None else fixed


# Between two statuses; no score is as large. Small enough that a 32-bit number still tells scores apart.
_STATUS_STEP: Final = 8.0
# By class of status: 2xx before 3xx, then unknown, then errors.
_QUALITY: Final = np.array([0, -1, 2, 1, -1, -1], np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWorth:
    """What pages are worth before any word is read, under one set of coefficients."""

    weights: Coefficients
    now_micros: int
    of_month: Floats
    by_row: Floats
    """All of it and the order of statuses, added up for each capture: one look-up a result."""


def page_worth(
    columns: Columns, weights: Coefficients, *, now_micros: int, before: PageWorth | None = None
) -> PageWorth:
    """Return what all pages are worth; made once for a view and a set of coefficients.

    `before` is of the same day and of columns that these grew out of: only what was added is worked out.
    """
    first = 0 if before is None else len(before.by_row)
    now_micros = now_micros if before is None else before.now_micros
    url, doc, month = columns.url[first:], columns.doc[first:], columns.month[first:]
    # Of all addresses first, where there are many captures of each.
    places = np.arange(len(columns.url_flags), dtype=np.int32) if before is None else url
    by_address = np.zeros(len(places), np.float32)
    for part in address_parts(columns, weights, places).values():
        by_address += part
    recency = _recency(columns, weights, now_micros)
    archived = _archived(columns, weights, doc)
    by_row = (by_address[url] if before is None else by_address) + archived + recency[month]
    # The class of status outweighs every score: an error page never comes before a page.
    by_row += (_QUALITY * np.float32(_STATUS_STEP))[columns.profiles["status"]][columns.profile[first:]]
    if before is not None:
        by_row = np.concatenate((before.by_row, by_row))
    return PageWorth(weights=weights, now_micros=now_micros, of_month=recency, by_row=by_row)


def address_parts(columns: Columns, weights: Coefficients, places: Places) -> dict[str, Floats]:
    """Return what addresses at these places are worth, part by part."""
    flags = columns.url_flags[places]
    return {
        "queryPenalty": ((flags & HAS_QUERY) != 0) * np.float32(weights.query),
        "trackingPenalty": ((flags & TRACKED) != 0) * np.float32(weights.tracking),
        "depthPenalty": np.minimum(columns.url_depth[places], _DEEPEST) * np.float32(weights.depth),
        "authorityBoost": _share(columns.url_inlinks[places]) * np.float32(weights.authority),
        "hubnessBoost": _share(columns.url_outlinks[places]) * np.float32(weights.hubness),
        "pagerankBoost": _share(columns.url_pagerank[places]) * np.float32(weights.pagerank),
    }


def _archived(columns: Columns, weights: Coefficients, places: Places) -> Floats:
    found: Floats = ((columns.doc_flags[places] & SAYS_ARCHIVED) != 0) * np.float32(weights.archived)
    return found


def quality(columns: Columns, rows: Rows) -> Floats:
    """Return the place of each row's status in the order of statuses: the greater comes first."""
    found: Floats = _QUALITY[columns.profiles["status"]][columns.profile[rows]]
    return found


def _share(signal: Floats) -> Floats:
    # By logarithm: the hundredth link says less than the first.
    return np.minimum(np.log1p(signal) / np.float32(_FULL), 1).astype(np.float32)


def _recency(columns: Columns, weights: Coefficients, now_micros: int) -> Floats:
    """Return what the month of a capture adds, by month."""
    # By month, not by capture: a few hundred values serve millions of rows.
    months = int(columns.month[-1]) + 1 if len(columns) else 1
    starts = np.arange(months).astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)
    days = np.maximum((now_micros - starts) / _DAY_MICROS, 7)
    return (np.log1p(365 / days) * (weights.recency / _FRESHEST)).astype(np.float32)


def order_keys(rows: Rows, text: Floats, titles: npt.NDArray[np.uint8], worth: PageWorth) -> Floats:
    """Return what rows are sorted by, greatest first: the order of statuses, then the score."""
    keys = worth.by_row[rows]
    keys += text
    keys += _title_table(worth.weights)[titles]
    return keys


def parts(columns: Columns, row: int, text: float, titles: int, worth: PageWorth) -> dict[str, float]:
    """Return the parts of one row's score by name; their sum is the score."""
    found = {"rankText": text, "titleBoost": float(_title_table(worth.weights)[titles])}
    found["archivedPenalty"] = float(_archived(columns, worth.weights, columns.doc[[row]])[0])
    found |= {name: float(part[0]) for name, part in address_parts(columns, worth.weights, columns.url[[row]]).items()}
    found["recencyBoost"] = float(worth.of_month[columns.month[row]])
    return found


def _title_table(weights: Coefficients) -> Floats:
    """Return what the bits of a title add: a little for any word, more for all, and again for phrase and equality."""
    table = np.zeros(16, np.float32)
    for bits in range(16):
        table[bits] = (
            (weights.title_all if bits & TITLE_ALL else weights.title_any if bits & TITLE_ANY else 0.0)
            + (weights.title_phrase if bits & TITLE_PHRASE else 0.0)
            + (weights.title_exact if bits & TITLE_EXACT else 0.0)
        )
    return table
