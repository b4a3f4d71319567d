"""Converts errors to the one response body that all routes share, without stack traces or driver messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import Scope

from holdfast import errors, log
from holdfast.auth.errors import SignInThrottled, Unauthenticated
from holdfast.cancellation import WorkAbandoned
from holdfast.db.raw import DatabaseDamaged, DatabaseMoved, DatabaseReadOnly, is_driver_error
from holdfast.db.schema import SCHEMA, schema_of
from holdfast.errors import HoldfastError, Invalid, NotPermitted, Unavailable, without_folders
from holdfast.wiring.server import TooManyConnections


class BodyTooLarge(Invalid):
    """The request body is too large."""

    code = "body_too_large"
    summary = "Payload Too Large"

    def __init__(self, limit: int) -> None:
        super().__init__(f"a request's body may have {limit:,} bytes here; send less")


class QueryTooLong(Invalid):
    """The query string is too long."""

    code = "query_too_long"
    summary = "URI Too Long"

    def __init__(self, limit: int) -> None:
        super().__init__(f"a query string may have {limit:,} characters here; ask for less at once")


class BodyRefused(Invalid):
    """The body has an unsupported format: compressed, or not JSON."""

    code = "body_refused"


class BodyTooSlow(Invalid):
    """The body did not arrive in time."""

    code = "body_too_slow"

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"the request's body did not arrive within {limit_s:g} s; send it again")


class HostRefused(Invalid):
    """The request names a host that this server does not serve, or its headers are malformed."""

    code = "host_refused"
    sentence = "this server does not answer for that host; use its own name, or add one to HOLDFAST_API_ALLOWED_HOSTS"


class OriginRefused(NotPermitted):
    """Pages of this origin may not read responses."""

    code = "origin_refused"
    sentence = "pages of this origin may not call this route; see HOLDFAST_API_CORS_ORIGINS"


class WorkerRefused(NotPermitted):
    """On the replay host, only the renderer's script may become a service worker."""

    code = "worker_refused"
    sentence = "archived scripts do not become service workers here"


class TooManyRequests(Unavailable):
    """The client exceeded its rate limit."""

    code = "too_many_requests"
    summary = "Rate limit exceeded"

    def __init__(self, limit: int, retry_after_s: int) -> None:
        super().__init__(f"{limit} such requests a minute are allowed; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class ServerBusy(Unavailable):
    """The server is already running as many exports, packages and comparisons as it can."""

    code = "server_busy"
    retry_after_s = 10

    def __init__(self) -> None:
        super().__init__(
            "as many exports, packages and comparisons are being made as this server makes at once; "
            f"try again in {self.retry_after_s} s"
        )


class TooManyStreams(Unavailable):
    """The user or token has too many open live streams."""

    code = "too_many_streams"
    summary = "Too many live streams"
    retry_after_s = 30

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"{limit} live streams of one user are served at once; close some, or try again in {self.retry_after_s} s"
        )


class StreamsFull(Unavailable):
    """The process has too many open live streams, or is shutting down."""

    code = "streams_full"
    retry_after_s = 10

    def __init__(self) -> None:
        super().__init__(
            f"this server serves as many live streams as it can; try again in {self.retry_after_s} s, or read "
            "new events: GET /api/v1/events"
        )


class ExportOutdated(Unavailable):
    """The reader's access changed while an export was being sent."""

    code = "export_outdated"
    sentence = "a page was taken down, or a source became members', while this was sent; request it again"


class ExportTooLarge(Invalid):
    """The index has too many records to be sorted for one request."""

    code = "export_too_large"

    def __init__(self, records: int, most: int) -> None:
        super().__init__(
            f"this is the index of {records:,} records, and it is sorted for a request up to {most:,}; ask for one "
            "crawl at a time, or on the server: holdfast export cdxj"
        )


class AdminTokenMissing(HoldfastError):
    """No admin token is set in a strict environment: every request is rejected."""

    code = "admin_token_missing"
    sentence = summary = "Admin token not configured for this environment"


class UnknownParameter(Invalid):
    """The query string has an unknown parameter."""

    code = "unknown_parameter"

    def __init__(self, name: str, nearest: str | None, known: Sequence[str]) -> None:
        listed = ", ".join(known) if known else "none"
        hint = f"did you mean {nearest}?" if nearest else f"it takes {listed}"
        super().__init__(f"{name}: this route has no such parameter; {hint}")
        self.field = name


