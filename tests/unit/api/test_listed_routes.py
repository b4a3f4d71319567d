"""A file of routes is loaded by the first request to one of them; until then a table says what there is."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Awaitable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from threading import Event
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.datastructures import State
from starlette.requests import Request
from starlette.routing import BaseRoute

from holdfast.api import routes
from holdfast.api.app import assemble
from holdfast.api.dependencies import held, open_session
from holdfast.api.job_dependencies import open_frontier, open_turns, open_write
from holdfast.api.late_routes import LateRouter, RouteTable
from holdfast.api.listed_routes import ANY, ListedRouter
from holdfast.api.loading import BUILDING, LOADING, LateState, load
from holdfast.api.middleware.request_ids import RequestIds
from holdfast.api.permissions import PERMISSIONS, ROUTES
from holdfast.auth.roles import Permission
from holdfast.clock import SystemClock
from holdfast.log import captured
from holdfast.metrics import ServerMetrics
from tests import patience
from tests.client import APP, Client
from tests.unit.api.conftest import MakeArchive

_HEAD = "from holdfast.api.late_routes import LateRouter\nrouter = LateRouter(prefix='/{name}')\n"
_LEAF = _HEAD + "@router.get('/leaf')\ndef leaf() -> dict[str, str]:\n    return {{'of': '{name}'}}\n"
_SLOW = "import time\nfrom pathlib import Path\nwith Path(__file__).with_suffix('.loads').open('a') as loads:\n"
_SLOW += "    loads.write('x')\ntime.sleep(0.2)\n" + _LEAF


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of files of routes that no process has loaded yet."""
    folder = tmp_path / "late_leaves"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[name]


def _listed(package: Path, name: str, source: str, *rows: str) -> ListedRouter:
    (package / f"{name}.py").write_text(source.format(name=name))
    return ListedRouter(package.name, f"{name}.router", rows or (f"GET /{name}/leaf",))


def _application(*routers: ListedRouter) -> FastAPI:
    app, table = FastAPI(openapi_url=None), RouteTable(route for router in routers for route in router.routes)
    app.router.routes.extend(table.routes)
    app.router.middleware_stack = table.in_front_of(app.router.app)
    return app


def _methods(found: Iterable[BaseRoute]) -> list[tuple[str, str]]:
    return [(method, route.path) for route in found if isinstance(route, APIRoute) for method in route.methods or ()]


def test_the_table_lists_each_route_of_each_router_and_nothing_else() -> None:
    for where, rows in ROUTES.items():
        listed = ListedRouter(routes.__name__, where, rows)
        declared, told = _methods(listed.load().routes), _methods(listed.routes)
        assert sorted(told) == sorted(declared), where
        # Of two routes that overlap the first is taken.
        assert list(dict.fromkeys(path for _, path in told)) == list(dict.fromkeys(path for _, path in declared)), where


def test_every_router_of_every_file_stands_in_the_table() -> None:
    found = set()
    for file in iter_modules(routes.__path__):
        for name, value in vars(import_module(f"{routes.__name__}.{file.name}")).items():
            if isinstance(value, LateRouter):
                found.add(f"{file.name}.{name}")

    assert found == set(ROUTES)


def test_a_row_for_any_method_is_a_route_for_each(package: Path) -> None:
    listed = _listed(package, "any", _LEAF, "ANY /any/leaf")

    assert [route.methods for route in listed.routes] == [{method} for method in ANY]


def test_a_file_is_loaded_by_a_request_that_it_answers_and_by_no_other(package: Path) -> None:
    listed = [_listed(package, name, _LEAF) for name in ("oak", "elm")]
    client = Client(_application(*listed))
    before = [router.module for router in listed if router.module in sys.modules]

    asked = [client.get("/oak"), client.get("/oak/leaf/"), client.get("/"), client.request("PUT", "/oak/leaf")]
    refused = [router.module for router in listed if router.module in sys.modules]
    answer = client.get("/oak/leaf")
    client.close()

    assert before == refused == []
    assert [one.status_code for one in asked] == [404, 404, 404, 405]
    assert answer.json() == {"of": "oak"}
    assert [router.module for router in listed if router.module in sys.modules] == [listed[0].module]


