"""One way through the index: which lines a query shows, in its order, and where it could go on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Protocol

from holdfast.clock import Clock, SystemClock
from holdfast.replay.cdx.queries import KeyRange, Spot
from holdfast.replay.cdx.question import CdxQuery, Line, Order, collapse, count_duplicates

_BATCH = 1_000
SECONDS = 10.0
"""What reading and testing may take for one answer, whatever its filters are."""
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


class Read(Protocol):
    """Reads the next lines of a range."""

    def __call__(
        self, question: CdxQuery, keys: KeyRange, behind: Spot | None, *, reverse: bool, size: int
    ) -> list[Line]:
        """Return at most `size` lines behind a place."""
        ...


class Walk:
    """Reads no more than it is asked to show, and never more than a cap, nor for longer than a time.

    Only its own work is timed, not what a client takes to read.
    """

    def __init__(self, read: Read, question: CdxQuery, cap: int, *, clock: Clock | None = None) -> None:
        self._read, self._question, self._cap = read, question, cap
        self._clock: Clock = clock or SystemClock()
        self._spent_s, self._began = 0.0, 0.0
        self._is_late = False
        """Whether the time was up before the index was through."""
        self._scanned = 0
        self._spot: Spot | None = None
        self._before: Spot | None = None
        self._is_over = False
        """Whether the index had no more."""
        self._is_full = False
        """Whether as many lines were shown as were asked for."""
        self._raw: Iterator[Line] = iter(())

    def lines(self) -> Iterator[Line]:
        """Yield what the query shows."""
        found = self._shown()
        while True:
            self._began = self._clock.monotonic()
            line = next(found, None)
            self._spent_s += self._clock.monotonic() - self._began
            if line is None:
                return
            yield line

    def _shown(self) -> Iterator[Line]:
        question = self._question
        if question.limit < 0:
            yield from self._last(-question.limit)
            return
        shown = 0
        for line in islice(self._chosen(question.order), question.offset, question.offset + question.limit):
            shown += 1
            yield line
        self._is_full = shown == question.limit

    def rest(self) -> Spot | None:
        """Return the place to go on behind, once all lines are taken; None if nothing is left or order forbids it."""
        question = self._question
        if question.limit < 0 or question.order is Order.CLOSEST:
            return None
        if (self._scanned >= self._cap or self._is_late) and not self._is_over:
            return self._before if question.collapses and self._is_full else self._spot
        if not self._is_full or self._is_over:
            return None
        if question.collapses:
            return self._before  # the line that ended the last run was read, and not shown
        here = self._spot
        return None if next(self._raw, None) is None and not self._is_late else here

    def _last(self, number: int) -> Iterator[Line]:
        """Yield the last lines in index order: from the end where that is the same, else by keeping the last ones."""
        question = self._question
        if question.collapses or question.count_duplicates or question.order is not Order.FORWARD:
            yield from deque(self._chosen(question.order), maxlen=number)
        else:
            yield from reversed([*islice(self._chosen(Order.REVERSE), question.offset, question.offset + number)])

    def _chosen(self, order: Order) -> Iterator[Line]:
        question = self._question
        self._raw = self._closest() if order is Order.CLOSEST else self._run(question, reverse=order is Order.REVERSE)
        low, high = question.period
        found: Iterator[Line] = (
            line
            for line in self._raw
            if low <= line.capture.captured_at <= high and all(test(line) for test in question.filters)
        )
        if question.collapses:
            found = collapse(found, question.collapses)
        return count_duplicates(found) if question.count_duplicates else found

    def _run(self, question: CdxQuery, *, reverse: bool) -> Iterator[Line]:
        """Yield the lines of all ranges in index order, or against it."""
        behind = question.behind
        size = self._first_size()
        for keys in reversed(question.ranges) if reverse else question.ranges:
            if behind is not None and keys.low != keys.high:
                if behind.url_key < keys.low if reverse else behind.url_key >= keys.high:
                    continue
                if behind.url_key >= keys.high if reverse else behind.url_key < keys.low:
                    behind = None
            while lines := self._read(question, keys, behind, reverse=reverse, size=size):
                for line in lines:
                    if self._scanned >= self._cap or self._is_time_up():
                        return
                    self._scanned += 1
                    capture = line.capture
                    self._before, self._spot = self._spot, Spot(capture.url_key, capture.captured_at, capture.id)
                    yield line
                if len(lines) < size:
                    break
                behind, size = self._spot, _BATCH
            behind = None
        self._is_over = True

    def _is_time_up(self) -> bool:
        """Return whether to stop, once there is anything to go on behind."""
        if self._scanned and self._spent_s + self._clock.monotonic() - self._began >= SECONDS:
            self._is_late = True
        return self._is_late

    def _first_size(self) -> int:
        """Return how many lines to read first: what will do if nothing is left out."""
        question = self._question
        if question.filters or question.collapses:
            return _BATCH
        return max(2, min(_BATCH, abs(question.limit) + question.offset + 1))

    def _closest(self) -> Iterator[Line]:
        """Yield the captures of one address, the nearest in time first, the earlier one on a tie."""
        question = self._question
        assert question.closest is not None
        low, high = question.period
        moment = question.closest
        just_before = moment - min(moment - _BEGINNING, timedelta(microseconds=1))
        later = self._run(replace(question, period=(max(low, moment), high), behind=None), reverse=False)
        earlier = self._run(replace(question, period=(low, min(high, just_before)), behind=None), reverse=True)
        before, after = next(earlier, None), next(later, None)
        while before is not None or after is not None:
            if after is None or (before is not None and _distance(before, moment) <= _distance(after, moment)):
                assert before is not None
                yield before
                before = next(earlier, None)
            else:
                yield after
                after = next(later, None)


def _distance(line: Line, moment: datetime) -> timedelta:
    return abs(line.capture.captured_at - moment)
