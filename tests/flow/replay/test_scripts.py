"""Archived scripts at work in Chromium: they find storage and their own site, and nothing of anybody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive
from tests.flow.replay.font import make_font
from tests.flow.replay.stage import Leaks, browser, leaks, serving

__all__ = ["browser", "leaks"]

SITE = "http://site.example"
OTHER = "http://other.example"
JSON = "application/json"
_SPRITE = (
    '<svg xmlns="http://www.w3.org/2000/svg"><symbol id="a" viewBox="0 0 9 9">'
    '<rect width="9" height="9"/></symbol></svg>'
)
_DOT = '<svg xmlns="http://www.w3.org/2000/svg" width="7" height="7"><rect width="7" height="7"/></svg>'

_TELL = """<!doctype html><html><head><title>Scripts</title></head><body><pre id="out"></pre><script>
const told = {}, everything = [];
const attempt = (name, act) => everything.push((async () => {
  try { told[name] = String(await act()) } catch (error) { told[name] = error.name } })());
const loaded = (tag, fields) => new Promise((done) => { const one = Object.assign(document.createElement(tag), fields);
  one.onload = () => done('loaded'); one.onerror = () => done('failed'); document.body.append(one) });
%s
Promise.allSettled(everything).then(() => { document.getElementById('out').textContent = JSON.stringify(told) });
</script></body></html>"""


def told_by(browser: Browser, home: Path, script: str, *more: Shot) -> dict[str, str]:
    """Replay a page with this script in an archive of its own; return what it tells."""
    shots = [Shot(url=f"{SITE}/a/", body=_TELL % script), *more]
    archive = build_archive(home, shots)
    try:
        with serving(archive) as port:
            page = browser.new_page()
            page.goto(f"http://replay.localhost:{port}/web/2024/{SITE}/a/")
            page.wait_for_function("document.getElementById('out').textContent", timeout=15_000)
            found: dict[str, str] = json.loads(page.inner_text("#out"))
            page.context.close()
    finally:
        archive.database.close()
    return found


@pytest.fixture(autouse=True)
def nothing_leaves(leaks: Leaks) -> Iterator[None]:
    """Nothing may have left the archive after any of these."""
    yield
    assert leaks.asked == []


def test_a_script_finds_cookies_and_storage_that_last_as_long_as_its_page(browser: Browser, tmp_path: Path) -> None:
    told = told_by(
        browser,
        tmp_path / "home",
        """
attempt('cookies', () => { document.cookie = 'a=1; path=/'; document.cookie = 'b=2'; document.cookie = 'c=3';
  document.cookie = 'b=; expires=Thu, 01 Jan 1970 00:00:00 GMT'; document.cookie = 'c=; max-age=0';
  return document.cookie });
attempt('local', () => { localStorage.setItem('x', 1); localStorage.y = 2; delete localStorage.z;
  return [localStorage.x, localStorage.getItem('y'), localStorage.getItem('none'), localStorage.length,
          Object.keys(localStorage), 'x' in localStorage, localStorage instanceof Storage].join('|') });
attempt('session', () => { sessionStorage.a = 'b'; sessionStorage.clear(); return sessionStorage.length });
attempt('apart', () => sessionStorage.getItem('x'));
attempt('workers', () => 'serviceWorker' in navigator);
attempt('database', () => window.indexedDB);
attempt('own', () => document.querySelectorAll('script').length);
""",
    )

    assert told == {
        "cookies": "a=1", "local": "1|2||2|x,y|true|true", "session": "0", "apart": "null", "workers": "false",
        "database": "undefined", "own": "1",
    }  # fmt: skip


def test_storage_is_there_before_the_first_script_also_inside_attributes(browser: Browser, tmp_path: Path) -> None:
    told = told_by(
        browser,
        tmp_path / "home",
        """
const inside = (name) => `<script>localStorage.a = '${name}'; parent.postMessage(localStorage.a, '*')<\\/script>`;
const heard = (name) => new Promise((done) =>
  addEventListener('message', (event) => event.data === name && done(name)));
for (const [name, write] of [['property', (frame, text) => { frame.srcdoc = text }],
                             ['attribute', (frame, text) => frame.setAttribute('srcdoc', text)]]) {
  attempt(name, () => { const frame = document.createElement('iframe'), said = heard(name);
    write(frame, inside(name)); document.body.append(frame); return said });
}
attempt('written', () => { const said = heard('written');
  document.body.insertAdjacentHTML('beforeend', '<iframe src="/frame"></iframe>'); return said });