def test_many_first_requests_at_once_load_a_file_once_and_others_are_answered_meanwhile(package: Path) -> None:
    slow, quick = _listed(package, "slow", _SLOW), _listed(package, "quick", _LEAF)
    app = _application(slow, quick)
    ended: list[str] = []

    async def ask(client: httpx.AsyncClient, name: str) -> httpx.Response:
        answer = await client.get(f"/{name}/leaf")
        ended.append(name)
        return answer

    async def ask_all() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=APP) as client:
            await ask(client, "quick")
            return await asyncio.gather(*(ask(client, name) for name in ("slow", "slow", "quick", "slow", "slow")))

    answers = asyncio.run(ask_all())

    assert [answer.json()["of"] for answer in answers] == ["slow", "slow", "quick", "slow", "slow"]
    assert ended == ["quick", "quick", *["slow"] * 4]
    assert (package / "slow.loads").read_text() == "x"


def test_a_file_that_cannot_be_loaded_fails_its_own_requests_until_it_can(
    package: Path, monkeypatch: pytest.MonkeyPatch, make_archive: MakeArchive
) -> None:
    for path in ("/torn/leaf", "/torn/missing", "/whole/leaf"):
        monkeypatch.setitem(PERMISSIONS, f"GET {path}", Permission.READ)
    torn = _listed(package, "torn", "import nothing_of_this_name\n", "GET /torn/leaf", "GET /torn/missing")
    app = assemble("Torn", (torn, _listed(package, "whole", _LEAF)), make_archive())
    client = Client(RequestIds(app, SystemClock(), State({"metrics": ServerMetrics(started=0.0)})))

    with captured() as logged:
        broken = client.get("/torn/leaf", headers={"x-request-id": "mine"})
    whole = client.get("/whole/leaf")
    _listed(package, "torn", _LEAF)
    mended, missing = client.get("/torn/leaf"), client.get("/torn/missing")
    client.close()

    assert (broken.status_code, broken.json()["code"]) == (500, "error")
    assert "nothing_of_this_name" not in broken.text
    assert [line["request_id"] for line in logged if line["event"] == "api.broke"] == ["mine"]
    assert (whole.status_code, mended.status_code, mended.json()) == (200, 200, {"of": "torn"})
    # The table lists it, and the file does not have it.
    assert missing.status_code == 500


def test_what_is_promised_is_made_once_by_whoever_asks_first() -> None:
    state, made = LateState(), list[object]()

    def make() -> object:
        made.append(object())
        return made[-1]

    state.promise("tree", make)
    state.age = 3

    before = state.is_made("tree")
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: id(state.tree), range(64)))

    assert (before, state.is_made("tree"), len(made), len(found), state.age) == (False, True, 1, 1, 3)
    with pytest.raises(AttributeError):
        _ = state.leaf


def test_the_event_loop_goes_on_while_another_thread_loads_what_a_route_asks_for() -> None:
    app, loads, loaded = FastAPI(), Event(), Event()
    app.state = state = LateState()
    state.turn = asyncio.Semaphore(1)

    def made(name: str) -> str:
        with LOADING:
            return name

    for name in ("search", "job_service", "frontier"):
        state.promise(name, partial(made, name))

    def load_slowly() -> None:
        with LOADING:
            loads.set()
            assert loaded.wait(patience.deadline(20)), "the event loop waited for the import"

    async def ask() -> list[Any]:
        request = Request({"type": "http", "app": app, "client": None, "headers": []})
        loading = asyncio.create_task(asyncio.to_thread(load_slowly))
        await asyncio.to_thread(loads.wait)
        wanted: tuple[Awaitable[Any], ...] = (
            held("search")(request), open_turns(request), open_frontier(request), anext(open_write(request))
        )  # fmt: skip
        asked = [asyncio.ensure_future(one) for one in wanted]
        # All of them have begun, and none has what it wants.
        for _ in range(10):
            await asyncio.sleep(0)
        assert not any(task.done() for task in asked)
        assert not state.turn.locked(), "who waits for a module does not keep others from writing"
        loaded.set()
        await loading
        return [await task for task in asked]

    search, turns, frontier, admin = asyncio.run(ask())

    assert (search, turns.job_service, frontier.served) == ("search", "job_service", "frontier")
    assert admin.job_service == "job_service"


