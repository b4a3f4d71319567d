"""What is finished and not yet settled: collected on the loop, settled in batches on the database's thread.

The WARC bytes are synced before the transaction that points into them; a batch that the database does not take is
kept and offered again, and a repeat is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.crawl.control import Control
from holdfast.crawl.progress import Progress
from holdfast.crawl.tape import Tape
from holdfast.failpoints import reach
from holdfast.feeds.polling.book import FeedBook
from holdfast.frontier import Frontier, Settled
from holdfast.types import DomainUpdate, Found, Visit


class Ledger:
    """The batch that is being collected, and the totals that it will have made."""

    def __init__(self, frontier: Frontier, tape: Tape, progress: Progress, control: Control, *, execution_id: int,
                 owner_id: int) -> None:  # fmt: skip
        self._frontier, self._tape, self._progress, self._control = frontier, tape, progress, control
        self.execution_id, self.owner_id = execution_id, owner_id
        self.feeds: FeedBook | None = None
        """Set where feeds are polled or noted."""
        self.visits: list[Visit] = []
        self.links = 0
        """Addresses that they found."""
        self._counted: set[int] = set()

    def rotate(self) -> None:
        """Seal the WARC file if it is full, old or idle; belongs to the desk's thread."""
        self._tape.rotate()

    def add(self, visit: Visit) -> None:
        """Take a finished attempt."""
        self.visits.append(visit)
        self.links += len(visit.found)

    def take(self, limit: int) -> list[Visit]:
        """Return the next batch; the rest stays."""
        batch, self.visits = self.visits[:limit], self.visits[limit:]
        self.links -= sum(len(visit.found) for visit in batch)
        return batch

    def give_back(self, batch: Sequence[Visit]) -> None:
        """Keep a batch that could not be settled, in front."""
        self.visits[:0] = batch
        self.links += sum(len(visit.found) for visit in batch)

    @property
    def has_news(self) -> bool:
        """Whether one of them found an address that the frontier may not know."""
        return self.links > 0

    def offer(self, sitemaps: Sequence[Found]) -> None:
        """Take the sitemaps that robots files name; runs on the database's thread."""
        if self.feeds is not None:
            self.feeds.offer(sitemaps)
        else:
            self._frontier.add(self.execution_id, sitemaps)

    def settle(self, batch: Sequence[Visit], updates: Sequence[DomainUpdate]) -> Settled:
        """Sync the WARC file, then settle one batch; runs on the database's thread.

        Where seeds landed is told before that: a resumption would not follow what was found there.
        """
        self._control.tell()
        if batch:
            reach("before_sync")
            self._tape.sync()
            reach("after_sync")
            if self.feeds is not None:
                self.feeds.tell(batch)
        for visit in batch:
            if visit.attempt.id not in self._counted:
                self._counted.add(visit.attempt.id)
                self._progress.settled(visit)
        settled = self._frontier.settle(
            self.execution_id, self.owner_id, batch, updates, counts=self._progress.counts()
        )
        reach("after_commit")
        if self.feeds is not None:  # what their items added, they have added themselves
            told = {visit.attempt.domain_id for visit in batch if visit.listing is not None or visit.feeds}
            settled = replace(settled, added=settled.added | told)
        self._counted.clear()
        for visit in settled.refused:
            self._progress.unsettled(visit)
        return settled
