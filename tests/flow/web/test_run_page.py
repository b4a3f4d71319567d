"""The page of a run in Chromium: a site with a forbidden page, a 404, a 500 and a limit; stop, resume, the log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from holdfast.api.web_files import BUILT
from holdfast.auth.roles import Role
from tests import needs, patience
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import until
from tests.flow.plant import Plant
from tests.flow.web.stage import AXE, TOKEN, OpenWindow, Stage, opener
from tests.site import Site

pytestmark = pytest.mark.slow
_SOON_MS = patience.deadline(20) * 1000
_LOOKS = [{"theme": "light", "width": 390}, {"theme": "dark", "width": 390}, {"theme": "dark", "width": 1280}]
_ROBOTS = "User-agent: *\nCrawl-delay: 0\nDisallow: /private\n"
_PAGES = ("/good", "/private/rota", "/missing", "/broken", *(f"/more/{number}" for number in range(6)))


@dataclass(slots=True)
class Harbour:
    """An installation with a small site, and the runs that its tests look at."""

    stage: Stage
    site: Site

    def crawl(self, code: str, *, start: str = "/", **config: Any) -> int:
        """Crawl the site as a source of this code, and return the job."""
        settings = {"seeds": [self.site.url(0, start)], "delay_s": 0.05, "max_depth": 3, **config}
        with self.stage.asking() as client:
            source = client.post("/api/v1/sources", json={"code": code, "name": code.title(), "config": settings})
            assert source.is_success, source.text
            job = client.post("/api/v1/jobs", json={"source_id": source.json()["id"], "url": self.site.url(0, start)})
            assert job.is_success, job.text
            return int(job.json()["id"])

    def job(self, number: int) -> dict[str, Any]:
        """Return a job."""
        with self.stage.asking() as client:
            found: dict[str, Any] = client.get(f"/api/v1/jobs/{number}").json()
            return found

    def ended(self, number: int, *, runs: int = 1) -> int:
        """Wait until so many runs of a job have ended and are indexed, and return the newest."""

        def is_over() -> bool:
            run = self.job(number)["latest_execution"] or {}
            over = run.get("ending") is not None and run.get("index_status") in (None, "indexed")
            return bool(over and run["execution_number"] >= runs)

        until(is_over, within_s=60, what="the run has ended and is indexed")
        return int(self.job(number)["latest_execution"]["id"])


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    """A served installation beside a site that misbehaves."""
    if not (BUILT / "index.html").is_file():
        needs.lacking("the browser application", "`make web` builds it")
    if not AXE.is_file():
        needs.lacking("axe-core", "`make web` installs it")
    plant = Plant(Crawler(tmp_path_factory.mktemp("run") / "home"))
    with Site.start(hosts=1) as site:
        links = "".join(f'<a href="{path}">{path}</a> ' for path in _PAGES)
        site.serve("/robots.txt", _ROBOTS, media="text/plain")
        site.serve("/sitemap.xml", "none", status=404)
        site.serve("/", f"<html lang=en><title>Harbour</title><main><h1>Harbour</h1>{links}</main></html>")
        for path in ("/good", *_PAGES[4:]):
            site.serve(path, f"<html lang=en><title>{path}</title><p>An otter at {path}.</p></html>")
        site.serve("/missing", "gone", status=404)
        site.serve("/broken", "no", status=500)
        try:
            server = plant.start(
                "serve", "--port", "0", HOLDFAST_API_RATE_LIMITING="false", HOLDFAST_API_ADMIN_TOKEN=TOKEN,
            )  # fmt: skip
            assert server.stdout is not None
            line = server.stdout.readline()
            assert line.startswith("serving http://127.0.0.1:"), plant.log()[-2000:]
            stage = Stage(line.split()[1], plant.crawler.home)
            stage.add_users()
            yield Harbour(stage, site)
        finally:
            plant.end()


@pytest.fixture(scope="module")
def whole(harbour: Harbour) -> int:
    """A run that met everything; its job."""
    job = harbour.crawl("whole")
    harbour.ended(job)
    return job


@pytest.fixture
def open_run_window(harbour: Harbour, browser: Browser) -> Iterator[OpenWindow]:
    """Opens windows on this installation, which close with the test."""
    with ExitStack() as stack:
        yield opener(harbour.stage, browser, stack)


def _row(page: Page, site: Site, path: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_text(site.url(0, path), exact=True))


def test_run_rows_lead_to_capture_explanation_and_robots_line(
    open_run_window: OpenWindow, harbour: Harbour, whole: int
) -> None:
    run, site = harbour.job(whole)["latest_execution"]["id"], harbour.site
    page = open_run_window(role=Role.OPERATOR).visit(f"/control/executions/{run}")
    expect(page.get_by_text("Live", exact=True)).to_have_count(0)
    expect(page.get_by_role("tab", name="Pages")).to_have_attribute("data-state", "active")
    words = {"/good": "captured", "/missing": "not found", "/broken": "server error"}
    for path, word in {**words, "/private/rota": "forbidden by robots.txt"}.items():
        row = _row(page, site, path)
        expect(row).to_contain_text(word, timeout=_SOON_MS)
        expect(row.get_by_role("link", name=re.compile("Explain"))).to_be_visible()
    forbidden = _row(page, site, "/private/rota")
    expect(forbidden.get_by_role("link", name="robots.txt line 3: Disallow: /private")).to_be_visible()
    expect(forbidden.get_by_role("link", name=re.compile("Capture"))).to_have_count(0)

    page.get_by_label("Outcome").select_option("failed")
    expect(_row(page, site, "/good")).to_have_count(0)
    expect(_row(page, site, "/missing")).to_be_visible()
    page.get_by_label("Outcome").select_option("all")
    page.get_by_label("Part of the address").fill("priv")
    expect(_row(page, site, "/good")).to_have_count(0)
    _row(page, site, "/private/rota").get_by_role("link", name=re.compile("Explain")).click()
    expect(page.get_by_text(re.compile("Disallow: /private")).first).to_be_visible(timeout=_SOON_MS)
    page.go_back()
    page.get_by_label("Part of the address").fill("good")
    _row(page, site, "/good").get_by_role("link", name=re.compile("Capture")).click()
    page.wait_for_url(re.compile(r"/view/\d{14}"))


def test_finished_run_leads_to_its_start_page_and_its_errors(
    open_run_window: OpenWindow, harbour: Harbour, whole: int
) -> None:
    run = harbour.job(whole)["latest_execution"]["id"]
    window = open_run_window(role=Role.OPERATOR)
    page = window.visit(f"/control/jobs?q=%23{run}")
    page.get_by_role("link", name=f"Open run #{run}").click()
    brought = page.get_by_role("navigation", name="What this run brought")
    expect(brought.get_by_role("link", name="Open the start page")).to_be_visible(timeout=_SOON_MS)
    expect(brought.get_by_role("link", name="Search these pages")).to_have_attribute("href", re.compile("source=whole"))

    page.get_by_role("tab", name="Errors").click()
    errors = page.get_by_role("table", name="What was not captured, by reason")
    expect(errors.get_by_role("row").filter(has_text="HTTP 404")).to_contain_text("not found")
    expect(errors.get_by_role("row").filter(has_text="HTTP 404")).to_contain_text("/missing")
    expect(errors.get_by_role("row").filter(has_text="no sitemap there")).to_be_visible()
    expect(errors.get_by_role("row").filter(has_text="robots.txt line 3")).to_contain_text("1 address")
    errors.get_by_role("row").filter(has_text="HTTP 500").get_by_role("link", name="1 address").click()
    expect(_row(page, harbour.site, "/broken")).to_be_visible()
    expect(_row(page, harbour.site, "/missing")).to_have_count(0)

    page.get_by_role("tab", name="Summary").click()
    expect(page.get_by_text("Captured and failed, each 1 min.")).to_be_visible(timeout=_SOON_MS)
    page.get_by_text("Pages as a table").click()
    table = page.get_by_role("region", name="Pages as a table")
    assert 2 <= table.get_by_role("row").count() <= 4, "the chart spans the run, not the last hour"
    page.get_by_role("tab", name="Log").click()
    expect(page.get_by_text("The run has ended.")).to_be_visible(timeout=_SOON_MS)
    page.get_by_label("Search in the log").fill("run starts")
    expect(page.get_by_role("log").get_by_role("listitem")).to_have_count(1)


def test_limit_is_named_and_its_rest_listed(open_run_window: OpenWindow, harbour: Harbour) -> None:
    run = harbour.ended(harbour.crawl("limited", max_pages=2))
    page = open_run_window(role=Role.OPERATOR).visit(f"/control/executions/{run}")
    expect(page.locator("main header").get_by_text("incomplete", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile("The limit of pages was reached"))).to_be_visible()
    page.get_by_role("link", name="Show what was left out").click()
    table = page.get_by_role("table", name="Addresses of this run")
    expect(table).to_contain_text("not crawled: the run ended first", timeout=_SOON_MS)


def test_links_over_built_in_limits_are_listed_by_rule(open_run_window: OpenWindow, harbour: Harbour) -> None:
    harbour.site.serve("/loops", f"<html lang=en><title>Loops</title><a href='{'/loop' * 9}'>on</a></html>")
    run = harbour.ended(harbour.crawl("trapped", start="/loops"))
    page = open_run_window(role=Role.OPERATOR).visit(f"/control/executions/{run}")
    page.get_by_role("link", name="Show what was left out").click()
    table = page.get_by_role("table", name="Links that were not followed, by rule and host")
    expect(table).to_contain_text("path repeats itself", timeout=_SOON_MS)


def test_run_is_stopped_resumed_and_ends_with_the_right_words(open_run_window: OpenWindow, harbour: Harbour) -> None:
    job = harbour.crawl("slow", delay_s=1.0)
    until(lambda: harbour.job(job)["status"] == "running", within_s=40, what="the run is under way")
    first = int(harbour.job(job)["latest_execution"]["id"])
    window = open_run_window(role=Role.OPERATOR)
    page = window.visit(f"/control/executions/{first}")
    expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=_SOON_MS)
    until(lambda: harbour.job(job)["latest_execution"]["items_crawled"] > 0, within_s=40, what="a page is captured")
    page.get_by_role("button", name="Stop, keep").click()
    page.get_by_role("button", name="Stop and keep").click()
    expect(page.get_by_text("Stopped early.")).to_be_visible(timeout=_SOON_MS)
    expect(page.locator("main header").get_by_text("stopped", exact=True)).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_have_count(0)
    assert harbour.job(job)["run_may"] == "resume"
    with harbour.stage.asking() as client:
        stats = client.get(f"/api/v1/jobs/{job}/stats").json()
    assert (stats["total_executions"], stats["successful_runs"], stats["failed_runs"]) == (1, 0, 0)

    harbour.ended(job)
    page.get_by_role("button", name="Resume run").click()
    expect(page.get_by_text(re.compile("It continues as run #"))).to_be_visible(timeout=_SOON_MS)
    second = harbour.ended(job, runs=2)
    page = window.visit(f"/control/executions/{second}")
    expect(page.locator("main header").get_by_text("completed", exact=True)).to_be_visible(timeout=_SOON_MS)
    for path in _PAGES[4:]:
        expect(_row(page, harbour.site, path)).to_contain_text("captured")
    page.get_by_role("button", name="Re-crawl what failed").click()
    expect(page.get_by_text(re.compile("2 pages are queued again"))).to_be_visible(timeout=_SOON_MS)
    page.get_by_role("link", name="Watch it").click()
    again = re.compile(r"/control/jobs/\d+$")
    page.wait_for_url(again)
    once = int(page.url.rpartition("/")[2])
    run = harbour.ended(once)
    assert (harbour.job(once)["status"], harbour.job(once)["latest_execution"]["id"]) == ("failed", run)
    page = window.visit(f"/control/executions/{run}")
    expect(page.get_by_text("It failed.")).to_have_count(1)

    page = window.visit(f"/control/jobs/{job}")
    expect(page.get_by_role("heading", name=f"Log of run #{second}")).to_be_visible()
    runs = page.get_by_role("table", name=re.compile("Runs of this job"))
    expect(runs).to_contain_text("stopped")
    expect(runs).to_contain_text("completed")


def test_member_explains_an_address_and_sees_no_control_room(
    open_run_window: OpenWindow, harbour: Harbour, whole: int
) -> None:
    assert harbour.job(whole)["latest_execution"]["ending"] == "completed"
    window = open_run_window(role=Role.MEMBER, width=390)
    page = window.visit(f"/page?{httpx.QueryParams(url=harbour.site.url(0, '/good'))}")
    page.get_by_role("link", name="Explain this address").click()
    expect(page.get_by_text(re.compile("It belongs to .*whole")).first).to_be_visible(timeout=_SOON_MS)
    expect(page.get_by_role("navigation", name="Control room")).to_have_count(0)
    expect(page.get_by_role("heading", name="State of its domain")).to_have_count(0)
    assert window.complaints("explain-member") == []
    window.page.goto(f"{harbour.stage.url}/control/jobs")
    expect(page.get_by_text("This page is for operators")).to_be_visible(timeout=_SOON_MS)


@pytest.mark.parametrize("look", _LOOKS, ids=lambda look: f"{look['theme']}-{look['width']}")
def test_run_page_is_accessible_in_every_part(
    open_run_window: OpenWindow, harbour: Harbour, whole: int, look: dict[str, Any]
) -> None:
    run = harbour.job(whole)["latest_execution"]["id"]
    window, found = open_run_window(**look, role=Role.OPERATOR), []
    parts = ("now", "urls", "errors", "hosts", "log", "rules", "result")
    paths = {part: f"/control/executions/{run}?tab={part}" for part in parts}
    paths["explain"] = f"/control/explain?url={httpx.QueryParams({'url': harbour.site.url(0, '/private/rota')})['url']}"
    for name, path in paths.items():
        window.visit(path)
        found += window.complaints(f"run-{name}-{look['theme']}-{look['width']}")

    assert not found, "\n".join(found)
