"""Queries and updates for noise detection. Each query is a few seeks, whatever the size of the archive."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session, aliased

from holdfast.db.engine import insert_into
from holdfast.db.models import (
    Document,
    DocumentText,
    Execution,
    Job,
    ManualLabel,
    NoiseQueue,
    NoiseSuspect,
    NoiseVerdict,
    SearchOutbox,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.index.queries import is_ok, unpack_text
from holdfast.index.writing import ranges
from holdfast.records import Operator, record
from holdfast.warc.record import ORDINALS
from holdfast.withdrawals.visibility import of_page, visible

_LAST = (1 << 63) - 1


Turn = tuple[int, int, int]
"""A range in the queue: its id, and the first and last id of its captures."""


def next_turn(session: Session, *, place: int = 0) -> Turn | None:
    """Return the next range to classify, `place` ranges later in the queue; None past the end.

    Ranges queued by a program update come last, the newest files first.
    """
    turn = select(NoiseQueue.id, NoiseQueue.first_id, NoiseQueue.last_id).offset(place).limit(1)
    row = session.execute(turn.where(~NoiseQueue.late).order_by(NoiseQueue.id)).one_or_none()
    if row is None:
        row = session.execute(turn.where(NoiseQueue.late).order_by(NoiseQueue.id.desc())).one_or_none()
    return None if row is None else (row[0], row[1], row[2])


def is_waiting(session: Session) -> bool:
    return next_turn(session) is not None


def edition_waits(session: Session, edition_id: int) -> bool:
    files = (
        select(WarcFile.id)
        .join(Execution, Execution.id == WarcFile.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .where(Job.edition_id == edition_id)
        .subquery()
    )
    first = files.c.id * ORDINALS
    # Ids start with the number of their file, and a range covers one file: one seek per range.
    waits = exists().where(NoiseQueue.first_id >= first, NoiseQueue.first_id < first + ORDINALS)
    return session.scalar(select(files.c.id).where(waits).limit(1)) is not None


def take(session: Session, turn: Turn, *, until: int) -> bool:
    """Remove a turn's captures up to an id from the queue; False if another process classified them meanwhile."""
    number, first, last = turn
    # Compare the bounds, too: SQLite reuses the ids of an emptied queue.
    same = NoiseQueue.id == number, NoiseQueue.first_id == first, NoiseQueue.last_id == last
    if until >= last:
        done = session.execute(delete(NoiseQueue).where(*same).returning(NoiseQueue.id))
    else:
        done = session.execute(update(NoiseQueue).where(*same).values(first_id=until + 1).returning(NoiseQueue.id))
    return done.one_or_none() is not None


class JudgedCapture(NamedTuple):
    id: int
    url: str
    url_hash: int
    page_key: str
    status: int | None
    record_type: str
    redirect_to: str | None
    is_page: bool
    document_id: int | None
    noise: str | None
    title: str | None
    headings: str | None
    chars: int | None
    details: dict[str, Any] | None

    @property
    def shows(self) -> bool:
        if self.status == 304:
            return self.record_type == "revisit"
        return self.status is None or 200 <= self.status < 300

    @property
    def is_error(self) -> bool:
        return self.status is not None and self.status >= 400


_CAPTURES = (
    select(
        Snapshot.id,
        Snapshot.url,
        Snapshot.url_hash,
        func.coalesce(Snapshot.page_key, Snapshot.url_key),
        Snapshot.status,
        Snapshot.record_type,
        Snapshot.redirect_to,
        Snapshot.is_page,
        Snapshot.document_id,
        Snapshot.noise,
        Document.title,
        Document.headings,
        Document.text_chars,
        Document.details,
    )
    .outerjoin(Document, Document.id == Snapshot.document_id)
    .where(or_(Snapshot.is_page, Snapshot.redirect_to.is_not(None)))
    .order_by(Snapshot.id)
)


def captures_between(session: Session, first: int, last: int, *, limit: int) -> list[JudgedCapture]:
    rows = session.execute(_CAPTURES.where(Snapshot.id >= first, Snapshot.id <= last).limit(limit))
    return [JudgedCapture._make(row) for row in rows]


def texts(session: Session, document_ids: Collection[int]) -> dict[int, str]:
    rows = session.execute(
        select(DocumentText.document_id, DocumentText.text).where(DocumentText.document_id.in_(sorted(document_ids)))
    )
    return {row[0]: unpack_text(row[1]) for row in rows}


def documents_at(session: Session, url_key: str, *, limit: int) -> list[int]:
    rows = session.scalars(
        select(Snapshot.document_id)
        .where(Snapshot.url_key == url_key, is_ok(), Snapshot.document_id.is_not(None), *visible())
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(limit)
    )
    return [row for row in rows if row is not None]


