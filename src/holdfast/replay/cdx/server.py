"""Answers CDX queries in short reads, batch by batch, so that no transaction waits for a slow reader."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Protocol

from holdfast import cancellation
from holdfast.clock import Clock, SystemClock, digits14
from holdfast.db.engine import Database
from holdfast.index.queries import CdxRow, cdx_rows_of
from holdfast.replay.address import http_date, safe
from holdfast.replay.cdx import queries
from holdfast.replay.cdx.queries import IndexPosition, KeyRange
from holdfast.replay.cdx.question import (
    BLOCK,
    MAX_RECORDS,
    BadCdxParameter,
    CdxMode,
    CdxQuery,
    Line,
    Order,
    Output,
    collapse,
    count_duplicates,
    needs_files,
    plain,
    reader,
    resume_key,
)
from holdfast.replay.origins import ReplayOrigins

_BATCH = 1_000
SECONDS = 10.0
"""Time limit for reading and filtering per response, whatever the filters are."""
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
# Limit of captures of one URL sent in one piece: the lines of some 40 KB.
_LOOKED_UP = 200


class Read(Protocol):
    def __call__(
        self, question: CdxQuery, keys: KeyRange, behind: IndexPosition | None, *, reverse: bool, size: int
    ) -> list[Line]:
        """Return at most `size` lines after a position."""
        ...


class Walk:
    """One scan of the index: reads no more than is shown, within limits of lines and time."""

    def __init__(self, read: Read, question: CdxQuery, cap: int, *, clock: Clock | None = None) -> None:
        self._read, self._question, self._cap = read, question, cap
        self._clock: Clock = clock or SystemClock()
        self._spent_s, self._began = 0.0, 0.0
        # Whether the time limit came before the end of the index.
        self._is_late = False
        self._scanned = 0
        self._position: IndexPosition | None = None
        self._before: IndexPosition | None = None
        # Whether the index had no more.
        self._is_over = False
        # Whether the requested number of lines was shown.
        self._is_full = False
        self._raw: Iterator[Line] = iter(())

    def lines(self) -> Iterator[Line]:
        found = self._shown()
        while True:
            # Limit only our own work: a client may take minutes to read.
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

    def rest(self) -> IndexPosition | None:
        """Return the position to resume at, once all lines are consumed; None at the end or if the order has none."""
        question = self._question
        if question.limit < 0 or question.order is Order.CLOSEST:
            return None
        if (self._scanned >= self._cap or self._is_late) and not self._is_over:
            # With `collapse` a line is shown only after the next one is read: the last line read must be read again.
            return self._before if question.collapses and self._is_full else self._position
        if not self._is_full or self._is_over:
            return None
        if question.collapses:
            # The line that ended the last group was read, but not shown.
            return self._before
        here = self._position
        return None if next(self._raw, None) is None and not self._is_late else here

    def _last(self, number: int) -> Iterator[Line]:
        """Yield the last lines in index order, reading from the end if equivalent, else buffering the last ones."""
        question = self._question
        # Collapsing depends on the previous line: reading from the end would keep other lines.
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
                    self._before, self._position = (
                        self._position,
                        IndexPosition(capture.url_key, capture.captured_at, capture.id),
                    )
                    yield line
                if len(lines) < size:
                    break
                behind, size = self._position, _BATCH
            behind = None
        self._is_over = True

    def _is_time_up(self) -> bool:
        """Return whether the time limit is exceeded; always False before the first line."""
        if self._scanned and self._spent_s + self._clock.monotonic() - self._began >= SECONDS:
            self._is_late = True
        return self._is_late

    def _first_size(self) -> int:
        """Return the size of the first batch: enough if nothing is filtered out."""
        question = self._question
        if question.filters or question.collapses:
            return _BATCH
        # Read one more than is shown, to know whether something is left.
        return max(2, min(_BATCH, abs(question.limit) + question.offset + 1))

    def _closest(self) -> Iterator[Line]:
        """Yield the captures of one address, the nearest in time first, the earlier one on a tie."""
        question = self._question
        assert question.closest is not None
        low, high = question.period
        moment = question.closest
        # No time is before the year 1.
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


TYPES = {
    Output.TEXT: "text/plain; charset=utf-8",
    Output.JSON: "application/json",
    Output.NDJSON: "application/x-ndjson",
    Output.CDXJ: "text/x-cdxj; charset=utf-8",
    Output.LINK: "application/link-format",
}
"""The Content-Type of each format."""

Rest = Callable[[], IndexPosition | None]


def render(lines: Iterator[Line], question: CdxQuery, origins: ReplayOrigins, rest: Rest) -> Iterator[str]:
    """Yield the response's text; the resume key comes last, if requested and something is left."""
    if question.output is Output.JSON:
        return _array(lines, question, rest)
    if question.output is Output.LINK:
        return _links(lines, question, origins)
    form = {Output.NDJSON: _json_line, Output.CDXJ: _cdxj_line}.get(question.output, _text_line)
    return _plain_lines(lines, question, rest, form(question.fields))


