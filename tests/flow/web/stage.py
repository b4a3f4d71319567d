"""What the tests of the browser application stand on: the demo's archive behind a real `holdfast serve` that crawls.

The archive is made once a test run, however many workers share the run out, and copied for each of them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright
from sqlalchemy import update

from holdfast import config
from holdfast.api.session_cookie import cookie_name
from holdfast.api.web_files import BUILT
from holdfast.auth.roles import Role
from holdfast.auth.sessions import Browser as SignedIn
from holdfast.auth.sessions import begin_session
from holdfast.auth.users import ROLES, add_user, find_user
from holdfast.clock import SystemClock
from holdfast.config import AuthSettings
from holdfast.db.engine import Database
from holdfast.db.models import Source
from tests import forked, needs, patience
from tests.archive import Shot, build_archive, on_another_day
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import until
from tests.flow.plant import Plant
from tests.flow.replay.stage import find_chromium
from tests.site import Site

TOKEN = "the admin token of the browser tests"
PASSWORD = "an otter in the harbour"
HOSTILE = '<img src=x onerror="window.pwned=1">Otter</title><script>window.pwned=2</script>'
"""A title, a source's name, a line of text: everywhere it has to stay what it is, characters."""
HOSTILE_URL = "http://hostile.example/otter?q='%22%3E%3Cimg%20src=x%20onerror=window.pwned=3%3E<svg/onload=pwned=4>"
AXE = needs.ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"


@dataclass(slots=True)
class Stage:
    """A served archive with a user of each role."""

    url: str
    home: Path
    job: int = 0
    """The job that crawls while the tests look."""
    captures: list[int] = field(default_factory=list)
    """Two captures of the hostile page, the later one last."""

    @contextmanager
    def asking(self) -> Iterator[httpx.Client]:
        """Ask the API as its administrator."""
        with httpx.Client(base_url=self.url, headers={"x-admin-token": TOKEN}, timeout=patience.deadline(20)) as client:
            yield client

    def sign_in(self, role: Role) -> str:
        """Begin a session of the user with this role, and return what its cookie holds."""
        with self._database() as (database, clock), database.write() as session:
            user = find_user(session, f"the-{role}")
            browser = SignedIn(address="127.0.0.1", agent="test")
            return begin_session(session, clock, user, browser, settings=AuthSettings()).secret

    def add_users(self) -> None:
        """Add a user of each role: `the-member` and so on."""
        with self._database() as (database, clock), database.write() as session:
            for role in ROLES:
                add_user(session, clock, name=f"the-{role}", role=role, password=PASSWORD)

    @contextmanager
    def _database(self) -> Iterator[tuple[Database, SystemClock]]:
        with closing(Database(f"sqlite:///{self.home / 'holdfast.db'}")) as database:
            yield database, SystemClock()

    @contextmanager
    def for_members(self, code: str) -> Iterator[None]:
        """Show a source to members only, for a while."""

        def show_to(visibility: str) -> None:
            with self._database() as (database, _), database.write() as session:
                session.execute(update(Source).where(Source.code == code).values(visibility=visibility))

        show_to("members")
        try:
            yield
        finally:
            show_to("public")

    def end_session(self, secret: str) -> None:
        """End a session, as it ends by itself after a day."""
        cookie = {"cookie": f"{cookie_name(config.load(home=self.home))}={secret}"}
        with httpx.Client(base_url=self.url, headers=cookie, timeout=patience.deadline(20)) as client:
            token = client.get("/api/session").json()["csrfToken"]
            done = client.delete("/api/session", headers={"origin": self.url, "x-csrf-token": token})
            assert done.status_code == 204, done.text


class Look(NamedTuple):
    """How a page is looked at."""

    name: str
    theme: str = "light"
    width: int = 1280
    height: int = 844
    is_forced: bool = False
    """Whether the system forces its own colours upon the page."""
    rules: tuple[str, ...] = ()
    """The rules of axe that this look can break where another kept them; all if empty."""


_COLOURS = ("color-contrast", "link-in-text-block")
_LAYOUT = ("scrollable-region-focusable", "target-size", "aria-hidden-focus", "duplicate-id-aria")
LOOKS = (
    Look("light"),
    Look("contrast", theme="contrast", rules=_COLOURS),
    Look("forced", is_forced=True, rules=_COLOURS),
    Look("zoom", width=640, height=422, rules=_LAYOUT),
    Look("dark-phone", theme="dark", width=390),
)
"""Light and dark, high contrast by choice and by the system, at 200 % zoom of a desk, on a phone."""


