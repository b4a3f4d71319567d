"""How much a crawl may take: pages, bytes, time. Counted over all processes, with what is under way here."""

from __future__ import annotations

from holdfast.crawl.control import Word
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl.progress import Progress
from holdfast.types import Attempt, Kind


class Limits:
    """Asked before each page; exact in one process, and off by what is under way elsewhere in several."""

    def __init__(self, plan: CrawlPlan, progress: Progress, *, ends_at: float | None) -> None:
        self._plan, self._progress = plan, progress
        self._ends_at = ends_at
        """Monotonic moment at which `--max-time` is over."""
        self._others = Word()
        self._under_way = 0

    def hear(self, word: Word) -> None:
        """Take what the other processes have done."""
        self._others = word

    def may_start(self, attempt: Attempt) -> bool:
        """Return whether this attempt may be asked now, and count it as under way if it is a page."""
        if attempt.kind is Kind.PAGE:
            if self.pages_reached():
                return False
            self._under_way += 1
        return True

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
        if limit is not None and self._others.other_bytes + self._progress.wire_bytes >= limit:
            return "max_bytes"
        return None
