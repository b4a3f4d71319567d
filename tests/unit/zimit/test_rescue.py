"""Promotion to the fallback, and the words for it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.zimit.outcome import after_failure, operator_state, rescue_word

FRESH = {"resume_policy": "fresh_only", "fallback_backend": "http_warc", "max_fresh_failures_before_fallback": 2}


def test_fallback_takes_over_at_the_budget_and_may_fail_once() -> None:
    first, promoted = after_failure(FRESH, 1), after_failure(FRESH, 2)
    assert first == ("fresh_failed", FRESH)
    assert rescue_word(FRESH, first[0]) == "fresh-failed"

    assert promoted is not None
    stage, policy = promoted
    assert (stage, policy["capture_backend"], policy["primary_backend"]) == (
        "promoted_to_http_warc",
        "http_warc",
        "browsertrix",
    )
    assert policy["last_promoted_from_backend"] == "browsertrix"
    assert rescue_word(policy, stage) == "fallback-active"

    again, last = after_failure(policy, 1), after_failure(policy, 2)
    assert (again, last) == (("fallback_failed", policy), ("fallback_exhausted", policy))
    assert [rescue_word(policy, word) for word in ("fallback_failed", "fallback_exhausted")] == [
        "fallback-retry",
        "fallback-exhausted",
    ]


@pytest.mark.parametrize("policy", [{}, {"resume_policy": "fresh_only"}])
def test_without_a_fallback_the_ordinary_rules_apply(policy: dict[str, Any]) -> None:
    assert after_failure(policy, 9) is None
    assert rescue_word(policy, None) == "normal"


def test_operators_see_one_word() -> None:
    rescued = after_failure(FRESH, 2)
    assert rescued is not None
    stage, used = rescued
    cases: list[tuple[str, Any, str | None, str]] = [
        ("queued", FRESH, None, "queued"),
        ("running", FRESH, None, "running-primary"),
        ("running", used, stage, "running-fallback"),
        ("running", used, "fallback_failed", "running-rescue"),
        ("retryable", FRESH, "fresh_failed", "waiting-fresh-retry"),
        ("retryable", used, stage, "waiting-fallback"),
        ("retryable", used, "fallback_failed", "waiting-fallback-retry"),
        ("retryable", FRESH, None, "waiting-retry"),
        ("completed", FRESH, None, "awaiting-index"),
        ("indexing", FRESH, None, "indexing"),
        ("indexed", FRESH, None, "search-ready"),
        ("index_failed", FRESH, None, "index-failed"),
        ("failed", FRESH, None, "failed"),
        ("failed", used, "fallback_exhausted", "failed-fallback-exhausted"),
    ]

    assert [operator_state(*case[:3]) for case in cases] == [word for *_, word in cases]
