"""What search asks of the database: pages and documents to take in, the outbox, the hits to show, the link graph.

Everything is read in pages by key; nothing here is linear in the archive but a rebuild and the link graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import BindParameter, Select, delete, func, insert, select, update
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
    visible,
    visible_source,
    withdrawn_captures,
)


class SearchPageRow(NamedTuple):
    """One page as the columns take it in."""

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
    """Of its document."""


def pages_between(session: Session, first: int, last: int, *, limit: int) -> list[SearchPageRow]:
    """Return the pages with ids in a range, in order of id, at most this many."""
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


class NamedPage(NamedTuple):
    """The newest good capture of a page that links name; its newest one if none is good."""

    group_hash: int
    url: str
    language: str | None


def named_pages(session: Session, hashes: Sequence[int]) -> list[NamedPage]:
    """Return the newest good capture of each of these groups, or else the newest, of all sources."""
    statement = (
        select(PageGroup.url_hash, Snapshot.url, Document.language)
        .join(Snapshot, Snapshot.id == func.coalesce(PageGroup.latest_ok_id, PageGroup.latest_id))
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(PageGroup.url_hash.in_(hashes))
        .order_by(PageGroup.url_hash, Snapshot.captured_at.desc(), Snapshot.id.desc())
    )
    return [NamedPage._make(row) for row in session.execute(statement)]


def spellings_of(session: Session, group_hash: int) -> list[str]:
    """Return every address under which a group was captured. Reads all its captures: few groups have several."""
    statement = (
        select(Snapshot.url)
        .join(PageGroup, PageGroup.id == Snapshot.group_id)
        .where(PageGroup.url_hash == group_hash, Snapshot.is_page)
        .distinct()
    )
    return list(session.scalars(statement))


class NamedBySource(NamedTuple):
    """Pages that captures of a source name with the words of a link, by the hashes of their groups."""

    hashes: list[int]
    after: int
    """The last capture that was looked at."""


def named_by_source(session: Session, source_id: int, *, after: int, limit: int) -> NamedBySource | None:
    """Return what captures of a source name, behind one of them, so many words at a time; None at the end."""
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
    return NamedBySource(sorted({row[1] for row in rows} | set(rest)), last)


def id_bounds(session: Session) -> tuple[int, int] | None:
    """Return the smallest and the largest snapshot id; None if there are none."""
    low = session.scalar(select(Snapshot.id).order_by(Snapshot.id).limit(1))
    high = session.scalar(select(Snapshot.id).order_by(Snapshot.id.desc()).limit(1))
    return None if low is None or high is None else (low, high)


class DocumentRow(NamedTuple):
    """One document with its packed text, as the index takes it in."""

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
    """Return those of these documents that are there, by id, in portions whose packed texts have at most so many bytes;
    a longer text is a portion of its own."""
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
    """Return these documents, those that are there, in order of id."""
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
    """The index that takes in the changes of this database."""

    identity: str
    """The random id in its data directory."""
    home: str
    host: str
    """What its machine was called: only for messages."""
    machine: str
    """What its process saw of which kernel."""


class OutboxHeld(NamedTuple):
    """Whose the outbox is, and when it was last seen at work."""

    owner: OutboxOwner
    seen_at: datetime


_OWNED: Final = select(SearchOutbox.refs, SearchOutbox.created_at).where(SearchOutbox.id == _OWNER)


def outbox_owner(session: Session, *, for_update: bool = False) -> OutboxHeld | None:
    """Return whose the outbox is; None while no index has it. `for_update` keeps it so until the transaction ends."""
    row = session.connection().execute(_OWNED.with_for_update() if for_update else _OWNED).one_or_none()
    if row is None:
        return None
    return OutboxHeld(OutboxOwner(*(str(row[0].get(name)) for name in OutboxOwner._fields)), row[1])


def take_outbox(session: Session, owner: OutboxOwner, *, now: datetime, expected: OutboxOwner | None) -> bool:
    """Make the outbox an index's, or note that it is at work; False, and nothing is done, if it is not `expected`'s."""
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
    """Return since when the oldest of the changes waits; None if none does."""
    wanted = select(SearchOutbox.created_at).where(SearchOutbox.id > _OWNER).order_by(SearchOutbox.id).limit(1)
    return session.scalar(wanted)


def waiting(session: Session, *, limit: int) -> list[SearchOutbox]:
    """Return what the index has not taken in yet, oldest first."""
    wanted = select(SearchOutbox).where(SearchOutbox.id > _OWNER)
    return list(session.scalars(wanted.order_by(SearchOutbox.id).limit(limit)))


def waiting_ids(session: Session) -> list[int]:
    """Return the ids of all changes that wait."""
    return list(session.scalars(select(SearchOutbox.id).where(SearchOutbox.id > _OWNER).order_by(SearchOutbox.id)))


def waiting_count(session: Session, *, most: int = 10_000) -> int:
    """Return how many changes wait, counted no further than this."""
    counted = select(SearchOutbox.id).where(SearchOutbox.id > _OWNER).limit(most).subquery()
    return session.scalar(select(func.count()).select_from(counted)) or 0


def files_wait(session: Session) -> bool:
    """Return whether a sealed file has not been indexed yet; the index of such files is asked for one."""
    waiting = select(WarcFile.id).where(WarcFile.state == "sealed", WarcFile.index_state.in_(("pending", "running")))
    return session.scalar(waiting.limit(1)) is not None


def taken_in(session: Session, ids: Sequence[int]) -> None:
    """Strike out outbox rows by id: one that committed late with a smaller id is still there for the next drain."""
    session.execute(delete(SearchOutbox).where(SearchOutbox.id.in_(ids)))


def withdrawn_ids(session: Session) -> list[int]:
    """Return the ids of all withdrawn snapshots, by themselves and with their page."""
    return sorted({row[0] for question in withdrawn_captures(Snapshot.id) for row in session.execute(question)})


class HitRow(NamedTuple):
    """What a shown result needs of its snapshot and document."""

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
    """Whether not everybody may see it."""


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


class ShownText(NamedTuple):
    """What passages are taken from: a text as it is packed, and the headings that stand in it, one a line."""

    packed: bytes
    headings: str | None


class ResultRows:
    """Asks what a page of results needs, in one transaction."""

    def __init__(self, tx: Transaction, dialect: str) -> None:
        self._tx, self._dialect = tx, dialect

    def mark(self) -> Mark:
        """Return what decides what the viewer may see."""
        return prepared_mark(self._tx, self._dialect)

    def outbox_owner(self) -> OutboxHeld | None:
        """Return whose the outbox is; None while no index has it."""
        rows = _OWNER_NOW.rows(self._tx, self._dialect)
        if not rows:
            return None
        refs, seen_at = rows[0]
        # As the database keeps it: SQLite as a text.
        told = json.loads(refs) if isinstance(refs, str) else refs
        return OutboxHeld(OutboxOwner(*(str(told.get(name)) for name in OutboxOwner._fields)), from_micros(seen_at))

    def sources(self) -> dict[int, tuple[str, str]]:
        """Return the code and the name of all sources that the viewer may see."""
        return {row[0]: (row[1], row[2]) for row in _SOURCES.rows(self._tx, self._dialect)}

    def hits(self, ids: Sequence[int]) -> dict[int, HitRow]:
        """Return these snapshots by id; what was withdrawn meanwhile, or is gone, is left out."""
        found = {}
        for row in _HITS.rows(self._tx, self._dialect, ids):
            found[row[0]] = HitRow._make((*row[:2], from_micros(row[2]), *row[3:-1], bool(row[-1])))
        return found

    def texts(self, document_ids: Sequence[int]) -> dict[int, ShownText]:
        """Return the texts of these documents."""
        return {row[0]: ShownText(row[1], row[2]) for row in _TEXTS.rows(self._tx, self._dialect, document_ids)}


def links(session: Session, *, chunk: int) -> Iterator[Sequence[tuple[int, int]]]:
    """Yield all edges as pairs of group hashes, from and to, a chunk at a time: of captures, then of pages without."""
    yield from _edges(session, PageLink.snapshot_id, PageLink, chunk)
    yield from _edges(session, SignalLink.page_id, SignalLink, chunk)


def _edges(
    session: Session, owner: InstrumentedAttribute[int], table: type[PageLink] | type[SignalLink], chunk: int
) -> Iterator[Sequence[tuple[int, int]]]:
    """Yield the edges of one table by its key, which is the owner of a link and where it leads."""
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
    """What the link graph says of one group's address."""

    url_hash: int
    inlinks: int
    outlinks: int
    pagerank: float


