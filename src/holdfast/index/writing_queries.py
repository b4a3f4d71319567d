"""SQL statements that write a batch, each for both databases. They work on sets, not single rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from holdfast.db.raw import Row, Transaction
from holdfast.withdrawals.visibility import any_unseen_sql, public_sql, unseen_sql

SNAPSHOT_COLUMNS = (
    "id",
    "warc_file_id",
    "execution_id",
    "source_id",
    "warc_offset",
    "warc_length",
    "record_id",
    "record_type",
    "url",
    "url_key",
    "url_hash",
    "group_id",
    "captured_at",
    "method",
    "status",
    "media_type",
    "payload_digest",
    "body_hash",
    "document_id",
    "is_page",
    "noindex",
    "original_id",
    "refers_to_url",
    "refers_to_at",
    "redirect_to",
    "truncated",
    "problems",
    "backend",
    "fidelity",
    "page_key",
)
DOCUMENT_COLUMNS = (
    "body_hash",
    "charset",
    "media_type",
    "body_bytes",
    "title",
    "description",
    "snippet",
    "headings",
    "language",
    "canonical",
    "details",
    "noindex",
    "says_archived",
    "text_chars",
    "terms",
    "author",
    "published_at",
    "modified_at",
    "keywords",
    "word_count",
    "page_type",
    "version",
    "created_at",
)
# Rows per list in a statement; SQLite accepts 32,766 values.
_AT_ONCE = 400

DocumentKey = tuple[bytes, str, str]
"""SHA-256 of the body, charset, media type."""


def known_documents(tx: Transaction, hashes: Iterable[bytes]) -> dict[DocumentKey, tuple[int, int, bool]]:
    """Return (id, version, noindex) of the stored documents with these bodies."""
    found: dict[DocumentKey, tuple[int, int, bool]] = {}
    for part in _parts(sorted(set(hashes))):
        rows = tx.execute(
            "SELECT body_hash, charset, media_type, id, version, noindex FROM documents"  # noqa: S608 - question marks
            f" WHERE body_hash IN ({_marks(part)})",
            part,
        )
        found.update({(bytes(row[0]), row[1], row[2]): (row[3], row[4], bool(row[5])) for row in rows})
    return found


def put_documents(tx: Transaction, rows: Sequence[Row]) -> None:
    """Store documents; an existing one stays, unless an older extraction version made it."""
    columns = [name for name in DOCUMENT_COLUMNS[3:] if name != "created_at"]
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
    tx.many(
        f"INSERT INTO documents({', '.join(DOCUMENT_COLUMNS)}) VALUES ({_marks(DOCUMENT_COLUMNS)})"  # noqa: S608
        f" ON CONFLICT (body_hash, charset, media_type) DO UPDATE SET {changes}"
        # An older program may run beside a newer one: it must not put its extraction over the newer.
        " WHERE documents.version < excluded.version",
        rows,
    )


def put_texts(tx: Transaction, rows: Sequence[tuple[int, bytes]]) -> None:
    tx.many(
        "INSERT INTO document_texts(document_id, text) VALUES (?, ?)"
        " ON CONFLICT (document_id) DO UPDATE SET text = excluded.text",
        rows,
    )


def shown_together(tx: Transaction, pairs: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for part in _parts(sorted(set(pairs))):
        rows = tx.execute(
            f"WITH w(url_hash, document_id) AS (VALUES {_pairs(part)}) SELECT w.url_hash, w.document_id FROM w"  # noqa: S608
            " WHERE EXISTS (SELECT 1 FROM snapshots s WHERE s.url_hash = w.url_hash AND s.document_id = w.document_id"
            " AND s.status BETWEEN 200 AND 299)",
            [value for pair in part for value in pair],
        )
        found.update((row[0], row[1]) for row in rows)
    return found


def put_groups(tx: Transaction, source_id: int, groups: dict[int, str], *, moment: int) -> dict[int, int]:
    hashes = sorted(groups)
    tx.many(
        "INSERT INTO page_groups(source_id, url, url_hash, first_captured_at, last_captured_at, snapshot_count,"
        " latest_id) VALUES (?, ?, ?, ?, ?, 0, 0) ON CONFLICT (source_id, url_hash) DO NOTHING",
        [(source_id, groups[url_hash], url_hash, moment, moment) for url_hash in hashes],
    )
    return group_ids(tx, source_id, hashes)


def group_ids(tx: Transaction, source_id: int, hashes: Iterable[int]) -> dict[int, int]:
    ids: dict[int, int] = {}
    for part in _parts(sorted(set(hashes))):
        rows = tx.execute(
            f"SELECT url_hash, id FROM page_groups WHERE source_id = ? AND url_hash IN ({_marks(part)})",  # noqa: S608
            [source_id, *part],
        )
        ids.update((row[0], row[1]) for row in rows)
    return ids


_OF_GROUP = "FROM snapshots s WHERE s.group_id = page_groups.id"
_LATEST = "ORDER BY s.captured_at DESC, s.id DESC LIMIT 1"
GROUP_COUNT = f"(SELECT count(*) {_OF_GROUP})"
# Columns of a group that summarise its captures; each is one seek in the index of groups and times. A 304 counts as a
# good capture, because it confirms an earlier response; a capture that does not show its page does not count.
GROUP_FIGURES = {
    "first_captured_at": f"(SELECT s.captured_at {_OF_GROUP} ORDER BY s.captured_at, s.id LIMIT 1)",
    "last_captured_at": f"(SELECT s.captured_at {_OF_GROUP} {_LATEST})",
    "latest_id": f"(SELECT s.id {_OF_GROUP} {_LATEST})",
    "latest_ok_id": (
        f"(SELECT s.id {_OF_GROUP} AND (s.status BETWEEN 200 AND 299"
        f" OR (s.status = 304 AND s.record_type = 'revisit')) AND s.noise IS NULL {_LATEST})"
    ),
}
# Update the count by the difference: each batch would otherwise count all captures of a page with a hundred thousand.
# The other columns accept no NULL, and a group without captures is deleted afterwards.
_REFRESHED = ", ".join(
    f"{name} = {figure}" if name == "latest_ok_id" else f"{name} = COALESCE({figure}, {name})"
    for name, figure in GROUP_FIGURES.items()
)
_REFRESH_GROUP = f"UPDATE page_groups SET snapshot_count = snapshot_count + ?, {_REFRESHED} WHERE id = ?"  # noqa: S608


def refresh_groups(tx: Transaction, shifts: dict[int, int]) -> None:
    """Apply changes in the number of snapshots and recompute first and latest; empty groups are deleted."""
    # Use one order for all readers, as everywhere: two writers of the same groups then wait instead of deadlocking.
    tx.many(_REFRESH_GROUP, [(shifts[group], group) for group in sorted(shifts)])
    gone = [(group,) for group, shift in sorted(shifts.items()) if shift < 0]
    if gone:
        tx.many(
            # Delete only groups without captures: most groups that lost a capture have others.
            "DELETE FROM page_groups WHERE id = ? AND NOT EXISTS ("
            "SELECT 1 FROM snapshots WHERE snapshots.group_id = page_groups.id)",
            gone,
        )


def rows_between(tx: Transaction, first_id: int, last_id: int) -> dict[int, Row]:
    rows = tx.execute(
        f"SELECT {', '.join(SNAPSHOT_COLUMNS)} FROM snapshots WHERE id BETWEEN ? AND ?",  # noqa: S608
        (first_id, last_id),
    )
    return {row[0]: _plain(row) for row in rows}


def ambiguous_ids(tx: Transaction, record_ids: Sequence[str], *, first_id: int, last_id: int) -> list[tuple[str, int]]:
    """Return record ids with different bodies in this range of ids, and the offset of the first of each."""
    found: list[tuple[str, int]] = []
    for part in _parts(record_ids):
        rows = tx.execute(
            "SELECT record_id, MIN(warc_offset) FROM snapshots WHERE id BETWEEN ? AND ?"  # noqa: S608 - question marks
            f" AND record_id IN ({_marks(part)}) GROUP BY record_id HAVING COUNT(DISTINCT body_hash) > 1"
            " ORDER BY MIN(warc_offset)",
            [first_id, last_id, *part],
        )
        found += [(str(row[0]), int(row[1])) for row in rows]
    return found


def _plain(row: Row) -> Row:
    return tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)


def put_snapshots(tx: Transaction, rows: Sequence[Row]) -> None:
    changes = ", ".join(f"{name} = excluded.{name}" for name in SNAPSHOT_COLUMNS[1:])
    tx.many(
        f"INSERT INTO snapshots({', '.join(SNAPSHOT_COLUMNS)}) VALUES ({_marks(SNAPSHOT_COLUMNS)})"  # noqa: S608
        f" ON CONFLICT (id) DO UPDATE SET {changes},"
        # Only another body or time requires another comparison; a repaired type or title does not.
        " compared = snapshots.compared AND snapshots.body_hash IS NOT DISTINCT FROM excluded.body_hash"
        " AND snapshots.captured_at = excluded.captured_at",
        rows,
    )


def drop_snapshots(tx: Transaction, ids: Sequence[int]) -> set[int]:
    """Delete snapshots whose record no longer counts as one; return targets whose link texts may have changed.

    Links are stored with the first capture of a URL and text: the next such capture inherits them.
    """
    targets: set[int] = set()
    for part in _parts(ids):
        marks = _marks(part)
        heirs = tx.execute(
            "SELECT MIN(o.id), s.id FROM snapshots s"  # noqa: S608 - question marks
            " JOIN snapshots o ON o.url_hash = s.url_hash AND o.document_id = s.document_id"
            f" WHERE s.id IN ({marks}) AND o.id NOT IN ({marks}) AND o.record_type <> 'revisit'"
            " AND EXISTS (SELECT 1 FROM page_links l WHERE l.snapshot_id = s.id) GROUP BY s.id",
            (*part, *part),
        )
        for heir, gone in {row[0]: row[1] for row in heirs}.items():
            tx.execute("DELETE FROM page_links WHERE snapshot_id = ?", (heir,))
            tx.execute("UPDATE page_links SET snapshot_id = ? WHERE snapshot_id = ?", (heir, gone))
            moved = "UPDATE link_texts SET snapshot_id = ? WHERE snapshot_id = ? RETURNING to_hash"
            targets.update(row[0] for row in tx.execute(moved, (heir, gone)))
        tx.execute(f"DELETE FROM page_links WHERE snapshot_id IN ({marks})", part)  # noqa: S608
        rows = tx.execute(f"DELETE FROM link_texts WHERE snapshot_id IN ({marks}) RETURNING to_hash", part)  # noqa: S608
        targets.update(row[0] for row in rows)
        tx.execute(f"DELETE FROM snapshots WHERE id IN ({marks})", part)  # noqa: S608
    return targets


def put_links(tx: Transaction, snapshot_ids: Sequence[int], rows: Sequence[tuple[int, int, int, str]]) -> None:
    """Replace the links of these snapshots: (snapshot, target's hash, own group's hash, target)."""
    tx.many("DELETE FROM page_links WHERE snapshot_id = ?", [(one,) for one in snapshot_ids])
    tx.load("page_links", ("snapshot_id", "to_hash", "from_hash", "to_url"), rows)


OWN_HOST_TEXTS, OTHER_HOST_TEXTS, TARGET_TEXTS = 16, 4, 256
"""Limits of distinct link texts per target: from its own host, from each other host, from all together."""
_TEXT_AT = "SELECT 1 FROM link_texts t WHERE t.to_hash = w.to_hash"
_ROOM_FOR_TEXT = (
    f"((w.host_hash = 0 AND NOT EXISTS ({_TEXT_AT} AND t.host_hash = 0 LIMIT 1 OFFSET {OWN_HOST_TEXTS - 1}))"
    f" OR (w.host_hash <> 0 AND NOT EXISTS ({_TEXT_AT} LIMIT 1 OFFSET {TARGET_TEXTS - 1})"
    f" AND NOT EXISTS ({_TEXT_AT} AND t.host_hash = w.host_hash LIMIT 1 OFFSET {OTHER_HOST_TEXTS - 1})))"
)
_TEXT_VALUES = "(CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS VARCHAR), CAST(? AS BIGINT))"
LinkTextRow = tuple[int, int, str, int]


def put_link_texts(tx: Transaction, rows: Sequence[LinkTextRow]) -> set[int]:
    """Store link texts that are new and within the limits; return their targets.

    The first texts stay: a page whose link texts change with each capture does not add more forever. Only the
    places of texts under a takedown or for members are free for others.
    """
    found: set[int] = set()
    is_any_unseen = bool(rows) and bool(tx.execute(any_unseen_sql()))
    for part in _parts(rows):
        new = _new_link_texts(tx, part)
        found.update(row[0] for row in new)
        if is_any_unseen and len(new) < len(part):
            stored = {tuple(row) for row in new}
            found |= _take_over(tx, [row for row in part if row[:3] not in stored])
    return found


def _with_words(part: Sequence[LinkTextRow]) -> tuple[str, list[Any]]:
    values = ", ".join([_TEXT_VALUES] * len(part))
    return f"WITH w(to_hash, host_hash, text, snapshot_id) AS (VALUES {values})", [one for row in part for one in row]


def _new_link_texts(tx: Transaction, part: Sequence[LinkTextRow]) -> list[Row]:
    words, values = _with_words(part)
    return tx.execute(
        f"{words} INSERT INTO link_texts(to_hash, host_hash, text, snapshot_id)"  # noqa: S608 - question marks
        f" SELECT w.to_hash, w.host_hash, w.text, w.snapshot_id FROM w WHERE {_ROOM_FOR_TEXT}"
        " ON CONFLICT (to_hash, host_hash, text) DO NOTHING RETURNING to_hash, host_hash, text",
        values,
    )


def _take_over(tx: Transaction, part: Sequence[LinkTextRow]) -> set[int]:
    """Replace link texts under a takedown by new ones: the same text, or another one where the limit is reached;
    return their targets.
    """
    words, values = _with_words(part)
    hidden_text = f"EXISTS (SELECT 1 FROM snapshots o WHERE o.id = link_texts.snapshot_id AND {unseen_sql('o')})"  # noqa: S608
    shown_words = f"EXISTS (SELECT 1 FROM snapshots n WHERE n.id = w.snapshot_id AND NOT {unseen_sql('n')})"  # noqa: S608
    same = "link_texts.to_hash = w.to_hash AND link_texts.host_hash = w.host_hash AND link_texts.text = w.text"
    taken = tx.execute(
        f"{words} UPDATE link_texts SET snapshot_id = w.snapshot_id FROM w"  # noqa: S608 - question marks
        f" WHERE {same} AND {hidden_text} AND {shown_words} RETURNING link_texts.to_hash",
        values,
    )
    freed = tx.execute(
        f"{words}, d AS (SELECT DISTINCT w.to_hash, w.host_hash FROM w WHERE {shown_words} AND NOT EXISTS ("  # noqa: S608
        f"{_TEXT_AT} AND t.host_hash = w.host_hash AND t.text = w.text))"
        f" DELETE FROM link_texts WHERE to_hash IN (SELECT d.to_hash FROM d) AND EXISTS ("
        "SELECT 1 FROM d WHERE d.to_hash = link_texts.to_hash"
        # Include other hosts only if they count towards the limit of all hosts together.
        f" AND (d.host_hash = link_texts.host_hash OR (d.host_hash <> 0 AND EXISTS ({_TEXT_AT.replace('w.', 'd.')}"
        f" LIMIT 1 OFFSET {TARGET_TEXTS - 1})))) AND {hidden_text} RETURNING to_hash",
        values,
    )
    found = {row[0] for row in taken}
    if freed:
        found.update(row[0] for row in _new_link_texts(tx, part))
    return found


def groups_here(tx: Transaction, url_hashes: Iterable[int]) -> set[int]:
    found: set[int] = set()
    for part in _parts(sorted(url_hashes)):
        rows = tx.execute(f"SELECT g.url_hash FROM page_groups g WHERE g.url_hash IN ({_marks(part)})", part)  # noqa: S608
        found.update(row[0] for row in rows)
    return found


def _canonical(part: Sequence[tuple[int, int]]) -> str:
    return (
        f"WITH w(url_hash, day) AS (VALUES {_pairs(part)}), d AS ("  # noqa: S608 - question marks
        " SELECT s.id, s.canonical_id, FIRST_VALUE(s.id) OVER ("
        "  PARTITION BY s.source_id, s.url_hash, w.day, s.body_hash ORDER BY s.captured_at, s.id) AS first_id"
        " FROM w JOIN snapshots s ON s.url_hash = w.url_hash AND s.captured_at >= w.day"
        "  AND s.captured_at < w.day + ? WHERE s.body_hash IS NOT NULL),"
        " n AS (SELECT id, canonical_id, NULLIF(first_id, id) AS wanted FROM d)"
    )


def settle_duplicates(tx: Transaction, days: Sequence[tuple[int, int]], *, day_micros: int) -> list[int]:
    """Set the earliest capture of a source, URL, day and body as canonical in the others; return the changed ones.

    A capture that becomes canonical is compared again. `days` are pairs of url_hash and the day's first
    microsecond.
    """
    changed: list[int] = []
    for part in _parts(sorted(set(days))):
        rows = tx.execute(
            f"{_canonical(part)} UPDATE snapshots SET canonical_id = n.wanted, compared = (1 = 0) FROM n"  # noqa: S608
            " WHERE snapshots.id = n.id AND n.canonical_id IS DISTINCT FROM n.wanted RETURNING snapshots.id",
            [*(value for pair in part for value in pair), day_micros],
        )
        changed += [row[0] for row in rows]
    return changed


def unsettled(tx: Transaction, days: Sequence[tuple[int, int]], *, day_micros: int) -> list[int]:
    found: list[int] = []
    for part in _parts(sorted(set(days))):
        rows = tx.execute(
            f"{_canonical(part)} SELECT id FROM n WHERE canonical_id IS DISTINCT FROM wanted ORDER BY id",  # noqa: S608
            [*(value for pair in part for value in pair), day_micros],
        )
        found += [row[0] for row in rows]
    return found


class Revisit(NamedTuple):
    id: int
    source_id: int
    url_key: str
    at: int | None
    captured_at: int
    digest: str | None
    is_not_modified: bool


class OriginalCandidate(NamedTuple):
    id: int
    captured_at: int
    digest: str | None
    body_hash: bytes | None
    document_id: int | None
    is_page: bool
    media_type: str | None
    noindex: bool
    status: int | None


_CANDIDATE = (
    "s.id, s.captured_at, s.payload_digest, s.body_hash, s.document_id, s.is_page, s.media_type, s.noindex, s.status"
)


def originals_at(tx: Transaction, revisit: Revisit, *, span: int, own_source: bool) -> list[OriginalCandidate]:
    """Return captures of the URL made within `span` microseconds from the second that the revisit names."""
    assert revisit.at is not None
    start = revisit.at - revisit.at % 1_000_000
    return _candidates(
        tx,
        revisit,
        "s.captured_at >= ? AND s.captured_at < ? ORDER BY s.captured_at, s.id LIMIT 20",
        (start, start + span),
        own_source=own_source,
    )


def originals_alike(tx: Transaction, revisit: Revisit, *, own_source: bool) -> list[OriginalCandidate]:
    """Return the newest capture with the same digest that is not later than the revisit."""
    return _candidates(
        tx,
        revisit,
        "s.captured_at <= ? AND s.payload_digest = ? ORDER BY s.captured_at DESC, s.id LIMIT 1",
        (revisit.captured_at, revisit.digest),
        own_source=own_source,
    )


def originals_before(tx: Transaction, revisit: Revisit) -> list[OriginalCandidate]:
    """Return the source's newest good capture before the revisit, which a 304 without a named original confirms."""
    return _candidates(
        tx,
        revisit,
        "s.captured_at <= ? AND s.status BETWEEN 200 AND 299 ORDER BY s.captured_at DESC, s.id LIMIT 1",
        (revisit.captured_at,),
        own_source=True,
    )