class FieldRefused(Invalid):
    """A field of the request is invalid; `field` names it."""

    code = "field_refused"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field


class TusVersionRefused(Invalid):
    """The client uses an unsupported version of the upload protocol."""

    code = "tus_version_refused"
    sentence = "send Tus-Resumable: 1.0.0; this server speaks no other version of the protocol"


class SchemaMismatch(Unavailable):
    """The database was migrated or restored while the server was running."""

    code = "schema_mismatch"

    def __init__(self, found: str | None, wanted: str) -> None:
        # Names of schemas sort by their number.
        older = found is None or found < wanted
        step = (
            "stop it and run: holdfast api (it migrates first)" if older else "upgrade holdfast and run: holdfast api"
        )
        super().__init__(f"the database has schema {found or 'none'}, this server needs {wanted}; {step}")


_log = log.get()

STATUS: dict[str, int] = {
    errors.NotFound.code: 404,
    errors.Invalid.code: 422,
    errors.Conflict.code: 409,
    errors.NotPermitted.code: 403,
    errors.Unavailable.code: 503,
    Unauthenticated.code: 401,
    SignInThrottled.code: 429,
    BodyTooLarge.code: 413,
    "upload_too_large": 413,
    "upload_gone": 410,
    "upload_locked": 423,
    "upload_no_room": 507,
    "checksum_mismatch": 460,
    TusVersionRefused.code: 412,
    QueryTooLong.code: 414,
    BodyRefused.code: 415,
    BodyTooSlow.code: 408,
    HostRefused.code: 400,
    DatabaseDamaged.code: 503,
    "pair_mismatch": 400,
    "domain_busy": 429,
    "live_busy": 429,
    errors.AddressForbidden.code: 400,
    "live_too_large": 413,
    "live_failed": 502,
    TooManyRequests.code: 429,
    TooManyConnections.code: 429,
    TooManyStreams.code: 429,
    WorkAbandoned.code: 499,
    "bad_cdx_parameter": 400,
    errors.HoldfastError.code: 500,
}
"""Status by code, so that no other package is imported; the nearest ancestor decides. Add a row for an exception."""

# Routes in the vocabulary of an older job server, whose clients expect 400 for bad input and for illegal transitions.
_OLD_PREFIXES = ("/api/v1/", "/api/v2/")

CODES_BY_STATUS = {
    400: "bad_request",
    401: "unauthenticated",
    403: "not_permitted",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "body_too_large",
    415: "body_refused",
    422: "invalid",
    429: "too_many_requests",
    503: "unavailable",
}
"""Error codes for requests that the framework itself rejects."""

_CODE = re.compile(r'^    code = "(\w+)"', re.M)


@cache
def error_codes() -> list[str]:
    """Return every code that an error may carry; reads the source of all modules, for most of them are not loaded."""
    sources = Path(errors.__file__).parent.rglob("*.py")
    found = {code for source in sources for code in _CODE.findall(source.read_text("utf-8"))}
    return sorted(found | set(CODES_BY_STATUS.values()))


_SILENT = "the database does not answer; the server's log says why under this request's id"
_MOVED = (
    "the database file was moved away or replaced while it was in use; put it back, or restart the server; "
    "its log names the file under this request's id"
)


class ErrorBody(BaseModel):
    """The body of every error response."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": "there is no snapshot 7",
                    "detail": "there is no snapshot 7",
                    "code": "not_found",
                    "requestId": "7b0e4f1c-6d4b-4f55-9a3c-5a1d9c2f8e10",
                }
            ]
        }
    )

    error: str = Field(description="What happened, in a sentence.")
    detail: str = Field(description="What happened and what to do about it.")
    code: str = Field(
        description="A stable word for programs; docs/errors.md lists them.",
        # Compute the codes only when the OpenAPI document is built, which few processes do.
        json_schema_extra=lambda schema: schema.update(enum=[*error_codes()]),
    )
    requestId: str = Field(description="The id of this request, as in X-Request-Id and in the server's log.")
    field: str | None = Field(None, description="What of the request is wrong, where that is one field or parameter.")


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI entries for a route's error responses: `responses=answers(404, 422)`."""
    return {status: {"model": ErrorBody, "description": phrase_of(status)} for status in statuses}


# Status codes of the upload protocol that no HTTP registry has.
_PHRASES = {460: "Checksum Mismatch"}


