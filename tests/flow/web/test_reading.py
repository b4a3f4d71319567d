"""What a reader does, in Chromium: a page through time, an archived page in its frame, comparing, taking away."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Page, expect

from holdfast.editions.edition_files import EditionBusy
from holdfast.editions.report import write_report
from tests import patience
from tests.archive import build_archive
from tests.editions_bed import adopt
from tests.flow.faults.bed import until
from tests.flow.web.stage import HOSTILE, HOSTILE_URL, OpenWindow, Stage

pytestmark = pytest.mark.slow
_PHONE = {"theme": "dark", "width": 390, "language": "fr"}
_DESK = {"theme": "light", "width": 1280, "language": "en"}


def _hostile_page() -> str:
    return f"/page?url={quote(HOSTILE_URL, safe='')}"


def _station(stage: Stage) -> str:
    """Return the first page of the demo's site, as it was captured."""
    with stage.asking() as client:
        return str(
            client.get("/api/search", params={"q": "harbour", "source": "kelpsound"}).json()["results"][0][
                "originalUrl"
            ]
        )


def _address(page: Page) -> str:
    return page.get_by_role("region").get_by_role("textbox").input_value()


@pytest.mark.parametrize("look", [_DESK, _PHONE], ids=["desk", "phone"])
def test_a_page_is_gone_through_in_time(open_window: OpenWindow, look: dict[str, str | int]) -> None:
    window = open_window(**look)
    page = window.visit(_hostile_page())

    expect(page.locator("h1")).to_have_text(HOSTILE_URL)
    marked = page.locator("table a[aria-label*='2024']")
    expect(marked).to_have_count(2)
    found = window.complaints(f"page-{look['width']}")
    page.get_by_role("button", name=re.compile("^(List|Liste)$")).click()
    expect(page.locator("tbody tr")).to_have_count(2)
    found += window.complaints(f"page-list-{look['width']}")
    page.locator("input[type=radio]").nth(0).check()
    page.locator("input[type=radio]").nth(3).check()
    page.get_by_role("button", name=re.compile("^(Compare the two|Comparer les deux)")).click()
    expect(page.locator("ins, del").first).to_be_visible()
    assert HOSTILE in page.locator("main").inner_text()
    found += window.complaints(f"compared-{look['width']}")

    assert not found, "\n".join(found)


def test_an_address_that_is_not_kept_says_what_to_do(open_window: OpenWindow) -> None:
    window = open_window()
    page = window.visit("/page?url=https%3A%2F%2Fnever.example%2F")

    expect(page.get_by_text("This address is not in the archive")).to_be_visible()
    window.faults.clear()
    page = window.visit("/view/20240101000000?url=https%3A%2F%2Fnever.example%2F")
    expect(page.get_by_text("This page is not in the archive")).to_be_visible()


def test_the_bar_moves_along_with_the_page(open_window: OpenWindow, stage: Stage) -> None:
    window = open_window()
    start = _station(stage)
    page = window.visit(f"/view/latest?url={quote(start, safe='')}")
    frame = page.frame_locator("iframe")
    expect(frame.locator("body")).to_be_visible()
    expect(page.locator("iframe")).to_have_attribute("sandbox", "allow-scripts allow-forms allow-downloads")

    links = frame.locator("a[href]")
    there = next(one for one in links.all() if _is_elsewhere(str(one.evaluate("link => link.href")), start))
    there.click()

    page.wait_for_function("start => document.querySelector('[role=region] input').value !== start", arg=start)
    assert _address(page) != start
    expect(page).to_have_url(re.compile(r"/view/\d{14}\?"))
    # The frame shows what the bar says: its own script told the address of its page.
    expect(page.frame_locator("iframe").locator("body")).to_be_visible()
    page.go_back()
    page.wait_for_function("start => document.querySelector('[role=region] input')?.value === start", arg=start)
    assert not [one for one in window.faults if "404" not in one], window.faults


def test_archived_page_has_room_at_zoom_and_keeps_its_arrow_keys(open_window: OpenWindow) -> None:
    window = open_window()
    window.page.set_viewport_size({"width": 640, "height": 422})
    page = window.visit(f"/view/latest?url={quote(HOSTILE_URL, safe='')}")
    box = page.locator("iframe").bounding_box()
    assert box is not None
    assert box["height"] >= 300, "at 200 % zoom the bar leaves most of the window to the page"

    shown = page.url
    for key in ("ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
    page.frame_locator("iframe").locator("body").press("ArrowLeft")
    assert page.url == shown, "arrow keys scroll the page and do not leave the capture"


def _is_elsewhere(href: str, start: str) -> bool:
    live = href.partition("mp_/")[2].partition("#")[0]
    return (
        live.startswith("http") and live.rstrip("/") != start.rstrip("/") and live.split("/")[2] == start.split("/")[2]
    )


def test_a_frame_cannot_make_the_bar_lie(open_window: OpenWindow, stage: Stage) -> None:
    window = open_window()
    start = _station(stage)
    page = window.visit(f"/view/latest?url={quote(start, safe='')}")
    expect(page.frame_locator("iframe").locator("body")).to_be_visible()

    # Not from the frame's window: passed over. From it, with an address that is not kept: the bar stays.
    page.evaluate("postMessage({holdfast: 'go', url: 'https://bank.example/', digits: '20240101000000'}, '*')")
    inner = page.frames[-1]
    inner.evaluate("top.postMessage({holdfast: 'shown', url: 'https://bank.example/', digits: '20240101000000'}, '*')")
    page.wait_for_load_state("networkidle")

    assert _address(page) == start


def test_a_capture_is_cited_taken_away_and_reported(open_window: OpenWindow, stage: Stage) -> None:
    window = open_window()
    page = window.visit(f"/view/latest?url={quote(HOSTILE_URL, safe='')}")
    bar = page.get_by_role("region", name="About this archived page")

    bar.get_by_role("button", name="Cite").click()
    expect(page.get_by_role("dialog")).to_contain_text("@misc{")
    expect(page.get_by_role("dialog")).to_contain_text("urn:uuid:")
    found = window.complaints("cite")
    page.keyboard.press("Escape")
    bar.get_by_role("button", name="Download").click()
    href = str(page.get_by_role("link", name=re.compile("with its parts")).get_attribute("href"))
    page.keyboard.press("Escape")
    bar.get_by_role("button", name="Report a problem").click()
    page.get_by_label("What did you see?").fill("The picture of the otter is missing on this page.")
    found += window.complaints("report")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("the report has arrived")).to_be_visible()

    packed = httpx.get(f"{stage.url}{href}", timeout=patience.deadline(20))
    assert (packed.status_code, packed.headers["content-type"]) == (200, "application/wacz")
    with stage.asking() as client:
        reports = client.get("/api/admin/reports").json()["items"]
    assert reports[0]["snapshotId"] == stage.captures[-1]
    assert not found, "\n".join(found)


