"""What one transaction changes in the queue heads: exact counts, and when there is something to be had."""

from __future__ import annotations

from holdfast.frontier import sql
from holdfast.frontier.connection import Spoken
from holdfast.types import Outcome

_NEVER = 1 << 62
"""A head that only loses attempts does not become due earlier."""
_OPEN, _SUCCEEDED, _FAILED, _RULED_OUT, _DUE = range(5)


class Heads:
    """Changes by domain, written once at the end of a transaction, in the order of domains."""

    def __init__(self) -> None:
        self._changes: dict[int, list[int]] = {}

    def _of(self, domain_id: int) -> list[int]:
        change = self._changes.get(domain_id)
        if change is None:
            change = self._changes[domain_id] = [0, 0, 0, 0, _NEVER]
        return change

    def opened(self, domain_id: int, due_at: int, count: int = 1) -> None:
        """Count new open attempts that may be asked for from `due_at` on."""
        change = self._of(domain_id)
        change[_OPEN] += count
        if due_at < change[_DUE]:
            change[_DUE] = due_at

    def closed(self, domain_id: int, outcome: Outcome, *, retried: bool = False) -> None:
        """Count one attempt that was closed; one that is tried again has not ended its address."""
        change = self._of(domain_id)
        change[_OPEN] -= 1
        if not retried:
            change[ending(outcome)] += 1

    def reopened(self, domain_id: int, due_at: int, count: int) -> None:
        """Count addresses that had failed and are asked for once more."""
        self.opened(domain_id, due_at, count)
        self._of(domain_id)[_FAILED] -= count

    def write(self, tx: Spoken, execution_id: int) -> None:
        """Bring the changes into the table."""
        if self._changes:
            rows = [(domain_id, *change) for domain_id, change in sorted(self._changes.items())]
            tx.load("new_heads", sql.HEAD_COLUMNS, rows)
            tx.execute(sql.UPSERT_HEADS, (execution_id,))


def ending(outcome: Outcome) -> int:
    """Return which of the counts an outcome belongs to."""
    if outcome is Outcome.SUCCESS:
        return _SUCCEEDED
    return _RULED_OUT if outcome is Outcome.EXCLUDED else _FAILED