def phrase_of(status: int) -> str:
    return _PHRASES.get(status) or HTTPStatus(status).phrase


def status_of(error: errors.HoldfastError, path: str) -> int:
    # Use the nearest ancestor with a row: a new error of a package needs no row if its base class is precise enough.
    codes = (vars(kind).get("code") for kind in type(error).__mro__)
    found = next(STATUS[code] for code in codes if code in STATUS)
    return 400 if found in (422, 409) and path.startswith(_OLD_PREFIXES) else found


def body_of(error: errors.HoldfastError, request_id: str) -> dict[str, str]:
    """Return the response body of an error; `summary` on its class replaces the sentence in `error`."""
    sentence = str(error) or type(error).__name__
    body = _body(getattr(error, "summary", sentence), sentence, error.code, request_id)
    field = getattr(error, "field", None)
    return {**body, "field": field} if isinstance(field, str) else body


def _body(error: str, detail: str, code: str, request_id: str) -> dict[str, str]:
    return {"error": error, "detail": detail, "code": code, "requestId": request_id}


def response_to(error: errors.HoldfastError, *, path: str, request_id: str) -> JSONResponse:
    """Return the response to an error, with Retry-After where waiting helps."""
    headers = {}
    if isinstance(error, TooManyRequests | ServerBusy | SignInThrottled | TooManyStreams | StreamsFull):
        headers["Retry-After"] = str(error.retry_after_s)
    elif isinstance(error, errors.Unavailable):
        # Unavailable databases and indexes return within seconds; clients that read Retry-After wait instead of
        # hammering.
        headers["Retry-After"] = "5"
    elif isinstance(error, Unauthenticated):
        # RFC 9110, 15.5.2: a 401 names the scheme. Omit Basic: a browser would show its own password dialog.
        headers["WWW-Authenticate"] = 'Bearer realm="holdfast"'
    return JSONResponse(body_of(error, request_id), status_of(error, path), headers)


def install(app: FastAPI) -> None:
    """Register handlers so that every failure gets the shared error body."""
    app.add_exception_handler(errors.HoldfastError, _ours)
    app.add_exception_handler(SQLAlchemyError, _database)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _broken)


def _ours(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, errors.HoldfastError)
    if isinstance(exc, errors.Unavailable) and _is_of_database(exc):
        # A missing column looks like a broken database: check the schema, which may only be another version.
        exc = _mismatch(request) or exc
    if isinstance(exc, Unauthenticated) and _is_page(request):
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/signin?{urlencode({'next': asked})}", 303, {"Cache-Control": "no-store"})
    # Log before replacing the sentence, so that the log keeps the driver's message.
    if status_of(exc, request.url.path) >= 500:
        _log.error("api.failed", code=exc.code, message=str(exc), request_id=_id(request))
    return response_to(for_strangers(exc), path=request.url.path, request_id=_id(request))


def _is_of_database(error: errors.HoldfastError) -> bool:
    cause = error.__cause__
    return isinstance(cause, SQLAlchemyError) or is_driver_error(cause) or isinstance(error, DatabaseMoved)


def for_strangers(error: errors.HoldfastError) -> errors.HoldfastError:
    """Return an error that is safe to show to anyone: without driver messages and local paths."""
    if _is_of_database(error) and not isinstance(error, errors.NoSpace | DatabaseReadOnly):
        # A driver's message names the server's host, port and files. Only those two errors have our own words.
        error = _reworded(error, _MOVED if isinstance(error, DatabaseMoved) else _SILENT)
    return _without_paths(error)


def failed_outside(error: errors.HoldfastError, scope: Scope) -> JSONResponse:
    """Return the response to a failure before routing; only the log records the real cause."""
    request_id = str(scope.get("holdfast_request_id", ""))
    _log.error("api.failed", code=error.code, message=str(error), request_id=request_id)
    return response_to(for_strangers(error), path=scope["path"], request_id=request_id)


def _is_page(request: Request) -> bool:
    """Return whether a browser requested a page, so that its user can sign in and return; programs get the error."""
    is_html = "text/html" in request.headers.get("accept", "")
    return is_html and request.method == "GET" and not request.url.path.startswith("/api/")


def _reworded(error: errors.HoldfastError, sentence: str) -> errors.HoldfastError:
    # Do not call its class: many of our errors build their sentence from other arguments.
    reworded = type(error).__new__(type(error), sentence)
    vars(reworded).update(vars(error))
    return reworded


