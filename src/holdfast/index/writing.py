"""Writes one batch in one transaction: documents, groups, snapshots, links, duplicates, and the search outbox.

Unchanged rows are not written again, so a second reading of a file is cheap and causes no updates.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

from holdfast.db.raw import RawDatabase, Row, Transaction
from holdfast.index import writing_queries
from holdfast.index.capture import IndexedCapture, OutLink, identify
from holdfast.index.documents import NewDocument
from holdfast.index.leases import FileLease, FileToIndex, lock_index_writes
from holdfast.index.writing_queries import LinkTextRow, OriginalCandidate, Revisit, Unresolved
from holdfast.parse.document import DOCUMENT_VERSION, DocumentKind, kind_of
from holdfast.urls import hash64
from holdfast.urls.address import url_key
from holdfast.values import dataclass
from holdfast.warc.record import ORDINALS
from holdfast.withdrawals.visibility import withdrawn_keys

_SECOND = 1_000_000
OutboxRow = tuple[str, int | None, int | None, dict[str, Any]]
"""An update for the search index: kind, first id, last id, more."""


def revisit_of(capture: IndexedCapture, source_id: int) -> Revisit:
    key = url_key(capture.refers_to_url) if capture.refers_to_url else capture.identity.url_key
    return Revisit(
        capture.id,
        source_id,
        key,
        capture.refers_to_at,
        capture.captured_at,
        capture.payload_digest,
        capture.is_not_modified,
    )


def find_original(
    tx: Transaction, revisit: Revisit, unstored: Sequence[OriginalCandidate] = ()
) -> OriginalCandidate | None:
    """Return the original of a revisit, None if it is not in the archive yet.

    Its own source comes first. Another source must be public and have the same digest, and a 304 never refers to
    one: another source's crawler may have been signed in. `unstored` are captures of the revisit's own source under
    the same key that are not stored yet.
    """
    own = _find_original(tx, revisit, unstored, own_source=True)
    if own is not None or revisit.digest is None or revisit.is_not_modified:
        return own
    return _find_original(tx, revisit, (), own_source=False)


def _find_original(
    tx: Transaction, revisit: Revisit, unstored: Sequence[OriginalCandidate], *, own_source: bool
) -> OriginalCandidate | None:
    """Return the original by the URL and time that the revisit names, or by its digest under that URL.

    A 304 without either confirms the newest good capture before it.
    """
    if revisit.at is not None:
        # Many writers cut WARC-Refers-To-Date to whole seconds.
        start = revisit.at - revisit.at % _SECOND
        found = [one for one in unstored if start <= one.captured_at < start + _SECOND]
        found += writing_queries.originals_at(tx, revisit, span=_SECOND, own_source=own_source)
        if found:
            at = revisit.at
            # Among several in one second, prefer the exact time, then the same digest.
            return min(found, key=lambda one: (one.captured_at != at, one.digest != revisit.digest, one.id))
    before = [one for one in unstored if one.captured_at <= revisit.captured_at]
    if revisit.digest is not None:
        alike = [one for one in before if one.digest == revisit.digest]
        alike += writing_queries.originals_alike(tx, revisit, own_source=own_source)
        if alike:
            return max(alike, key=_by_age)
    # A 304 has no body, so most writers state no digest: the server confirmed the newest response before it.
    if revisit.is_not_modified and revisit.digest is None:
        good = [one for one in before if one.status is not None and 200 <= one.status < 300]
        good += writing_queries.originals_before(tx, revisit)
        if good:
            return max(good, key=_by_age)
    return None


def _by_age(one: OriginalCandidate) -> tuple[int, int]:
    # Of two with the same time use the one stored first: a copy of the file that is imported later then changes
    # nothing.
    return one.captured_at, -one.id


def candidate_of(capture: IndexedCapture) -> OriginalCandidate:
    return OriginalCandidate(
        capture.id,
        capture.captured_at,
        capture.payload_digest,
        capture.body_hash,
        capture.document_id,
        capture.is_page,
        capture.media_type,
        capture.noindex,
        capture.status,
    )


# Microseconds of a UTC day.
DAY = 86_400_000_000
_NEAR = 2_000
_GROUP, _URL_HASH, _CAPTURED_AT, _STATUS, _BODY_HASH = (
    writing_queries.SNAPSHOT_COLUMNS.index(name)
    for name in ("group_id", "url_hash", "captured_at", "status", "body_hash")
)


class LinkingPage(NamedTuple):
    snapshot_id: int
    group_hash: int
    url: str
    links: Sequence[OutLink]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Captures of one file, in order, and the range of ids they cover: other snapshots in the range are deleted."""

    captures: Sequence[IndexedCapture]
    documents: Sequence[NewDocument]
    linking: Sequence[LinkingPage]
    """Captures whose links are stored: the first of each URL and document; later ones leave stored links unchanged."""
    link_texts: Sequence[LinkTextRow]
    first_id: int
    last_id: int