def _candidates(
    tx: Transaction, revisit: Revisit, where: str, values: Sequence[Any], *, own_source: bool
) -> list[OriginalCandidate]:
    # No index has the expression: read the captures of a URL in order of time, up to the first match.
    allowed = "s.source_id + 0 = ?" if own_source else f"s.payload_digest = ? AND {public_sql('s.source_id')}"
    named = revisit.source_id if own_source else revisit.digest
    rows = tx.execute(
        f"SELECT {_CANDIDATE} FROM snapshots s"  # noqa: S608 - names of columns
        f" WHERE s.url_key = ? AND s.record_type <> 'revisit' AND {allowed} AND {where}",
        (revisit.url_key, named, *values),
    )
    return [OriginalCandidate(*_plain(row)) for row in rows]


class Unresolved(NamedTuple):
    id: int
    source_id: int
    url: str
    url_key: str
    url_hash: int
    group_id: int | None
    captured_at: int
    digest: str | None
    refers_to_url: str | None
    refers_to_at: int | None
    status: int | None
    media_type: str | None
    is_page: bool


_UNRESOLVED = (
    "r.id, r.source_id, r.url, r.url_key, r.url_hash, r.group_id, r.captured_at, r.payload_digest, r.refers_to_url,"
    " r.refers_to_at, r.status, r.media_type, r.is_page"
)


