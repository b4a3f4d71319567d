"""What is written about the API keeps up with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from holdfast.api.routes.reference import operations, reference_page
from holdfast.auth.roles import Permission
from tests.client import Client

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "api.md"


def test_every_route_is_in_the_docs(client: Client) -> None:
    written = _PAGE.read_text()
    told = list(operations(client.get("/openapi.json").json()))

    missing = [f"{one.verb} {one.path}" for one in told if f"### {one.verb} `{one.path}`" not in written]
    assert len(told) > 20
    assert missing == [], "run `make docs`"


def test_every_route_says_what_it_does_for_whom_and_how_it_fails(client: Client) -> None:
    for one in operations(client.get("/openapi.json").json()):
        assert one.description, one.path
        assert one.permission in set(Permission), one.path
        assert {"400", "414", "429", "503"} <= {status for status, _ in one.statuses}, one.path


def test_management_parameters_are_described_and_requests_have_examples(client: Client) -> None:
    document = client.get("/openapi.json").json()
    managing = [(f"{verb} {path}", operation) for path, verbs in document["paths"].items() if _MANAGED.match(path)
                for verb, operation in verbs.items()]  # fmt: skip

    assert len(managing) > 30
    for name, operation in managing:
        for one in operation.get("parameters", ()):
            assert one.get("description"), (name, one["name"])
        # Responses are records: the text below each field says what it holds.
        body = operation.get("requestBody", {}).get("content", {})
        schema = body.get("application/json", {}).get("schema", {})
        assert not schema or _has_example(schema, document), (name, schema)


_MANAGED = re.compile(r"/api/(v1|v2)/|/api/admin/jobs")


def _has_example(schema: dict[str, Any], document: dict[str, Any]) -> bool:
    """Return whether an object, or what a list holds, or one of its fields, is shown by an example."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found = document["components"]["schemas"][name] if name else schema
    below = [found.get("items", {}), *found.get("properties", {}).values()]
    return "examples" in found or any(_has_example(one, document) for one in below if one)


def test_every_error_answer_has_the_one_body(client: Client) -> None:
    document = client.get("/openapi.json").json()
    other = [
        (path, status)
        for path, verbs in document["paths"].items()
        for operation in verbs.values()
        for status, answer in operation["responses"].items()
        if status >= "400" and status != "416" and "ErrorBody" not in str(answer) and "health" not in path
    ]

    assert other == []
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_admin_routes_say_how_to_show_the_token_and_others_ask_for_none(client: Client) -> None:
    document = client.get("/openapi.json").json()
    schemes = document["components"]["securitySchemes"]

    for verbs in document["paths"].values():
        for operation in verbs.values():
            named = {name for choice in operation.get("security", ()) for name in choice}
            assert named == (set() if operation["x-permission"] == "read" else set(schemes))
    assert document["openapi"].startswith("3.1")


def test_the_page_escapes_what_it_shows() -> None:
    document = {"info": {"title": "<b>"}, "paths": {"/<x>": {"get": {"responses": {}, "description": "<script>"}}}}

    assert "<script>" not in reference_page(document)
    assert "<b>" not in reference_page(document)
    assert "/&lt;x&gt;" in reference_page(document)


def test_the_page_names_every_route(client: Client) -> None:
    shown = client.get("/docs").text

    assert "/api/replay/resolve" in shown
    assert "<script" not in shown
