"""The browser application as the API serves it: its pages, its files, and what stays the API's own."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import brotli
import pytest
from fastapi.routing import APIRoute

from holdfast import config
from holdfast.api.middleware.rate_limits import kind_of
from holdfast.api.routes import ROUTERS
from holdfast.api.session_cookie import cookie_name
from holdfast.api.web_files import PAGES, WebFiles, first_word
from tests.client import APP, REPLAY, Client, asking
from tests.needs import ROOT
from tests.unit.api.conftest import MakeArchive

_SCRIPT = "console.log('a script of the application')\n" * 40
_PAGE = "<!doctype html><title>The application</title><script type=module src=/assets/index-abc123.js></script>"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A small build, as the real one is laid out."""
    folder = tmp_path / "web_app"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(_PAGE)
    (folder / "theme.js").write_text("1")
    (folder / "holdfast.svg").write_text("<svg/>")
    (folder / ".vite").mkdir()
    (folder / ".vite" / "manifest.json").write_text("{}")
    (folder / "notes.map").write_text("not for the public")
    (folder / "assets" / "index-abc123.js").write_text(_SCRIPT)
    (folder / "assets" / "index-abc123.js.gz").write_bytes(gzip.compress(_SCRIPT.encode()))
    (folder / "assets" / "sans-def456.woff2").write_bytes(b"wOF2")
    (tmp_path / "secret.js").write_text("a secret")
    return folder


@pytest.fixture
def web(make_archive: MakeArchive, built: Path) -> Iterator[Client]:
    """A client for an archive that is served with the application, a single request a minute allowed."""
    archive = make_archive(general_per_minute=1, admin_token="sixteen-characters")
    with asking(archive, web=WebFiles.read(built)) as client:
        yield client


@pytest.mark.parametrize("path", ["/", *(f"/{word}" for word in sorted(PAGES)), "/control/jobs/7",
                                  "/page/https://example.org/a?b=1", "/search?q=x"])  # fmt: skip
def test_every_page_is_the_one_page_and_asked_for_anew(web: Client, path: str) -> None:
    answer = web.get(path)

    assert (answer.status_code, answer.text) == (200, _PAGE)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    again = web.get(path, headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_page_runs_its_own_files_and_frames_archived_pages_alone(web: Client) -> None:
    answer = web.get("/")
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))

    assert policy == {
        "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "font-src": "'self'",
        "img-src": "'self' data:", "connect-src": "'self'", "manifest-src": "'self'", "frame-src": REPLAY,
        "form-action": "'self'", "base-uri": "'none'", "frame-ancestors": "'none'",
    }  # fmt: skip
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_configured_replay_origin_is_the_one_that_is_framed(make_archive: MakeArchive, built: Path) -> None:
    with asking(make_archive(replay_origin="https://replay.example.org"), web=WebFiles.read(built)) as client:
        assert "frame-src https://replay.example.org;" in client.get("/").headers["content-security-policy"]


@pytest.mark.parametrize("host", ["localhost:18060", "127.0.0.1:443", "localhost", "[::1]:8061"])
def test_the_framed_origin_is_that_of_the_host_that_was_asked(web: Client, host: str) -> None:
    # A container or a proxy may map any port to the one that the server knows of.
    policy = web.get("/", headers={"host": host}).headers["content-security-policy"]
    led = web.get("/web/2024/http://example.org/", headers={"host": host}).headers["location"]

    assert f"frame-src {led.partition('/web/')[0]};" in policy
    assert led.startswith("http://replay.localhost")


def test_a_file_with_a_hash_in_its_name_is_kept_for_a_year(web: Client) -> None:
    script = web.get("/assets/index-abc123.js", headers={"accept-encoding": "identity"})
    font, theme = web.get("/assets/sans-def456.woff2"), web.get("/theme.js")

    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert script.headers["cache-control"] == font.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert font.headers["content-type"] == "font/woff2"
    assert (theme.headers["cache-control"], web.get("/holdfast.svg").headers["content-type"]) == (
        "no-cache",
        "image/svg+xml",
    )


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [("gzip, br", "gzip"), ("br;q=1.0, gzip;q=0.5", "gzip"), ("br", None), ("gzip;q=0", None), ("", None)],
)
def test_what_was_packed_by_the_build_is_sent_to_who_takes_it(web: Client, accepted: str, coding: str | None) -> None:
    answer = web.get("/assets/index-abc123.js", headers={"accept-encoding": accepted})

    assert (answer.headers.get("content-encoding"), answer.text) == (coding, _SCRIPT)
    assert answer.headers["vary"] == "accept-encoding"


