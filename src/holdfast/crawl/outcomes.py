"""A page in progress, as the threads of a crawl pass it on, and the outcome and reason with which it ends."""

from __future__ import annotations

import re
from dataclasses import field
from datetime import datetime, timedelta
from itertools import count

from holdfast.errors import UrlRefused
from holdfast.types import (
    REDIRECTED,
    Attempt,
    Fetched,
    FetchFailed,
    FetchProblem,
    Original,
    Outcome,
    RecordRef,
    Truncated,
)
from holdfast.urls import DEFAULT, Base, Normalisation, Url, parse, resolve
from holdfast.values import dataclass
from holdfast.warc.payload import HttpHead

_UNREACHED = (FetchProblem.DNS, FetchProblem.NO_SUCH_NAME, FetchProblem.CONNECT, FetchProblem.TIMEOUT)
_LAST_STATUS = 599
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
AMBIGUOUS = "ambiguous_length"
"""Reason for a successful response with both Content-Length and Transfer-Encoding: readers may differ on its body."""
TRUNCATED = "truncated"
"""Reason for a page whose body broke off on every attempt; the partial body is stored and marked as truncated."""

ROBOTS = "robots"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExchange:
    ref: RecordRef | None
    """Location of its record; None if bodies are not stored."""
    head: HttpHead
    payload: bytes | None
    """The transfer-decoded body, if it is small enough to be parsed."""
    payload_digest: str
    original: Original | None = None
    """Set if a later capture of the page may refer to this one."""
    is_revisit: bool = False
    recalled: tuple[str, ...] | None = None
    """Links of an unchanged page whose body is not stored."""


@dataclass(slots=True, kw_only=True)
class PageUnderWay:
    """One attempt from its first request until its result is ready.

    One thread at a time owns it: the event loop fills it while fetching, then `crawl.writer_thread`. A thread that
    has passed it on may read it but must not change it.
    """

    attempt: Attempt | None
    """None for responses that end no attempt: robots.txt, and the hops of an attempt that stays open."""
    token: int
    started_at: datetime
    """Time of the last request."""
    hops: list[Fetched] = field(default_factory=list)
    """The responses, redirects inside the domain first."""
    outcome: Outcome = Outcome.SUCCESS
    reason: str = ""
    message: str | None = None
    redirected_to: str | None = None
    retry_at: datetime | None = None
    evidence: FetchFailed | None = None
    """The last response if it is malformed; the received bytes are stored all the same."""
    stored: list[StoredExchange] = field(default_factory=list)
    """The stored responses, in the same order as `hops`."""
    number: int = field(default_factory=count(1).__next__)
    """Number of this page within the process, preserved in copies: the writer thread's pages are listed by it."""

    @property
    def answered_at(self) -> datetime | None:
        """When the last response was complete; None without one. Later time is ours, not the server's."""
        return self.hops[-1].started_at + timedelta(seconds=self.hops[-1].took_s) if self.hops else None


def of_status(status: int) -> tuple[Outcome, str]:
    if status == 304:
        return Outcome.SUCCESS, "not_modified"
    if status < 400:
        return Outcome.SUCCESS, REDIRECTED if is_redirect(status) else "ok"
    if status > _LAST_STATUS:  # some sites reject crawlers with their own codes, such as 999: their servers are up
        return Outcome.FAILED, f"http_{status}"
    return (Outcome.BLOCKED_4XX if status < 500 else Outcome.BLOCKED_5XX), f"http_{status}"


def of_failure(failure: FetchFailed) -> tuple[Outcome, str]:
    if failure.problem is FetchProblem.TIMEOUT:
        return Outcome.TIMEOUT, failure.problem.value
    if failure.problem in (FetchProblem.ADDRESS_FORBIDDEN, FetchProblem.URL_REFUSED):
        return Outcome.EXCLUDED, failure.problem.value
    return Outcome.FAILED, failure.problem.value


def broke_off(answer: Fetched) -> bool:
    """Return whether the body ended before the server had sent all of it: such a response is retried."""
    return answer.truncated is not None and answer.truncated.broke_off


def how_it_broke_off(answer: Fetched) -> str:
    why = "the server stalled or was too slow" if answer.truncated is Truncated.TIME else "the connection ended"
    return f"{why} before the body did: {answer.body.size} bytes came"


def is_conditional(request_head: bytes) -> bool:
    """Return whether a request was conditional; only then is a 304 meaningful."""
    return b"\r\nIf-None-Match: " in request_head or b"\r\nIf-Modified-Since: " in request_head


def is_redirect(status: int) -> bool:
    return status in _REDIRECTS


def is_failure(status: int) -> bool:
    """Return whether this status may mean that the host is in trouble; any other shows that it is up."""
    return 500 <= status <= _LAST_STATUS or status == 429


_WHOLE = re.compile(r"bytes 0-([0-9]{1,18})/([0-9]{1,18})")


def is_part(status: int, content_range: str | None) -> bool:
    """Return whether a response is part of a page, which is never requested; a range that covers everything is not."""
    if status != 206:
        return False
    found = _WHOLE.fullmatch((content_range or "").strip())
    return found is None or int(found[1]) + 1 != int(found[2])


def means_away(failure: FetchFailed) -> bool:
    """Return whether no request was sent because the host was unreachable, which says nothing about the page."""
    return failure.sent_s is None and failure.problem in _UNREACHED


# RFC 9309, 2.3.1.2: a crawler should follow at least five redirects of a robots.txt; pages get as many.
MAX_REDIRECTS = 5


def follow(url: Url, location: str, policy: Normalisation = DEFAULT) -> Url:
    """Resolve a Location header against this URL; raise `UrlRefused` if it is invalid."""
    # Heads are read as Latin-1, byte for byte; servers send UTF-8 in them.
    text = location.encode("latin-1", "replace").decode("utf-8", "replace")
    found = resolve(Base(url, policy=policy), [text])
    if not found:
        raise UrlRefused(text, "a redirect to something that is no http(s) address that may be asked")
    return parse(found[0].fetch, policy)
