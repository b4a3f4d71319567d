"""The OpenAPI document and an HTML page of it; strict environments have neither."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse

from holdfast.api.dependencies import ArchiveDep
from holdfast.api.routes.archive import page
from holdfast.api.routing import LazyRouter
from holdfast.auth.roles import Permission
from holdfast.errors import NotFound
from holdfast.replay.links import escape
from holdfast.wiring.archive import Archive

_CODE: Final = re.compile(r"`([^`\n]+)`")


class Parameter(NamedTuple):
    name: str
    place: str
    is_required: bool
    kind: str
    description: str


class DocumentedRoute(NamedTuple):
    verb: str
    path: str
    group: str
    permission: str
    description: str
    parameters: tuple[Parameter, ...]
    statuses: tuple[tuple[str, str], ...]
    answer: tuple[str, ...]
    """The names of the fields of a successful response."""


def operations(document: Mapping[str, Any]) -> Iterator[DocumentedRoute]:
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            yield DocumentedRoute(
                verb=verb.upper(),
                path=path,
                group=(operation.get("tags") or ["other"])[0],
                permission=operation.get("x-permission", ""),
                description=operation.get("description", ""),
                parameters=tuple(_parameters(operation, document)),
                statuses=tuple((status, answer["description"]) for status, answer in operation["responses"].items()),
                answer=tuple(_fields(operation, document)),
            )


def _parameters(operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Parameter]:
    for given in operation.get("parameters", ()):
        yield Parameter(
            given["name"],
            given["in"],
            given.get("required", False),
            _kind(given["schema"], document),
            given.get("description", ""),
        )
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        schema = _resolved(body, document)
        for name, field in schema.get("properties", {}).items():
            yield Parameter(
                name, "body", name in schema.get("required", ()), _kind(field, document), field.get("description", "")
            )


def _fields(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    for status in ("200", "201"):
        content = operation["responses"].get(status, {}).get("content", {}).get("application/json", {})
        schema = _resolved(content.get("schema", {}), document)
        if schema.get("type") == "array":
            schema = _resolved(schema.get("items", {}), document)
        if schema.get("properties"):
            return list(schema["properties"])
    return []


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Mapping[str, Any] = document["components"]["schemas"][name] if name else schema
    return found


def _kind(schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    choices = [choice for choice in schema.get("anyOf", [schema]) if choice.get("type") != "null"]
    first = _resolved(choices[0], document) if choices else schema
    words = [first.get("format") or first.get("type", "any")]
    if "enum" in first:
        words = [" or ".join(f"`{word}`" for word in first["enum"])]
    bounds = [(first.get("minimum"), first.get("maximum")), (first.get("minLength"), first.get("maxLength"))]
    for low, high in bounds:
        if low is not None and high is not None:
            words.append(f"{low} to {high}")
        elif low is not None or high is not None:
            words.append(f"at least {low}" if high is None else f"at most {high}")
    if schema.get("default") not in (None, ""):
        words.append(
            f"default `{str(schema['default']).lower() if isinstance(schema['default'], bool) else schema['default']}`"
        )
    return ", ".join(map(str, words))


def reference_page(document: Mapping[str, Any]) -> str:
    """Return the routes as an HTML page; all text is escaped, and backticks become code."""
    title = f"{document['info']['title']} API"
    parts = [f"<h1>{escape(title)}</h1><p>The same, for programs: <a href=/openapi.json>openapi.json</a></p>"]
    for operation in operations(document):
        parts.append(f"<h2><span class=verb>{operation.verb}</span> <code>{escape(operation.path)}</code></h2>")
        parts.append(f"<p>{_marked(operation.description)} <em>{escape(operation.permission)}</em></p>")
        if operation.parameters:
            rows = "".join(
                f"<tr><td><code>{escape(given.name)}</code><td>{_marked(given.kind)}<td>{_marked(given.description)}"
                for given in operation.parameters
            )
            parts.append(f"<table>{rows}</table>")
        if operation.answer:
            parts.append(
                f"<p>Answers with {', '.join(f'<code>{escape(name)}</code>' for name in operation.answer)}.</p>"
            )
        parts.append(
            "<p>" + " · ".join(f"{code} {_marked(description)}" for code, description in operation.statuses) + "</p>"
        )
    return page(title, "".join(parts))


def _marked(text: str) -> str:
    # Escape first: only the tags that we insert are markup.
    return _CODE.sub(r"<code>\1</code>", escape(text)).replace("\n\n", "</p><p>")


router = LazyRouter(tags=["reference"], include_in_schema=False, any_query=True)


@router.get("/openapi.json", Permission.READ)
def openapi(request: Request, archive: ArchiveDep) -> JSONResponse:
    """Return the OpenAPI document."""
    return JSONResponse(_document(request, archive))


@router.get("/docs", Permission.READ)
def docs(request: Request, archive: ArchiveDep) -> HTMLResponse:
    """Return the routes as a page, which loads nothing from elsewhere and runs no script."""
    return HTMLResponse(reference_page(_document(request, archive)))


def _document(request: Request, archive: Archive) -> dict[str, Any]:
    if archive.settings.api.strict:
        raise NotFound("the reference is not served here; docs/api.md has it")
    document: dict[str, Any] = request.app.openapi()
    return document
