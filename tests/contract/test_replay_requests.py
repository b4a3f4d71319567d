"""What requests of browsers and of archived scripts get from the replay host: other methods, passes, caches, leave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, update

from holdfast.db.models import Snapshot, Withdrawal
from holdfast.replay.origins import KEY_FILE, SitePasses, site_passes
from holdfast.wiring.archive import Archive
from tests.archive import BEGIN, Shot, build_archive, days_later
from tests.client import REPLAY, Client, asking

SITE = "http://www.site.example"
HOME = f"{SITE}/"
OTHER = "http://other.example/"
STAMP = "20240301120000"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_DRAWING = '<svg xmlns="http://www.w3.org/2000/svg"><script>x()</script></svg>'

SHOTS = (
    Shot(url=HOME, body="<!doctype html><title>Home</title><p>one"),
    Shot(url=HOME, body="<!doctype html><title>Home</title><p>two", moment=days_later(1), execution=2),
    Shot(url=HOME, body="<!doctype html><title>Home</title><p>three", moment=days_later(2), execution=3),
    Shot(url=HOME, same_as=HOME, moment=days_later(9), execution=4),
    Shot(url=f"{SITE}/find", body="asked with GET", media_type="text/plain"),
    Shot(url=f"{SITE}/find", body="tides", media_type="text/plain", method="POST", sent=b"q=tide&page=1"),
    Shot(url=f"{SITE}/find?lang=en", body="ebbs", media_type="text/plain", method="POST", sent=b"q=ebb"),
    Shot(url=f"{SITE}/find", body="changed", media_type="text/plain", method="PUT", sent=b"q=tide&page=1"),
    Shot(url=f"{SITE}/done", body="", status=302, headers={"Location": "/find"}, method="POST", sent=b"a=1"),
    Shot(url=f"{SITE}/lib.js", body="x()", media_type="text/javascript"),
    Shot(url=f"{SITE}/draw.svg", body=_DRAWING, media_type="image/svg+xml"),
    Shot(url=f"{SITE}/feed", body="<feed/>", media_type="application/atom+xml"),
    Shot(url=f"{SITE}/font.ttf", body=b"\0\1\0\0font\r\n\r\n", media_type="font/ttf", headers={"Content-Length": "8"}),
    Shot(url=f"{SITE}/form.txt", body=b"x" * 300, media_type="text/plain", headers={"Content-Length": "8"}),
    Shot(url=OTHER, body="<!doctype html><title>Other</title>"),
)


@pytest.fixture
def archive(migrated_url: str, tmp_path: Path) -> Iterator[Archive]:
    """A small archive on each kind of database."""
    built = build_archive(tmp_path / "home", SHOTS, database_url=migrated_url)
    yield built
    built.database.close()


@pytest.fixture
def client(archive: Archive) -> Iterator[Client]:
    """A client of its server."""
    with asking(archive) as opened:
        yield opened


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Archive, Client]]:
    """One archive on SQLite that many tests read."""
    built = build_archive(tmp_path_factory.mktemp("requests") / "home", SHOTS)
    with asking(built) as opened:
        yield built, opened
    built.database.close()


def ids(archive: Archive, url: str) -> list[int]:
    """Return the snapshots of an address, oldest first."""
    with archive.database.read() as session:
        query = select(Snapshot.id).where(Snapshot.url == url).order_by(Snapshot.captured_at, Snapshot.id)
        return list(session.scalars(query))


def test_a_posted_request_gets_the_answer_that_it_got_then(client: Client) -> None:
    def post(path: str, content: bytes, **headers: str) -> tuple[int, str]:
        answer = client.post(f"{REPLAY}/web/2024oe_/{path}", content=content, headers={**FORM, **headers})
        return answer.status_code, answer.text

    assert post(f"{SITE}/find", b"q=tide&page=1") == (200, "tides")
    assert post(f"{SITE}/find", b"page=1&q=tide") == (200, "tides")  # keys are sorted
    assert post(f"{SITE}/find?lang=en", b"q=ebb") == (200, "ebbs")
    assert post(f"{SITE}/find", b"q=storm")[0] == 404
    assert post(f"{SITE}/find", b"")[0] == 404
    assert client.get(f"{REPLAY}/web/2024oe_/{SITE}/find").text == "asked with GET"
    put = client.request("PUT", f"{REPLAY}/web/2024oe_/{SITE}/find", content=b"q=tide&page=1", headers=FORM)
    assert (put.status_code, put.text) == (200, "changed")


def test_a_form_that_a_reader_sends_is_answered_at_once_and_its_redirect_followed(client: Client) -> None:
    shown = client.post(f"{REPLAY}/web/2024/{SITE}/find", content=b"q=tide&page=1", headers=FORM)
    moved = client.post(f"{REPLAY}/web/{STAMP}/{SITE}/done", content=b"a=1", headers=FORM)
    elsewhere = client.post(f"/web/{STAMP}/{SITE}/find", content=json.dumps({"q": 1}).encode(),
                            headers={"Content-Type": "application/json"})  # fmt: skip

    assert (shown.status_code, shown.text) == (200, "tides")
    assert shown.headers["content-location"] == f"/web/{STAMP}/{SITE}/find"
    assert (moved.status_code, moved.headers["location"]) == (302, f"/web/{STAMP}/{SITE}/find")
    assert (elsewhere.status_code, elsewhere.headers["location"]) == (307, f"{REPLAY}/web/{STAMP}/{SITE}/find")


def test_a_preflight_is_answered(quick: tuple[Archive, Client]) -> None:
    asked = {"Origin": "null", "Access-Control-Request-Method": "POST",
             "Access-Control-Request-Headers": "x-requested-with,content-type"}  # fmt: skip
    answer = quick[1].request("OPTIONS", f"{REPLAY}/web/{STAMP}oe_/{HOME}", headers=asked)

    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-headers"] == "x-requested-with,content-type"
    assert "access-control-allow-credentials" not in answer.headers


def test_only_the_pass_of_its_own_site_makes_an_answer_readable(quick: tuple[Archive, Client]) -> None:
    archive, client = quick
    own, other = site_passes(archive.home).of(HOME), site_passes(archive.home).of(OTHER)
    script = {"Origin": "null", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}

    def leave(path: str) -> tuple[int, str | None]:
        answer = client.get(f"{REPLAY}/web/{path}", headers=script)
        return answer.status_code, answer.headers.get("access-control-allow-origin")

    assert leave(f"~{own}/2024oe_/{HOME}") == (200, "*")
    assert leave(f"~{own}/2024oe_/http://api.site.example/none") == (404, "*")
    assert leave(f"~{own}/2024oe_/{OTHER}") == (403, None)
    assert leave(f"~{other}/2024oe_/{HOME}") == (403, None)
    assert leave(f"~{'A' * 20}/2024oe_/{HOME}") == (403, None)
    assert leave(f"2024oe_/{HOME}") == (200, None)
    assert leave(f"{STAMP}/{HOME}") == (200, None)
    assert leave(f"2024oe_/{SITE}/lib.js") == (200, None)
    assert leave(f"{STAMP}/http://nothing.example/") == (404, None)
    assert leave(f"*/{HOME}") == (200, None)
    assert own in client.get(f"{REPLAY}/web/{STAMP}/{HOME}").text
    assert other not in client.get(f"{REPLAY}/web/{STAMP}/{HOME}").text


def test_code_and_fonts_are_given_to_whoever_runs_them(quick: tuple[Archive, Client]) -> None:
    for path, destination in ((f"2024js_/{SITE}/lib.js", "script"), (f"2024oe_/{SITE}/font.ttf", "font")):
        asked = {"Origin": "null", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": destination}
        for headers in (asked, {"Origin": "null"}):
            answer = quick[1].get(f"{REPLAY}/web/{path}", headers=headers)
            assert answer.headers["access-control-allow-origin"] == "*", (path, headers)


def test_the_processes_of_an_archive_agree_on_its_passes(tmp_path: Path) -> None:
    first = site_passes(tmp_path).of(HOME)
    site_passes.cache_clear()

    assert site_passes(tmp_path).of("https://site.example:8080/x") == first
    assert SitePasses((tmp_path / KEY_FILE).read_bytes()).of(HOME) == first
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]
    assert site_passes(tmp_path / "missing").of(HOME) not in ("", first)


def test_a_request_from_the_root_is_led_back_by_its_referer(quick: tuple[Archive, Client]) -> None:
    _, client = quick
    referer = {"Referer": f"{REPLAY}/web/{STAMP}js_/{SITE}/mod/a.js", "Sec-Fetch-Dest": "script"}
    led = client.get(f"{REPLAY}/lib.js?v=%2F", headers=referer)
    lost = client.get(f"{REPLAY}/lib.js")
    foreign = client.get(f"{REPLAY}/lib.js", headers={"Referer": f"http://evil.example/web/{STAMP}/{HOME}"})

    assert (led.status_code, led.headers["location"]) == (307, f"/web/{STAMP}js_/{SITE}/lib.js?v=%2F")
    assert led.headers["access-control-allow-origin"] == "*"
    assert (lost.status_code, foreign.status_code) == (404, 404)
    assert "sandbox" in lost.headers["content-security-policy"]


def test_a_cached_page_changes_its_name_with_its_policy_and_its_neighbours(archive: Archive, client: Client) -> None:
    stamp = "20240302120000"
    tag = client.get(f"{REPLAY}/web/{stamp}/{HOME}").headers["etag"]
    silent = archive.settings.model_copy(
        update={"replay": archive.settings.replay.model_copy(update={"scripts": False})}
    )
    with asking(Archive(settings=silent, database=archive.database, clock=archive.clock)) as other:
        answer = other.get(f"{REPLAY}/web/{stamp}/{HOME}", headers={"If-None-Match": tag})
    assert (answer.status_code, "allow-scripts" in answer.headers["content-security-policy"]) == (200, False)
    assert client.get(f"{REPLAY}/web/{stamp}/{HOME}", headers={"If-None-Match": tag}).status_code == 304
    framed = client.get(f"{REPLAY}/web/{stamp}/{HOME}", headers={"If-None-Match": tag, "Sec-Fetch-Dest": "iframe"})
    assert (framed.status_code, "holdfast-bar" in framed.text.partition("</script>")[2]) == (200, False)

    with archive.database.write() as session:
        session.add(
            Withdrawal(snapshot_id=ids(archive, HOME)[0], subject="x", reason="asked", actor="test", created_at=BEGIN)
        )
    again = client.get(f"{REPLAY}/web/{stamp}/{HOME}", headers={"If-None-Match": tag})
    assert (again.status_code, "Earlier" in again.text) == (200, False)


def test_what_was_sent_without_scripts_stays_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.api.routes.replay.REWRITE_S", 0.0)
    built = build_archive(tmp_path / "home", [Shot(url=HOME, body="<!doctype html>" + "<a href=/x>y</a>" * 3000)])
    hurried = Archive(settings=built.settings, database=built.database, clock=built.clock)
    with asking(hurried) as client:
        first = client.get(f"{REPLAY}/web/{STAMP}/{HOME}")
        again = client.get(f"{REPLAY}/web/{STAMP}/{HOME}", headers={"If-None-Match": first.headers["etag"]})
    built.database.close()

    assert again.status_code == 304
    assert again.headers["content-security-policy"] == first.headers["content-security-policy"]
    assert "script-src 'none'" in again.headers["content-security-policy"]


def test_a_revisit_without_its_original_is_no_empty_page(archive: Archive, client: Client) -> None:
    number = ids(archive, HOME)[-1]
    stamp = "20240310120000"
    assert client.get(f"{REPLAY}/web/{stamp}/{HOME}").status_code == 200
    with archive.database.write() as session:
        session.execute(update(Snapshot).where(Snapshot.id == number).values(original_id=None))

    led = client.get(f"{REPLAY}/web/{stamp}/{HOME}")
    raw = client.get(f"{REPLAY}/api/snapshots/raw/{number}")
    assert (led.status_code, led.headers["location"]) == (302, f"/web/20240303120000/{HOME}")
    assert "which is not here" in raw.text

    with archive.database.write() as session:
        session.execute(update(Snapshot).where(Snapshot.url == HOME).values(record_type="revisit", original_id=None))
    alone = client.get(f"{REPLAY}/web/{stamp}/{HOME}")
    assert (alone.status_code, "refers to an earlier capture" in alone.text) == (404, True)


def test_bytes_behind_the_stated_length_are_left_out_and_told(quick: tuple[Archive, Client]) -> None:
    font = quick[1].get(f"{REPLAY}/web/{STAMP}oe_/{SITE}/font.ttf")
    other_form = quick[1].get(f"{REPLAY}/web/{STAMP}oe_/{SITE}/form.txt")

    assert (font.content, font.headers["x-archive-note"]) == (
        b"\0\1\0\0font",
        "4 bytes behind the stated length left out",
    )
    assert (len(other_form.content), "x-archive-note" in other_form.headers) == (300, False)


@pytest.mark.parametrize("name", ["draw.svg", "feed"])
def test_the_raw_view_of_what_browsers_run_is_a_page_of_ours(quick: tuple[Archive, Client], name: str) -> None:
    archive, client = quick
    answer = client.get(f"/api/snapshots/raw/{ids(archive, f'{SITE}/{name}')[0]}")

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "holdfast-bar" in answer.text
    assert f'<iframe src="{REPLAY}/web/{STAMP}fw_/{SITE}/{name}">' in answer.text
    assert "x()" not in answer.text


def test_a_range_of_another_answer_is_not_given(quick: tuple[Archive, Client]) -> None:
    _, client = quick
    path = f"{REPLAY}/web/{STAMP}js_/{SITE}/lib.js"
    tag = client.get(path).headers["etag"]

    assert client.get(path, headers={"Range": "bytes=0-0", "If-Range": tag}).status_code == 206
    assert client.get(path, headers={"Range": "bytes=0-0", "If-Range": '"old"'}).status_code == 200
