"""What the archive's readers ask of snapshots and documents. Every answer leaves out what was withdrawn."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import zstandard
from sqlalchemy import BigInteger, ColumnElement, and_, cast, func, literal, or_, select, tuple_, union, update
from sqlalchemy.orm import Session

from holdfast.db.models import (
    Document,
    DocumentText,
    Execution,
    Job,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.db.visibility import of_page, visible, withdrawal_mark, withdrawn_captures
from holdfast.errors import NotFound
from holdfast.index.keys import url_key
from holdfast.warc.ids import ORDINALS
from holdfast.warc.roots import locate

MAX_TEXT_BYTES = 64 * 1024 * 1024
"""No stored text is longer: the parser cuts at four million characters."""


_FOLLOWERS = 50


class SnapshotNotFound(NotFound):
    """No such snapshot is here, or it was withdrawn; nobody is told which."""

    code = "snapshot_not_found"


def is_ok() -> ColumnElement[bool]:
    """Return the clause over Snapshot for captures that show the page itself: a 2xx, or a 304 that stands for one."""
    return or_(
        Snapshot.status.between(200, 299),
        and_(Snapshot.status == 304, Snapshot.record_type == "revisit"),
    )


def snapshot(session: Session, snapshot_id: int) -> Snapshot:
    """Return one snapshot; SnapshotNotFound if there is none or it is withdrawn."""
    if -(1 << 63) <= snapshot_id < 1 << 63:
        found = session.scalars(select(Snapshot).where(Snapshot.id == snapshot_id, *visible())).one_or_none()
        if found is not None:
            return found
    raise SnapshotNotFound(f"there is no snapshot {snapshot_id}; find one with: holdfast search WORDS")


def any_snapshot(session: Session, snapshot_id: int) -> Snapshot | None:
    """Return one snapshot whether it is withdrawn or not; for those who withdraw, and for following a revisit."""
    return session.get(Snapshot, snapshot_id)


def document_of(session: Session, found: Snapshot) -> Document | None:
    """Return the document of a snapshot, None if it has none."""
    return None if found.document_id is None else session.get(Document, found.document_id)


def documents(session: Session, ids: Iterable[int]) -> dict[int, Document]:
    """Return these documents by id; what is not there is left out. Ask for a page of them, not for thousands."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    return {row.id: row for row in session.scalars(select(Document).where(Document.id.in_(wanted)))}


def text_of(session: Session, document_id: int) -> str | None:
    """Return a document's main text, one block a line; None if it has none."""
    packed = session.scalar(select(DocumentText.text).where(DocumentText.document_id == document_id))
    return None if packed is None else unpack_text(packed)


def unpack_text(packed: bytes) -> str:
    """Return the text of a `document_texts` row."""
    return zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_TEXT_BYTES).decode()


def closest(session: Session, url: str, moment: datetime, *, ok_only: bool = False) -> Snapshot | None:
    """Return the visible capture of this address nearest to a moment, the earlier one on a tie; None if there is none.

    Addresses are matched by their key, as other archives do: scheme, `www` and case do not matter. Two index seeks.
    """
    wanted = [Snapshot.url_key == url_key(url), *visible(), *((is_ok(),) if ok_only else ())]
    before = session.scalars(
        select(Snapshot)
        .where(*wanted, Snapshot.captured_at <= moment)
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(1)
    ).one_or_none()
    if before is not None and before.captured_at == moment:
        return before
    after = session.scalars(
        select(Snapshot)
        .where(*wanted, Snapshot.captured_at > moment)
        .order_by(Snapshot.captured_at, Snapshot.id)
        .limit(1)
    ).one_or_none()
    if before is None or after is None:
        return before or after
    return before if moment - before.captured_at <= after.captured_at - moment else after


class Holding(NamedTuple):
    """Where the captures of an execution stand: between which ids, and between which moments where that was noted."""

    execution_id: int
    first_id: int
    last_id: int
    since: datetime
    until: datetime

    def clauses(self) -> tuple[ColumnElement[bool], ...]:
        """Return the clauses over Snapshot that leave these captures: a short stretch of an address's history."""
        # `+ 0` keeps the planner on the address: the index of executions would read the whole execution.
        return (
            Snapshot.execution_id + 0 == self.execution_id,
            Snapshot.id.between(self.first_id, self.last_id),
            Snapshot.captured_at.between(self.since, self.until),
        )


def holding_of(session: Session, execution_id: int) -> Holding | None:
    """Return where the captures of an execution stand; None if it has no file. A row a file is read."""
    low, high, since, until, known, count = session.execute(
        select(
            func.min(WarcFile.id), func.max(WarcFile.id), func.min(WarcFile.first_at), func.max(WarcFile.last_at),
            func.count(WarcFile.last_at), func.count(),
        ).where(WarcFile.execution_id == execution_id)
    ).one()  # fmt: skip
    if low is None:
        return None
    if known < count or since is None or until is None:
        since, until = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
    return Holding(execution_id, low * ORDINALS, (high + 1) * ORDINALS - 1, since, until)


def path_of(session: Session, home: Path, warc_file_id: int) -> Path:
    """Return where a WARC file lies; NotFound if it was discarded, StrayFile if none may lie where its row says."""
    stored = session.scalar(select(WarcFile.path).where(WarcFile.id == warc_file_id, WarcFile.state != "discarded"))
    if stored is None:
        raise NotFound(f"there is no WARC file {warc_file_id}")
    return locate(home, stored)


