"""What an answer to GET /robots.txt means for its origin, and when to ask again (RFC 9309, sections 2.3.1 and 2.4).

Pure policy: it neither asks nor parses. Where the RFC leaves a choice, the choice with less access is taken.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum

from holdfast.fetch.robots import MAX_BYTES
from holdfast.types import FetchProblem, RobotsAnswer, RobotsState
from holdfast.values import dataclass

HOT = timedelta(hours=1)
"""How long an answer is used before it is asked for anew."""
STALE = timedelta(hours=24)
"""How long an answer may be used at all (section 2.4)."""
OUTAGE = timedelta(minutes=30)
"""How long an origin that cannot be read is tried at short intervals: as long as an execution waits for a domain."""
LONGEST = timedelta(seconds=60)
"""The longest wait during that time: an origin that comes back is noticed within a minute."""
SKIP = timedelta(hours=1)
"""The wait after an outage that lasted longer."""
SKEW = timedelta(minutes=5)
"""How far in our future another machine's clock may have dated a state."""


def _waits() -> tuple[timedelta, ...]:
    """Return the waits after each failure of an outage: 2, 4, 8 s and so on, then a minute each, until it is over."""
    waits: list[timedelta] = []
    while sum(waits, timedelta()) < OUTAGE:
        waits.append(min(timedelta(seconds=2.0 * 2.0 ** len(waits)), LONGEST))
    return tuple(waits)


RETRIES = _waits()


class RobotsVerdict(StrEnum):
    """What a state allows now."""

    ALLOW = "allow"
    RULES = "rules"
    """Parse the body and ask it."""
    DISALLOW = "disallow"
    UNKNOWN = "unknown"
    """Nothing is asked of this origin before its robots.txt was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsRead:
    """What came of one try to read an origin's robots.txt, redirects followed.

    A body that broke off, or that cannot be decoded, is a failure whatever its status; one that our size limit cut is
    not.
    """

    origin: str
    status: int | None = None
    """Of the last hop; None if there was no response."""
    body: bytes = b""
    """Content-decoded."""
    failure: FetchProblem | None = None
    too_many_redirects: bool = False
    """A sixth redirect in a row; it was not followed."""


def read_answer(previous: RobotsState | None, result: RobotsRead, now: datetime) -> RobotsState:
    """Return what is known of the origin after this try.

    2xx is rules; 4xx and more than five redirects mean that there is no file, so all is allowed; 429, 5xx, no response
    and anything else mean unreachable: the last answer stays in force for 24 hours, whatever it was, and without one
    all is disallowed. A site without a robots.txt that is down for a moment has not changed its mind. The RFC allows to
    treat 30 days of outage as "no file"; we do not: an origin that cannot answer has not agreed.
    """
    answer = _answer_of(result)
    if answer is not RobotsAnswer.UNREACHABLE:
        body = result.body[:MAX_BYTES] if answer is RobotsAnswer.RULES else b""
        return RobotsState(
            origin=result.origin, answer=answer, fetched_at=now, checked_at=now, status=result.status, body=body
        )
    if previous is None:
        return RobotsState(
            origin=result.origin, answer=answer, fetched_at=now, checked_at=now, status=result.status, failures=1
        )
    # A failure long after the last one begins a new outage: it is tried as patiently as the first.
    before = 0 if now - previous.checked_at >= SKIP else previous.failures
    failed = replace(previous, checked_at=now, status=result.status, failures=before + 1)
    if (
        verdict(previous, now) in (RobotsVerdict.RULES, RobotsVerdict.ALLOW)
        or previous.answer is RobotsAnswer.UNREACHABLE
    ):
        return failed
    return replace(failed, answer=RobotsAnswer.UNREACHABLE, fetched_at=now, body=b"")


def _answer_of(result: RobotsRead) -> RobotsAnswer:
    if result.failure is not None or result.status is None:
        return RobotsAnswer.UNREACHABLE
    if result.too_many_redirects:
        return RobotsAnswer.ALLOW_ALL
    if 200 <= result.status < 300:
        return RobotsAnswer.RULES
    if 400 <= result.status < 500 and result.status != 429:
        return RobotsAnswer.ALLOW_ALL
    return RobotsAnswer.UNREACHABLE


def next_try_at(state: RobotsState) -> datetime:
    """Return when the origin's robots.txt is to be asked for again; never after the answer in force expires."""
    if state.failures == 0:
        wait = HOT
    elif state.failures <= len(RETRIES):
        wait = RETRIES[state.failures - 1]
    else:
        wait = SKIP
    due = state.checked_at + wait
    if state.answer is RobotsAnswer.UNREACHABLE:
        return due
    return min(due, max(state.fetched_at + STALE, state.checked_at))


def needs_fetch(state: RobotsState | None, now: datetime) -> bool:
    """Return whether robots.txt is to be asked for now; also if a clock that ran ahead dated the state."""
    return state is None or now >= next_try_at(state) or state.checked_at > now + SKEW


def verdict(state: RobotsState | None, now: datetime) -> RobotsVerdict:
    """Return what may be asked of the origin now; an answer that is too old, or dated in our future, is no answer."""
    if state is None:
        return RobotsVerdict.UNKNOWN
    if state.answer is RobotsAnswer.UNREACHABLE:
        return RobotsVerdict.DISALLOW
    if not -SKEW <= now - state.fetched_at <= STALE:
        return RobotsVerdict.UNKNOWN
    return RobotsVerdict.RULES if state.answer is RobotsAnswer.RULES else RobotsVerdict.ALLOW