def _plain_lines(lines: Iterator[Line], question: CdxQuery, rest: Rest, form: Callable[[Line], str]) -> Iterator[str]:
    for line in lines:
        yield form(line) + "\n"
    if question.show_resume_key and (position := rest()) is not None:
        yield f"\n{resume_key(position)}\n"


def _text_line(fields: tuple[str, ...]) -> Callable[[Line], str]:
    readers = [reader(name, "fl") for name in fields]
    return lambda line: " ".join([plain(read(line)) for read in readers])


def _json_line(fields: tuple[str, ...]) -> Callable[[Line], str]:
    """Return a function that writes one JSON object; it omits unknown values, as pywb does."""
    readers = [(name, reader(name, "fl")) for name in fields]

    def form(line: Line) -> str:
        values = ((name, read(line)) for name, read in readers)
        return json.dumps({name: value for name, value in values if value != "-"})

    return form


def _cdxj_line(fields: tuple[str, ...]) -> Callable[[Line], str]:
    inside = _json_line(tuple(name for name in fields if name not in ("urlkey", "timestamp")))

    def form(line: Line) -> str:
        return f"{plain(line.capture.url_key)} {digits14(line.capture.captured_at)} {inside(line)}"

    return form


def _array(lines: Iterator[Line], question: CdxQuery, rest: Rest) -> Iterator[str]:
    """Yield one array of arrays, the first with the names; an empty array without results."""
    readers = [reader(name, "fl") for name in question.fields]
    head = f"[{json.dumps([*question.fields])}"
    for line in lines:
        yield f"{head},\n{json.dumps([read(line) for read in readers])}"
        head = ""
    position = rest() if question.show_resume_key else None
    if position is not None:
        yield f"{head},\n[],\n{json.dumps([resume_key(position)])}]\n"
    else:
        yield "[]\n" if head else "]\n"


def _links(lines: Iterator[Line], question: CdxQuery, origins: ReplayOrigins) -> Iterator[str]:
    yield f'<{safe(question.url)}>; rel="original",\n<{origins.gate(question.url)}>; rel="timegate"'
    for line in lines:
        at = line.capture.captured_at
        address = origins.memento(digits14(at), "", line.capture.url)
        yield f',\n<{address}>; rel="memento"; datetime="{http_date(at)}"'
    yield "\n"


