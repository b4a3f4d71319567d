"""Records of changes for readers: events, comparisons, and the history of a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime

from holdfast.changes.compare import DIFF_VERSION, NORMALISATION_VERSION, DiffHunk
from holdfast.changes.rendering import diff_html
from holdfast.changes.verdict import ChangeType
from holdfast.db.models import Snapshot
from holdfast.records import Operator, Public, record


@record
class ChangeEvent:
    """A change of a page between two captures."""

    id: Public[int | None]
    """Null for a pair that was compared only for this request."""
    type: Public[str]
    """new_page, unchanged, updated, gone, error or noise."""
    source_code: Public[str]
    source_name: Public[str]
    group: Public[str | None]
    """The page's URL without its query."""
    from_snapshot_id: Public[int | None]
    to_snapshot_id: Public[int]
    from_captured_at: Public[datetime | None]
    to_captured_at: Public[datetime]
    from_execution_id: Public[int | None]
    to_execution_id: Public[int]
    diff_id: int | None = None
    added_sections: Public[int | None] = None
    removed_sections: Public[int | None] = None
    changed_sections: Public[int | None] = None
    added_lines: Public[int | None] = None
    removed_lines: Public[int | None] = None
    ratio: Public[float | None] = None
    """0 for the same text, 1 if no line is the same."""
    diff_noise: bool | None = None
    truncated: bool | None = None
    has_diff: bool | None = None
    error: Operator[str | None] = None
    computed_at: Operator[datetime | None] = None
    title: Public[str | None] = None
    """Title of the page; of the earlier capture if the later one does not show the page."""

    @property
    def high_noise(self) -> Public[bool]:
        """True if the change says little: almost everything is new, or it cannot be compared as text."""
        return bool(self.diff_noise) if self.diff_id is not None else self.type == ChangeType.UPDATED

    @property
    def diff_available(self) -> Public[bool]:
        """True if there is a diff to show."""
        return self.diff_id is not None and bool(self.has_diff)

    @property
    def summary(self) -> Public[str]:
        """A sentence about the change: sections if known, otherwise lines."""
        kind = ChangeType(self.type)
        if kind in (ChangeType.ERROR, ChangeType.NOISE) and self.error:
            return f"{_SENTENCES[kind]}: {self.error}"
        if kind is not ChangeType.UPDATED:
            return _SENTENCES[kind]
        if self.diff_id is None:
            return "Updated; the two versions cannot be compared as text (high noise)"
        sections = self.added_sections or 0, self.removed_sections or 0, self.changed_sections or 0
        return counts_summary(
            sections, (self.added_lines or 0, self.removed_lines or 0), has_high_noise=self.high_noise
        )


_SENTENCES = {
    ChangeType.NEW_PAGE: "First capture of this page",
    ChangeType.UNCHANGED: "No change since the capture before",
    ChangeType.GONE: "The page is gone",
    ChangeType.ERROR: "The page could not be captured",
    ChangeType.NOISE: "Something else was captured in place of the page",
}


def counts_summary(sections: tuple[int, int, int], lines: tuple[int, int], *, has_high_noise: bool) -> str:
    """Return a sentence about added, removed and changed sections, or about lines if no sections differ."""
    added, removed, changed = sections
    found = _counted("section", (changed, "changed"), (added, "added"), (removed, "removed"))
    summed_up = found or _counted("line", (lines[0], "added"), (lines[1], "removed")) or "Updated; the text is the same"
    return f"{summed_up} (high noise)" if has_high_noise else summed_up


def _counted(noun: str, *counts: tuple[int, str]) -> str:
    parts = [f"{count} {noun if count == 1 else f'{noun}s'} {verb}" for count, verb in counts if count]
    return ", ".join(parts)


@record
class ChangeList:
    """A page of changes, newest first."""

    enabled: Public[bool]
    total: Public[int]
    total_is_exact: Public[bool]
    """False if more changes match than one request reads."""
    page: Public[int]
    page_size: Public[int]
    results: Public[list[ChangeEvent]]


@record
class ComparedSnapshot:
    """One side of a comparison."""

    snapshot_id: Public[int]
    title: Public[str | None]
    capture_date: Public[date]
    capture_timestamp: Public[datetime]
    original_url: Public[str]
    job_id: Public[int]
    job_name: Public[str]


