"""Refuses a query with a parameter that the route does not know: a misspelled filter would list everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant

from holdfast.api.errors import UnknownParameter

_NAME_CHARS = 60


def known_parameters(route: Any) -> Sequence[str]:
    """Return the names of a route's query parameters."""
    return sorted(set(_named(route.dependant)))


def _named(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        yield field.alias
    for below in dependant.dependencies:
        yield from _named(below)


async def refuse_unknown(request: Request) -> None:
    """Refuse, with UnknownParameter, the first parameter that the route does not know, and name the nearest one."""
    if not request.scope.get("query_string"):
        return
    known = known_parameters(request.scope["route"])
    for name in request.query_params:
        if name not in known:
            shown = name[:_NAME_CHARS].encode("ascii", "replace").decode().replace("\x00", "?")
            nearest = get_close_matches(shown, known, n=1, cutoff=0.5)
            raise UnknownParameter(shown, nearest[0] if nearest else None, known)


KNOWN_ONLY = Depends(refuse_unknown)
"""Put into `dependencies=[…]` of a router: its routes take no parameter that they do not name."""