""",
        Shot(
            url=f"{SITE}/frame",
            body="<iframe srcdoc=\"<script>localStorage.a = 'written';"
            " top.postMessage(localStorage.a, '*')</script>\">",
        ),
    )

    assert told == {"property": "property", "attribute": "attribute", "written": "written"}


def test_addresses_that_scripts_make_lead_into_the_archive(browser: Browser, tmp_path: Path) -> None:
    told = told_by(
        browser,
        tmp_path / "home",
        """
attempt('root', async () => (await (await fetch('/api/x')).json()).is);
attempt('relative', async () => (await (await fetch('../api/x')).json()).is);
attempt('absolute', async () => (await (await fetch('http://site.example/api/x', {credentials: 'include'})).json()).is);
attempt('built', async () => (await (await fetch(location.origin + '/api/x')).json()).is);
attempt('request', async () => (await (await fetch(new Request('/api/x'))).json()).is);
attempt('missing', async () => (await fetch('/api/none')).status);
attempt('moved', async () => (await (await fetch('/api/moved')).json()).is);
attempt('xhr', () => new Promise((done) => { const ask = new XMLHttpRequest(); ask.open('GET', '/api/x');
  ask.withCredentials = true; ask.setRequestHeader('X-Requested-With', 'XMLHttpRequest');
  ask.onload = () => done(JSON.parse(ask.responseText).is); ask.onerror = () => done('failed'); ask.send() }));
attempt('form', async () => (await (await fetch('/search', {method: 'POST',
  headers: {'Content-Type': 'application/x-www-form-urlencoded'}, body: 'q=tide&n=1'})).text()));
attempt('other form', async () =>
  (await fetch('/search', {method: 'POST', body: new URLSearchParams('q=ebb')})).status);
attempt('image', () => loaded('img', {src: '/dot.svg'}));
attempt('crossorigin', () => loaded('img', {crossOrigin: 'anonymous', src: 'http://site.example/dot.svg'}));
attempt('script', () => loaded('script', {src: 'http://other.example/lib.js'}).then(() => self.lib));
attempt('attribute', () => new Promise((done) => { const image = document.createElement('img');
  image.onload = () => done('loaded'); image.onerror = () => done('failed'); image.setAttribute('src', '/dot.svg') }));
attempt('markup', () => new Promise((done) => { const box = document.createElement('div'); self.seen = done;
  box.innerHTML = '<img src="/dot.svg" onload="seen(\\'loaded\\')" onerror="seen(\\'failed\\')">';
  document.body.append(box) }));
attempt('module', async () => (await import('/mod/a.js')).name);
attempt('pushed', () => { history.pushState(null, '', '/deep/page'); return location.pathname.replace(/[0-9]+/, 'D') });
""",
        Shot(url=f"{SITE}/api/x", body='{"is": "found"}', media_type=JSON),
        Shot(url=f"{SITE}/api/moved", body="", status=302, headers={"Location": "/api/x"}),
        Shot(url=f"{SITE}/dot.svg", body=_DOT, media_type="image/svg+xml"),
        Shot(url=f"{OTHER}/lib.js", body="self.lib = 'ran'", media_type="text/javascript"),
        Shot(url=f"{SITE}/mod/a.js", body="export {name} from '/mod/b.js'", media_type="text/javascript"),
        Shot(url=f"{SITE}/mod/b.js", body="export const name = 'b'", media_type="text/javascript"),
        Shot(url=f"{SITE}/search", body="three tides", media_type="text/plain", method="POST", sent=b"q=tide&n=1"),
    )

    assert told == {
        "root": "found", "relative": "found", "absolute": "found", "built": "found", "request": "found",
        "missing": "404", "moved": "found", "xhr": "found", "form": "three tides", "other form": "404",
        "image": "loaded", "crossorigin": "loaded", "script": "ran", "attribute": "loaded", "markup": "loaded",
        "module": "b", "pushed": "/web/D/http://site.example/deep/page",
    }  # fmt: skip


def test_a_script_reads_no_capture_of_another_site_by_any_road(browser: Browser, tmp_path: Path) -> None:
    told = told_by(
        browser,
        tmp_path / "home",
        """
