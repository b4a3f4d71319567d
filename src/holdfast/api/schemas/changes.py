"""Answers about changes: lists, comparisons, timelines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from pydantic import Field

from holdfast.api.schemas.base import Answer
from holdfast.changes.compare import DIFF_VERSION, NORMALISATION_VERSION, Hunk
from holdfast.changes.listing import ListedChange
from holdfast.changes.pairs import TextMode
from holdfast.changes.rendering import diff_html, diff_object


class ChangeEvent(Answer):
    """What happened to a page between two captures."""

    change_id: int | None = Field(description="None for a pair that was only compared for this question.")
    change_type: str = Field(description="new_page, unchanged, updated, gone, error or noise.")
    summary: str
    high_noise: bool
    diff_available: bool
    source_code: str
    source_name: str
    normalized_url_group: str | None
    from_snapshot_id: int | None
    to_snapshot_id: int
    from_capture_timestamp: datetime | None
    to_capture_timestamp: datetime
    from_job_id: int | None
    to_job_id: int
    added_sections: int | None
    removed_sections: int | None
    changed_sections: int | None
    added_lines: int | None
    removed_lines: int | None
    change_ratio: float | None = Field(description="0 for the same text, 1 if no line is the same.")
    title: str | None = Field(description="Of the page, as its text says; of the earlier capture if the page is lost.")

    @classmethod
    def of(cls, event: ListedChange) -> ChangeEvent:
        """Return an event as it is answered."""
        return cls(
            change_id=event.id,
            change_type=event.type,
            summary=event.summary,
            high_noise=event.high_noise,
            diff_available=event.diff_available,
            source_code=event.source_code,
            source_name=event.source_name,
            normalized_url_group=event.group,
            from_snapshot_id=event.from_snapshot_id,
            to_snapshot_id=event.to_snapshot_id,
            from_capture_timestamp=event.from_captured_at,
            to_capture_timestamp=event.to_captured_at,
            from_job_id=event.from_execution_id,
            to_job_id=event.to_execution_id,
            added_sections=event.added_sections,
            removed_sections=event.removed_sections,
            changed_sections=event.changed_sections,
            added_lines=event.added_lines,
            removed_lines=event.removed_lines,
            change_ratio=event.ratio,
            title=event.title,
        )


class ChangeList(Answer):
    """A page of changes, newest first."""

    enabled: bool
    total: int
    total_is_exact: bool = Field(True, description="False where more changes are in reach than one question reads.")
    page: int
    page_size: int
    results: list[ChangeEvent]


class ComparedSnapshot(Answer):
    """One side of a comparison."""

    snapshot_id: int
    title: str | None
    capture_date: date
    capture_timestamp: datetime
    original_url: str
    job_id: int
    job_name: str


class DiffPart(Answer):
    """A piece of a line."""

    type: str = Field(description="same, removed or added.")
    text: str


class DiffRow(Answer):
    """A line of a diff."""

    type: str = Field(description="context, removed or added.")
    parts: list[DiffPart]


class DiffHunk(Answer):
    """Lines around a difference; places are counted from 1."""

    from_line: int
    from_count: int
    to_line: int
    to_count: int
    lines: list[DiffRow]


class StructuredDiff(Answer):
    """A diff as data: hunks of lines of words."""

    sections: list[str] = Field(description="Titles of the sections that differ.")
    hunks: list[DiffHunk]


class TextDiff(Answer):
    """What differs between two texts."""

    diff_format: str | None = Field(description="html, or none if the two cannot be compared as text.")
    diff_html: str | None = Field(description="Escaped; safe to insert. Empty if the text is the same.")
    diff_truncated: bool
    diff_version: str | None
    normalization_version: str | None
    diff: StructuredDiff | None
    text_mode_requested: str = Field(description="main or full.")
    text_mode_used: str
    text_mode_fallback: bool = Field(description="The full text could not be read any more; the main one was compared.")


class Comparison(TextDiff):
    """Two captures of a page and what differs between them."""

    event: ChangeEvent
    from_snapshot: ComparedSnapshot | None
    to_snapshot: ComparedSnapshot


class LiveFetch(Answer):
    """How the live page answered."""

    requested_url: str = Field(examples=["https://example.org/"])
    final_url: str = Field(description="Where the redirects ended.", examples=["https://www.example.org/"])
    status_code: int = Field(examples=[200])
    content_type: str | None = Field(examples=["text/html"])
    bytes_read: int = Field(description="Decompressed.", examples=[5120])
    fetched_at: datetime


class LiveStats(Answer):
    """The difference between a capture and the live page in figures; null where the live page is an error page."""

    change_type: str = Field(description="unchanged, updated, gone or error.", examples=["updated"])
    summary: str = Field(examples=["1 section changed"])
    added_sections: int | None
    removed_sections: int | None
    changed_sections: int | None
    added_lines: int | None
    removed_lines: int | None
    change_ratio: float | None = Field(description="0 for the same text, 1 if no line is the same.")
    high_noise: bool


class LiveComparison(TextDiff):
    """A capture, the live page, and what differs between them."""

    archived_snapshot: ComparedSnapshot
    source_code: str
    live_fetch: LiveFetch
    stats: LiveStats


class TimelineSnapshot(Answer):
    """One capture in the history of a page."""

    snapshot_id: int
    capture_date: date
    capture_timestamp: datetime
    job_id: int
    job_name: str
    title: str | None
    status_code: int | None
    noise: str | None = Field(description="What it shows instead of the page; null where it shows the page.")
    compare_from_snapshot_id: int | None = Field(description="The capture before it, to compare with.")
    browse_url: str | None


class Timeline(Answer):
    """The history of a page, oldest first."""

    source_code: str
    source_name: str
    normalized_url_group: str | None
    truncated: bool = Field(False, description="There are older captures than these.")
    snapshots: list[TimelineSnapshot]


def diff_fields(
    hunks: Sequence[Hunk] | None, touched: Sequence[str], modes: tuple[TextMode, TextMode], *, truncated: bool
) -> dict[str, Any]:
    """Return the fields of a TextDiff; `modes` are the one that was asked for and the one that was compared."""
    asked, used = modes
    shown: dict[str, Any] = {
        "diff_truncated": truncated,
        "text_mode_requested": asked.value,
        "text_mode_used": used.value,
        "text_mode_fallback": used is not asked,
    }
    if hunks is None:
        return shown | dict.fromkeys(("diff_format", "diff_html", "diff_version", "normalization_version", "diff"))
    return shown | {
        "diff_format": "html",
        "diff_html": diff_html(hunks),
        "diff_version": f"v{DIFF_VERSION}",
        "normalization_version": f"v{NORMALISATION_VERSION}",
        "diff": StructuredDiff.model_validate(diff_object(hunks, touched)),
    }


def side(snapshot: Any, title: str | None, job_name: str) -> ComparedSnapshot:
    """Return one side of a comparison as it is answered."""
    return ComparedSnapshot(
        snapshot_id=snapshot.id,
        title=title,
        capture_date=snapshot.captured_at.date(),
        capture_timestamp=snapshot.captured_at,
        original_url=snapshot.url,
        job_id=snapshot.execution_id,
        job_name=job_name,
    )
