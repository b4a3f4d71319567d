"""Captures and changes as JSON lines or CSV, with the name and meaning of every column."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from holdfast import cancellation
from holdfast.changes.compare import DIFF_VERSION, NORMALISATION_VERSION
from holdfast.changes.listing import compare_path, events_of
from holdfast.changes.records import ChangeEvent
from holdfast.db.engine import Database
from holdfast.exports import queries
from holdfast.exports.queries import ExportReach, SnapshotRow
from holdfast.jobs.imports import job_names
from holdfast.jobs.store import execution_name
from holdfast.outside_text import guarded

Value = str | int | float | bool | datetime | None
Row = Sequence[Value]


class Format(StrEnum):
    """Format of exported rows; `ndjson` is another name for `jsonl`."""

    JSONL = "jsonl"
    NDJSON = "ndjson"
    CSV = "csv"

    @property
    def media_type(self) -> str:
        return "text/csv; charset=utf-8" if self is Format.CSV else "application/x-ndjson"

    @property
    def ending(self) -> str:
        return "csv" if self is Format.CSV else "jsonl"


def write_rows(rows: Iterable[Row], columns: Sequence[str], form: Format) -> Iterator[bytes]:
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
    """Return a value as a cell: empty for None, words for booleans, and text no spreadsheet executes as a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return stamp(value)
    # Titles come from the web: prefix a cell that a spreadsheet would treat as a formula with an apostrophe.
    text = str(value).replace("\0", "")
    return guarded(text) if isinstance(value, str) else text


