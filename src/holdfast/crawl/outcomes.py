"""What an ending means: one of seven outcomes with its reason, and whether to try again."""

from __future__ import annotations

import re

from holdfast.errors import UrlRefused
from holdfast.types import Fetched, FetchFailed, FetchProblem, Outcome, Truncated
from holdfast.urls import DEFAULT, Base, Normalisation, Url, parse, resolve

_UNREACHED = (FetchProblem.DNS, FetchProblem.NO_SUCH_NAME, FetchProblem.CONNECT, FetchProblem.TIMEOUT)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
TRUNCATED = "truncated"
"""The reason of a page whose body broke off at every try; what came of it is stored, and marked as cut."""


def of_status(status: int) -> tuple[Outcome, str]:
    """Return how an HTTP status ends an attempt."""
    if status == 304:
        return Outcome.SUCCESS, "not_modified"
    if status < 400:
        return Outcome.SUCCESS, "ok" if status < 300 else "redirected"
    return (Outcome.BLOCKED_4XX if status < 500 else Outcome.BLOCKED_5XX), f"http_{status}"


def of_failure(failure: FetchFailed) -> tuple[Outcome, str]:
    """Return how a fetch without a response ends an attempt."""
    if failure.problem is FetchProblem.TIMEOUT:
        return Outcome.TIMEOUT, failure.problem.value
    if failure.problem in (FetchProblem.ADDRESS_FORBIDDEN, FetchProblem.URL_REFUSED):
        return Outcome.EXCLUDED, failure.problem.value
    return Outcome.FAILED, failure.problem.value


def broke_off(answer: Fetched) -> bool:
    """Return whether a body ended before its server had sent all of it: such an answer is no success, but a try."""
    return answer.truncated is not None and answer.truncated.broke_off


def how_it_broke_off(answer: Fetched) -> str:
    """Return in words how a body broke off."""
    why = "the server stalled or was too slow" if answer.truncated is Truncated.TIME else "the connection ended"
    return f"{why} before the body did: {answer.body.size} bytes came"


def is_conditional(request_head: bytes) -> bool:
    """Return whether a request asked for an answer only if the page has changed: else a 304 stands for nothing."""
    return b"\r\nIf-None-Match: " in request_head or b"\r\nIf-Modified-Since: " in request_head


def is_redirect(status: int) -> bool:
    """Return whether this status points somewhere else."""
    return status in _REDIRECTS


def hurts_domain(status: int) -> bool:
    """Return whether this status counts as a failure of the whole domain for its circuit."""
    return status >= 500 or status == 429


_WHOLE = re.compile(r"bytes 0-([0-9]{1,18})/([0-9]{1,18})")


def is_part(status: int, content_range: str | None) -> bool:
    """Return whether an answer is a part of a page; we never ask for one. A range that is all of it is no part."""
    if status != 206:
        return False
    found = _WHOLE.fullmatch((content_range or "").strip())
    return found is None or int(found[1]) + 1 != int(found[2])


def means_away(failure: FetchFailed) -> bool:
    """Return whether no request left because the host could not be reached: that says nothing about the page."""
    return failure.sent_s is None and failure.problem in _UNREACHED


MAX_REDIRECTS = 5


def follow(url: Url, location: str, policy: Normalisation = DEFAULT) -> Url:
    """Return the address that a Location header spells, seen from this one; UrlRefused if it spells none."""
    text = location.encode("latin-1", "replace").decode("utf-8", "replace")  # servers send UTF-8 in headers
    found = resolve(Base(url, policy=policy), [text])
    if not found:
        raise UrlRefused(text, "a redirect to something that is no http(s) address that may be asked")
    return parse(found[0].fetch, policy)
