"""Rules that people write: RE2 only, bounded, and refused with the rule and the reason."""

from __future__ import annotations

import time

import pytest

from holdfast.errors import Invalid
from holdfast.urls import InvalidPattern
from holdfast.urls.scope import Patterns
from tests import patience


def test_the_first_rule_that_matches_is_named() -> None:
    rules = Patterns([r"/private/", r"\.pdf$", r"(?i)/PRINT"])

    assert rules.first("https://example.org/a.pdf") == r"\.pdf$"
    assert rules.first("https://example.org/private/a.pdf") == "/private/"
    assert rules.first("https://example.org/print/1") == r"(?i)/PRINT"
    assert rules.first("https://example.org/PDF") is None
    assert Patterns().first("https://example.org/") is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(?=a)", "look-around"),
        (r"(?<!a)b", "look-around"),
        (r"(a)\1", "back-references"),
        (r"a(", "missing )"),
        (r"[", "missing ]"),
        (r"x{2000}", "repetition"),
        (r"[a-z]{1,100}" * 80, "too large"),
        ("a" * 1025, "1024 bytes"),
        ("", "empty"),
        ("/café/", "%C3%A9"),
        ("\ud800", "ASCII"),
        (r"\Qa", r"\Q"),
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_a_rule_that_cannot_be_used_is_named_with_its_reason(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidPattern) as refusal:
        Patterns(["/ok/", pattern])

    assert reason in refusal.value.reason
    assert refusal.value.pattern == pattern
    assert refusal.value.code == "invalid_pattern"


def test_five_hundred_rules_are_fine_and_one_more_is_not() -> None:
    rules = Patterns([f"/section-{i}/" for i in range(500)])

    assert rules.first("https://example.org/section-499/x") == "/section-499/"
    assert rules.first("https://example.org/section-500/x") is None
    with pytest.raises(Invalid, match="501 rules"):
        Patterns(["a"] * 501)


def test_rules_that_are_too_large_together_are_refused() -> None:
    with pytest.raises(Invalid, match="together"):
        Patterns(["[a-z]?" * 150] * 500)


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"(\w+\s?)*$", r"(.*a){20}", r"(a|aa)+$"])
def test_no_rule_makes_a_search_explode(pattern: str) -> None:
    rules = Patterns([pattern])
    started = time.process_time()

    rules.first("https://example.org/" + "a" * 8000 + "!")

    assert time.process_time() - started < patience.allowed(0.2)
