"""How a run ended, as whoever ran it tells: what was counted, what broke, and what the start page looked like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from holdfast.jobs.adaptive import StartPage
from holdfast.jobs.reading import Reading, Retry, Rule, rule_of, sentence_of
from holdfast.jobs.retries import Failure

MAX_ERROR_CHARS = 4_000
MAX_STACK_CHARS = 32_000


class Result(StrEnum):
    """The three ends of a run; one that is to be continued is released instead."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a run did and what it cost."""

    items_crawled: int = 0
    items_indexed: int = 0
    items_failed: int = 0
    items_total: int = 0
    cpu_ms: int | None = None
    peak_memory_bytes: int | None = None

    @property
    def items(self) -> tuple[int, int, int, int]:
        """What was done, without what it cost."""
        return self.items_crawled, self.items_indexed, self.items_failed, self.items_total

    def after(self, before: Counts) -> Counts:
        """Return the same, with what earlier holders of the execution cost: time adds up, the most memory counts."""
        spent = [one for one in (before.cpu_ms, self.cpu_ms) if one is not None]
        peaks = [one for one in (before.peak_memory_bytes, self.peak_memory_bytes) if one is not None]
        return replace(self, cpu_ms=sum(spent) if spent else None, peak_memory_bytes=max(peaks, default=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What follows a failed crawl where its backend knows better than the retry budget."""

    again: bool
    """Tried again at once, or given up."""
    counts_anew: bool = False
    """Failures are counted from the first again: something else does the work from here on."""
    job_config: dict[str, Any] | None = None
    """What the job's configuration becomes, if something else does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of one run."""

    result: Result
    reason: str | None = None
    shortfalls: Mapping[str, int] = field(default_factory=dict)
    """What it fell short of, by the words of `jobs.reading`, the worst first."""
    failure: Failure | None = None
    """Whose fault it was, if it failed."""
    error: str | None = None
    stack: str | None = None
    exit_code: int | None = None
    stage: str | None = None
    counts: Counts = field(default_factory=Counts)
    metrics: dict[str, Any] = field(default_factory=dict)
    start: StartPage = field(default_factory=StartPage)
    index_state: str | None = None
    """`pending` if there are WARC files to index."""
    artifacts: dict[str, Any] = field(default_factory=dict)
    """Files beside the WARC files, by kind: combined_log, state_file, final_zim, coverage_report."""
    not_before: datetime | None = None
    """When what could not be reached may be asked again: a retry that begins earlier would only wait."""
    verdict: Verdict | None = None
    """Heard only if the crawl itself failed."""

    @classmethod
    def of(cls, reading: Reading, **fields: Any) -> Self:
        """Return the ending that a reading stands for: completed, failed, or cancelled.

        A failure is the crawl's own, but for those that burn no retry: these are the machine's.
        """
        result = Result(reading.state)
        failure = None
        if result is Result.FAILED:
            failure = Failure.INFRA if reading.rule.retry is Retry.LATER else Failure.FAILED
        return cls(result=result, reason=reading.reason, shortfalls=reading.shortfalls, failure=failure, **fields)

    @property
    def rule(self) -> Rule:
        """What follows from it: its reason says so, or whose fault it was where there is none."""
        return rule_of(self.result.value, self.reason or self.failure)

    def sentence(self) -> str:
        """Return it in words for people."""
        return sentence_of(self.result.value, self.reason, self.shortfalls)
