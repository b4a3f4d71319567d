"""Changes over HTTP: lists, comparisons, the feed, timelines, two crawls held against each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.changes.compute import compute_pending
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot, Withdrawal
from holdfast.errors import Unavailable
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive, days_later
from tests.client import Client, asking

TIDES = "https://example.org/tides"
HOSTILE = "<script>alert(1)</script>"
FIELDS = {
    "changeId", "changeType", "summary", "highNoise", "diffAvailable", "sourceCode", "sourceName",
    "normalizedUrlGroup", "fromSnapshotId", "toSnapshotId", "fromCaptureTimestamp", "toCaptureTimestamp", "fromJobId",
    "toJobId", "addedSections", "removedSections", "changedSections", "addedLines", "removedLines", "changeRatio",
    "title", "error", "computedAt",
}  # fmt: skip
"""Fields of a change; the last two are shown to operators only, as this client is."""


def page(words: str, title: str = "Tides") -> str:
    """Return a page with these words in a section of their own."""
    return (
        f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1><p>High water at six.</p>"
        f"<h2>Notes</h2><p>{words}</p><p>{'The harbour lies open to the west. ' * 4}</p></main></body></html>"
    )


def _shots() -> list[Shot]:
    first = [
        Shot(url=TIDES, body=page("The pier is open")),
        Shot(url="https://example.org/about", body=page("About us", "About")),
        Shot(url="https://example.org/old", body=page("Moved along", "Moved")),
        Shot(url="https://example.org/lost", body=page("Soon lost", "Lost")),
        Shot(url="https://example.org/missing", body=page("Not asked again", "Missing")),
        Shot(url="https://example.org/down", body=page("Up", "Down")),
        Shot(url="https://example.org/style.css", body="p { margin: 0 }", media_type="text/css"),
        Shot(url="https://other.org/", body=page("Elsewhere", "Other"), source="other"),
    ]
    later = days_later(10)
    second = [
        Shot(url=TIDES, body=page(f"The pier is closed &lt;b&gt; {HOSTILE.replace('<', '&lt;')}")),
        Shot(url="https://example.org/about", body=page("About us", "About")),
        Shot(url="https://example.org/new-place", body=page("Moved along", "Moved")),
        Shot(url="https://example.org/lost", body="<p>no such page here</p>", status=404),
        Shot(url="https://example.org/down", body="<p>we are sorry</p>", status=500),
        Shot(url="https://example.org/fresh", body=page("Fresh", "Fresh")),
    ]
    return [*first, *(replace(shot, moment=later, execution=2) for shot in second)]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Two crawls of one site and one of another, compared, on each kind of database."""
    url = request.getfixturevalue("postgres").fresh() if request.param == "postgres" else None
    built = build_archive(tmp_path_factory.mktemp("changes") / "home", _shots(), database_url=url)
    compute_pending(built.database, built.clock)
    yield built
    built.database.close()


@pytest.fixture(scope="module")
def client(archive: Archive) -> Iterator[Client]:
    """Ask that archive."""
    with asking(archive) as asked:
        yield asked


def ids(archive: Archive, url: str) -> list[int]:
    """Return the snapshots of an address, oldest first."""
    with archive.database.read() as session:
        return list(session.scalars(select(Snapshot.id).where(Snapshot.url == url).order_by(Snapshot.captured_at)))


def _types(found: dict[str, Any]) -> dict[str, str]:
    return {row["normalizedUrlGroup"].rpartition("/")[2]: row["changeType"] for row in found["results"]}


def test_without_filters_the_latest_crawl_of_each_source_is_shown(client: Client) -> None:
    found = client.get("/api/changes").json()

    assert (found["enabled"], found["page"], found["pageSize"], found["total"]) == (True, 1, 20, 6)
    assert found["totalIsExact"] is True
    assert set(found["results"][0]) == FIELDS
    assert _types(found) == {
        "tides": "updated", "new-place": "new_page", "lost": "gone", "down": "error", "fresh": "new_page",
        "": "new_page",
    }  # fmt: skip


def test_unchanged_pages_are_shown_on_demand(client: Client) -> None:
    found = client.get("/api/changes", params={"includeUnchanged": "true"}).json()

    assert _types(found)["about"] == "unchanged"
    assert found["total"] == 7


