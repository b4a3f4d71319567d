"""Every page for everybody in Chromium: in both languages, light and dark, on a desk and on a phone."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.flow.web.stage import HOSTILE, OpenWindow, Stage

pytestmark = pytest.mark.slow
_LOOKS = [
    {"theme": "light", "width": 1280, "language": "en"},
    {"theme": "dark", "width": 390, "language": "fr"},
    {"theme": "contrast", "width": 820, "language": "en"},
]


def _screens(stage: Stage) -> dict[str, str]:
    before, after = stage.captures
    with stage.asking() as client:
        found = client.get("/api/search", params={"q": "harbour", "source": "kelpsound"}).json()["results"][0]
    page = quote(found["originalUrl"], safe="")
    return {
        "home": "/",
        "search": "/search?q=harbour",
        "search-none": "/search?q=qqqzzzxxx",
        "changes": "/changes",
        "compare": f"/compare?from={before}&to={after}",
        "sources": "/sources",
        "source": "/sources/kelpsound",
        "page": f"/page?url={page}",
        "view": f"/view/{re.sub('[^0-9]', '', found['captureTimestamp'])[:14]}?url={page}",
    }


@pytest.mark.parametrize("look", _LOOKS, ids=lambda look: f"{look['theme']}-{look['width']}-{look['language']}")
def test_every_page_is_calm_whole_and_accessible(
    open_window: OpenWindow, stage: Stage, look: dict[str, str | int]
) -> None:
    window, found = open_window(**look), []
    for name, path in _screens(stage).items():
        page = window.visit(path)
        page.wait_for_load_state("networkidle")
        expect(page.locator("html")).to_have_attribute("lang", str(look["language"]))
        found += window.complaints(f"{name}-{look['theme']}-{look['width']}")

    assert not found, "\n".join(found)


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