@dataclass(slots=True)
class Window:
    """A browser window with one appearance, language and reader, that notes what no page may do."""

    stage: Stage
    context: BrowserContext
    page: Page
    secret: str = ""
    """The session that it began with."""
    faults: list[str] = field(default_factory=list)

    def visit(self, path: str) -> Page:
        """Open a page of the application and wait until it has asked for everything."""
        self.page.goto(f"{self.stage.url}{path}", wait_until="load")
        self.page.locator("h1").first.wait_for()
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until what a page keeps places for has come."""
        expect(self.page.locator("main [aria-busy=true]")).to_have_count(0)

    def look(self, look: Look) -> None:
        """Look at the page in another way, without loading it again."""
        self.page.emulate_media(
            color_scheme="dark" if look.theme == "dark" else "light",
            forced_colors="active" if look.is_forced else "none",
        )
        self.page.set_viewport_size({"width": look.width, "height": look.height})
        self.page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", look.theme)

    def complaints_in(self, looks: Sequence[Look], name: str) -> list[str]:
        """Return what the page breaks in any of these looks."""
        found = []
        for look in looks:
            self.look(look)
            found += self.complaints(f"{name}-{look.name}", look.rules)
        return found

    def complaints(self, name: str, rules: tuple[str, ...] = ()) -> list[str]:
        """Return what the page breaks of what every page keeps: quiet, whole, within its width, accessible."""
        page, found = self.page, self.violations(rules)
        found += self.faults
        self.faults.clear()
        headings = page.locator("h1").all_inner_texts()
        spills = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        found += [] if page.title() else ["it has no title"]
        found += [] if len(headings) == 1 else [f"its first headings are {headings}"]
        found += [f"it is {spills} px wider than the window"] if spills > 0 else []
        found += ["a text became a script"] if page.evaluate("window.pwned") is not None else []
        if folder := os.environ.get("WEB_SCREENSHOTS"):
            page.screenshot(path=f"{folder}/{name}.png", full_page=True)
        return [f"{name}: {one}" for one in found]

    def violations(self, rules: tuple[str, ...] = ()) -> list[str]:
        """Return what axe finds wrong with the page, by these rules or all, minor matters left out."""
        page = self.page
        if not page.evaluate("typeof window.axe === 'object'"):
            page.evaluate(AXE.read_text("utf-8"))
        # The rules are the same; what is in order is not described, node by node.
        asked = """async rules => (await axe.run(document, {
            resultTypes: ['violations'], ...(rules.length ? {runOnly: {type: 'rule', values: rules}} : {}),
        })).violations"""
        found: list[dict[str, Any]] = page.evaluate(asked, list(rules))
        return [
            f"{one['id']} ({one['impact']}): {node['html'][:200]} {node.get('failureSummary', '')[:200]}"
            for one in found
            if one["impact"] != "minor"
            for node in one["nodes"]
        ]


OpenWindow = Callable[..., Window]


def opener(stage: Stage, browser: Browser, stack: ExitStack) -> OpenWindow:
    """Return what opens a window: `theme`, `width`, `language`, and the `role` that is signed in."""

    def open_window(
        *, theme: str = "light", width: int = 1280, language: str = "en", role: Role | None = None
    ) -> Window:
        size: ViewportSize = {"width": width, "height": 844}
        context = stack.enter_context(_context(browser, size, theme))
        script = f"localStorage.setItem('theme', '{theme}'); localStorage.setItem('language', '{language}')"
        # Only where it is ours: a sandboxed page has no storage, and would fail.
        context.add_init_script(f"if (location.origin === '{stage.url}' && !localStorage.theme) {{ {script} }}")
        secret = stage.sign_in(role) if role else ""
        if secret:
            context.add_cookies(
                [{"name": cookie_name(config.load(home=stage.home)), "value": secret, "url": stage.url}]
            )
        window = Window(stage, context, context.new_page(), secret)
        _note_faults(window)
        return window

    return open_window


@contextmanager
def _context(browser: Browser, size: ViewportSize, theme: str) -> Iterator[BrowserContext]:
    dark: Literal["dark", "light"] = "dark" if theme == "dark" else "light"
    context = browser.new_context(viewport=size, color_scheme=dark, reduced_motion="reduce", locale="en-GB")
    context.set_default_timeout(patience.deadline(10) * 1000)
    yield context
    context.close()


def _note_faults(window: Window) -> None:
    def asked(url: str) -> None:
        host = httpx.URL(url).host
        if httpx.URL(url).scheme in ("http", "https") and host not in ("127.0.0.1", "replay.localhost"):
            window.faults.append(f"asked for {url}")

    page = window.page
    page.on("request", lambda request: asked(request.url))
    page.on("pageerror", lambda error: window.faults.append(f"script: {error}"))
    page.on("dialog", lambda dialog: window.faults.append(f"dialog: {dialog.message}"))
    page.on(
        "console",
        lambda said: window.faults.append(f"console: {said.text} {said.location}") if said.type == "error" else None,
    )


@contextmanager
def browsing() -> Iterator[Browser]:
    """Open a browser for which there is nothing but this machine."""
    rules = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE replay.localhost"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", f"--host-resolver-rules={rules}"]
        )
        yield browser
        browser.close()


def demo_home(shared: Path) -> Path:
    """Return the demo's archive, made by the first that asks for it."""
    shared.mkdir(parents=True, exist_ok=True)
    home = shared / "home"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "made").exists():
            crawler = Crawler(home)
            command = crawler.command("demo", "--no-serve", "--json")
            made = forked.run(
                command, env=crawler.variables, capture_output=True, text=True, timeout=patience.deadline(180)
            )
            assert made.returncode == 0, made.stderr[-2000:]
            (shared / "made").touch()
    return home


