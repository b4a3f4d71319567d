"""WARC files, as operators see them."""

from __future__ import annotations

from datetime import datetime

from holdfast.records import Operator, record


@record
class WarcFileRecord:
    """One WARC file of the archive."""

    id: Operator[int]
    source: Operator[str]
    execution_id: Operator[int]
    path: Operator[str]
    state: Operator[str]
    index_state: Operator[str]
    size: Operator[int | None]
    record_count: Operator[int | None]
    sha256: Operator[str | None]
    repaired: Operator[bool]
    origin: Operator[str | None]
    sealed_at: Operator[datetime | None]
