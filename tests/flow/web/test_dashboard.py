"""The overview as a dashboard in Chromium: status codes, domains, pages and hosts given up, as charts and as tables."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from holdfast.auth.roles import Role
from tests import patience
from tests.flow.web.stage import HOSTILE, OpenWindow, Stage, Window

pytestmark = pytest.mark.slow
_SOON_MS = patience.deadline(15) * 1000
_LOOKS = [
    {"theme": "light", "width": 1280},
    {"theme": "dark", "width": 390},
    {"theme": "contrast", "width": 820},
]


@pytest.mark.parametrize("look", _LOOKS, ids=lambda look: f"{look['theme']}-{look['width']}")
def test_an_observer_reads_the_dashboard_as_charts_and_as_tables(open_window: OpenWindow, look: dict[str, Any]) -> None:
    window, name = open_window(**look, role=Role.OBSERVER), f"{look['theme']}-{look['width']}"
    page = window.visit("/control?hours=24")
    statuses = page.get_by_role("list", name="Requests by status code")
    expect(statuses.get_by_role("listitem").filter(has_text="200 OK")).to_be_visible(timeout=_SOON_MS)
    domains = page.get_by_role("list", name="Domains by captures")
    expect(domains.get_by_role("link").first).to_be_visible()
    found = window.complaints(f"dashboard-charts-{name}")

    for title in ("Status codes", "Top domains"):
        page.get_by_role("button", name=f"Show as table: {title}").click()
    codes = page.get_by_role("table", name="Requests by status code")
    expect(codes.get_by_role("row").filter(has_text="200 OK")).to_be_visible()
    expect(page.get_by_role("table", name="Responses of the whole span by class")).to_contain_text("2xx")
    page.get_by_label("Sort domains").select_option("bytes")
    expect(page.get_by_role("table", name="Domains by bytes")).to_be_visible(timeout=_SOON_MS)
    found += window.complaints(f"dashboard-tables-{name}")

    assert not found, "\n".join(found)


def test_a_recent_page_leads_to_its_capture_and_explanation(open_window: OpenWindow, stage: Stage) -> None:
    with stage.asking() as client:
        capture = client.get(f"/api/snapshot/{stage.captures[-1]}").json()
    newest = {
        "url": capture["originalUrl"], "title": HOSTILE, "outcome": "success", "word": "captured", "status": 200,
        "reason": "ok", "completedAt": capture["captureTimestamp"], "executionId": 1, "sourceCode": "hostile",
        "snapshotId": stage.captures[-1], "capturedAt": capture["captureTimestamp"],
    }  # fmt: skip
    window = open_window(role=Role.OPERATOR)
    _answer(window, pages=[newest], attempts=1)
    page = window.visit("/control")
    pages = page.get_by_role("table", name="Pages that were requested last")
    expect(pages.get_by_role("row").nth(1)).to_contain_text(HOSTILE)
    pages.get_by_role("link", name="Explain http").click()
    expect(page).to_have_url(re.compile("/control/explain"))
    page.go_back()
    pages.get_by_role("link", name=HOSTILE).click()
    expect(page).to_have_url(re.compile(r"/view/\d{14}"))
    assert page.evaluate("window.pwned") is None


def _answer(window: Window, **figures: Any) -> None:
    """Let the dashboard have these figures, and no others."""
    told = {
        "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z", "attempts": 0, "isCut": False,
        "countedFrom": None, "statusClasses": {}, "statuses": [], "domains": [], "pages": [], "unreachableHosts": [],
    }  # fmt: skip
    window.context.route(re.compile("/api/stats/activity"), lambda route: route.fulfill(json=told | figures))


def test_a_host_that_was_given_up_says_why_and_what_to_do(open_window: OpenWindow) -> None:
    host = {
        "domain": "down.example", "since": "2026-01-01T00:00:00Z", "failures": 5, "reason": "no such host",
        "nextTryAt": None, "nextStep": "Open down.example in a browser.",
    }  # fmt: skip
    window = open_window(role=Role.OBSERVER)
    _answer(window, unreachableHosts=[host])
    page = window.visit("/control")
    row = page.get_by_role("table", name=re.compile("Hosts that are not requested")).get_by_role("row").nth(1)
    expect(row).to_contain_text("no such host (5 failures in a row)")
    expect(row).to_contain_text("Open down.example in a browser.")
    row.get_by_role("link", name="Open host down.example").click()
    expect(page).to_have_url(re.compile("/control/domains/down.example"))


def test_an_empty_span_says_what_will_appear(open_window: OpenWindow) -> None:
    window = open_window(role=Role.OBSERVER)
    _answer(window)
    page = window.visit("/control")
    expect(page.get_by_text("responses appear here")).to_have_count(2)
    expect(page.get_by_text("Pages appear here while a crawl runs.")).to_be_visible()
    assert window.complaints("dashboard-empty") == []