class CdxServer:
    """Reads the snapshot table as an index; one per response."""

    def __init__(self, database: Database, *, clock: Clock | None = None) -> None:
        self._database, self._clock = database, clock
        self._names: dict[int, str] = {}

    def answer(self, question: CdxQuery, origins: ReplayOrigins) -> Iterator[str]:
        """Yield the response's text, piece by piece. No transaction is open between two batches."""
        if question.mode is CdxMode.PAGE_COUNT:
            yield self._page_count(question)
        elif question.mode is CdxMode.PAGE_INDEX:
            yield from self._page_index(question)
        else:
            cap = MAX_RECORDS
            if question.page is not None:
                cap = question.page_size * BLOCK
                question = replace(question, behind=self._page_start(question))
            walk = Walk(self.batch, question, cap, clock=self._clock)
            yield from render(walk.lines(), question, origins, walk.rest)

    def lookup(self, question: CdxQuery, origins: ReplayOrigins) -> Iterator[str] | None:
        """Return the response to a lookup of one address by one prepared statement; None if it has many captures."""
        most = min(_LOOKED_UP, question.limit + question.offset) + 1
        with self._database.raw_reads.read() as (tx, dialect):
            rows = queries.lookup(tx, dialect, question.ranges[0].low, period=question.period, limit=most)
        if len(rows) > _LOOKED_UP:
            return None
        found = [Line(row, "-", None, "-") for row in rows]

        def read(
            question: CdxQuery, keys: KeyRange, behind: IndexPosition | None, *, reverse: bool, size: int
        ) -> list[Line]:
            # Everything was read at once: nothing follows.
            return found if behind is None else []

        walk = Walk(read, question, MAX_RECORDS)
        return render(walk.lines(), question, origins, walk.rest)

    def batch(
        self, question: CdxQuery, keys: KeyRange, behind: IndexPosition | None, *, reverse: bool, size: int
    ) -> list[Line]:
        """Return the next lines of a range, with file names and originals if a field needs them."""
        # Check for a disconnected client between two batches, before reading the next one.
        cancellation.check()
        with self._database.read() as session:
            rows = queries.batch(session, keys, behind=behind, reverse=reverse, period=question.period, limit=size)
            originals: dict[int, CdxRow] = {}
            if question.resolve_revisits:
                originals = cdx_rows_of(session, (row.original_id for row in rows if row.original_id is not None))
            if needs_files(question.fields):
                known = {row.warc_file_id for row in rows} | {original.warc_file_id for original in originals.values()}
                # A range of a million lines is in a few files: look up each name once.
                if missing := known - self._names.keys():
                    self._names |= queries.file_names(session, missing)
        return [self._line(row, originals.get(row.original_id or -1)) for row in rows]

    def _line(self, row: CdxRow, original: CdxRow | None) -> Line:
        there = "-" if original is None else self._names.get(original.warc_file_id, "-")
        return Line(row, self._names.get(row.warc_file_id, "-"), original, there)

    def _page_start(self, question: CdxQuery) -> IndexPosition | None:
        """Return the position before a page; raise BadCdxParameter after the last page.

        As pywb and Common Crawl do: clients request one page after the other until an error.
        """
        number = (question.page or 0) * question.page_size * BLOCK
        if number == 0:
            return question.behind
        position = None
        if number < MAX_RECORDS:
            with self._database.read() as session:
                position = queries.skip(session, question.ranges, question.behind, number)
                # A page that starts directly after the last record is after the last page.
                if position is not None and queries.skip(session, question.ranges, position, 1) is None:
                    position = None
        if position is None:
            last = max(0, self._pages(question)[0] - 1)
            raise BadCdxParameter("page", f"Page {question.page} invalid: First Page is 0, Last Page is {last}")
        return position

    def _page_count(self, question: CdxQuery) -> str:
        pages, blocks = self._pages(question)
        if question.output in (Output.JSON, Output.NDJSON):
            return json.dumps({"pages": pages, "pageSize": question.page_size, "blocks": blocks}) + "\n"
        return f"{pages}\n"

    def _pages(self, question: CdxQuery) -> tuple[int, int]:
        """Return the number of pages and blocks, counted up to the most that pages can reach."""
        found = 0
        with self._database.read() as session:
            for keys in question.ranges:
                found += queries.count(session, keys, limit=MAX_RECORDS - found)
        return -(-found // (question.page_size * BLOCK)), -(-found // BLOCK)

    def _page_index(self, question: CdxQuery) -> Iterator[str]:
        """Yield the start of each page: key, timestamp, number."""
        size = question.page_size * BLOCK
        behind: IndexPosition | None = None
        for page in range(MAX_RECORDS // size):
            with self._database.read() as session:
                first = queries.skip(session, question.ranges, behind, 1)
                behind = queries.skip(session, question.ranges, behind, size)
            if first is None:
                return
            yield f"{first.url_key} {digits14(first.captured_at)}\t{page}\n"
            if behind is None:
                return
