"""The report of an execution: its ending, and its URLs counted by outcome, status, type, host and depth."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from io import StringIO
from typing import Any, Final

from holdfast.clock import Clock
from holdfast.db.raw import RawDatabase
from holdfast.frontier import Account
from holdfast.frontier.outcome_words import outcome_word
from holdfast.frontier.queries import account_slice, summary
from holdfast.jobs.views.status import read_status
from holdfast.outside_text import guarded
from holdfast.records import Operator, from_row, record
from holdfast.types import FAILURES


@record
class CountedReason:
    """Number of URLs with an outcome and a reason."""

    outcome: Operator[str]
    reason: Operator[str]
    word: Operator[str]
    """The reason for display, such as `not found`."""
    count: Operator[int]
    examples: Operator[list[str]]
    """A few of the URLs; empty for captured ones."""


@record
class CountedKind:
    """Number of URLs of a kind with an outcome."""

    kind: Operator[str]
    outcome: Operator[str]
    count: Operator[int]


@record
class CountedRule:
    """Number of links to a host that a rule excluded."""

    rule: Operator[str]
    host: Operator[str]
    count: Operator[int]


@record
class RunReport:
    """The report of a run: every discovered URL has one outcome."""

    execution: Operator[int]
    state: Operator[str]
    ending: Operator[str | None]
    """How it ended, as in `/api/v1/executions/{id}`."""
    reason: Operator[str | None]
    shortfalls: Operator[dict[str, int]]
    """Shortfalls by reason and count, worst first; then the rules behind `limits`."""
    sentence: Operator[str | None]
    """The ending in a sentence; null while it is running."""
    research_ready: Operator[bool | None]
    landing: Operator[list[str]]
    """Where seeds redirected to; those hosts are in scope too."""
    total: Operator[int]
    open: Operator[int]
    """URLs without an outcome yet."""
    redirects: Operator[int]
    """Pages that only redirect to another URL; not counted as captured."""
    bytes: Operator[int]
    """Bytes from the network."""
    outcomes: Operator[dict[str, int]]
    reasons: Operator[list[CountedReason]]
    kinds: Operator[list[CountedKind]]
    statuses: Operator[dict[str, int]]
    types: Operator[dict[str, int]]
    domains: Operator[dict[str, int]]
    """URLs by host; the API returns the 200 largest."""
    depths: Operator[dict[str, int]]
    """Pages by depth; requisites and sitemaps, which have no depth, by kind."""
    excluded: Operator[list[CountedRule]]
    """Links that were not followed, the 1,000 largest groups."""


def run_report(raw_db: RawDatabase, clock: Clock, execution_id: int) -> RunReport:
    """Return the report of an execution; raise NotFound.

    A run that continued another's frontier shows both together.
    """
    run = read_status(raw_db, clock, execution_id)
    found = summary(raw_db, run.frontier_id)
    return from_row(
        RunReport,
        run,
        execution=run.execution_id,
        landing=list(run.config.get("landing") or ()),
        total=found.total,
        open=found.open,
        redirects=found.redirects,
        bytes=found.wire_bytes,
        outcomes=dict(found.outcomes),
        reasons=[
            CountedReason(
                outcome=outcome,
                reason=reason,
                word=outcome_word(outcome, reason),
                count=count,
                examples=found.examples.get((outcome, reason), []),
            )
            for (outcome, reason), count in found.reasons.items()
        ],
        kinds=[CountedKind(kind=kind, outcome=outcome, count=count) for (kind, outcome), count in found.kinds.items()],
        statuses={str(status): count for status, count in found.statuses.items()},
        types=dict(found.media_types),
        domains=dict(found.domains),
        depths={str(depth): count for depth, count in found.depths.items()},
        excluded=[CountedRule(rule=rule, host=host, count=count) for (rule, host), count in found.exclusions.items()],
    )


COLUMNS: Final = ("execution", *Account._fields)


def run_urls(
    opened: Callable[[], AbstractContextManager[RawDatabase]], runs: Iterable[int], *, failed: bool, reason: str | None
) -> Iterator[list[dict[str, Any]]]:
    """Yield the matching URLs of runs. Each step reads 1,000 rows; its list may be empty."""
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
    yield ",".join(COLUMNS) + "\n"
    for rows in slices:
        written = StringIO()
        out = csv.writer(written, lineterminator="\n")
        out.writerows([guarded(one) if isinstance(one, str) else one for one in row.values()] for row in rows)
        yield written.getvalue()
