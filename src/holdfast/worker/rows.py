"""A crawl process's line to the outside, over rows: stop requests, totals, landing places."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from holdfast.coordination.owners import Owner
from holdfast.crawl.control import Word
from holdfast.jobs.live import queries
from holdfast.wiring import Ground


class RowControl:
    """Answers the engine from the execution's rows; used on the database's thread only."""

    def __init__(self, ground: Ground, owner: Owner, execution_id: int) -> None:
        self._ground, self._owner, self._execution_id = ground, owner, execution_id
        self._landed: deque[str] = deque()

    def listen(self) -> Word:
        """Return the latest word, and say that we are alive."""
        with self._ground.hot.write() as tx:
            stop, stored = queries.stop_word(tx, execution_id=self._execution_id)
            totals = queries.totals_of_others(tx, execution_id=self._execution_id, owner_id=self._owner.id)
            self._owner.beat(tx)
        others = [_json(counts) for counts in totals]
        return Word(
            stop=stop, other_pages=sum(o.get("pages", 0) for o in others),
            other_bytes=sum(o.get("bytes", 0) for o in others),
            landing=tuple(_json(stored).get("landing", ())),
        )  # fmt: skip

    def landed(self, url: str) -> None:
        """Take note of a landing place, from any thread."""
        self._landed.append(url)

    def tell(self) -> None:
        """Add landing places to the execution's stored plan, for the other processes and for a resumption."""
        fresh = list(self._landed)
        if not fresh:
            return
        with self._ground.hot.write() as tx:
            _, stored = queries.stop_word(tx, execution_id=self._execution_id)
            config = _json(stored)
            config["landing"] = sorted({*config.get("landing", ()), *fresh})
            queries.store_config(tx, execution_id=self._execution_id, config=json.dumps(config))
        for _ in fresh:
            self._landed.popleft()


def _json(stored: Any) -> dict[str, Any]:
    """Return stored JSON as a dict: SQLite gives text, PostgreSQL gives the value."""
    value = json.loads(stored) if isinstance(stored, str) else stored
    return value if isinstance(value, dict) else {}
