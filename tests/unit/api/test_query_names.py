"""Every route refuses query parameters that it does not declare, unless its router is marked."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from holdfast.api.routes import REPLAY_ROUTERS, ROUTERS
from holdfast.api.routing import LazyRoute, LazyRouter
from holdfast.config import ApiSettings, Settings
from holdfast.db.engine import Database
from holdfast.wiring import prepare
from holdfast.wiring.archive import Archive
from tests.client import Client, asking
from tests.clock import FakeClock

_TOKEN = "the admin token of this test"
_MARKED = {"account_pages", "archive", "reference", "renderer", "replay", "reports"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One application for all cases."""
    settings = Settings(home=tmp_path_factory.mktemp("home"), api=ApiSettings(rate_limiting=False, admin_token=_TOKEN))
    prepare(settings)
    archive = Archive(settings=settings, database=Database(settings.database), clock=FakeClock())
    with asking(archive) as made:
        yield made
    archive.database.close()


def _routes(routers: tuple[LazyRouter, ...]) -> list[LazyRoute]:
    return [route for router in routers for route in router.routes]


_READ = [route for route in _routes(ROUTERS) if "GET" in route.methods]


@pytest.mark.parametrize("route", _READ, ids=lambda route: route.path)
def test_unknown_query_parameter_is_refused(client: Client, route: LazyRoute) -> None:
    path = re.sub(r"\{[^}]*\}", "1", route.path)
    if route.any_query:
        return
    answer = client.get(f"{path}?nosuchname=1", headers={"X-Admin-Token": _TOKEN})

    assert (answer.status_code, answer.json()["code"]) == (400 if "/api/v" in path else 422, "unknown_parameter")
    assert answer.json()["field"] == "nosuchname"


def test_only_marked_routers_accept_unknown_parameters() -> None:
    exempt = {
        route.endpoint.__module__.rpartition(".")[2] for route in _routes(ROUTERS + REPLAY_ROUTERS) if route.any_query
    }

    assert exempt == _MARKED


@pytest.mark.parametrize(
    ("path", "nearest"),
    [("/api/search?sorce=x", "source"), ("/api/v1/jobs?stauts=x", "status"), ("/api/changes?jobid=1", "jobId")],
)
def test_unknown_query_parameter_names_the_nearest(client: Client, path: str, nearest: str) -> None:
    answer = client.get(path, headers={"X-Admin-Token": _TOKEN})

    assert f"did you mean {nearest}?" in answer.json()["error"]


def test_snapshot_refuses_a_query_before_it_looks(client: Client) -> None:
    answer = client.get("/api/snapshot/1?view=x")

    assert answer.json()["code"] == "unknown_parameter"
