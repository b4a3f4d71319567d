"""A server that stops, restarts and is upgraded under open pages, and a network that goes and comes, in Chromium."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from holdfast.api.session_cookie import cookie_name
from holdfast.api.web_files import BUILT, WebFiles
from holdfast.auth.roles import Role
from holdfast.auth.sessions import Browser as SignedIn
from holdfast.auth.sessions import begin_session
from holdfast.auth.users import add_user
from holdfast.clock import SystemClock
from holdfast.config import ApiSettings, Settings
from holdfast.db.engine import Database
from holdfast.db.models import Edition
from holdfast.jobs.specs import JobSpec
from holdfast.webhooks import registry as webhooks
from holdfast.wiring.archive import Archive
from holdfast.wiring.jobs import open_jobs
from tests import needs, patience
from tests.archive import Shot, build_archive
from tests.flow.replay.stage import serving

pytestmark = pytest.mark.slow
_AWAY = re.compile(r"The server does not answer\. Data as of \d\d:\d\d:\d\d UTC\.")
_SHOWN = "main h1, main [role=alert]"
"""What a page shows at its top: its heading, or that there is no such job, run or edition."""
_LONG_MS = patience.deadline(30) * 1000


@dataclass(slots=True)
class Server:
    """An archive that is served, not served, or served with other files; always on one port."""

    archive: Archive
    stack: ExitStack
    port: int = 0

    @property
    def url(self) -> str:
        """Where it is served."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, files: Path = BUILT) -> None:
        """Serve it with the files of a build."""
        self.port = self.stack.enter_context(serving(self.archive, port=self.port, web=WebFiles.read(files)))

    def stop(self) -> None:
        """End it, with all connections."""
        self.stack.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A small archive, served."""
    if not (BUILT / "index.html").is_file():
        needs.lacking("the browser application", "`make web` builds it")
    home = tmp_path / "home"
    build_archive(home, [Shot(url="https://example.org/")]).database.close()
    settings = Settings(home=home, api=ApiSettings(rate_limiting=False))
    with closing(Database(settings.database)) as database, ExitStack() as stack:
        with open_jobs(settings) as jobs, jobs.database.write() as session:
            jobs.actions.upsert(session, JobSpec(source_id=1))
            session.add(Edition(source_id=1, year=2026, status="search_ready", created_at=jobs.clock.now()))
            webhooks.add(session, jobs.clock, settings.webhooks, url="https://hook.example/")
        made = Server(Archive(settings=settings, database=database, clock=SystemClock()), stack)
        made.start()
        yield made


@pytest.fixture
def context(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    """A window in which an operator is signed in."""
    archive = server.archive
    with archive.database.write() as session:
        user = add_user(session, archive.clock, name="ada", role=Role.ADMINISTRATOR)
        agent = SignedIn(address="127.0.0.1", agent="test")
        secret = begin_session(session, archive.clock, user, agent, settings=archive.settings.auth).secret
    context = browser.new_context(locale="en-GB", reduced_motion="reduce")
    context.set_default_timeout(patience.deadline(15) * 1000)
    context.add_cookies([{"name": cookie_name(archive.settings), "value": secret, "url": server.url}])
    yield context
    context.close()


def _open(context: BrowserContext, server: Server, path: str) -> Page:
    page = context.new_page()
    page.clock.install()
    page.goto(f"{server.url}{path}")
    expect(page.locator(_SHOWN).first).to_be_visible(timeout=_LONG_MS)
    expect(page.locator("main [aria-busy=true]")).to_have_count(0)
    page.evaluate("window.opened = true")
    return page


def _bar(page: Page) -> None:
    """Let the page notice the silence, and expect that it says so."""
    page.clock.fast_forward(31_000)
    expect(page.get_by_role("status").filter(has_text=_AWAY)).to_be_visible(timeout=_LONG_MS)


def _cleared(page: Page) -> None:
    page.clock.fast_forward(16_000)
    expect(page.get_by_text(_AWAY)).to_have_count(0, timeout=_LONG_MS)


_ROUTES = needs.ROOT / "web" / "src" / "app"
_PARAMETERS = {
    "/control/domains/$domain": "/control/domains/example.org",
    "/control/sources/$id": "/control/sources/1",
    "/control/jobs/$id": "/control/jobs/2",
    "/control/executions/$id": "/control/executions/1",
    "/control/users/$id": "/control/users/1",
    "/sources/$code": "/sources/example-org",
    "/control/webhooks/$id": "/control/webhooks/1",
    "/control/editions/$id": "/control/editions/1",
    "/editions/$source/$year": "/editions/example-org/2026",
    "/view/$timestamp": "/page?url=https%3A%2F%2Fexample.org%2F",
}
"""An address for each route with a parameter; the page of a capture has no heading, so its history is opened."""
_LEFT_OUT = {"/control/scheduler", "/control/sessions"}
"""Redirects."""
_TABS = 6
"""Pages that are open at once: so many fit on a machine with two cores."""


def _paths() -> list[str]:
    """Return an address for every route of the application, from its tables of routes."""
    found = []
    for name, root in (("publicRoutes", ""), ("crawlRoutes", "/control"), ("careRoutes", "/control")):
        text = (_ROUTES / f"{name}.tsx").read_text("utf-8")
        found += [f"{root}{path}".rstrip("/") or "/" for path in re.findall(r'path: "([^"]*)"', text)]
    return [_PARAMETERS.get(path, path) for path in sorted(set(found) - _LEFT_OUT)]


@pytest.mark.parametrize("paths", [_paths()[at : at + _TABS] for at in range(0, len(_paths()), _TABS)])
def test_every_page_says_since_when_its_data_is_old_and_recovers(
    context: BrowserContext, server: Server, paths: list[str]
) -> None:
    assert not [path for path in paths if "$" in path], "give the new route an address in _PARAMETERS"
    pages = [_open(context, server, path) for path in paths]
    headings = [page.locator(_SHOWN).first.inner_text() for page in pages]
    server.stop()

    for page, heading in zip(pages, headings, strict=True):
        _bar(page)
        expect(page.locator(_SHOWN).first).to_have_text(heading, use_inner_text=True)
    server.start()
    for page, heading in zip(pages, headings, strict=True):
        _cleared(page)
        expect(page.locator(_SHOWN).first).to_have_text(heading, use_inner_text=True)
        assert page.evaluate("window.opened") is True


def test_part_that_is_not_loaded_opens_when_the_server_is_back(context: BrowserContext, server: Server) -> None:
    pages = {
        "Changes": _open(context, server, "/sources"),
        "Domains": _open(context, server, "/control/settings"),
    }
    server.stop()

    for name, page in pages.items():
        page.get_by_role("link", name=name, exact=True).filter(visible=True).first.click()
        expect(page.get_by_text(_AWAY)).to_be_visible()
        expect(page.get_by_text("The page opens when the server answers.")).to_be_visible()
        expect(page.get_by_role("banner")).to_be_visible()
    server.start()
    for name, page in pages.items():
        _cleared(page)
        expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()


def _documents(page: Page) -> list[str]:
    """Return the addresses of the pages that the window loads from now on."""
    found: list[str] = []
    page.on("request", lambda asked: found.append(asked.url) if asked.is_navigation_request() else None)
    return found


def _renamed(folder: Path, *, without: str = "") -> Path:
    """Copy the build with another name for every hashed file, as the next version has them."""
    shutil.copytree(BUILT, folder)
    names = {one.name: f"next-{one.name}" for one in (folder / "assets").iterdir() if one.suffix in (".js", ".css")}
    for path in [*folder.glob("*.html"), *(folder / "assets").iterdir()]:
        if path.suffix in (".gz", ".br"):
            path.unlink()
        elif path.suffix in (".html", ".js", ".css"):
            text = path.read_text("utf-8")
            for old, new in names.items():
                text = text.replace(old, new)
            path.write_text(text, "utf-8")
            path.rename(path.with_name(names.get(path.name, path.name)))
    if without:
        next((folder / "assets").glob(f"next-{without}-*.js")).unlink()
    return folder


def test_upgrade_reloads_once_at_the_same_address(context: BrowserContext, server: Server, tmp_path: Path) -> None:
    page = _open(context, server, "/sources")
    server.stop()
    server.start(_renamed(tmp_path / "next"))
    loaded = _documents(page)

    page.get_by_role("link", name="Changes", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Changes")).to_be_visible()

    assert loaded == [f"{server.url}/changes"]
    assert "next-index-" in page.content()


def test_part_that_is_missing_for_good_reloads_once_and_says_so(
    context: BrowserContext, server: Server, tmp_path: Path
) -> None:
    page = _open(context, server, "/sources")
    server.stop()
    server.start(_renamed(tmp_path / "next", without="ChangesPage"))
    loaded = _documents(page)

    page.get_by_role("link", name="Changes", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="This page could not be shown")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    # The first reload brings the next version, and a second one finds the part missing there, too.
    page.get_by_role("link", name="Sources", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Sources")).to_be_visible()

    assert 1 <= len(loaded) <= 2, loaded
    assert set(loaded) == {f"{server.url}/changes"}


def test_lost_network_is_said_and_forgotten(context: BrowserContext, server: Server) -> None:
    page = _open(context, server, "/sources")
    context.set_offline(True)
    expect(page.get_by_text(_AWAY)).to_be_visible()
    context.set_offline(False)

    expect(page.get_by_text(_AWAY)).to_have_count(0)
    assert page.evaluate("window.opened") is True
