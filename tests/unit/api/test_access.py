"""Every route, asked by every role in every way of signing in, answers with the status that the one table asks for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jwt
import pytest
from fastapi import Response
from fastapi.routing import APIRoute
from starlette.types import Message, Receive, Scope, Send

from holdfast.api.middleware.identity import SIGN_IN_PATHS
from holdfast.api.response_cache import SEARCHES, KeptResponses, RawResponse, ResponseCache
from holdfast.api.routes import ROUTERS
from holdfast.api.routing import FORM_PATHS, LazyRoute
from holdfast.api.session_cookie import cookie_name
from holdfast.auth.credentials import csrf_token
from holdfast.auth.errors import CredentialWrong
from holdfast.auth.principal import SignInWay
from holdfast.auth.roles import LOWEST_ROLE, Permission, Role
from holdfast.auth.sessions import Browser, begin_session
from holdfast.auth.tokens import make_token
from holdfast.auth.users import ROLES, add_user
from holdfast.config import ApiSettings, AuthSettings, Settings
from holdfast.db.engine import Database
from holdfast.wiring import prepare
from holdfast.wiring.archive import Archive
from tests.api_routes import PERMISSIONS
from tests.client import Client, asking
from tests.clock import FakeClock

_ADMIN_TOKEN = "the admin token of this test"
_JWT_SECRET = "s" * 32
_ORIGIN = "http://127.0.0.1:8060"
_ROUTES = [
    (method, route.path)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute)
    for method in sorted(route.methods or ())
]
_SIGNING_IN = {"POST /api/session", "POST /api/auth/login"}
Doors = Callable[[str, str, dict[str, str]], int]


class Credential(NamedTuple):
    """One way of signing in with one role, and what is sent with a request."""

    role: Role
    way: SignInWay
    headers: dict[str, str]
    scopes: frozenset[Permission] = frozenset(Permission)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """One archive for all cases: nothing that is asked here gets as far as changing it."""
    api = ApiSettings(rate_limiting=False, admin_token=_ADMIN_TOKEN)
    settings = Settings(home=tmp_path_factory.mktemp("home"), api=api, auth=AuthSettings(jwt_secret=_JWT_SECRET))
    prepare(settings)
    cookie_name(settings)  # writes the id of the archive, which no transaction may be open for
    opened = Archive(settings=settings, database=Database(settings.database), clock=FakeClock())
    yield opened
    opened.database.close()


@pytest.fixture(scope="module")
def client(archive: Archive) -> Iterator[Client]:
    """One application for all cases."""
    with asking(archive) as made:
        yield made


@pytest.fixture(scope="module")
def credentials(archive: Archive) -> list[Credential]:
    """Every role in every way that it can sign in."""
    found = [
        Credential(Role.ANONYMOUS, SignInWay.ANONYMOUS, {}),
        Credential(Role.ADMINISTRATOR, SignInWay.ADMIN_TOKEN, {"x-admin-token": _ADMIN_TOKEN}),
        Credential(Role.ADMINISTRATOR, SignInWay.ADMIN_TOKEN, {"authorization": f"Bearer {_ADMIN_TOKEN}"}),
    ]
    now = int(archive.clock.now().timestamp())
    with archive.database.write() as session:
        for role in ROLES:
            user = add_user(session, archive.clock, name=f"the-{role}", role=role)
            browser = Browser(address="127.0.0.1", agent="test")
            secret = begin_session(session, archive.clock, user, browser, settings=archive.settings.auth).secret
            found.append(Credential(role, SignInWay.SESSION, session_headers(secret, archive.settings)))
            held = frozenset(one for one in Permission if role.is_at_least(LOWEST_ROLE[one]))
            for scopes in (held, frozenset({Permission.READ})):
                made = make_token(session, archive.clock, user, name="a test", scopes=scopes)
                found.append(Credential(role, SignInWay.TOKEN, {"authorization": f"Bearer {made.secret}"}, scopes))
            claims = {"sub": "x", "role": role.value, "aud": "holdfast", "iss": "holdfast", "iat": now, "exp": now + 60}
            signed = jwt.encode(claims, _JWT_SECRET, "HS256")
            found.append(Credential(role, SignInWay.JWT, {"authorization": f"Bearer {signed}"}))
    return found


def session_headers(secret: str, settings: Settings) -> dict[str, str]:
    """Return what a page of ours sends."""
    return {"cookie": f"{cookie_name(settings)}={secret}", "origin": _ORIGIN, "x-csrf-token": csrf_token(secret)}


def _path(template: str) -> str:
    return re.sub(r"\{[^}]*\}", "999999", template)


_LET_IN = 204


@pytest.fixture
def doors(client: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Doors]:
    """Ask through all layers up to the door of a route; what is let in is answered 204 there and does nothing."""

    async def let_in(_route: LazyRoute, scope: Scope, receive: Receive, send: Send) -> None:
        await Response(status_code=_LET_IN)(scope, receive, send)

    monkeypatch.setattr(LazyRoute, "handle", let_in)
    runner = asyncio.Runner()

    async def ask(method: str, path: str, headers: dict[str, str]) -> int:
        found: list[int] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            found.extend([message["status"]] if message["type"] == "http.response.start" else [])

        sent = {"host": "127.0.0.1:8060", **headers}
        raw = [(name.encode(), value.encode()) for name, value in sent.items()]
        # A parameter that no quick way reads: those that are let in come to the route.
        scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"x=1",
                 "headers": raw, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8060), "scheme": "http",
                 "http_version": "1.1", "root_path": "", "state": {}}  # fmt: skip
        await client.app(scope, receive, send)
        return found[0]

    yield lambda method, path, headers: runner.run(ask(method, _path(path), headers))
    runner.close()


def test_every_route_answers_every_role_and_every_way_of_signing_in(
    doors: Doors, credentials: list[Credential]
) -> None:
    wrong = []
    cases = 0
    assert {one.way for one in credentials} == set(SignInWay) - {SignInWay.LOCAL}
    for method, path in _ROUTES:
        permission = PERMISSIONS[f"{method} {path}"]
        for one in credentials:
            may = one.role.is_at_least(LOWEST_ROLE[permission]) and (
                permission is Permission.READ or permission in one.scopes
            )
            expected = _LET_IN if may else 401 if one.role is Role.ANONYMOUS else 403
            status = doors(method, path, one.headers)
            cases += 1
            if status != expected:
                wrong.append((method, path, one.role.value, one.way.value, status, expected))
    assert wrong == []
    assert cases > 1500


def test_token_that_may_only_administer_sees_the_fields_of_operators(archive: Archive, client: Client) -> None:
    with archive.database.write() as session:
        user = add_user(session, archive.clock, name="only-administers", role=Role.ADMINISTRATOR)
        made = make_token(session, archive.clock, user, name="a test", scopes=[Permission.ADMINISTER])
    answer = client.get("/api/admin/users", headers={"authorization": f"Bearer {made.secret}"})
    added = client.post(
        "/api/admin/users",
        json={"name": "invited", "role": "member"},
        headers={"authorization": f"Bearer {made.secret}"},
    )

    assert "only-administers" in {user["name"] for user in answer.json()["items"]}
    assert added.json()["link"].partition("#token=")[2]


WRONG = {
    "an empty bearer": {"authorization": "Bearer "},
    "a bearer without a space": {"authorization": "Bearer"},
    "null": {"authorization": "Bearer null"},
    "the beginning of the right one": {"authorization": f"Bearer {_ADMIN_TOKEN[:-1]}"},
    "one that looks alike": {"x-admin-token": _ADMIN_TOKEN.replace("a", "\u0430")},
    "one that is too long": {"x-admin-token": f"{_ADMIN_TOKEN} "[::-1]},
    "another scheme": {"authorization": f"Basic {_ADMIN_TOKEN}"},
    "a token that never was": {"authorization": "Bearer hf_" + "A" * 48},
    "a session that never was": {"cookie": "SESSION=" + "A" * 48},
    "an empty session": {"cookie": "SESSION="},
    "a right token beside a wrong one": {"authorization": f"Bearer {_ADMIN_TOKEN}", "x-admin-token": "guess"},
}


@pytest.mark.parametrize("shown", WRONG.values(), ids=WRONG)
def test_a_wrong_credential_is_refused_on_every_route_public_ones_too(
    doors: Doors, archive: Archive, shown: dict[str, str]
) -> None:
    shown = {name: value.replace("SESSION", cookie_name(archive.settings)) for name, value in shown.items()}
    for method, path in _ROUTES:
        # What a browser needs to sign in again, when its session has ended.
        if "cookie" in shown and (path in SIGN_IN_PATHS or f"{method} {path}" in _SIGNING_IN):
            continue
        assert doors(method, path, shown) == 401, (method, path)
    assert doors("GET", "/no/such/path", shown) == 401


@pytest.mark.parametrize(
    "changed",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"origin": ""}, {"x-csrf-token": ""},
     {"x-csrf-token": "x" * 43}, {"origin": "http://127.0.0.1:8061"}, {"origin": "http://127.0.0.1:8060.evil.example"}],
)  # fmt: skip
def test_a_change_with_a_session_needs_our_origin_and_its_token(
    doors: Doors, credentials: list[Credential], changed: dict[str, str]
) -> None:
    admin = next(one for one in credentials if (one.way, one.role) == (SignInWay.SESSION, Role.ADMINISTRATOR))
    headers = {name: value for name, value in {**admin.headers, **changed}.items() if value}
    changing = [
        (method, path)
        for method, path in _ROUTES
        if method not in ("GET", "HEAD", "OPTIONS")
        and (PERMISSIONS[f"{method} {path}"] is not Permission.READ or "origin" in changed)
        # Whose token is a field: see tests/contract/test_accounts.py.
        and (path not in FORM_PATHS or "origin" in changed)
    ]

    assert len(changing) > 30
    for method, path in changing:
        assert doors(method, path, headers) == 403, (method, path)


def test_a_program_with_a_token_sends_no_origin_and_no_csrf_token(client: Client) -> None:
    answer = client.post(
        "/api/v1/scheduler/rebalance/preview",
        headers={"x-admin-token": _ADMIN_TOKEN, "origin": "https://elsewhere.example"},
    )

    assert answer.status_code == 200


def test_the_session_of_another_user_is_as_good_as_none(client: Client, credentials: list[Credential]) -> None:
    member = next(one for one in credentials if (one.way, one.role) == (SignInWay.SESSION, Role.MEMBER))
    others = client.get("/api/admin/users/3/sessions", headers={"x-admin-token": _ADMIN_TOKEN}).json()["items"]
    tokens = client.get("/api/admin/users/3/tokens", headers={"x-admin-token": _ADMIN_TOKEN}).json()["items"]

    assert others
    assert tokens
    for path in [*(f"sessions/{one['id']}" for one in others), *(f"tokens/{one['id']}" for one in tokens)]:
        mine = client.request("DELETE", f"/api/account/{path}", headers=member.headers)
        never = client.request("DELETE", f"/api/account/{path.partition('/')[0]}/999999", headers=member.headers)
        assert (mine.status_code, never.status_code) == (404, 404)
        assert mine.json()["detail"] == never.json()["detail"]


def test_response_cache_passes_a_wrong_credential_to_the_route(archive: Archive) -> None:
    async def route(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 401, "headers": []})

    statuses: list[int] = []

    async def send(message: Message) -> None:
        statuses.extend([message["status"]] if message["type"] == "http.response.start" else [])

    async def receive() -> Message:
        return {"type": "http.request"}

    kept = KeptResponses(archive.clock, archive.database.raw_reads)
    threads = ThreadPoolExecutor(1)
    cache = ResponseCache(
        route,
        kept,
        threads,
        paths=SEARCHES,
        key=lambda _scope: ("search",),
        make=lambda _scope: RawResponse(200, [], b"{}"),
    )
    states: list[dict[str, Any]] = [{}, {"credential_error": CredentialWrong("the token")}]
    for state in states:
        scope = {"type": "http", "method": "GET", "path": "/api/search", "query_string": b"", "state": state}
        asyncio.run(cache(scope, receive, send))

    threads.shutdown()
    assert statuses == [200, 401]


def test_observer_reads_the_control_room_and_changes_nothing(client: Client, credentials: list[Credential]) -> None:
    observer = next(one for one in credentials if (one.way, one.role) == (SignInWay.SESSION, Role.OBSERVER))
    reading = ("/api/v1/jobs", "/api/v1/sources", "/api/domains", "/metrics", "/api/admin/workers", "/api/alerts")
    read = {path: client.get(path, headers=observer.headers).status_code for path in reading}
    changes = ["POST /api/v1/jobs", "POST /api/v1/sources", "DELETE /api/frontier", "POST /api/admin/cleanup"]
    refused = {one: client.request(*one.split(), headers=observer.headers).status_code for one in changes}
    closed = {
        path: client.get(path, headers=observer.headers).status_code
        for path in ("/api/admin/reports", "/api/admin/users")
    }

    assert read == dict.fromkeys(reading, 200)
    assert set(refused.values()) | set(closed.values()) == {403}
