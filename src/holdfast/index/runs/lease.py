"""The right to read one file into the archive: a fenced lease on its row in `index_runs`.

A reader that lost it (it slept, or was taken for dead) is refused at its next write and changes nothing.
"""

from __future__ import annotations

from datetime import timedelta

from holdfast.clock import Clock, to_micros
from holdfast.coordination.owners import beat_owner
from holdfast.db.hot import Hot, Transaction
from holdfast.errors import LeaseLost
from holdfast.index.runs import queries
from holdfast.index.runs.queries import Progress
from holdfast.warc import queries as files

LEASE_S = 60.0
_RENEW_S = 10.0


class Lease:
    """One file, held by one reader."""

    def __init__(self, hot: Hot, clock: Clock, *, warc_file_id: int, token: int, owner_id: int | None = None) -> None:
        self._hot, self._clock = hot, clock
        self.warc_file_id = warc_file_id
        self.held = warc_file_id, token
        self._owner_id = owner_id
        self._renewed = self._beat_at = clock.monotonic()

    def note(self, tx: Transaction, progress: Progress) -> None:
        """Renew in the caller's transaction and say how far it is; LeaseLost if a newer reader holds the file."""
        self._take_turn(tx)
        now = self._clock.now()
        until = to_micros(now + timedelta(seconds=LEASE_S))
        held = queries.renew(tx, self.held, progress, until=until, now=to_micros(now))
        if not held:
            raise LeaseLost(f"another reader has taken over WARC file {self.warc_file_id}")
        self._renewed = self._clock.monotonic()
        self._beat(tx)

    def hold(self, tx: Transaction) -> None:
        """Renew in the caller's transaction; LeaseLost if a newer reader holds the file."""
        self._take_turn(tx)
        now = self._clock.now()
        until = to_micros(now + timedelta(seconds=LEASE_S))
        if not queries.extend(tx, self.held, until=until, now=to_micros(now)):
            raise LeaseLost(f"another reader has taken over WARC file {self.warc_file_id}")
        self._renewed = self._clock.monotonic()
        self._beat(tx)

    def _beat(self, tx: Transaction) -> None:
        """Say now and then that the reader lives: one on another machine that is silent is taken for gone."""
        if self._owner_id is not None and self._renewed - self._beat_at >= _RENEW_S:
            beat_owner(tx, self._clock, self._owner_id)
            self._beat_at = self._renewed

    def _take_turn(self, tx: Transaction) -> None:
        if self._hot.dialect == "postgresql":
            queries.take_turn(tx)

    def pulse(self) -> None:
        """Renew by itself if that is due; called while a long record streams by."""
        if self._clock.monotonic() - self._renewed >= _RENEW_S:
            with self._hot.write() as tx:
                self.hold(tx)

    def end(self, *, error: str | None, span: files.Span | None = None) -> int:
        """Give the file back, read to its end or failed; return how many pages it has. LeaseLost if it is another's.

        `span` is from when to when its captures are; None if that is not known.
        """
        with self._hot.write() as tx:
            pages = queries.finish(tx, self.held, error=error, now=to_micros(self._clock.now()))
            if pages is None:
                raise LeaseLost(f"another reader has taken over WARC file {self.warc_file_id}")
            files.set_index_state(tx, self.warc_file_id, "failed" if error else "indexed")
            files.set_span(tx, self.warc_file_id, None if error else span)
        return pages

    def give_back(self) -> None:
        """Let go of a file that was not read to its end: it stays pending."""
        with self._hot.write() as tx:
            if queries.give_back(tx, self.held, now=to_micros(self._clock.now())):
                files.set_index_state(tx, self.warc_file_id, "pending")


class _Done(Exception):
    """Somebody has read the file since it was seen to wait."""


def claim(hot: Hot, clock: Clock, warc_file_id: int, *, owner_id: int | None, version: int,
          only_waiting: bool = False) -> Lease | None:  # fmt: skip
    """Take a file to read; None if somebody else is at it, or with `only_waiting` has read it already."""
    now = clock.now()
    until = to_micros(now + timedelta(seconds=LEASE_S))
    try:
        with hot.write() as tx:
            if owner_id is not None:  # one that had nothing to read for long may have been taken for gone: it is back
                beat_owner(tx, clock, owner_id)
            token = queries.claim(tx, queries.Claim(warc_file_id, owner_id, version, until), now=to_micros(now))
            # Looked at behind the claim, which waits for a reader that is just ending; before it would be too early.
            if token is not None and only_waiting and not queries.is_waiting(tx, warc_file_id):
                raise _Done
            if token is not None:
                files.set_index_state(tx, warc_file_id, "running")
    except _Done:
        return None
    return None if token is None else Lease(hot, clock, warc_file_id=warc_file_id, token=token, owner_id=owner_id)
