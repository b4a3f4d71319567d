"""Servers that share a database and not a data directory: each takes the operations whose files it has."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select

from holdfast.db.models import Operation
from holdfast.operations.launching import OperationLauncher
from holdfast.operations.long_running import OperationState
from tests.api_bed import Server
from tests.operations_bed import begun, send

_ADMIN = "/api/admin"


@pytest.fixture
def here(server: Server) -> OperationLauncher:
    """What starts operations in the data directory of the server."""
    return OperationLauncher(server.archive.settings, server.clock)


@pytest.fixture
def elsewhere(server: Server, tmp_path: Path) -> OperationLauncher:
    """What starts them on another machine, which has the same database and a data directory of its own."""
    settings = server.archive.settings
    moved = {"home": tmp_path / "elsewhere", "database_url": settings.database}
    return OperationLauncher(settings.model_copy(update=moved), server.clock)


def _states(server: Server) -> list[str]:
    with server.archive.database.read() as session:
        return list(session.scalars(select(Operation.state).order_by(Operation.id)))


def test_an_operation_is_taken_only_where_its_files_lie(
    server: Server, here: OperationLauncher, elsewhere: OperationLauncher
) -> None:
    with closing(here), closing(elsewhere):
        send(server, begun(server, 10), b"no archive", 0)
        server.ask("POST", f"{_ADMIN}/verifications", quick=True)

        assert elsewhere.take() is None
        assert _states(server) == ["queued", "queued"]

        assert [here.take() is not None for _ in range(3)] == [True, True, False]
        server.clock.advance(31)
        assert elsewhere.take() is None, "nor after its process died"
        assert here.take() is not None


def test_what_was_meant_for_a_directory_that_is_gone_can_be_cancelled(
    server: Server, here: OperationLauncher, elsewhere: OperationLauncher
) -> None:
    with closing(here), closing(elsewhere):
        started = server.ask("POST", f"{_ADMIN}/verifications", quick=True).json()
        assert here.take() is not None
        server.clock.advance(31)
        server.ask("POST", f"{_ADMIN}/operations/{started['id']}/cancel")

        assert elsewhere.take() is None

        assert _states(server) == [OperationState.CANCELLED]


def test_an_import_that_is_tried_again_is_for_the_directory_that_its_bytes_came_to(
    server: Server, elsewhere: OperationLauncher
) -> None:
    with closing(elsewhere):
        place = begun(server, 10)
        send(server, place, b"no archive", 0)
        with server.archive.database.write() as session:  # as if they had come to another server
            row = session.scalars(select(Operation)).one()
            row.parameters = {**row.parameters, "directory": "another"}
        server.ask("POST", f"{_ADMIN}/operations/{row.id}/cancel")
        server.ask("POST", f"{place}/import")

        with server.archive.database.read() as session:
            rows = session.scalars(select(Operation).order_by(Operation.id)).all()
        assert [one.parameters["directory"] for one in rows] == ["another", "another"]