def signals(session: Session, *, after: int, limit: int) -> list[SignalRow]:
    """Return signals by hash, those after one, at most this many."""
    statement = (
        select(PageSignal.url_hash, PageSignal.inlinks, PageSignal.outlinks, PageSignal.pagerank)
        .where(PageSignal.url_hash > after)
        .order_by(PageSignal.url_hash)
        .limit(limit)
    )
    return [SignalRow._make(row) for row in session.execute(statement)]


def put_signals(session: Session, rows: Sequence[SignalRow], *, computed_at: datetime) -> None:
    """Replace the signals of these addresses."""
    session.execute(delete(PageSignal).where(PageSignal.url_hash.in_([row.url_hash for row in rows])))
    values: list[dict[str, Any]] = [{**row._asdict(), "computed_at": computed_at} for row in rows]
    session.execute(insert(PageSignal), values)


def drop_signals(session: Session, url_hashes: Sequence[int]) -> None:
    """Remove the signals of these addresses."""
    session.execute(delete(PageSignal).where(PageSignal.url_hash.in_(url_hashes)))


def links_figure(session: Session) -> int:
    """Return a figure that grows with the link graph: pages that were indexed, and pages of which signals are kept.

    A row a WARC file is read, not one a link.
    """
    indexed = session.scalar(select(func.coalesce(func.sum(IndexRun.pages), 0))) or 0
    return int(indexed) + (session.scalar(select(func.max(SignalPage.page_id))) or 0)