def linking_pages(captures: Iterable[IndexedCapture]) -> list[LinkingPage]:
    # None leaves stored links unchanged: they belong to the first capture of a URL and document.
    return [
        LinkingPage(capture.id, capture.identity.group_hash, capture.identity.group, capture.links)
        for capture in captures
        if capture.links is not None
    ]


def hidden_captures(tx: Transaction, captures: Iterable[IndexedCapture]) -> set[int]:
    keys = {one.id: one.identity.page_key or one.identity.url_key for one in captures if one.links is not None}
    hidden = withdrawn_keys(tx, keys.values())
    return {snapshot_id for snapshot_id, key in keys.items() if key in hidden}


def write_batch(tx: Transaction, file: FileToIndex, batch: Batch, *, now: int) -> int:
    """Write a batch; return how many snapshots were new or changed. Idempotent."""
    made = _put_documents(tx, batch, now=now)
    _find_originals(tx, file.source_id, batch.captures)
    _put_groups(tx, file.source_id, batch.captures, now=now)
    return _replace(tx, batch, {capture.id: _row(capture, file) for capture in batch.captures}, made, now=now)


def drop_between(tx: Transaction, first_id: int, last_id: int, *, now: int) -> int:
    """Delete snapshots in a range of ids from the archive and from search; return their number."""
    nothing = Batch(captures=(), documents=(), linking=(), link_texts=(), first_id=first_id, last_id=last_id)
    return _replace(tx, nothing, {}, [], now=now)


def _replace(tx: Transaction, batch: Batch, after: dict[int, Row], made: Sequence[int], *, now: int) -> int:
    # Compare with the stored rows: reading a file again then writes nothing, and search has nothing to add.
    before = writing_queries.rows_between(tx, batch.first_id, batch.last_id)
    changed = [row for snapshot_id, row in after.items() if before.get(snapshot_id) != row]
    gone = [snapshot_id for snapshot_id in before if snapshot_id not in after]
    writing_queries.put_snapshots(tx, changed)
    unnamed = writing_queries.drop_snapshots(tx, gone) if gone else set()
    # Links are inserted after the snapshots, whose rows they reference.
    named = put_links(tx, batch.linking, batch.link_texts) | writing_queries.groups_here(tx, unnamed)
    touched = [*changed, *(before[row[0]] for row in changed if row[0] in before), *(before[one] for one in gone)]
    ids = {row[0] for row in touched}
    ids.update(settle(tx, touched))
    writing_queries.refresh_groups(tx, _shifts(before, after, gone))
    writing_queries.put_outbox(tx, _documents_rows(made), now=now)
    queue_snapshots(tx, ids, now=now)
    tell_named(tx, named, now=now)
    # A document that was read again may change captures whose own rows are unchanged.
    known = set(made)
    reread = (capture.id for capture in batch.captures if capture.document_id in known)
    writing_queries.put_unjudged(tx, ranges({*(row[0] for row in changed), *gone, *reread}))
    return len(changed) + len(gone)


