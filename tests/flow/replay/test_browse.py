"""A crawled site is browsed in Chromium with the live site switched off: it looks the same, and nothing leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from holdfast import config
from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive, days_later, index_all
from tests.flow.crawler import Crawler
from tests.flow.replay.site import live_site
from tests.flow.replay.stage import Leaks, browser, leaks, serving

__all__ = ["browser", "leaks"]


@dataclass(frozen=True, slots=True)
class Visit:
    """An archived site, and the page that looks at it."""

    page: Page
    origin: str
    site: str
    asked: list[str]

    def open(self, path: str = "") -> None:
        self.page.goto(f"{self.origin}/web/2/{self.site}{path}")

    def style(self, selector: str, name: str) -> str:
        found: str = self.page.evaluate(
            "([selector, name]) => getComputedStyle(document.querySelector(selector))[name]", [selector, name]
        )
        return found

    def width(self, selector: str) -> int:
        found: int = self.page.evaluate("selector => document.querySelector(selector).naturalWidth", selector)
        return found


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The site crawled and indexed, its server gone; its address, and the archive's port."""
    home = tmp_path_factory.mktemp("replay") / "home"
    crawler = Crawler(home)
    with live_site() as site:
        crawler.crawl(site, "--delay", "0")
    settings = config.load(home=home)
    with closing(connect(settings.database)) as raw_db:
        index_all(raw_db, SystemClock(), home)
    archive = Archive(settings=settings, database=Database(settings.database), clock=SystemClock())
    with serving(archive) as port:
        yield site, port
    archive.database.close()


@pytest.fixture
def visit(browser: Browser, leaks: Leaks, archived: tuple[str, int]) -> Iterator[Visit]:
    """A fresh page; afterwards nothing may have left the archive."""
    site, port = archived
    context = browser.new_context(viewport={"width": 800, "height": 600})
    page = context.new_page()
    asked: list[str] = []
    failed: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    context.on("requestfailed", lambda request: failed.append(f"{request.failure} {request.url}"))
    origin = f"http://replay.localhost:{port}"
    yield Visit(page, origin, site, asked)
    context.close()
    assert [url for url in asked if not url.startswith((f"{origin}/web/", "data:"))] == []
    assert leaks.asked == []
    # Chromium tries an error page again by itself: what was refused once is loaded a moment later.
    assert [one for one in failed if "REDIRECT" in one] == []


def test_a_page_looks_as_it_did(visit: Visit, tmp_path: Path) -> None:
    visit.open()

    assert visit.page.title() == "Tide tables"
    assert visit.page.evaluate("document.compatMode") == "CSS1Compat"
    assert visit.style(".box", "color") == "rgb(10, 20, 30)"
    assert visit.style("h1", "letterSpacing") == "3px"
    assert "/web/" in visit.style("h1", "backgroundImage")
    assert "square.svg" in visit.style("#inline", "backgroundImage")
    assert "/web/" in visit.style("#attribute", "backgroundImage")
    assert (visit.width("#plain"), visit.width("#set")) == (20, 10)
    assert visit.page.evaluate("document.fonts.load('20px Box').then(found => found.length)") == 1
    assert visit.page.evaluate("document.documentElement.dataset.ran") == "yes"
    assert visit.page.frame_locator("#frame").locator("#inside").inner_text() == "framed"
    assert visit.page.locator("#holdfast-bar").is_visible()
    visit.page.screenshot(path=tmp_path / "home.png")


def test_links_lead_through_the_site_inside_the_archive(visit: Visit) -> None:
    visit.open()

    visit.page.click("#deep")
    visit.page.wait_for_selector("text=Deep notes")
    assert visit.width("#based") == 30
    assert visit.page.url.endswith("/notes/deep/?a=1&copy=2")
    visit.page.click("#up")
    visit.page.wait_for_selector("#deep")
    visit.page.click("#old")
    visit.page.wait_for_selector("text=The new place")
    assert visit.page.url.endswith("/new")
    visit.page.click("#home")
    visit.page.wait_for_selector("#deep")
    assert visit.page.url.startswith(visit.origin)


def test_a_meta_refresh_stays_inside(visit: Visit) -> None:
    visit.open("notes/soon.html")

    visit.page.wait_for_selector("h1:has-text('Later')")

    assert visit.page.url.endswith("/notes/later.html")


def test_a_fragment_stays_on_its_page(visit: Visit) -> None:
    visit.open()
    before = visit.page.url

    visit.page.click("#jump")

    assert visit.page.url == f"{before}#title"


def test_a_link_out_of_the_archive_says_that_it_is_not_there(visit: Visit) -> None:
    visit.open()

    visit.page.click("#away")
    visit.page.wait_for_selector("text=Not in this archive")

    assert visit.page.url.startswith(visit.origin)


def test_the_bar_leads_to_the_calendar_and_back(visit: Visit) -> None:
    visit.open()

    visit.page.click("#holdfast-bar >> text=All captures")
    visit.page.wait_for_selector("nav[aria-label=Years]")
    visit.page.click("td a")
    visit.page.wait_for_selector("#deep")


def test_a_link_to_a_capture_of_another_day_is_followed_at_once(browser: Browser, leaks: Leaks, tmp_path: Path) -> None:
    first, second = "https://example.org/", "https://example.org/later"
    shots = [
        Shot(url=first, body='<!doctype html><title>First</title><a id="x" href="/moved">on</a>'),
        Shot(
            url="https://example.org/moved", status=301, headers={"Location": "/later"}, body="", moment=days_later(1)
        ),
        Shot(url=second, body="<!doctype html><title>Second</title><h1>Later</h1>", moment=days_later(2)),
    ]
    archive = build_archive(tmp_path / "home", shots)
    failed: list[str] = []
    with serving(archive) as port:
        page = browser.new_context().new_page()
        page.on("requestfailed", lambda request: failed.append(str(request.failure)))
        page.goto(f"http://replay.localhost:{port}/web/2024/{first}")
        with page.expect_navigation():
            page.click("#x")
        title, address = page.title(), page.url
        page.context.close()
    archive.database.close()

    assert (title, failed) == ("Second", [])
    assert address.endswith(f"/web/20240303120000/{second}")
    assert leaks.asked == []