const there = '/web/2024/http://other.example/secret';
attempt('fetch', async () => (await fetch(there)).text());
attempt('live', async () => (await fetch('http://other.example/secret')).text());
attempt('redirect', async () => (await fetch('/to-other')).text());
attempt('own pass', async () =>
  (await fetch((await fetch('/a/')).url.replace('site.example', 'other.example'))).status);
attempt('json', async () =>
  (await import('/web/2024oe_/http://other.example/secret', {with: {type: 'json'}})).default.is);
attempt('pixels', () => loaded('img', {crossOrigin: 'anonymous', src: '/web/2024im_/http://other.example/dot.svg'}));
attempt('raw', async () => (await fetch('/api/snapshots/raw/4194305')).text());
attempt('cdx', async () => (await fetch(location.origin + '/cdx?url=*.example')).status);
attempt('frame', () => new Promise((done) => { const frame = document.createElement('iframe'); frame.onload = () => {
  try { done(frame.contentDocument === null ? 'closed' : frame.contentDocument.body.textContent) }
  catch (error) { done(error.name) } }; frame.src = there; document.body.append(frame) }));
""",
        Shot(url=f"{OTHER}/secret", body='{"is": "secret"}', media_type=JSON),
        Shot(url=f"{OTHER}/dot.svg", body=_DOT, media_type="image/svg+xml"),
        Shot(url=f"{SITE}/to-other", body="", status=302, headers={"Location": f"{OTHER}/secret"}),
    )

    assert told == {
        "fetch": "TypeError", "live": "TypeError", "redirect": "TypeError", "own pass": "TypeError",
        "json": "TypeError", "pixels": "failed", "raw": told["raw"], "cdx": "404", "frame": "closed",
    }  # fmt: skip
    assert "secret" not in "".join(told.values())


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Archive, str]]:
    """An archive of pages to look at; its replay origin."""
    fixed = (
        "<header id=head style='position:fixed;top:0;left:0;right:0;height:60px;background:teal;color:white'>Header"
        "</header><div style='padding-top:60px'><p id=text>Text below the header</p></div>"
    )
    pages = {
        "fixed": f"<!doctype html><html><head><title>Fixed</title></head><body style='margin:0'>{fixed}",
        "flex": f"<!doctype html><title>Flex</title><body style='display:flex;margin:0'>{fixed}",
        "bare": "<!doctype html><title>Bare</title><meta name=x><noscript><img src=x></noscript><p id=text>No body tag",
        "frames": "<html><head><title>Frames &amp; more</title></head><frameset cols='50%,*'><frame src=bare>"
        "<frame src=made></frameset>",
        "made": "<!doctype html><title>Made</title><body><script>const made = document.createElement('iframe');"
        "made.src = 'bare'; document.body.append(made)</script>",
        "sprite": "<!doctype html><title>Sprite</title><body><svg width=9 height=9>"
        "<use id=use href='/s.svg#a'></use></svg>",
        "file": "<!doctype html><title>File</title><body><a id=zip href=x.zip>zip</a>",
        "font": "<!doctype html><title>Font</title><style>@font-face { font-family: Box; src: url(box.ttf) }</style>"
        "<link rel=preload as=style href=s.css onload=\"this.rel='stylesheet'\"><body><p id=text>AAA",
    }
    shots = [Shot(url=f"{SITE}/{name}", body=body) for name, body in pages.items()]
    font = make_font()
    shots += [
        Shot(url=f"{SITE}/s.svg", body=_SPRITE, media_type="image/svg+xml"),
        Shot(url=f"{SITE}/s.css", body="#text { color: rgb(1, 2, 3) }", media_type="text/css"),
        Shot(url=f"{SITE}/x.zip", body=b"PK\5\6" + b"\0" * 18, media_type="application/zip"),
        Shot(url=f"{SITE}/box.ttf", body=font + b"\r\n\r\n", media_type="font/ttf",
             headers={"Content-Length": str(len(font))}),
    ]  # fmt: skip
    archive = build_archive(tmp_path_factory.mktemp("looks") / "home", shots)
    with serving(archive) as port:
        yield archive, f"http://replay.localhost:{port}"
    archive.database.close()


@pytest.fixture
def open_page(browser: Browser, looked_at: tuple[Archive, str]) -> Iterator[Page]:
    """A page of the browser at the archive's origin."""
    context = browser.new_context(viewport={"width": 900, "height": 600}, base_url=looked_at[1])
    yield context.new_page()
    context.close()


