"""Pages for everybody in Chromium: hostile words stay words, and the keyboard is enough."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from tests.flow.web.stage import HOSTILE, OpenWindow, Stage

pytestmark = pytest.mark.slow


def test_hostile_words_stay_words(open_window: OpenWindow, stage: Stage) -> None:
    window, (before, after) = open_window(), stage.captures
    for path in ("/search?q=otter", "/sources", "/changes?source=hostile", f"/compare?from={before}&to={after}"):
        page = window.visit(path)
        # A list of sources to choose from names it too, and is closed.
        expect(page.get_by_text(HOSTILE).filter(visible=True).first).to_be_visible()
        assert page.locator("img[src=x], main script, main svg[onload]").count() == 0, path

    # What the archived page said in its text is shown as it said it, marked where it changed.
    expect(window.page.get_by_text("<script>window.pwned=5</script>").first).to_be_visible()
    assert window.page.evaluate("window.pwned") is None
    assert window.faults == []


def test_a_reader_finds_a_page_by_keyboard_and_the_question_stands_in_the_address(open_window: OpenWindow) -> None:
    window = open_window()
    page = window.visit("/")

    expect(page.locator("main input").first).to_be_focused()
    page.keyboard.type("ferry")
    page.keyboard.press("Enter")

    page.wait_for_url(re.compile(r"/search\?q=ferry"))
    expect(page.get_by_role("link", name=re.compile("ferry", re.I)).first).to_be_visible()
    page.go_back()
    page.wait_for_url(re.compile(r"/$"))
    assert window.faults == []


def test_search_page_waits_for_the_first_index(open_window: OpenWindow) -> None:
    window = open_window()
    refused: list[str] = []
    pending = {"error": "Unavailable", "detail": "the search index is being made", "code": "search_index_pending"}

    def refuse_once(route: Route) -> None:
        refused.append(route.request.url)
        if len(refused) > 1:
            route.fallback()
        else:
            route.fulfill(status=503, headers={"Retry-After": "5", "X-Request-Id": "r1"}, json=pending)

    window.page.route(re.compile(r"/api/search\?"), refuse_once)
    window.page.goto(f"{window.stage.url}/search?q=ferry")

    expect(window.page.get_by_text("The search index is being built")).to_be_visible()
    expect(window.page.get_by_role("alert")).to_have_count(0)
    # Without a click: the page asks again by itself.
    expect(window.page.get_by_role("link", name=re.compile("ferry", re.I)).first).to_be_visible()


def test_facet_counts_of_an_inexact_search_are_lower_bounds(open_window: OpenWindow) -> None:
    window = open_window()

    def as_inexact(route: Route) -> None:
        answer = route.fetch()
        years = [{"value": year, "label": year, "count": 761} for year in ("2024", "2025")]
        found = answer.json()
        found |= {"totalIsExact": False, "total": 465, "facets": {**found["facets"], "year": years}}
        route.fulfill(response=answer, json=found)

    window.page.route(re.compile(r"/api/search\?"), as_inexact)
    page = window.visit("/search?q=ferry")

    expect(page.get_by_role("status").filter(has_text="at least 465 results")).to_be_visible()
    expect(page.get_by_role("button", name="2025 at least 761").first).to_be_visible()
