"""What an execution is called where documents 000 and 001 show a job's name."""

from __future__ import annotations


def execution_name(source_code: str, execution_id: int) -> str:
    """Return the source's code and the execution's number."""
    return f"{source_code}-{execution_id}"