@contextmanager
def staged(shared: Path, own: Path) -> Iterator[Stage]:
    """Serve a copy of the demo's archive, with a hostile source beside it and a crawl that runs."""
    if not (BUILT / "index.html").is_file():
        needs.lacking("the browser application", "`make web` builds it")
    if not AXE.is_file():
        needs.lacking("axe-core", "`make web` installs it")
    plant = Plant(Crawler(own / "home"))
    shutil.copytree(demo_home(shared), plant.crawler.home)
    captures = _add_hostile(plant.crawler.home)
    with Site.plain(hosts=1, pages=1000) as site:
        try:
            server = plant.start(
                "serve", "--port", "0", HOLDFAST_API_RATE_LIMITING="false", HOLDFAST_API_ADMIN_TOKEN=TOKEN,
                HOLDFAST_API_CONNECTIONS_PER_ADDRESS="500",
            )  # fmt: skip
            assert server.stdout is not None
            line = server.stdout.readline()
            assert line.startswith("serving http://127.0.0.1:"), plant.log()[-2000:]
            stage = Stage(line.split()[1], plant.crawler.home, captures=captures)
            stage.add_users()
            with stage.asking() as client:
                stage.job = _begin_crawl(client, site)
            yield stage
        finally:
            plant.end()


def _add_hostile(home: Path) -> list[int]:
    words = "An otter said &lt;script&gt;window.pwned=5&lt;/script&gt; and &lt;b onclick=pwned=6&gt; in the harbour."
    titled = HOSTILE.replace("<", "&lt;")
    first = Shot(
        url=HOSTILE_URL,
        source="hostile",
        body=f"<html lang=en><head><title>{titled}</title></head><body><main><p>{words}</p></main></body></html>",
    )
    said = str(first.body).replace("in the harbour", "&lt;i&gt;at sea")
    second = replace(on_another_day(first, 30), body=said)
    archive = build_archive(home, [first, second])
    with archive.database.write() as session:
        rows = session.connection().exec_driver_sql(
            "SELECT snapshots.id FROM snapshots JOIN sources ON sources.id = snapshots.source_id "
            "WHERE sources.code = 'hostile' ORDER BY snapshots.id"
        )
        captures = [int(row[0]) for row in rows]
        session.connection().exec_driver_sql("UPDATE sources SET name = ? WHERE code = 'hostile'", (HOSTILE,))
    archive.database.close()
    return captures


def _begin_crawl(client: httpx.Client, site: Site) -> int:
    """Have a worker crawl a large site slowly, and wait for its first pages."""
    config = {"seeds": [site.url(0)], "delay_s": 1.0, "max_depth": -1}
    source = client.post("/api/v1/sources", json={"code": "harbour", "name": "Harbour", "config": config})
    assert source.is_success, source.text
    job = client.post("/api/v1/jobs", json={"source_id": source.json()["id"], "url": site.url(0)})
    assert job.is_success, job.text
    until(lambda: len(site.log()) > 3, within_s=40, what="the crawl has begun")
    return int(job.json()["id"])
