"""Search, replay, CDX, timelines and exports read one table of snapshots: a row that is other, or gone, is so for all.

The rows are changed behind the back of everything that could keep a copy, so a second source of truth would show.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from holdfast.clock import digits14, to_micros
from holdfast.db.models import Snapshot
from holdfast.search.outbox import drain
from holdfast.wiring.archive import Archive
from tests.archive import BEGIN, Shot, build_archive, days_later
from tests.client import REPLAY, Client, asking

_URL = "https://example.org/page"
_LATER = BEGIN + timedelta(days=400)
Reader = Callable[[Client, list[int]], str]
"""Says everything that a reader tells of the page; it is given the captures that there were."""


def _get(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code in (200, 302, 307, 404), answer.text
    return "" if answer.status_code == 404 else f"{answer.headers.get('location', '')} {answer.text}"


def _asked(path: str) -> Reader:
    return lambda client, _ids: _get(client, path)


def _each(path: str) -> Reader:
    return lambda client, ids: " ".join(_get(client, path.format(id=number)) for number in ids)


def _package(client: Client, _ids: list[int]) -> str:
    content = client.get("/api/executions/1/wacz").content
    with zipfile.ZipFile(io.BytesIO(content)) as package:
        pages = package.read("pages/pages.jsonl").decode()
        return gzip.decompress(package.read("indexes/index.cdx.gz")).decode() + pages


_READERS: dict[str, Reader] = {
    "search": _asked("/api/search?q=words&includeDuplicates=true"),
    "snapshot": _each("/api/snapshot/{id}"),
    "timeline": lambda client, ids: _get(client, f"/api/snapshots/{ids[0]}/timeline"),
    "replay": _asked(f"{REPLAY}/web/{digits14(_LATER)}/{_URL}"),
    "resolve": _asked(f"/api/replay/resolve?url={_URL}&timestamp={digits14(_LATER)}"),
    "timemap": _asked(f"/web/timemap/link/{_URL}"),
    "cdx": _asked(f"/cdx?url={_URL}"),
    "export": _asked("/api/exports/snapshots?format=jsonl"),
    "export of the index": _asked("/api/exports/cdxj?jobId=1"),
    "package": _package,
}


@contextmanager
def _served(home: Path, url: str) -> Iterator[tuple[Archive, Client, list[int]]]:
    """Serve two captures of one page, the second a day after the first, found by search."""
    shots = [Shot(url=_URL, body=f"<p>Some words of capture {n}.</p>", moment=days_later(n)) for n in (0, 1)]
    archive = build_archive(home, shots, database_url=url)
    drain(archive.database, archive.home, archive.clock)
    with archive.database.read() as session:
        ids = [row.id for row in session.query(Snapshot).order_by(Snapshot.id)]
    with asking(archive) as client:
        yield archive, client, ids
    archive.database.close()


def _change(archive: Archive, statement: str, **values: Any) -> None:
    with archive.database.write() as session:
        session.execute(text(statement), values)


def _says(told: str, moment: datetime) -> bool:
    """Return whether an answer names a moment, in any of the spellings that readers have."""
    spellings = (digits14(moment), moment.strftime("%Y-%m-%dT%H:%M:%S"), moment.strftime("%d %b %Y %H:%M:%S"))
    return any(spelling in told for spelling in spellings)


@pytest.mark.parametrize("reader", _READERS)
def test_a_row_that_is_changed_is_changed_for_every_reader(tmp_path: Path, migrated_url: str, reader: str) -> None:
    with _served(tmp_path, migrated_url) as (archive, client, ids):
        change = "UPDATE snapshots SET captured_at = :moment WHERE id = :id"
        _change(archive, change, moment=to_micros(_LATER), id=ids[1])
        told = _READERS[reader](client, ids)

    assert _says(told, _LATER), told
    assert not _says(told, days_later(1)), told


@pytest.mark.parametrize("reader", _READERS)
def test_a_row_that_is_deleted_is_gone_for_every_reader(tmp_path: Path, migrated_url: str, reader: str) -> None:
    with _served(tmp_path, migrated_url) as (archive, client, ids):
        _change(archive, "DELETE FROM page_links WHERE snapshot_id = :id", id=ids[1])
        _change(archive, "DELETE FROM snapshots WHERE id = :id", id=ids[1])
        told = _READERS[reader](client, ids)

    assert _says(told, BEGIN), told
    assert not _says(told, days_later(1)), told
    assert json.dumps(ids[1]) not in told
