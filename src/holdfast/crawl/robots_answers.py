"""Explains in words, for people, what a robots.txt says about a URL; not used by crawls."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from holdfast.fetch import robots as policy
from holdfast.fetch.robots import AGENT, RobotsFile
from holdfast.records import Operator, record
from holdfast.types import RobotsRecord
from holdfast.urls import Url


@record
class RobotsRuling:
    """Whether robots.txt allows a URL, and why."""

    url: Operator[str]
    allowed: Operator[bool]
    rule: Operator[str | None] = None
    """The deciding line as written; null if none matches."""
    line: Operator[int | None] = None
    reason: Operator[str]
    """Human-readable reason."""


def answer_for(url: Url, states: Sequence[RobotsRecord], now: datetime) -> RobotsRuling:
    """Return the decision of the last known robots.txt of a URL's origin, as a crawl would read it now."""
    state = next((one for one in states if one.origin == url.origin), None)
    verdict = policy.verdict(state, now)
    if state is None or verdict is policy.RobotsVerdict.UNKNOWN:
        reason = f"{url.origin}/robots.txt is unknown or too old: a crawl fetches it first"
        return RobotsRuling(url=url.fetch, allowed=False, reason=reason)
    if verdict is policy.RobotsVerdict.ALLOW:
        return RobotsRuling(url=url.fetch, allowed=True, reason=f"there is no robots.txt: status {state.status}")
    if verdict is policy.RobotsVerdict.DISALLOW:
        problem = "no response" if state.status is None else f"status {state.status}"
        return RobotsRuling(url=url.fetch, allowed=False, reason=f"robots.txt cannot be read: {problem}")
    return answer_of(RobotsFile.parse(state.body, AGENT), url)


def answer_of(rules: RobotsFile, url: Url) -> RobotsRuling:
    decision = rules.decide(url.fetch)
    if decision.line is None:
        reason = "no rule matches" if decision.allowed else "its rules take too long to match"
    else:
        reason = f"line {decision.line} {'allows' if decision.allowed else 'forbids'} it: {decision.rule}"
    return RobotsRuling(url=url.fetch, allowed=decision.allowed, rule=decision.rule, line=decision.line, reason=reason)


def text_of(body: bytes) -> str:
    """Return a robots.txt as text, with invalid UTF-8 replaced."""
    return body.decode("utf-8", "replace").replace("\x00", "\ufffd")
