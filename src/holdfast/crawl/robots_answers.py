"""What a robots.txt that was read says of an address, in words; for people who ask, not for a crawl."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from holdfast.fetch import robots as policy
from holdfast.fetch.robots import RobotsFile
from holdfast.types import RobotsState
from holdfast.urls import Url
from holdfast.values import dataclass

AGENT = "holdfast"


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsAnswered:
    """Whether an address may be asked for, and why."""

    allowed: bool
    rule: str | None
    line: int | None
    reason: str


def answer_for(url: Url, states: Sequence[RobotsState], now: datetime) -> RobotsAnswered:
    """Return what the robots.txt of an address's origin says of it, as a crawl would read it now."""
    state = next((one for one in states if one.origin == url.origin), None)
    verdict = policy.verdict(state, now)
    if state is None or verdict is policy.RobotsVerdict.UNKNOWN:
        return _without_rule(f"{url.origin}/robots.txt is not known, or too old: it is asked for first", allowed=False)
    if verdict is policy.RobotsVerdict.ALLOW:
        return _without_rule(f"there is no robots.txt: status {state.status}", allowed=True)
    if verdict is policy.RobotsVerdict.DISALLOW:
        problem = "no answer" if state.status is None else f"status {state.status}"
        return _without_rule(f"robots.txt cannot be read: {problem}", allowed=False)
    return answer_of(RobotsFile.parse(state.body, AGENT), url)


def answer_of(rules: RobotsFile, url: Url) -> RobotsAnswered:
    """Return what the rules of a parsed robots.txt say of an address of its origin."""
    decision = rules.decide(url.fetch)
    if decision.line is None:
        return RobotsAnswered(
            allowed=decision.allowed,
            rule=decision.rule,
            line=None,
            reason="no rule matches" if decision.allowed else "its rules take too long to match",
        )
    said = "allows" if decision.allowed else "forbids"
    return RobotsAnswered(
        allowed=decision.allowed,
        rule=decision.rule,
        line=decision.line,
        reason=f"line {decision.line} {said} it: {decision.rule}",
    )


def _without_rule(reason: str, *, allowed: bool) -> RobotsAnswered:
    return RobotsAnswered(allowed=allowed, rule=None, line=None, reason=reason)


def text_of(body: bytes) -> str:
    """Return a robots.txt as text; what is no UTF-8 is shown as such."""
    return body.decode("utf-8", "replace").replace("\x00", "\ufffd")
