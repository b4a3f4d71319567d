"""Database queries of search: pages and documents to index, the outbox, the hits to show, the link graph.

Everything is read in pages by key; only a rebuild and the link graph are linear in the size of the archive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import BindParameter, Select, and_, delete, func, insert, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from holdfast.clock import from_micros
from holdfast.db.engine import insert_into
from holdfast.db.models import (
    Document,
    DocumentText,
    IndexRun,
    LinkText,
    PageGroup,
    PageLink,
    PageSignal,
    SearchOutbox,
    SignalLink,
    SignalPage,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.db.prepared import PreparedLookup, PreparedSelect
from holdfast.db.raw import Transaction
from holdfast.withdrawals.visibility import (
    Mark,
    for_members,
    prepared_mark,
    public_source,
    visible,
    visible_source,
    withdrawn_captures,
)


class SearchPageRow(NamedTuple):
    id: int
    captured_at: datetime
    url: str
    document_id: int | None
    source_id: int
    status: int | None
    record_type: str
    media_type: str | None
    noindex: bool
    canonical_id: int | None
    noise: str | None
    group_hash: int | None
    language: str | None


def pages_between(session: Session, first: int, last: int, *, limit: int) -> list[SearchPageRow]:
    statement = (
        select(
            Snapshot.id,
            Snapshot.captured_at,
            Snapshot.url,
            Snapshot.document_id,
            Snapshot.source_id,
            Snapshot.status,
            Snapshot.record_type,
            Snapshot.media_type,
            Snapshot.noindex,
            Snapshot.canonical_id,
            Snapshot.noise,
            PageGroup.url_hash,
            Document.language,
        )
        .outerjoin(PageGroup, PageGroup.id == Snapshot.group_id)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Snapshot.id >= first, Snapshot.id <= last, Snapshot.is_page)
        .order_by(Snapshot.id)
        .limit(limit)
    )
    return [SearchPageRow._make(row) for row in session.execute(statement)]


def named_pages(session: Session, hashes: Sequence[int]) -> dict[int, list[tuple[str, str | None]]]:
    """Return URL and language of the newest good capture of each group, or else the newest one, across all sources."""
    statement = (
        select(PageGroup.url_hash, Snapshot.url, Document.language)
        .join(Snapshot, Snapshot.id == func.coalesce(PageGroup.latest_ok_id, PageGroup.latest_id))
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(PageGroup.url_hash.in_(hashes))
        .order_by(PageGroup.url_hash, Snapshot.captured_at.desc(), Snapshot.id.desc())
    )
    found: dict[int, list[tuple[str, str | None]]] = {}
    for group_hash, url, language in session.execute(statement):
        found.setdefault(group_hash, []).append((url, language))
    return found


def spellings_of(session: Session, group_hash: int) -> list[str]:
    """Return all URLs under which a group was captured. Reads all its captures: few groups have several URLs."""
    statement = (
        select(Snapshot.url)
        .join(PageGroup, PageGroup.id == Snapshot.group_id)
        .where(PageGroup.url_hash == group_hash, Snapshot.is_page)
        .distinct()
    )
    return list(session.scalars(statement))


def named_by_source(session: Session, source_id: int, *, after: int, limit: int) -> tuple[list[int], int] | None:
    """Return the group hashes of pages that captures of a source link to with text, and the last of these captures.

    Reads `limit` link texts at a time; None at the end.
    """
    statement = (
        select(Snapshot.id, LinkText.to_hash)
        .join(LinkText, LinkText.snapshot_id == Snapshot.id)
        .where(Snapshot.source_id == source_id, Snapshot.id > after)
        .order_by(Snapshot.id, LinkText.to_hash)
    )
    rows = session.execute(statement.limit(limit)).all()
    if not rows:
        return None
    # The last capture may have been cut: all of its words are read, which are a few hundred at most.
    last = rows[-1][0]
    rest = session.scalars(select(LinkText.to_hash).where(LinkText.snapshot_id == last))
    return sorted({row[1] for row in rows} | set(rest)), last


def id_bounds(session: Session) -> tuple[int, int] | None:
    low = session.scalar(select(Snapshot.id).order_by(Snapshot.id).limit(1))
    high = session.scalar(select(Snapshot.id).order_by(Snapshot.id.desc()).limit(1))
    return None if low is None or high is None else (low, high)


class DocumentRow(NamedTuple):
    id: int
    title: str | None
    description: str | None
    snippet: str | None
    headings: str | None
    terms: str | None
    language: str | None
    says_archived: bool
    author: str | None
    published_at: datetime | None
    page_type: str | None
    packed: bytes | None


def portions(session: Session, ids: Sequence[int], *, most_bytes: int) -> list[list[int]]:
    """Return the existing ones of these documents by id, in portions of at most `most_bytes` of packed text;
    a longer text is a portion of its own.
    """
    size = func.coalesce(func.length(DocumentText.text), 0)
    sized = select(Document.id, size).outerjoin(DocumentText, DocumentText.document_id == Document.id)
    found, total = list[list[int]](), 0
    for document_id, length in session.execute(sized.where(Document.id.in_(ids)).order_by(Document.id)):
        total += length
        if not found or total > most_bytes:
            found.append([])
            total = length
        found[-1].append(document_id)
    return found


def documents_with_text(session: Session, ids: Sequence[int]) -> list[DocumentRow]:
    statement = (
        select(
            Document.id,
            Document.title,
            Document.description,
            Document.snippet,
            Document.headings,
            Document.terms,
            Document.language,
            Document.says_archived,
            Document.author,
            Document.published_at,
            Document.page_type,
            DocumentText.text,
        )
        .outerjoin(DocumentText, DocumentText.document_id == Document.id)
        .where(Document.id.in_(ids))
        .order_by(Document.id)
    )
    return [DocumentRow._make(row) for row in session.execute(statement)]


# The row that says whose the outbox is; changes are numbered from 1 on.
_OWNER = 0


class OutboxOwner(NamedTuple):
    identity: str
    home: str
    host: str
    machine: str
    """Id of its kernel's boot and of its process's view of the file systems."""


class OutboxHeld(NamedTuple):
    owner: OutboxOwner
    seen_at: datetime


_OWNED: Final = select(SearchOutbox.refs, SearchOutbox.created_at).where(SearchOutbox.id == _OWNER)


def outbox_owner(session: Session, *, for_update: bool = False) -> OutboxHeld | None:
    """Return the owner of the outbox, or None; `for_update` locks it until the transaction ends."""
    row = session.connection().execute(_OWNED.with_for_update() if for_update else _OWNED).one_or_none()
    if row is None:
        return None
    return OutboxHeld(OutboxOwner(*(str(row[0].get(name)) for name in OutboxOwner._fields)), row[1])


def take_outbox(session: Session, owner: OutboxOwner, *, now: datetime, expected: OutboxOwner | None) -> bool:
    """Claim the outbox, or update its owner's activity; False without effect if the owner is not `expected`."""
    row = {"id": _OWNER, "kind": "owner", "refs": owner._asdict(), "created_at": now}
    if expected is None:
        new = insert_into(session, SearchOutbox).values(row).on_conflict_do_nothing().returning(SearchOutbox.id)
        return session.execute(new).one_or_none() is not None
    held = outbox_owner(session, for_update=True)
    if held is None or held.owner != expected:
        return False
    session.execute(update(SearchOutbox).where(SearchOutbox.id == _OWNER).values(refs=row["refs"], created_at=now))
    return True


