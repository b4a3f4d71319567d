"""How an address became what it is, step by step; the steps end where the normaliser does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import UrlRefused
from holdfast.urls import DEFAULT, normalisation_of, parse_seed
from holdfast.urls.steps import SENTENCES, SpellingStep, spell

_GOLDEN = Path(__file__).parents[2] / "golden" / "urls" / "normalised.json"
# What a person types has no third slash: `parse_seed` refuses it.
_GOLDEN_TEXTS = [case[0] for case in json.loads(_GOLDEN.read_text()) if "///" not in case[0]]
_LOOSE = normalisation_of(strip_trailing_slash=True, force_https=True, tracking=["id"], allow_ports=[])
_PIECES = [*"/.a?&= \t", "..", "%2e", "%41", "%zz", "é", "utm_source=x", "ref=1", "b=2", "a=1", "#x"]


def _steps(text: str) -> list[str]:
    return [step.step.value for step in spell(text).steps]


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("https://example.org/", []),
        ("example.org/", ["scheme_added"]),
        ("//example.org/", ["scheme_added"]),
        (" https://example.org/\n", ["trimmed"]),
        ("https://exam\tple.org/", ["line_ends"]),
        ("HTTPS://Example.ORG:443/a", ["scheme_case", "host_case", "default_port"]),
        ("https://bücher.example/", ["host_ascii"]),
        ("https://example.org", ["written_out"]),
        ("https://example.org./", ["final_dot"]),
        ("https://example.org/a/../b/./c", ["dot_segments"]),
        ("https://example.org/a/%2e%2E/b", ["dot_segments"]),
        ("https://example.org/é", ["written_out"]),
        ("https://example.org/%7ea#top", ["fragment", "escapes"]),
        ("https://example.org/?utm_source=x", ["tracking"]),
        ("https://example.org/?b=2&a=1&&ref=3", ["tracking", "empty_query", "query_order"]),
        ("https://example.org/?", ["empty_query"]),
        ("https://u:p@example.org/", ["credentials"]),
    ],
)
def test_each_step_that_changed_something_is_named(text: str, steps: list[str]) -> None:
    assert _steps(text) == steps


def test_a_source_that_takes_more_for_one_page_has_steps_of_its_own() -> None:
    found = spell("http://example.org/a/?id=7&b=1", _LOOSE)

    assert [(step.step.value, step.after) for step in found.steps] == [
        ("https", "https://example.org/a/?id=7&b=1"),
        ("trailing_slash", "https://example.org/a?id=7&b=1"),
        ("tracking", "https://example.org/a?b=1"),
    ]


def test_no_step_repeats_a_password() -> None:
    for text in ("https://u:secret@example.org/", " HTTPS://secret@example.org:443/#x", "//u:secret@example.org/a"):
        assert "secret" not in repr(spell(text))
    with pytest.raises(UrlRefused) as refused:
        spell("https://u:secret@/")
    assert "secret" not in str(refused.value)


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_the_last_step_is_the_normalised_form(rest: str) -> None:
    for policy in (DEFAULT, _LOOSE):
        text = f"http://Example.org:80/{rest}"
        found = spell(text, policy)
        assert found.url == parse_seed(text, policy)
        assert found.steps[-1].after == found.url.normalised
        assert len({step.step for step in found.steps}) == len(found.steps)


@pytest.mark.parametrize("text", _GOLDEN_TEXTS)
def test_every_golden_address_ends_in_its_normalised_form(text: str) -> None:
    found = spell(text)

    assert (found.steps[-1].after if found.steps else text) == found.url.normalised


def test_every_step_has_a_sentence() -> None:
    assert set(SENTENCES) == set(SpellingStep)
