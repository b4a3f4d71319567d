"""Rows as JSON lines or CSV: the columns of 1.7 of the facts, spelled once. Pure.

A cell that a spreadsheet would take for a formula gets an apostrophe before it (faults H05).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from holdfast.spreadsheets import guarded

SNAPSHOT_COLUMNS = (
    "snapshot_id", "source_code", "source_name", "captured_url", "normalized_url_group", "capture_timestamp_utc",
    "language", "status_code", "mime_type", "title", "job_id", "job_name", "snapshot_url", "capture_backend",
    "capture_fidelity",
)  # fmt: skip
CHANGE_COLUMNS = (
    "change_id", "source_code", "source_name", "normalized_url_group", "from_snapshot_id", "to_snapshot_id",
    "from_capture_timestamp_utc", "to_capture_timestamp_utc", "from_job_id", "to_job_id", "change_type", "summary",
    "added_sections", "removed_sections", "changed_sections", "added_lines", "removed_lines", "change_ratio",
    "high_noise", "diff_truncated", "diff_version", "normalization_version", "computed_at_utc", "compare_url",
)  # fmt: skip

Value = str | int | float | bool | datetime | None
Row = Sequence[Value]


class Format(StrEnum):
    """How rows are written; `ndjson` is another name for `jsonl`."""

    JSONL = "jsonl"
    NDJSON = "ndjson"
    CSV = "csv"

    @property
    def media_type(self) -> str:
        """The type that is sent with it."""
        return "text/csv; charset=utf-8" if self is Format.CSV else "application/x-ndjson"

    @property
    def ending(self) -> str:
        """What a file's name ends with."""
        return "csv" if self is Format.CSV else "jsonl"


def write_rows(rows: Iterable[Row], columns: Sequence[str], form: Format) -> Iterator[bytes]:
    """Yield the lines of these rows, a header first for CSV."""
    if form is not Format.CSV:
        for row in rows:
            yield _json_line(columns, row)
        return
    yield _csv_line(columns)
    for row in rows:
        yield _csv_line([cell(value) for value in row])


def _json_line(columns: Sequence[str], row: Row) -> bytes:
    fields = {name: _plain(value) for name, value in zip(columns, row, strict=True)}
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def _csv_line(values: Sequence[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(values)
    return out.getvalue().encode("utf-8", "replace")


def _plain(value: Value) -> Any:
    return stamp(value) if isinstance(value, datetime) else value


def cell(value: Value) -> str:
    """Return a value as a cell: empty for None, words for truth, and text that no spreadsheet runs."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return stamp(value)
    text = str(value).replace("\0", "")
    return guarded(text) if isinstance(value, str) else text


def stamp(moment: datetime) -> str:
    """Return a moment as exports write it: ISO 8601, UTC, ending in Z."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
