"""Record responses: encodes what routes return, and describes it in the OpenAPI document.

A route whose function returns a record, or a list or mapping of records, needs no response model. The caller's
role decides which fields are sent: readers get public fields, members those for members, observers and
operators all.
"""

from __future__ import annotations

import ast
import inspect
import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import date, datetime
from enum import Enum
from functools import cache, wraps
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import TypeAdapter
from starlette.responses import Response

from holdfast.api.schemas.source_config import SourceConfiguration
from holdfast.auth.principal import Principal
from holdfast.auth.roles import Permission, Role
from holdfast.records import Audience, RecordField, Spelling, encode, is_record, repeated_fields, shown_fields, spelled

Schema = dict[str, Any]
_AUDIENCE: ContextVar[Audience] = ContextVar("audience", default=Audience.PUBLIC)
_NAMED: Mapping[str, Any] = {"SourceConfiguration": SourceConfiguration}
_PLAIN: Mapping[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    Path: {"type": "string"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    type(None): {"type": "null"},
    Any: {},
}


def answer_for(principal: Principal) -> None:
    """Select the fields that the caller may see for the current response."""
    is_member = principal.role.is_at_least(Role.MEMBER)
    # A token may be limited to administration.
    may_watch = principal.may(Permission.WATCH) or principal.may(Permission.ADMINISTER)
    _AUDIENCE.set(Audience.OPERATOR if may_watch else Audience.MEMBER if is_member else Audience.PUBLIC)


def has_records(returned: Any) -> bool:
    """Return whether a return annotation is a record, or a list or mapping of records."""
    return any(map(is_record, _named(returned)))


def _named(annotation: Any) -> Iterator[Any]:
    yield get_origin(annotation) or annotation
    for one in get_args(annotation):
        yield from _named(one)


def record_response(
    answer: Any, *, status: int = 200, spelling: Spelling = Spelling.CAMEL, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the response that holds a record; for functions that respond on a thread of their own."""
    text = json.dumps(encode(answer, _AUDIENCE.get(), spelling), ensure_ascii=False, separators=(",", ":"))
    # A page may contain half of a surrogate pair, which is not valid UTF-8.
    return Response(text.encode("utf-8", "replace"), status, headers, media_type="application/json")


def encoding(endpoint: Callable[..., Any], status: int, spelling: Spelling) -> Callable[..., Any]:
    """Wrap an endpoint so that it responds with the encoded record."""

    def response(answer: Any, given: Response | None) -> Response:
        if isinstance(answer, Response):
            return answer
        # A route with a `response` parameter sets its headers and status on it; copy them.
        made = record_response(answer, status=(given and given.status_code) or status, spelling=spelling)
        if given is not None:
            made.headers.raw.extend(given.headers.raw)
        return made

    @wraps(endpoint)
    def served(*args: Any, **values: Any) -> Response:
        return response(endpoint(*args, **values), values.get("response"))

    @wraps(endpoint)
    async def awaited(*args: Any, **values: Any) -> Response:
        return response(await endpoint(*args, **values), values.get("response"))

    return awaited if inspect.iscoroutinefunction(endpoint) else served


def describe_records(document: Schema, routes: Iterable[Any]) -> None:
    components = document["components"]["schemas"]
    for route in routes:
        if not route.include_in_schema or not has_records(route.returned):
            continue
        schema = add_schemas(route.returned, route.spelling, components)
        for method in route.methods:
            responses = document["paths"][route.path_format][method.lower()]["responses"]
            responses[str(route.status_code or 200)]["content"] = {"application/json": {"schema": schema}}


def add_schemas(annotation: Any, spelling: Spelling, components: dict[str, Schema]) -> Schema:
    """Return the JSON schema of an annotation; adds its records to the components of the document."""
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    kind, inner = get_origin(annotation), get_args(annotation)
    if kind in (Union, types.UnionType):
        return {"anyOf": [add_schemas(one, spelling, components) for one in inner]}
    if kind is Literal:
        return {"type": "string", "enum": list(inner)}
    if kind in (list, tuple):
        return {"type": "array", "items": add_schemas(inner[0], spelling, components)}
    if kind is dict:
        return {"type": "object", "additionalProperties": add_schemas(inner[1], spelling, components)}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {"type": "string", "enum": [one.value for one in annotation]}
    cls = kind or annotation
    name = "_".join([cls.__name__, *(one.__name__ for one in inner)])
    keys = [spelled(cls, one.name, spelling) for one in shown_fields(cls)]
    if list(components.get(name, {}).get("properties", keys)) != keys:
        name = f"{name}_{spelling.value}"  # another route returns it in the other spelling
    if name not in components:
        components[name] = {}  # set before its fields: a record may contain itself
        components[name] = _record_schema(cls, inner, spelling, components)
    return {"$ref": f"#/components/schemas/{name}"}


def _record_schema(cls: type, inner: tuple[Any, ...], spelling: Spelling, components: dict[str, Schema]) -> Schema:
    given = dict(zip(getattr(cls, "__parameters__", ()), inner, strict=True))
    descriptions, properties = _descriptions(cls), {}
    fields = shown_fields(cls)
    least = min((one.audience for one in fields), default=None)
    for one in fields:
        schema = _named_schema(one, components) or add_schemas(_filled(one.type, given), spelling, components)
        if one.name in descriptions:
            schema["description"] = descriptions[one.name]
        properties[spelled(cls, one.name, spelling)] = schema
    required = [spelled(cls, one.name, spelling) for one in fields if one.audience == least and not one.is_left_out]
    for old, name in repeated_fields(cls).items():
        current = spelled(cls, name, spelling)
        required += [spelling.of(old)] if current in required else []
        properties[spelling.of(old)] = properties[current] | {"description": f"The same as `{current}`."}
    return {
        "type": "object",
        "description": inspect.cleandoc(cls.__doc__ or ""),
        "properties": properties,
        # Less privileged callers get the fields of the lowest audience, and only those are always present.
        "required": required,
    }


def _named_schema(field: RecordField, components: dict[str, Schema]) -> Schema | None:
    """Add a field's own schema (`_NAMED`) to the components and return a reference to it; None without one."""
    if field.schema is None:
        return None
    if field.schema not in components:
        schema = TypeAdapter(_NAMED[field.schema]).json_schema(ref_template="#/components/schemas/{model}")
        components.update(schema.pop("$defs", {}))
        components[field.schema] = schema
    return {"$ref": f"#/components/schemas/{field.schema}"}


def _filled(annotation: Any, given: Mapping[Any, Any]) -> Any:
    if isinstance(annotation, TypeVar):
        return given[annotation]
    parameters = getattr(annotation, "__parameters__", ())
    return annotation[tuple(given[one] for one in parameters)] if parameters else annotation


@cache
def _descriptions(cls: type) -> dict[str, str]:
    [declared] = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls))).body
    assert isinstance(declared, ast.ClassDef)
    found: dict[str, str] = {}
    for base in filter(is_record, cls.__bases__):
        found |= _descriptions(base)
    for field, below in zip(declared.body, declared.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            found[field.target.id] = inspect.cleandoc(str(ast.literal_eval(below.value)))
    found |= {name: inspect.getdoc(one) or "" for name, one in vars(cls).items() if isinstance(one, property)}
    return found
