"""Two crawls held against each other, on both databases: only of one source, and with few questions a slice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, select, update
from sqlalchemy.orm import Session

from holdfast.changes.site_comparison import Cursor, SourcesDiffer, site_slice, walk_site
from holdfast.clock import SystemClock
from holdfast.db.models import Domain, Execution, Job, Page, PageCrawl, Snapshot, Source
from holdfast.types import Truncated
from holdfast.urls import parse_seed
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import hide
from tests.archive import Shot, build_archive, days_later


@pytest.fixture
def archive(migrated_url: str, tmp_path: Path) -> Iterator[Archive]:
    """Two crawls of a source in which twelve pages moved, and one of another source."""
    shots = [Shot(url=f"https://example.org/old/{n}", body=f"<p>Page {n}.") for n in range(12)]
    shots += [
        Shot(url=f"https://example.org/new/{n}", body=f"<p>Page {n}.", moment=days_later(9), execution=2)
        for n in range(12)
    ]
    shots += [Shot(url="https://other.org/", source="other", moment=days_later(3))]
    built = build_archive(tmp_path / "home", shots, database_url=migrated_url)
    yield built
    built.database.close()


def _executions(archive: Archive, code: str) -> list[int]:
    query = select(Execution.id).join(Job, Job.id == Execution.job_id).join(Source, Source.id == Job.source_id)
    with archive.database.read() as session:
        return list(session.scalars(query.where(Source.code == code).order_by(Execution.id)))


def test_crawls_of_different_sources_are_not_compared(archive: Archive) -> None:
    first, _ = _executions(archive, "example")
    [other] = _executions(archive, "other")

    with pytest.raises(SourcesDiffer, match="different sources"):
        list(walk_site(archive.database, first, other))


def test_a_slice_asks_once_where_the_files_of_a_crawl_are_however_many_pages_moved(archive: Archive) -> None:
    earlier, later = _executions(archive, "example")
    asked: list[str] = []

    def note(_c: Any, _k: Any, statement: str, *_rest: Any) -> None:
        if "min(warc_files.id)" in statement:
            asked.append(statement)

    event.listen(archive.database.engine, "before_cursor_execute", note)
    with archive.database.read() as session:
        entries, _ = site_slice(session, earlier, later, Cursor())
    event.remove(archive.database.engine, "before_cursor_execute", note)

    assert [entry.kind for entry in entries] == ["moved"] * 12
    assert len(asked) == 2, "one question a crawl"


def test_a_body_that_broke_off_is_no_change_of_the_page(migrated_url: str, tmp_path: Path) -> None:
    url, whole = "https://example.org/", "<p>All that the page says, and more."
    shots = [
        Shot(url=url, body=whole),
        Shot(url=url, body=whole[:12], truncated=Truncated.DISCONNECT, moment=days_later(9), execution=2),
    ]
    archive = build_archive(tmp_path / "home", shots, database_url=migrated_url)

    kinds = [entry.kind for entry in walk_site(archive.database, *_executions(archive, "example"))]
    archive.database.close()

    assert kinds == ["error"]


@pytest.mark.parametrize(
    ("state", "reason", "outcome", "leads_to", "expected"),
    [
        ("completed", "done", None, None, "gone"),
        ("completed", "truncated", None, None, "gone"),
        ("completed", None, None, None, "gone"),
        ("completed", "done", "success", "https://example.org/elsewhere", "gone"),
        ("completed", "done", "timeout", None, "error"),
        ("completed", "done", "blocked_robots", None, "error"),
        ("completed", "stopped", None, None, "error"),
        ("completed", "max_pages", None, None, "error"),
        ("completed", "hosts_given_up", None, None, "error"),
        ("stopped", "stopped", None, None, "error"),
        ("running", None, None, None, "error"),
        ("failed", "crashed", None, None, "error"),
    ],
)
def test_a_page_is_gone_only_if_the_later_crawl_could_know(
    migrated_url: str, tmp_path: Path, state: str, reason: str | None, outcome: str | None, leads_to: str | None,
    expected: str,
) -> None:  # fmt: skip
    shots = [
        Shot(url="https://example.org/"),
        Shot(url="https://example.org/lost", body="<p>It was here."),
        Shot(url="https://example.org/", moment=days_later(9), execution=2),
    ]
    archive = build_archive(tmp_path / "home", shots, database_url=migrated_url)
    earlier, later = _executions(archive, "example")
    with archive.database.write() as session:
        session.execute(update(Execution).where(Execution.id == later).values(state=state, reason=reason))
        if outcome is not None:
            _attempt(session, later, "https://example.org/lost", outcome=outcome, redirected_to=leads_to)

    found = {entry.url: entry.kind for entry in walk_site(archive.database, earlier, later)}
    archive.database.close()

    assert found["https://example.org/lost"] == expected


def _attempt(session: Session, execution_id: int, url: str, **how: Any) -> None:
    """Let an execution have asked for a page."""
    parsed = parse_seed(url)
    session.add(Domain(id=1, name=parsed.domain, created_at=days_later(9)))
    session.add(Page(id=1, domain_id=1, url_hash=parsed.hash64, url=url, created_at=days_later(9)))
    session.add(
        PageCrawl(
            id=1, execution_id=execution_id, domain_id=1, page_id=1, attempt=1, kind="page", priority=0, depth=1,
            created_at=0, **how,
        )
    )  # fmt: skip


@pytest.mark.parametrize("hidden", [1, 2])
def test_what_one_of_the_crawls_holds_withdrawn_is_neither_new_nor_gone_and_no_address_is_told(
    migrated_url: str, tmp_path: Path, hidden: int
) -> None:
    url = "https://example.org/secret"
    shots = [
        Shot(url=one, body=f"<p>{one} {number}.", moment=days_later(9 * number), execution=number)
        for number in (1, 2)
        for one in ("https://example.org/", url)
    ]
    archive = build_archive(tmp_path / "home", shots, database_url=migrated_url)
    earlier, later = _executions(archive, "example")
    with archive.database.read() as session:
        which = Snapshot.url == url, Snapshot.execution_id == (earlier, later)[hidden - 1]
        [capture] = session.scalars(select(Snapshot.id).where(*which))
    hide(archive.database, SystemClock(), str(capture), reason="asked for")

    found = list(walk_site(archive.database, earlier, later))
    archive.database.close()

    assert [(one.kind, one.url) for one in found] == [("changed", "https://example.org/"), ("withdrawn", None)]
    assert (found[1].from_snapshot_id, found[1].to_snapshot_id) == (None, None)


def test_what_the_run_before_a_retry_captured_is_not_gone_in_the_retry(migrated_url: str, tmp_path: Path) -> None:
    url = "https://example.org/captured-before-it-failed"
    shots = [
        Shot(url=url),
        Shot(url=url, body="<p>Again.", moment=days_later(8), execution=2),
        Shot(url="https://example.org/", body="<p>The first page.", moment=days_later(9), execution=3),
    ]
    archive = build_archive(tmp_path / "home", shots, database_url=migrated_url)
    earlier, failed, retry = _executions(archive, "example")
    with archive.database.write() as session:
        session.execute(update(Execution).where(Execution.id == retry).values(reason="done", frontier_id=failed))
        _attempt(session, failed, url, outcome="success")

    found = {entry.url: entry.kind for entry in walk_site(archive.database, earlier, retry)}
    archive.database.close()

    assert found == {"https://example.org/": "new", url: "error"}
