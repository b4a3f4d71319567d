"""How often a page that does not change is looked at: less and less, up to once a day. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

CAP = timedelta(hours=24)
_DOUBLINGS = 32
"""More would only overflow: a minute doubled so often is longer than any cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPage:
    """What a run saw at its start address. Neither a hash nor `not_modified` means that it saw nothing to judge by."""

    content_hash: str | None = None
    not_modified: bool = False
    """The server said 304, or gave the ETag that we had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is remembered of a start page between runs."""

    content_hash: str | None = None
    changed_at: datetime | None = None
    unchanged: int = 0
    """Runs in a row that found it as it was."""


def looked(before: Watched, page: StartPage, *, now: datetime) -> Watched:
    """Return what is remembered after a run; a page that could not be judged leaves everything as it was."""
    if page.not_modified or (page.content_hash is not None and page.content_hash == before.content_hash):
        return replace(before, unchanged=max(before.unchanged, 0) + 1)
    if page.content_hash is None:
        return before
    return Watched(content_hash=page.content_hash, changed_at=now)


def interval(baseline: timedelta, unchanged: int) -> timedelta:
    """Return baseline·2^unchanged, at most 24 hours; never less than the baseline, however long that is."""
    if unchanged <= 0 or baseline <= timedelta():
        return baseline
    longest = max(CAP, baseline)
    doublings = min(unchanged, _DOUBLINGS)
    return min(longest, timedelta(seconds=min(baseline.total_seconds() * 2**doublings, longest.total_seconds())))
