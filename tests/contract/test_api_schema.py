"""The OpenAPI document keeps its word: whatever is asked, nothing breaks, and each answer has the promised form."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import schemathesis
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from holdfast.api.routes import ROUTERS
from tests.archive import Shot, build_archive, days_later
from tests.client import APP, Client, asking

_HOME = "https://example.org/"
_SHOTS = [
    Shot(url=_HOME),
    Shot(url="https://example.org/a?b=c", body="<title>A</title><p>Other words.</p>"),
    Shot(url=_HOME, body="<title>New</title><p>Later words.</p>", moment=days_later(10), execution=2),
]
_FREE_FORM = ("/web/", "/api/snapshots/raw/", "/cdx", "/api/exports/", "/wacz", "/api/executions")
"""Their answers are archived pages and files, not objects of the schema; they must not break, that is all."""
_OPERATIONS = sorted(
    (route.path.replace(":path}", "}"), method.lower())
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and route.include_in_schema
    for method in route.methods or ()
)


_SEED = os.environ.get("HOLDFAST_SCHEMA_SEED") or f"{datetime.now(UTC):%Y-%m-%d}"
"""Other examples every day, the same ones all day and in every worker: what failed can be asked again by its seed."""


class _Served(NamedTuple):
    client: Client
    schema: Any


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Served]:
    """An archive with a few captures, a client that may ask as often as it likes, and the schema that it was told."""
    home: Path = tmp_path_factory.mktemp("home")
    built = build_archive(home, _SHOTS)
    api = built.settings.api.model_copy(update={"rate_limiting": False})
    archive = replace(built, settings=built.settings.model_copy(update={"api": api}))
    with asking(archive) as client:
        yield _Served(client, schemathesis.openapi.from_dict(client.get("/openapi.json").json()))
    built.database.close()


def test_every_route_is_in_the_document(served: _Served) -> None:
    told = {(path, method) for path, verbs in served.schema.raw_schema["paths"].items() for method in verbs}

    assert told == set(_OPERATIONS)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("path", "method"), _OPERATIONS)
def test_whatever_is_asked_the_answer_is_as_promised(
    served: _Served, path: str, method: str, mode: GenerationMode
) -> None:
    checks: list[Any] = [not_a_server_error]
    if not path.startswith(_FREE_FORM):
        checks += [response_schema_conformance, status_code_conformance]

    @seed(f"{_SEED} {method} {path} {mode}")
    @settings(
        max_examples=12, deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=served.schema[path][method.upper()].as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        case.validate_response(_asked(served.client, case), checks=checks)

    print(f"asked again by: HOLDFAST_SCHEMA_SEED={_SEED}")  # shown where the test fails
    with suppress(Unsatisfiable):  # what takes no input cannot be asked wrongly
        ask()


def _asked(client: Client, case: Any) -> httpx.Response:
    wish = case.as_transport_kwargs(base_url=APP)
    content = json.dumps(wish["json"]) if wish.get("json") is not None else wish.get("data")
    headers = {
        name: value for name, value in wish.get("headers", {}).items() if value.isascii() and value.isprintable()
    }
    try:
        return client.request(
            wish["method"], wish["url"], params=wish.get("params") or None, headers=headers, content=content
        )
    except httpx.InvalidURL:  # longer than the client itself would send
        reject()
