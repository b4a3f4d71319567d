"""The execution of an import: completed from the start, because nothing of it runs; it groups the files."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job
from holdfast.jobs.store import IMPORT, locked_source
from holdfast.sources.queries import named_source
from holdfast.values import dataclass
from holdfast.warc.outfile import disk_error


def job_by_fingerprint(session: Session, *, kind: str, fingerprint: str) -> Job | None:
    return session.scalars(
        select(Job).where(Job.kind == kind, Job.fingerprint == fingerprint).order_by(Job.id).limit(1)
    ).one_or_none()


def last_number(session: Session, *, job_id: int) -> int:
    """Return the number of the job's latest execution, 0 without one."""
    return session.scalar(select(func.coalesce(func.max(Execution.number), 0)).where(Execution.job_id == job_id)) or 0


def execution_in(session: Session, output_dir: str) -> Execution | None:
    return session.scalars(
        select(Execution).where(Execution.output_dir == output_dir).order_by(Execution.id.desc()).limit(1)
    ).one_or_none()


def job_names(session: Session, execution_ids: Iterable[int]) -> dict[int, str | None]:
    rows = session.execute(
        select(Execution.id, Job.name)
        .join(Job, Job.id == Execution.job_id)
        .where(Execution.id.in_(sorted(set(execution_ids))))
    )
    return {row[0]: row[1] for row in rows}


def run_endings(session: Session, execution_ids: Iterable[int]) -> dict[int, tuple[str, str, str | None]]:
    """Return the kind of each execution's job, its state and its reason."""
    rows = session.execute(
        select(Execution.id, Job.kind, Execution.state, Execution.reason)
        .join(Job, Job.id == Execution.job_id)
        .where(Execution.id.in_(sorted(set(execution_ids))))
    )
    return {number: (kind, state, reason) for number, kind, state, reason in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportWish:
    source: str
    name: str | None
    home: Path
    config: dict[str, Any]
    job_name: str | None = None
    """Name of the job that groups the files; imports of a source without one share a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportBegun:
    execution_id: int
    folder: Path


def ensure_import_source(database: Database, clock: Clock, *, code: str, name: str | None) -> None:
    """Create the source if it is new; raise Invalid if its code is malformed."""
    with database.write() as session:
        named_source(session, clock, code=code, name=name)


def adopt_folder(
    database: Database,
    clock: Clock,
    folder: Path,
    *,
    source: str,
    name: str | None,
    base_url: str | None,
    backend: str | None,
) -> int:
    """Return the execution of the files in a folder, creating one if necessary.

    `name` and `base_url` are used only if the source must be created, too; `backend` is the tool that crawled it, None
    for an import. Raise Invalid if it must be created and its source code is malformed.
    """
    with database.write() as session:
        # The folder itself is the identity: a rebuild that is repeated finds the execution that it made before.
        found = execution_in(session, str(folder))
        if found is not None:
            return found.id
        named_source(session, clock, code=source, name=name, base_url=base_url)
        config = {"restored": str(folder)} | ({"backend": backend} if backend else {})
        execution = _completed(session, clock, ImportWish(source=source, name=None, home=folder, config=config))
        execution.output_dir = str(folder)
        subject, detail = f"execution {execution.id}", {"source": source, "folder": str(folder)}
        audit.record(session, clock, action="archive.restored", subject=subject, detail=detail)
        return execution.id


def _completed(session: Session, clock: Clock, wish: ImportWish) -> Execution:
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
    """Create an execution for imported files below the data directory, and its source if it is new.

    Raise NoSpace, or Unavailable if its folder cannot be created.
    """
    with database.write() as session:
        execution = _completed(session, clock, wish)
        stem = f"{execution.created_at:%Y%m%dT%H%M%SZ}__{wish.source}-import-{execution.id}"
        folder = wish.home.resolve() / "warcs" / wish.source / stem
        execution.output_dir = str(folder)
        subject, detail = f"execution {execution.id}", {"source": wish.source, **wish.config}
        audit.record(session, clock, action="archive.imported", subject=subject, detail=detail)
        execution_id = execution.id
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise disk_error(exc, f"cannot write to {folder}: {exc.strerror}") from exc
    return ImportBegun(execution_id=execution_id, folder=folder)
