"""What the archive's derived rows should be, beside what they are. Read by ranges of ids, for archives of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.db.hot import Transaction

_COUNT = "(SELECT count(*) FROM snapshots s WHERE s.group_id = g.id)"
_FIRST = "(SELECT s.captured_at FROM snapshots s WHERE s.group_id = g.id ORDER BY s.captured_at, s.id LIMIT 1)"
_LATEST = "(SELECT s.{} FROM snapshots s WHERE s.group_id = g.id ORDER BY s.captured_at DESC, s.id DESC LIMIT 1)"
_LATEST_OK = (
    "(SELECT s.id FROM snapshots s WHERE s.group_id = g.id AND (s.status BETWEEN 200 AND 299"
    " OR (s.status = 304 AND s.record_type = 'revisit')) ORDER BY s.captured_at DESC, s.id DESC LIMIT 1)"
)
_SHOULD = (_COUNT, _FIRST, _LATEST.format("captured_at"), _LATEST.format("id"), _LATEST_OK)
_IS = ("g.snapshot_count", "g.first_captured_at", "g.last_captured_at", "g.latest_id", "g.latest_ok_id")


def _only(column: str, value: int | None) -> tuple[str, tuple[int, ...]]:
    """Return a clause for one execution or source, by its index; nothing if all are meant."""
    return ("", ()) if value is None else (f" AND {column} = ?", (value,))


class Group(NamedTuple):
    """One row of page_groups, and whether it says what the snapshots say."""

    id: int
    is_right: bool
    is_empty: bool


def groups_after(tx: Transaction, *, after: int, source_id: int | None, limit: int) -> list[Group]:
    """Return the next groups by id, each held against its snapshots."""
    only, value = _only("g.source_id", source_id)
    rows = tx.execute(
        f"SELECT g.id, {', '.join(_IS)}, {', '.join(_SHOULD)} FROM page_groups g"  # noqa: S608 - our own words
        f" WHERE g.id > ?{only} ORDER BY g.id LIMIT ?",
        (after, *value, limit),
    )
    half = len(_IS)
    return [Group(row[0], tuple(row[1 : 1 + half]) == tuple(row[1 + half :]), row[1 + half] == 0) for row in rows]


def rewrite_groups(tx: Transaction, ids: Sequence[int]) -> None:
    """Set groups to what their snapshots say; those without any go."""
    columns = [name.removeprefix("g.") for name in _IS]
    should = [part.replace("g.id", "page_groups.id") for part in _SHOULD]
    wanted = ", ".join(f"{name} = {part}" for name, part in zip(columns, should, strict=True))
    has = "EXISTS (SELECT 1 FROM snapshots s WHERE s.group_id = page_groups.id)"
    tx.many(f"UPDATE page_groups SET {wanted} WHERE id = ? AND {has}", [(one,) for one in ids])  # noqa: S608
    tx.many(f"DELETE FROM page_groups WHERE id = ? AND NOT {has}", [(one,) for one in ids])  # noqa: S608


class Ungrouped(NamedTuple):
    """A page that belongs to no group."""

    id: int
    source_id: int
    url: str


def ungrouped(tx: Transaction, *, after: int, source_id: int | None, limit: int) -> list[Ungrouped]:
    """Return the next pages without a group, by id."""
    only, value = _only("source_id", source_id)
    rows = tx.execute(
        f"SELECT id, source_id, url FROM snapshots WHERE id > ? AND is_page AND group_id IS NULL{only}"  # noqa: S608
        " ORDER BY id LIMIT ?",
        (after, *value, limit),
    )
    return [Ungrouped(*row) for row in rows]


def put_group(tx: Transaction, rows: Sequence[tuple[int, int]]) -> None:
    """Give snapshots their group: (group, snapshot)."""
    tx.many("UPDATE snapshots SET group_id = ? WHERE id = ?", rows)


class Sighted(NamedTuple):
    """A capture and its day's key, for the rule of duplicates."""

    id: int
    url_hash: int
    captured_at: int


def captures_after(tx: Transaction, *, after: int, execution_id: int | None, limit: int) -> list[Sighted]:
    """Return the next captures that have a body, by id: of one execution, or of all."""
    only, value = _only("execution_id", execution_id)
    rows = tx.execute(
        f"SELECT id, url_hash, captured_at FROM snapshots WHERE id > ? AND body_hash IS NOT NULL{only}"  # noqa: S608
        " ORDER BY id LIMIT ?",
        (after, *value, limit),
    )
    return [Sighted(*row) for row in rows]


def duplicates_after(tx: Transaction, *, after: int, execution_id: int | None, limit: int) -> list[int]:
    """Return the next snapshots that count as duplicates, by id: of one execution, or of all."""
    only, value = _only("execution_id", execution_id)
    rows = tx.execute(
        f"SELECT id FROM snapshots WHERE id > ? AND canonical_id IS NOT NULL{only} ORDER BY id LIMIT ?",  # noqa: S608
        (after, *value, limit),
    )
    return [int(row[0]) for row in rows]


def clear_canonical(tx: Transaction, ids: Sequence[int]) -> None:
    """Let duplicates count as captures of their own."""
    tx.many("UPDATE snapshots SET canonical_id = NULL WHERE id = ?", [(one,) for one in ids])


class Unlinked(NamedTuple):
    """A page whose links nobody has stored."""

    id: int
    url: str
    url_hash: int
    document_id: int
    charset: str


def unlinked(tx: Transaction, *, after: int, execution_id: int | None, limit: int) -> list[Unlinked]:
    """Return the next good captures of HTML, by id, for whose address and text no link is stored."""
    only, value = _only("s.execution_id", execution_id)
    rows = tx.execute(
        "SELECT s.id, s.url, s.url_hash, s.document_id, d.charset FROM snapshots s"  # noqa: S608 - our own words
        " JOIN documents d ON d.id = s.document_id WHERE s.id > ? AND s.is_page AND s.record_type <> 'revisit'"
        f" AND s.status BETWEEN 200 AND 299 AND d.media_type LIKE '%html%'{only}"
        " AND NOT EXISTS (SELECT 1 FROM snapshots o JOIN page_links l ON l.snapshot_id = o.id"
        "  WHERE o.url_hash = s.url_hash AND o.document_id = s.document_id) ORDER BY s.id LIMIT ?",
        (after, *value, limit),
    )
    return [Unlinked(*row) for row in rows]
