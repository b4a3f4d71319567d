"""Liveness and readiness: apart, never limited, and answered in time whatever hangs."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from holdfast.api.readiness import ReadinessProbe
from holdfast.processes.part_states import PartState
from tests.clock import FakeClock
from tests.unit.api.conftest import MakeArchive, MakeClient


def test_a_server_that_can_serve_says_so_by_part(make_client: MakeClient) -> None:
    answer = make_client().get("/health/ready")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "parts": {"database": "ok", "storage": "ok", "search": "ok"}}


def test_a_database_that_is_gone_is_not_ready_and_alive(
    make_client: MakeClient, tmp_path: Path, clock: FakeClock
) -> None:
    client = make_client()
    assert client.get("/health/ready").status_code == 200
    (tmp_path / "holdfast.db").rename(tmp_path / "moved.db")
    clock.advance(2)

    answer = client.get("/health/ready")

    assert (answer.status_code, answer.json()["parts"]["database"]) == (503, "does not answer")
    assert client.get("/health/live").json() == {"status": "alive"}
    (tmp_path / "moved.db").rename(tmp_path / "holdfast.db")
    clock.advance(2)
    assert client.get("/health/ready").status_code == 200, "it is asked anew"


def test_another_schema_is_not_ready(make_client: MakeClient, make_archive: MakeArchive, clock: FakeClock) -> None:
    client, archive = make_client(), make_archive()
    with archive.database.write() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")

    answer = client.get("/health/ready")

    assert answer.status_code == 503
    assert answer.json()["parts"]["database"].startswith("has schema 0001")


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_neither_is_ever_limited(make_client: MakeClient, path: str) -> None:
    client = make_client(general_per_minute=1, intruder_per_minute=1)

    assert {client.get(path).status_code for _ in range(5)} == {200}


def test_both_answer_while_every_thread_and_session_is_taken(make_client: MakeClient) -> None:
    client = make_client()
    state = client.app.state  # type: ignore[attr-defined]

    async def asked() -> list[int]:
        taken = [asyncio.create_task(state.sessions.acquire()) for _ in range(5)]
        release = threading.Event()
        busy = [asyncio.create_task(asyncio.to_thread(release.wait, 20)) for _ in range(40)]
        try:
            answers = [await client._ask("GET", path, {}) for path in ("/health/live", "/health/ready")]
        finally:
            release.set()
            await asyncio.gather(*busy, *taken)
            for _ in taken:
                state.sessions.release()
        return [answer.status_code for answer in answers]

    assert client._runner.run(asked()) == [200, 200]


def test_a_part_that_hangs_is_named_within_the_deadline_and_then_at_once(clock: FakeClock) -> None:
    hangs = threading.Event()
    asked = []

    def storage() -> str | None:
        asked.append(1)
        hangs.wait(20)
        return None

    probe = ReadinessProbe(
        {"database": lambda: None, "storage": storage, "search": lambda: None}, clock, deadline_s=0.05
    )

    async def reads() -> None:
        first = await probe.read()
        assert first.status == "not_ready"
        assert first.parts == {"database": "ok", "storage": "no answer in 0.05 s", "search": "not asked"}
        clock.advance(1)
        for _ in range(100):
            assert (await probe.read()).status == "not_ready"
        assert len(asked) == 1, "one that hangs is not asked once more"
        hangs.set()
        assert probe._look is not None
        await asyncio.wrap_future(probe._look)
        assert (await probe.read()).parts["storage"] == "ok"

    asyncio.run(reads())
    probe.close()


def test_a_look_is_shared_for_a_second(clock: FakeClock) -> None:
    asked = []
    probe = ReadinessProbe({"database": lambda: asked.append(1)}, clock)

    async def reads() -> None:
        await asyncio.gather(*(probe.read() for _ in range(50)))
        assert len(asked) == 1
        clock.advance(1)
        await probe.read()
        assert len(asked) == 2

    asyncio.run(reads())
    probe.close()


def test_a_check_that_breaks_is_a_part_that_does_not_answer(clock: FakeClock) -> None:
    def broken() -> str | None:
        raise ValueError("boom")

    probe = ReadinessProbe({"database": broken}, clock)

    assert asyncio.run(probe.read()).parts == {"database": "does not answer"}
    probe.close()


def test_server_is_ready_when_its_supervisor_cannot_be_read(clock: FakeClock) -> None:
    def broken() -> dict[str, PartState]:
        raise OSError("Stale file handle")

    async def ask() -> None:
        probe = ReadinessProbe({"database": lambda: None}, clock, served=broken)
        for _ in range(2):
            found = await probe.read()
            assert (found.status, found.serve) == ("ready", None)
            clock.advance(2)
        probe.close()

    asyncio.run(ask())