def unresolved(tx: Transaction, *, after: int, until: int, limit: int) -> list[Unresolved]:
    rows = tx.execute(
        f"SELECT {_UNRESOLVED} FROM snapshots r"  # noqa: S608 - names of columns
        " WHERE r.record_type = 'revisit' AND r.original_id IS NULL AND r.id > ? AND r.id <= ? ORDER BY r.id LIMIT ?",
        (after, until, limit),
    )
    return [Unresolved(*row) for row in rows]


def still_unresolved(tx: Transaction, ids: Sequence[int]) -> dict[int, Unresolved]:
    found: dict[int, Unresolved] = {}
    for part in _parts(ids):
        rows = tx.execute(
            f"SELECT {_UNRESOLVED} FROM snapshots r"  # noqa: S608 - names of columns, question marks
            f" WHERE r.id IN ({_marks(part)}) AND r.record_type = 'revisit' AND r.original_id IS NULL",
            part,
        )
        found |= {row[0]: Unresolved(*row) for row in rows}
    return found


def newest_unresolved(tx: Transaction, *, limit: int) -> list[Unresolved]:
    rows = tx.execute(
        f"SELECT {_UNRESOLVED} FROM snapshots r"  # noqa: S608 - names of columns
        " WHERE r.record_type = 'revisit' AND r.original_id IS NULL AND r.id >= 0 ORDER BY r.id DESC LIMIT ?",
        (limit,),
    )
    return [Unresolved(*row) for row in rows]


