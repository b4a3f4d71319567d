"""The look before the leap: the families that were measured to hurt are named, ordinary pages are not.

Times in the comments: lexbor (selectolax 1.0.2) on 100 KB of the family.
"""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.parse import looks_pathological
from tests import patience

_GOLDEN = Path(__file__).parents[2] / "golden" / "parse"


def _flood(unit: str) -> Callable[[int], bytes]:
    """Repeat a unit up to a size, with a number where it says {}."""

    def build(size: int) -> bytes:
        parts: list[str] = []
        length = 0
        while length < size:
            parts.append(unit.format(len(parts)))
            length += len(parts[-1])
        return "".join(parts).encode()

    return build


def _halves(first: str, second: str) -> Callable[[int], bytes]:
    return lambda size: _flood(first)(size // 2) + _flood(second)(size // 2)


_HURT = {
    "div": _flood("<div>"),  # 1,240 ms
    "nested lists": _flood("<ul><li>"),  # 2,090 ms
    "definition lists": _flood("<dl><dd>"),  # 2,100 ms
    "unknown elements and ends": _halves("<x>", "</y>"),  # 1,200 ms
    "wrong ends": _flood("<x></y>"),  # 520 ms
    "drawings and wrong ends": _halves("<svg><g>", "</x>"),  # 2,120 ms
    "open and close": _halves("<div>", "</div>"),  # 320 ms
    "readings without a ruby": _flood("<rt>"),  # 1,700 ms
    "groups of options": _flood("<optgroup>"),  # 600 ms
    "adoption": _flood("<a><div>"),  # 800 ms
    "adoption with ends": _flood("<b><div></b>"),  # 330 ms
    "formatting": _flood("<b id={}>"),  # 850 ms
    "formatting and blocks": _flood("<b id={}><p>"),  # over 8 s and a gigabyte
    "formatting and items": _flood("<li><b id={}>x"),  # over 8 s and gigabytes
    "fonts": _flood("<font color={}><p>"),  # over 8 s
    "attributes": lambda size: b"<a " + _flood("a{} ")(size) + b">",  # 840 ms
    "quoted attributes": lambda size: b"<a " + _flood('a{}=">" ')(size) + b">",  # 610 ms
    "attributes of html": _flood("<html a{}>"),  # 210 ms
    "attributes of body": _flood("<body a{}>"),  # 210 ms
    "element names": _flood("<x{0}></x{0}>"),  # 1,540 ms for 1 MB
}


@pytest.mark.parametrize("size", [100_000, 1_000_000])
@pytest.mark.parametrize("family", sorted(_HURT))
def test_a_family_that_hurts_is_named(family: str, size: int) -> None:
    assert looks_pathological(_HURT[family](size)) is not None


@pytest.mark.parametrize("family", ["formatting and blocks", "formatting and items", "fonts"])
def test_formatting_hurts_in_small_pages_too(family: str) -> None:
    assert looks_pathological(_HURT[family](20_000)) == "formatting"


def test_nesting_between_text_hurts_from_a_few_hundred_kilobytes() -> None:
    assert looks_pathological(_flood("<div>hello world, this is some text ")(400_000)) == "nesting"


def test_attribute_names_hurt_from_a_few_hundred_kilobytes() -> None:
    assert looks_pathological(_flood("<p b{}>")(400_000)) == "names"


@pytest.mark.parametrize("family", ["div", "formatting and blocks", "unknown elements and ends"])
def test_a_flood_behind_an_ordinary_page_is_seen(family: str) -> None:
    page = _ordinary(56_000)

    assert looks_pathological(page + _HURT[family](60_000) + page) is not None


@pytest.mark.parametrize("family", ["div", "formatting and blocks"])
def test_utf_16_hides_nothing(family: str) -> None:
    assert looks_pathological(_HURT[family](60_000).decode().encode("utf-16")) is not None


def test_the_look_itself_reads_a_body_a_few_times_whatever_stays_open() -> None:
    """Each of these tags runs to the end: read one by one, they are a gigabyte."""
    assert looks_pathological((b"<a " + b"x" * 32_700) * 250) == "attributes"


def test_size_and_number_of_elements_are_limits_of_their_own() -> None:
    assert looks_pathological(b"x" * (8 * 1024 * 1024 + 1)) == "huge"
    assert looks_pathological(b"<p>" * 200_000) == "nodes"


def _ordinary(size: int) -> bytes:
    dice = random.Random(size)
    parts = ["<!doctype html><html><head><title>t</title></head><body><div class=page>"]
    length = 0
    while length < size:
        words = " ".join(dice.choice(["river", "water", "school", "a < b", "the"]) for _ in range(dice.randint(5, 60)))
        parts.append(
            dice.choice(
                [
                    f"<div class=row><p>{words} <a href=/{dice.random()}>link</a> <b>bold</b></p></div>",
                    f"<ul><li><a href=/x>{words}</a><li>{words}</ul>",
                    f"<table><tr><td>{words}<td>{words}</table>",
                    f"<p>{words}<br><img src=a.png alt=''><br>",
                    f"<svg><g><path d='M0 0'/><path d='M1 1'/></g></svg><span>{words}</span>",
                    f"<script>var x = '{words}'; if (a<b) {{ f(); }}</script>",
                    f"<select><option>{words}<option>{words}</select>",
                ]
            )
        )
        length += len(parts[-1])
    return ("".join(parts) + "</div></body></html>").encode()


@pytest.mark.parametrize("size", [9_000, 20_000, 56_000, 200_000, 1_000_000])
def test_an_ordinary_page_of_any_size_passes(size: int) -> None:
    assert looks_pathological(_ordinary(size)) is None


@pytest.mark.parametrize("name", sorted(path.name for path in _GOLDEN.glob("*.html")))
def test_golden_pages_pass(name: str) -> None:
    assert looks_pathological((_GOLDEN / name).read_bytes()) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<p>" * 30_000,  # 77 ms for a megabyte
        b"<br>" * 30_000,
        b"<!--" * 50_000,
        b"&amp;" * 50_000,
        b"<table><tr>" + b"<td>x" * 50_000,
        b"<script>" + b"var a = 1; " * 50_000,
        b"plain text without any tag. " * 20_000,
        b"<img src='data:image/png;base64," + base64.b64encode(random.Random(1).randbytes(150_000)) + b"'>",
    ],
)
def test_what_is_only_strange_passes(body: bytes) -> None:
    assert looks_pathological(body) is None


def test_looking_is_cheap() -> None:
    page = _ordinary(56_000)

    best = min(_seconds(page) for _ in range(20))

    # 25 us on a quiet machine; the bound leaves room for a busy one.
    assert best < patience.allowed(0.0005)


def _seconds(page: bytes) -> float:
    started = time.process_time()
    looks_pathological(page)
    return time.process_time() - started
