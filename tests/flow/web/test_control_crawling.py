"""The control room's pages about crawling in Chromium, against a crawl that runs."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from holdfast.auth.roles import Role
from tests import patience
from tests.flow.faults.bed import until
from tests.flow.web.stage import HOSTILE, OpenWindow, Stage

pytestmark = pytest.mark.slow
_SOON_MS = patience.deadline(15) * 1000


def _job(client: httpx.Client, stage: Stage) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/v1/jobs/{stage.job}").json()
    return found


def _running(stage: Stage) -> int:
    """Return the run that is under way; it is begun again if it has ended meanwhile."""
    with stage.asking() as client:
        if _job(client, stage)["status"] != "running":
            client.post("/api/v1/jobs", json={"source_id": _job(client, stage)["source_id"]})
            until(lambda: _job(client, stage)["status"] == "running", within_s=40, what="the crawl runs again")
        return int(_job(client, stage)["latest_execution"]["id"])


def test_a_running_crawl_is_seen_and_a_hostile_source_stays_words(open_window: OpenWindow, stage: Stage) -> None:
    _running(stage)
    window = open_window(role=Role.OPERATOR)
    page = window.visit("/control/jobs")
    expect(page.get_by_text("running", exact=False).filter(visible=True).first).to_be_visible()

    page = window.visit("/control/sources")
    expect(page.get_by_text(HOSTILE).filter(visible=True).first).to_be_visible()
    assert page.locator("img[src=x], main script").count() == 0
    assert page.evaluate("window.pwned") is None
    assert window.faults == []


def test_the_overview_says_whether_it_is_live_and_shows_what_runs(open_window: OpenWindow, stage: Stage) -> None:
    _running(stage)
    page = open_window(role=Role.OPERATOR).visit("/control")
    expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=_SOON_MS)
    runs = page.get_by_role("table", name=re.compile("Running runs"))
    expect(runs.get_by_role("link", name=re.compile("Harbour"))).to_be_visible(timeout=_SOON_MS)
    expect(page.get_by_role("table", name="Running processes")).to_contain_text("crawler")
    page.get_by_text("Pages per second as a table").click()
    expect(page.get_by_role("region", name="Pages per second as a table")).to_contain_text("Time (UTC)")

    without = open_window(role=Role.OPERATOR)
    without.context.route(re.compile("/events"), lambda route: route.abort())
    without.page.goto(f"{without.stage.url}/control")
    expect(without.page.get_by_text("Every 5 s")).to_be_visible(timeout=_SOON_MS)
    expect(without.page.get_by_role("table", name=re.compile("Running runs"))).to_contain_text("Harbour")


def test_a_run_is_watched_and_its_exclusions_are_edited(open_window: OpenWindow, stage: Stage) -> None:
    run = _running(stage)
    page = open_window(role=Role.OPERATOR).visit(f"/control/executions/{run}")
    progress = page.get_by_role("meter", name=re.compile("done, of those known"))
    first = float(progress.get_attribute("aria-valuenow") or 0)
    expect(progress).not_to_have_attribute("aria-valuenow", f"{first:g}", timeout=_SOON_MS)

    page.get_by_role("tab", name="Hosts").click()
    expect(page.get_by_role("table", name="Hosts of this run")).to_contain_text("127.0.0.")
    page.get_by_role("tab", name="Pages").click()
    expect(page.get_by_role("table", name="Addresses of this run")).to_contain_text("from a seed")
    page.get_by_role("tab", name="Log").click()
    lines = page.get_by_role("log").get_by_role("listitem")
    expect(lines.first).to_be_visible(timeout=_SOON_MS)
    page.get_by_label("Search in the log").fill("run starts")
    expect(lines).to_have_count(1)
    page.get_by_role("button", name="Pause scrolling").click()
    expect(page.get_by_role("button", name="Follow again")).to_be_visible()

    page.get_by_role("tab", name="Exclusions").click()
    box = page.get_by_label("Exclude", exact=True)
    box.fill("(")
    expect(page.get_by_text(re.compile("Cannot use the rule"))).to_be_visible(timeout=_SOON_MS)
    box.fill(r"p\d*7\.html")
    expect(page.get_by_text(re.compile("would not be requested"))).to_be_visible(timeout=_SOON_MS)
    page.get_by_role("button", name="Apply to this run").click()
    expect(page.get_by_text("The run applies the patterns")).to_be_visible(timeout=_SOON_MS)
    with stage.asking() as client:
        assert client.get(f"/api/v1/executions/{run}/exclusions").json()["added"] == [r"p\d*7\.html"]


def test_a_run_is_paused_on_a_phone_which_others_see_at_once_and_goes_on(open_window: OpenWindow, stage: Stage) -> None:
    run = _running(stage)
    desk = open_window(role=Role.OPERATOR).visit("/control")
    phone = open_window(role=Role.OPERATOR, width=390)
    page = phone.visit(f"/control/executions/{run}")
    try:
        page.get_by_role("button", name="Pause run").click()
        expect(page.get_by_text(re.compile("no more requests are sent until you resume")).first).to_be_visible()
        expect(page.get_by_text(re.compile("Paused since .* UTC by the-operator"))).to_be_visible(timeout=_SOON_MS)
        found = phone.complaints("run-paused-390")
        # Told live: no one has touched the other window.
        runs = desk.get_by_role("table", name=re.compile("Running runs"))
        expect(runs.get_by_text("paused", exact=True)).to_be_visible(timeout=_SOON_MS)
        runs.get_by_role("button", name=f"Resume run #{run}").click()
        expect(page.get_by_role("button", name="Pause run")).to_be_visible(timeout=_SOON_MS)
        expect(page.get_by_text(re.compile("Paused since"))).to_have_count(0)
        expect(runs.get_by_role("button", name=f"Pause run #{run}")).to_be_visible(timeout=_SOON_MS)
    finally:
        with stage.asking() as client:
            client.post("/api/admin/crawls/resume", json={"execution": run})

    assert not found, "\n".join(found)


def test_a_source_is_made_by_form_with_its_problems_at_their_fields(open_window: OpenWindow, stage: Stage) -> None:
    window = open_window(role=Role.OPERATOR)
    page = window.visit("/control/sources/new")
    page.get_by_label("Seeds", exact=True).fill("https://museum.example/exhibits/")
    page.get_by_label("Name").fill(HOSTILE)
    page.get_by_label("Scope").select_option("prefix")
    told = page.get_by_role("complementary", name="Preview")
    expect(told.get_by_text("it is a seed")).to_be_visible(timeout=_SOON_MS)
    page.get_by_label("Try addresses").fill("https://museum.example/exhibits/otter\nhttps://museum.example/shop/")
    expect(told.get_by_role("listitem").filter(has_text="/exhibits/otter")).to_contain_text("in:", timeout=_SOON_MS)
    expect(told.get_by_role("listitem").filter(has_text="/shop/")).to_contain_text("out:")
    page.get_by_label("How often").select_option("every")
    page.get_by_label("Number").fill("6")
    page.get_by_label("Unit").select_option("hours")
    next_runs = page.get_by_role("region", name="Next runs")
    expect(next_runs.get_by_text("Every 6 hours")).to_be_visible(timeout=_SOON_MS)
    expect(next_runs.locator("ol li")).to_have_count(3, timeout=_SOON_MS)

    page.get_by_label("Exclude", exact=True).fill("(")
    page.get_by_role("button", name="Create source").click()
    _has_problem(page.get_by_label("Exclude", exact=True))
    expect(page.get_by_label("Exclude", exact=True)).to_be_focused()
    expect(told.get_by_text("Correct “Exclude”")).to_be_visible(timeout=_SOON_MS)
    page.get_by_label("Exclude", exact=True).fill("/calendar/")
    page.get_by_role("button", name="Create source").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(HOSTILE, timeout=_SOON_MS)
    # The browser tells of every refused request: of the form and of its preview. There are no other faults.
    assert all("400 (Bad Request)" in one for one in window.faults), window.faults
    window.faults.clear()
    expect(page.get_by_text("runs every 6 hours")).to_be_visible()
    page.get_by_role("tab", name="YAML").click()
    text = page.get_by_label("The source as YAML")
    expect(text).to_have_value(re.compile("/calendar/"))
    text.fill(text.input_value().replace("/calendar/", "/agenda/"))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("It can be saved.")).to_be_visible(timeout=_SOON_MS)
    page.get_by_role("button", name="Save").click()
    with stage.asking() as client:
        until(lambda: "/agenda/" in client.get("/api/v1/sources?search=museum").text, within_s=15, what="it is saved")
    assert window.complaints("control-source-saved") == []


def _has_problem(field: Locator) -> None:
    expect(field).to_have_attribute("aria-invalid", "true", timeout=_SOON_MS)
    expect(field).to_be_visible()


def test_what_keeps_and_what_throws_away_is_asked_in_different_words_on_a_phone(
    open_window: OpenWindow, stage: Stage
) -> None:
    _running(stage)
    window = open_window(role=Role.OPERATOR, width=390, theme="dark")
    page = window.visit("/control/jobs?status=running")
    page.get_by_role("link", name="Harbour").first.click()
    page.get_by_role("button", name="Cancel, discard").click()
    expect(page.get_by_role("dialog")).to_contain_text("This cannot be undone")
    assert window.complaints("discard-phone") == []
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Stop, keep").click()
    expect(page.get_by_role("dialog")).to_contain_text("are kept, indexed and can be read")
    page.get_by_role("button", name="Stop and keep").click()
    expect(page.get_by_text("The run drains")).to_be_visible(timeout=_SOON_MS)
    again = page.get_by_role("button", name="Run again")
    expect(again).to_be_visible(timeout=patience.deadline(60) * 1000)
    again.click()
    expect(page.get_by_text("It runs once more")).to_be_visible(timeout=_SOON_MS)
    with stage.asking() as client:
        until(lambda: _job(client, stage)["status"] == "running", within_s=40, what="it runs again")


def test_a_job_is_paused_resumed_and_crawls_are_started_by_hand(open_window: OpenWindow, stage: Stage) -> None:
    with stage.asking() as client:
        config = {"seeds": ["https://later.example/"]}
        source = client.post("/api/v1/sources", json={"code": "later", "name": "Later", "config": config}).json()
        client.post("/api/v1/jobs", json={"source_id": source["id"], "interval_minutes": 9, "interval_type": "days",
                                          "schedule_enabled": True})  # fmt: skip
    page = open_window(role=Role.OPERATOR, width=390).visit("/control/jobs")
    # The list is asked for while who types rests; the box keeps the focus, and what is typed goes on.
    box = page.get_by_role("searchbox", name="Search")
    box.press_sequentially("la")
    expect(page).to_have_url(re.compile(r"\?q=la$"), timeout=_SOON_MS)
    expect(box).to_be_focused()
    page.keyboard.type("ter")
    expect(page).to_have_url(re.compile(r"\?q=later$"), timeout=_SOON_MS)
    page.get_by_role("link", name="Later").first.click()
    page.get_by_role("button", name="Pause schedule").click()
    expect(page.get_by_text("Its next runs wait until you resume it.")).to_be_visible(timeout=_SOON_MS)
    page.get_by_role("button", name="Resume schedule").click()
    expect(page.get_by_text("Its schedule is resumed, at the emptiest time")).to_be_visible(timeout=_SOON_MS)

    page.goto(f"{stage.url}/control/jobs")
    page.get_by_role("button", name="Crawl once").click()
    page.get_by_label("Addresses").fill("nonsense")
    page.get_by_role("button", name="Crawl", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="no scheme")).to_be_visible(timeout=_SOON_MS)
    page.get_by_label("Addresses").fill("https://by-hand.example/")
    page.get_by_role("button", name="Crawl", exact=True).click()
    expect(page.get_by_text("The crawl is queued.")).to_be_visible(timeout=_SOON_MS)
    page.get_by_role("link", name="Watch it").click()
    _end_job(page)


def _end_job(page: Page) -> None:
    page.get_by_role("button", name="End the job").click()
    expect(page.get_by_role("dialog")).to_contain_text("It will not run again")
    page.get_by_role("dialog").get_by_role("button", name="End the job").click()
    expect(page.get_by_text("The job has ended for good.")).to_be_visible(timeout=_SOON_MS)


def test_a_feed_is_added_disabled_put_back_and_deleted(open_window: OpenWindow, stage: Stage) -> None:
    page = open_window(role=Role.OPERATOR).visit("/control/feeds?source=harbour")
    page.get_by_role("button", name="Add a feed").click()
    page.get_by_label("Address").fill("https://harbour.example/news.rss")
    page.get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("row").filter(has_text="https://harbour.example/news.rss")
    expect(row).to_contain_text("not polled yet", timeout=_SOON_MS)
    row.get_by_role("button", name="Disable").click()
    expect(row.get_by_text("disabled", exact=True)).to_be_visible(timeout=_SOON_MS)
    page.get_by_role("button", name="Undo").click()
    expect(row.get_by_role("button", name="Disable")).to_be_visible(timeout=_SOON_MS)
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the feed").click()
    expect(row).to_have_count(0, timeout=_SOON_MS)
    expect(page.get_by_text("is removed from harbour")).to_be_visible()
