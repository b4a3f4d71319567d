"""What ends without a visit: pages of a domain that stays away or over a limit, poison pages, lost originals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence

from holdfast.clock import Clock, to_micros
from holdfast.frontier import sql
from holdfast.frontier.connection import Connection, Spoken
from holdfast.frontier.domains import fence
from holdfast.frontier.heads import Heads
from holdfast.types import Kind, Outcome
from holdfast.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How attempts end that were not visited."""

    outcome: Outcome
    reason: str
    message: str | None = None


class Closing:
    """Closes attempts in small transactions; the queue heads stay exact."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection, self._clock = connection, clock

    def close_domain(
        self, execution_id: int, domain_id: int, ending: Ending, *, limit: int, token: int | None = None
    ) -> int:
        """Close up to `limit` open attempts of one domain; return how many: none if the token is not in force."""
        with self._connection.read() as tx:
            of_one = (execution_id, domain_id, limit)
            rows = tx.execute(sql.OPEN_OF_DOMAIN, of_one + of_one)
        return self._close([row[0] for row in rows[:limit]], ending, held=None if token is None else (domain_id, token))

    def close_rest(self, execution_id: int, ending: Ending, *, kinds: Collection[Kind], limit: int) -> int:
        """Close up to `limit` open attempts of these kinds, whatever their domain; return how many were closed."""
        with self._connection.read() as tx:
            of_all = (execution_id, tx.list([kind.value for kind in kinds]), limit)
            rows = tx.execute(sql.OPEN_OF_ALL, of_all + of_all)
        return self._close([row[0] for row in rows[:limit]], ending)

    def blame(self, attempt_ids: Sequence[int], ending: Ending, *, limit: int) -> list[int]:
        """Count a crash against each open attempt; close those with `limit` of them and return their ids."""
        with self._connection.write() as tx:
            _lock(tx, attempt_ids)
            rows = tx.execute(sql.BLAME, (tx.list(attempt_ids),))
            guilty = sorted(number for number, crashes in rows if crashes >= limit)
            self._end(tx, guilty, ending)
        return guilty

    def reopen(self, execution_id: int, domain_id: int, *, limit: int) -> int:
        """Ask once more for up to `limit` addresses of a domain that had failed; return how many there were."""
        with self._connection.read() as tx:
            rows = tx.execute(sql.FAILED_OF_DOMAIN, (execution_id, domain_id, limit))
        if not rows:
            return 0
        now = to_micros(self._clock.now())
        with self._connection.write() as tx:
            _lock(tx, [row[0] for row in rows])
            tx.many(sql.INSERT_RETRY, [(None, now, attempt_id) for attempt_id, _ in rows])
            for outcome, count in Counter(outcome for _, outcome in rows).items():
                _count(tx, execution_id, Outcome(outcome), -count, now)
            heads = Heads()
            heads.reopened(domain_id, now, len(rows))
            heads.write(tx, execution_id)
        return len(rows)

    def failed_domains(self, execution_id: int, *, every_domain: bool) -> list[int]:
        """Return the domains that were given up, or every one with addresses that failed."""
        with self._connection.read() as tx:
            chosen = sql.FAILED_DOMAINS if every_domain else sql.DOMAINS_GIVEN_UP
            return [row[0] for row in tx.execute(chosen, (execution_id,))]

    def forget_originals(self, warc_file_id: int, *, chunk: int) -> None:
        """Take the originals in one WARC file, and the validators that went with them, from their pages."""
        after = -1
        while True:
            with self._connection.write() as tx:
                rows = tx.execute(sql.RECORDS_OF_FILE, (warc_file_id, after, chunk))
                if not rows:
                    return
                _lock(tx, [row[0] for row in rows])
                tx.execute(sql.FORGET_ORIGINALS, (tx.list([row[1] for row in rows]), warc_file_id))
            after = rows[-1][2]

    def _close(self, attempt_ids: Sequence[int], ending: Ending, *, held: tuple[int, int] | None = None) -> int:
        if not attempt_ids:
            return 0
        with self._connection.write() as tx:
            if held is not None and not fence(tx, [held]):
                return 0
            _lock(tx, attempt_ids)
            return self._end(tx, attempt_ids, ending)

    def _end(self, tx: Spoken, attempt_ids: Sequence[int], ending: Ending) -> int:
        """Close attempts whose domains are locked; those that were closed meanwhile stay as they are."""
        if not attempt_ids:
            return 0
        now = to_micros(self._clock.now())
        values = (ending.outcome.value, ending.reason, ending.message, now, tx.list(attempt_ids))
        rows = tx.execute(sql.CLOSE_IDS, values)
        if ending.outcome is not Outcome.EXCLUDED:
            tx.execute(sql.FAIL_PAGES, (now, tx.list([page_id for _, _, page_id in rows])))
        heads: dict[int, Heads] = {}
        for execution_id, domain_id, _ in rows:
            heads.setdefault(execution_id, Heads()).closed(domain_id, ending.outcome)
        closed = Counter(execution_id for execution_id, _, _ in rows)
        for execution_id in sorted(heads):
            _count(tx, execution_id, ending.outcome, closed[execution_id], now)
            heads[execution_id].write(tx, execution_id)
        return len(rows)


def _count(tx: Spoken, execution_id: int, outcome: Outcome, closed: int, now: int) -> None:
    """Add to the totals of what ended without a visit: no process counts it, and it may end after all of them."""
    tx.execute(sql.ENSURE_COUNTS, (execution_id, now))
    found = tx.execute(sql.NOBODYS_COUNTS, (execution_id,))[0][0]
    counts = json.loads(found) if isinstance(found, str) else found
    outcomes = Counter(counts.get("outcomes", {}))
    outcomes[outcome.value] += closed
    tx.execute(sql.UPSERT_COUNTS, (execution_id, 0, json.dumps({"outcomes": outcomes}), now))


def _lock(tx: Spoken, attempt_ids: Sequence[int]) -> None:
    """Lock the domains of these attempts: only under that lock is an attempt closed."""
    rows = tx.execute(sql.DOMAINS_OF, (tx.list(attempt_ids),))
    tx.execute(sql.LOCK_DOMAINS, (tx.list([row[0] for row in rows]),))
