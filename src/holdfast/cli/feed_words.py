"""How feeds stand altogether, as `holdfast status` shows it: only what deserves a look."""

from __future__ import annotations

from typing import Any

from holdfast.clock import from_micros
from holdfast.feeds.standing.standing import FeedStanding

_SHOWN = 5


def lines(standing: FeedStanding) -> list[str]:
    """Return a line for each thing that deserves a look; none if all is well."""
    shown = [f"feed {one.feed_id} of {one.source} is disabled ({one.trouble}): {one.url}; "
             f"try again: holdfast feed enable {one.feed_id}" for one in standing.disabled[:_SHOWN]]  # fmt: skip
    if len(standing.disabled) > _SHOWN:
        shown.append(f"{len(standing.disabled) - _SHOWN:,} more feeds are disabled: holdfast feed list --disabled")
    shown += [f"late: {one.feeds:,} feeds of {one.source} wait to be polled since "
              f"{from_micros(one.since):%Y-%m-%d %H:%M}; a worker for them: holdfast start-worker --kinds feed"
              for one in standing.late[:_SHOWN]]  # fmt: skip
    if len(standing.late) > _SHOWN:
        shown.append(f"late: the feeds of {len(standing.late) - _SHOWN:,} more sources")
    shown += [
        f"backlog: {feeds:,} feeds of {source} name more than may wait; what is left is read again, "
        "see HOLDFAST_FEEDS_WAITING and HOLDFAST_FEEDS_ITEMS"
        for source, feeds in standing.backlogs[:_SHOWN]
    ]
    if len(standing.backlogs) > _SHOWN:
        shown.append(f"backlog: feeds of {len(standing.backlogs) - _SHOWN:,} more sources")
    return shown


def as_object(standing: FeedStanding) -> dict[str, Any]:
    """Return the same for `--json`."""
    return {
        "disabled": [{"feed": one.feed_id, "source": one.source, "url": one.url, "error_type": one.trouble,
                      "disabled_at": from_micros(one.disabled_at).isoformat()} for one in standing.disabled],
        "late": [{"source": one.source, "feeds": one.feeds, "since": from_micros(one.since).isoformat()}
                 for one in standing.late],
        "backlog": [{"source": source, "feeds": feeds} for source, feeds in standing.backlogs],
    }  # fmt: skip