def waiting_for(tx: Transaction, first_id: int, last_id: int, *, earlier: int, limit: int) -> list[Unresolved]:
    """Return revisits without an original at the URLs of these captures, made at most `earlier` before them.

    One seek per capture: only later captures at the same URL are read.
    """
    rows = tx.execute(
        # The empty string in the list keeps both planners from using the partial index of all revisits without an
        # original.
        f"SELECT DISTINCT {_UNRESOLVED} FROM snapshots o CROSS JOIN snapshots r"  # noqa: S608 - names of columns
        " WHERE o.id BETWEEN ? AND ? AND o.record_type <> 'revisit' AND r.url_key = o.url_key"
        " AND r.captured_at >= o.captured_at - ? AND r.record_type IN ('revisit', '') AND r.original_id IS NULL"
        " LIMIT ?",
        (first_id, last_id, earlier, limit),
    )
    return [Unresolved(*row) for row in rows]


def last_capture_id(tx: Transaction, first_id: int, last_id: int) -> int:
    rows = tx.execute("SELECT MAX(id) FROM snapshots WHERE id BETWEEN ? AND ?", (first_id, last_id))
    return -1 if rows[0][0] is None else int(rows[0][0])


def end_of_slice(tx: Transaction, first_id: int, last_id: int, *, limit: int) -> int:
    """Return the id of the `limit`th snapshot in a range (the last one if there are fewer), -1 if it is empty."""
    rows = tx.execute(
        "SELECT MAX(id) FROM (SELECT id FROM snapshots WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?) AS few",
        (first_id, last_id, limit),
    )
    return -1 if rows[0][0] is None else int(rows[0][0])


