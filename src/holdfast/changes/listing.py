"""The values of change lists, and the sentence that sums a change up. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from email.utils import format_datetime
from html import escape
from typing import NamedTuple

from holdfast.changes.verdict import ChangeType
from holdfast.errors import Invalid


class ChangeScope(NamedTuple):
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


class ListedChange(NamedTuple):
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


class ChangePage(NamedTuple):
    """A page of events."""

    events: tuple[ListedChange, ...]
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


def summary(event: ListedChange) -> str:
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


def span(first: date | None, last: date | None) -> tuple[datetime | None, datetime | None]:
    """Return the begin of the first day and the end of the last, which is exclusive; Invalid if they are turned."""
    if first is not None and last is not None and first > last:
        raise Invalid("`from` is later than `to`; turn them around")
    since = None if first is None else datetime.combine(first, time(), UTC)
    if last is None or last == date.max:
        return since, None
    return since, datetime.combine(last + timedelta(days=1), time(), UTC)


MAX_ITEMS = 50
_UNSAYABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def rss(events: Sequence[ListedChange], *, site: str, title: str) -> bytes:
    """Return the feed of these events, newest first; the same events give the same bytes."""
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel>',
        _element("title", title),
        _element("link", f"{site}/api/changes"),
        _element("description", "What changed on the archived pages, newest first."),
    ]
    if events:
        parts.append(
            _element("lastBuildDate", format_datetime(max(event.to_captured_at for event in events), usegmt=True))
        )
    parts += [_item(event, site) for event in events[:MAX_ITEMS]]
    parts.append("</channel></rss>\n")
    return "\n".join(parts).encode("utf-8", "replace")


def compare_path(event: ListedChange) -> str:
    """Return where the change is shown."""
    before = "" if event.from_snapshot_id is None else f"&fromSnapshotId={event.from_snapshot_id}"
    return f"/api/changes/compare?toSnapshotId={event.to_snapshot_id}{before}"


def _item(event: ListedChange, site: str) -> str:
    return "\n".join(
        (
            "<item>",
            _element("title", f"{event.source_name}: {event.group or 'a page'}"),
            _element("link", f"{site}{compare_path(event)}"),
            f'<guid isPermaLink="false">change-{event.id}</guid>',
            _element("pubDate", format_datetime(event.to_captured_at, usegmt=True)),
            _element("category", event.type),
            _element("description", event.summary),
            "</item>",
        )
    )


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(_UNSAYABLE.sub('', text))}</{name}>"