def oldest_waiting(session: Session) -> datetime | None:
    """Return the time of the oldest pending change; None if there are none."""
    wanted = select(SearchOutbox.created_at).where(SearchOutbox.id > _OWNER).order_by(SearchOutbox.id).limit(1)
    return session.scalar(wanted)


def waiting(session: Session, *, limit: int) -> list[SearchOutbox]:
    wanted = select(SearchOutbox).where(SearchOutbox.id > _OWNER)
    return list(session.scalars(wanted.order_by(SearchOutbox.id).limit(limit)))


def waiting_ids(session: Session) -> list[int]:
    return list(session.scalars(select(SearchOutbox.id).where(SearchOutbox.id > _OWNER).order_by(SearchOutbox.id)))


def waiting_count(session: Session, *, most: int = 10_000) -> int:
    counted = select(SearchOutbox.id).where(SearchOutbox.id > _OWNER).limit(most).subquery()
    return session.scalar(select(func.count()).select_from(counted)) or 0


def files_wait(session: Session) -> bool:
    """Return True if a sealed file has not been indexed yet; reads one row of an index of such files."""
    waiting = select(WarcFile.id).where(WarcFile.state == "sealed", WarcFile.index_state.in_(("pending", "running")))
    return session.scalar(waiting.limit(1)) is not None


