"""What is shipped for Prometheus and Grafana: rules that hold what they say, and no name that `/metrics` lacks."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast.jobs.alerts import ERROR_SHARE, FEWEST_ANSWERS, GROWTH, MINUTES, QUIET, SMALLEST_QUEUE
from tests.client import Client, asking
from tests.needs import ROOT, lacking
from tests.unit.api.conftest import make_archive as make_archive

RULES = ROOT / "deploy" / "prometheus" / "rules.yml"
RULES_TEST = ROOT / "deploy" / "prometheus" / "rules_test.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "holdfast.json"
_NAME = re.compile(r"\b(?:crawler|holdfast|healtharchive)[_:][a-z0-9_:]+")
DOCUMENTED = {
    *("crawler_pages_fetched_total", "crawler_pages_per_second", "crawler_fetch_success_rate"),
    *("crawler_http_status_total", "crawler_frontier_size", "crawler_robots_denials", "crawler_active_workers"),
    *("crawler_pages_crawled_total", "crawler_crawl_duration_seconds", "crawler_bytes_downloaded_total"),
    *("crawler_links_discovered_total", "crawler_duplicates_skipped_total", "crawler_domains_total"),
    *("crawler_errors_total", "crawler_circuit_breaker_state", "crawler_circuit_breaker_transitions_total"),
    *("crawler_rate_limit_hits_total", "crawler_cleanup_records_total", "crawler_last_cleanup_timestamp"),
    *("healtharchive_jobs_total", "healtharchive_jobs_cleanup_status_total", "healtharchive_snapshots_total"),
    *("healtharchive_jobs_pages_crawled_total", "healtharchive_jobs_pages_failed_total"),
}
LABELS = {
    "crawler_pages_crawled_total": {"status"},
    "crawler_http_status_total": {"status"},
    "crawler_frontier_size": {"status"},
    "crawler_errors_total": {"type"},
    "crawler_rate_limit_hits_total": {"tier"},
    "crawler_cleanup_records_total": {"table"},
    "healtharchive_jobs_total": {"status"},
    "healtharchive_jobs_cleanup_status_total": {"cleanup_status"},
    "healtharchive_snapshots_total": {"source"},
    "healtharchive_jobs_pages_crawled_total": {"source"},
    "healtharchive_jobs_pages_failed_total": {"source"},
    "crawler_circuit_breaker_state": {"state"},
    "crawler_circuit_breaker_transitions_total": {"to"},
}
"""Of those that have any; every other has none."""


@pytest.fixture
def client(make_archive: Any) -> Iterator[Client]:
    with asking(make_archive()) as client:
        yield client


def _exposed(client: Client) -> dict[str, set[str]]:
    """Return every family that is exposed, and every name that a sample of it may have; and all labels in use."""
    names: dict[str, set[str]] = {}
    for line in client.get("/metrics").text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            names[name] = set()
            if kind == "histogram":
                names |= {f"{name}_{ending}": set() for ending in ("bucket", "sum", "count")}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            names.setdefault(sample.name, set()).update(sample.labels)
    return names


def test_every_documented_name_is_exposed_with_its_labels_and_no_others(client: Client) -> None:
    exposed = _exposed(client)

    assert exposed.keys() >= DOCUMENTED
    for name in DOCUMENTED:
        assert exposed[name] <= LABELS.get(name, set()), name
    unbounded = {"url", "host", "domain", "worker_id", "execution", "address", "path"}
    assert not unbounded & set().union(*exposed.values())


def _expressions(found: Any) -> Iterator[str]:
    """Yield every `expr` below a part of a dashboard."""
    if isinstance(found, dict):
        for key, value in found.items():
            if key in ("expr", "query") and isinstance(value, str):
                yield value
            else:
                yield from _expressions(value)
    elif isinstance(found, list):
        for one in found:
            yield from _expressions(one)


def test_rules_and_dashboard_name_nothing_that_is_not_exposed(client: Client) -> None:
    rules = RULES.read_text()
    recorded = set(re.findall(r"record: (\S+)", rules))
    dashboard = list(_expressions(json.loads(DASHBOARD.read_text())))
    assert len(dashboard) > 20

    wanted = set(_NAME.findall("\n".join([*dashboard, *re.findall(r"expr: (.*(?:\n {10}.*)*)", rules)])))

    assert len(wanted) > 15
    assert wanted - recorded <= _exposed(client).keys()


def test_the_rules_judge_by_the_same_marks_as_we_do() -> None:
    text = RULES.read_text()

    assert f"> {ERROR_SHARE}" in text
    assert f"> {GROWTH}" in text
    assert f">= {FEWEST_ANSWERS}" in text
    assert f">= {SMALLEST_QUEUE}" in text
    assert text.count(f" for: {MINUTES}m") == 2
    assert text.count(f"keep_firing_for: {QUIET.seconds // 60}m") == 2


def test_promtool_accepts_the_rules_and_their_tests() -> None:
    if shutil.which("promtool") is None:
        lacking("promtool", "install Debian's package prometheus")
    for command in (["check", "rules", str(RULES)], ["test", "rules", str(RULES_TEST)]):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False, cwd=RULES.parent)
        assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_can_read_what_is_exposed(client: Client, tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        lacking("promtool", "install Debian's package prometheus")
    text = client.get("/metrics").text

    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)

    # It also advises on style (3); a text that it cannot parse is 1.
    assert done.returncode in (0, 3), done.stderr
    assert "error while linting" not in done.stderr
