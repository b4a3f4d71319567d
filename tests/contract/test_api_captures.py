"""A page through time and what a capture is made of, over HTTP on both databases."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import event

from holdfast.api.routes.snapshots import pack_capture
from holdfast.api.web_files import WebFiles
from holdfast.changes.compute import compute_pending
from holdfast.db.migrate import upgrade
from holdfast.db.models import Snapshot, Withdrawal
from holdfast.editions.report import write_report
from holdfast.replay import history
from holdfast.search.outbox import drain
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import hide
from tests.archive import BEGIN, Shot, build_archive, days_later
from tests.client import REPLAY, Client, asking
from tests.clock import FakeClock, SlowClock
from tests.editions_bed import adopt
from tests.postgres import Postgres

_HOME = "https://example.org/"
_LOGO = "https://example.org/logo.png"
_PAGE = (
    "<html><head><title>{title}</title><link rel=stylesheet href=style.css></head>"
    '<body><p>{text}</p><img src="/logo.png"><img src="lost.png"><script src="data:,x"></script></body></html>'
)


def _home(text: str, days: float, execution: int, **more: Any) -> Shot:
    body = _PAGE.format(title="The <b>home</b>", text=text)
    return Shot(url=_HOME, body=body, moment=days_later(days), execution=execution, **more)


_SHOTS = [
    _home("Tides of the first spring are told here in some words.", 0, 1, headers={"X-Powered-By": "a <script>"}),
    Shot(url=_LOGO, media_type="image/png", body=b"\x89PNG one", moment=days_later(0.5), execution=1),
    _home("Tides of the first spring are told here in some words.", 10, 2),
    _home("Something else is told here now, with other words than before.", 20, 3),
    Shot(url=_LOGO, media_type="image/png", body=b"\x89PNG two", moment=days_later(20.5), execution=3),
    Shot(url=_HOME, status=404, body="<title>Gone</title><p>Nothing.", moment=days_later(400), execution=4),
]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """A page that was captured four times over two years, and compared."""
    url: str | None = None
    if request.param == "postgres":
        cluster: Postgres = request.getfixturevalue("postgres")
        url = cluster.fresh()
        upgrade(url)
    built = build_archive(tmp_path_factory.mktemp("home"), _SHOTS, database_url=url)
    compute_pending(built.database, built.clock)
    yield built
    built.database.close()


@pytest.fixture(scope="module")
def client(archive: Archive) -> Iterator[Client]:
    """A client for that archive, which may ask as often as it likes."""
    with asking(_unlimited(archive)) as open_client:
        yield open_client


def _unlimited(archive: Archive) -> Archive:
    api = archive.settings.api.model_copy(update={"rate_limiting": False})
    return replace(archive, settings=archive.settings.model_copy(update={"api": api}))


def _id(archive: Archive, url: str, days: float) -> int:
    with archive.database.read() as session:
        found = session.query(Snapshot).where(Snapshot.url == url, Snapshot.captured_at == days_later(days)).one()
        return found.id


def test_a_page_through_time_has_its_years_days_and_changes(client: Client) -> None:
    latest = client.get("/api/history", params={"url": _HOME}).json()
    first = client.get("/api/history", params={"url": _HOME, "year": 2024}).json()

    assert latest["years"] == [{"year": 2024, "captures": 3}, {"year": 2025, "captures": 1}]
    assert (latest["year"], [one["change"] for one in latest["items"]]) == (2025, ["gone"])
    assert [(one["change"], one["isChange"]) for one in first["items"]] == [
        ("new_page", True),
        ("unchanged", False),
        ("updated", True),
    ]
    assert [(day["day"], day["captures"], day["changes"]) for day in first["days"]] == [
        ("2024-03-01", 1, 1),
        ("2024-03-11", 1, 0),
        ("2024-03-21", 1, 1),
    ]
    assert latest["days"][0]["statuses"] == {"4xx": 1}
    assert (first["isCut"], first["next"]) == (False, None)


def test_what_was_never_compared_is_judged_by_its_bytes(client: Client) -> None:
    found = client.get("/api/history", params={"url": "http://www.example.org/logo.png", "year": 2024}).json()

    assert [one["change"] for one in found["items"]] == ["new_page", "updated"]


def test_a_history_is_read_piece_by_piece(client: Client) -> None:
    first = client.get("/api/history", params={"url": _HOME, "year": 2024, "limit": 2}).json()
    rest = client.get("/api/history", params={"url": _HOME, "year": 2024, "limit": 2, "cursor": first["next"]}).json()

    assert [len(first["items"]), len(rest["items"]), rest["next"]] == [2, 1, None]
    assert client.get("/api/history", params={"url": _HOME, "cursor": "x"}).json()["code"] == "bad_cursor"


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({"url": "https://example.org/never"}, 404, "not_captured"),
        ({"url": "https://example.org/\x00"}, 422, "field_refused"),
        ({"url": _HOME, "year": 1}, 422, "invalid"),
        ({"url": ""}, 422, "invalid"),
    ],
)
def test_what_is_not_here_or_cannot_be_is_said(client: Client, asked: dict[str, Any], status: int, code: str) -> None:
    answer = client.get("/api/history", params=asked)

    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_an_address_with_tracking_parameters_has_the_history_of_its_page(client: Client) -> None:
    found = client.get("/api/history", params={"url": f"{_HOME}?utm_source=letter"}).json()

    assert [one["captures"] for one in found["years"]] == [3, 1]


def test_a_capture_knows_its_neighbours_and_the_changes_around_it(archive: Archive, client: Client) -> None:
    middle = client.get(f"/api/snapshots/{_id(archive, _HOME, 10)}/view").json()

    assert middle["change"] == "unchanged"
    assert middle["previous"]["snapshotId"] == middle["previousChange"]["snapshotId"] == _id(archive, _HOME, 0)
    assert middle["next"]["snapshotId"] == middle["nextChange"]["snapshotId"] == _id(archive, _HOME, 20)
    assert middle["last"]["statusCode"] == 404
    assert middle["recordId"].startswith("urn:uuid:")
    assert middle["frameUrl"].endswith("/web/20240311120000mp_/https://example.org/")
    assert middle["permalink"].endswith("/web/20240311120000/https://example.org/")
    assert middle["warcFile"].endswith(".warc.gz")
    assert "/" not in middle["warcFile"]


def test_a_record_tells_its_headers(archive: Archive, client: Client) -> None:
    told = client.get(f"/api/snapshots/{_id(archive, _HOME, 0)}/record").json()

    assert (told["statusCode"], told["reason"]) == (200, "OK")
    assert {"name": "X-Powered-By", "value": "a <script>"} in told["headers"]
    assert "WARC-Record-ID" in [one["name"] for one in told["recordHeaders"]]


def test_a_capture_can_be_read_as_text_and_as_markup(archive: Archive, client: Client) -> None:
    page, picture = _id(archive, _HOME, 20), _id(archive, _LOGO, 0.5)

    assert "Something else" in client.get(f"/api/snapshots/{page}/content").json()["text"]
    source = client.get(f"/api/snapshots/{page}/content?form=source").json()
    assert source["text"].startswith("<html>")
    assert source["charset"] == "utf-8"
    assert client.get(f"/api/snapshots/{picture}/content?form=source").json()["text"] is None
    assert client.get(f"/api/snapshots/{picture}/content").json()["text"] is None


def test_the_parts_of_a_page_say_how_far_they_lie_apart_and_which_are_missing(archive: Archive, client: Client) -> None:
    told = client.get(f"/api/snapshots/{_id(archive, _HOME, 10)}/parts").json()
    found = {one["url"]: one for one in told["parts"]}

    assert (told["named"], told["missing"], told["isReadable"]) == (3, 2, True)
    half_a_day_less = timedelta(days=9.5).total_seconds()
    assert found[_LOGO]["secondsApart"] == told["earliestSeconds"] == -half_a_day_less
    assert found["https://example.org/lost.png"]["snapshotId"] is None
    assert client.get(f"/api/snapshots/{_id(archive, _LOGO, 0.5)}/parts").json()["isReadable"] is False


def test_what_is_withdrawn_is_in_no_history(migrated_url: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    own = build_archive(tmp_path_factory.mktemp("own"), _SHOTS, database_url=migrated_url)
    hidden = _id(own, _HOME, 10)
    with own.database.write() as session:
        session.add(Withdrawal(snapshot_id=hidden, subject="x", reason="test", actor="me", created_at=BEGIN))

    with asking(own) as client:
        told = client.get("/api/history", params={"url": _HOME, "year": 2024}).json()
        around = client.get(f"/api/snapshots/{_id(own, _HOME, 0)}/view").json()
        refused = [client.get(f"/api/snapshots/{hidden}/{what}").status_code for what in ("view", "record", "parts")]

    own.database.close()
    assert hidden not in [one["snapshotId"] for one in told["items"]]
    assert around["next"]["snapshotId"] == _id_after(told, 0)
    assert refused == [404, 404, 404]


def _id_after(told: dict[str, Any], at: int) -> int:
    return int(told["items"][at + 1]["snapshotId"])


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as package:
        assert package.testzip() is None
        return {name: package.read(name) for name in package.namelist()}


def test_a_page_is_taken_away_with_its_parts(archive: Archive, client: Client) -> None:
    answer = client.get(f"/api/snapshots/{_id(archive, _HOME, 10)}/wacz")
    found = _members(answer.content)

    assert answer.headers["content-type"] == "application/wacz"
    assert int(answer.headers["content-length"]) == len(answer.content)
    records = gzip.decompress(found["archive/captures.warc.gz"])
    # The page is a response of its own; the picture is the one that replay shows for it.
    assert records.count(b"WARC/1.1") == 2
    assert b"PNG one" in records
    lines = gzip.decompress(found["indexes/index.cdx.gz"]).decode().splitlines()
    assert [line.split(" ")[0] for line in lines] == ["org,example)/", "org,example)/logo.png"]
    described = json.loads(found["datapackage.json"])
    assert described["mainPageUrl"] == _HOME
    stated = {one["path"]: one["hash"] for one in described["resources"]}
    assert all(f"sha256:{sha256(found[path]).hexdigest()}" == digest for path, digest in stated.items())


def test_package_of_a_page_holds_what_its_scripts_requested(tmp_path: Path) -> None:
    page = "https://example.org/app"
    shots = [
        Shot(url=page, body="<script src=/app.js></script>"),
        Shot(url="https://example.org/words.md", media_type="text/markdown", body="# Words", moment=_later(3)),
        Shot(url="https://api.example.net/data", media_type="application/json", body="{}", moment=_later(5)),
        Shot(url="https://example.org/other.html", moment=_later(7)),
        Shot(url="https://example.org/late.json", media_type="application/json", body="[1]", moment=_later(3600)),
        Shot(url="https://example.org/run.json", media_type="application/json", body="[2]", execution=2),
    ]
    archive = build_archive(tmp_path / "home", shots)
    with asking(archive) as client:
        found = _members(client.get(f"/api/snapshots/{_id(archive, page, 0)}/wacz").content)
    archive.database.close()

    lines = gzip.decompress(found["indexes/index.cdx.gz"]).decode().splitlines()
    assert [line.split(" ")[0] for line in lines] == [
        "net,example,api)/data",
        "org,example)/app",
        "org,example)/words.md",
    ]


def test_package_of_a_page_leaves_out_neighbours_too_large(tmp_path: Path) -> None:
    page, random = "https://example.org/app", Random(1)
    shots = [
        Shot(url=page, body="<p>Tides</p>"),
        Shot(url="https://example.org/huge", media_type="font/woff2", body=random.randbytes(9_000_000)),
        Shot(
            url="https://example.org/large", media_type="font/woff2", body=random.randbytes(900_000), moment=_later(1)
        ),
        Shot(url="https://example.org/small", media_type="font/woff2", body=b"small", moment=_later(2)),
    ]
    archive = build_archive(tmp_path / "home", shots)
    with asking(archive) as client:
        whole = client.get(f"/api/snapshots/{_id(archive, page, 0)}/wacz").content
    part = b"".join(pack_capture(archive, _id(archive, page, 0), 1_500_000).pieces)
    archive.database.close()

    lines = [gzip.decompress(_members(one)["indexes/index.cdx.gz"]).decode().splitlines() for one in (whole, part)]
    assert [[line.split(" ")[0].partition("/")[2] for line in one] for one in lines] == [
        ["app", "large", "small"],
        ["app", "small"],
    ]


def _later(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def test_what_replays_packages_reads_one_of_a_page(archive: Archive, client: Client) -> None:
    content = _members(client.get(f"/api/snapshots/{_id(archive, _HOME, 20)}/wacz").content)
    line = gzip.decompress(content["indexes/index.cdx.gz"]).decode().splitlines()[0]
    place = json.loads(line.split(" ", 2)[2])
    start, length = int(place["offset"]), int(place["length"])

    record = gzip.decompress(content[f"archive/{place['filename']}"][start : start + length])
    assert record.startswith(b"WARC/1.1")
    assert b"Something else is told here" in record


def test_results_are_taken_away_as_a_table_as_lines_and_as_records(archive: Archive, client: Client) -> None:
    drain(archive.database, archive.home, archive.clock)
    asked = {"q": "tides", "includeDuplicates": True}

    table = client.get("/api/search/export", params={**asked, "format": "csv"})
    lines = client.get("/api/search/export", params={**asked, "format": "jsonl"})
    package = client.get("/api/search/export", params={**asked, "format": "wacz"})

    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert table.headers["content-disposition"] == 'attachment; filename="holdfast-results.csv"'
    assert {row["url"] for row in rows} == {_HOME}
    assert [json.loads(line)["snapshot_id"] for line in lines.text.splitlines()] == [
        int(row["snapshot_id"]) for row in rows
    ]
    assert gzip.decompress(_members(package.content)["archive/captures.warc.gz"]).count(b"WARC/1.1") == len(rows)
    assert client.get("/api/search/export", params={"format": "pdf"}).status_code == 422
    nothing = client.get("/api/search/export", params={"q": "unheardof", "format": "wacz"})
    assert (nothing.status_code, nothing.json()["code"]) == (404, "not_found")


def test_a_table_of_results_runs_in_no_spreadsheet(tmp_path_factory: pytest.TempPathFactory) -> None:
    body = "<html><head><title>=HYPERLINK(1)</title></head><body><p>Words of a sheet about tides.</p></body></html>"
    built = build_archive(tmp_path_factory.mktemp("sheet"), [Shot(url=_HOME, body=body)])
    drain(built.database, built.home, built.clock)

    with asking(built) as client:
        table = client.get("/api/search/export", params={"q": "tides"}).text

    built.database.close()
    [row] = csv.DictReader(io.StringIO(table))
    assert row["title"] == "'=HYPERLINK(1)"


def test_editions_are_listed_with_the_addresses_behind_their_figures(archive: Archive, client: Client) -> None:
    seeds = (_HOME, "https://example.org/never")
    for year, number in ((2024, 1), (2025, 4)):
        edition = adopt(archive, "example", year, executions=(f"example-{number}",), seeds=seeds)
        write_report(archive.database, archive.home, archive.clock, edition)

    first = client.get("/api/coverage", params={"limit": 1}).json()
    rest = client.get("/api/coverage", params={"limit": 1, "cursor": first["next"]}).json()
    missing = client.get("/api/coverage/example/2024/addresses", params={"outcome": "not_reached"}).json()
    some = client.get("/api/coverage/example/2024/addresses", params={"limit": 1}).json()
    more = client.get("/api/coverage/example/2024/addresses", params={"limit": 1, "cursor": some["next"]}).json()

    assert [one["year"] for one in (*first["items"], *rest["items"])] == [2025, 2024]
    assert rest["next"] is None
    assert [one["url"] for one in missing["items"]] == ["https://example.org/never"]
    assert some["items"] != more["items"]
    assert first["items"][0]["intendedUrlCount"] == 2
    assert client.get("/api/coverage", params={"source": "nobody"}).status_code == 404
    assert client.get("/api/coverage/example/2024/addresses", params={"outcome": "lost"}).status_code == 422


def test_a_reader_who_asks_for_a_calendar_gets_the_page_through_time(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html><title>Holdfast</title>")
    reader = {"sec-fetch-mode": "navigate"}

    with asking(archive, web=WebFiles.read(tmp_path)) as client:
        led = [client.get(f"{host}/web/2024*/{_HOME}", headers=reader) for host in ("", REPLAY)]
        program = client.get(f"/web/2024*/{_HOME}")
        listed = client.get(f"{REPLAY}/web/*/{_HOME}*", headers=reader)
    with asking(archive) as client:
        unbuilt = client.get(f"/web/*/{_HOME}", headers=reader)

    assert [answer.status_code for answer in led] == [307, 307]
    assert all(
        answer.headers["location"].endswith("/page?url=https%3A%2F%2Fexample.org%2F&year=2024") for answer in led
    )
    assert [answer.status_code for answer in (program, listed, unbuilt)] == [200, 200, 200]


_TOLD = "<html><head><title>Told</title></head><body><p>The same is told under all of its names.</p></body></html>"
_OTHER = _TOLD.replace("same", "contrary")
_TWIN = "https://twin.example/page"
_TOGETHER = [
    Shot(url="https://posted.example/find", method="POST", sent=b"q=tide", body=_TOLD, moment=days_later(1)),
    Shot(url="https://posted.example/find", method="POST", sent=b"q=tide", body=_OTHER, moment=days_later(2)),
    # A page under two schemes and in two sources, its redirect between.
    Shot(url=_TWIN.replace("https", "http"), body=_TOLD, moment=days_later(1)),
    Shot(url=_TWIN.replace("https", "http"), status=301, body="", headers={"Location": _TWIN}, moment=days_later(2)),
    Shot(url=_TWIN, body=_TOLD, moment=days_later(3)),
    Shot(url=_TWIN, body=_TOLD, moment=days_later(4), source="other", execution=2),
    Shot(url=_TWIN, body=_OTHER, moment=days_later(5), source="other", execution=2),
    # A page that was taken back at once, and found as it was twice more before it changed.
    Shot(url="https://taken.example/", body=_OTHER, moment=days_later(1)),
    Shot(url="https://taken.example/", body=_TOLD, moment=days_later(2)),
    Shot(url="https://taken.example/", same_as="https://taken.example/", moment=days_later(3)),
    Shot(url="https://taken.example/", body=_TOLD, moment=days_later(4)),
    Shot(url="https://taken.example/", body=_OTHER, moment=days_later(5)),
]


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Archive, Client]]:
    """Pages with histories that no single source and no single address has."""
    built = build_archive(tmp_path_factory.mktemp("together"), _TOGETHER)
    compute_pending(built.database, built.clock)
    with asking(built) as client:
        yield built, client
    built.database.close()


def _told(client: Client, url: str) -> list[tuple[int, str | None]]:
    items = client.get("/api/history", params={"url": url}).json()["items"]
    return [(one["statusCode"], one["change"]) for one in items]


def test_an_address_that_was_only_ever_posted_to_has_a_history(together: tuple[Archive, Client]) -> None:
    assert len(_told(together[1], "https://posted.example/find")) == 2


def test_what_another_source_or_scheme_had_before_is_not_new(together: tuple[Archive, Client]) -> None:
    assert [change for status, change in _told(together[1], _TWIN) if status == 200] == [
        "new_page", "unchanged", "unchanged", "updated",
    ]  # fmt: skip


def test_a_hidden_capture_shows_neither_through_its_revisits_nor_in_what_came_after_it(
    together: tuple[Archive, Client],
) -> None:
    archive, client = together
    url = "https://taken.example/"
    first, hidden, revisit, after, last = (_id(archive, url, day) for day in range(1, 6))
    assert client.get(f"/api/snapshots/{revisit}/content").json()["text"] is not None
    before = _told(client, url)

    hide(archive.database, archive.clock, str(hidden), reason="asked by the owner")
    refused = [
        client.get(path).status_code
        for path in (f"/api/snapshots/{revisit}/content", f"/api/snapshots/{revisit}/content?form=source",
                     f"/api/changes/compare?fromSnapshotId={first}&toSnapshotId={revisit}",
                     f"/api/changes/compare?fromSnapshotId={revisit}&toSnapshotId={last}")
    ]  # fmt: skip

    assert before == [(200, one) for one in ("new_page", "updated", "unchanged", "unchanged", "updated")]
    assert refused == [404] * 4
    assert client.get(f"/api/snapshots/{after}/content").status_code == 200
    # Before it is compared again: against the last one that may be seen, not against the hidden one.
    assert _told(client, url)[:2] == [(200, "new_page"), (200, "updated")]


def test_a_history_that_took_long_is_kept_and_what_is_withdrawn_is_gone_from_it_at_once(tmp_path: Path) -> None:
    shots = [Shot(url=_HOME, moment=days_later(day), execution=day) for day in (1, 2, 3)]
    first = build_archive(tmp_path, shots[:2])
    # Without limits, which look at the clock, too.
    with asking(replace(_unlimited(first), clock=SlowClock())) as client:
        told = [_days(client)]
        build_archive(tmp_path, shots[2:]).database.close()
        told.append(_days(client))
        hide(first.database, first.clock, str(_id(first, _HOME, 1)), reason="asked by the owner")
        told.append(_days(client))

    first.database.close()
    # The third capture is seen a little later, or with anything that changes what may be seen.
    assert told == [[2, 3], [2, 3], [3, 4]]


def test_the_captures_of_a_page_are_counted_once_for_all_spellings_and_years(tmp_path: Path) -> None:
    own = build_archive(tmp_path, [Shot(url=_HOME, moment=days_later(day), execution=day) for day in (1, 2, 3)])
    clock, counted = FakeClock(), list[object]()

    def take_long(*asked: Any) -> None:
        if history.COUNTED + 1 in tuple(asked[3]):
            counted.append(asked[3])
            clock.advance(1)

    event.listen(own.database.engine, "before_cursor_execute", take_long)
    with closing(own.database), asking(replace(_unlimited(own), clock=clock)) as client:
        latest = client.get("/api/history", params={"url": _HOME}).json()
        spelled = [client.get("/api/history", params={"url": f"{_HOME}?utm_source={at}"}).json() for at in range(5)]
        for one in ("EXAMPLE.org", "www.example.org/"):
            spelled.append(client.get("/api/history", params={"url": one}).json())
        empty = [
            client.get("/api/history", params={"url": f"{_HOME}?utm_source={at}", "year": 3000 + at}).json()
            for at in range(5)
        ]

    assert len(counted) == 1
    assert spelled == [latest] * 7
    assert [(one["url"], one["items"], one["years"]) for one in empty] == [
        (f"{_HOME}?utm_source={at}", [], latest["years"]) for at in range(5)
    ]


def _days(client: Client) -> list[int]:
    found = client.get("/api/history", params={"url": _HOME}).json()["days"]
    return [int(one["day"].rpartition("-")[2]) for one in found]
