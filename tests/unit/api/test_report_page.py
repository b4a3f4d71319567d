"""The form behind the bar's link: what it shows, what it keeps, and whom it refuses."""

from __future__ import annotations

import pytest

from holdfast.db.models import IssueReport
from holdfast.wiring.archive import Archive
from tests.client import APP, Client

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_SENT = (
    "category=broken_snapshot&description=The+pictures+of+this+page+are+missing.&snapshotId=7"
    "&originalUrl=http%3A%2F%2Fa%2F"
)


@pytest.fixture
def archive(shared: tuple[Archive, Client], empty_client: Client) -> Archive:
    """The shared archive, without a report."""
    assert empty_client
    return shared[0]


def _kept(archive: Archive) -> list[tuple[str, int | None, str | None]]:
    with archive.database.read() as session:
        return [(row.category, row.snapshot_id, row.original_url) for row in session.query(IssueReport)]


def test_the_form_names_the_capture_and_runs_no_script(client: Client) -> None:
    answer = client.get("/report", params={"snapshotId": 7, "url": 'http://a/"><script>alert(1)</script>'})

    assert answer.status_code == 200
    assert "<script" not in answer.text
    assert "&lt;script&gt;" in answer.text
    assert 'name=snapshotId value="7"' in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_what_is_sent_becomes_a_report(client: Client, archive: Archive) -> None:
    answer = client.post("/report", content=_SENT, headers={**_FORM, "Origin": APP})

    assert answer.status_code == 200
    assert "Thank you" in answer.text
    assert _kept(archive) == [("broken_snapshot", 7, "http://a/")]


def test_what_is_wrong_is_said_and_what_was_written_stays(client: Client, archive: Archive) -> None:
    answer = client.post("/report", content="category=takedown&description=short%3C&website=", headers=_FORM)

    assert answer.status_code == 422
    assert "20 to 4,000 characters" in answer.text
    assert "short&lt;</textarea>" in answer.text
    assert '<option value="takedown" selected>' in answer.text
    assert client.post("/report", content="&".join("a=1" for _ in range(500)), headers=_FORM).status_code == 422
    assert _kept(archive) == []


def test_a_filled_trap_is_thanked_and_dropped(client: Client, archive: Archive) -> None:
    answer = client.post("/report", content=f"{_SENT}&website=http://spam", headers=_FORM)

    assert "Thank you" in answer.text
    assert _kept(archive) == []


def test_a_page_of_another_origin_cannot_send_it(client: Client, archive: Archive) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1:8061", ""):
        answer = client.post("/report", content=_SENT, headers={**_FORM, "Origin": origin})
        assert answer.status_code == 403, origin

    assert client.post("/report", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
    assert _kept(archive) == []


def test_pages_share_a_style_sheet_that_knows_the_dark(client: Client) -> None:
    sheet = client.get("/style.css")

    assert sheet.headers["content-type"].startswith("text/css")
    assert "prefers-color-scheme:dark" in sheet.text
    for address in ("/", "/docs", "/report"):
        assert "href=/style.css" in client.get(address).text, address


def test_the_reference_shows_code_as_code(client: Client) -> None:
    shown = client.get("/docs").text

    assert "`" not in shown
    assert "<code>/api/health</code>, with 503" in shown


def test_what_is_too_short_or_too_long_is_said_in_characters(client: Client) -> None:
    short = client.post("/api/reports", json={"category": "takedown", "description": "\x01" * 30 + "short"})
    long = client.post("/api/reports", json={"category": "takedown", "description": "x" * 20, "pageUrl": "y" * 3000})

    assert short.json()["detail"] == "description: String should have at least 20 characters"
    assert "at most 2048 characters" in long.json()["detail"]
