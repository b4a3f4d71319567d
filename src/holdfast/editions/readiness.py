"""When an edition is ready, and for what: decided from its shards and its coverage. Pure.

A shard blocks until it is indexed or a person has accepted its gap. An edition is ready for search when none blocks;
for research when, besides, its coverage is documented, it has seeds, every one of them was captured, and no shard's
last run fell short of anything (`jobs.reading`); or when the gaps were accepted with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class EditionStatus(StrEnum):
    """How far an edition is."""

    PLANNED = "planned"
    IN_PROGRESS = "in_progress"
    NEEDS_REVIEW = "needs_review"
    SEARCH_READY = "search_ready"
    RESEARCH_READY = "research_ready"


class Acceptance(StrEnum):
    """What is decided about a shard, in the words of document 000."""

    PENDING = "pending"
    NEEDS_REVIEW = "needs_review"
    ACCEPTED = "accepted"
    ACCEPTED_GAP = "accepted_gap"
    EXCLUDED = "excluded"


_SETTLED = frozenset({Acceptance.ACCEPTED, Acceptance.ACCEPTED_GAP, Acceptance.EXCLUDED})
INDEXED = "indexed"
_BROKEN = frozenset({"failed", "index_failed", "cancelled"})


class ShardReadiness(NamedTuple):
    """What decides about a shard: the operators' word for its job, and what people decided."""

    status: str
    acceptance: str | None = None
    is_whole: bool = True
    """Whether its last run fell short of nothing: no host given up, no limit, no cut body, not stopped."""

    @property
    def is_accepted(self) -> bool:
        """Whether somebody has settled it, whatever its job did."""
        return self.acceptance in _SETTLED

    @property
    def is_blocking(self) -> bool:
        """Whether the edition waits for it."""
        return not self.is_accepted and self.status != INDEXED

    @property
    def falls_short(self) -> bool:
        """Whether a person has to accept its gap before an edition can be ready for research."""
        return not self.is_accepted and not self.is_whole

    @property
    def needs_review(self) -> bool:
        """Whether it will not go on by itself."""
        return not self.is_accepted and self.status in _BROKEN


class Readiness(NamedTuple):
    """What an edition may be used for."""

    status: EditionStatus
    search_ready: bool
    research_ready: bool

    def as_object(self) -> dict[str, object]:
        """Return it as reports and rows have it."""
        return {"status": self.status.value, "search_ready": self.search_ready, "research_ready": self.research_ready}


def judge(
    shards: Sequence[ShardReadiness], *, captured: int, missing_seeds: int | None, seeds: int | None = None
) -> Readiness:
    """Return how far an edition is; `missing_seeds` is None while no report has counted them.

    `seeds` is how many it has: without any, nothing says what was to be captured, so that it is ready for research only
    if every shard was accepted.
    """
    indexed = any(shard.status == INDEXED for shard in shards)
    blocking = any(shard.is_blocking for shard in shards)
    review = any(shard.needs_review for shard in shards)
    search_ready = indexed and not blocking and captured > 0
    is_meant = bool(seeds) or all(shard.is_accepted for shard in shards)
    research_ready = search_ready and missing_seeds == 0 and is_meant and not any(one.falls_short for one in shards)
    if research_ready:
        status = EditionStatus.RESEARCH_READY
    elif review:
        status = EditionStatus.NEEDS_REVIEW
    elif blocking:
        status = EditionStatus.IN_PROGRESS
    elif search_ready:
        status = EditionStatus.SEARCH_READY
    else:
        status = EditionStatus.IN_PROGRESS if shards else EditionStatus.PLANNED
    return Readiness(status, search_ready, research_ready)
