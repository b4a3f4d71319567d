"""The OpenAPI document keeps its word: whatever is asked, nothing breaks, and each answer has the promised form."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from holdfast.api.routes import ROUTERS
from tests.schema_bed import ServedSchema, asked, serving_schema

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


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSchema]:
    """An archive with a few captures, a client that may ask as often as it likes, and the schema that it was told."""
    with serving_schema(tmp_path_factory.mktemp("home")) as opened:
        yield opened


def test_every_route_is_in_the_document(served: ServedSchema) -> None:
    told = {(path, method) for path, verbs in served.schema.raw_schema["paths"].items() for method in verbs}

    assert told == set(_OPERATIONS)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("path", "method"), _OPERATIONS)
def test_whatever_is_asked_the_answer_is_as_promised(
    served: ServedSchema, path: str, method: str, mode: GenerationMode
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
        # Made-up credentials are refused before a route is asked: half of the examples come without any.
        case.validate_response(asked(served.client, case, signed=mode is GenerationMode.NEGATIVE), checks=checks)

    print(f"asked again by: HOLDFAST_SCHEMA_SEED={_SEED}")  # shown where the test fails
    with suppress(Unsatisfiable):  # what takes no input cannot be asked wrongly
        ask()
