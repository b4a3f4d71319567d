"""The address of a result's near-duplicates asks what the request asked: every field, through the route itself."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date
from typing import Any

import pytest
from fastapi import FastAPI

from holdfast.api.routes.search import Asked
from holdfast.search.near_duplicates import similar_url
from holdfast.search.search import ResultKind, SearchRequest, Sort
from tests.client import Client

_OTHERS: dict[str, Any] = {
    "q": 'flu "shot" & site:example.org', "source": "hc", "sort": Sort.NEWEST, "view": ResultKind.PAGES,
    "non_2xx": True, "duplicates": True, "noise": True, "start": date(2020, 1, 2), "end": date(2021, 3, 4),
    "language": "und", "type": "pdf", "status": "4xx", "host": "example.org:8080", "passages": 3,
    "like": 7,
}  # fmt: skip
# What a list of near-duplicates does not take over.
_LEFT = {"page", "page_size", "explain", "similar", "similar_to"}


@pytest.mark.parametrize("name", [one.name for one in fields(SearchRequest) if one.name not in _LEFT])
def test_every_field_comes_back(name: str) -> None:
    app, seen = FastAPI(), list[SearchRequest]()

    @app.get("/api/search")
    async def taken(asked: Asked) -> None:
        seen.append(asked)

    request = replace(SearchRequest(), **{name: _OTHERS[name]})
    client = Client(app)
    answer = client.get(f"{similar_url(request, SearchRequest())}5")
    client.close()

    assert (answer.status_code, seen) == (200, [replace(request, similar_to=5)])
