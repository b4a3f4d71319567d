"""The newest changes as RSS 2.0. Pure; what came from pages is escaped, and what XML cannot say is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.utils import format_datetime
from html import escape

from holdfast.changes.listing.events import Event

MAX_ITEMS = 50
_UNSAYABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def rss(events: Sequence[Event], *, site: str, title: str) -> bytes:
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


def compare_path(event: Event) -> str:
    """Return where the change is shown."""
    before = "" if event.from_snapshot_id is None else f"&fromSnapshotId={event.from_snapshot_id}"
    return f"/api/changes/compare?toSnapshotId={event.to_snapshot_id}{before}"


def _item(event: Event, site: str) -> str:
    return "\n".join((
        "<item>",
        _element("title", f"{event.source_name}: {event.group or 'a page'}"),
        _element("link", f"{site}{compare_path(event)}"),
        f'<guid isPermaLink="false">change-{event.id}</guid>',
        _element("pubDate", format_datetime(event.to_captured_at, usegmt=True)),
        _element("category", event.type),
        _element("description", event.summary),
        "</item>",
    ))  # fmt: skip


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(_UNSAYABLE.sub('', text))}</{name}>"
