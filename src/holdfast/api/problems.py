"""What is wrong with a request before any room of ours sees it; the kinds of errors.py with their HTTP status."""

from __future__ import annotations

from holdfast.errors import HoldfastError, Invalid, NotFound, NotPermitted, Unavailable


class BodyTooLarge(Invalid):
    """The request's body is larger than we read."""

    code = "body_too_large"
    summary = "Payload Too Large"

    def __init__(self, limit: int) -> None:
        super().__init__(f"a request's body may have {limit:,} bytes here; send less")


class QueryTooLong(Invalid):
    """The query string is longer than we read."""

    code = "query_too_long"
    summary = "URI Too Long"

    def __init__(self, limit: int) -> None:
        super().__init__(f"a query string may have {limit:,} characters here; ask for less at once")


class BodyRefused(Invalid):
    """The body is of a kind that we do not read: compressed, or no JSON."""

    code = "body_refused"


class BodyTooSlow(Invalid):
    """The body did not arrive in time."""

    code = "body_too_slow"

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"the request's body did not arrive within {limit_s:g} s; send it again")


class HostRefused(Invalid):
    """The request is meant for a host that we do not answer for, or its head is forged."""

    code = "host_refused"

    def __init__(self) -> None:
        super().__init__(
            "this server does not answer for that host; use its own name, or add one to HOLDFAST_API_ALLOWED_HOSTS"
        )


class OriginRefused(NotPermitted):
    """A page of this origin may not read our answers."""

    code = "origin_refused"

    def __init__(self) -> None:
        super().__init__("pages of this origin may not call this route; see HOLDFAST_API_CORS_ORIGINS")


class TooManyRequests(Unavailable):
    """This address asked more often than it may."""

    code = "too_many_requests"
    summary = "Rate limit exceeded"

    def __init__(self, limit: int, retry_after_s: int) -> None:
        super().__init__(f"{limit} such requests a minute are allowed; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class ServerBusy(Unavailable):
    """As many exports, packages and comparisons are being made as this server makes at once."""

    code = "server_busy"
    retry_after_s = 10

    def __init__(self) -> None:
        super().__init__(
            "as many exports, packages and comparisons are being made as this server makes at once; "
            f"try again in {self.retry_after_s} s"
        )


class ExportTooLarge(Invalid):
    """The index of so many records is not sorted for a request."""

    code = "export_too_large"

    def __init__(self, records: int, most: int) -> None:
        super().__init__(
            f"this is the index of {records:,} records, and it is sorted for a request up to {most:,}; ask for one "
            "crawl at a time, or on the server: holdfast export cdxj"
        )


class AdminTokenWrong(NotPermitted):
    """The route needs the admin token, and the request shows none or another."""

    code = "admin_token_wrong"
    summary = "Insufficient permissions"

    def __init__(self, *, is_set: bool = True) -> None:
        super().__init__(
            "send the admin token as Authorization: Bearer or X-Admin-Token"
            if is_set
            else "this server has no admin token, so none that is shown is right, and its own machine alone is let in; "
            "ask from there without a token, or set HOLDFAST_API_ADMIN_TOKEN and start it anew"
        )


class AdminTokenMissing(HoldfastError):
    """A strict environment runs without an admin token: nobody can be let in."""

    code = "admin_token_missing"
    summary = "Admin token not configured for this environment"

    def __init__(self) -> None:
        super().__init__(self.summary)


class ExecutionNotFound(NotFound):
    """There is no such run, or its job has none of this number."""

    code = "execution_not_found"
    summary = "Execution not found"

    def __init__(self) -> None:
        super().__init__("Execution not found; see a job's at GET /api/v1/jobs/{id}/executions")


class SchemaMismatch(Unavailable):
    """The database was migrated, or restored, under a running server."""

    code = "schema_mismatch"

    def __init__(self, found: str | None, wanted: str) -> None:
        older = found is None or found < wanted
        step = (
            "stop it and run: holdfast api (it migrates first)" if older else "upgrade holdfast and run: holdfast api"
        )
        super().__init__(f"the database has schema {found or 'none'}, this server needs {wanted}; {step}")
