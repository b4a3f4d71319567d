"""The addresses of runs with their outcomes, a slice at a time: for `holdfast report` and the API."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from io import StringIO
from typing import Any, Final

from holdfast.db.raw import RawDatabase
from holdfast.frontier import Account
from holdfast.frontier.queries import account_slice
from holdfast.outside_text import guarded
from holdfast.types import FAILURES

COLUMNS: Final = ("execution", *Account._fields)


def run_urls(
    opened: Callable[[], AbstractContextManager[RawDatabase]], runs: Iterable[int], *, failed: bool, reason: str | None
) -> Iterator[list[dict[str, Any]]]:
    """Yield the addresses of runs that match. Each step reads a thousand rows; its list may be empty."""
    for run in runs:
        after: tuple[int, int] | None = (-1, -1)
        while after is not None:
            with opened() as raw_db:
                rows, after = account_slice(raw_db, run, after)
            chosen = (row for row in rows if (not failed or row.outcome in FAILURES) and reason in (None, row.reason))
            yield [_fields(run, row) for row in chosen]


def _fields(run: int, row: Account) -> dict[str, Any]:
    fields = {"execution": run, **row._asdict()}
    fields["outcome"] = row.outcome.value if row.outcome is not None else "open"
    fields["kind"] = row.kind.value
    fields["completed_at"] = row.completed_at.isoformat() if row.completed_at else None
    return fields


def csv_pieces(slices: Iterable[list[dict[str, Any]]]) -> Iterator[str]:
    """Yield CSV: the heading, then a piece for each slice."""
    yield ",".join(COLUMNS) + "\n"
    for rows in slices:
        written = StringIO()
        out = csv.writer(written, lineterminator="\n")
        out.writerows([guarded(one) if isinstance(one, str) else one for one in row.values()] for row in rows)
        yield written.getvalue()