def _without_paths(error: errors.HoldfastError) -> errors.HoldfastError:
    sentence = str(error)
    shown = without_folders(sentence)
    return error if shown == sentence else _reworded(error, shown)


def _database(request: Request, exc: Exception) -> Response:
    if isinstance(exc, PoolTimeout):
        return _ours(request, errors.Unavailable("all connections to the database are in use; try again in a moment"))
    found = _mismatch(request)
    if found is None:
        # This is a bug of ours: log it and respond as to any other.
        raise exc
    return _ours(request, found)


def _mismatch(request: Request) -> SchemaMismatch | None:
    database = request.app.state.archive.database
    # Reading the schema would create a new, empty file.
    if not database.is_in_place():
        return None
    try:
        found = schema_of(database.url)
    except (errors.Unavailable, DatabaseDamaged):
        return None
    return SchemaMismatch(found, SCHEMA) if found != SCHEMA else None


def broken(path: str, request_id: str) -> JSONResponse:
    """Return the response to an internal error; only the log records the cause."""
    error = errors.HoldfastError("something broke here; the server's log has it under this request's id")
    return response_to(error, path=path, request_id=request_id)


async def _broken(request: Request, _exc: Exception) -> JSONResponse:
    # The framework raises it again once this response is sent, and the outermost layer logs it.
    return broken(request.url.path, _id(request))


def _invalid(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, RequestValidationError)
    # A body of 50,000 wrong values has as many errors; show five.
    found = exc.errors()[:5]
    refused = errors.Invalid("; ".join(_problem(error, exc.body) for error in found))
    # Use the first one: a form shows it beside the field.
    if found and found[0]["type"] != "json_invalid":
        refused.field = _place(found[0]) or "body"
    return response_to(refused, path=request.url.path, request_id=_id(request))


def _place(error: dict[str, Any]) -> str:
    """Return the name of the invalid field, empty for the whole body."""
    inside = error.get("ctx", {}).get("place")
    return ".".join([*map(str, error["loc"][1:]), *([inside] if inside else [])])


def _problem(error: dict[str, Any], body: object) -> str:
    """Return a sentence that describes the problem, with the field, or with line and column of invalid JSON."""
    if error["type"] == "json_invalid" and isinstance(body, str):
        # The library names a character position; a person looks for a line.
        before = body[: int(error["loc"][-1])]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        reason = str(error.get("ctx", {}).get("error", "it ends too early"))
        return f"body: no JSON at line {line}, column {column}: {reason}; mend it there and send it again"
    place = _place(error)
    if error["type"] == "string_pattern_mismatch":
        return f"{place or 'body'}: it is not written as docs/api.md says"
    if error["type"] == "missing" and not place:
        return "body: it is missing; send a JSON object as application/json"
    inside = f"{error.get('ctx', {}).get('place')}: "
    return f"{place or 'body'}: {str(error['msg']).removeprefix('Value error, ').removeprefix(inside)}"


def _http(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, HTTPException)
    # Before 404: an invalid credential is reported on every path.
    if (wrong := request.scope.get("state", {}).get("credential_error")) is not None:
        return response_to(wrong, path=request.url.path, request_id=_id(request))
    sentence = str(exc.detail)
    # The framework responds with this to JSON that Python cannot represent, such as numbers of a million digits.
    if exc.status_code == 400 and exc.__cause__ is not None:
        return response_to(
            errors.Invalid("the body cannot be read as JSON"), path=request.url.path, request_id=_id(request)
        )
    if exc.status_code == 404 and sentence == HTTPStatus.NOT_FOUND.phrase:
        sentence = "there is nothing at this address; docs/api.md lists the routes"
    headers, detail = dict(exc.headers or {}), sentence
    if exc.status_code == 405:
        headers["Allow"] = ", ".join(_methods_at(request))
        detail = f"this address does not take {request.method}; it takes {headers['Allow']}"
    body = _body(sentence, detail, CODES_BY_STATUS.get(exc.status_code, "error"), _id(request))
    return JSONResponse(body, exc.status_code, headers)


def _methods_at(request: Request) -> list[str]:
    """Return the methods of all routes at a URL; the framework lists only those of the first."""
    path = request.scope["path"]
    found = (route for route in request.app.state.routes.candidates(path) if route.path_regex.match(path))
    methods = {method for route in found for method in route.methods}
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def _id(request: Request) -> str:
    return str(request.scope.get("holdfast_request_id", ""))