def compared_snapshot(row: Snapshot, *, title: str | None, job_name: str) -> ComparedSnapshot:
    return ComparedSnapshot(
        snapshot_id=row.id,
        title=title,
        capture_date=row.captured_at.date(),
        capture_timestamp=row.captured_at,
        original_url=row.url,
        job_id=row.execution_id,
        job_name=job_name,
    )


@record
class StructuredDiff:
    """A diff as data: hunks of lines, each split into words."""

    sections: Public[list[str]]
    """Titles of the sections that differ."""
    hunks: Public[list[DiffHunk]]


def structured_diff(hunks: Iterable[DiffHunk], sections: Iterable[str]) -> StructuredDiff:
    return StructuredDiff(sections=list(sections), hunks=list(hunks))


@record
class TextDiff:
    """The differences between two texts."""

    diff_format: Public[str | None]
    """html; null if the two cannot be compared as text."""
    diff_html: Public[str | None]
    """Escaped; safe to insert. Empty if the text is the same."""
    diff_truncated: Public[bool]
    diff_version: Public[str | None]
    normalization_version: Public[str | None]
    diff: Public[StructuredDiff | None]
    text_mode_requested: Public[str]
    """main or full."""
    text_mode_used: Public[str]
    text_mode_fallback: Public[bool]
    """True if the full text could no longer be read, and the main text was compared instead."""


def text_diff(
    hunks: Sequence[DiffHunk] | None, sections: Sequence[str], *, requested: str, used: str, truncated: bool
) -> TextDiff:
    """Return the differences; `hunks` is None if the two cannot be compared as text."""
    is_text = hunks is not None
    return TextDiff(
        diff_format="html" if is_text else None,
        diff_html=diff_html(hunks) if hunks is not None else None,
        diff_truncated=truncated,
        diff_version=f"v{DIFF_VERSION}" if is_text else None,
        normalization_version=f"v{NORMALISATION_VERSION}" if is_text else None,
        diff=structured_diff(hunks, sections) if hunks is not None else None,
        text_mode_requested=requested,
        text_mode_used=used,
        text_mode_fallback=used != requested,
    )


@record
class Comparison(TextDiff):
    """Two captures of a page and their differences."""

    event: Public[ChangeEvent]
    from_snapshot: Public[ComparedSnapshot | None]
    to_snapshot: Public[ComparedSnapshot]


@record
class LiveFetch:
    """The response of the live page."""

    requested_url: Public[str]
    final_url: Public[str]
    """URL after all redirects."""
    status_code: Public[int]
    content_type: Public[str | None]
    bytes_read: Public[int]
    """Decompressed size."""
    fetched_at: Public[datetime]


@record
class LiveStats:
    """The difference between a capture and the live page in figures; null if the live page is an error page."""

    change_type: Public[str]
    """unchanged, updated, gone or error."""
    summary: Public[str]
    added_sections: Public[int | None]
    removed_sections: Public[int | None]
    changed_sections: Public[int | None]
    added_lines: Public[int | None]
    removed_lines: Public[int | None]
    change_ratio: Public[float | None]
    """0 for the same text, 1 if no line is the same."""
    high_noise: Public[bool]


@record
class LiveComparison(TextDiff):
    """A capture, the live page, and their differences."""

    archived_snapshot: Public[ComparedSnapshot]
    source_code: Public[str]
    live_fetch: Public[LiveFetch]
    stats: Public[LiveStats]


@record
class TimelineSnapshot:
    """One capture in the history of a page."""

    snapshot_id: Public[int]
    capture_date: Public[date]
    capture_timestamp: Public[datetime]
    job_id: Public[int]
    job_name: Public[str]
    title: Public[str | None]
    status_code: Public[int | None]
    noise: Public[str | None]
    """Type of noise captured instead of the page; null if the capture shows the page."""
    compare_from_snapshot_id: Public[int | None]
    """The previous capture, to compare with."""
    browse_url: Public[str | None]


@record
class Timeline:
    """The history of a page, oldest first."""

    source_code: Public[str]
    source_name: Public[str]
    normalized_url_group: Public[str | None]
    truncated: Public[bool]
    """True if there are older captures than these."""
    snapshots: Public[list[TimelineSnapshot]]