def stamp(moment: datetime) -> str:
    """Return a time in the format of exports: ISO 8601, UTC, ending in Z."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


_PAGE = 500


def snapshot_rows(database: Database, reach: ExportReach, *, site: str) -> Iterator[Row]:
    """Yield the rows of `SNAPSHOT_COLUMNS`, by id; `site` is the base URL of their links."""
    left, after = reach.limit, reach.after
    while left is None or left > 0:
        cancellation.check()
        most = _PAGE if left is None else min(_PAGE, left)
        page, until = _snapshot_page(database, reach, after, most)
        with database.read() as session:
            names = job_names(session, (row.execution_id for row in page))
        yield from (_snapshot(row, names.get(row.execution_id), site) for row in page)
        left = None if left is None else left - len(page)
        # A short page ends one file, not the export: the next file may hold more.
        if len(page) == most:
            after = page[-1].id
        elif until is not None:
            after = until
        else:
            return


def _snapshot_page(
    database: Database, reach: ExportReach, after: int, most: int
) -> tuple[list[SnapshotRow], int | None]:
    """Return the next rows and the id they are complete up to, None at the end. With dates, it reads file by file."""
    with database.read() as session:
        if not reach.has_dates:
            return queries.snapshots_after(session, reach, after=after, limit=most), None
        ids = queries.next_stretch(session, reach, after=after)
        if ids is None:
            return [], None
        first, last = ids
        return queries.snapshots_after(session, reach, after=first - 1, limit=most, until=last), last


def _snapshot(row: SnapshotRow, job_name: str | None, site: str) -> Row:
    name, link = execution_name(row.source_code, row.execution_id, job_name), f"{site}/api/snapshot/{row.id}"
    return (*row[:11], name, link, *row[11:])


def change_rows(database: Database, reach: ExportReach, *, site: str) -> Iterator[Row]:
    """Yield the rows of `CHANGE_COLUMNS`, by id or, with dates, by time; `site` is the base URL of their links."""
    left, after = reach.limit, reach.after
    while left is None or left > 0:
        cancellation.check()
        with database.read() as session:
            ids = queries.changes_after(session, reach, after=after, limit=_PAGE)
            page = events_of(session, ids) if ids else []
        if not ids:
            return
        yield from (_change(event, site) for event in page[:left])
        # Iterate over the queried ids: changes under a takedown are not on the page, and are skipped.
        after, left = ids[-1], None if left is None else left - len(page)


def _change(event: ChangeEvent, site: str) -> Row:
    has_diff = event.diff_id is not None
    return (
        *(event.id, event.source_code, event.source_name, event.group, event.from_snapshot_id, event.to_snapshot_id),
        *(event.from_captured_at, event.to_captured_at, event.from_execution_id, event.to_execution_id),
        *(event.type, event.summary, event.added_sections, event.removed_sections, event.changed_sections),
        *(event.added_lines, event.removed_lines, event.ratio, event.high_noise),
        bool(event.truncated),
        f"v{DIFF_VERSION}" if has_diff else None,
        f"v{NORMALISATION_VERSION}" if has_diff else None,
        event.computed_at,
        f"{site}{compare_path(event)}",
    )


SNAPSHOT_MEANINGS: Final = {
    "snapshot_id": "Number of the capture; `afterId` goes on behind it.",
    "source_code": "Code of the source that it belongs to.",
    "source_name": "Name of that source.",
    "captured_url": "Address that was captured, as it was asked for.",
    "normalized_url_group": "Address of the page: scheme, host and path, without its query.",
    "capture_timestamp_utc": "When it was captured, ISO 8601, UTC.",
    "language": "Language of its text (BCP 47), empty if none was found.",
    "status_code": "HTTP status of the answer.",
    "mime_type": "Media type of the answer, without parameters.",
    "title": "Title of the page.",
    "job_id": "Number of the execution that captured it.",
    "job_name": "Name of that execution: its job's name, or the source's code, and its number.",
    "snapshot_url": "Where the capture is shown in this archive.",
    "capture_backend": "What captured it: our own crawler, zimit, an import.",
    "capture_fidelity": "How complete the capture is.",
}

SNAPSHOT_COLUMNS: Final = tuple(SNAPSHOT_MEANINGS)

CHANGE_MEANINGS: Final = {
    "change_id": "Number of the change; `afterId` goes on behind it.",
    "source_code": "Code of the source that it belongs to.",
    "source_name": "Name of that source.",
    "normalized_url_group": "Address of the page: scheme, host and path, without its query.",
    "from_snapshot_id": "The earlier capture, empty for a page that is new.",
    "to_snapshot_id": "The later capture.",
    "from_capture_timestamp_utc": "When the earlier one was captured, ISO 8601, UTC.",
    "to_capture_timestamp_utc": "When the later one was captured, ISO 8601, UTC.",
    "from_job_id": "Number of the execution that captured the earlier one.",
    "to_job_id": "Number of the execution that captured the later one.",
    "change_type": "What happened: new_page, updated, unchanged, error or gone.",
    "summary": "What changed, in a sentence.",
    "added_sections": "Sections that only the later one has.",
    "removed_sections": "Sections that only the earlier one has.",
    "changed_sections": "Sections that both have and that differ.",
    "added_lines": "Lines that only the later one has.",
    "removed_lines": "Lines that only the earlier one has.",
    "change_ratio": "Share of the text that differs, 0 to 1.",
    "high_noise": "Whether most of it looks like dates, counters and the like.",
    "diff_truncated": "Whether the comparison was cut off at its limit.",
    "diff_version": "Version of the comparison.",
    "normalization_version": "Version of the text that was compared.",
    "computed_at_utc": "When the two were compared, ISO 8601, UTC.",
    "compare_url": "Where the comparison is shown in this archive.",
}

CHANGE_COLUMNS: Final = tuple(CHANGE_MEANINGS)

CDXJ_MEANINGS: Final = {
    "key": "Sortable form of the address (SURT), the first word of a line.",
    "timestamp": "When it was captured, 14 digits, UTC, the second word.",
    "url": "Address that was captured.",
    "mime": "Media type; `warc/revisit` for a capture whose body is that of an earlier one.",
    "status": "HTTP status.",
    "digest": "Digest of the payload.",
    "length": "Bytes of the compressed record.",
    "offset": "Where the record begins in its file.",
    "filename": "Name of the WARC file.",
    "method": "Method of the request, where it was not GET.",
}
