"""Which kind of run this is: decided once, from what stands in the output directory. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """The four ways to begin."""

    FRESH = "Fresh"
    RESUME = "Resume"
    CONSOLIDATE = "New with Consolidation"
    OVERWRITE = "Fresh (Overwrite)"

    @property
    def stage(self) -> str:
        """What a stage of this kind is called."""
        return {Mode.RESUME: "Resume Crawl", Mode.CONSOLIDATE: "New Crawl Phase"}.get(self, "Initial Crawl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What was found, and what was asked for."""

    zim_exists: bool
    overwrite: bool
    wants_build: bool
    has_resume: bool
    has_warcs: bool
    may_resume: bool = True
    """False if the policy, a poisoned queue or too many temporary directories forbid it."""


def choose_mode(found: Situation) -> Mode | None:
    """Return how to begin, or None if a finished ZIM is in the way.

    In this order: the ZIM (which only matters if one is wanted), the saved queue, earlier WARC files, nothing.
    """
    if found.zim_exists and found.wants_build:
        return Mode.OVERWRITE if found.overwrite else None
    if found.has_resume and found.may_resume:
        return Mode.RESUME
    return Mode.CONSOLIDATE if found.has_warcs else Mode.FRESH
