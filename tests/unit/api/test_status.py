"""The public status: the same for everybody, in words that name nothing private."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import update

from holdfast.db.models import Alert, Source
from tests.archive import Shot, build_archive
from tests.client import asking

_SINCE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def test_public_status_counts_public_sources_and_names_incidents(tmp_path: Path) -> None:
    archive = build_archive(
        tmp_path, [Shot(url="https://a.example/", source="a"), Shot(url="https://b.example/", source="b")]
    )
    with asking(archive, as_admin=False) as client:
        good = client.get("/api/status").json()
    with archive.database.write() as session:
        session.execute(update(Source).where(Source.code == "b").values(visibility="members"))
        session.add(
            Alert(
                name="worker_silent",
                severity="critical",
                since=_SINCE,
                last_seen_at=_SINCE,
                value=1.0,
                message="host b.example",
            )
        )
    with asking(archive, as_admin=False) as client, asking(archive) as admin:
        bad, whole = client.get("/api/status").json(), admin.get("/api/status").json()
        shown = client.get("/status")
    archive.database.close()

    assert (good["status"], good["sources"], good["incidents"]) == ("ok", 2, [])
    assert (bad["status"], bad["sources"], len(bad["incidents"])) == ("degraded", 1, 1)
    assert bad == whole, "members see the same"
    assert (shown.status_code, shown.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "A crawler does not answer" in shown.text
    assert "b.example" not in shown.text + str(bad)
