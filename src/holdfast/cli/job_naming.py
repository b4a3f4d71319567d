"""Which job it was that could not be changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.cli.job_words import find_job
from holdfast.db.engine import Database
from holdfast.errors import Conflict
from holdfast.jobs.specs import JobNotFound


@contextmanager
def naming(database: Database, job_id: int) -> Iterator[None]:
    """Say which job was not found, or that it is one that no scheduler runs."""
    try:
        yield
    except JobNotFound as exc:
        kind = find_job(database, job_id).job.kind
        raise Conflict(
            f"job {job_id} is of kind {kind}: its own command runs and ends it (holdfast crawl, stop, import)"
        ) from exc