def test_what_is_made_is_given_while_something_else_is_made_or_loaded() -> None:
    state, makes, made = LateState(), Event(), Event()

    def make_slowly() -> bool:
        makes.set()
        return made.wait(patience.deadline(20))

    state.promise("slow", make_slowly)
    state.promise("quick", lambda: "quick")
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(lambda: state.slow)
        assert makes.wait(patience.deadline(20))
        quick = threads.submit(lambda: state.quick).result(patience.deadline(20))
        made.set()

    assert (quick, slow.result()) == ("quick", True)


@contextmanager
def _another_thread_loads() -> Iterator[None]:
    loads, loaded = Event(), Event()

    def hold() -> None:
        with LOADING:
            loads.set()
            loaded.wait(patience.deadline(30))

    with ThreadPoolExecutor(1) as threads:
        threads.submit(hold)
        assert loads.wait(patience.deadline(20))
        try:
            yield
        finally:
            loaded.set()


def test_a_module_that_is_there_is_given_while_another_is_loaded() -> None:
    with ThreadPoolExecutor(1) as threads, _another_thread_loads():
        assert threads.submit(load, "json").result(patience.deadline(10)) is sys.modules["json"]


def test_a_module_that_is_half_done_is_waited_for(package: Path) -> None:
    (package / "half.py").write_text("import time\nfrom pathlib import Path\ntime.sleep(0.2)\nwhole = True\n")
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: load(f"{package.name}.half").whole, range(8)))

    assert found == [True] * 8


def test_no_file_of_the_api_loads_a_module_past_the_one_way_to_do_so() -> None:
    folder = Path(routes.__file__).parent.parent
    files = [*folder.glob("routes/*.py"), *folder.glob("live/*.py"), *folder.glob("*.py")]
    past = {file.name for file in files if re.search(r"import_module|\bimportlib\b|__import__", file.read_text())}

    assert past == {"loading.py"}


def test_many_first_requests_wait_on_few_threads(package: Path) -> None:
    app = _application(_listed(package, "ash", _LEAF))

    def workers() -> int:
        return sum(thread.name.startswith("AnyIO") for thread in threading.enumerate())

    async def ask() -> tuple[int, list[httpx.Response]]:
        before = workers()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=APP) as client:
            with _another_thread_loads():
                asked = [asyncio.create_task(client.get("/ash/leaf")) for _ in range(20)]
                for _ in range(200):
                    await asyncio.sleep(0)
                assert BUILDING.statistics().tasks_waiting == len(asked) - BUILDING.total_tokens
                most = workers() - before
            return most, await asyncio.gather(*asked)

    most, answers = asyncio.run(ask())

    assert most <= BUILDING.total_tokens
    assert [answer.json() for answer in answers] == [{"of": "ash"}] * 20


def test_no_route_holds_a_session_while_it_waits_for_its_turn_to_write() -> None:
    def asked(dependant: Dependant) -> set[object]:
        return {dependant.call}.union(*(asked(one) for one in dependant.dependencies))

    found = [(route.path, asked(route.dependant)) for router in routes.ROUTERS for route in router.routes]

    # There are five of them: as many changes that wait would keep every reader waiting, for ten seconds.
    assert [path for path, calls in found if {open_session, open_write} <= calls] == []
    assert sum(open_write in calls for _, calls in found) > 20
