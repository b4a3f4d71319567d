"""Packages and records of a public source that name a members' page: everybody else is not given its address."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr
from sqlalchemy import select, update

from holdfast.changes.compute import compute_pending
from holdfast.db.models import Snapshot
from holdfast.search.outbox import drain
from holdfast.sources import registry
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import hide
from holdfast.withdrawals.viewers import EVERYTHING, seen_by
from tests.archive import Shot, build_archive, days_later
from tests.client import Client, asking
from tests.editions_bed import adopt

_SECRET = "https://club.example.org/secret"
_PAGE = "https://public.example.org/page"
_LIKE = "https://public.example.org/like"


@contextmanager
def _served(url: str, home: Path, *, same_as: str = _SECRET) -> Iterator[tuple[Archive, Client]]:
    """Serve an archive whose public source has a revisit of the members' page, in its second execution."""
    home.mkdir()
    text = "<html><body><main><p>The {} of a long story about islands.</p></main></body></html>"
    shots = [
        Shot(url=_SECRET, body=text.format("secret"), moment=days_later(0), source="club", execution=1),
        Shot(url=_PAGE, body=text.format("page"), moment=days_later(1), source="open", execution=1),
        Shot(url=_LIKE, same_as=same_as, moment=days_later(2), source="open", execution=1),
    ]
    archive = build_archive(home, shots, database_url=url)
    with seen_by(EVERYTHING):
        compute_pending(archive.database, archive.clock)
        adopt(archive, "open", 2024, executions=("open-1",), seeds=(_PAGE,))
        drain(archive.database, archive.home, archive.clock)
    api = archive.settings.api.model_copy(update={"rate_limiting": False, "admin_token": SecretStr("of this test")})
    settings = archive.settings.model_copy(update={"api": api})
    with asking(Archive(settings=settings, database=archive.database, clock=archive.clock)) as client:
        yield archive, client
    archive.database.close()


def _show(archive: Archive, visibility: str) -> None:
    with archive.database.write() as session:
        registry.edit(session, archive.clock, "club", {"visibility": visibility})


def _forget_original(archive: Archive) -> None:
    """Leave the record without a known original, as before the other file is imported."""
    with archive.database.write() as session:
        session.execute(update(Snapshot).values(original_id=None))


def _told(client: Client, archive: Archive) -> dict[str, str]:
    """Return everything that packages, indexes and records of the public source say to everybody."""
    with archive.database.read() as session:
        ids = session.scalars(select(Snapshot.id).where(Snapshot.url.in_((_PAGE, _LIKE)))).all()
    packages = [
        "/api/executions/2/wacz",
        "/api/coverage/open/2024/edition.wacz",
        "/api/search/export?q=story&format=wacz",
    ]
    packages += [f"/api/snapshots/{one}/wacz" for one in ids]
    texts = [f"/api/snapshots/{one}/record" for one in ids]
    texts += ["/api/exports/cdxj?source=open", "/cdx?url=public.example.org&matchType=host&resolveRevisits=true"]
    told: dict[str, str] = {}
    for path in (*packages, *texts):
        answer = client.get(path)
        assert answer.status_code in (200, 404), answer.text
        if answer.status_code == 200:
            told[path] = _unpacked(answer.content) if path in packages else answer.text
    return told


def _unpacked(content: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as package:
        raws = [(name, package.read(name)) for name in package.namelist()]
    return "".join(
        (gzip.decompress(raw) if name.endswith(".gz") else raw).decode("utf-8", "replace") for name, raw in raws
    )


def _assert_hidden(told: dict[str, str]) -> None:
    assert _PAGE in told["/api/executions/2/wacz"]
    assert {path for path, text in told.items() if "club.example" in text} == set()
    assert _LIKE not in told["/api/executions/2/wacz"]


def test_packages_name_no_members_page_of_a_revisit(migrated_url: str, tmp_path: Path) -> None:
    with _served(migrated_url, tmp_path / "home") as (archive, client):
        before = _told(client, archive)
        _show(archive, "members")
        hidden = _told(client, archive)
        _show(archive, "public")

        _assert_hidden(hidden)
        assert any("WARC-Refers-To" in text for text in before.values())
        for told in (before, _told(client, archive)):
            assert "club.example.org/secret" in told["/api/executions/2/wacz"], "while both are public"


def test_packages_name_no_members_page_of_an_unresolved_revisit(migrated_url: str, tmp_path: Path) -> None:
    with _served(migrated_url, tmp_path / "home") as (archive, client):
        _forget_original(archive)
        _show(archive, "members")

        _assert_hidden(_told(client, archive))


def test_packages_name_no_taken_down_page_of_a_revisit(migrated_url: str, tmp_path: Path) -> None:
    with _served(migrated_url, tmp_path / "home") as (archive, client):
        _forget_original(archive)
        hide(archive.database, archive.clock, _SECRET, reason="asked for", home=archive.home)

        assert {path for path, text in _told(client, archive).items() if "club.example" in text} == set()


def test_packages_keep_revisits_of_pages_that_are_public_too(migrated_url: str, tmp_path: Path) -> None:
    with _served(migrated_url, tmp_path / "home", same_as=_PAGE) as (archive, client):
        _show(archive, "members")

        assert _LIKE in _told(client, archive)["/api/executions/2/wacz"]
