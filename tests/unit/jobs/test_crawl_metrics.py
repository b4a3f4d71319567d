"""The metrics of a crawl, in the fields of `/api/v1`."""

from __future__ import annotations

from dataclasses import replace

from holdfast.frontier import Summary
from holdfast.worker.native import counted, counts_of, crawl_metrics


def test_the_metrics_add_up_to_the_account() -> None:
    summary = Summary(
        total=10, open=0, outcomes={"success": 6, "timeout": 2, "blocked_robots": 1, "excluded": 1},
        reasons={("success", "ok"): 6, ("timeout", "deadline"): 2, ("blocked_robots", "line 3"): 1,
                 ("excluded", "unsupported_type"): 1},
        kinds={}, statuses={200: 6, 429: 1}, media_types={"text/html": 5, "application/pdf": 1}, domains={}, depths={},
        redirects=0, wire_bytes=1234, exclusions={("max_depth", "a"): 4, ("max_depth", "b"): 3, ("host", "c"): 9},
    )  # fmt: skip

    found = crawl_metrics(replace(summary, response_ms=(12.5, 1.0, 40.0)), requests=11)

    assert found == {
        "status_codes": {"200": 6, "429": 1}, "requests_total": 11, "requests_failed": 2, "bytes_downloaded": 1234,
        "rate_limits": 1, "error_categories": {"timeout": 2}, "top_errors": [{"message": "deadline", "count": 2}],
        "response_time": {"avg_ms": 12.5, "min_ms": 1.0, "max_ms": 40.0},
        "skipped": {"non_html": 1, "max_depth": 7, "robots_txt": 1},
    }  # fmt: skip


def test_what_a_rule_left_out_is_no_failure() -> None:
    counts = counts_of(
        {"success": 5, "failed": 1, "excluded": 7, "blocked_robots": 2, "blocked_4xx": 3}, pages=5, queue=4
    )

    assert (counts.items_crawled, counts.items_failed, counts.items_total) == (5, 4, 22)


def test_an_account_counts_pages_and_not_what_they_need_nor_what_a_rule_left_out() -> None:
    summary = Summary(
        total=20, open=1, outcomes={"success": 9, "failed": 2, "timeout": 1, "excluded": 4, "blocked_robots": 3},
        reasons={}, kinds={("page", "success"): 5, ("requisite", "success"): 4, ("page", "failed"): 2}, statuses={},
        media_types={}, domains={}, depths={}, redirects=1, wire_bytes=0, exclusions={},
    )  # fmt: skip

    counts = counted(summary)

    assert (counts.items_crawled, counts.items_failed, counts.items_total) == (4, 3, 20)
    assert (counts.items_indexed, counts.cpu_ms, counts.peak_memory_bytes) == (0, None, None)
