"""The control room in Chromium while a crawl runs. Every screen is looked at in test_care and test_control_crawling."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from holdfast.auth.roles import Role
from tests.flow.web.stage import HOSTILE, OpenWindow

pytestmark = pytest.mark.slow


def test_a_running_crawl_is_seen_and_a_hostile_source_stays_words(open_window: OpenWindow) -> None:
    window = open_window(role=Role.OPERATOR)
    page = window.visit("/control/jobs")
    expect(page.get_by_text("running", exact=False).first).to_be_visible()

    page = window.visit("/control/sources")
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    assert page.locator("img[src=x], main script").count() == 0
    assert page.evaluate("window.pwned") is None
    assert window.faults == []