def last_snapshot_id(tx: Transaction) -> int:
    return int(tx.execute("SELECT COALESCE(MAX(id), 0) FROM snapshots")[0][0])


def put_originals(tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
    tx.many(
        "UPDATE snapshots SET original_id = ?, document_id = ?, body_hash = ?, media_type = COALESCE(media_type, ?),"
        # Its own instructions to search engines apply in addition to the original's. `1 = 0` is false in both dialects;
        # SQLite has no booleans, and PostgreSQL accepts no number for one.
        " is_page = ?, noindex = (noindex OR ?), group_id = ?, compared = (1 = 0)"
        " WHERE id = ? AND original_id IS NULL",
        rows,
    )


def put_outbox(
    tx: Transaction, rows: Sequence[tuple[str, int | None, int | None, dict[str, Any]]], *, now: int
) -> None:
    """Queue changes for the search index: (kind, first id, last id, more)."""
    tx.many(
        "INSERT INTO search_outbox(kind, first_id, last_id, refs, created_at) VALUES (?, ?, ?, ?, ?)",
        [(kind, first, last, json.dumps(refs), now) for kind, first, last, refs in rows],
    )


def put_unjudged(tx: Transaction, ranges: Sequence[tuple[int, int]]) -> None:
    """Queue captures for noise detection: the first and the last id of each range."""
    tx.many("INSERT INTO noise_queue(first_id, last_id) VALUES (?, ?)", ranges)


def _parts(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE))


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _pairs(values: Sequence[Any]) -> str:
    return ", ".join(["(CAST(? AS BIGINT), CAST(? AS BIGINT))"] * len(values))