def settle(tx: Transaction, rows: Iterable[Row]) -> list[int]:
    days = {(row[_URL_HASH], row[_CAPTURED_AT] - row[_CAPTURED_AT] % DAY) for row in rows}
    return writing_queries.settle_duplicates(tx, sorted(days), day_micros=DAY)


def ranges(ids: Iterable[int]) -> list[tuple[int, int]]:
    """Return ids as a few ranges; nearby ids share one, because reading some extra rows is cheaper."""
    found: list[tuple[int, int]] = []
    for one in sorted(ids):
        if found and one - found[-1][1] <= _NEAR:
            found[-1] = found[-1][0], one
        else:
            found.append((one, one))
    return found


def _put_documents(tx: Transaction, batch: Batch, *, now: int) -> list[int]:
    if not batch.documents:
        return []
    # Use one order for all readers: two that have the same bodies then wait for each other instead of deadlocking.
    new = sorted(batch.documents)
    writing_queries.put_documents(tx, [(*row, now) for _, row, _ in new])
    stored = writing_queries.known_documents(tx, [key[0] for key, _, _ in new])
    # A newer program may have stored its own extraction meanwhile: keep its text.
    ours = [(stored[key][0], text) for key, _, text in new if stored[key][1] <= DOCUMENT_VERSION]
    writing_queries.put_texts(tx, ours)
    made = {key: stored[key][0] for key, _, _ in new}
    for capture in batch.captures:
        if capture.document_key in made:
            capture.document_id = made[capture.document_key]
    return list(made.values())


# Number of documents that one outbox row names.
_NAMED_AT_ONCE = 2_000


def _documents_rows(ids: Iterable[int]) -> list[OutboxRow]:
    return [("documents", part[0], part[-1], {"ids": part}) for part in _parts(ids)]


def _named_rows(hashes: Iterable[int]) -> list[OutboxRow]:
    return [("link_texts", None, None, {"hashes": part}) for part in _parts(hashes)]


def _parts(ids: Iterable[int]) -> list[list[int]]:
    listed = sorted(set(ids))
    return [listed[at : at + _NAMED_AT_ONCE] for at in range(0, len(listed), _NAMED_AT_ONCE)]


def _find_originals(tx: Transaction, source_id: int, captures: Sequence[IndexedCapture]) -> None:
    revisits = [capture for capture in captures if capture.record_type == "revisit"]
    if not revisits:
        return
    unstored: dict[str, list[OriginalCandidate]] = {}
    for capture in captures:
        if capture.record_type != "revisit":
            unstored.setdefault(capture.identity.url_key, []).append(candidate_of(capture))
    for capture in revisits:
        revisit = revisit_of(capture, source_id)
        original = find_original(tx, revisit, unstored.get(revisit.url_key, ()))
        if original is not None:
            capture.original_id, capture.document_id = original.id, original.document_id
            capture.body_hash, capture.is_page = original.body_hash, original.is_page and capture.is_content
            capture.media_type = capture.media_type or original.media_type
            # A 304 repeats few headers: the original's instructions to search engines apply to it, too.
            capture.noindex = capture.noindex or original.noindex


def _put_groups(tx: Transaction, source_id: int, captures: Sequence[IndexedCapture], *, now: int) -> None:
    pages = [capture for capture in captures if capture.is_page]
    groups = {capture.identity.group_hash: capture.identity.group for capture in pages}
    ids = writing_queries.group_ids(tx, source_id, groups)
    missing = {url_hash: url for url_hash, url in groups.items() if url_hash not in ids}
    if missing:
        ids |= writing_queries.put_groups(tx, source_id, missing, moment=now)
    for capture in pages:
        capture.group_id = ids[capture.identity.group_hash]


