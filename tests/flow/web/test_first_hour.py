"""The first hour in Chromium, with clicks alone: an empty data directory becomes a website that can be searched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from holdfast import config
from holdfast.api.web_files import BUILT
from holdfast.auth.roles import Role
from holdfast.jobs.specs import JobSpec
from holdfast.sources import registry
from holdfast.wiring.jobs import open_jobs
from tests import needs, patience
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import until
from tests.flow.plant import Plant
from tests.flow.web.stage import AXE, OpenWindow, Stage, Window, opener
from tests.site import Site

pytestmark = pytest.mark.slow
_SOON_MS = patience.deadline(30) * 1000
_PASSWORD = "an otter in the harbour"
_MOST_CLICKS, _MOST_FIELDS = 12, 6


@pytest.fixture
def site() -> Iterator[Site]:
    """A small website with a robots.txt, a sitemap and pages that link to each other."""
    with Site.start(hosts=2) as running:
        pages = {"/": "Harbour of Kelpsound", "/tides": "Tides", "/ferry": "Ferry", "/boats": "Boats"}
        links = "".join(f"<a href={path}>{title}</a> " for path, title in pages.items())
        for path, title in pages.items():
            text = f"<main><h1>{title}</h1><p>The {title.lower()} page tells of otters at the pier.</p>{links}</main>"
            running.serve(path, f"<html lang=en><head><title>{title}</title></head><body>{text}</body></html>", host=0)
        running.serve("/private/a", "<p>not for crawlers</p>", host=0)
        old = "<title>Old harbour</title><a href=/old/pier>Pier</a> <a href=/ferry>Ferry</a>"
        running.serve("/old/", f"<html lang=en>{old}</html>", host=0)
        rules = f"User-agent: *\nDisallow: /private/\nSitemap: {running.url(0, '/sitemap.xml')}\n"
        running.serve("/robots.txt", rules, media="text/plain", host=0)
        named = "".join(f"<url><loc>{running.url(0, path)}</loc></url>" for path in (*pages, "/private/a"))
        running.serve("/sitemap.xml", f"<urlset>{named}</urlset>", media="text/xml", host=0)
        running.serve("/robots.txt", "User-agent: *\nDisallow: /\n", media="text/plain", host=1)
        yield running


@contextmanager
def _serving(home: Path, *more: str) -> Iterator[tuple[Stage, str]]:
    """Serve an empty data directory that has no contact; yields the stage and the set-up link that is printed."""
    if not (BUILT / "index.html").is_file():
        needs.lacking("the browser application", "`make web` builds it")
    if not AXE.is_file():
        needs.lacking("axe-core", "`make web` installs it")
    plant = Plant(Crawler(home))
    try:
        server = plant.start(
            "serve", "--port", "0", *more, HOLDFAST_CONTACT="", HOLDFAST_POLITENESS_DELAY_S="0.2",
            HOLDFAST_API_RATE_LIMITING="false",
        )  # fmt: skip
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("serving http://127.0.0.1:"), plant.log()[-2000:]

        def link() -> str | None:
            found = re.search(r"http://\S+/setup#token=\S+", plant.log())
            return found[0] if found else None

        until(lambda: link() is not None, within_s=20, what="the set-up link is printed")
        yield Stage(line.split()[1], home), str(link())
    finally:
        plant.end()


@dataclass(slots=True)
class Newcomer:
    """Somebody without a terminal, whose clicks and fields are counted."""

    page: Page
    clicks: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)

    def click(self, what: Locator) -> None:
        what.first.wait_for()
        self.clicks.append((what.first.inner_text() or "").strip())
        what.first.click()

    def fill(self, label: str, text: str) -> None:
        self.fields.append(label)
        self.page.get_by_label(label, exact=True).fill(text)

    def button(self, name: str) -> None:
        self.click(self.page.get_by_role("button", name=name, exact=True))

    def set_up(self, link: str) -> None:
        self.page.goto(link)
        self.fill("Name", "ana")
        self.fill("New password", _PASSWORD)
        self.fill("Repeat password", _PASSWORD)
        self.button("Save and sign in")


def _window(stage: Stage, browser: Browser, stack: ExitStack, **look: object) -> Window:
    return opener(stage, browser, stack)(**look)


def test_first_hour_from_empty_directory_to_page_through_time(tmp_path: Path, browser: Browser, site: Site) -> None:
    with ExitStack() as stack:
        stage, link = stack.enter_context(_serving(tmp_path / "home"))
        window = _window(stage, browser, stack)
        page, ana = window.page, Newcomer(window.page)

        ana.set_up(link)
        expect(page.get_by_role("heading", level=1)).to_have_text("Add your first website", timeout=_SOON_MS)
        expect(page.get_by_role("navigation", name="Control room", exact=True)).to_be_visible()
        assert not window.complaints("start")

        ana.fill("Website address", site.url(0, "/"))
        ana.button("Check website")
        ana.fill("Your contact", "ana@example.org")
        ana.button("Check website")
        surveyed = page.get_by_role("region", name="What would be crawled")
        expect(surveyed.get_by_role("heading", name="Harbour of Kelpsound")).to_be_visible(timeout=_SOON_MS)
        expect(surveyed).to_contain_text("4, by its sitemap and first page, without those that robots.txt forbids")
        expect(surveyed).to_contain_text("Forbids 1 of 5 addresses checked.")
        expect(surveyed).to_contain_text("ana@example.org")
        rows = surveyed.get_by_role("row")
        expect(page.get_by_text("No worker is running")).to_have_count(0, timeout=_SOON_MS)
        expect(rows.filter(has_text="/tides")).to_contain_text("yes")
        expect(rows.filter(has_text="/private/a")).to_contain_text("line 2 forbids it: Disallow: /private/")
        # Chromium writes each answer of 4xx to its console: the first check had no contact.
        window.faults[:] = [one for one in window.faults if "400 (Bad Request)" not in one]
        assert not window.complaints("start-survey")

        ana.button("Start crawl")
        expect(page.get_by_role("meter")).to_be_visible(timeout=_SOON_MS)
        expect(page.get_by_role("heading", level=1)).to_have_text("Crawled Harbour of Kelpsound", timeout=_SOON_MS)
        expect(page.get_by_text("of Harbour of Kelpsound can be searched.")).to_be_visible(timeout=_SOON_MS)
        # Search says 503 while it makes the first index.
        window.faults[:] = [one for one in window.faults if "503 (Service Unavailable)" not in one]
        assert not window.complaints("start-ended")

        ana.click(page.get_by_role("link", name="Search its pages"))
        box = page.get_by_role("searchbox").first
        ana.fields.append("search")
        box.fill("ferry")
        box.press("Enter")
        result = page.get_by_role("link", name="Ferry").first
        expect(result).to_be_visible(timeout=_SOON_MS)
        ana.click(page.locator("article a[href^='/page?'][href*='ferry']"))
        page.wait_for_url(re.compile(r"/page\?"))
        expect(page.get_by_role("heading", level=1)).to_be_visible()

        assert len(ana.clicks) <= _MOST_CLICKS, ana.clicks
        assert len(ana.fields) <= _MOST_FIELDS, ana.fields
        assert {entry.path for entry in site.log()} >= {"/robots.txt", "/", "/tides", "/ferry", "/boats"}
        assert "/private/a" not in {entry.path for entry in site.log()}
        assert all("ana@example.org" in (entry.user_agent or "") for entry in site.log())


def _choose_part(page: Page) -> None:
    """Choose to crawl only the directory that was entered, and expect that the rest of the site is left out."""
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="/ferry")).to_contain_text("yes")
    page.get_by_label("What to crawl").select_option("prefix")
    expect(rows.filter(has_text="/ferry")).to_contain_text("outside the directories of the seeds", timeout=_SOON_MS)
    expect(rows.filter(has_text="/old/pier")).to_contain_text("yes")


def test_start_page_is_honest_without_worker_and_in_trouble(tmp_path: Path, browser: Browser, site: Site) -> None:
    with ExitStack() as stack:
        stage, link = stack.enter_context(_serving(tmp_path / "home", "--no-worker"))
        visitor = _window(stage, browser, stack).visit("/")
        expect(visitor.get_by_text("Nothing is kept here yet")).to_be_visible()
        assert "holdfast" not in visitor.locator("main").inner_text()
        assert visitor.get_by_role("link", name="Add your first website").count() == 0

        window = _window(stage, browser, stack, theme="dark", width=390)
        page, ana = window.page, Newcomer(window.page)
        ana.set_up(link)
        for typed, said in (
            ("hello", "This is not a web address"),
            ("http://10.0.0.1/", "HOLDFAST_ALLOW_NETWORKS"),
            ("http://127.0.0.9:8099/", "does not accept connections"),
            (site.url(0, "/old/"), "The whole of 127.0.0.2"),
            (site.url(1, "/"), "robots.txt forbids every address that was found"),
        ):
            ana.fill("Website address", typed)
            ana.button("Check website")
            if typed == "http://10.0.0.1/":  # the first address that is one: now the contact is asked for
                ana.fill("Your contact", "ana@example.org")
                ana.button("Check website")
            expect(page.get_by_text(said, exact=False).first).to_be_visible(timeout=_SOON_MS)
            if typed.endswith("/old/"):
                _choose_part(page)
        expect(page.get_by_text("No worker is running, so crawls wait.")).to_be_visible(timeout=_SOON_MS)
        ana.button("Start crawl")
        expect(page.get_by_role("heading", level=1)).to_have_text("About to crawl 127.0.0.3", timeout=_SOON_MS)
        expect(page.get_by_text("No worker is running, so crawls wait.")).to_be_visible(timeout=_SOON_MS)
        window.faults[:] = [one for one in window.faults if "status of" not in one]
        assert not window.complaints("start-waits-dark")

        window.visit("/")
        ana.click(page.get_by_role("link", name="Add your first website"))
        page.wait_for_url(re.compile("/control/start"))
        window.settle()
        assert not window.complaints("start-dark")


def test_run_that_waits_for_a_contact_keeps_its_address(tmp_path: Path, browser: Browser, site: Site) -> None:
    with ExitStack() as stack:
        stage, link = stack.enter_context(_serving(tmp_path / "home"))
        page = _window(stage, browser, stack).page
        ana = Newcomer(page)
        ana.set_up(link)
        expect(page.get_by_role("heading", level=1)).to_have_text("Add your first website", timeout=_SOON_MS)
        with open_jobs(config.load(home=stage.home)) as jobs, jobs.database.write() as session:
            spec = registry.read_spec({"code": "harbour", "config": {"seeds": [site.url(0, "/")]}})
            source = registry.create(session, jobs.clock, spec)
            source_id, job = source.id, jobs.actions.upsert(session, JobSpec(source_id=source.id)).job.id

        for place in (f"sources/{source_id}", f"jobs/{job}"):
            page.goto(f"{stage.url}/control/{place}")
            expect(page.get_by_text("Waiting for your contact.")).to_be_visible(timeout=_SOON_MS)
        ana.click(page.get_by_role("link", name="Enter your contact"))
        expect(page.get_by_label("Website address", exact=True)).to_have_value(site.url(0, "/"))
        ana.fill("Your contact", "ana@example.org")
        ana.button("Check website")
        expect(page.get_by_text("You have this site already.")).to_be_visible(timeout=_SOON_MS)

        page.goto(f"{stage.url}/control/jobs/{job}")
        expect(page.get_by_text("completed").first).to_be_visible(timeout=_SOON_MS)

        page.get_by_role("link", name="#1", exact=True).first.click()
        expect(page.get_by_role("link", name="Open the start page")).to_be_visible(timeout=_SOON_MS)


def _answering(body: object, *, status: int = 200) -> Callable[[Route], None]:
    return lambda route: route.fulfill(status=status, json=body)


def test_end_of_a_crawl_says_why_search_has_no_pages(open_window: OpenWindow, stage: Stage) -> None:
    with stage.asking() as client:
        told = client.get(f"/api/v1/jobs/{stage.job}").json()
    run = told["latest_execution"] | {"status": "completed", "ending": "completed", "items_crawled": 3}
    page = open_window(role=Role.OPERATOR).page
    page.route("**/api/search*", _answering({"error": "The search index is broken", "code": "broken"}, status=422))
    page.route("**/api/admin/workers*", _answering({"items": []}))
    for index_state, said in (
        ("pending", "No worker is running, so crawls wait."),
        ("indexed", "The search index is broken"),
    ):
        shown = told | {"latest_execution": run | {"index_state": index_state}}
        page.route(f"**/api/v1/jobs/{stage.job}", _answering(shown))
        page.goto(f"{stage.url}/control/start?job={stage.job}")
        expect(page.get_by_text(said)).to_be_visible(timeout=_SOON_MS)
