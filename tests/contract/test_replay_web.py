"""The replay space over HTTP, on both databases: captures, Memento, calendars, raw views, and what was withdrawn."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from holdfast.db.models import Snapshot, WarcFile, Withdrawal
from holdfast.replay import memento
from holdfast.replay.origins import origins_of
from holdfast.urls import page_key
from holdfast.wiring.archive import Archive
from tests.archive import BEGIN, Shot, build_archive, days_later
from tests.client import REPLAY, Client, asking

HOME = "http://example.org/"
STAMP = "20240301120000"
PAGE = (
    "<!DOCTYPE html><html><head><title>Old</title></head><body>"
    '<a href="b?x=1&amp;y=2">b</a><img src="/i.png"></body></html>'
)
SHOTS = (
    Shot(url=HOME, body=PAGE),
    Shot(url="http://example.org/s.css", body="a{b:url(/i.png)}", media_type="text/css"),
    Shot(url="http://example.org/i.png", body=b"\x89PNG\r\n\x1a\n" + b"x" * 100, media_type="image/png"),
    Shot(url="http://example.org/b?x=1&y=2", body="<p>b</p>", moment=days_later(0.001)),
    Shot(url="http://example.org/moved", status=301, headers={"Location": "/b?x=1&y=2"}, body=""),
    Shot(url="http://example.org/gone", status=404, body="<h1>nothing</h1>"),
    Shot(url="http://example.org/empty", status=204, body="", media_type=None),
    Shot(url="http://example.org/packed", body=gzip.compress(b"<p>packed</p>"), headers={"Content-Encoding": "gzip"}),
    Shot(url="http://example.org/cookie", headers={"Set-Cookie": "a=b", "Refresh": "1"}),
    Shot(url="http://example.org/typeless", body=b"%PDF-1.4 x", media_type=None),
    Shot(url=HOME, body=PAGE, same_as=HOME, moment=days_later(10), execution=2),
    Shot(url=HOME, body="", same_as=HOME, not_modified=True, moment=days_later(20), execution=3),
    Shot(url="https://www.example.org/", body="<p>twin</p>", moment=days_later(30), execution=4),
)  # fmt: skip

BOMB = Shot(
    url="http://example.org/bomb", body=gzip.compress(b"\0" * 30_000_000), headers={"Content-Encoding": "gzip"},
    media_type="application/octet-stream",
)  # fmt: skip


# Of 321 KB; packed so badly that it could hold 20 MiB by its length.
PACKED = Shot(
    url="http://example.org/packed-page",
    body=gzip.compress(b"<p>" + Random(1).randbytes(160_500).hex().encode() + b"</p>", 1),
    headers={"Content-Encoding": "gzip"},
)


class Reader:
    """Asks the replay host."""

    def __init__(self, archive: Archive, client: Client) -> None:
        self.archive, self.client = archive, client

    def web(self, path: str, **options: Any) -> httpx.Response:
        """Return what the replay host answers below /web/."""
        return self.client.get(f"{REPLAY}/web/{path}", **options)

    def snapshots(self) -> dict[tuple[str, str], int]:
        """Return the ids of all snapshots by address and timestamp."""
        with self.archive.database.read() as session:
            rows = session.execute(select(Snapshot.url, Snapshot.captured_at, Snapshot.id))
            return {(url, f"{at:%Y%m%d%H%M%S}"): number for url, at, number in rows}

    def withdraw(self, **what: int | str) -> None:
        """Hide a snapshot or an address."""
        with self.archive.database.write() as session:
            session.add(Withdrawal(**what, subject="x", reason="asked", actor="test", created_at=BEGIN))


@contextmanager
def reading(home: Path, url: str | None = None, *more: Shot) -> Iterator[Reader]:
    archive = build_archive(home, (*SHOTS, *more), database_url=url)
    with asking(archive) as client:
        yield Reader(archive, client)
    archive.database.close()


@pytest.fixture
def reader(migrated_url: str, tmp_path: Path) -> Iterator[Reader]:
    """A small archive on each kind of database."""
    with reading(tmp_path / "home", migrated_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """One archive on SQLite that many tests read: for what no database has a part in."""
    with reading(tmp_path_factory.mktemp("replay") / "home", None, BOMB, PACKED) as opened:
        yield opened


def links_of(response: httpx.Response) -> dict[str, str]:
    """Return the targets of a Link header by relation."""
    found = re.findall(r'<([^>]*)>; rel="([^"]*)"', response.headers["link"])
    return {word: target for target, rel in found for word in rel.split() if word != "memento"}


def test_captures_are_found_redirected_to_and_shown(reader: Reader) -> None:
    partial = reader.web("20240305/http://example.org/")
    exact = reader.web(f"{STAMP}/http://example.org/")

    assert (partial.status_code, partial.headers["location"]) == (302, f"/web/{STAMP}/{HOME}")
    assert exact.status_code == 200
    assert exact.text.startswith("<!DOCTYPE html><html><head><script>")
    assert '</script><title>Old</title></head><body><div id="holdfast-bar"' in exact.text
    assert f'<a href="/web/{STAMP}/http://example.org/b?x=1&amp;y=2">' in exact.text
    assert f'<img src="/web/{STAMP}im_/http://example.org/i.png">' in exact.text
    assert exact.headers["memento-datetime"] == "Fri, 01 Mar 2024 12:00:00 GMT"


def test_an_embedded_capture_is_answered_at_once_with_its_own_place(reader: Reader) -> None:
    answer = reader.web("20240305000000cs_/http://example.org/s.css")

    assert answer.status_code == 200
    assert answer.headers["content-location"] == f"/web/{STAMP}cs_/http://example.org/s.css"
    assert answer.text == 'a{b:url("/web/20240305000000im_/http://example.org/i.png")}'


def test_revisits_show_the_body_of_their_original(reader: Reader) -> None:
    for days, stamp in ((10, "20240311120000"), (20, "20240321120000")):
        answer = reader.web(f"{stamp}id_/{HOME}")

        assert (answer.status_code, answer.text) == (200, PAGE), days
        assert answer.headers["memento-datetime"].startswith(("Mon, 11 Mar 2024", "Thu, 21 Mar 2024"))


def test_a_memento_client_walks_from_end_to_end(reader: Reader) -> None:
    answer = reader.web(f"{STAMP}/{HOME}")
    walked = [answer.headers["memento-datetime"]]
    while "next" in (links := links_of(answer)):
        answer = reader.client.get(links["next"])
        walked.append(answer.headers["memento-datetime"])

    assert [moment[5:7] for moment in walked] == ["01", "11", "21", "31"]
    assert links_of(answer)["first"] == f"{REPLAY}/web/{STAMP}/{HOME}"
    assert links_of(answer)["last"] == f"{REPLAY}/web/20240331120000/https://www.example.org/"
    assert links_of(answer)["original"] == "https://www.example.org/"


@pytest.mark.parametrize(
    ("accepted", "stamp"),
    [("Tue, 12 Mar 2024 00:00:00 GMT", "20240311120000"), ("Sat, 01 Jan 0000 00:00:00 GMT", STAMP),
     ("Fri, 31 Dec 9999 23:59:59 GMT", "20240331120000"), (None, "20240331120000")],
)  # fmt: skip
def test_a_time_gate_chooses_clamps_and_refuses_no_date(quick: Reader, accepted: str | None, stamp: str) -> None:
    for origin in (REPLAY, ""):
        headers = {"Accept-Datetime": accepted} if accepted else {}
        answer = quick.client.get(f"{origin}/web/{HOME}", headers=headers)

        assert answer.status_code == 302
        assert answer.headers["location"].startswith(f"{REPLAY}/web/{stamp}/")
        assert "accept-datetime" in answer.headers["vary"]
        assert links_of(answer)["original"] == HOME
        assert "memento-datetime" not in answer.headers
    assert quick.web(HOME, headers={"Accept-Datetime": "garbage"}).status_code == 400


def test_time_maps_list_every_capture_in_three_forms(reader: Reader) -> None:
    link = reader.client.get(f"/web/timemap/link/{HOME}")
    told = reader.client.get(f"/web/timemap/json/{HOME}").json()
    cdxj = reader.client.get(f"/web/timemap/cdxj/{HOME}").text.splitlines()

    assert link.headers["content-type"] == "application/link-format"
    assert link.text.count('memento"; datetime=') == 4
    assert 'rel="first memento"' in link.text
    assert 'rel="last memento"' in link.text
    assert len(told["mementos"]["list"]) == 4
    assert [line.split()[1] for line in cdxj if not line.startswith("!")] == [
        STAMP, "20240311120000", "20240321120000", "20240331120000"
    ]  # fmt: skip
    for entry in told["mementos"]["list"]:
        assert reader.client.get(entry["uri"]).status_code == 200


def test_a_time_map_has_pages_that_follow_each_other(reader: Reader) -> None:
    with reader.archive.database.read() as session:
        first = memento.time_map(session, HOME, "link", "", size=3)
        assert first.following is not None
        second = memento.time_map(session, HOME, "link", first.following, size=3)
    told = "".join(memento.render(first, origins_of("http", "localhost:8060", replay_origin=None)))

    assert [f"{one.captured_at:%d}" for one in (*first.captures, *second.captures)] == ["01", "11", "21", "31"]
    assert second.following is None
    assert f'<http://localhost:8060/web/timemap/link/{first.following}/{HOME}>; rel="timemap"' in told
    assert reader.client.get(f"/web/timemap/link/{first.following}/{HOME}").text.count('memento"; datetime=') == 1
    assert reader.client.get(f"/web/timemap/link/999999999999999999.1/{HOME}").status_code == 400


def test_a_calendar_and_a_list_of_addresses(reader: Reader) -> None:
    calendar = reader.client.get(f"/web/*/{HOME}")
    listed = reader.client.get(f"/web/*/{HOME}*")

    assert "4 captures" in calendar.text
    assert f"{REPLAY}/web/{STAMP}/{HOME}" in calendar.text
    assert "<script" not in calendar.text
    assert listed.text.count("/web/*/") == 10
    assert reader.client.get("/web/*/http://nowhere.example/").status_code == 404
    rest = reader.client.get(f"/web/*/{HOME}*?after=org%2Cexample%29%2Fgone").text
    assert ("/gone" in rest.partition("<tbody>")[2], "/packed" in rest) == (False, True)
    assert "2023" in reader.client.get(f"/web/2023*/{HOME}").text


def test_what_was_withdrawn_is_nowhere(reader: Reader) -> None:
    ids = reader.snapshots()
    gone = ids["http://example.org/b?x=1&y=2", "20240301120126"]
    reader.withdraw(snapshot_id=gone)
    reader.withdraw(url_key=page_key(HOME))

    assert reader.web("2024/http://example.org/b?x=1&y=2").status_code == 404
    assert reader.client.get(f"/api/snapshots/raw/{gone}").status_code == 404
    assert reader.client.get("/web/timemap/link/http://example.org/b?x=1&y=2").status_code == 404
    assert reader.client.get("/web/*/http://example.org/b?x=1&y=2").status_code == 404
    assert "b?x=1" not in reader.client.get("/cdx?url=example.org/*").text
    assert "b?x=1" not in reader.client.get(f"/web/*/{HOME}*").text
    assert reader.web(f"2024/{HOME}").status_code == 404, "its twin with www. is the same page"


def test_takedown_applies_to_a_page_shown_a_moment_ago(reader: Reader) -> None:
    path = f"{STAMP}mp_/{HOME}"
    assert reader.web(path).status_code == 200
    reader.withdraw(url_key=page_key(HOME))

    assert reader.web(path).status_code == 404


def test_an_archived_redirect_leads_into_the_archive(quick: Reader) -> None:
    answer = quick.web(f"{STAMP}/http://example.org/moved")

    assert answer.status_code == 301
    assert answer.headers["location"] == f"/web/{STAMP}/http://example.org/b?x=1&y=2"
    assert "memento-datetime" in answer.headers


def test_an_archived_404_is_one_and_says_when(quick: Reader) -> None:
    answer = quick.web(f"{STAMP}/http://example.org/gone")
    missing = quick.web(f"{STAMP}/http://example.org/never")

    assert (answer.status_code, "nothing" in answer.text) == (404, True)
    assert "memento-datetime" in answer.headers
    assert (missing.status_code, "memento-datetime" in missing.headers) == (404, False)


def test_raw_bytes_are_untouched(quick: Reader) -> None:
    plain = quick.web(f"{STAMP}id_/{HOME}")
    decoded = quick.web(f"{STAMP}id_/http://example.org/packed", headers={"Accept-Encoding": "identity"})

    assert plain.text == PAGE
    assert (decoded.text, "content-encoding" in decoded.headers) == ("<p>packed</p>", False)
    packed = quick.web(f"{STAMP}id_/http://example.org/packed", headers={"Accept-Encoding": "gzip"})
    assert (packed.headers["content-encoding"], packed.text) == ("gzip", "<p>packed</p>")


def test_a_bomb_stops_at_the_caps(quick: Reader) -> None:
    answer = quick.web(f"{STAMP}id_/http://example.org/bomb", headers={"Accept-Encoding": "identity"})

    assert answer.status_code == 200
    assert 0 < len(answer.content) < 29_000_000


def test_readers_at_once_all_get_a_packed_page(quick: Reader) -> None:
    asked = [(f"10.0.0.{number % 8}", f"{REPLAY}/web/{STAMP}mp_/{PACKED.url}") for number in range(24)]

    answers = quick.client.together(asked)

    assert [answer.status_code for answer in answers] == [200] * 24
    assert {len(answer.content) > 300_000 for answer in answers} == {True}


def test_a_range_of_bytes_is_cut_out(quick: Reader) -> None:
    url = f"{STAMP}im_/http://example.org/i.png"
    part = quick.web(url, headers={"Range": "bytes=1-3"})

    assert (part.status_code, part.content) == (206, b"PNG")
    assert part.headers["content-range"] == "bytes 1-3/108"
    assert quick.web(url, headers={"Range": "bytes=-4"}).content == b"xxxx"
    assert quick.web(url, headers={"Range": "bytes=900-"}).status_code == 416
    assert quick.web(url, headers={"Range": "lines=1"}).status_code == 200


def test_a_large_body_is_streamed_whole_and_in_part(migrated_sqlite: str, tmp_path: Path) -> None:
    film = bytes(range(256)) * 12_000
    shot = Shot(
        url="http://example.org/film", body=film, media_type="video/mp4", headers={"Content-Length": str(len(film))}
    )
    archive = build_archive(tmp_path / "home", [shot], database_url=migrated_sqlite)
    with asking(archive) as client:
        whole = client.get(f"{REPLAY}/web/{STAMP}oe_/http://example.org/film")
        part = client.get(
            f"{REPLAY}/web/{STAMP}oe_/http://example.org/film", headers={"Range": "bytes=2000000-2000009"}
        )
        head = client.request("HEAD", f"{REPLAY}/web/{STAMP}oe_/http://example.org/film")
    archive.database.close()

    assert whole.content == film
    assert (part.status_code, part.content) == (206, film[2_000_000:2_000_010])
    assert part.headers["content-range"] == f"bytes 2000000-2000009/{len(film)}"
    assert head.headers["memento-datetime"]


def test_a_range_of_a_large_page_is_one_of_the_rewritten_page(migrated_sqlite: str, tmp_path: Path) -> None:
    body = "<html><body>" + '<a href="/a">words</a>\n' * 80_000 + "<p>the end</p></body></html>"
    headers = {"Content-Length": str(len(body))}
    shot = Shot(url="http://example.org/long", body=body, headers=headers)
    archive = build_archive(tmp_path / "home", [shot], database_url=migrated_sqlite)
    with asking(archive) as client:
        path = f"{REPLAY}/web/{STAMP}mp_/http://example.org/long"
        whole = client.get(path)
        part = client.get(path, headers={"Range": "bytes=-20"})
    archive.database.close()

    assert len(whole.content) > len(body)
    assert whole.headers["content-length"] == str(len(whole.content))
    assert (part.status_code, part.content) == (206, whole.content[-20:])
    assert part.headers["content-range"].endswith(f"/{len(whole.content)}")


def test_a_browser_that_has_it_is_not_sent_it_again(quick: Reader) -> None:
    tag = quick.web(f"{STAMP}/{HOME}").headers["etag"]
    again = quick.web(f"{STAMP}/{HOME}", headers={"If-None-Match": tag})

    assert (again.status_code, again.content) == (304, b"")
    assert "sandbox" in again.headers["content-security-policy"]


def test_no_answer_of_the_replay_host_has_power(quick: Reader) -> None:
    paths = [f"{STAMP}/{HOME}", f"2024/{HOME}", f"{STAMP}id_/{HOME}", f"{STAMP}/http://example.org/cookie",
             f"{STAMP}/http://example.org/moved", f"{STAMP}/http://example.org/gone", f"{STAMP}/http://example.org/empty",
             f"{STAMP}/http://never.example/", "2024", f"*/{HOME}", f"timemap/link/{HOME}", HOME,
             f"{STAMP}/http://example.org/typeless"]  # fmt: skip
    for path in paths:
        answer = quick.web(path, headers={"Cookie": "holdfast=secret"})

        assert "sandbox" in answer.headers["content-security-policy"], path
        assert "allow-same-origin" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in answer.headers
        assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
        assert answer.status_code < 500
    cookie = quick.web(f"{STAMP}/http://example.org/cookie")
    assert cookie.headers["x-archive-orig-set-cookie"] == "a=b"


def test_the_application_shows_no_capture_itself(quick: Reader) -> None:
    answer = quick.client.get(f"/web/{STAMP}/{HOME}?a=%2F&b=c")

    assert answer.status_code == 307
    assert answer.headers["location"] == f"{REPLAY}/web/{STAMP}/{HOME}?a=%2F&b=c"


@pytest.mark.parametrize("origin", ["", REPLAY])
def test_the_raw_view_has_its_bar_and_is_sandboxed_on_both_hosts(quick: Reader, origin: str) -> None:
    number = quick.snapshots()[HOME, STAMP]
    answer = quick.client.get(f"{origin}/api/snapshots/raw/{number}")

    assert answer.status_code == 200
    assert answer.text.startswith("<!DOCTYPE html>")
    assert '<body><div id="holdfast-bar"' in answer.text
    assert "archived copy" in answer.text
    assert f"/api/snapshot/{number}" in answer.text
    prefix = "" if origin else REPLAY
    assert f'<img src="{prefix}/web/{STAMP}im_/http://example.org/i.png">' in answer.text
    policy = answer.headers["content-security-policy"]
    if origin:
        assert policy.startswith("sandbox allow-forms allow-scripts; default-src 'self' 'unsafe-inline'")
    else:
        assert policy.startswith(f"sandbox allow-forms; default-src {REPLAY} 'unsafe-inline'")
        assert "script-src 'none'; connect-src 'none'" in policy
        assert "'self'" not in policy
        assert "<script>" not in answer.text


def test_a_browser_is_sent_to_the_replay_host_for_the_raw_view(quick: Reader) -> None:
    number = quick.snapshots()[HOME, STAMP]
    led = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}

    answer = quick.client.get(f"/api/snapshots/raw/{number}", headers=led)

    assert (answer.status_code, answer.headers["location"]) == (307, f"{REPLAY}/api/snapshots/raw/{number}")
    assert quick.client.get(f"{REPLAY}/api/snapshots/raw/{number}", headers=led).status_code == 200
    assert quick.client.get("/api/snapshots/raw/1", headers=led).status_code == 404


def test_the_raw_view_shows_redirects_and_errors_without_acting_on_them(quick: Reader) -> None:
    ids = quick.snapshots()
    moved = quick.client.get(f"/api/snapshots/raw/{ids['http://example.org/moved', STAMP]}")
    gone = quick.client.get(f"/api/snapshots/raw/{ids['http://example.org/gone', STAMP]}")

    assert (moved.status_code, "location" in moved.headers) == (200, False)
    assert "Its status was 301" in moved.text
    assert (gone.status_code, gone.headers["x-archive-orig-status"]) == (200, "404")


def test_a_raw_view_of_nothing_is_a_404(quick: Reader) -> None:
    for number in ("1", "99999999999999999999", "-5"):
        assert quick.client.get(f"/api/snapshots/raw/{number}").status_code == 404


def test_a_raw_view_whose_file_or_record_is_lost_is_a_404(reader: Reader) -> None:
    number = reader.snapshots()[HOME, STAMP]
    with reader.archive.database.read() as session:
        path = reader.archive.home / str(session.scalar(select(WarcFile.path).where(WarcFile.id == 1)))
    body = bytearray(path.read_bytes())
    body[300:900] = b"\0" * 600
    path.write_bytes(body)
    damaged = reader.client.get(f"/api/snapshots/raw/{number}")
    path.unlink()
    lost = reader.client.get(f"/api/snapshots/raw/{number}")

    assert (damaged.status_code, damaged.json()["code"]) == (404, "capture_lost")
    assert (lost.status_code, lost.json()["code"]) == (404, "capture_lost")
    # The page itself answers from its next capture whose record can be read.
    assert reader.web(f"20240331120000/{HOME}").status_code == 200


@pytest.mark.parametrize(
    "path",
    ["2024/<script>alert(1)</script>", "2024/javascript:alert(1)", "2026<svg onload=x>/http://x/",
     "*/<script>x</script>", "*/<script>x</script>*", "timemap/link/<script>", "timemap/<script>/http://x/", "2024/http://x/\"><script>alert(1)"],
)  # fmt: skip
def test_nothing_of_a_request_comes_back_as_markup(quick: Reader, path: str) -> None:
    for origin in (REPLAY, ""):
        answer = quick.client.get(f"{origin}/web/{path}")

        assert answer.status_code in (307, 400, 404)
        assert "<script>alert" not in answer.text
        assert "<svg" not in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_page_that_takes_too_long_comes_as_it_was_without_scripts(
    migrated_sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.api.routes.replay.REWRITE_S", 0.0)
    body = "<!doctype html><script>x()</script>" + "<a href=/x>y</a>" * 3000
    built = build_archive(tmp_path / "home", [Shot(url=HOME, body=body)], database_url=migrated_sqlite)
    archive = Archive(settings=built.settings, database=built.database, clock=built.clock)
    with asking(archive) as client:
        answer = client.get(f"{REPLAY}/web/{STAMP}/{HOME}")

    assert answer.text == body
    assert "script-src 'none'" in answer.headers["content-security-policy"]
    assert "allow-scripts" not in answer.headers["content-security-policy"]
    built.database.close()
