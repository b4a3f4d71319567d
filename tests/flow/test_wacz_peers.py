"""Other people's replay tools show our packages: pywb, and wabac.js, the engine of ReplayWeb.page, in Chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page

from holdfast.exports.package_cache import PackageCache
from holdfast.wiring.archive import Archive
from tests import patience
from tests.archive import build_archive
from tests.flow.replay.stage import browsing, counting_leaks, serving
from tests.flow.wacz_stage import PEERS, WABAC, needs_peers, shots

_PYWB = """
import json, sys
from pywb.apps.frontendapp import FrontEndApp
from werkzeug.test import Client
client = Client(FrontEndApp())
answers = []
for path in sys.argv[1:]:
    answer = client.get(path)
    answers.append([answer.status_code, answer.get_data(as_text=True)])
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Two crawls; the second has revisits whose originals are in the first."""
    needs_peers()
    built = build_archive(tmp_path_factory.mktemp("peers") / "home", shots())
    yield built
    built.database.close()


def test_pywb_replays_a_package_revisits_included(archive: Archive, tmp_path: Path) -> None:
    package = tmp_path / "two.wacz"
    package.write_bytes(b"".join(PackageCache(archive.database, archive.home, most_bytes=1 << 30).package(2).read()))
    for command in (["init", "two"], ["add", "--unpack-wacz", "two", str(package)]):
        subprocess.run([PEERS / "bin" / "wb-manager", *command], cwd=tmp_path, check=True, capture_output=True)

    paths = [f"/two/20240304120000id_/https://example.org/{name}" for name in ("", "a", "b", "s.css", "nowhere")]
    ended = subprocess.run(
        [PEERS / "bin" / "python", "-c", _PYWB, *paths], cwd=tmp_path, check=True, capture_output=True, timeout=90
    )

    found = json.loads(ended.stdout.splitlines()[-1])
    assert [status for status, _ in found] == [200, 200, 200, 200, 404]
    for (_, text), words in zip(found, ("welcome back", "words of a", "words of b", "rgb(1, 2, 3)"), strict=False):
        assert words in text


_LOAD = """async (source) => {
  const worker = navigator.serviceWorker;
  await worker.register("/sw.js", {scope: "/"});
  await worker.ready;
  if (!worker.controller) {
    await new Promise((done) => worker.addEventListener("controllerchange", done, {once: true}));
  }
  return await new Promise((done) => {
    worker.addEventListener("message", (event) => {
      if (event.data.msg_type === "collAdded" || event.data.error) { done(event.data); }
    });
    worker.controller.postMessage({msg_type: "addColl", name: "two", file: {sourceUrl: source}});
  });
}"""
_SHOW = """(address) => new Promise((done) => {
  const frame = document.querySelector("iframe");
  frame.onload = done;
  frame.src = address;
})"""


@contextmanager
def _player(folder: Path) -> Iterator[int]:
    """Serve a page with wabac.js as its service worker, on an origin of its own."""
    shutil.copy(WABAC, folder / "sw.js")
    (folder / "index.html").write_text("<!doctype html><title>player</title><iframe></iframe>")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(patience.deadline(10))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def _open_to(archive: Archive, origin: str) -> Archive:
    """Return the archive with a server that lets pages of this origin read packages."""
    api = archive.settings.api.model_copy(update={"cors_origins": (origin,)})
    return replace(archive, settings=archive.settings.model_copy(update={"api": api}))


def test_replayweb_page_replays_a_package_from_our_server_in_parts(archive: Archive, tmp_path: Path) -> None:
    with (
        _player(tmp_path) as player,
        serving(_open_to(archive, f"http://localhost:{player}")) as port,
        counting_leaks() as leaks,
        browsing(leaks.port) as browser,
    ):
        page = browser.new_page()
        page.goto(f"http://localhost:{player}/index.html")
        loaded = page.evaluate(_LOAD, f"http://localhost:{port}/api/executions/2.wacz")
        assert loaded["msg_type"] == "collAdded", loaded

        shown = {name: _shown(page, name) for name in ("", "a", "b")}

        assert shown == {"": "welcome back", "a": "words of a", "b": "words of b"}
        assert _colour(page) == "rgb(1, 2, 3)"
        assert leaks.asked == []


def _shown(page: Page, name: str) -> str:
    page.evaluate(_SHOW, f"/w/two/20240304120000mp_/https://example.org/{name}")
    return page.frames[1].inner_text("#words")


def _colour(page: Page) -> object:
    return page.frames[1].evaluate("getComputedStyle(document.querySelector('#words')).color")
