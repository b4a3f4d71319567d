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
from holdfast.db.models import Execution, Job, Source
from holdfast.errors import Conflict
from holdfast.jobs.kinds import IMPORT
from holdfast.jobs.store import locked_source
from holdfast.sources.queries import named_source
from holdfast.storage.disk import disk_error
from holdfast.storage.store import captures_folder
from holdfast.values import dataclass


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
class ImportOptions:
    source: str
    name: str | None
    home: Path
    config: dict[str, Any]
    job_name: str | None = None
    """Name of the job that groups the files; imports of a source without one share a job."""


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
        # The folder is the identity: a repeated rebuild finds the execution that it created before.
        found = execution_in(session, str(folder))
        if found is not None:
            return found.id
        row = named_source(session, clock, code=source, name=name, base_url=base_url)
        config = {"restored": str(folder)} | ({"backend": backend} if backend else {})
        execution = _completed(session, clock, row, config, output_dir=str(folder))
        subject, detail = f"execution {execution.id}", {"source": source, "folder": str(folder)}
        audit.record(session, clock, action="archive.restored", subject=subject, detail=detail)
        return execution.id


def register_directory(session: Session, clock: Clock, *, source: str, name: str | None, output_dir: str) -> Execution:
    """Create a job and a completed execution for a directory filled elsewhere; its indexing is pending.

    Raise Conflict if an execution uses this directory already, Invalid if the source code is malformed.
    """
    row = named_source(session, clock, code=source, name=None)
    # If two operators register one directory for the same source, the second finds the first's execution.
    locked_source(session, row.id)
    taken = execution_in(session, output_dir)
    if taken is not None:
        raise Conflict(f"{output_dir} is the directory of execution {taken.id}; index it with: holdfast index-job")
    config = {"backend": "zimit", "registered": True}
    identity = f"directory {output_dir}"
    execution = _completed(session, clock, row, config, identity=identity, job_name=name, output_dir=output_dir)
    execution.index_state = "pending"
    subject, detail = f"execution {execution.id}", {"source": row.code, "output_dir": output_dir}
    audit.record(session, clock, action="execution.registered", subject=subject, detail=detail)
    return execution


def _completed(
    session: Session,
    clock: Clock,
    source: Source,
    config: dict[str, Any],
    *,
    identity: str | None = None,
    job_name: str | None = None,
    output_dir: str = "",
) -> Execution:
    """Add a completed execution to the job with this identity (by default that of the source's imports and their
    job name), which is created if it is missing.
    """
    now = clock.now()
    # All imports of a source, also from other machines, share one job and its numbering.
    locked_source(session, source.id)
    identity = identity or f"{IMPORT} {source.code}{'' if job_name is None else f' {job_name}'}"
    fingerprint = sha256(identity.encode()).hexdigest()
    is_known = (Job.source_id == source.id, Job.kind == IMPORT, Job.fingerprint == fingerprint)
    job = session.scalars(select(Job).where(*is_known).order_by(Job.id).limit(1)).one_or_none()
    if job is None:
        job = Job(source_id=source.id, kind=IMPORT, name=job_name, fingerprint=fingerprint, config={}, created_at=now)
        session.add(job)
        session.flush()
    last = session.scalar(select(func.max(Execution.number)).where(Execution.job_id == job.id)) or 0
    execution = Execution(
        job_id=job.id,
        number=last + 1,
        state="completed",
        config=config,
        output_dir=output_dir,
        created_at=now,
        started_at=now,
        finished_at=now,
        run_seconds=0.0,
    )
    session.add(execution)
    session.flush()
    return execution


def begin_import(database: Database, clock: Clock, options: ImportOptions) -> tuple[int, Path]:
    """Create an execution for imported files, and its source if it is new; return its id, and its folder below the
    data directory.

    Raise NoSpace, or Unavailable if the folder cannot be created.
    """
    with database.write() as session:
        source = named_source(session, clock, code=options.source, name=options.name)
        execution = _completed(session, clock, source, options.config, job_name=options.job_name)
        stem = f"{execution.created_at:%Y%m%dT%H%M%SZ}__{options.source}-import-{execution.id}"
        folder = captures_folder(options.home.resolve()) / options.source / stem
        execution.output_dir = str(folder)
        subject, detail = f"execution {execution.id}", {"source": options.source, **options.config}
        audit.record(session, clock, action="archive.imported", subject=subject, detail=detail)
        execution_id = execution.id
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise disk_error(exc, f"cannot write to {folder}: {exc.strerror}") from exc
    return execution_id, folder