@pytest.mark.parametrize(
    ("query", "total"),
    [
        ({"source": "example"}, 11),
        ({"source": "example", "latest": "true"}, 5),
        ({"source": "other"}, 1),
        ({"jobId": 1}, 6),
        ({"jobId": 99}, 0),
        ({"from": "2024-03-05"}, 5),
        ({"to": "2024-03-01"}, 7),
        ({"from": "2024-03-01", "to": "2024-03-11"}, 12),
        ({"from": "2025-01-01"}, 0),
        ({"source": "example", "jobId": 2, "from": "2024-03-11", "to": "2024-03-11"}, 5),
        ({"source": "example", "type": "new_page"}, 8),
        ({"type": "gone", "from": "2024-01-01"}, 1),
        ({"jobId": 2, "type": "unchanged"}, 1),
    ],
)
def test_filters(client: Client, query: dict[str, Any], total: int) -> None:
    found = client.get("/api/changes", params=query).json()

    assert (found["total"], len(found["results"])) == (total, total)


def test_pages_of_the_list_follow_each_other(client: Client) -> None:
    pages = [
        client.get("/api/changes", params={"source": "example", "pageSize": 4, "page": n}).json() for n in (1, 2, 3, 4)
    ]

    assert [len(found["results"]) for found in pages] == [4, 4, 3, 0]
    assert {found["total"] for found in pages} == {11}
    seen = [row["changeId"] for found in pages for row in found["results"]]
    assert len(set(seen)) == 11
    moments = [row["toCaptureTimestamp"] for found in pages for row in found["results"]]
    assert moments == sorted(moments, reverse=True)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"page": 0}, 422), ({"pageSize": 101}, 422), ({"from": "yesterday"}, 422), ({"jobId": -1}, 422),
        ({"source": "nobody"}, 404), ({"from": "2024-02-01", "to": "2024-01-01"}, 422), ({"source": "a\0b"}, 422),
    ],
)  # fmt: skip
def test_bad_filters_are_refused(client: Client, query: dict[str, Any], status: int) -> None:
    answer = client.get("/api/changes", params=query)

    assert answer.status_code == status
    told = {"error", "detail", "code", "requestId"}
    # A span that ends before it begins is no matter of one field.
    assert set(answer.json()) == (told | {"field"} if status == 422 and "to" not in query else told)


def test_an_updated_page_is_summed_up(client: Client) -> None:
    (row,) = [row for row in client.get("/api/changes").json()["results"] if row["changeType"] == "updated"]

    assert row["summary"] == "1 section changed"
    assert (row["addedLines"], row["removedLines"], row["changedSections"]) == (1, 1, 1)
    assert (row["highNoise"], row["diffAvailable"]) == (False, True)
    assert (row["sourceCode"], row["sourceName"], row["fromJobId"], row["toJobId"]) == ("example", "Example", 1, 2)


def test_switched_off_the_list_says_so(archive: Archive) -> None:
    settings = archive.settings.model_copy(update={"api": archive.settings.api.model_copy(update={"changes": False})})
    with asking(Archive(settings=settings, database=archive.database, clock=archive.clock)) as client:
        answer = client.get("/api/changes")

        assert answer.status_code == 200
        assert answer.json()["enabled"] is False
        assert (answer.json()["total"], answer.json()["results"]) == (0, [])
        assert client.get("/api/changes/rss").status_code == 404


def test_a_comparison_goes_down_to_the_words_and_is_escaped(client: Client, archive: Archive) -> None:
    first, second = ids(archive, TIDES)

    answer = client.get("/api/changes/compare", params={"toSnapshotId": second})

    found = answer.json()
    assert answer.status_code == 200
    assert set(found) == {
        "event", "fromSnapshot", "toSnapshot", "diffFormat", "diffHtml", "diffTruncated", "diffVersion",
        "normalizationVersion", "diff", "textModeRequested", "textModeUsed", "textModeFallback",
    }  # fmt: skip
    assert set(found["toSnapshot"]) == {
        "snapshotId", "title", "captureDate", "captureTimestamp", "originalUrl", "jobId", "jobName",
    }  # fmt: skip
    assert (found["fromSnapshot"]["snapshotId"], found["toSnapshot"]["snapshotId"]) == (first, second)
    assert (found["diffFormat"], found["diffVersion"], found["normalizationVersion"]) == ("html", "v1", "v1")
    assert '<div class="ha-diff-line ha-diff-del"><code>-The pier is <del>open</del></code></div>' in found["diffHtml"]
    assert "<script" not in found["diffHtml"]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in found["diffHtml"]
    (hunk,) = found["diff"]["hunks"]
    removed = next(line for line in hunk["lines"] if line["type"] == "removed")
    assert removed["parts"] == [{"type": "same", "text": "The pier is "}, {"type": "removed", "text": "open"}]
    assert found["diff"]["sections"] == ["Notes"]