def box_of(page: Page, selector: str) -> tuple[float, float]:
    """Return where an element begins and ends, from the top."""
    found = page.locator(selector).bounding_box()
    assert found is not None
    return found["y"], found["y"] + found["height"]


@pytest.mark.parametrize("name", ["fixed", "flex"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_bar_covers_no_header_that_stays_at_the_top(
    open_page: Page, tmp_path: Path, name: str, scheme: str
) -> None:
    open_page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    open_page.goto(f"/web/2024/{SITE}/{name}")
    open_page.wait_for_function("parseFloat(document.getElementById('holdfast-bar').style.marginTop) > 0")
    open_page.screenshot(path=tmp_path / f"{name}-{scheme}.png")

    assert box_of(open_page, "#head") == (0, 60)
    assert box_of(open_page, "#holdfast-bar")[0] == 60
    assert box_of(open_page, "#text")[0] >= box_of(open_page, "#holdfast-bar")[1]


def test_a_page_without_a_body_tag_has_its_bar_first(open_page: Page, tmp_path: Path) -> None:
    open_page.goto(f"/web/2024/{SITE}/bare")
    open_page.screenshot(path=tmp_path / "bare.png")

    assert open_page.evaluate("document.body.firstElementChild.id") == "holdfast-bar"
    assert open_page.evaluate("document.compatMode") == "CSS1Compat"
    assert box_of(open_page, "#text")[0] > box_of(open_page, "#holdfast-bar")[1]


def test_a_frameset_is_shown_below_the_bar(open_page: Page, tmp_path: Path) -> None:
    open_page.goto(f"/web/2024/{SITE}/frames")
    inner = open_page.frame_locator("iframe").frame_locator("frame >> nth=0")
    inner.locator("#text").wait_for()
    open_page.screenshot(path=tmp_path / "frames.png")

    assert open_page.title() == "Frames & more"
    assert open_page.locator("#holdfast-bar").is_visible()
    assert inner.locator("#holdfast-bar").count() == 0


def test_a_frame_that_a_script_made_has_no_bar(open_page: Page) -> None:
    open_page.goto(f"/web/2024/{SITE}/made")
    frame = open_page.frame_locator("iframe")
    frame.locator("#text").wait_for()

    assert frame.locator("#holdfast-bar").count() == 0
    assert open_page.locator("#holdfast-bar").count() == 1


def test_a_drawing_from_another_file_is_drawn(open_page: Page) -> None:
    open_page.goto(f"/web/2024/{SITE}/sprite")

    open_page.wait_for_function("document.getElementById('use').getBBox().width > 0")


def test_a_font_with_bytes_behind_its_length_and_a_preloaded_sheet_are_used(open_page: Page) -> None:
    open_page.goto(f"/web/2024/{SITE}/font")

    assert open_page.evaluate("document.fonts.load('20px Box').then(found => found.length)") == 1
    open_page.wait_for_function("getComputedStyle(document.getElementById('text')).color === 'rgb(1, 2, 3)'")


def test_a_script_downloads_nothing_and_a_reader_may(open_page: Page) -> None:
    started: list[str] = []
    open_page.on("download", lambda download: started.append(download.url))
    open_page.goto(f"/web/2024/{SITE}/file")
    with open_page.expect_response(lambda response: response.url.endswith("x.zip")):
        open_page.evaluate("location.href = '/web/2024id_/http://site.example/x.zip'")
    open_page.goto(f"/web/2024/{SITE}/file")
    open_page.click("#zip")
    open_page.wait_for_selector("text=Download it")

    with open_page.expect_download() as saved:
        open_page.click("text=Download it")

    assert Path(saved.value.path()).read_bytes().startswith(b"PK")
    assert len(started) == 1


def test_a_page_of_the_live_web_reads_no_capture(browser: Browser, looked_at: tuple[Archive, str]) -> None:
    origin = looked_at[1]
    elsewhere = browser.new_page()
    elsewhere.goto(f"{origin.replace('replay.localhost', 'localhost')}/api/health")
    told = elsewhere.evaluate(
        """async (address) => { const told = [];
        for (const mode of ['cors', 'no-cors']) try { told.push((await (await fetch(address, {mode})).text()).length) }
          catch (error) { told.push(error.name) }
        return told }""",
        f"{origin}/web/20240301120000/{SITE}/bare",
    )
    elsewhere.context.close()

    assert told in (["TypeError", 0], ["TypeError", "TypeError"])
