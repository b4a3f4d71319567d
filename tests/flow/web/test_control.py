"""Every page of the control room in Chromium while a crawl runs: on a desk and on a phone, light and dark."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from holdfast.auth.roles import Role
from tests.flow.web.stage import HOSTILE, HOSTILE_URL, OpenWindow, Stage

pytestmark = pytest.mark.slow
_PLACES = (
    "", "sources", "sources/new", "jobs", "feeds", "frontier", "domains", "explain", "scheduler", "editions", "imports",
    "index", "storage", "takedowns", "reports", "users", "sessions", "webhooks", "audit", "settings", "health",
)  # fmt: skip
_LOOKS = [{"theme": "light", "width": 1280}, {"theme": "dark", "width": 390}]


def _screens(stage: Stage) -> dict[str, str]:
    with stage.asking() as client:
        source = next(one["id"] for one in client.get("/api/v1/sources").json()["sources"] if one["code"] == "hostile")
        execution = client.get(f"/api/v1/jobs/{stage.job}/executions").json()["executions"][0]["id"]
    shown = {place.replace("/", "-") or "overview": f"/control/{place}".rstrip("/") for place in _PLACES}
    return {
        **shown,
        "source": f"/control/sources/{source}",
        "job": f"/control/jobs/{stage.job}",
        "run": f"/control/executions/{execution}",
        "domain": "/control/domains/www.kelpsound.example",
        "explained": f"/control/explain?url={quote(HOSTILE_URL, safe='')}",
    }


@pytest.mark.parametrize("look", _LOOKS, ids=lambda look: f"{look['theme']}-{look['width']}")
def test_every_place_is_calm_whole_and_accessible(
    open_window: OpenWindow, stage: Stage, look: dict[str, str | int]
) -> None:
    window, found = open_window(role=Role.ADMINISTRATOR, **look), []
    for name, path in _screens(stage).items():
        window.visit(path)
        found += window.complaints(f"control-{name}-{look['theme']}-{look['width']}")

    assert not found, "\n".join(found)


def test_a_running_crawl_is_seen_and_a_hostile_source_stays_words(open_window: OpenWindow) -> None:
    window = open_window(role=Role.OPERATOR)
    page = window.visit("/control/jobs")
    expect(page.get_by_text("running", exact=False).first).to_be_visible()

    page = window.visit("/control/sources")
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    assert page.locator("img[src=x], main script").count() == 0
    assert page.evaluate("window.pwned") is None
    assert window.faults == []
