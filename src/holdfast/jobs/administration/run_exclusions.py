"""Exclude rules that an operator adds to a running crawl, and a preview of their matches in its queue.

A run applies them within a second. Queued URLs that match are not requested any more: each is recorded as
excluded by its rule when its turn comes, without a request to its host. The rules last for the run and its
retries; the source's own rules change with the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.audit_events import append_event
from holdfast.db.models import Execution
from holdfast.db.raw import RawDatabase
from holdfast.errors import Conflict, Invalid, UrlRefused
from holdfast.frontier.attempts import UrlFilter, UrlStatus, each_url
from holdfast.jobs import execution_queries
from holdfast.jobs.store import ExecutionNotFound
from holdfast.jobs.views.listing import execution
from holdfast.records import Operator, record
from holdfast.sources.plan import stored_plan
from holdfast.urls import parse
from holdfast.urls.scope import Patterns

MOST_RULES: Final = 200
LOOKED_AT: Final = 50_000
"""Queued URLs that a preview reads; each takes 10 us."""
_AT_ONCE = 500
_SAMPLES = 10
_QUEUED: Final = (UrlStatus.PENDING, UrlStatus.DEFERRED)


class ExclusionsRefused(Invalid):
    """An invalid exclude rule."""

    code = "exclusions_refused"

    def __init__(self, reason: str) -> None:
        super().__init__(f"rules: {reason}")
        self.field = "rules"


class NotRunning(Conflict):
    """Rules can only be added to a running crawl of our own crawler."""

    code = "not_running"

    def __init__(self, execution_id: int) -> None:
        super().__init__(
            f"execution {execution_id} is no crawl of ours that runs; change the rules of its source for the next run"
        )


@record
class RunExclusions:
    """The exclude patterns of a run."""

    execution_id: Operator[int]
    rules: Operator[list[str]]
    """Patterns that the run started with; change them in its source, for the next run."""
    added: Operator[list[str]]
    """Patterns added while it ran."""
    is_editable: Operator[bool]
    """Whether it is a running crawl of our own crawler without a stop request."""


@record
class MatchedUrls:
    """Number of queued URLs of a run that match some rules."""

    matching: Operator[int]
    """Queued URLs that would no longer be requested."""
    looked_at: Operator[int]
    is_all: Operator[bool]
    """False if the queue has more URLs than were checked."""
    samples: Operator[list[str]]


def run_exclusions(session: Session, execution_id: int) -> RunExclusions:
    """Return the exclude patterns of a run; raise ExecutionNotFound."""
    row = _run(session, execution_id)
    config = row.config
    return RunExclusions(
        execution_id=row.id,
        rules=list(config.get("exclude") or ()),
        added=list(config.get("exclusions") or ()),
        is_editable=_is_ours(config) and row.state == "running" and row.stop_requested is None,
    )


def _run(session: Session, execution_id: int) -> Execution:
    row = execution(session, execution_id)
    if row is None:
        raise ExecutionNotFound
    return row


def _is_ours(config: Mapping[str, Any]) -> bool:
    """Return whether a run's row has a plan of our own crawler; zimit's has seeds, too, but no plan."""
    return bool(config.get("seeds") and config.get("contact"))


def matched_urls(
    session: Session, execution_id: int, rules: Sequence[str], *, goes_on: Callable[[], bool]
) -> MatchedUrls:
    """Count the queued URLs of a run that match these rules; raise ExecutionNotFound.

    Stops when `goes_on` returns False, or after 50,000 URLs.
    """
    row = _run(session, execution_id)
    patterns, policy = _compiled(rules), stored_plan(row.config).normalisation() if _is_ours(row.config) else None
    matching = looked_at = 0
    samples: list[str] = []
    for url in _queued(session, row.frontier_id or row.id):
        if looked_at >= LOOKED_AT or (looked_at % _AT_ONCE == 0 and not goes_on()):
            return MatchedUrls(matching=matching, looked_at=looked_at, is_all=False, samples=samples)
        looked_at += 1
        try:
            normalised = parse(url, policy).normalised if policy is not None else parse(url).normalised
        except UrlRefused:
            continue
        if patterns.first(normalised) is not None:
            matching += 1
            if len(samples) < _SAMPLES:
                samples.append(url)
    return MatchedUrls(matching=matching, looked_at=looked_at, is_all=True, samples=samples)


def _queued(session: Session, frontier_id: int) -> Iterator[str]:
    for status in _QUEUED:
        yield from (row.url for row in each_url(session, frontier_id, UrlFilter(status=status, limit=_AT_ONCE)))


def _compiled(rules: Sequence[str]) -> Patterns:
    if len(rules) > MOST_RULES:
        raise ExclusionsRefused(f"{len(rules)} are more than {MOST_RULES}; join some with |")
    try:
        return Patterns(rules)
    except Invalid as exc:
        raise ExclusionsRefused(str(exc)) from exc


def exclude_from_run(raw_db: RawDatabase, clock: Clock, before: RunExclusions, rules: Sequence[str]) -> RunExclusions:
    """Set the exclude rules added to a run, besides its original ones; raise NotRunning or ExclusionsRefused."""
    wanted = list(dict.fromkeys(rules))
    _compiled((*before.rules, *wanted))
    if not before.is_editable:
        raise NotRunning(before.execution_id)
    with raw_db.write() as tx:
        if not execution_queries.set_exclusions(tx, raw_db.dialect, execution_id=before.execution_id, rules=wanted):
            raise NotRunning(before.execution_id)
        subject, detail = f"execution {before.execution_id}", {"before": before.added, "after": wanted}
        append_event(tx, clock, action="execution.exclusions", subject=subject, detail=detail)
    return replace(before, added=wanted)
