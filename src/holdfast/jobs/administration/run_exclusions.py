"""Exclude rules that an operator adds to a run under way, and what they would match of its queue.

A run hears of them within a second. What is queued and matches is not asked for any more: it ends as left out by its
rule when its turn comes, which costs its host no request. The rules last for the run and its retries; those of the
source are changed with the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.audit_events import append_event
from holdfast.db.models import Execution
from holdfast.db.raw import RawDatabase
from holdfast.errors import Conflict, Invalid, UrlRefused
from holdfast.jobs import execution_queries
from holdfast.jobs.administration.frontier_actions import stored_plan
from holdfast.jobs.views.frontier_queries import UrlFilter, UrlStatus, frontier_urls
from holdfast.jobs.views.listing import execution
from holdfast.urls import parse
from holdfast.urls.scope import Patterns

MOST_RULES: Final = 200
LOOKED_AT: Final = 50_000
"""Queued addresses that a preview looks at: to read one takes 10 us."""
_AT_ONCE = 500
_SAMPLES = 10
_QUEUED: Final = (UrlStatus.PENDING, UrlStatus.DEFERRED)


class ExclusionsRefused(Invalid):
    """A rule cannot be used."""

    code = "exclusions_refused"

    def __init__(self, reason: str) -> None:
        super().__init__(f"rules: {reason}")
        self.field = "rules"


class NotRunning(Conflict):
    """Rules are added to a run that is over, or that is not of our own crawler."""

    code = "not_running"

    def __init__(self, execution_id: int) -> None:
        super().__init__(
            f"execution {execution_id} is no crawl of ours that runs; change the rules of its source for the next run"
        )


class RunExclusions(NamedTuple):
    """What a run leaves out."""

    execution_id: int
    rules: tuple[str, ...]
    """Those that it began with: its source's and its job's."""
    added: tuple[str, ...]
    """Those that were added since."""
    is_editable: bool


class MatchedUrls(NamedTuple):
    """What of a queue some rules match."""

    matching: int
    looked_at: int
    is_all: bool
    """False if more is queued than was looked at."""
    samples: tuple[str, ...]


def run_exclusions(session: Session, execution_id: int) -> RunExclusions | None:
    """Return what a run leaves out; None if there is no such run."""
    row = execution(session, execution_id)
    return None if row is None else _shown(row)


def _is_ours(config: Mapping[str, Any]) -> bool:
    """Return whether a run has a plan of ours in its row; one of zimit, which has seeds too, has none."""
    return bool(config.get("seeds") and config.get("contact"))


def _shown(row: Execution) -> RunExclusions:
    config = row.config
    return RunExclusions(
        execution_id=row.id,
        rules=tuple(config.get("exclude") or ()),
        added=tuple(config.get("exclusions") or ()),
        is_editable=_is_ours(config) and row.state == "running" and row.stop_requested is None,
    )


def matched_urls(
    session: Session, execution_id: int, rules: Sequence[str], *, goes_on: Callable[[], bool]
) -> MatchedUrls | None:
    """Return how many queued addresses of a run these rules match; None if there is no such run.

    It ends when the caller says so, or when it has looked at 50,000.
    """
    row = execution(session, execution_id)
    if row is None:
        return None
    patterns, policy = _compiled(rules), stored_plan(row.config).normalisation() if _is_ours(row.config) else None
    matching = looked_at = 0
    samples: list[str] = []
    for url in _queued(session, row.frontier_id or row.id):
        if looked_at >= LOOKED_AT or (looked_at % _AT_ONCE == 0 and not goes_on()):
            return MatchedUrls(matching, looked_at, False, tuple(samples))
        looked_at += 1
        try:
            normalised = parse(url, policy).normalised if policy is not None else parse(url).normalised
        except UrlRefused:
            continue
        if patterns.first(normalised) is not None:
            matching += 1
            if len(samples) < _SAMPLES:
                samples.append(url)
    return MatchedUrls(matching, looked_at, True, tuple(samples))


def _queued(session: Session, frontier_id: int) -> Iterator[str]:
    for status in _QUEUED:
        after: list[int] | None = None
        while True:
            found = frontier_urls(session, frontier_id, UrlFilter(status=status, limit=_AT_ONCE, after=after))
            yield from (row.url for row in found.rows)
            if found.next is None:
                break
            after = [int(part) for part in found.next]


def _compiled(rules: Sequence[str]) -> Patterns:
    if len(rules) > MOST_RULES:
        raise ExclusionsRefused(f"{len(rules)} are more than {MOST_RULES}; join some with |")
    try:
        return Patterns(rules)
    except Invalid as exc:
        raise ExclusionsRefused(str(exc)) from exc


def exclude_from_run(raw_db: RawDatabase, clock: Clock, before: RunExclusions, rules: Sequence[str]) -> RunExclusions:
    """Let a run leave out what these rules match, besides what it began with; NotRunning, ExclusionsRefused."""
    wanted = tuple(dict.fromkeys(rules))
    _compiled((*before.rules, *wanted))
    if not before.is_editable:
        raise NotRunning(before.execution_id)
    with raw_db.write() as tx:
        if not execution_queries.set_exclusions(tx, raw_db.dialect, execution_id=before.execution_id, rules=wanted):
            raise NotRunning(before.execution_id)
        append_event(
            tx,
            clock,
            action="execution.exclusions",
            subject=f"execution {before.execution_id}",
            detail={"before": list(before.added), "after": list(wanted)},
        )
    return before._replace(added=wanted)
