"""One batch becomes rows in one transaction: documents, groups, snapshots, links, duplicates, and word to the search.

What is stored already and has not changed is not written again, so a second reading of a file is cheap and silent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.db.hot import Row, Transaction
from holdfast.index.capture import Capture
from holdfast.index.documents import NewDocument
from holdfast.index.writing import queries
from holdfast.index.writing.originals import candidate_of, find_original, revisit_of
from holdfast.index.writing.queries import Candidate

DAY = 86_400_000_000
"""Microseconds of a UTC day."""
_NEAR = 2_000
_GROUP, _URL_HASH, _CAPTURED_AT, _STATUS, _BODY_HASH = (
    queries.SNAPSHOT_COLUMNS.index(name) for name in ("group_id", "url_hash", "captured_at", "status", "body_hash")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What all snapshots of one file share."""

    warc_file_id: int
    execution_id: int
    source_id: int
    backend: str
    fidelity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Captures of one file, in order, and the range of ids that they speak for: what else is stored there goes."""

    captures: Sequence[Capture]
    documents: Sequence[NewDocument]
    first_id: int
    last_id: int


def write_batch(tx: Transaction, place: Place, batch: Batch, *, now: int) -> int:
    """Write a batch; return how many snapshots were new or changed. May be repeated without harm."""
    outbox = _put_documents(tx, batch, now=now)
    _find_originals(tx, batch.captures)
    _put_groups(tx, place, batch.captures, now=now)
    before = queries.rows_between(tx, batch.first_id, batch.last_id)
    after = {capture.id: _row(capture, place) for capture in batch.captures}
    changed = [row for snapshot_id, row in after.items() if before.get(snapshot_id) != row]
    gone = [snapshot_id for snapshot_id in before if snapshot_id not in after]
    queries.put_snapshots(tx, changed)
    if gone:
        queries.drop_snapshots(tx, gone)
    _put_links(tx, batch.captures)
    touched = [*changed, *(before[row[0]] for row in changed if row[0] in before), *(before[one] for one in gone)]
    ids = {row[0] for row in touched}
    ids.update(settle(tx, touched))
    queries.refresh_groups(tx, _shifts(before, after, gone))
    outbox += [("snapshots", first, last, {}) for first, last in ranges(ids)]
    queries.put_outbox(tx, outbox, now=now)
    return len(changed) + len(gone)


def settle(tx: Transaction, rows: Iterable[Row]) -> list[int]:
    """Set anew which capture of an address, day and body is canonical, wherever these rows are or were one of them."""
    days = {(row[_URL_HASH], row[_CAPTURED_AT] - row[_CAPTURED_AT] % DAY) for row in rows}
    return queries.settle_duplicates(tx, sorted(days), day_micros=DAY)


def ranges(ids: Iterable[int]) -> list[tuple[int, int]]:
    """Return ids as a few ranges: those near each other share one, for reading some too many is cheaper than rows."""
    found: list[tuple[int, int]] = []
    for one in sorted(ids):
        if found and one - found[-1][1] <= _NEAR:
            found[-1] = found[-1][0], one
        else:
            found.append((one, one))
    return found


def _put_documents(
    tx: Transaction, batch: Batch, *, now: int
) -> list[tuple[str, int | None, int | None, dict[str, Any]]]:
    if not batch.documents:
        return []
    # In one order for all readers: two that know the same bodies wait for each other instead of locking up.
    new = sorted(batch.documents)
    queries.put_documents(tx, [(*document.row, now) for document in new])
    stored = queries.known_documents(tx, [document.key[0] for document in new])
    queries.put_texts(tx, [(stored[document.key].id, document.text) for document in new])
    made = {document.key: stored[document.key].id for document in new}
    for capture in batch.captures:
        if capture.document_key in made:
            capture.document_id = made[capture.document_key]
    ids = sorted(made.values())
    return [("documents", ids[0], ids[-1], {"ids": ids})]


def _find_originals(tx: Transaction, captures: Sequence[Capture]) -> None:
    revisits = [capture for capture in captures if capture.record_type == "revisit"]
    if not revisits:
        return
    at_hand: dict[str, list[Candidate]] = {}
    for capture in captures:
        if capture.record_type != "revisit":
            at_hand.setdefault(capture.identity.url_key, []).append(candidate_of(capture))
    for capture in revisits:
        revisit = revisit_of(capture)
        original = find_original(tx, revisit, at_hand.get(revisit.url_key, ()))
        if original is not None:
            capture.original_id, capture.document_id = original.id, original.document_id
            capture.body_hash, capture.is_page = original.body_hash, original.is_page and capture.is_content
            capture.media_type = capture.media_type or original.media_type
            capture.noindex = capture.noindex or original.noindex


def _put_groups(tx: Transaction, place: Place, captures: Sequence[Capture], *, now: int) -> None:
    pages = [capture for capture in captures if capture.is_page]
    groups = {capture.identity.group_hash: capture.identity.group for capture in pages}
    ids = queries.group_ids(tx, place.source_id, groups)
    missing = {url_hash: url for url_hash, url in groups.items() if url_hash not in ids}
    if missing:
        ids |= queries.put_groups(tx, place.source_id, missing, moment=now)
    for capture in pages:
        capture.group_id = ids[capture.identity.group_hash]


def _put_links(tx: Transaction, captures: Sequence[Capture]) -> None:
    linking = [capture for capture in captures if capture.links is not None]
    if linking:
        rows = [
            (capture.id, to_hash, capture.identity.group_hash, to_url)
            for capture in linking
            for to_hash, to_url in capture.links or ()
        ]
        queries.put_links(tx, [capture.id for capture in linking], rows)


def _shifts(before: dict[int, Row], after: dict[int, Row], gone: Sequence[int]) -> dict[int, int]:
    """Return by how much each group that has to be looked at grew or shrank."""
    shifts: Counter[int] = Counter()
    for snapshot_id, row in after.items():
        old = before.get(snapshot_id)
        if old is not None and all(old[at] == row[at] for at in (_GROUP, _CAPTURED_AT, _STATUS)):
            continue
        if row[_GROUP] is not None:
            shifts[row[_GROUP]] += 1
        if old is not None and old[_GROUP] is not None:
            shifts[old[_GROUP]] -= 1
    for snapshot_id in gone:
        if (group := before[snapshot_id][_GROUP]) is not None:
            shifts[group] -= 1
    return dict(shifts)


def _row(capture: Capture, place: Place) -> Row:
    identity = capture.identity
    return (
        capture.id, place.warc_file_id, place.execution_id, place.source_id, capture.offset, capture.length,
        capture.record_id, capture.record_type, capture.url, identity.url_key, identity.url_hash, capture.group_id,
        capture.captured_at, capture.method, capture.status, capture.media_type, capture.payload_digest,
        capture.body_hash, capture.document_id, capture.is_page, capture.noindex, capture.original_id,
        capture.refers_to_url, capture.refers_to_at, capture.redirect_to, capture.truncated,
        ",".join(dict.fromkeys(capture.problems)) or None, place.backend, place.fidelity,
        identity.page_key,
    )  # fmt: skip
