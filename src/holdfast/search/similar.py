"""Finds captures similar to a given one by some of its most significant words; excludes its own page.

A word is more significant the more often it occurs in the capture and the fewer documents contain it.
Near-copies, which share nearly all of their words, are a separate matter: see `fingerprints`.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from itertools import islice
from typing import Final

import numpy as np
from sqlalchemy.orm import Session

from holdfast.errors import NotFound
from holdfast.index.queries import unpack_text
from holdfast.parse.text import is_unspaced, words_of
from holdfast.search import queries
from holdfast.search.analysis import languages_of
from holdfast.search.columns import Columns
from holdfast.search.matching import Match, MatchMode, SearchReach, best_documents, visible_documents
from holdfast.search.near_duplicates import row_of
from holdfast.search.places import Rows
from holdfast.search.query import MIN_WORD_CHARS, Words
from holdfast.search.readers import View
from holdfast.withdrawals.visibility import visible_snapshot

# Of a text: what a page is about stands at its beginning, and a text may have millions of letters.
_CHARS: Final = 20_000
# Different words, the most frequent of the text, of which it is asked how many documents have them.
_ASKED: Final = 300
# Words that are looked for: the query costs as much as they have documents.
_WORDS: Final = 12
# Share of these that must stand in a document that is like the capture.
_SHARE: Final = 3
# A word of more than this share of all documents is not significant.
_COMMON: Final = 4
_DOCUMENTS: Final = 2_000


class NothingToGoBy(NotFound):
    """This capture has no words to find similar ones by."""

    code = "nothing_to_go_by"

    def __init__(self, snapshot_id: int) -> None:
        super().__init__(f"snapshot {snapshot_id} has no text of its own to find others by; choose another capture")


def significant_terms(session: Session, view: View, snapshot_id: int, reach: SearchReach) -> Words:
    """Return the words that distinguish a capture from others, the most significant first.

    Raise SnapshotNotFound if it is not visible; NothingToGoBy if it has no such words.
    """
    found = visible_snapshot(session, snapshot_id)
    # What asks for noindex is left out of results, and names none either.
    row_of(view.columns, snapshot_id, reach.gate)
    document = found.document_id
    rows = queries.documents_with_text(session, [document]) if document is not None else []
    packed, reader, columns = rows[0].packed if rows else None, view.reader, view.columns
    if packed is None or reader is None:
        raise NothingToGoBy(snapshot_id)
    counts = Counter(
        word
        for word in words_of(unpack_text(packed)[:_CHARS])
        if len(word) >= MIN_WORD_CHARS and not word.isdecimal() and not is_unspaced(word)
    )
    total = max(1, len(columns.documents))
    weighed: list[tuple[float, str]] = []
    # In one order for both databases: of words that occur equally often the first by the alphabet.
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_ASKED]:
        documents = reader.frequency(word)
        if documents > 1 and (documents * _COMMON <= total or total < 4 * _COMMON):
            weighed.append((-(1 + math.log(count)) * math.log(1 + total / documents), word))
    # A word that no other visible document has finds nothing.
    shared = (word for _, word in sorted(weighed) if visible_documents(reader, columns, word, reach) > 1)
    if not (words := tuple(islice(shared, _WORDS))):
        raise NothingToGoBy(snapshot_id)
    return Words(words=words)


def alike(view: View, words: Words, snapshot_id: int, reach: SearchReach) -> Match:
    reach.budget.check()
    columns, reader = view.columns, view.reader
    # The words were taken from an index that there is.
    assert reader is not None
    least = max(1, len(words.words) // _SHARE)
    read = partial(reader.some, words.words, languages_of(columns.languages), least=least)
    found = best_documents(read, columns, reach, min(reach.scan, _DOCUMENTS))
    places = columns.documents.places(found.keys)
    here = places != columns.documents.none
    places, scores = places[here], found.scores[here]
    rows, counts = columns.of_document.rows(places)
    text = np.repeat(scores, counts)
    keep = reach.shows(rows) & ~_is_own(columns, rows, snapshot_id)
    if reach.allowed is not None:
        keep &= np.repeat(reach.allowed[places], counts)
    rows, text = rows[keep], text[keep]
    best = text.max(initial=np.float32(0)) or np.float32(1)
    return Match(
        rows=rows,
        text=(text / best).astype(np.float32),
        mode=MatchMode.SIMILAR,
        shown=words,
        complete=found.count <= len(found.keys),
    )


def _is_own(columns: Columns, rows: Rows, snapshot_id: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    # By its number: it need not be among the best.
    own = columns.rows_of_ids(np.array([snapshot_id], np.int64))
    return np.isin(columns.group[rows], columns.group[own]) | np.isin(columns.doc[rows], columns.doc[own])
