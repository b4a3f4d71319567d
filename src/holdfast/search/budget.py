"""What one search may cost, whatever was asked: so much work, and so much time. A question never buys more than that.

Work that is used up makes an answer partial (`totalIsExact` is false); time that is used up ends the search.
"""

from __future__ import annotations

from typing import Final

from holdfast.clock import Clock
from holdfast.errors import Unavailable

CANDIDATES: Final = 200_000
"""Documents and addresses that the substrings of one search may read altogether: about 150 ms of them."""
CHECKED: Final = 50_000
"""Captures whose title, snippet and address are looked at one by one for one term, where an index cannot decide."""
CHECKS: Final = 600_000
"""Texts that one search may look at so altogether: about half a second of them."""
SECONDS: Final = 10.0
"""No search that fits the work takes a tenth of it on an idle machine; beyond, the machine has too much to do."""


class SearchTooLong(Unavailable):
    """A search used up its time before it found anything to show."""

    code = "search_too_long"


class Budget:
    """Counts what one search spends; of one thread."""

    def __init__(
        self, clock: Clock, *, candidates: int = CANDIDATES, checks: int = CHECKS, seconds: float = SECONDS
    ) -> None:
        self._clock, self._left = clock, candidates
        self._until = clock.monotonic() + seconds
        self.checks_left = checks
        """Texts that may still be looked at one by one."""
        self.spent = 0
        """Entries of the index and words of the vocabulary that were read."""

    def grant(self, wanted: int) -> int:
        """Return how many entries may be read now, of so many wanted; SearchTooLong if the time is up."""
        self.check()
        return max(0, min(wanted, self._left))

    def spend(self, entries: int) -> None:
        """Note that so many entries were read."""
        self.spent += entries
        self._left -= entries

    def check(self) -> None:
        """Refuse to go on when the time is up."""
        if self._clock.monotonic() >= self._until:
            raise SearchTooLong("this search takes too long here; ask for fewer or longer words, or try again later")