def test_a_pair_that_nobody_compared_is_compared_on_demand(client: Client, archive: Archive) -> None:
    first, second = ids(archive, TIDES)

    found = client.get("/api/changes/compare", params={"toSnapshotId": first, "fromSnapshotId": second}).json()

    assert found["event"]["changeId"] is None
    assert (found["event"]["changeType"], found["event"]["addedLines"]) == ("updated", 1)
    assert "+The pier is <ins>open</ins>" in found["diffHtml"]


class _Refusing(Database):
    """A database that another process writes all the time."""

    @contextmanager
    def write(self) -> Iterator[Session]:
        raise Unavailable("the database is locked")
        yield


def test_a_busy_database_does_not_keep_a_reader_from_a_comparison(archive: Archive) -> None:
    first, second = ids(archive, "https://example.org/lost")
    database = _Refusing(archive.database.url)
    with asking(Archive(settings=archive.settings, database=database, clock=archive.clock)) as client:
        answer = client.get("/api/changes/compare", params={"toSnapshotId": first, "fromSnapshotId": second})
    database.close()

    assert answer.status_code == 200
    assert "Soon lost" in answer.json()["diffHtml"]
    assert answer.json()["event"]["diffAvailable"] is True


def test_the_first_capture_and_an_unchanged_one_have_nothing_to_show(client: Client, archive: Archive) -> None:
    first, second = ids(archive, "https://example.org/about")

    new = client.get("/api/changes/compare", params={"toSnapshotId": first}).json()
    same = client.get("/api/changes/compare", params={"toSnapshotId": second}).json()

    assert (new["event"]["changeType"], new["fromSnapshot"], new["diffHtml"]) == ("new_page", None, None)
    assert (same["event"]["changeType"], same["diffHtml"]) == ("unchanged", "")


def test_captures_of_two_pages_are_not_compared(client: Client, archive: Archive) -> None:
    query = {"toSnapshotId": ids(archive, TIDES)[0], "fromSnapshotId": ids(archive, "https://example.org/about")[0]}

    answer = client.get("/api/changes/compare", params=query)

    assert (answer.status_code, answer.json()["code"]) == (400, "pair_mismatch")
    assert client.get("/api/changes/compare", params={"toSnapshotId": 1}).status_code == 404
    assert client.get("/api/changes/compare").status_code == 422


