"""SURT keys: our table, and the keys that other archives' indexes hold."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.urls import surt
from tests import needs, patience

GOLDEN: list[tuple[str, str, str]] = json.loads(
    (Path(__file__).parents[2] / "golden" / "urls" / "surt.json").read_text()
)


@pytest.mark.parametrize(("url", "key", "why"), GOLDEN, ids=[f"{row[2]}: {row[0]}" for row in GOLDEN])
def test_an_address_has_its_key(url: str, key: str, why: str) -> None:
    assert surt(url) == key, why


# Its counterpart on an index made during the test: tests/flow/test_import_foreign.py, test_the_keys_…_that_others_find.
@pytest.mark.samples("archives")
@pytest.mark.parametrize("name", ["dupes", "example", "iana", "url-agnost-example", "post-test"])
def test_our_keys_are_those_of_a_foreign_index(name: str) -> None:
    index = needs.SAMPLES["archives"] / "pywb" / f"{name}.cdxj"
    compared = 0

    for line in index.read_text().splitlines():
        key, _, fields = line.split(" ", 2)
        if "__wb_method=" in key:
            continue  # the key of a POST has its body in it, which is the index's business
        assert surt(json.loads(fields)["url"]) == key
        compared += 1

    assert compared or name == "post-test"


@given(st.text(max_size=60), st.sampled_from(["", "http://", "http://example.org/", "https://example.org/?"]))
@settings(max_examples=150, deadline=None)
def test_any_text_has_a_key_and_no_key_has_a_blank(text: str, head: str) -> None:
    key = surt(head + text)

    assert key
    assert not any(char.isspace() for char in key)


@given(st.text(st.sampled_from("%25341aA/"), max_size=24))
@settings(max_examples=150, deadline=None)
def test_escaping_once_more_does_not_change_the_key(path: str) -> None:
    once = f"http://example.org/x{path}"

    assert surt(once) == surt("http://example.org/x" + path.replace("%", "%25"))


@pytest.mark.parametrize(
    "tail",
    [
        *("%25" * 2700, "%25" + "25" * 4000, "%2" * 2700 + "5" * 2700, "%" * 8000, "%2%35" * 1600, "é" * 900),
        *(
            "?" + "b&a&" * 2000,
            "a/../" * 1600,
            "/(a(012345678901234567890123))" * 270 + "/x.aspx",
            "?" + "sid=&" * 1600,
        ),
    ],
    ids=lambda tail: ascii(tail[:8]),
)
def test_a_hostile_address_of_8000_characters_takes_little_time(tail: str) -> None:
    best = 1.0
    for _ in range(3):
        started = time.process_time()
        surt("http://example.org/" + tail)
        best = min(best, time.process_time() - started)

    assert best < patience.allowed(0.02)  # measured 0.0025 at most; the margin is for a busy machine


def test_a_key_takes_time_in_proportion_to_the_address() -> None:
    started = time.process_time()

    surt("http://example.org/" + "%2" * 100_000 + "%35" + "5" * 100_000)

    assert time.process_time() - started < patience.allowed(1.0)