def test_search_goes_by_keyboard_from_the_box_to_the_page(open_window: OpenWindow, stage: Stage) -> None:
    window = open_window()
    page = window.visit("/search?q=harbour")
    page.locator("article a").first.wait_for()

    page.keyboard.press("j")
    first = str(page.evaluate("document.activeElement.textContent"))
    page.keyboard.press("j")
    assert str(page.evaluate("document.activeElement.textContent")) != first
    page.keyboard.press("k")
    assert str(page.evaluate("document.activeElement.textContent")) == first
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.get_by_text("Export", exact=True).click()
    path = str(page.get_by_role("link", name="Table (CSV)").get_attribute("href"))
    page.keyboard.press("Escape")
    page.locator("article a").first.press("Enter")

    expect(page).to_have_url(re.compile(r"/view/\d{14}\?url="))
    table = httpx.get(f"{stage.url}{path}", timeout=patience.deadline(20))
    assert table.text.splitlines()[0].startswith("snapshot_id,title,url")


@pytest.mark.parametrize("look", [_DESK, _PHONE], ids=["desk", "phone"])
def test_sites_changes_and_editions_are_read(open_window: OpenWindow, stage: Stage, look: dict[str, str | int]) -> None:
    year = _edition(stage)
    with stage.asking() as client:
        later, earlier = [one["jobId"] for one in client.get("/api/sources/kelpsound/editions").json()[:2]]
    now, before = _years(stage)
    window, found = open_window(**look), []
    screens = {
        "site": f"/compare/site?source=kelpsound&from={earlier}&to={later}",
        "site-editions": f"/compare/site?source=kelpsound&of=editions&from={before}&to={now}",
        "site-none": f"/compare/site?source=kelpsound&of=editions&from=1999&to={now}",
        "changes-gone": "/changes?type=gone",
        "editions": "/editions",
        "edition": f"/editions/hostile/{year}?outcome=captured",
        "edition-none": "/editions/hostile/1999",
    }
    for name, path in screens.items():
        page = window.visit(path)
        page.wait_for_load_state("networkidle")
        found += window.complaints(f"{name}-{look['width']}")

    # What is not there is answered with 404, which a browser writes into its console.
    assert not [one for one in found if "404" not in one], "\n".join(found)


def test_two_editions_are_compared_from_the_figure_down_to_the_words(open_window: OpenWindow, stage: Stage) -> None:
    later, earlier = _years(stage)
    with stage.asking() as client:
        counts = client.get(f"/api/coverage/kelpsound/{later}/comparison-{earlier}.json").json()["counts"]
    window = open_window()
    page = window.visit(f"/editions/kelpsound/{later}")

    page.get_by_role("link", name=re.compile(rf"^changed\s*{counts['changed']}$")).click()
    expect(page).to_have_url(re.compile(rf"/compare/site\?.*from={earlier}&to={later}&kind=changed"))
    expect(page.locator("tbody tr")).to_have_count(counts["changed"])
    page.get_by_role("button", name=re.compile("^gone")).click()
    expect(page.locator("tbody tr")).to_have_count(counts["gone"])
    page.get_by_role("button", name=re.compile("^changed")).click()
    page.get_by_role("link", name=re.compile("^Compare: ")).first.click()
    expect(page).to_have_url(re.compile(r"/compare\?from=\d+&to=\d+"))
    expect(page.locator("ins, del, [role=status]").first).to_be_visible()

    assert not window.faults, window.faults


def _years(stage: Stage) -> tuple[int, int]:
    """Return the years of the demo's last edition and the one before, which were compared."""
    with stage.asking() as client:
        items = client.get("/api/coverage", params={"source": "kelpsound"}).json()["items"]
    return items[0]["year"], items[1]["year"]


def _edition(stage: Stage) -> int:
    """Make an edition of the hostile source, once, and wait for its report: the served worker may write it first."""
    with stage.asking() as client:
        if client.get("/api/coverage/hostile/2024").status_code == 404:
            archive = build_archive(stage.home, [])
            number = adopt(archive, "hostile", 2024, executions=("hostile-1",), seeds=(HOSTILE_URL,))
            with suppress(EditionBusy):
                write_report(archive.database, archive.home, archive.clock, number)
            archive.database.close()
        written = "the report is written"
        until(
            lambda: client.get("/api/coverage/hostile/2024").json()["generatedAt"] is not None,
            within_s=20,
            what=written,
        )
    return 2024