def taken_in(session: Session, ids: Sequence[int]) -> None:
    """Delete outbox rows by id: one that committed late with a smaller id is still there for the next drain."""
    session.execute(delete(SearchOutbox).where(SearchOutbox.id.in_(ids)))


def taken_in_until(session: Session, change: int, snapshot_id: int) -> None:
    """Record up to which snapshot a change of visibility is in the index."""
    session.execute(update(SearchOutbox).where(SearchOutbox.id == change).values(refs={"after": snapshot_id}))


_HIDES: Final = and_(SearchOutbox.kind.in_(("withdrawal", "visibility")), SearchOutbox.id > _OWNER)


def waiting_takedowns(session: Session) -> dict[int, list[int]]:
    """Return, by pending change, the pages whose link texts are hidden by a takedown, or by a source now for members,
    and are still in the index: the hashes of their groups.
    """
    found: dict[int, list[int]] = {}
    for row in session.scalars(select(SearchOutbox).where(_HIDES)):
        if row.kind == "withdrawal":
            found[row.id] = row.refs.get("hashes", []) if row.refs.get("hidden") else []
        else:
            named = select(LinkText.to_hash).join(Snapshot, Snapshot.id == LinkText.snapshot_id).distinct()
            of_source = Snapshot.source_id == row.first_id, ~public_source(Snapshot.source_id)
            found[row.id] = list(session.scalars(named.where(*of_source)))
    return {change: hashes for change, hashes in found.items() if hashes}


def waiting_changes(session: Session) -> set[int]:
    """Return the pending changes that may hide link texts."""
    return set(session.scalars(select(SearchOutbox.id).where(_HIDES)))


def withdrawn_ids(session: Session) -> list[int]:
    """Return the ids of all snapshots under a takedown, of their own or of their page."""
    return sorted({row[0] for question in withdrawn_captures(Snapshot.id) for row in session.execute(question)})


class HitRow(NamedTuple):
    id: int
    url: str
    captured_at: datetime
    status: int | None
    media_type: str | None
    source_id: int
    execution_id: int
    backend: str
    fidelity: str
    document_id: int | None
    title: str | None
    snippet: str | None
    language: str | None
    group_url: str | None
    noise: str | None
    for_members: bool
    """True if only members may see it."""


# The statements of a result page are put together once and run on a raw connection: that takes 0.4 ms, by way of a
# session it took 1.8. A page has twenty results, unless more are asked for.
_LENGTHS: Final = (20, 100)
_SOURCES: Final = PreparedSelect(select(Source.id, Source.code, Source.name).where(visible_source(Source.id)))
_OWNER_NOW: Final = PreparedSelect(_OWNED)


def _hits_of(ids: Sequence[BindParameter[Any]]) -> Select[*tuple[Any, ...]]:
    return (
        select(
            Snapshot.id,
            Snapshot.url,
            Snapshot.captured_at,
            Snapshot.status,
            Snapshot.media_type,
            Snapshot.source_id,
            Snapshot.execution_id,
            Snapshot.backend,
            Snapshot.fidelity,
            Snapshot.document_id,
            Document.title,
            Document.snippet,
            Document.language,
            PageGroup.url,
            Snapshot.noise,
            for_members(),
        )
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .outerjoin(PageGroup, PageGroup.id == Snapshot.group_id)
        .where(Snapshot.id.in_(ids), ~Snapshot.noindex, *visible())
    )


def _texts_of(ids: Sequence[BindParameter[Any]]) -> Select[*tuple[Any, ...]]:
    return (
        select(DocumentText.document_id, DocumentText.text, Document.headings)
        .join(Document, Document.id == DocumentText.document_id)
        .where(DocumentText.document_id.in_(ids))
    )


