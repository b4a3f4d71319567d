"""Refuses query parameters that a route does not declare (a misspelled filter would list everything), and NUL.

`late_routes.LateRoute` calls it for every route; a router made with `any_query=True` is exempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from fastapi.dependencies.models import Dependant
from starlette.datastructures import QueryParams
from starlette.types import Scope

from holdfast.api.errors import FieldRefused, UnknownParameter

_NAME_CHARS = 60


def known_parameters(route: Any) -> Sequence[str]:
    """Return the names of a route's query parameters."""
    return sorted(set(_named(route.dependant)))


def _named(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        yield field.alias
    for below in dependant.dependencies:
        yield from _named(below)


def check_query(scope: Scope, known: Sequence[str]) -> None:
    """Raise UnknownParameter, with the nearest name, for a parameter that is not `known`; FieldRefused for a NUL."""
    for name, value in QueryParams(scope["query_string"]).multi_items():
        if name not in known:
            shown = name[:_NAME_CHARS].encode("ascii", "replace").decode().replace("\x00", "?")
            nearest = get_close_matches(shown, known, n=1, cutoff=0.5)
            raise UnknownParameter(shown, nearest[0] if nearest else None, known)
        if "\x00" in value:
            raise FieldRefused(name, "it holds a NUL character")
