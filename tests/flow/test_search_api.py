"""Search over HTTP and on the command line: from WARC files to results, with the exact names, bounds and statuses."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.search import answers
from holdfast.search.directory import IndexDirectory
from holdfast.search.outbox import drain
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import hide
from tests import forked
from tests.archive import BEGIN, Shot, build_archive
from tests.client import Client, asking
from tests.flow.commands import Terminal

_FLU = (
    "<html lang=en><title>Flu vaccine</title><body><main><h1>Flu</h1><p>The flu vaccine is given in every clinic of the"
    " town, each autumn, without an appointment, to everybody who asks.</p></main></body></html>"
)
_GRIPPE = (
    "<html lang=fr><title>La grippe</title><body><main><p>La sécurité des élèves à l’hôpital général est une priorité"
    " de la santé publique dans toute la région.</p></main></body></html>"
)
_SECRET = (
    "<html><meta name=robots content=noindex><title>Not for search</title><body>"
    "<p>The flu vaccine that nobody is to find by searching.</p></body></html>"
)
_WINTER = Shot(
    url="https://example.org/flu", body=_FLU.replace("autumn", "winter"), moment=BEGIN + timedelta(days=200),
    execution=2,
)  # fmt: skip
_SHOTS = [
    Shot(url="https://example.org/flu", body=_FLU),
    _WINTER,
    Shot(url="https://example.org/grippe", body=_GRIPPE),
    Shot(url="https://example.org/secret", body=_SECRET),
    Shot(url="https://example.org/gone", body="<title>Gone</title><p>The flu vaccine page was here.", status=404),
    Shot(url="https://example.org/style.css", media_type="text/css", body="vaccine { color: red }"),
]  # fmt: skip
_FIELDS = {
    "id", "title", "sourceCode", "sourceName", "language", "captureDate", "captureTimestamp", "jobId", "originalUrl",
    "snippet", "highlights", "mimeType", "statusCode", "noise", "rawSnapshotUrl", "browseUrl", "captureBackend",
    "captureFidelity", "pageSnapshotsCount", "similarCount", "similarUrl",
}  # fmt: skip


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """A small archive, indexed and taken into search."""
    built = build_archive(tmp_path_factory.mktemp("search") / "home", _SHOTS)
    drain(built.database, built.home, built.clock)
    yield built
    built.database.close()


@pytest.fixture(scope="module")
def client(archive: Archive) -> Iterator[Client]:
    """A client for that archive; more is asked here than one client may in a minute."""
    api = archive.settings.api.model_copy(update={"rate_limiting": False})
    unlimited = replace(archive, settings=archive.settings.model_copy(update={"api": api}))
    with asking(unlimited) as open_client:
        yield open_client


def _ask(client: Client, **parameters: Any) -> dict[str, Any]:
    answer = client.get("/api/search", params=parameters)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_result_has_the_fields_of_the_document(client: Client) -> None:
    found = _ask(client, q="flu vaccine")

    assert (found["total"], found["totalIsExact"], found["page"], found["pageSize"]) == (2, True, 1, 20)
    first = found["results"][0]
    assert set(first) == _FIELDS
    assert first["rawSnapshotUrl"] == f"/api/snapshots/raw/{first['id']}"
    assert f"/web/{BEGIN + timedelta(days=200):%Y%m%d%H%M%S}/https://example.org/flu" in first["browseUrl"]
    assert "".join(piece["text"] for piece in first["highlights"]["title"]) == "Flu vaccine"
    assert {piece["text"].lower() for piece in first["highlights"]["text"][0] if piece["hit"]} == {"flu", "vaccine"}


def test_pages_count_their_captures(client: Client) -> None:
    found = _ask(client, q="vaccine", view="pages")

    assert [(one["originalUrl"], one["pageSnapshotsCount"]) for one in found["results"]] == [
        ("https://example.org/flu", 2)
    ]


def test_facets_and_histogram_add_up(client: Client) -> None:
    found = _ask(client)

    assert found["total"] == 3
    for name in ("source", "language", "year", "type", "status", "host"):
        assert sum(count["count"] for count in found["facets"][name]) == 3, name
    assert sum(bucket["count"] for bucket in found["histogram"]["buckets"]) == 3


def test_past_the_end_is_empty_with_the_same_total(client: Client) -> None:
    found = _ask(client, q="vaccine", page=50)

    assert (found["results"], found["total"]) == ([], 2)


@pytest.mark.parametrize(
    "parameters",
    [
        {"page": 0}, {"page": "1e18"}, {"page": 10**18}, {"pageSize": 0}, {"pageSize": -1}, {"pageSize": 101},
        {"pageSize": "NaN"}, {"sort": "title"}, {"view": "all"}, {"ranking": "v9"}, {"source": "Not A Code"},
        {"source": "a" * 17}, {"from": "0000-00-00"}, {"to": "10000-01-01"}, {"q": ""}, {"q": "x" * 257},
        {"from": "2025-02-01", "to": "2025-01-01"}, {"language": "'; --"}, {"type": "exe"}, {"status": "9xx"},
        {"passages": 0}, {"passages": 6}, {"passages": "all"},
        {"similar": "hide"}, {"similarTo": 0}, {"similarTo": 2**63}, {"similarTo": "x"},
        {"similarTo": 1, "similar": "collapse"},
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused(client: Client, parameters: dict[str, Any]) -> None:
    answer = client.get("/api/search", params=parameters)

    assert answer.status_code == 422, answer.text
    assert {"error", "detail", "code", "requestId"} <= set(answer.json())


@pytest.mark.parametrize("path", ["/api/search", "/api/admin/search-debug"])
def test_a_source_that_there_is_not_is_not_found(client: Client, path: str) -> None:
    answer = client.get(path, params={"q": "vaccine", "source": "no-such"})

    assert (answer.status_code, answer.json()["code"]) == (404, "source_not_found")


@pytest.mark.parametrize("query", ['"', "AND", "NEAR(", "-x", "*", "example-site", "(" * 200, "a " * 128, "%00", "🦜",
                                   "مرحبا", "%", "_", "\\", "%" * 256, "url:%", "title:\\", "\x01"])  # fmt: skip
def test_no_query_is_an_error(client: Client, query: str) -> None:
    assert client.get("/api/search", params={"q": query}).status_code == 200


@pytest.mark.parametrize("asked", [{"q": "\x00"}, {"q": "a\x00b"}, {"q": "flu", "host": "\x00"}])
def test_query_parameter_with_nul_is_refused(client: Client, asked: dict[str, str]) -> None:
    answer = client.get("/api/search", params=asked)

    assert (answer.status_code, answer.json()["code"]) == (422, "field_refused")


def test_operators_confine_a_search_and_mistyped_ones_are_refused(client: Client) -> None:
    assert [one["captureDate"] for one in _ask(client, q="flu vaccine site:example.org changed:yes")["results"]] == [
        _WINTER.moment.date().isoformat()
    ]
    assert _ask(client, q="vaccine lang:fr")["total"] == 0

    answer = client.get("/api/search", params={"q": "flu before:yesterday"})

    assert (answer.status_code, answer.json()["code"]) == (422, "bad_operator")
    assert "2023-05-31" in answer.json()["detail"]


def test_the_query_language_is_told_by_route_and_command(
    archive: Archive, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(archive.home, capsys)

    told = client.get("/api/search/syntax").json()

    assert told == terminal.type("search", "--syntax", "--json").object
    text = terminal.type("search", "--syntax").out
    assert all(f"{one['name']}:{one['value']}" in text for one in told["operators"])


def test_captures_like_another(client: Client) -> None:
    flu = _ask(client, q="flu vaccine clinic")["results"][0]["id"]

    assert _ask(client, q=f"like:{flu}")["results"] == _ask(client, like=flu)["results"] == []
    for number in (1, 2**62):
        answer = client.get("/api/search", params={"like": number})
        assert (answer.status_code, answer.json()["code"]) == (404, "snapshot_not_found")


def test_terms_over_time_by_route_and_command(
    archive: Archive, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    told = client.get("/api/terms", params={"q": "vaccine,grippe", "unit": "month", "where": "site:example.org"}).json()

    assert [(one["term"], one["captures"], one["isExact"]) for one in told["terms"]] == [
        ("vaccine", 2, True), ("grippe", 1, True),
    ]  # fmt: skip
    assert sum(one["captures"] for one in told["volume"]) == 3
    terminal = Terminal(archive.home, capsys)
    typed = ("terms", "vaccine,grippe", "--unit", "month", "--where", "site:example.org")
    assert terminal.type(*typed, "--json").object == told
    csv = client.get("/api/terms", params={"q": "vaccine", "format": "csv"})
    assert csv.headers["content-type"] == "text/csv; charset=utf-8"
    assert csv.text.splitlines() == terminal.type("terms", "vaccine", "--csv").out.splitlines()
    assert "vaccine" in terminal.type("terms", "vaccine").out
    for wrong in ({"q": ","}, {"q": "a", "where": "before:noon"}, {"q": "a", "unit": "week"}, {}):
        assert client.get("/api/terms", params=wrong).status_code == 422, wrong


def test_what_is_mistyped_on_the_command_line_ends_with_2(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(archive.home, capsys)

    for typed in (
        ("search", "type:word"),
        ("search", "flu", "--type", "HTML"),
        ("search", "flu", "--language", "EN"),
        ("search", "flu", "--status", "404"),
        ("search", "flu", "--host", ""),
        ("search", "a" * 257),
        ("terms", "?"),
        ("terms", "flu", "--where", "-site:example.com " * 15 + "before:2000"),
    ):
        assert terminal.type(*typed).code == 2, typed


def test_filters_are_the_same_for_command_search_and_explanation(
    archive: Archive, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(archive.home, capsys)

    for name, value, total in [("status", "4xx", 1), ("language", "fr", 1), ("type", "pdf", 0), ("host", "b.test", 0)]:
        asked = {"q": "vaccine OR grippe", name: value}
        assert _ask(client, **asked)["total"] == total, name
        assert client.get("/api/admin/search-debug", params=asked).json()["total"] == total, name
        assert terminal.type("search", asked["q"], f"--{name}", value, "--json").object["total"] == total, name


def test_hosts_that_are_linked_to_and_not_kept_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = "<title>Links</title><p>See <a href='https://news.test/a'>news</a> and <a href='/b'>b</a>."
    built = build_archive(tmp_path / "home", [Shot(url="https://example.org/", body=page)])

    assert json.loads(Terminal(built.home, capsys).type("linked-hosts", "--json").out) == [
        {"host": "news.test", "links": 1, "linkingSites": 1}
    ]
    with asking(built) as client:
        told = client.get("/api/admin/linked-hosts").json()
    assert told == {"items": [{"host": "news.test", "links": 1, "linkingSites": 1}], "limit": 50, "offset": 0}
    built.database.close()


def test_a_score_is_explained(client: Client) -> None:
    answer = client.get("/api/admin/search-debug", params={"q": "vaccine", "ranking": "v2", "view": "pages"})

    assert answer.status_code == 200
    found = answer.json()
    assert (found["dialect"], found["mode"], found["rankingVersion"], found["queryMode"]) == (
        "sqlite", "relevance_fts", "v4", "broad",
    )  # fmt: skip
    [page] = found["results"]
    parts = [value for name, value in page.items() if name.endswith(("Text", "Boost", "Penalty"))]
    assert page["totalScore"] == pytest.approx(sum(parts), abs=1e-4)
    assert page["bestSnapshotId"] > 0


def test_older_ranking_names_give_the_one_ranking(client: Client, archive: Archive) -> None:
    names = ("v1", "v2", "v3", "v4")
    found = [client.get("/api/admin/search-debug", params={"q": "flu", "ranking": name}).json() for name in names]
    urls = [_ask(client, q="flu", ranking=name)["results"] for name in names]

    assert {one["rankingVersion"] for one in found} == {"v4"}
    assert all(one["results"] == found[0]["results"] != [] for one in found)
    assert all(one == urls[0] for one in urls)
    assert set(answers.PARTS) <= set(found[0]["results"][0])
    typed = [sys.executable, "-m", "holdfast.cli.main", "search", "flu", "--ranking", "v2", "--json"]
    done = forked.run([*typed, "--home", str(archive.home)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["results"] == urls[0]


def test_searches_are_counted_by_mode(client: Client) -> None:
    _ask(client, q="example.org/flu")

    assert 'holdfast_search_mode_total{mode="url"}' in client.get("/metrics").text


def test_the_command_line_prints_the_same_object(archive: Archive, client: Client) -> None:
    done = forked.run(
        [sys.executable, "-m", "holdfast.cli.main", "search", "flu vaccine", "--json", "--home", str(archive.home)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    mine, theirs = json.loads(done.stdout), _ask(client, q="flu vaccine")
    for found in (mine, theirs):
        found.pop("tookMs")
    assert mine == theirs


def test_the_index_is_looked_after_from_the_command_line(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(archive.home, capsys)
    before = terminal.type("search-index", "status", "--json").object
    assert (before["pages"], before["waiting"]) == (5, 0)

    assert terminal.type("search-index", "rebuild", "--json").object["pages"] == 5
    assert terminal.type("recompute-page-signals").out.startswith("signals of ")

    after = terminal.type("search-index", "status", "--json").object
    assert (after["pages"], int(after["generation"])) == (5, int(before["generation"]) + 1)
    told = terminal.type("search", "securite").out
    assert "La grippe" in told
    assert "1 to 1 of 1 snapshots" in told


def test_status_of_an_index_of_another_version_tells_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = build_archive(tmp_path / "home", [Shot(url="https://example.org/", body="<title>Heron</title>heron")])
    built.database.close()
    terminal = Terminal(built.home, capsys)
    terminal.type("search-index", "drain")
    assert terminal.type("search-index", "status", "--json").object["state"] == "ready"
    manifest = IndexDirectory(built.home).current() / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": 1}))

    told, found = terminal.type("search-index", "status"), terminal.type("search-index", "status", "--json")

    assert (told.code, found.code, found.object["state"], found.object["waiting"]) == (0, 0, "unusable", 0)
    assert "of another version" in found.object["detail"]
    assert "the next index run, worker or search command rebuilds it" in told.out
    terminal.type("search", "heron")
    assert terminal.type("search-index", "status", "--json").object["state"] == "ready"


def test_a_search_without_an_index_says_that_it_is_made_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = build_archive(tmp_path / "home", [Shot(url="https://example.org/", body="<title>Heron</title>heron")])
    built.database.close()
    terminal, directory = Terminal(built.home, capsys), IndexDirectory(built.home)

    with directory.writing():
        busy = terminal.type("search", "heron", "--json")
    made = terminal.type("search", "heron", "--json")
    again = terminal.type("terms", "heron", "--json")

    assert (busy.object["total"], made.object["total"]) == (0, 1)
    assert "another process is building the search index" in busy.err
    assert "it is built first" not in busy.err
    assert "it is built first" in made.err
    assert (again.code, again.err) == (0, "")


def test_passages_are_asked_for_over_http_and_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (
        "<html lang=en><title>Tides</title><body><main><h1>Tides</h1><p>A tide is the rise of the sea.</p>"
        "<h2>Spring tide</h2><p>A spring tide comes after each new moon, and rises most.</p>"
        "<p>At neap tide the sea rises least, which is when the mill stands still for a day.</p></main></body></html>"
    )
    built = build_archive(tmp_path / "home", [Shot(url="https://example.org/tides", body=page)])
    drain(built.database, built.home, built.clock)
    with asking(built) as client:
        [one] = _ask(client, q="spring tide")["results"]
        [several] = _ask(client, q="spring tide", passages=3)["results"]
    built.database.close()

    told = Terminal(built.home, capsys).type("search", "spring tide", "--passages", "3").out

    shown = ["".join(piece["text"] for piece in passage) for passage in several["highlights"]["text"]]
    assert ["".join(piece["text"] for piece in passage) for passage in one["highlights"]["text"]] == shown[:1]
    assert shown[0] == "A spring tide comes after each new moon, and rises most."
    assert len(shown) == 3
    assert "Spring tide" not in shown
    for passage in shown:
        assert f"    {passage}\n" in told


_STORY = " ".join(f"word{n * 7919 % 400}" for n in range(200))


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """One story on three pages of two sources, a little different each time, and a page beside it."""
    pages = [
        ("https://a.test/s", "a", _STORY),
        ("https://b.test/s", "b", f"{_STORY} at last"),
        ("https://b.test/t", "b", _STORY),
    ]
    shots = [
        Shot(url=url, body=f"<title>A heron's tale</title><main><p>The heron {text} {url}</p></main>", source=source)
        for url, source, text in pages
    ]
    other = "<title>Herons</title><main><p>The heron is a bird.</p></main>"
    built = build_archive(
        tmp_path_factory.mktemp("mirrored") / "home", [*shots, Shot(url="https://a.test/o", body=other)]
    )
    drain(built.database, built.home, built.clock)
    yield built
    built.database.close()


def test_near_duplicates_are_counted_and_opened_by_their_address(mirrored: Archive) -> None:
    with asking(mirrored) as client:
        found = _ask(client, q="heron", view="pages", includeNon2xx=True, pageSize=5)
        shown = _ask(client, q="heron", view="pages", similar="show")
        [best] = [one for one in found["results"] if one["similarCount"]]
        listed = client.get(best["similarUrl"]).json()
        missing = client.get("/api/search", params={"similarTo": 7})

    assert (found["total"], found["collapsed"], len(found["results"]), best["similarCount"]) == (2, 2, 2, 2)
    assert (shown["total"], shown["collapsed"], len(shown["results"])) == (4, 0, 4)
    assert {one["similarUrl"] for one in shown["results"]} == {None}
    assert {one["id"] for one in listed["results"]} == {one["id"] for one in shown["results"]} - {
        one["id"] for one in found["results"]
    }
    assert (missing.status_code, missing.json()["code"]) == (404, "snapshot_not_found")


def test_the_command_line_says_how_to_list_near_duplicates(
    mirrored: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(mirrored.home, capsys)

    told = terminal.type("search", "heron", "--view", "pages").out
    [line] = [line.strip() for line in told.splitlines() if "similar" in line and "holdfast" in line]
    said, _, command = line.partition(": holdfast ")
    listed = terminal.type(*command.split())
    every = terminal.type("search", "heron", "--view", "pages", "--show-similar").out
    fewer = terminal.type("search", "--collapse-similar", "--json").object

    assert said == "and 2 similar pages"
    assert "1 to 2 of 2 pages, 2 near-duplicates not shown" in told
    assert "1 to 2 of 2 pages" in listed.out
    assert "1 to 4 of 4 pages" in every
    assert "similar" not in every
    assert (fewer["total"], fewer["collapsed"]) == (2, 2)


def test_a_hidden_page_disappears_at_once(tmp_path: Path) -> None:
    built = build_archive(tmp_path / "home", _SHOTS[:3])
    drain(built.database, built.home, built.clock)
    with asking(built) as client:
        assert _ask(client, q="vaccine", similar="show")["total"] == 2
        hide(built.database, built.clock, "https://example.org/flu", reason="asked to")
        found = _ask(client, q="vaccine")
        assert (found["total"], found["results"]) == (0, [])
    built.database.close()


def test_a_second_crawl_without_changes_adds_rows_only(tmp_path: Path) -> None:
    built = build_archive(tmp_path / "home", _SHOTS[:1])
    drain(built.database, built.home, built.clock)
    again = build_archive(
        tmp_path / "home",
        [Shot(url="https://example.org/flu", body=_FLU, moment=BEGIN + timedelta(days=1), execution=2)],
    )
    drain(again.database, again.home, again.clock)
    with asking(again) as client:
        assert _ask(client, q="vaccine", similar="show")["total"] == 2
    built.database.close()
    again.database.close()
