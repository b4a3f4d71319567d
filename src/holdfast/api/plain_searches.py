"""Responds to `/api/search` without the framework, for terms and a page number, which nearly all searches use.

Filters and anything unusual go to the route; parsing its twenty parameters takes a tenth of a search. A test
compares the responses of both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl

from pydantic_core import to_json
from starlette.types import Scope

from holdfast import log
from holdfast.api.errors import response_to
from holdfast.api.response_cache import RawResponse
from holdfast.config import Settings
from holdfast.metrics import ServerMetrics
from holdfast.replay.origins import browse_url
from holdfast.search.answers import answer_object
from holdfast.search.query import MAX_QUERY_CHARS
from holdfast.search.search import MAX_PAGE_SIZE, ResultKind, SearchAnswer, SearchRequest, SearchService, Sort
from holdfast.search.substrings import SearchTooLong

_log = log.get()
# Most digits of a page number: the route rejects a larger one.
_DIGITS: Final = 9
_VIEWS: Final = {kind.value: kind for kind in ResultKind}
_SORTS: Final = {sort.value: sort for sort in Sort}


def plain_request(query_string: bytes) -> SearchRequest | None:
    """Return the request if the query has only terms, a page, a view and an order; else None."""
    asked: dict[str, Any] = {}
    # Parse it as the framework does.
    for name, value in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True):
        known = _FIELDS.get(name)
        if known is None or known[0] in asked or (read := known[1](value)) is None:
            return None
        asked[known[0]] = read
    return SearchRequest(**asked)


def _words(value: str) -> str | None:
    return value if 1 <= len(value) <= MAX_QUERY_CHARS and "\x00" not in value else None


def _page(value: str) -> int | None:
    return int(value) or None if len(value) <= _DIGITS and value.isascii() and value.isdecimal() else None


def _page_size(value: str) -> int | None:
    size = _page(value)
    return size if size is not None and size <= MAX_PAGE_SIZE else None


_FIELDS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "q": ("q", _words),
    "page": ("page", _page),
    "pageSize": ("page_size", _page_size),
    "view": ("view", _VIEWS.get),
    "sort": ("sort", _SORTS.get),
}


def results_json(answer: SearchAnswer, request: SearchRequest, settings: Settings) -> bytes:
    """Return a page of results as JSON.

    Bypasses the schema, which would take as long as the search; a test checks responses against it.
    """
    return to_json(answer_object(answer, request, partial(browse_url, settings)))


def plain_searches(
    search: SearchService, metrics: ServerMetrics, settings: Settings
) -> Callable[[Scope], RawResponse | None]:
    """Return a function that responds to plain searches, and returns None for those that need the route."""

    def answered(scope: Scope) -> RawResponse | None:
        request = plain_request(scope["query_string"])
        if request is None:
            return None
        try:
            found = search.ask(request)
        except SearchTooLong as exc:
            # Do not run the route for it as well: that would take as long again.
            request_id = str(scope.get("holdfast_request_id", ""))
            _log.error("api.failed", code=exc.code, message=str(exc), request_id=request_id)
            refusal = response_to(exc, path=scope["path"], request_id=request_id)
            return RawResponse(refusal.status_code, refusal.raw_headers, bytes(refusal.body))
        metrics.searched(found.mode.value)
        body = results_json(found, request, settings)
        return RawResponse(200, [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")], body)

    return answered
