"""Days as people name them, and the moments between which they lie. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from holdfast.errors import Invalid


def span(first: date | None, last: date | None) -> tuple[datetime | None, datetime | None]:
    """Return the begin of the first day and the end of the last, which is exclusive; Invalid if they are turned."""
    if first is not None and last is not None and first > last:
        raise Invalid("`from` is later than `to`; turn them around")
    since = None if first is None else datetime.combine(first, time(), UTC)
    if last is None or last == date.max:
        return since, None
    return since, datetime.combine(last + timedelta(days=1), time(), UTC)
