"""What tests of changes share: pages, captures on numbered days, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select

from holdfast.changes.compute import Computed, compute_pending
from holdfast.db.models import Change
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive, days_later

Building = Callable[[Sequence[Shot]], Archive]
PAGE = "https://example.org/tides"


def page(words: str) -> str:
    """Return a small page with headings and these words."""
    return (
        f"<html><head><title>Tides</title></head><body><main><h1>Tides</h1><p>High water at six.</p>"
        f"<h2>Notes</h2><p>{words}</p><p>{'The harbour lies open to the west. ' * 4}</p></main></body></html>"
    )


def day(number: float, words: str | None, *, status: int = 200, url: str = PAGE, execution: int | None = None) -> Shot:
    """Return a capture on a day; without words it is an error page."""
    body = page(words) if words is not None else f"<p>{status}</p>"
    return Shot(
        url=url, body=body, status=status, moment=days_later(number), execution=execution or int(number * 10) + 1
    )


@contextmanager
def open_building(home: Path, database_url: str) -> Iterator[Building]:
    """Build, and add to, an archive; all that was opened is closed at the end."""
    opened: list[Archive] = []

    def build(shots: Sequence[Shot]) -> Archive:
        archive = build_archive(home, shots, database_url=database_url)
        opened.append(archive)
        return archive

    yield build
    for archive in opened:
        archive.database.close()


def compute(archive: Archive, **options: Any) -> Computed:
    """Compare what waits."""
    return compute_pending(archive.database, archive.clock, **options)


def told(archive: Archive) -> list[tuple[float, str, float | None]]:
    """Return what is said of each capture: its day, the word, and the day that it was held against."""
    with archive.database.read() as session:
        rows = session.scalars(select(Change).order_by(Change.to_captured_at, Change.to_snapshot_id)).all()
    days = [(row.to_captured_at, row.type, row.from_captured_at) for row in rows]
    return [(_day(to), kind, None if since is None else _day(since)) for to, kind, since in days]


def _day(moment: datetime) -> float:
    return round((moment - days_later(0)).total_seconds() / 86400, 3)
