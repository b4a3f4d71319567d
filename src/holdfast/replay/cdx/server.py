"""Answers CDX queries: short reads, one batch after the other, so that no transaction waits for a slow reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

from holdfast import cancellation
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.index.queries import CdxRow, cdx_rows_of
from holdfast.replay.address import http_date, safe, timestamp
from holdfast.replay.cdx import queries
from holdfast.replay.cdx.queries import KeyRange, Spot
from holdfast.replay.cdx.question import (
    BLOCK,
    MAX_RECORDS,
    BadCdxParameter,
    CdxMode,
    CdxQuery,
    Line,
    Output,
    needs_files,
    plain,
    reader,
    resume_key,
)
from holdfast.replay.cdx.walk import Walk
from holdfast.replay.origins import ReplayOrigins

TYPES = {
    Output.TEXT: "text/plain; charset=utf-8",
    Output.JSON: "application/json",
    Output.NDJSON: "application/x-ndjson",
    Output.CDXJ: "text/x-cdxj; charset=utf-8",
    Output.LINK: "application/link-format",
}
"""What each form is called in Content-Type."""

Rest = Callable[[], Spot | None]


def render(lines: Iterator[Line], question: CdxQuery, place: ReplayOrigins, rest: Rest) -> Iterator[str]:
    """Yield the answer's text; the resume key comes last, where it was asked for and something is left."""
    if question.output is Output.JSON:
        return _array(lines, question, rest)
    if question.output is Output.LINK:
        return _links(lines, question, place)
    form = {Output.NDJSON: _json_line, Output.CDXJ: _cdxj_line}.get(question.output, _text_line)
    return _plain_lines(lines, question, rest, form(question.fields))


def _plain_lines(lines: Iterator[Line], question: CdxQuery, rest: Rest, form: Callable[[Line], str]) -> Iterator[str]:
    for line in lines:
        yield form(line) + "\n"
    if question.show_resume_key and (spot := rest()) is not None:
        yield f"\n{resume_key(spot)}\n"


def _text_line(fields: tuple[str, ...]) -> Callable[[Line], str]:
    readers = [reader(name, "fl") for name in fields]
    return lambda line: " ".join([plain(read(line)) for read in readers])


def _json_line(fields: tuple[str, ...]) -> Callable[[Line], str]:
    """Return what writes one object; what is not known is left out, as pywb does."""
    readers = [(name, reader(name, "fl")) for name in fields]

    def form(line: Line) -> str:
        values = ((name, read(line)) for name, read in readers)
        return json.dumps({name: value for name, value in values if value != "-"})

    return form


def _cdxj_line(fields: tuple[str, ...]) -> Callable[[Line], str]:
    inside = _json_line(tuple(name for name in fields if name not in ("urlkey", "timestamp")))

    def form(line: Line) -> str:
        return f"{plain(line.capture.url_key)} {timestamp(line.capture.captured_at)} {inside(line)}"

    return form


def _array(lines: Iterator[Line], question: CdxQuery, rest: Rest) -> Iterator[str]:
    """Yield one array of arrays with a row of names first; empty if there is nothing."""
    readers = [reader(name, "fl") for name in question.fields]
    begun = False
    for line in lines:
        if not begun:
            yield f"[{json.dumps([*question.fields])}"
            begun = True
        yield ",\n" + json.dumps([read(line) for read in readers])
    spot = rest() if question.show_resume_key else None
    if not begun and spot is None:
        yield "[]\n"
        return
    if not begun:
        yield f"[{json.dumps([*question.fields])}"
    if spot is not None:
        yield f",\n[],\n{json.dumps([resume_key(spot)])}"
    yield "]\n"


def _links(lines: Iterator[Line], question: CdxQuery, place: ReplayOrigins) -> Iterator[str]:
    """Yield a TimeMap of what was asked for."""
    yield f'<{safe(question.url)}>; rel="original",\n<{place.gate(question.url)}>; rel="timegate"'
    for line in lines:
        at = line.capture.captured_at
        address = place.memento(timestamp(at), "", line.capture.url)
        yield f',\n<{address}>; rel="memento"; datetime="{http_date(at)}"'
    yield "\n"


class CdxServer:
    """Reads the snapshot table as an index; one for each answer."""

    def __init__(self, database: Database, *, clock: Clock | None = None) -> None:
        self._database, self._clock = database, clock
        self._names: dict[int, str] = {}

    def answer(self, question: CdxQuery, place: ReplayOrigins) -> Iterator[str]:
        """Yield the answer's text, piece by piece. Nothing is held between two batches."""
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
            yield from render(walk.lines(), question, place, walk.rest)

    def batch(self, question: CdxQuery, keys: KeyRange, behind: Spot | None, *, reverse: bool, size: int) -> list[Line]:
        """Return the next lines of a range, with file names and originals where a field asks for them."""
        cancellation.check()
        with self._database.read() as session:
            rows = queries.batch(session, keys, behind=behind, reverse=reverse, period=question.period, limit=size)
            originals: dict[int, CdxRow] = {}
            if question.resolve_revisits:
                originals = cdx_rows_of(session, (row.original_id for row in rows if row.original_id is not None))
            if needs_files(question.fields):
                known = {row.warc_file_id for row in rows} | {original.warc_file_id for original in originals.values()}
                if missing := known - self._names.keys():
                    self._names |= queries.file_names(session, missing)
        return [self._line(row, originals.get(row.original_id or -1)) for row in rows]

    def _line(self, row: CdxRow, original: CdxRow | None) -> Line:
        there = "-" if original is None else self._names.get(original.warc_file_id, "-")
        return Line(row, self._names.get(row.warc_file_id, "-"), original, there)

    def _page_start(self, question: CdxQuery) -> Spot | None:
        """Return the place that a page begins behind; BadCdxParameter behind the last page.

        As pywb and Common Crawl answer: clients ask for one page after the other until they are refused.
        """
        number = (question.page or 0) * question.page_size * BLOCK
        if number == 0:
            return question.behind
        spot = None
        if number < MAX_RECORDS:
            with self._database.read() as session:
                spot = queries.skip(session, question.ranges, question.behind, number)
                if spot is not None and queries.skip(session, question.ranges, spot, 1) is None:
                    spot = None
        if spot is None:
            last = max(0, self._pages(question)[0] - 1)
            raise BadCdxParameter("page", f"Page {question.page} invalid: First Page is 0, Last Page is {last}")
        return spot

    def _page_count(self, question: CdxQuery) -> str:
        """Return how many pages there are."""
        pages, blocks = self._pages(question)
        if question.output in (Output.JSON, Output.NDJSON):
            return json.dumps({"pages": pages, "pageSize": question.page_size, "blocks": blocks}) + "\n"
        return f"{pages}\n"

    def _pages(self, question: CdxQuery) -> tuple[int, int]:
        """Return the pages and blocks that there are, counted up to the most that pages can reach."""
        found = 0
        with self._database.read() as session:
            for keys in question.ranges:
                found += queries.count(session, keys, limit=MAX_RECORDS - found)
        return -(-found // (question.page_size * BLOCK)), -(-found // BLOCK)

    def _page_index(self, question: CdxQuery) -> Iterator[str]:
        """Yield where each page begins: key, timestamp, number."""
        size = question.page_size * BLOCK
        behind: Spot | None = None
        for page in range(MAX_RECORDS // size):
            with self._database.read() as session:
                first = queries.skip(session, question.ranges, behind, 1)
                behind = queries.skip(session, question.ranges, behind, size)
            if first is None:
                return
            yield f"{first.url_key} {timestamp(first.captured_at)}\t{page}\n"
            if behind is None:
                return
