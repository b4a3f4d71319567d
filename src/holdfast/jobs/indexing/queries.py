"""The statements about executions whose files are to be read, and about what was found in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.db.models import Document, Execution, Job, Snapshot, Source, WarcFile
from holdfast.db.text import clean
from holdfast.jobs.endings import MAX_ERROR_CHARS
from holdfast.jobs.plans import backend_of

_OVER = ("completed", "failed", "cancelled")


class ToIndex(NamedTuple):
    """An execution that is over and not yet indexed."""

    execution_id: int
    job_id: int
    source: str
    output_dir: str
    backend: str


class Moved(NamedTuple):
    """What a step changed."""

    job_id: int
    job_state: str | None
    before: str | None
    items_crawled: int


class Quality(NamedTuple):
    """What was found in an execution's files: pages, and how many of them say nothing."""

    items_indexed: int
    empty_title_count: int
    empty_body_count: int


def next_to_index(session: Session, *, after: int) -> ToIndex | None:
    """Return the first execution by id that waits to be indexed; by the partial index of those."""
    row = session.execute(
        select(Execution.id, Execution.job_id, Source.code, Execution.output_dir, Job.kind, Execution.config,
               Job.config, Source.config)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.index_state.in_(("pending", "indexing")), Execution.state.in_(_OVER), Execution.id > after)
        .order_by(Execution.id)
        .limit(1)
    ).one_or_none()  # fmt: skip
    if row is None:
        return None
    return ToIndex(row[0], row[1], row[2], row[3], backend_of(*row[4:]))


def set_state(session: Session, *, execution_id: int, state: str, allowed: Sequence[str | None]) -> Moved | None:
    """Write the index state of an execution that is over, if it is one of these now; None changes nothing."""
    row = session.execute(
        select(Execution, Job.state).join(Job, Job.id == Execution.job_id)
        .where(Execution.id == execution_id, Execution.state.in_(_OVER)).with_for_update(of=Execution)
        .execution_options(populate_existing=True)
    ).one_or_none()  # fmt: skip
    if row is None or row[0].index_state not in allowed:
        return None
    execution: Execution = row[0]
    before, execution.index_state = execution.index_state, state
    session.flush()
    return Moved(execution.job_id, row[1], before, execution.items_crawled)


def quality(session: Session, *, execution_id: int) -> Quality:
    """Return how many pages the snapshots of an execution are, and how many have no title or no text."""
    empty = func.coalesce(func.trim(Document.title), "") == ""
    row = session.execute(
        select(
            func.count(Snapshot.id),
            func.count(Snapshot.id).filter(empty, Document.id.is_not(None)),
            func.count(Snapshot.id).filter(Document.text_chars == 0),
        )
        .join(WarcFile, WarcFile.id == Snapshot.warc_file_id)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(WarcFile.execution_id == execution_id, Snapshot.is_page)
    ).one()
    return Quality(*(int(value) for value in row))


def note_findings(session: Session, *, execution_id: int, found: Quality, error: str | None) -> None:
    """Keep what was found: the count in its column, the rest with the metrics of the crawl; and what went wrong.

    A crawl that failed or was cancelled keeps its own error.
    """
    execution = session.get_one(Execution, execution_id, populate_existing=True)
    # One with a stage has something to say of its own end (a ZIM that was not built), which a good index does not undo.
    if execution.state == "completed" and (error is not None or execution.stage is None):
        execution.error = clean(error, MAX_ERROR_CHARS)
    execution.items_indexed = found.items_indexed
    execution.metrics = {**execution.metrics, "extraction_quality": found._asdict()}


class Unindexed(NamedTuple):
    """An execution that is completed and that nobody has asked to index."""

    execution_id: int
    source: str
    kind: str
    files: int
    output_dir: str


def unindexed(session: Session, *, after: int, limit: int) -> list[Unindexed]:
    """Return completed executions without an index state after this one, with the number of their sealed files."""
    files = (
        select(func.count())
        .where(WarcFile.execution_id == Execution.id, WarcFile.state == "sealed")
        .correlate(Execution)
        .scalar_subquery()
    )
    rows = session.execute(
        select(Execution.id, Source.code, Job.kind, files, Execution.output_dir)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(
            Execution.state == "completed", Execution.index_state.is_(None), Job.kind != "import", Execution.id > after
        )
        .order_by(Execution.id)
        .limit(limit)
    )
    return [Unindexed(*row) for row in rows]  # fmt: skip


def index_state(session: Session, *, execution_id: int) -> str | None:
    """Return how far the index of an execution is, None if nothing was ever asked of it."""
    return session.scalar(select(Execution.index_state).where(Execution.id == execution_id))


def over_with_files(session: Session, file_ids: Sequence[int]) -> list[int]:
    """Return the executions of these files that are over, by id."""
    query = (
        select(Execution.id)
        .join(WarcFile, WarcFile.execution_id == Execution.id)
        .where(WarcFile.id.in_(file_ids), Execution.state.in_(_OVER))
    )
    return list(session.scalars(query.distinct().order_by(Execution.id)))


def open_files(session: Session, *, execution_id: int) -> list[int]:
    """Return the files of an execution that nobody has sealed yet."""
    query = select(WarcFile.id).where(WarcFile.execution_id == execution_id, WarcFile.state == "open")
    return list(session.scalars(query.order_by(WarcFile.id)))


class FileStates(NamedTuple):
    """How far the sealed files of an execution are."""

    waiting: tuple[int, ...]
    failed: dict[int, str]
    """Their paths, by id."""
    total: int


def file_states(session: Session, *, execution_id: int) -> FileStates:
    """Return the sealed files of an execution that wait to be read or could not be."""
    rows = session.execute(
        select(WarcFile.id, WarcFile.path, WarcFile.index_state)
        .where(WarcFile.execution_id == execution_id, WarcFile.state == "sealed")
        .order_by(WarcFile.id)
    ).all()
    waiting = tuple(row[0] for row in rows if row[2] in ("pending", "running"))
    return FileStates(waiting, {row[0]: row[1] for row in rows if row[2] == "failed"}, len(rows))
