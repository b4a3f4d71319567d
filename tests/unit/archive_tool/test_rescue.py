"""Promotion to the fallback, the words for it, and the names of jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from holdfast.archive_tool.contract import ExecutionPolicy
from holdfast.archive_tool.errors import ToolConfigRefused
from holdfast.archive_tool.options import job_name
from holdfast.archive_tool.outcome import after_failure, operator_state, rescue_word

FRESH = ExecutionPolicy(resume_policy="fresh_only", fallback_backend="http_warc", max_fresh_failures_before_fallback=2)
AT = datetime(2025, 12, 9, 23, 30, tzinfo=UTC)


def test_fallback_takes_over_at_the_budget_and_may_fail_once() -> None:
    first, promoted = after_failure(FRESH, 1), after_failure(FRESH, 2)
    assert first == ("fresh_failed", FRESH)
    assert rescue_word(FRESH, first[0]) == "fresh-failed"

    assert promoted is not None
    stage, policy = promoted
    assert (stage, policy.capture_backend, policy.primary_backend) == (
        "promoted_to_http_warc",
        "http_warc",
        "browsertrix",
    )
    assert policy.last_promoted_from_backend == "browsertrix"
    assert rescue_word(policy, stage) == "fallback-active"

    again, last = after_failure(policy, 1), after_failure(policy, 2)
    assert (again, last) == (("fallback_failed", policy), ("fallback_exhausted", policy))
    assert [rescue_word(policy, word) for word in ("fallback_failed", "fallback_exhausted")] == [
        "fallback-retry",
        "fallback-exhausted",
    ]


@pytest.mark.parametrize("policy", [ExecutionPolicy(), ExecutionPolicy(resume_policy="fresh_only")])
def test_without_a_fallback_the_ordinary_rules_apply(policy: ExecutionPolicy) -> None:
    assert after_failure(policy, 9) is None
    assert rescue_word(policy, None) == "normal"


def test_operators_see_one_word() -> None:
    rescued = after_failure(FRESH, 2)
    assert rescued is not None
    stage, used = rescued
    cases = {
        ("queued", FRESH, None): "queued",
        ("running", FRESH, None): "running-primary",
        ("running", used, stage): "running-fallback",
        ("running", used, "fallback_failed"): "running-rescue",
        ("retryable", FRESH, "fresh_failed"): "waiting-fresh-retry",
        ("retryable", used, stage): "waiting-fallback",
        ("retryable", used, "fallback_failed"): "waiting-fallback-retry",
        ("retryable", FRESH, None): "waiting-retry",
        ("completed", FRESH, None): "awaiting-index",
        ("indexing", FRESH, None): "indexing",
        ("indexed", FRESH, None): "search-ready",
        ("index_failed", FRESH, None): "index-failed",
        ("failed", FRESH, None): "failed",
        ("failed", used, "fallback_exhausted"): "failed-fallback-exhausted",
    }

    assert {case: operator_state(*case) for case in cases} == cases


def test_names_come_from_the_date_in_utc() -> None:
    assert job_name("hc-{date:%Y%m%d}", AT) == "hc-20251209"
    assert job_name("hc-{date}", AT.astimezone(timezone(timedelta(hours=9)))) == "hc-20251209"


@pytest.mark.parametrize("template", ["{date.__class__}", "../{date}", "{0}", "", "a b", "{date:%Y/%m}"])
def test_a_template_cannot_reach_anything_else(template: str) -> None:
    with pytest.raises(ToolConfigRefused):
        job_name(template, AT)
