"""The forms of a CDX answer: the Wayback Machine's text and arrays, pywb's lines of JSON and CDXJ, link-format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from holdfast.replay.address import safe
from holdfast.replay.cdx.fields import Line, plain, reader
from holdfast.replay.cdx.queries import Spot
from holdfast.replay.cdx.question import Output, Question, resume_key
from holdfast.replay.moments import http_date, timestamp
from holdfast.replay.place import Place

TYPES = {
    Output.TEXT: "text/plain; charset=utf-8",
    Output.JSON: "application/json",
    Output.NDJSON: "application/x-ndjson",
    Output.CDXJ: "text/x-cdxj; charset=utf-8",
    Output.LINK: "application/link-format",
}
"""What each form is called in Content-Type."""

Rest = Callable[[], Spot | None]


def render(lines: Iterator[Line], question: Question, place: Place, rest: Rest) -> Iterator[str]:
    """Yield the answer's text; the resume key comes last, where it was asked for and something is left."""
    if question.output is Output.JSON:
        return _array(lines, question, rest)
    if question.output is Output.LINK:
        return _links(lines, question, place)
    form = {Output.NDJSON: _json_line, Output.CDXJ: _cdxj_line}.get(question.output, _text_line)
    return _plain_lines(lines, question, rest, form(question.fields))


def _plain_lines(lines: Iterator[Line], question: Question, rest: Rest, form: Callable[[Line], str]) -> Iterator[str]:
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


def _array(lines: Iterator[Line], question: Question, rest: Rest) -> Iterator[str]:
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


def _links(lines: Iterator[Line], question: Question, place: Place) -> Iterator[str]:
    """Yield a TimeMap of what was asked for."""
    yield f'<{safe(question.url)}>; rel="original",\n<{place.gate(question.url)}>; rel="timegate"'
    for line in lines:
        at = line.capture.captured_at
        address = place.memento(timestamp(at), "", line.capture.url)
        yield f',\n<{address}>; rel="memento"; datetime="{http_date(at)}"'
    yield "\n"