def mark_compared(session: Session, ids: Iterable[int]) -> None:
    """Say that `changes` has looked at these snapshots."""
    session.execute(update(Snapshot).where(Snapshot.id.in_(list(ids))).values(compared=True))


_CHANGES_LOCK = 0x686F6C6463686E67
"""`holdchng`: the advisory lock that makes PostgreSQL's writers of changes take turns, as SQLite's do anyway."""


def take_changes_turn(session: Session) -> None:
    """Let only one transaction at a time decide what is compared with what, or that it is to be; freed at its end."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(cast(literal(_CHANGES_LOCK), BigInteger))))


def compare_again(session: Session, found: Snapshot) -> None:
    """Let `changes` look again at a capture and at what follows it, up to the next one that the page answered.

    What stood before those is another now: the capture was withdrawn, or is shown again.
    """
    later = tuple_(Snapshot.captured_at, Snapshot.id) > tuple_(
        literal(found.captured_at, Snapshot.captured_at.type), literal(found.id, Snapshot.id.type)
    )
    answered = and_(
        or_(Snapshot.status.is_(None), Snapshot.status.between(200, 399)), Snapshot.canonical_id.is_(None), *visible()
    )
    rows = session.execute(
        select(Snapshot.id, answered)
        .where(Snapshot.url_hash == found.url_hash, Snapshot.source_id + 0 == found.source_id, Snapshot.is_page, later)
        .order_by(Snapshot.captured_at, Snapshot.id)
        .limit(_FOLLOWERS)
    ).all()
    until = next((number for number, row in enumerate(rows, 1) if row[1]), len(rows))
    _compare_anew(session, Snapshot.id.in_([found.id, *(row[0] for row in rows[:until])]))


def compare_page_again(session: Session, key: str) -> None:
    """Let `changes` look again at all captures of a page: those that came while it was hidden were passed."""
    _compare_anew(session, of_page(key))


def _compare_anew(session: Session, which: ColumnElement[bool]) -> None:
    session.execute(update(Snapshot).where(which, Snapshot.is_page).values(compared=False))


def withdrawals_word(session: Session) -> str:
    """Return a word that is another after every withdrawal and every lifting of one."""
    return "-".join(map(str, withdrawal_mark(session)))


def hidden_groups(session: Session, *, most: int) -> list[int]:
    """Return the page groups of which a capture is withdrawn, by itself or with its page: the first so many, by id.

    The database seeks each withdrawn capture; no more than the answer is held here, for a page may have any number.
    """
    found = union(*(question.where(*_PAGES) for question in withdrawn_captures(Snapshot.group_id))).subquery()
    return list(session.scalars(select(found.c.group_id).order_by(found.c.group_id).limit(most)))


def hidden_counts(session: Session, *, source_id: int, executions: Collection[int]) -> dict[int, int]:
    """Return how many captures of pages are withdrawn of each of these executions; those of which none is are left out.

    One that is withdrawn by itself and with its page counts once.
    """
    if not executions:
        return {}
    # `+ 0`: a planner that goes by the source or by the execution reads all of it.
    kept = [*_PAGES, Snapshot.source_id + 0 == source_id, (Snapshot.execution_id + 0).in_(list(executions))]
    questions = withdrawn_captures(Snapshot.id, Snapshot.execution_id)
    found = union(*(question.where(*kept) for question in questions)).subquery()
    rows = session.execute(select(found.c.execution_id, func.count()).group_by(found.c.execution_id))
    return {row[0]: row[1] for row in rows}


_PAGES = (Snapshot.is_page, Snapshot.group_id.is_not(None))


def captures_of(session: Session, key: str) -> int:
    """Return how many captures a page has, withdrawn or not, under all spellings of its address."""
    return session.scalar(select(func.count()).where(of_page(key))) or 0


def warc_files(
    session: Session, *, source: str | None = None, execution_id: int | None = None, newest: bool = False
) -> Iterator[tuple[WarcFile, str]]:
    """Yield WARC files with the code of their source, by id, or the newest first; a portion at a time."""
    query = (
        select(WarcFile, Source.code)
        .join(Execution, Execution.id == WarcFile.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(WarcFile.state != "discarded")
        .order_by(WarcFile.id.desc() if newest else WarcFile.id)
    )
    if source is not None:
        query = query.where(Source.code == source)
    if execution_id is not None:
        query = query.where(WarcFile.execution_id == execution_id)
    for row in session.execute(query.execution_options(yield_per=500)):
        yield row[0], row[1]


def file_by_path(session: Session, path: str) -> WarcFile | None:
    """Return the file that is stored under this path, or has this name if it is the only one."""
    exact = session.scalars(select(WarcFile).where(WarcFile.path == path)).one_or_none()
    if exact is not None or "/" in path:
        return exact
    named = list(session.scalars(select(WarcFile).where(WarcFile.path.endswith(f"/{path}", autoescape=True)).limit(2)))
    return named[0] if len(named) == 1 else None


def execution_with_source(session: Session, execution_id: int) -> tuple[Execution, Source] | None:
    """Return an execution and its source."""
    row = session.execute(
        select(Execution, Source)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.id == execution_id)
    ).one_or_none()
    return None if row is None else (row[0], row[1])


def sealed_paths(session: Session, execution_id: int) -> list[str]:
    """Return where the sealed files of an execution lie."""
    return list(
        session.scalars(
            select(WarcFile.path)
            .where(WarcFile.execution_id == execution_id, WarcFile.state == "sealed")
            .order_by(WarcFile.id)
        )
    )
