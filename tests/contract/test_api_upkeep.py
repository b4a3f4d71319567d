"""What a server does beside its requests: a new capture is found and compared without anybody asking for it."""

from __future__ import annotations

import asyncio
from errno import ENOSPC
from pathlib import Path
from threading import Event
from threading import enumerate as enumerate_threads

import pytest
from sqlalchemy import select

from holdfast.api import lifespan
from holdfast.api.app import create_inner_app
from holdfast.api.lifespan import BackgroundTasks
from holdfast.api.upkeep import Upkeep
from holdfast.auth.identities import Identities
from holdfast.db.models import PageSignal
from holdfast.feedback import UsageTally
from holdfast.log import captured
from holdfast.operations.launching import OperationLauncher
from holdfast.search.directory import IndexDirectory
from holdfast.search.search import SearchRequest, SearchService
from tests import patience
from tests.archive import Shot, build_archive, days_later
from tests.client import Client, asking

_SHOTS = [
    Shot(url="https://example.org/", body="<title>Marsh</title><p>The heron stands.</p>"),
    Shot(
        url="https://example.org/",
        body="<title>Marsh</title><p>The curlew calls.</p>",
        moment=days_later(1),
        execution=2,
    ),
]


def test_new_captures_are_found_and_compared(migrated_url: str, tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", _SHOTS, database_url=migrated_url)
    with asking(archive) as client:
        before = client.get("/api/search?q=curlew").json()["total"]

        more = Upkeep(archive).step()

        found = client.get("/api/search?q=curlew").json()
        changes = client.get("/api/changes?source=example").json()
    archive.database.close()

    assert (before, found["total"], more) == (0, 1, False)
    assert [change["changeType"] for change in changes["results"]] == ["updated", "new_page"]


def test_another_process_at_the_index_is_left_alone(migrated_url: str, tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", _SHOTS, database_url=migrated_url)
    place = IndexDirectory(archive.home)
    upkeep = Upkeep(archive)
    upkeep.step()
    build_archive(
        archive.home, [Shot(url="https://example.org/new", execution=3)], database_url=migrated_url
    ).database.close()

    with place.writing():
        assert upkeep.step() is False
    with asking(archive) as client:
        before = client.get("/api/search?q=words").json()["total"]
        upkeep.step()
        after = client.get("/api/search?q=words").json()["total"]
    archive.database.close()

    assert (before, after) == (0, 1)


def test_upkeep_ends_when_it_is_told_to(tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", _SHOTS)
    upkeep = Upkeep(archive, rest_s=3600)
    upkeep.start()
    upkeep.close()
    Upkeep(archive).close()
    archive.database.close()


def test_start_waits_for_the_index_and_begins_upkeep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = build_archive(tmp_path / "home", _SHOTS)
    state = create_inner_app(archive).state
    asked, begun = list[SearchRequest](), Event()

    def breaks(_search: SearchService, request: SearchRequest) -> None:
        asked.append(request)
        raise ValueError("a fault of ours")

    monkeypatch.setattr(SearchService, "ask", breaks)
    monkeypatch.setattr(Upkeep, "step", lambda _upkeep: begun.set())
    beside = BackgroundTasks(archive, state)
    beside.start()
    opened = [*asked]
    is_begun = begun.wait(patience.deadline(20))
    beside.close()
    archive.database.close()

    assert (opened, is_begun) == ([SearchRequest()], True)
    assert not {"upkeep", "operations", "beside requests"} & {thread.name for thread in enumerate_threads()}


def test_what_cannot_begin_is_named_and_tried_again_and_keeps_nothing_else_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = build_archive(tmp_path / "home", _SHOTS)
    app = create_inner_app(archive)
    has_room, refused, begun, opened, looked = (Event() for _ in range(5))

    start = OperationLauncher.start

    def start_with_room(launcher: OperationLauncher) -> None:
        if not has_room.is_set():
            refused.set()
            raise OSError(ENOSPC, "No space left on device")
        start(launcher)

    monkeypatch.setattr(OperationLauncher, "start", start_with_room)
    monkeypatch.setattr(Upkeep, "step", lambda _upkeep: begun.set())
    monkeypatch.setattr(SearchService, "ask", lambda _search, _request: opened.set())
    monkeypatch.setattr(OperationLauncher, "_look", lambda _launcher: looked.set())
    app.state.beside = beside = BackgroundTasks(archive, app.state, again_s=0.01)

    def names() -> set[str]:
        return {thread.name for thread in enumerate_threads()}

    with captured() as logged:
        beside.start()
        assert all(event.wait(patience.deadline(20)) for event in (refused, begun, opened))
        client = Client(app)
        answer = client.get("/health/ready")
        before = names()
        has_room.set()
        is_begun = looked.wait(patience.deadline(20))
        beside.close()
    client.close()
    app.state.readiness.close()
    archive.database.close()

    assert (answer.status_code, answer.json()["beside"]) == (200, {"operations": "not_begun"})
    assert ("operations" in before, is_begun, beside.states()) == (False, True, {})
    # However often it is tried.
    assert [line["part"] for line in logged if line["event"] == "api.cold"] == ["operations"]
    assert not {"upkeep", "operations", "beside requests"} & names()


def test_large_index_is_opened_beside_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = build_archive(tmp_path / "home", _SHOTS)
    app = create_inner_app(archive)
    client, opens, opened = Client(app), Event(), Event()

    def ready() -> tuple[int, object, object]:
        # Not what is kept of a look for a second.
        app.state.readiness._look = None
        answer = client.get("/health/ready")
        return answer.status_code, answer.json()["parts"]["search"], answer.json().get("beside")

    def open_slowly(_search: SearchService, _request: SearchRequest) -> None:
        opens.set()
        assert opened.wait(patience.deadline(20))

    monkeypatch.setattr(SearchService, "ask", open_slowly)
    monkeypatch.setattr(Upkeep, "step", lambda _upkeep: False)
    monkeypatch.setattr(lifespan, "_OPEN_S", 0.01)
    app.state.beside = beside = BackgroundTasks(archive, app.state)
    beside.start()
    assert opens.wait(patience.deadline(20))
    opening = ready()
    opened.set()
    beside._thread.join(patience.deadline(20))
    whole = ready()
    beside.close()
    client.close()
    app.state.readiness.close()
    archive.database.close()

    assert (opening, whole) == ((200, "ok", {"search": "opening"}), (200, "ok", None))


def test_half_of_the_time_belongs_to_requests_while_work_waits(tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", _SHOTS)
    upkeep = Upkeep(archive, rest_s=2.0)
    archive.database.close()

    assert (upkeep.rest_s(4.5, more=True), upkeep.rest_s(4.5, more=False)) == (4.5, 2.0)


def test_upkeep_that_ends_leaves_off_making_the_first_index(tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url="https://example.org/")])
    upkeep = Upkeep(archive)
    upkeep.close()

    assert upkeep.step(), "the index is still to be made"

    assert not IndexDirectory(archive.home).exists()
    archive.database.close()


def test_a_server_alone_computes_what_links_say(tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url="https://example.org/", body='<a href="/b">b</a>')])
    upkeep = Upkeep(archive)
    while upkeep.step():
        pass

    with archive.database.read() as session:
        assert {row.inlinks for row in session.scalars(select(PageSignal))} == {0, 1}
    archive.database.close()


def test_a_count_that_cannot_be_written_ends_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = build_archive(tmp_path / "home", _SHOTS)
    written, enough = [], Event()

    def breaks(_tally: UsageTally) -> None:
        raise ValueError("a fault of ours")

    def notes(_identities: Identities) -> None:
        written.append("identities")
        if len(written) == 3:
            enough.set()

    monkeypatch.setattr(UsageTally, "flush", breaks)
    monkeypatch.setattr(Identities, "flush", notes)
    monkeypatch.setattr(lifespan, "_FLUSH_S", 0.001)

    async def run() -> None:
        app = create_inner_app(archive)
        async with app.router.lifespan_context(app):
            assert await asyncio.to_thread(enough.wait, patience.deadline(20))

    asyncio.run(run())
    archive.database.close()