class SuspectRow(NamedTuple):
    snapshot_id: int
    site: int
    likeness: int
    leaf: int
    url_hash: int
    kind: str | None
    said: str
    proof: str | None
    least: int
    chars: int


_SUSPECT = tuple(getattr(NoiseSuspect, name) for name in SuspectRow._fields)


def replace_suspects(session: Session, first: int, last: int, rows: Sequence[SuspectRow]) -> None:
    """Store these suspects, replacing all others in a range of ids."""
    session.execute(delete(NoiseSuspect).where(NoiseSuspect.snapshot_id.between(first, last)))
    if rows:
        session.execute(insert(NoiseSuspect), [{**row._asdict(), "marked": False} for row in rows])


def drop_suspects(session: Session, ids: Collection[int]) -> None:
    session.execute(delete(NoiseSuspect).where(NoiseSuspect.snapshot_id.in_(sorted(ids))))


def error_status(session: Session, site: int, likeness: int, *, leaf: int) -> str | None:
    """Return the error status the site sent with the same text at another URL; None if it never did."""
    return session.scalar(_ERROR, {"site": site, "likeness": likeness, "leaf": leaf})


# Build these once: they run for every short page, and building one takes longer than running it.
_ALIKE = NoiseSuspect.site == bindparam("site"), NoiseSuspect.likeness == bindparam("likeness")
_ERROR = (
    select(NoiseSuspect.said)
    .join(Snapshot, Snapshot.id == NoiseSuspect.snapshot_id)
    .where(*_ALIKE, NoiseSuspect.kind.is_(None), NoiseSuspect.leaf != bindparam("leaf"), *visible())
    .limit(1)
)
# Match any other capture, whatever its name: a missing image has a copy in a thousand folders.
_KNOWN_ERROR = (
    select(NoiseSuspect.snapshot_id)
    .join(Snapshot, Snapshot.id == NoiseSuspect.snapshot_id)
    .where(*_ALIKE, NoiseSuspect.kind.is_(None), NoiseSuspect.snapshot_id != bindparam("own"), *visible())
    .limit(1)
)
_ANY_ERROR = (
    select(NoiseSuspect.snapshot_id).where(NoiseSuspect.site == bindparam("site"), NoiseSuspect.kind.is_(None)).limit(1)
)
_NEXT_LEAF = (
    select(NoiseSuspect.leaf)
    .where(*_ALIKE, NoiseSuspect.kind == bindparam("kind"), NoiseSuspect.leaf >= bindparam("least"))
    .order_by(NoiseSuspect.leaf)
    .limit(1)
)


def is_known_error(session: Session, row: SuspectRow) -> bool:
    given = {"site": row.site, "likeness": row.likeness, "own": row.snapshot_id}
    return session.scalar(_KNOWN_ERROR, given) is not None


def has_errors(session: Session, site: int) -> bool:
    return session.scalar(_ANY_ERROR, {"site": site}) is not None


def addresses_alike(session: Session, row: SuspectRow, *, most: int) -> int:
    """Return how many URLs of a site have the same text, counting up to `most`: one seek each."""
    count, last = 0, -_LAST - 1
    while count < most:
        given = {"site": row.site, "likeness": row.likeness, "kind": row.kind, "least": last}
        found = session.scalar(_NEXT_LEAF, given)
        if found is None or found == _LAST:
            break
        count, last = count + 1, found + 1
    return count


def unmarked_alike(session: Session, row: SuspectRow, *, limit: int) -> list[SuspectRow]:
    return _unmarked(session, NoiseSuspect.site == row.site, NoiseSuspect.likeness == row.likeness, limit=limit)


def unmarked_of_pages(session: Session, url_hashes: Collection[int], *, limit: int) -> list[SuspectRow]:
    return _unmarked(session, NoiseSuspect.url_hash.in_(sorted(url_hashes)), limit=limit)


def _unmarked(session: Session, *which: ColumnElement[bool], limit: int) -> list[SuspectRow]:
    wanted = select(*_SUSPECT).where(*which, ~NoiseSuspect.marked, NoiseSuspect.kind.is_not(None))
    rows = session.execute(wanted.order_by(NoiseSuspect.snapshot_id).limit(limit))
    return [SuspectRow._make(one) for one in rows]


def note_marked(session: Session, marked: Collection[int], cleared: Collection[int]) -> None:
    for ids, value in ((marked, True), (cleared, False)):
        if ids:
            which = NoiseSuspect.snapshot_id.in_(sorted(ids))
            session.execute(update(NoiseSuspect).where(which).values(marked=value))


