"""What was kept of pages before, where bodies are not: whether a 304 is worth asking for, and where they lead."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.frontier import Frontier, KnownSignals
from holdfast.types import Attempt, Kind, Original
from holdfast.warc.payload import HttpHead

_MOST = 200_000
"""Pages that are remembered at once (about 200 bytes each). One that is forgotten is asked without a condition."""


class SignalMemory:
    """Filled on the database's thread with what is leased; asked from any."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._known: dict[int, KnownSignals] = {}

    def learn(self, attempts: Iterable[Attempt]) -> None:
        """Look up what is known of these attempts' pages; called on the database's thread."""
        pages = [attempt.page_id for attempt in attempts if attempt.kind is Kind.PAGE]
        if not pages:
            return
        if len(self._known) + len(pages) > _MOST:
            self._known.clear()
        self._known.update(self._frontier.known_signals(pages))

    def readable(self, attempt: Attempt) -> bool:
        """Return whether a 304 would do: all links were kept, and nobody has seen the page otherwise since."""
        known = self._known.get(attempt.page_id)
        if known is None or not known.has_all_links:
            return False
        return attempt.original is None or attempt.original.captured_at <= known.fetched_at

    def load(self, _original: Original) -> tuple[HttpHead, bytes] | None:
        """Return nothing: no body is kept."""
        return None

    def take(self, attempt: Attempt) -> KnownSignals | None:
        """Return what is known of a page, for the last time."""
        return self._known.pop(attempt.page_id, None)