def test_the_feed_is_well_formed_and_can_be_asked_for_anew(client: Client) -> None:
    answer = client.get("/api/changes/rss", params={"source": "example"})

    assert answer.headers["content-type"].startswith("application/rss+xml")
    text = answer.text
    assert text.count("<item>") == 11
    assert "<title>Example: https://example.org/tides</title>" in text
    assert "<link>http://127.0.0.1:8060/compare?to=" in text
    again = client.get(
        "/api/changes/rss", params={"source": "example"}, headers={"If-None-Match": answer.headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")


def test_the_feed_goes_by_the_same_filters_as_the_list(client: Client) -> None:
    for asked in ({"type": "updated"}, {"type": "gone"}, {"type": "noise"}, {"noise": "show"}, {"type": "unchanged"}):
        listed = client.get("/api/changes", params={"source": "example", "pageSize": 50, **asked}).json()
        told = client.get("/api/changes/rss", params={"source": "example", **asked}).text
        assert told.count("<item>") == min(50, listed["total"]), asked
        assert all(f"/compare?to={one['toSnapshotId']}" in told for one in listed["results"])
    assert client.get("/api/changes/rss", params={"type": "melted"}).status_code == 422


def test_a_timeline_goes_from_the_oldest_to_the_newest(client: Client, archive: Archive) -> None:
    first, second = ids(archive, TIDES)

    found = client.get(f"/api/snapshots/{first}/timeline").json()

    assert {name: found[name] for name in ("sourceCode", "sourceName", "normalizedUrlGroup")} == {
        "sourceCode": "example", "sourceName": "Example", "normalizedUrlGroup": TIDES,
    }  # fmt: skip
    assert [row["snapshotId"] for row in found["snapshots"]] == [first, second]
    assert [row["compareFromSnapshotId"] for row in found["snapshots"]] == [None, first]
    assert set(found["snapshots"][0]) == {
        "snapshotId", "captureDate", "captureTimestamp", "jobId", "jobName", "title", "statusCode",
        "compareFromSnapshotId", "browseUrl", "noise",
    }  # fmt: skip
    assert found["snapshots"][0]["browseUrl"].startswith("http://replay.localhost")
    assert client.get("/api/snapshots/1/timeline").status_code == 404
    sheet = ids(archive, "https://example.org/style.css")[0]
    assert client.get(f"/api/snapshots/{sheet}/timeline").status_code == 404


def site(client: Client, **query: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the lines of a whole-site comparison, and its last one."""
    *lines, last = [json.loads(line) for line in client.get("/api/changes/site", params=query).text.splitlines()]
    return lines, last


def test_two_crawls_are_held_against_each_other(client: Client) -> None:
    lines, last = site(client, **{"from": 1, "to": 2})

    assert {(line["type"], line["url"].rpartition("/")[2]) for line in lines} == {
        ("changed", "tides"), ("moved", "new-place"), ("gone", "lost"), ("gone", "missing"), ("error", "down"),
        ("new", "fresh"),
    }  # fmt: skip
    (moved,) = [line for line in lines if line["type"] == "moved"]
    assert moved["fromUrl"] == "https://example.org/old"
    assert last == {
        "counts": {"new": 1, "gone": 2, "changed": 1, "unchanged": 1, "moved": 1, "error": 1, "withdrawn": 0},
        "next": None,
    }  # fmt: skip


def test_the_walk_can_be_cut_into_pieces(client: Client) -> None:
    whole, total = site(client, **{"from": 1, "to": 2, "includeUnchanged": "true"})
    pieces: list[dict[str, Any]] = []
    counts: dict[str, int] = dict.fromkeys(total["counts"], 0)
    query: dict[str, Any] = {"from": 1, "to": 2, "includeUnchanged": "true", "limit": 2}
    while True:
        lines, last = site(client, **query)
        pieces += lines
        counts = {kind: counts[kind] + last["counts"][kind] for kind in counts}
        if last["next"] is None:
            break
        query["after"] = last["next"]

    assert sorted(pieces, key=str) == sorted(whole, key=str)
    assert counts == total["counts"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"from": 1, "to": 99}, 404), ({"from": 1, "to": 1}, 422), ({"from": 1}, 422),
        ({"from": 1, "to": 2, "after": "x"}, 422),
    ],
)  # fmt: skip
def test_crawls_that_cannot_be_compared_are_refused(client: Client, query: dict[str, Any], status: int) -> None:
    assert client.get("/api/changes/site", params=query).status_code == status


def test_what_is_withdrawn_disappears_at_once(tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", _shots())
    compute_pending(archive.database, archive.clock)
    first, second = ids(archive, TIDES)
    with asking(archive) as client:
        assert "tides" in _types(client.get("/api/changes").json())

        for hidden in ({"snapshot_id": first}, {"url_key": _page_of(archive, first)}):
            with archive.database.write() as session:
                session.add(Withdrawal(
                    **hidden, subject="x", reason="asked", actor="tests", created_at=archive.clock.now()
                ))  # fmt: skip

            assert "tides" not in _types(client.get("/api/changes").json())
            assert TIDES not in client.get("/api/changes/rss").text
            query = {"toSnapshotId": second, "fromSnapshotId": first}
            assert client.get("/api/changes/compare", params=query).status_code == 404
            assert client.get(f"/api/snapshots/{first}/timeline").status_code == 404
            lines, _ = site(client, **{"from": 1, "to": 2})
            assert first not in {line["fromSnapshotId"] for line in lines}
    archive.database.close()


def _page_of(archive: Archive, snapshot_id: int) -> str:
    with archive.database.read() as session:
        return session.get_one(Snapshot, snapshot_id).url_key
