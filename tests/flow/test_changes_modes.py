"""Two texts of a page can be compared: its content, and all that it shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from holdfast.db.models import Diff, Snapshot
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive, days_later
from tests.client import Client, asking

URL = "https://example.org/tides"


def _page(menu: str, words: str) -> str:
    return (
        f"<html><body><nav>{menu}</nav><main><h1>Tides</h1><p>{words}</p><p>{'The harbour lies open. ' * 9}</p></main>"
        "<script>never shown</script><footer>Kept since 1931</footer></body></html>"
    )


@pytest.fixture
def archive(tmp_path: Path, database_url: str) -> Iterator[Archive]:
    """Three captures: first the menu changes, then the content does."""
    pages = [_page("Home", "High water"), _page("Home Shop", "High water"), _page("Home Shop", "Low water")]
    shots = [Shot(url=URL, body=body, moment=days_later(n), execution=n + 1) for n, body in enumerate(pages)]
    shots.append(Shot(url=URL, body="<p>" + "<div>" * 3000 + "deep", moment=days_later(3), execution=4))
    built = build_archive(tmp_path, shots, database_url=database_url)
    yield built
    built.database.close()


@pytest.fixture
def client(archive: Archive) -> Iterator[Client]:
    """Ask that archive."""
    with asking(archive) as asked:
        yield asked


def _compared(client: Client, archive: Archive, later: int, mode: str | None) -> dict[str, Any]:
    with archive.database.read() as session:
        ids = list(session.scalars(select(Snapshot.id).order_by(Snapshot.captured_at)))
    params: dict[str, Any] = {"toSnapshotId": ids[later], "fromSnapshotId": ids[later - 1]}
    found: dict[str, Any] = client.get("/api/changes/compare", params=params | ({"mode": mode} if mode else {})).json()
    return found


def _changed(found: dict[str, Any]) -> list[str]:
    lines = [line for hunk in found["diff"]["hunks"] for line in hunk["lines"] if line["type"] != "context"]
    return ["".join(part["text"] for part in line["parts"]) for line in lines]


def test_what_stands_around_the_content_is_compared_in_full_mode_alone(client: Client, archive: Archive) -> None:
    main, full = _compared(client, archive, 1, "main"), _compared(client, archive, 1, "full")

    assert (_changed(main), main["diffHtml"]) == ([], "")
    assert _changed(full) == ["Home", "Home Shop"]
    assert (full["textModeRequested"], full["textModeUsed"], full["textModeFallback"]) == ("full", "full", False)
    assert "never shown" not in full["diffHtml"]
    assert full["event"]["addedLines"] == 1


def test_the_content_is_compared_unless_more_is_asked_for(client: Client, archive: Archive) -> None:
    found = _compared(client, archive, 2, None)

    assert _changed(found) == ["High water", "Low water"]
    assert found["textModeUsed"] == "main"
    assert client.get("/api/changes/compare", params={"toSnapshotId": 1, "mode": "half"}).status_code == 422


def test_both_diffs_are_told_apart_and_the_same_each_time(client: Client, archive: Archive) -> None:
    answers = [_compared(client, archive, 1, mode) for mode in ("main", "full", "full", "main")]

    assert answers[0]["diff"] == answers[3]["diff"] != answers[1]["diff"] == answers[2]["diff"]
    with archive.database.read() as session:
        assert session.scalar(select(func.count()).select_from(Diff)) == 0, "only neighbours are kept, by the index"


def test_a_page_that_would_hang_a_parser_is_read_in_a_child(client: Client, archive: Archive) -> None:
    found = _compared(client, archive, 3, "full")

    assert "deep" in _changed(found)


def test_a_record_that_is_gone_falls_back_to_the_content(client: Client, archive: Archive) -> None:
    for path in archive.home.glob("warcs/**/*.warc.gz"):
        path.unlink()

    found = _compared(client, archive, 2, "full")

    assert (found["textModeUsed"], found["textModeFallback"]) == ("main", True)
    assert _changed(found) == ["High water", "Low water"]
