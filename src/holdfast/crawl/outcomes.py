"""One page under way, as the threads of a crawl hand it on, and what its ending means: an outcome and its reason."""

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
"""The reason of a good answer with both Content-Length and Transfer-Encoding: another reader may see another body."""
TRUNCATED = "truncated"
"""The reason of a page whose body broke off at every try; what came of it is stored, and marked as cut."""

ROBOTS = "robots"
"""The reason of a page that is a robots.txt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExchange:
    """One answer after it was stored, or read where bodies are not kept."""

    ref: RecordRef | None
    """Where its record stands; None where bodies are not kept."""
    head: HttpHead
    payload: bytes | None
    """The transfer-decoded body, if it is small enough to be read."""
    payload_digest: str
    original: Original | None = None
    """Set if a later capture of the page may point here."""
    is_revisit: bool = False
    recalled: tuple[str, ...] | None = None
    """Where a page leads that has not changed and whose body is not kept."""


@dataclass(slots=True, kw_only=True)
class PageUnderWay:
    """One attempt from its first request until its result is ready.

    One thread at a time has it: the loop fills it while it fetches, `crawl.writer_thread` from then on. A thread that
    has handed it on reads it, and changes it no more.
    """

    attempt: Attempt | None
    """None for what is stored and ends no attempt: robots.txt, and the hops of an attempt that stays open."""
    token: int
    started_at: datetime
    """When the last request was made."""
    hops: list[Fetched] = field(default_factory=list)
    """The answers, redirects inside the domain first."""
    outcome: Outcome = Outcome.SUCCESS
    reason: str = ""
    message: str | None = None
    redirected_to: str | None = None
    retry_at: datetime | None = None
    evidence: FetchFailed | None = None
    """The last answer, if it cannot be read as one: what came of it is stored all the same."""
    stored: list[StoredExchange] = field(default_factory=list)
    """The answers after they were stored, in the same order."""
    number: int = field(default_factory=count(1).__next__)
    """Which page of this process it is, through every copy: what the writer thread has is listed by it."""

    @property
    def answered_at(self) -> datetime | None:
        """When the last answer was whole; None if there was none. What follows is our own time, not the server's."""
        return self.hops[-1].started_at + timedelta(seconds=self.hops[-1].took_s) if self.hops else None


def of_status(status: int) -> tuple[Outcome, str]:
    """Return how an HTTP status ends an attempt."""
    if status == 304:
        return Outcome.SUCCESS, "not_modified"
    if status < 400:
        return Outcome.SUCCESS, REDIRECTED if is_redirect(status) else "ok"
    if status > _LAST_STATUS:  # some sites refuse crawlers with codes of their own, as 999: their servers are well
        return Outcome.FAILED, f"http_{status}"
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


def is_failure(status: int) -> bool:
    """Return whether this status may mean that the host is in trouble; any other proves that it is up."""
    return 500 <= status <= _LAST_STATUS or status == 429


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


# RFC 9309, 2.3.1.2: a crawler should follow at least five redirects of a robots.txt; pages get as many.
MAX_REDIRECTS = 5


def follow(url: Url, location: str, policy: Normalisation = DEFAULT) -> Url:
    """Return the address that a Location header spells, seen from this one; UrlRefused if it spells none."""
    # Heads are read as Latin-1, byte for byte; servers send UTF-8 in them.
    text = location.encode("latin-1", "replace").decode("utf-8", "replace")
    found = resolve(Base(url, policy=policy), [text])
    if not found:
        raise UrlRefused(text, "a redirect to something that is no http(s) address that may be asked")
    return parse(found[0].fetch, policy)
