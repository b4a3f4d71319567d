"""What an execution is called where people meet it: in listings, exports and the names of directories."""

from __future__ import annotations

import re

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 80


def execution_name(source_code: str, execution_id: int, job_name: str | None = None) -> str:
    """Return its job's name, or the source's code where the job has none, and the execution's number."""
    return f"{job_name or source_code}-{execution_id}"


def folder_name(source_code: str, execution_id: int, job_name: str | None) -> str:
    """Return the same with nothing in it that a path could stumble over: a job may be called anything."""
    plain = _ODD.sub("-", job_name or "")[:_LONGEST].strip("-.")
    return execution_name(source_code, execution_id, plain)