# Number of captures on either side of a suspect that are searched for ones without noise: a page may have been blocked
# every day for years.
_WINDOW = 200


def shown_around(session: Session, row: SuspectRow, *, each: int) -> list[tuple[int, str | None, str | None]]:
    """Return text length, title and headings of the nearest captures that show the page of a suspect."""
    given = {"page": row.url_hash, "here": row.snapshot_id, "each": each}
    sides = [session.execute(_around(is_earlier=is_earlier), given) for is_earlier in (True, False)]
    return [(chars, title, headings) for side in sides for chars, title, headings in side]


@cache
def _around(*, is_earlier: bool) -> Select[*tuple[Any, ...]]:
    # Build it once: that takes ten times as long as running it.
    here, other, near = aliased(Snapshot), aliased(NoiseSuspect), aliased(Snapshot)
    moment = select(here.captured_at).where(here.id == bindparam("here", type_=BigInteger)).scalar_subquery()
    side: ColumnElement[bool] = near.captured_at <= moment if is_earlier else near.captured_at >= moment
    order = (near.captured_at.desc(), near.id.desc()) if is_earlier else (near.captured_at, near.id)
    on_page = near.url_hash == bindparam("page", type_=BigInteger)
    window = select(near.id).where(on_page, side).order_by(*order).limit(_WINDOW).subquery()
    # Suspects of the current batch are not marked yet: exclude them, because they do not show the page.
    is_suspect = exists().where(other.snapshot_id == Snapshot.id, other.kind.is_not(None))
    return (
        select(Document.text_chars, Document.title, Document.headings)
        .select_from(window)
        .join(Snapshot, Snapshot.id == window.c.id)
        .join(Document, Document.id == Snapshot.document_id)
        .where(Snapshot.is_page, is_ok(), Snapshot.noise.is_(None), ~is_suspect, *visible())
        .where(Snapshot.id != bindparam("here", type_=BigInteger))
        .order_by(Snapshot.captured_at.desc() if is_earlier else Snapshot.captured_at, Snapshot.id)
        .limit(bindparam("each", type_=BigInteger))
    )


def head_of(session: Session, snapshot_id: int) -> tuple[str | None, str | None]:
    row = session.execute(_HEAD, {"here": snapshot_id}).one_or_none()
    return (None, None) if row is None else (row[0], row[1])


_HEAD = (
    select(Document.title, Document.headings)
    .join(Snapshot, Snapshot.document_id == Document.id)
    .where(Snapshot.id == bindparam("here", type_=BigInteger))
)


def labels_on(session: Session, subjects: Iterable[tuple[int, str]]) -> dict[int, ManualLabel]:
    """Return manual labels by capture id, for pairs of id and page key; the capture's label wins over its page's."""
    wanted = dict(subjects)
    if not wanted:
        return {}
    rows = session.scalars(
        select(ManualLabel)
        .where(or_(ManualLabel.snapshot_id.in_(sorted(wanted)), ManualLabel.url_key.in_(sorted(set(wanted.values())))))
        .order_by(ManualLabel.id)
    )
    # Read them by id: the newest label of a subject applies.
    latest: dict[int | str | None, ManualLabel] = {
        row.url_key if row.snapshot_id is None else row.snapshot_id: row for row in rows
    }
    found = ((one, latest.get(one) or latest.get(key)) for one, key in wanted.items())
    return {one: label for one, label in found if label is not None}


def snapshots(session: Session, ids: Collection[int]) -> list[Snapshot]:
    """Return these captures, including those under a takedown, by id."""
    if not ids:
        return []
    return list(session.scalars(select(Snapshot).where(Snapshot.id.in_(sorted(ids))).order_by(Snapshot.id)))


def captures_of_page(session: Session, key: str, *, withdrawn: bool) -> list[int]:
    judged = or_(Snapshot.is_page, Snapshot.redirect_to.is_not(None))
    wanted = select(Snapshot.id).where(of_page(key), judged, *(() if withdrawn else visible()))
    return list(session.scalars(wanted.order_by(Snapshot.id)))


def put_verdict(session: Session, snapshot_id: int, kind: str, evidence: str, *, by: str | None, now: datetime) -> None:
    values = {"kind": kind, "evidence": evidence, "decided_by": by, "decided_at": now}
    put = insert_into(session, NoiseVerdict).values(snapshot_id=snapshot_id, **values)
    session.execute(put.on_conflict_do_update(index_elements=["snapshot_id"], set_=values))


def drop_verdicts(session: Session, ids: Collection[int]) -> None:
    if ids:
        session.execute(delete(NoiseVerdict).where(NoiseVerdict.snapshot_id.in_(sorted(ids))))


