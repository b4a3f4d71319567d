"""How much a crawl may take: pages, bytes, time. Counted over all processes, with what is under way here."""

from __future__ import annotations

from holdfast.crawl.control import Word
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl.progress import Progress
from holdfast.types import Attempt, Kind

_UNKNOWN_BYTES = 64 * 1024
"""What an answer is taken to weigh before there was one."""


class Limits:
    """Asked before each page; exact in one process, and off by what is under way elsewhere in several.

    What an answer weighs is known when it has come. So nothing is begun that would pass the limit of bytes if all that
    is under way were of the average size so far: a crawl passes it by what single answers are larger than that.
    """

    def __init__(self, plan: CrawlPlan, progress: Progress, *, ends_at: float | None, processes: int = 1) -> None:
        self._plan, self._progress, self._processes = plan, progress, processes
        self._ends_at = ends_at
        """Monotonic moment at which `--max-time` is over."""
        self._others = Word()
        self._under_way = 0
        self._asking = 0
        """Attempts that were begun and have not been answered."""

    def hear(self, word: Word) -> None:
        """Take what the other processes have done."""
        self._others = word

    def may_start(self, attempt: Attempt) -> bool:
        """Return whether this attempt may be asked now, and count it as under way; `answered` ends its asking."""
        if self.bytes_reached() or (attempt.kind is Kind.PAGE and self.pages_reached()):
            return False
        self._under_way += attempt.kind is Kind.PAGE
        self._asking += 1
        return True

    def answered(self) -> None:
        """Say that an attempt which was started is asked for no more: what came of it is counted."""
        self._asking -= 1

    def bytes_reached(self) -> bool:
        """Return whether the bytes are used up, or may be by what is under way: the last are asked for one by one."""
        limit, progress = self._plan.max_bytes, self._progress
        if limit is None:
            return False
        if not self._asking:
            return self._bytes >= limit
        each = progress.wire_bytes / progress.requests if progress.requests else _UNKNOWN_BYTES
        expected = each * (self._asking + 1) * self._processes  # the others are as busy as we are
        return self._bytes + expected > limit

    @property
    def _bytes(self) -> int:
        """What has come, here and in the other processes."""
        return self._others.other_bytes + self._progress.wire_bytes

    def ended(self, attempt: Attempt) -> None:
        """Say that an attempt which was started is settled or put back."""
        if attempt.kind is Kind.PAGE:
            self._under_way -= 1

    def pages_reached(self) -> bool:
        """Return whether every page that may be captured is captured or under way."""
        limit = self._plan.max_pages
        return limit is not None and self._others.other_pages + self._progress.pages + self._under_way >= limit

    def pages_done(self) -> bool:
        """Return whether every page that may be captured is captured: no other will be asked for."""
        limit = self._plan.max_pages
        return limit is not None and self._others.other_pages + self._progress.pages >= limit

    def over(self, now: float) -> str | None:
        """Return which limit ends the crawl at once, if one does."""
        if self._ends_at is not None and now >= self._ends_at:
            return "max_time"
        limit = self._plan.max_bytes
        if limit is not None and self._bytes >= limit:
            return "max_bytes"
        return None