_HITS: Final = PreparedLookup(_hits_of, _LENGTHS)
_TEXTS: Final = PreparedLookup(_texts_of, _LENGTHS)


class ResultRows:
    def __init__(self, tx: Transaction, dialect: str) -> None:
        self._tx, self._dialect = tx, dialect

    def mark(self) -> Mark:
        return prepared_mark(self._tx, self._dialect)

    def outbox_owner(self) -> OutboxHeld | None:
        rows = _OWNER_NOW.rows(self._tx, self._dialect)
        if not rows:
            return None
        refs, seen_at = rows[0]
        # As the database keeps it: SQLite as a text.
        fields = json.loads(refs) if isinstance(refs, str) else refs
        return OutboxHeld(OutboxOwner(*(str(fields.get(name)) for name in OutboxOwner._fields)), from_micros(seen_at))

    def sources(self) -> dict[int, tuple[str, str]]:
        return {row[0]: (row[1], row[2]) for row in _SOURCES.rows(self._tx, self._dialect)}

    def hits(self, ids: Sequence[int]) -> dict[int, HitRow]:
        """Return these snapshots by id, without missing ones and those under a new takedown."""
        found = {}
        for row in _HITS.rows(self._tx, self._dialect, ids):
            found[row[0]] = HitRow._make((*row[:2], from_micros(row[2]), *row[3:-1], bool(row[-1])))
        return found

    def texts(self, document_ids: Sequence[int]) -> dict[int, tuple[bytes, str | None]]:
        """Return the packed text and the headings of these documents."""
        return {row[0]: (row[1], row[2]) for row in _TEXTS.rows(self._tx, self._dialect, document_ids)}


def links(session: Session, *, chunk: int) -> Iterator[Sequence[tuple[int, int]]]:
    """Yield all edges as pairs of group hashes, from and to, in chunks: of captures, then of pages without any."""
    yield from _edges(session, PageLink.snapshot_id, PageLink, chunk)
    yield from _edges(session, SignalLink.page_id, SignalLink, chunk)


def _edges(
    session: Session, owner: InstrumentedAttribute[int], table: type[PageLink] | type[SignalLink], chunk: int
) -> Iterator[Sequence[tuple[int, int]]]:
    after: tuple[int, int] | None = None
    while True:
        statement = select(owner, table.to_hash, table.from_hash)
        if after is not None:
            owner_id, to_hash = after
            statement = statement.where((owner > owner_id) | ((owner == owner_id) & (table.to_hash > to_hash))).where(
                owner >= owner_id
            )
        rows = session.execute(statement.order_by(owner, table.to_hash).limit(chunk)).all()
        if not rows:
            return
        yield [(row[2], row[1]) for row in rows]
        after = (rows[-1][0], rows[-1][1])


class SignalRow(NamedTuple):
    url_hash: int
    inlinks: int
    outlinks: int
    pagerank: float


def signals(session: Session, *, after: int, limit: int) -> list[SignalRow]:
    statement = (
        select(PageSignal.url_hash, PageSignal.inlinks, PageSignal.outlinks, PageSignal.pagerank)
        .where(PageSignal.url_hash > after)
        .order_by(PageSignal.url_hash)
        .limit(limit)
    )
    return [SignalRow._make(row) for row in session.execute(statement)]


def put_signals(session: Session, rows: Sequence[SignalRow], *, computed_at: datetime) -> None:
    session.execute(delete(PageSignal).where(PageSignal.url_hash.in_([row.url_hash for row in rows])))
    values: list[dict[str, Any]] = [{**row._asdict(), "computed_at": computed_at} for row in rows]
    session.execute(insert(PageSignal), values)


def drop_signals(session: Session, url_hashes: Sequence[int]) -> None:
    session.execute(delete(PageSignal).where(PageSignal.url_hash.in_(url_hashes)))


def links_figure(session: Session) -> int:
    """Return a number that grows with the link graph: indexed pages plus pages stored for their signals.

    Reads one row per WARC file, not one per link.
    """
    indexed = session.scalar(select(func.coalesce(func.sum(IndexRun.pages), 0))) or 0
    return int(indexed) + (session.scalar(select(func.max(SignalPage.page_id))) or 0)