class LinkTexts:
    """Link texts stored or rejected for lack of room during a reading, so that they are not tried again."""

    def __init__(self) -> None:
        self._known: dict[int | tuple[int, int], set[str]] = {}
        self._count = 0

    def new(self, pages: Sequence[LinkingPage], *, hidden: Collection[int] = ()) -> list[LinkTextRow]:
        """Return link texts that may be new, each once; those of `hidden` captures come last."""
        # A withdrawn page's link text must not replace the same words of another page.
        pages = sorted(pages, key=lambda page: page.snapshot_id in hidden) if hidden else pages
        found = dict[int | tuple[int, int], dict[str, int]]()
        place: int | tuple[int, int]
        for snapshot_id, _, url, links in pages:
            site = url[: url.find("/", 8) + 1]
            host = _host(url)
            host_hash = hash64(host)
            for to_hash, to_url, words in links:
                if not words:
                    continue
                if to_url.startswith(site) or _host(to_url) == host:
                    place, most = to_hash, writing_queries.OWN_HOST_TEXTS
                else:
                    place, most = (to_hash, host_hash), writing_queries.OTHER_HOST_TEXTS
                known = self._known.get(place, ())
                for text in words:
                    if text in known or len(known) >= most:
                        continue
                    texts = found.get(place)
                    if texts is None:
                        found[place] = {text: snapshot_id}
                    elif text not in texts and len(texts) < most:
                        texts[text] = snapshot_id
        # Links of one target and host are adjacent, as in the table; writers take turns, so no other order is needed.
        rows: list[LinkTextRow] = []
        for place, texts in found.items():
            to_hash, host_hash = place if isinstance(place, tuple) else (place, 0)
            rows += [(to_hash, host_hash, text, snapshot_id) for text, snapshot_id in texts.items()]
        return rows

    def keep(self, rows: Sequence[LinkTextRow], *, hidden: Collection[int] = ()) -> None:
        """Remember tried texts; call it after the commit. Skips those of hidden captures: others may have the same
        text.
        """
        self._count += len(rows)
        if self._count > _REMEMBERED_TEXTS:
            self._known, self._count = {}, len(rows)
        for to_hash, host_hash, text, snapshot_id in rows:
            if snapshot_id in hidden:
                continue
            self._known.setdefault((to_hash, host_hash) if host_hash else to_hash, set()).add(text)


# About 30 MB.
_REMEMBERED_TEXTS = 200_000


def _host(url: str) -> str:
    return url.split("/", 3)[2].removeprefix("www.")


def put_links(tx: Transaction, pages: Sequence[LinkingPage], texts: Sequence[LinkTextRow]) -> set[int]:
    if not pages:
        return set()
    edges = [
        (snapshot_id, to_hash, group_hash, to_url)
        for snapshot_id, group_hash, _, links in pages
        for to_hash, to_url, _ in links
    ]
    writing_queries.put_links(tx, [page.snapshot_id for page in pages], edges)
    targets = writing_queries.put_link_texts(tx, texts)
    return writing_queries.groups_here(tx, targets) if targets else set()


def queue_snapshots(tx: Transaction, ids: Iterable[int], *, now: int) -> None:
    """Queue these snapshots for the search index."""
    writing_queries.put_outbox(tx, [("snapshots", first, last, {}) for first, last in ranges(ids)], now=now)


def tell_named(tx: Transaction, hashes: Iterable[int], *, now: int) -> None:
    """Queue the link texts of these pages for the search index."""
    writing_queries.put_outbox(tx, _named_rows(hashes), now=now)


def _shifts(before: dict[int, Row], after: dict[int, Row], gone: Sequence[int]) -> dict[int, int]:
    shifts: Counter[int] = Counter()
    for snapshot_id, row in after.items():
        # Compare only the sources of a group's row: title or type of a capture change nothing there.
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


