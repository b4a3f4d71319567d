"""The text that a manual's pages show, as Chromium renders them, kept in the work folder as JSON.

Every page is loaded in a sandboxed frame, where scripts and redirects do not run, with its style sheets. Its text is
`document.body.innerText` with all `details` open, and the text that innerText omits: `alt`, `title`, `placeholder`, the
labels of buttons and option groups, the options of selects. Headings, links and descriptions are read in the same pass.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urldefrag

from playwright.sync_api import sync_playwright

from bench.relevance.manuals import Manual, once, pages_of
from tests.flow.replay.stage import find_chromium

_DRIVER: Final = "/the-driver-of-the-bench"
_BATCH: Final = 100
_INVISIBLE = re.compile("[\u00ad\u200b\ufeff]")
"""Soft hyphens and places where a line may break: nobody sees them, and nobody types them."""
_SCRIPT: Final = """
async (paths) => {
  const collect = (doc) => {
    const all = (css) => [...doc.querySelectorAll(css)];
    const seen = (css) => all(css).filter((element) => element.checkVisibility({visibilityProperty: true}));
    all('details').forEach((element) => { element.open = true; });
    const extra = [];
    for (const name of ['alt', 'title', 'placeholder', 'label'])
      for (const element of all(`body [${name}]`))
        if ((element.closest('select') || element).checkVisibility({visibilityProperty: true}))
          extra.push(element.getAttribute(name));
    seen('input[type=submit], input[type=button], input[type=reset]').forEach((element) => extra.push(element.value));
    seen('select').forEach((element) => [...element.options].forEach((option) => extra.push(option.text)));
    const descriptions = all('meta[name=description]').map((element) => [element.content, '']);
    for (const element of all('.refnamediv > p, #header + * .sectionbody > p, #header .sectionbody > p'))
      descriptions.push([element.innerText.replace(/^[^]*?\\s[\u2014\u2013-]\\s/, ''), '']);
    for (const element of all('table.directive, table.module'))
      descriptions.push([element.querySelector('td')?.innerText || '', '']);
    for (const row of all('table.modindextable tr'))
      if (row.querySelector('a[href]') && row.querySelector('em'))
        descriptions.push([row.querySelector('em').innerText, row.querySelector('a[href]').href]);
    return {
      title: doc.title, text: doc.body ? doc.body.innerText : '', extra, descriptions,
      headings: seen('h1, h2, h3, h4, h5, h6').map((element) => element.innerText),
      links: seen('a[href]').map((element) => [element.innerText, element.href]),
    };
  };
  const load = (path) => new Promise((done) => {
    const frame = document.createElement('iframe');
    frame.sandbox = 'allow-same-origin';
    frame.style = 'width: 1200px; height: 800px';
    frame.onload = () => { const page = collect(frame.contentDocument); frame.remove(); done(page); };
    frame.src = path;
    document.body.append(frame);
  });
  const pages = {}, waiting = [...paths];
  const lane = async () => { while (waiting.length) { const path = waiting.shift(); pages[path] = await load(path); } };
  await Promise.all([lane(), lane(), lane()]);
  return pages;
}
"""


class Page(NamedTuple):
    """What a page shows. Targets of links are addresses in the manual."""

    title: str
    text: str
    headings: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    descriptions: tuple[tuple[str, str], ...]
    """A description and the page that it describes."""


class _Files(SimpleHTTPRequestHandler):
    """Serve pages and style sheets; a picture's size changes nothing in the text."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == _DRIVER:
            body = b"<!doctype html><body></body>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        elif self.path.partition("?")[0].endswith((".html", ".css")):
            super().do_GET()
        else:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    """Serves until the browser closes, which may reset connections."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback while the block runs."""
    with _Server(("127.0.0.1", 0), partial(_Files, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def visible_pages(manual: Manual, tree: Path, work: Path) -> dict[str, Page]:
    """Return what each page of the manual shows; Chromium renders the pages once for a work folder."""
    cache = once(work / "visible" / f"{manual.name}.json", lambda path: _render(manual, tree, path))
    return {
        address: Page(
            page["title"], page["text"], tuple(page["headings"]),
            tuple((text, target) for text, target in page["links"]),
            tuple((text, target) for text, target in page["descriptions"]),
        )
        for address, page in json.loads(cache.read_text()).items()
    }  # fmt: skip


def _render(manual: Manual, tree: Path, cache: Path) -> None:
    """Render the pages of a manual and write what they show."""
    pages = pages_of(manual, tree)
    paths = {quote(f"/{path.relative_to(tree).as_posix()}"): address for address, path in pages.items()}
    with _served(tree) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        driver = browser.new_page()
        driver.goto(url + _DRIVER)
        waiting, shown = list(paths), {}
        while waiting:
            batch, waiting = waiting[:_BATCH], waiting[_BATCH:]
            for path, page in driver.evaluate(_SCRIPT, batch).items():
                shown[paths[path]] = _cleaned(page, paths[path], f"{url}/{manual.folder}/", set(pages))
        browser.close()
    cache.write_text(json.dumps(shown, ensure_ascii=False, indent=0, sort_keys=True))


def _cleaned(page: dict[str, Any], address: str, prefix: str, known: set[str]) -> dict[str, object]:
    """Return a page without characters that nobody sees, and with the links that lead to another page of the manual."""

    def line(text: str) -> str:
        return " ".join(_INVISIBLE.sub("", text).split())

    def target(href: str) -> str:
        return unquote(urldefrag(href)[0].partition("?")[0].removeprefix(prefix)).lower()

    links = sorted({(line(text), target(href)) for text, href in page["links"]})
    described = {(line(text), target(href) if href else address) for text, href in page["descriptions"]}
    return {
        "title": line(page["title"]),
        "text": _INVISIBLE.sub("", "\n".join([page["text"], *page["extra"]])),
        "headings": [line(heading) for heading in page["headings"]],
        "links": [link for link in links if link[0] and link[1] in known and link[1] != address],
        "descriptions": sorted(one for one in described if one[0] and one[1] in known),
    }
