"""Workers that share a database and not a data directory: each takes the operations whose files it has."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from holdfast.db.models import Execution
from holdfast.jobs.leases import ExecutionLeases
from holdfast.jobs.settling import RunSettler
from holdfast.jobs.slots import Placement
from holdfast.operations.launching import OperationLauncher
from holdfast.operations.long_running import OperationState
from holdfast.processes.directory_id import directory_id
from tests.api_bed import Server
from tests.jobs_bed import holder
from tests.operations_bed import new_upload, send

_ADMIN = "/api/admin"


def _leases(server: Server, directory: str) -> ExecutionLeases:
    archive = server.archive
    settler = RunSettler(archive.settings, Placement())
    return ExecutionLeases(archive.database, server.clock, settler, home=archive.home, directory=directory)


@pytest.fixture
def here(server: Server) -> ExecutionLeases:
    """The leases of a worker beside the server."""
    return _leases(server, directory_id(server.archive.home))


@pytest.fixture
def elsewhere(server: Server) -> ExecutionLeases:
    """Those of one on another machine, which has the same database and a data directory of its own."""
    return _leases(server, "another")


def _states(server: Server) -> list[str]:
    with server.archive.database.read() as session:
        return list(session.scalars(select(Execution.state).order_by(Execution.id)))


def test_an_operation_is_taken_only_where_its_files_lie(
    server: Server, here: ExecutionLeases, elsewhere: ExecutionLeases
) -> None:
    send(server, new_upload(server, 10), b"no archive", 0)
    server.ask("POST", f"{_ADMIN}/verifications", quick=True)

    assert elsewhere.take(holder(server.bed.database, "w2"), operations=True) is None
    assert _states(server) == ["queued", "queued"]

    worker = holder(server.bed.database, "w1")
    assert [here.take(worker, operations=True) is not None for _ in range(3)] == [True, True, False]
    server.clock.advance(25 * 3600)
    server.bed.party.scheduler.sweep()
    assert elsewhere.take(holder(server.bed.database, "w2"), operations=True) is None, "nor after its worker died"
    assert here.take(holder(server.bed.database, "w3"), operations=True) is not None


def test_what_was_meant_for_a_directory_that_is_gone_can_be_cancelled(server: Server, here: ExecutionLeases) -> None:
    started = server.ask("POST", f"{_ADMIN}/verifications", quick=True).json()
    assert here.take(holder(server.bed.database, "w1"), operations=True) is not None
    server.ask("POST", f"{_ADMIN}/operations/{started['id']}/cancel")
    server.clock.advance(301)

    server.bed.party.scheduler.sweep()

    assert _states(server) == [OperationState.CANCELLED]


def test_an_import_that_is_tried_again_is_for_the_directory_that_its_bytes_came_to(server: Server) -> None:
    place = new_upload(server, 10)
    send(server, place, b"no archive", 0)
    with server.archive.database.write() as session:  # as if they had come to another server
        row = session.scalars(select(Execution)).one()
        row.directory = "another"
    server.ask("POST", f"{_ADMIN}/operations/{row.id}/cancel")
    server.ask("POST", f"{place}/import")

    with server.archive.database.read() as session:
        rows = session.scalars(select(Execution).order_by(Execution.id)).all()
    assert [one.directory for one in rows] == ["another", "another"]


def test_a_server_starts_a_worker_only_for_operations_that_no_worker_takes(
    server: Server, here: ExecutionLeases, tmp_path: Path
) -> None:
    settings = server.archive.settings
    launcher = OperationLauncher(settings, server.clock)
    beside = OperationLauncher(
        settings.model_copy(update={"home": tmp_path / "elsewhere", "database_url": settings.database}), server.clock
    )

    def needed() -> tuple[bool, bool]:
        return launcher.is_needed(), beside.is_needed()

    nothing = needed()
    server.ask("POST", f"{_ADMIN}/verifications", quick=True)
    at_once = needed()
    server.clock.advance(2)
    waits = needed()
    lease = here.take(holder(server.bed.database, "w1"), operations=True)
    assert lease is not None
    runs = needed()
    server.clock.advance(299)
    here.renew(lease)
    server.clock.advance(299)
    renewed = needed()
    server.clock.advance(2)
    silent = needed()
    launcher.close()
    beside.close()

    assert (nothing, at_once, waits) == ((False, False), (False, False), (True, False))
    assert (runs, renewed, silent) == ((False, False), (False, False), (True, False))


def test_a_server_starts_no_worker_beside_two_operations_that_run(server: Server, here: ExecutionLeases) -> None:
    launcher = OperationLauncher(server.archive.settings, server.clock)
    server.client.post(f"{_ADMIN}/search-index/rebuild")
    server.ask("POST", f"{_ADMIN}/index/rebuild", source=None)
    server.ask("POST", f"{_ADMIN}/verifications", quick=True)
    server.clock.advance(2)
    needed = []
    for owner in ("w1", "w2"):
        needed.append(launcher.is_needed())
        assert here.take(holder(server.bed.database, owner), operations=True) is not None
    needed.append(launcher.is_needed())
    launcher.close()

    assert needed == [True, True, False]