def drop_strays(session: Session, first: int, last: int) -> None:
    here = exists().where(Snapshot.id == NoiseVerdict.snapshot_id)
    session.execute(delete(NoiseVerdict).where(NoiseVerdict.snapshot_id.between(first, last), ~here))


def tell_search(session: Session, ids: Collection[int], *, now: datetime) -> None:
    session.add_all(
        SearchOutbox(kind="snapshots", first_id=first, last_id=last, refs={}, created_at=now)
        for first, last in ranges(ids)
    )


def verdict_on(session: Session, snapshot_id: int) -> NoiseVerdict | None:
    return session.get(NoiseVerdict, snapshot_id)


@record
class NoiseCapture:
    """A capture that does not show its page."""

    id: Operator[int]
    kind: Operator[str]
    """soft_404, block_page, consent_wall, login_wall or parked."""
    url: Operator[str]
    source_code: Operator[str]
    execution_id: Operator[int]
    """The execution that captured it."""
    captured_at: Operator[datetime]
    status: Operator[int | None]
    title: Operator[str | None]
    evidence: Operator[str | None]
    """How that is known."""
    decided_by: Operator[str | None]
    """The person who labelled it; null if the classifier did."""
    decided_at: Operator[datetime | None]


@record
class NoiseList:
    """A page of noise captures, newest ids first."""

    items: Operator[list[NoiseCapture]]
    next_before: Operator[int | None]


def listed(
    session: Session, *, source_id: int | None, kind: str | None, before: int | None, limit: int
) -> list[NoiseCapture]:
    wanted: list[ColumnElement[bool]] = [Snapshot.noise.is_not(None), *visible()]
    if source_id is not None:
        wanted.append(Snapshot.source_id == source_id)
    if kind is not None:
        wanted.append(Snapshot.noise == kind)
    if before is not None:
        wanted.append(Snapshot.id < before)
    rows = session.execute(
        select(
            Snapshot.id,
            Snapshot.noise.label("kind"),
            Snapshot.url,
            Source.code.label("source_code"),
            Snapshot.execution_id,
            Snapshot.captured_at,
            Snapshot.status,
            Document.title,
            NoiseVerdict.evidence,
            NoiseVerdict.decided_by,
            NoiseVerdict.decided_at,
        )
        # Start from the verdicts: there is one for each noise capture, in the order of ids.
        .select_from(NoiseVerdict)
        .join(Snapshot, Snapshot.id == NoiseVerdict.snapshot_id)
        .join(Source, Source.id == Snapshot.source_id)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(*wanted)
        .order_by(NoiseVerdict.snapshot_id.desc())
        .limit(limit)
    )
    return [NoiseCapture(**row._mapping) for row in rows]


def counts_of(session: Session, execution_id: int) -> dict[str, int]:
    rows = session.execute(
        select(Snapshot.noise, func.count())
        .where(Snapshot.execution_id == execution_id, Snapshot.noise.is_not(None), *visible())
        .group_by(Snapshot.noise)
        .order_by(Snapshot.noise)
    )
    return {str(row[0]): row[1] for row in rows}


def kinds_of(session: Session, ids: Collection[int]) -> dict[int, str]:
    rows = session.execute(
        select(Snapshot.id, Snapshot.noise).where(Snapshot.id.in_(sorted(ids)), Snapshot.noise.is_not(None))
    )
    return {row[0]: str(row[1]) for row in rows}


def kinds_at(session: Session, executions: Collection[int], pages: Collection[int]) -> dict[tuple[int, int], str]:
    """Return the noise kind of pages (by hash) that these executions captured as noise, by execution and page."""
    if not executions or not pages:
        return {}
    rows = session.execute(
        select(Snapshot.execution_id, Snapshot.url_hash, Snapshot.noise)
        .where(
            Snapshot.noise.is_not(None),
            Snapshot.url_hash.in_(sorted(pages)),
            (Snapshot.execution_id + 0).in_(sorted(executions)),
        )
        .order_by(Snapshot.id)
    )
    return {(row[0], row[1]): str(row[2]) for row in rows}


def known_labels(session: Session) -> dict[tuple[int | None, str | None], datetime]:
    latest = select(ManualLabel.snapshot_id, ManualLabel.url_key, func.max(ManualLabel.created_at))
    rows = session.execute(latest.group_by(ManualLabel.snapshot_id, ManualLabel.url_key))
    return {(row[0], row[1]): row[2] for row in rows}


def all_labels(session: Session) -> list[ManualLabel]:
    return list(session.scalars(select(ManualLabel).order_by(ManualLabel.id)))
