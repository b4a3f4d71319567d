"""Repair of data derived from snapshots: page groups, duplicates, links of pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast.clock import Clock, to_micros
from holdfast.db.audit_events import append_event
from holdfast.db.engine import Database
from holdfast.db.models import Source
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.errors import HoldfastError
from holdfast.index.capture import OutLink, identify, outlinks
from holdfast.index.queries import open_stored
from holdfast.index.writing import (
    DAY,
    LinkingPage,
    LinkTexts,
    OnRows,
    index_transaction,
    put_links,
    queue_snapshots,
    tell_named,
)
from holdfast.index.writing_queries import (
    GROUP_COUNT,
    GROUP_FIGURES,
    put_groups,
    settle_duplicates,
    unsettled,
)
from holdfast.parse.child import ParseChild
from holdfast.parse.document import DocumentKind, DocumentReading, parse_document
from holdfast.parse.page import looks_pathological
from holdfast.sources.extraction import extraction_rules
from holdfast.values import dataclass
from holdfast.withdrawals.visibility import any_snapshot

_FIGURES = {"snapshot_count": GROUP_COUNT, **GROUP_FIGURES}


def _only(column: str, value: int | None) -> tuple[str, tuple[int, ...]]:
    return ("", ()) if value is None else (f" AND {column} = ?", (value,))


def groups_after(tx: Transaction, *, after: int, source_id: int | None, limit: int) -> list[tuple[int, bool, bool]]:
    """Return the id of each group, whether its figures are correct, and whether it is empty."""
    only, value = _only("source_id", source_id)
    rows = tx.execute(
        # Qualify it below: PostgreSQL names the columns of the figures `id`, too, and would find the order ambiguous.
        f"SELECT id, {', '.join(_FIGURES)}, {', '.join(_FIGURES.values())} FROM page_groups"  # noqa: S608 - our own SQL
        f" WHERE page_groups.id > ?{only} ORDER BY page_groups.id LIMIT ?",
        (after, *value, limit),
    )
    half = len(_FIGURES)
    return [(row[0], tuple(row[1 : 1 + half]) == tuple(row[1 + half :]), row[1 + half] == 0) for row in rows]


def rewrite_groups(tx: Transaction, ids: Sequence[int]) -> None:
    wanted = ", ".join(f"{name} = {figure}" for name, figure in _FIGURES.items())
    has = "EXISTS (SELECT 1 FROM snapshots s WHERE s.group_id = page_groups.id)"
    tx.many(f"UPDATE page_groups SET {wanted} WHERE id = ? AND {has}", [(one,) for one in ids])  # noqa: S608
    tx.many(f"DELETE FROM page_groups WHERE id = ? AND NOT {has}", [(one,) for one in ids])  # noqa: S608


def ungrouped(tx: Transaction, *, after: int, source_id: int | None, limit: int) -> list[tuple[int, int, str]]:
    """Return (id, source, URL) of pages without a group."""
    only, value = _only("source_id", source_id)
    rows = tx.execute(
        f"SELECT id, source_id, url FROM snapshots WHERE id > ? AND is_page AND group_id IS NULL{only}"  # noqa: S608
        " ORDER BY id LIMIT ?",
        (after, *value, limit),
    )
    return [(snapshot_id, source, url) for snapshot_id, source, url in rows]


def put_group(tx: Transaction, rows: Sequence[tuple[int, int]]) -> None:
    tx.many("UPDATE snapshots SET group_id = ? WHERE id = ?", rows)


def captures_after(tx: Transaction, *, after: int, execution_id: int | None, limit: int) -> list[tuple[int, int, int]]:
    """Return (id, URL hash, time) of captures with a body."""
    only, value = _only("execution_id", execution_id)
    rows = tx.execute(
        f"SELECT id, url_hash, captured_at FROM snapshots WHERE id > ? AND body_hash IS NOT NULL{only}"  # noqa: S608
        " ORDER BY id LIMIT ?",
        (after, *value, limit),
    )
    return [(snapshot_id, url_hash, captured_at) for snapshot_id, url_hash, captured_at in rows]


def duplicates_after(tx: Transaction, *, after: int, execution_id: int | None, limit: int) -> list[int]:
    only, value = _only("execution_id", execution_id)
    rows = tx.execute(
        f"SELECT id FROM snapshots WHERE id > ? AND canonical_id IS NOT NULL{only} ORDER BY id LIMIT ?",  # noqa: S608
        (after, *value, limit),
    )
    return [int(row[0]) for row in rows]


def clear_canonical(tx: Transaction, ids: Sequence[int]) -> None:
    tx.many("UPDATE snapshots SET canonical_id = NULL WHERE id = ?", [(one,) for one in ids])


class Unlinked(NamedTuple):
    id: int
    url: str
    url_hash: int
    document_id: int
    charset: str


def unlinked(tx: Transaction, *, after: int, execution_id: int | None, limit: int) -> list[Unlinked]:
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


_BATCH = 200


@dataclass(slots=True, kw_only=True)
class Groups:
    looked: int = 0
    wrong: int = 0
    empty: int = 0


def rebuild_groups(raw_db: RawDatabase, *, source_id: int | None = None, apply: bool, seen: OnRows) -> Groups:
    """Check every group against its snapshots; with `apply`, rewrite wrong ones, a few at a time."""
    found = Groups()
    after = 0
    while True:
        with raw_db.read() as tx:
            page = groups_after(tx, after=after, source_id=source_id, limit=_BATCH)
        if not page:
            return found
        after = page[-1][0]
        wrong = [group_id for group_id, is_right, _ in page if not is_right]
        found.looked += len(page)
        found.wrong += len(wrong)
        found.empty += sum(is_empty for _, _, is_empty in page)
        if wrong and apply:
            # Take a few groups per transaction: indexers wait for it, but not for long.
            with index_transaction(raw_db) as tx:
                rewrite_groups(tx, wrong)
        seen(found.looked)


def group_pages(raw_db: RawDatabase, clock: Clock, *, source_id: int | None = None, apply: bool, seen: OnRows) -> int:
    """Assign pages without a group to theirs, and return their number; without `apply`, only count them."""
    total, after = 0, 0
    while True:
        with raw_db.read() as tx:
            page = ungrouped(tx, after=after, source_id=source_id, limit=_BATCH)
        if not page:
            return total
        after = page[-1][0]
        total += len(page)
        if apply:
            with index_transaction(raw_db) as tx:
                _group(tx, page, now=to_micros(clock.now()))
        seen(total)


def _group(tx: Transaction, page: list[tuple[int, int, str]], *, now: int) -> None:
    touched: set[int] = set()
    for source_id in sorted({of for _, of, _ in page}):
        known = {snapshot_id: identify(url) for snapshot_id, of, url in page if of == source_id}
        ids = put_groups(tx, source_id, {name.group_hash: name.group for name in known.values()}, moment=now)
        put_group(tx, [(ids[name.group_hash], snapshot_id) for snapshot_id, name in known.items()])
        touched.update(ids.values())
    rewrite_groups(tx, sorted(touched))
    queue_snapshots(tx, (snapshot_id for snapshot_id, _, _ in page), now=now)


_DUPLICATES_BATCH = 500


@dataclass(slots=True, kw_only=True)
class Duplicates:
    looked: int = 0
    changed: int = 0


def dedupe(raw_db: RawDatabase, clock: Clock, *, execution_id: int | None, apply: bool, seen: OnRows) -> Duplicates:
    found = Duplicates()
    after = 0
    while True:
        with raw_db.read() as tx:
            page = captures_after(tx, after=after, execution_id=execution_id, limit=_DUPLICATES_BATCH)
            days = sorted({(url_hash, at - at % DAY) for _, url_hash, at in page})
            wrong = unsettled(tx, days, day_micros=DAY) if page else []
        if not page:
            return found
        after = page[-1][0]
        found.looked += len(page)
        if wrong and apply:
            with index_transaction(raw_db) as tx:
                wrong = settle_duplicates(tx, days, day_micros=DAY)
                queue_snapshots(tx, wrong, now=to_micros(clock.now()))
        # Without writing, a day that spans two slices of this walk occurs twice.
        found.changed += len(wrong) if apply else len({one[0] for one in page}.intersection(wrong))
        seen(found.looked)


def restore(raw_db: RawDatabase, clock: Clock, *, execution_id: int | None, apply: bool, seen: OnRows) -> Duplicates:
    """Restore duplicates of an execution, or all, to captures of their own; writes to the audit log."""
    found = Duplicates()
    after = 0
    while True:
        with raw_db.read() as tx:
            page = duplicates_after(tx, after=after, execution_id=execution_id, limit=_DUPLICATES_BATCH)
        if not page:
            break
        after = page[-1]
        found.looked += len(page)
        if apply:
            with index_transaction(raw_db) as tx:
                clear_canonical(tx, page)
                queue_snapshots(tx, page, now=to_micros(clock.now()))
            found.changed += len(page)
        seen(found.looked)
    if found.changed:
        which = "all executions" if execution_id is None else f"execution {execution_id}"
        with raw_db.write() as tx:
            append_event(tx, clock, action="snapshot.dedup_undone", subject=which, detail={"snapshots": found.changed})
    return found


_LINKS_BATCH = 50
_BODY_BYTES = 32 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class Linked:
    pages: int = 0
    links: int = 0
    failed: dict[int, str] = field(default_factory=dict)


class LinkReader:
    """Extracts links again. Used by one thread; the caller owns the child process, for pathological pages."""

    def __init__(self, database: Database, raw_db: RawDatabase, home: Path, child: ParseChild, *, clock: Clock) -> None:
        self._database, self._raw_db, self._home, self._child = database, raw_db, home, child
        self._clock = clock

    def backfill(self, *, execution_id: int | None, seen: OnRows) -> Linked:
        """Store the links of every successful HTML capture without any, once for each URL and text."""
        done = Linked()
        after = 0
        while True:
            with self._raw_db.read() as tx:
                page = unlinked(tx, after=after, execution_id=execution_id, limit=_LINKS_BATCH)
            if not page:
                return done
            after = page[-1].id
            # Links are stored once for each address and document, with the earliest capture.
            first = {(one.url_hash, one.document_id): one for one in reversed(page)}
            self._store(list(first.values()), done)
            seen(done.pages)

    def _store(self, pages: Sequence[Unlinked], done: Linked) -> None:
        read: list[LinkingPage] = []
        for page in pages:
            own = identify(page.url).group_hash
            try:
                with self._database.read() as session:
                    found = self._links(session, page, own)
            except HoldfastError as exc:
                done.failed[page.id] = str(exc)
                continue
            read.append(LinkingPage(page.id, own, page.url, found))
        with index_transaction(self._raw_db) as tx:
            tell_named(tx, put_links(tx, read, LinkTexts().new(read)), now=to_micros(self._clock.now()))
        done.pages += len(read)
        done.links += sum(len(page.links) for page in read)

    def _links(self, session: Session, page: Unlinked, own: int) -> list[OutLink]:
        snapshot = any_snapshot(session, page.id)
        assert snapshot is not None
        with open_stored(session, self._home, snapshot) as stored:
            body = stored.content(_BODY_BYTES)
        parse = self._child.read if looks_pathological(body) else parse_document
        reading = DocumentReading(
            kind=DocumentKind.HTML.value, media_type=snapshot.media_type, charset=page.charset, url=page.url
        )
        source = session.get(Source, snapshot.source_id)
        if source is not None and (template := extraction_rules(source.config)):
            reading["template"] = template
        parsed = parse(body, **reading)
        return outlinks(page.url, parsed.base, parsed.hrefs, own_hash=own)
