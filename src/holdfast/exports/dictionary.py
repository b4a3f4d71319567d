"""What each column of an export means: the data dictionary, for readers and for the page of the API."""

from __future__ import annotations

from typing import Final

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
"""Columns of `/api/exports/snapshots`."""

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
"""Columns of `/api/exports/changes`."""

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
"""Fields of `/api/exports/cdxj`."""