def _row(capture: IndexedCapture, file: FileToIndex) -> Row:
    identity = capture.identity
    return (
        capture.id,
        file.id,
        file.execution_id,
        file.source_id,
        capture.offset,
        capture.length,
        capture.record_id,
        capture.record_type,
        capture.url,
        identity.url_key,
        identity.url_hash,
        capture.group_id,
        capture.captured_at,
        capture.method,
        capture.status,
        capture.media_type,
        capture.payload_digest,
        capture.body_hash,
        capture.document_id,
        capture.is_page,
        capture.noindex,
        capture.original_id,
        capture.refers_to_url,
        capture.refers_to_at,
        capture.redirect_to,
        capture.truncated,
        ",".join(dict.fromkeys(capture.problems)) or None,
        file.backend,
        # How much of a cut body is missing is unknown.
        file.fidelity if capture.truncated is None else "unknown",
        identity.page_key,
    )


OnRows = Callable[[int], None]


@contextmanager
def index_transaction(raw_db: RawDatabase) -> Iterator[Transaction]:
    """Open a short transaction in which no other indexer writes."""
    with raw_db.write() as tx:
        if raw_db.dialect == "postgresql":
            lock_index_writes(tx)
        yield tx


_AT_ONCE = 500
# Number of ids of a file whose URLs are read together.
_SLICE = 500
# Number of the latest waiting revisits that are checked for each file.
_NEWEST = 5_000
# Number of waiting revisits that one slice of a file checks; the rest waits for `resolve_some`.
_MOST = 5_000
_LAST_ID = (1 << 63) - 1
_BITS = 23


class SeenKeys:
    """The keys of a file's originals, in one megabyte for any size: false positives are possible, false negatives
    not.
    """

    def __init__(self) -> None:
        self._bits = bytearray(1 << (_BITS - 3))

    def add(self, key: str) -> None:
        at = hash64(key) & ((1 << _BITS) - 1)
        self._bits[at >> 3] |= 1 << (at & 7)

    def __contains__(self, key: str) -> bool:
        at = hash64(key) & ((1 << _BITS) - 1)
        return bool(self._bits[at >> 3] & (1 << (at & 7)))


def resolve_late(raw_db: RawDatabase, lease: FileLease, seen: SeenKeys, *, now: int) -> int:
    """Resolve revisits whose originals this file brought, and its own once more; return how many were resolved.

    The work grows with the file, not with the number of unresolved revisits: many wait forever for a missing
    original.
    """
    # Check the file's own first, although its batches did: another reader may have stored their originals meanwhile.
    first, last = lease.warc_file_id * ORDINALS, (lease.warc_file_id + 1) * ORDINALS - 1
    count = 0
    for waiting in chain(
        _own(raw_db, first, last), _newest(raw_db, seen, first, last), _at_addresses(raw_db, first, last)
    ):
        with raw_db.read() as tx:
            pairs = _found(tx, waiting)
        if pairs:
            with raw_db.write() as tx:
                lease.hold(tx)
                count += _put(tx, pairs, now=now)
    return count


def resolve_some(raw_db: RawDatabase, *, after: int, now: int) -> int:
    """Resolve some of the revisits after an id; return how many were resolved.

    For revisits that name another URL than their own and were read long before their original: no index leads
    there.
    """
    with raw_db.read() as tx:
        waiting = writing_queries.unresolved(tx, after=after, until=_LAST_ID, limit=_AT_ONCE)
        pairs = _found(tx, waiting)
    if not pairs:
        return 0
    with index_transaction(raw_db) as tx:
        return _put(tx, pairs, now=now)


def random_start(raw_db: RawDatabase) -> int:
    # Start at random, so that every place is reached eventually without storing a position.
    with raw_db.read() as tx:
        return secrets.randbelow(writing_queries.last_snapshot_id(tx) + 1) - 1


