"""A crawl process's line to the outside, over rows: stop requests, totals, landing places."""

from __future__ import annotations

from collections import deque

from holdfast.coordination.owners import Owner
from holdfast.crawl.control import Word
from holdfast.db.hot import Transaction
from holdfast.jobs.live import queries
from holdfast.jobs.live.queries import from_json
from holdfast.wiring import Ground

_BEAT_S = 5.0
"""How often a process writes that it is alive: each time is a commit, and two minutes of silence are allowed."""


class RowControl:
    """Answers the engine from the execution's rows; used on the database's thread only."""

    def __init__(
        self,
        ground: Ground,
        owner: Owner,
        execution_id: int,
        *,
        epoch: int | None = None,
        frontier_id: int | None = None,
    ) -> None:
        self._ground, self._owner, self._execution_id, self._epoch = ground, owner, execution_id, epoch
        self._frontier_id = execution_id if frontier_id is None else frontier_id
        self._landed: deque[str] = deque()
        self._beat_at = -_BEAT_S

    def listen(self) -> Word:
        """Return the latest word, and say now and then that we are alive."""
        now = self._ground.clock.monotonic()
        beats = now - self._beat_at >= _BEAT_S
        with self._ground.hot.write() if beats else self._ground.hot.read() as tx:
            stop, landing = queries.stop_word(tx, self._ground.hot.dialect, execution_id=self._execution_id)
            if not self._is_ours(tx):
                stop = "drain"  # its worker fell silent: another one has the execution, or soon will
            totals = queries.totals_of_others(tx, execution_id=self._frontier_id, owner_id=self._owner.id)
            if beats:
                self._owner.beat(tx)
                self._beat_at = now
        others = [from_json(counts) for counts in totals]
        return Word(
            stop=stop, other_pages=sum(o.get("pages", 0) for o in others),
            other_bytes=sum(o.get("bytes", 0) for o in others),
            landing=landing,
        )  # fmt: skip

    def _is_ours(self, tx: Transaction) -> bool:
        return self._epoch is None or queries.is_leased(tx, execution_id=self._execution_id, epoch=self._epoch)

    def landed(self, url: str) -> None:
        """Take note of a landing place, from any thread."""
        self._landed.append(url)

    def tell(self) -> None:
        """Add landing places to the execution's stored plan, for the other processes and for a resumption."""
        fresh = list(self._landed)
        if not fresh:
            return
        with self._ground.hot.write() as tx:
            queries.add_landing(tx, self._ground.hot.dialect, execution_id=self._execution_id, urls=fresh)
        for _ in fresh:
            self._landed.popleft()
