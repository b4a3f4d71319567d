"""ReplayWeb.page beside our own frame, in Chromium: it shows a page from its package, and gains nothing by it.

A stand-in does what the real one does with the browser and the archive: element, worker, frames, package. With
HOLDFAST_REPLAYWEBPAGE naming a folder with the real `ui.js` and `sw.js`, the same tests run with those.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Frame, Page, expect

from holdfast.api.session_cookie import cookie_name
from holdfast.config import ReplaySettings
from holdfast.replay.capabilities import ReplayKeys
from holdfast.replay.renderer import lacking_files
from holdfast.sources import registry
from holdfast.sources.queries import find_source
from holdfast.wiring.archive import Archive
from tests import needs, patience
from tests.archive import Shot, build_archive
from tests.flow.faults.bed import until
from tests.flow.replay.stage import Leaks, browser, leaks, serving

__all__ = ["browser", "leaks"]

_ASSETS = Path(os.environ.get("HOLDFAST_REPLAYWEBPAGE") or needs.ROOT / "tests" / "standins" / "replaywebpage")
_PAGE = "http://harbour.example/"
_CLUB = "http://club.example/"
_SCRIPT = """
const told = {}, all = [];
const attempt = (name, act) => all.push((async () => {
  try { told[name] = String(await act()) } catch (error) { told[name] = String(error?.name) } })());
attempt('read', async () => (await fetch('APP/api/admin/jobs', {credentials: 'include'})).status);
attempt('search', async () => (await fetch('APP/api/search?q=club', {credentials: 'include'})).status);
attempt('cookie', () => document.cookie.includes('holdfast'));
attempt('tell', async () => (await fetch('http://tracker.example/', {mode: 'no-cors'})).type);
attempt('worker', async () => (await navigator.serviceWorker.register('/web/2024js_/http://harbour.example/sw.js')).scope);
Promise.allSettled(all).then(() => { document.getElementById('out').textContent = JSON.stringify({...told, done: 1}) });
"""


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An archive with a page that tries what it may not, and one for members; ReplayWeb.page is installed."""
    made = build_archive(tmp_path / "home", [])
    replay = ReplaySettings(renderer_dir=_ASSETS)
    settings = made.settings.model_copy(update={"replay": replay})
    yield Archive(settings=settings, database=made.database, clock=made.clock)
    made.database.close()


def _fill(archive: Archive, port: int) -> dict[str, int]:
    script = _SCRIPT.replace("APP", f"http://localhost:{port}")
    body = f"<html><body><h1>The harbour</h1><pre id=out></pre><script>{script}</script></body></html>"
    built = build_archive(
        archive.home,
        [
            Shot(url=_PAGE, body=body, source="harbour"),
            Shot(url=f"{_PAGE}sw.js", body="self.taken = 1", media_type="text/javascript", source="harbour"),
            Shot(url=_CLUB, body="<p>of the club</p>", source="club"),
        ],
    )
    with built.database.write() as session:
        registry.edit(session, archive.clock, "club", {"visibility": "members"})
        rows = session.connection().exec_driver_sql("SELECT url, id FROM snapshots").all()
    built.database.close()
    return {str(url): int(number) for url, number in rows}


_DOORS = (("open", ""), ("captures", ".wacz"))


def _capability(archive: Archive) -> str:
    """Return what stands before the replay paths of a member who may see the club."""
    with archive.database.read() as session:
        source = find_source(session, "club")
    return ReplayKeys(archive.database, archive.clock, lasts_s=60).root(source.id)


def _replayed(page: Page) -> Frame:
    """Return the frame with the archived page, when it is there."""

    def inner() -> Frame | None:
        # A moment for the browser: frames come while it is listened to.
        page.wait_for_timeout(50)
        return next((one for one in page.frames if "/replay-web-page/w/" in one.url), None)

    found = until(inner, within_s=30, what="the page is framed")
    assert found is not None
    return found


