"""The execution of an import: completed from the start, for nothing of it runs; it holds the files together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job
from holdfast.jobs.store import IMPORT, locked_source
from holdfast.sources.queries import named_source
from holdfast.warc.outfile import disk_error


def job_by_fingerprint(session: Session, *, kind: str, fingerprint: str) -> Job | None:
    """Return the job of this kind with this fingerprint."""
    return session.scalars(
        select(Job).where(Job.kind == kind, Job.fingerprint == fingerprint).order_by(Job.id).limit(1)
    ).one_or_none()


def last_number(session: Session, *, job_id: int) -> int:
    """Return the number of the job's latest execution, 0 if it has none."""
    return session.scalar(select(func.coalesce(func.max(Execution.number), 0)).where(Execution.job_id == job_id)) or 0


def execution_in(session: Session, *, output_dir: str) -> Execution | None:
    """Return the latest execution whose files lie in this folder."""
    return session.scalars(
        select(Execution).where(Execution.output_dir == output_dir).order_by(Execution.id.desc()).limit(1)
    ).one_or_none()


def job_names(session: Session, execution_ids: Iterable[int]) -> dict[int, str | None]:
    """Return the names of the jobs that these executions are runs of; None for a job without one."""
    rows = session.execute(
        select(Execution.id, Job.name)
        .join(Job, Job.id == Execution.job_id)
        .where(Execution.id.in_(sorted(set(execution_ids))))
    )
    return {row[0]: row[1] for row in rows}


class RunEnd(NamedTuple):
    """What kind of run an execution was, and how it ended."""

    kind: str
    state: str
    reason: str | None


def run_endings(session: Session, execution_ids: Iterable[int]) -> dict[int, RunEnd]:
    """Return of what kind each of these executions was, and how it ended."""
    rows = session.execute(
        select(Execution.id, Job.kind, Execution.state, Execution.reason)
        .join(Job, Job.id == Execution.job_id)
        .where(Execution.id.in_(sorted(set(execution_ids))))
    )
    return {number: RunEnd(kind, state, reason) for number, kind, state, reason in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportWish:
    """What is to be imported, and for which source."""

    source: str
    name: str | None
    home: Path
    config: dict[str, Any]
    job_name: str | None = None
    """Of the job that holds the files; imports of a source without one share a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportBegun:
    """Where the files of an import belong."""

    execution_id: int
    folder: Path


def ensure_import_source(database: Database, clock: Clock, *, code: str, name: str | None) -> None:
    """Make the source if it is new; Invalid if its code is none."""
    with database.write() as session:
        named_source(session, clock, code=code, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFacts:
    """What is known of a folder of WARC files whose rows are lost."""

    source: str
    name: str | None = None
    """The source's, and its address: used only if the source is lost, too."""
    base_url: str | None = None
    backend: str | None = None
    """What crawled it, if it was no import."""


def adopt_folder(database: Database, clock: Clock, *, folder: Path, facts: FolderFacts) -> int:
    """Return the execution whose files lie in a folder: the one that is there, or one that is made for it.

    Invalid if there is none and its source's code is none.
    """
    with database.write() as session:
        # The folder itself is the identity: a rebuild that is repeated finds the execution that it made before.
        found = execution_in(session, output_dir=str(folder))
        if found is not None:
            return found.id
        named_source(session, clock, code=facts.source, name=facts.name, base_url=facts.base_url)
        config = {"restored": str(folder)} | ({"backend": facts.backend} if facts.backend else {})
        execution = _completed(session, clock, ImportWish(source=facts.source, name=None, home=folder, config=config))
        execution.output_dir = str(folder)
        audit.record(
            session,
            clock,
            action="archive.restored",
            subject=f"execution {execution.id}",
            detail={"source": facts.source, "folder": str(folder)},
        )
        return execution.id


def _completed(session: Session, clock: Clock, wish: ImportWish) -> Execution:
    """Add an execution that is over to the job that holds a source's imports, or those under one name."""
    now = clock.now()
    source = named_source(session, clock, code=wish.source, name=wish.name)
    # Imports of one source, of other machines too, find one job and count on by one.
    locked_source(session, source.id)
    named = "" if wish.job_name is None else f" {wish.job_name}"
    fingerprint = sha256(f"{IMPORT} {source.code}{named}".encode()).hexdigest()
    job = job_by_fingerprint(session, kind=IMPORT, fingerprint=fingerprint)
    if job is None:
        job = Job(
            source_id=source.id, kind=IMPORT, name=wish.job_name, fingerprint=fingerprint, config={}, created_at=now
        )
        session.add(job)
        session.flush()
    execution = Execution(
        job_id=job.id,
        number=last_number(session, job_id=job.id) + 1,
        state="completed",
        reason=None,
        config=wish.config,
        output_dir="",
        created_at=now,
        started_at=now,
        finished_at=now,
        run_seconds=0.0,
    )
    session.add(execution)
    session.flush()
    return execution


def begin_import(database: Database, clock: Clock, wish: ImportWish) -> ImportBegun:
    """Make an execution for imported files below the data directory; the source too, if it is new.

    NoSpace, Unavailable if its folder cannot be made.
    """
    with database.write() as session:
        execution = _completed(session, clock, wish)
        stem = f"{execution.created_at:%Y%m%dT%H%M%SZ}__{wish.source}-import-{execution.id}"
        folder = wish.home.resolve() / "warcs" / wish.source / stem
        execution.output_dir = str(folder)
        audit.record(
            session,
            clock,
            action="archive.imported",
            subject=f"execution {execution.id}",
            detail={"source": wish.source, **wish.config},
        )
        execution_id = execution.id
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise disk_error(exc, f"cannot write to {folder}: {exc.strerror}") from exc
    return ImportBegun(execution_id=execution_id, folder=folder)
