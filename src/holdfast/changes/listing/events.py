"""The values of change lists, and the sentence that sums a change up. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from holdfast.changes.verdict import ChangeType


class Scope(NamedTuple):
    """Which changes are meant."""

    source_id: int | None = None
    execution_id: int | None = None
    latest: bool = False
    """Only the latest crawl of the source, or of each source."""
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""
    unchanged: bool = False
    """Also the captures at which nothing had changed."""


class Event(NamedTuple):
    """One change, with what readers want to know of it."""

    id: int | None
    type: str
    source_code: str
    source_name: str
    group: str | None
    from_snapshot_id: int | None
    to_snapshot_id: int
    from_captured_at: datetime | None
    to_captured_at: datetime
    from_execution_id: int | None
    to_execution_id: int
    diff_id: int | None
    added_sections: int | None
    removed_sections: int | None
    changed_sections: int | None
    added_lines: int | None
    removed_lines: int | None
    ratio: float | None
    diff_noise: bool | None
    truncated: bool | None
    has_diff: bool | None
    version: int | None
    error: str | None
    computed_at: datetime | None

    @property
    def high_noise(self) -> bool:
        """Whether the change says little: almost all is new, or it cannot be compared as text."""
        return bool(self.diff_noise) if self.diff_id is not None else self.type == ChangeType.UPDATED

    @property
    def diff_available(self) -> bool:
        """Whether there is a diff to show."""
        return self.diff_id is not None and bool(self.has_diff)

    @property
    def summary(self) -> str:
        """What happened, in a sentence."""
        return summary(self)


class Page(NamedTuple):
    """A page of events."""

    events: tuple[Event, ...]
    total: int
    is_exact: bool


class TimelineEntry(NamedTuple):
    """One capture in the history of a page."""

    id: int
    url_hash: int
    url: str
    captured_at: datetime
    execution_id: int
    title: str | None
    status: int | None


_PLAIN = {
    ChangeType.NEW_PAGE: "First capture of this page",
    ChangeType.UNCHANGED: "No change since the capture before",
    ChangeType.GONE: "The page is gone",
    ChangeType.ERROR: "The page could not be captured",
}


def summary(event: Event) -> str:
    """Return what happened: sections where they are known, else lines, with a warning where most of it is noise."""
    kind = ChangeType(event.type)
    if kind is ChangeType.ERROR and event.error:
        return f"{_PLAIN[kind]}: {event.error}"
    if kind is not ChangeType.UPDATED:
        return _PLAIN[kind]
    if event.diff_id is None:
        return "Updated; the two versions cannot be compared as text (high noise)"
    sections = _counted(
        "section",
        (event.changed_sections, "changed"),
        (event.added_sections, "added"),
        (event.removed_sections, "removed"),
    )
    lines = _counted("line", (event.added_lines, "added"), (event.removed_lines, "removed"))
    told = sections or lines or "Updated; the text is the same"
    return f"{told} (high noise)" if event.high_noise else told


def _counted(noun: str, *counts: tuple[int | None, str]) -> str:
    parts = [f"{count} {noun if count == 1 else f'{noun}s'} {verb}" for count, verb in counts if count]
    return ", ".join(parts)