def test_a_capture_is_shown_from_its_package_and_a_hostile_one_gets_at_nothing(
    archive: Archive, browser: Browser, leaks: Leaks
) -> None:
    with serving(archive) as port:
        ids = _fill(archive, port)
        context = browser.new_context()
        context.add_cookies(
            [{"name": cookie_name(archive.settings), "value": "secret", "url": f"http://localhost:{port}"}]
        )
        page = context.new_page()
        asked = httpx.get(f"http://localhost:{port}/api/snapshots/{ids[_PAGE]}/view", timeout=patience.deadline(20))
        page.goto(str(asked.json()["rendererUrl"]))
        frame = _replayed(page)
        expect(frame.locator("h1")).to_have_text("The harbour", timeout=patience.deadline(20) * 1000)
        frame.wait_for_function("document.getElementById('out').textContent.includes('done')", timeout=20_000)
        told = json.loads(frame.locator("#out").inner_text())
        frame.evaluate("() => { window.open('http://tracker.example/') }")
        page.wait_for_timeout(300)
        windows = len(context.pages)
        context.close()

    # The browser refuses; or ReplayWeb.page looked the address up in the package, which has it not.
    assert {told["read"], told["search"]} <= {"TypeError", "404"}
    assert told["cookie"] == "false"
    assert not told["worker"].startswith("http")
    assert windows == 1
    assert not leaks.asked, leaks.asked


def test_members_captures_and_a_host_without_the_files_have_none_of_it(archive: Archive) -> None:
    bare = archive.settings.model_copy(update={"replay": ReplaySettings()})
    without = Archive(settings=bare, database=archive.database, clock=archive.clock)
    with serving(archive) as port, serving(without) as other:
        ids = _fill(archive, port)

        def status(number: int, path: str, **headers: str) -> int:
            return httpx.get(
                f"http://127.0.0.1:{number}{path}", headers={"host": "replay.localhost", **headers}
            ).status_code

        club, open_ = ids[_CLUB], ids[_PAGE]
        paths = ("/replay-web-page/", "/replay-web-page/sw.js", f"/replay-web-page/open/{open_}",
                 f"/replay-web-page/captures/{open_}.wacz")  # fmt: skip
        assert {status(port, path) for path in paths} == {200}
        assert {status(other, path) for path in paths} == {404}
        assert status(port, f"/replay-web-page/open/{club}") == 404
        assert status(port, f"/replay-web-page/captures/{club}.wacz") == 404
        granted = _capability(archive)
        assert status(port, f"{granted}/web/2024id_/{_CLUB}") == 200
        assert {status(port, f"{granted}/replay-web-page/{one}/{club}{end}") for one, end in _DOORS} == {404}
        assert status(port, "/replay-web-page/..%2Fholdfast.db") == 404
        assert status(port, "/replay-web-page/package.json") == 404
        worker = {"service-worker": "script"}
        assert status(port, "/replay-web-page/sw.js?serveIndex=1", **worker) == 200
        assert (
            status(port, "/replay-web-page/sw.js?injectScripts=/web/2024js_/http://evil.example/x.js", **worker) == 403
        )
        assert status(port, f"/web/2024js_/{_PAGE}sw.js", **worker) == 403
        shown = httpx.get(f"http://127.0.0.1:{other}/api/snapshots/{open_}/view").json()
        assert shown["rendererUrl"] is None
        policy = httpx.get(
            f"http://127.0.0.1:{port}/replay-web-page/open/{open_}", headers={"host": f"replay.localhost:{port}"}
        ).headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts allow-same-origin allow-forms allow-downloads;")
    assert f"frame-ancestors http://localhost:{port} http://127.0.0.1:{port}" in policy


def test_files_that_are_not_its_own_leave_a_word_and_no_blank_page(
    archive: Archive, browser: Browser, tmp_path: Path
) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    assert lacking_files(folder) == ["ui.js", "sw.js"]
    for name in lacking_files(folder):
        (folder / name).write_text("document.title = 'UI'")
    broken = archive.settings.model_copy(update={"replay": ReplaySettings(renderer_dir=folder)})
    with serving(Archive(settings=broken, database=archive.database, clock=archive.clock)) as port:
        ids = _fill(archive, port)
        page = browser.new_page()
        page.goto(f"http://replay.localhost:{port}/replay-web-page/open/{ids[_PAGE]}")
        expect(page.get_by_text("ReplayWeb.page does not answer")).to_be_visible()
        page.close()