def _own(raw_db: RawDatabase, first: int, last: int) -> Iterator[list[Unresolved]]:
    after = first - 1
    while True:
        with raw_db.read() as tx:
            waiting = writing_queries.unresolved(tx, after=after, until=last, limit=_AT_ONCE)
        yield waiting
        if len(waiting) < _AT_ONCE:
            return
        after = waiting[-1].id


def _newest(raw_db: RawDatabase, seen: SeenKeys, first: int, last: int) -> Iterator[list[Unresolved]]:
    with raw_db.read() as tx:
        newest = writing_queries.newest_unresolved(tx, limit=_NEWEST)
    yield [one for one in newest if not first <= one.id <= last and _key(one) in seen]


def _at_addresses(raw_db: RawDatabase, first: int, last: int) -> Iterator[list[Unresolved]]:
    with raw_db.read() as tx:
        # Most archives have none waiting elsewhere; one query on either side saves the walk over the file's URLs.
        before = writing_queries.unresolved(tx, after=-1, until=first - 1, limit=1)
        behind = writing_queries.unresolved(tx, after=last, until=_LAST_ID, limit=1)
        end = writing_queries.last_capture_id(tx, first, last) if before or behind else -1
    for start in range(first, end + 1, _SLICE):
        with raw_db.read() as tx:
            waiting = writing_queries.waiting_for(tx, start, min(start + _SLICE - 1, last), earlier=DAY, limit=_MOST)
        yield waiting


def _found(tx: Transaction, waiting: Sequence[Unresolved]) -> list[tuple[Unresolved, OriginalCandidate]]:
    found = ((one, find_original(tx, _revisit(one))) for one in waiting)
    return [(one, original) for one, original in found if original is not None]


def _key(one: Unresolved) -> str:
    return url_key(one.refers_to_url) if one.refers_to_url else one.url_key


def _revisit(one: Unresolved) -> Revisit:
    is_not_modified = one.status == 304
    return Revisit(one.id, one.source_id, _key(one), one.refers_to_at, one.captured_at, one.digest, is_not_modified)


def _is_for_crawlers(one: Unresolved) -> bool:
    return not one.is_page and kind_of(b"", one.media_type) is not DocumentKind.OTHER


def _put(tx: Transaction, found: Sequence[tuple[Unresolved, OriginalCandidate]], *, now: int) -> int:
    """Write originals in a transaction in which no other indexer writes; return how many revisits were unresolved.

    The count uses the current rows: another indexer may have found the same originals meanwhile.
    """
    # A read transaction found these: another indexer may have written the same since.
    waiting = writing_queries.still_unresolved(tx, [one.id for one, _ in found])
    pairs = [(waiting[one.id], original) for one, original in found if one.id in waiting]
    if not pairs:
        return 0
    shifts: dict[int, int] = {}
    rows = []
    for one, original in pairs:
        group, is_page = one.group_id, original.is_page and not _is_for_crawlers(one)
        if is_page and group is None:
            identity = identify(one.url)
            made = writing_queries.put_groups(tx, one.source_id, {identity.group_hash: identity.group}, moment=now)
            group = made[identity.group_hash]
            shifts[group] = shifts.get(group, 0) + 1
        elif not is_page and group is not None:
            shifts[group], group = shifts.get(group, 0) - 1, None
        shown = (original.id, original.document_id, original.body_hash, original.media_type)
        rows.append((*shown, is_page, original.noindex, group, one.id))
    writing_queries.put_originals(tx, rows)
    days = {(one.url_hash, one.captured_at - one.captured_at % DAY) for one, _ in pairs}
    ids = {one.id for one, _ in pairs} | set(writing_queries.settle_duplicates(tx, sorted(days), day_micros=DAY))
    writing_queries.refresh_groups(tx, shifts)
    queue_snapshots(tx, ids, now=now)
    writing_queries.put_unjudged(tx, ranges(one.id for one, _ in pairs))
    return len(pairs)
