"""Which capture holds the body that a revisit does not repeat: by what it refers to, else by its digest."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.db.hot import Transaction
from holdfast.index.capture import Capture
from holdfast.index.keys import url_key
from holdfast.index.writing import queries
from holdfast.index.writing.queries import Candidate, Revisit

_SECOND = 1_000_000


def revisit_of(capture: Capture) -> Revisit:
    """Return what a revisit in hand says of its original."""
    key = url_key(capture.refers_to_url) if capture.refers_to_url else capture.identity.url_key
    return Revisit(
        capture.id, key, capture.refers_to_at, capture.captured_at, capture.payload_digest, capture.is_not_modified
    )


def find_original(tx: Transaction, revisit: Revisit, at_hand: Sequence[Candidate] = ()) -> Candidate | None:
    """Return the original of a revisit, None if it is not here yet.

    By the address and moment that it names; by its digest under that address; a 304 without either confirms the newest
    good capture before it. `at_hand` are captures under the same key that are not stored yet.
    """
    if revisit.at is not None:
        start = revisit.at - revisit.at % _SECOND
        found = [one for one in at_hand if start <= one.captured_at < start + _SECOND]
        found += queries.originals_at(tx, revisit, span=_SECOND)
        if found:
            at = revisit.at
            # Of several in one second: the very moment, then the same digest.
            return min(found, key=lambda one: (one.captured_at != at, one.digest != revisit.digest, one.id))
    before = [one for one in at_hand if one.captured_at <= revisit.captured_at]
    if revisit.digest is not None:
        alike = [one for one in before if one.digest == revisit.digest] + queries.originals_alike(tx, revisit)
        if alike:
            return max(alike, key=lambda one: (one.captured_at, one.id))
    if revisit.is_not_modified and revisit.digest is None:
        good = [one for one in before if one.status is not None and 200 <= one.status < 300]
        good += queries.originals_before(tx, revisit)
        if good:
            return max(good, key=lambda one: (one.captured_at, one.id))
    return None


def candidate_of(capture: Capture) -> Candidate:
    """Return a capture in hand as a possible original."""
    return Candidate(
        capture.id, capture.captured_at, capture.payload_digest, capture.body_hash, capture.document_id,
        capture.is_page, capture.media_type, capture.noindex, capture.status,
    )  # fmt: skip
