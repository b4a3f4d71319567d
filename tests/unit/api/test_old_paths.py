"""Every path of the older documents is answered by the function of the current one."""

from __future__ import annotations

import pytest

from holdfast.api.routing import LazyRoute
from holdfast.old_spellings import OLD_LOGIN_FIELD, OLD_PATHS
from tests.api_routes import ROUTES
from tests.client import Client
from tests.unit.api.conftest import MakeClient

_PAIRS = [(current, old) for current, several in OLD_PATHS.items() for old in several]


def _route(row: str) -> LazyRoute:
    method, _, path = row.partition(" ")
    [found] = [route for route in ROUTES if route.path == path and method in route.methods]
    return found


@pytest.mark.parametrize(("current", "old"), _PAIRS, ids=[old for _, old in _PAIRS])
def test_old_path_has_function_permission_and_spelling_of_the_current_one(current: str, old: str) -> None:
    new, former = _route(current), _route(old)

    assert former.endpoint is new.endpoint
    assert (former.permission, former.spelling, former.is_seeding) == (new.permission, new.spelling, new.is_seeding)
    assert (former.include_in_schema, new.unique_id) == (False, former.unique_id)


@pytest.mark.parametrize(("current", "old"), _PAIRS, ids=[old for _, old in _PAIRS])
def test_old_path_answers_as_the_current_one(make_client: MakeClient, current: str, old: str) -> None:
    # Streams do not end; each is refused alike without the right to watch.
    client: Client = make_client(admin_token="a token of sixteen or more", rate_limiting=False)
    answers = []
    for row in (current, old):
        method, _, path = row.partition(" ")
        answers.append(client.request(method, path.replace("{id}", "1")))
    now, former = answers

    assert former.status_code == now.status_code != 404 or "{id}" in old
    assert former.headers.get("content-type") == now.headers.get("content-type")


def test_sign_in_takes_the_old_name_of_the_field(make_client: MakeClient) -> None:
    client = make_client()
    codes = [
        client.post("/api/session", json={field: "ada", "password": "wrong password"}).json()["code"]
        for field in ("name", OLD_LOGIN_FIELD)
    ]

    assert codes[0] == codes[1] == "sign_in_failed"