def test_a_twin_that_is_cut_short_or_of_another_build_is_not_sent(make_archive: MakeArchive, built: Path) -> None:
    script, packed = built / "assets" / "index-abc123.js", gzip.compress(_SCRIPT.encode())
    script.with_name("index-abc123.js.gz").write_bytes(packed[: len(packed) // 2])
    script.with_name("index-abc123.js.br").write_bytes(brotli.compress(b"another build"))
    (built / "empty.js").write_text("")

    with asking(make_archive(), web=WebFiles.read(built)) as client:
        answers = [client.get(f"/{path}", headers={"accept-encoding": "br, gzip"})
                   for path in ("assets/index-abc123.js", "empty.js")]  # fmt: skip

    assert [(one.headers.get("content-encoding"), one.text) for one in answers] == [(None, _SCRIPT), (None, "")]


def test_a_look_at_the_head_costs_no_body(web: Client) -> None:
    answer = web.request("HEAD", "/assets/sans-def456.woff2")

    assert (answer.status_code, answer.headers["content-length"], answer.content) == (200, "4", b"")


@pytest.mark.parametrize(
    "path",
    ["/nothing", "/.vite/manifest.json", "/assets/other.js", "/assets/../secret.js", "/assets/..%2f..%2fsecret.js",
     "/../secret.js", "/notes.map", "/assets/index-abc123.js.gz", "/assets/", "/assets", "/searching",
     "/index.html/x", "//search"],
)  # fmt: skip
def test_what_is_not_of_the_build_stays_the_api_s_to_refuse(make_archive: MakeArchive, built: Path, path: str) -> None:
    with asking(make_archive(), web=WebFiles.read(built)) as client:
        answer = client.get(f"{APP}{path}")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_browser_at_an_address_without_anything_is_shown_the_application(
    make_archive: MakeArchive, built: Path
) -> None:
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    with asking(make_archive(), web=WebFiles.read(built)) as client:
        page = client.get("/nothing", headers=browser)
        again = client.get("/nothing", headers={**browser, "if-none-match": page.headers["etag"]})
        head = client.request("HEAD", "/nothing", headers=browser)
        data = client.get("/api/nothing", headers=browser)
        there = client.get("/docs", headers=browser)

    assert (page.status_code, page.text) == (404, _PAGE) == (again.status_code, again.text)
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert (head.status_code, head.content) == (404, b"")
    assert (data.status_code, data.json()["code"]) == (404, "not_found")
    assert (there.status_code, there.text == _PAGE) == (200, False)


def test_files_are_neither_counted_nor_kept_from_a_session_that_has_ended(web: Client, tmp_path: Path) -> None:
    ended = {"cookie": f"{cookie_name(config.load(home=tmp_path))}={'x' * 43}"}
    answers = [web.get(path, headers=ended) for path in ("/", "/control/jobs", "/assets/index-abc123.js") * 3]

    assert {answer.status_code for answer in answers} == {200}
    assert not any("set-cookie" in answer.headers or "ratelimit" in answer.headers for answer in answers)
    assert web.get("/api/session", headers=ended).status_code == 401


def test_only_reading_is_answered_by_the_application(web: Client) -> None:
    assert web.post("/search", content=b"x", headers={"content-type": "text/plain"}).status_code != 200


def test_the_replay_host_has_no_page_of_the_application(web: Client) -> None:
    assert "The application" not in web.get(f"{REPLAY}/").text
    assert web.get(f"{REPLAY}/assets/index-abc123.js").text != _SCRIPT


def test_without_a_build_the_first_page_says_how_to_get_one(client: Client, tmp_path: Path) -> None:
    page = client.get("/")

    assert WebFiles.read(tmp_path) is None
    assert "<code>make web</code>" in page.text
    assert client.get("/search").status_code == 404


def test_no_route_of_the_api_lies_under_a_page() -> None:
    routes = [route.path for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]

    assert not [path for path in routes if first_word(path) in (*PAGES, "assets")]


def test_pages_are_those_of_the_application_s_own_table() -> None:
    declared = {
        first_word(path)
        for file in (ROOT / "web" / "src" / "app").glob("*.tsx")
        for path in re.findall(r'path: "(/[^"]*)"', file.read_text("utf-8"))
        if "getParentRoute: () => root" in file.read_text("utf-8")
    }

    assert declared - {""} <= PAGES
    assert declared >= {"search", "changes", "compare", "sources", "control"}


def test_pages_are_not_counted_as_the_routes_that_they_ask() -> None:
    assert [kind_of(path, {"search"}) for path in ("/search", "/api/search", "/control/jobs", "/assets/x.js", "/")] == [
        "assets", "search", "assets", "assets", "other",
    ]  # fmt: skip
