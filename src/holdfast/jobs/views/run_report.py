"""The account of an execution in figures, as `holdfast report --json` prints it and the API answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.clock import Clock
from holdfast.db.raw import RawDatabase
from holdfast.frontier import Summary
from holdfast.frontier.queries import summary
from holdfast.jobs.endings import ending_word
from holdfast.jobs.views.outcome_words import outcome_word
from holdfast.jobs.views.status import ExecutionStatus, read_status


def run_report(raw_db: RawDatabase, clock: Clock, execution_id: int) -> dict[str, Any]:
    """Return how an execution ended and its addresses by outcome, counted each way; NotFound.

    A run that went on with another's frontier shows both together.
    """
    status = read_status(raw_db, clock, execution_id)
    return {**ending_object(status), **summary_object(summary(raw_db, status.frontier_id))}


def ending_object(status: ExecutionStatus) -> dict[str, Any]:
    """Return how a run ended and what it fell short of."""
    return {
        "execution": status.execution_id,
        "state": status.state,
        "ending": ending_word(status.state, status.reason),
        "reason": status.reason,
        "shortfalls": status.shortfalls,
        "sentence": status.sentence,
        "research_ready": status.rule.is_ready if status.sentence is not None else None,
        "landing": list(status.config.get("landing") or ()),
    }


def summary_object(found: Summary) -> dict[str, Any]:
    """Return the addresses of a run by outcome, counted each way."""
    return {
        "total": found.total,
        "open": found.open,
        "redirects": found.redirects,
        "bytes": found.wire_bytes,
        "outcomes": dict(found.outcomes),
        "reasons": [
            {**pair, "word": outcome_word(*key), "examples": found.examples.get(key, [])}
            for pair, key in zip(_pairs(found.reasons, "outcome", "reason"), found.reasons, strict=True)
        ],
        "kinds": _pairs(found.kinds, "kind", "outcome"),
        "statuses": {str(k): v for k, v in found.statuses.items()},
        "types": dict(found.media_types),
        "domains": dict(found.domains),
        "depths": {str(k): v for k, v in found.depths.items()},
        "excluded": _pairs(found.exclusions, "rule", "host"),
    }


def _pairs(counts: Mapping[tuple[str, str], int], first: str, second: str) -> list[dict[str, Any]]:
    return [{first: a, second: b, "count": count} for (a, b), count in counts.items()]
