"""Explains for people what a robots.txt says about a URL; not used by crawls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from holdfast.errors import Invalid
from holdfast.fetch.robots import AGENT, RobotsFile, RobotsVerdict, next_try_at, verdict
from holdfast.frontier.domains import RobotsOfOrigin
from holdfast.frontier.explain_records import ExplainedRobots, ExplainedSource, RobotsKnown
from holdfast.records import Operator, from_row, record
from holdfast.types import RobotsAnswer, RobotsRecord
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
    access = verdict(state, now)
    if state is None or access is RobotsVerdict.UNKNOWN:
        reason = f"{url.origin}/robots.txt is unknown or too old: a crawl fetches it first"
        return RobotsRuling(url=url.fetch, allowed=False, reason=reason)
    if access is RobotsVerdict.ALLOW:
        return RobotsRuling(url=url.fetch, allowed=True, reason=f"there is no robots.txt: status {state.status}")
    if access is RobotsVerdict.DISALLOW:
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


@record
class DomainRobots:
    """The robots files of a domain. Their text comes from others: show it as text, never as markup."""

    domain: Operator[str]
    robots_txt: Operator[str | None]
    """Of the requested URL's origin, or of the first one."""
    fetched_at: Operator[datetime | None]
    origins: Operator[list[RobotsOfOrigin]]
    crawl_delay: Operator[float | None]
    """Seconds that robots.txt requests."""
    sitemaps: Operator[list[str]]
    ruling: Operator[RobotsRuling | None]
    """The decision about the requested URL."""


def domain_robots(domain: str, states: Sequence[RobotsRecord], url: Url | None, now: datetime) -> DomainRobots:
    """Return the last known robots files of a domain, and their decision about a URL; raise Invalid if it is on another
    domain.
    """
    if url is not None and url.domain != domain:
        raise Invalid(
            f"url: it is on {url.domain}, not on {domain}; ask at /api/domains/{url.domain}/robots", field="url"
        )
    shown = next((one for one in states if url is None or one.origin == url.origin), None)
    has_rules = shown is not None and shown.answer is RobotsAnswer.RULES
    rules = RobotsFile.parse(shown.body, AGENT) if shown is not None and has_rules else None
    return DomainRobots(
        domain=domain,
        robots_txt=text_of(shown.body) if shown is not None and has_rules else None,
        fetched_at=None if shown is None else shown.fetched_at,
        origins=[from_row(RobotsOfOrigin, state) for state in states],
        crawl_delay=None if rules is None else rules.crawl_delay,
        sitemaps=[] if rules is None else list(rules.sitemaps),
        ruling=None if url is None else answer_for(url, states, now),
    )


def explain_robots(
    url: Url | None,
    state: RobotsRecord | None,
    sources: Sequence[ExplainedSource],
    *,
    now: datetime,
    live: bool = False,
) -> ExplainedRobots:
    ignored = [one.source for one in sources if one.robots == "ignore"]
    known = _known(state, now)
    allowed: bool | None = None
    rule, line, delay = None, None, None
    if url is not None and state is not None and known is RobotsKnown.RULES:
        file = RobotsFile.parse(state.body, AGENT)
        decision = file.decide(url.fetch)
        allowed, rule, line, delay = decision.allowed, decision.rule, decision.line, file.crawl_delay
    elif known in (RobotsKnown.ALLOW_ALL, RobotsKnown.UNREACHABLE):
        allowed = known is RobotsKnown.ALLOW_ALL
    found = ExplainedRobots(
        origin=url.origin if url is not None else None,
        known=known,
        allowed=allowed,
        rule=rule,
        line=line,
        crawl_delay_s=delay,
        status=state.status if state else None,
        failures=state.failures if state else 0,
        fetched_at=state.fetched_at if state else None,
        checked_at=state.checked_at if state else None,
        next_try_at=next_try_at(state) if state else None,
        live=live,
        ignored_by=ignored,
        sentence="",
    )
    return replace(found, sentence=_robots_sentence(found))


def _known(state: RobotsRecord | None, now: datetime) -> RobotsKnown:
    if state is None:
        return RobotsKnown.UNKNOWN
    access = verdict(state, now)
    if access is RobotsVerdict.UNKNOWN:
        return RobotsKnown.EXPIRED
    if access is RobotsVerdict.RULES:
        return RobotsKnown.RULES
    return RobotsKnown.UNREACHABLE if state.answer is RobotsAnswer.UNREACHABLE else RobotsKnown.ALLOW_ALL


def _robots_sentence(found: ExplainedRobots) -> str:
    read = f", read {found.fetched_at:%Y-%m-%d %H:%M} UTC" if found.fetched_at else ""
    but = f"; ignored by {', '.join(found.ignored_by)}, as the audit log says" if found.ignored_by else ""
    if found.origin is None:
        return "no robots.txt applies: no crawl would request this address"
    if found.known is RobotsKnown.UNKNOWN:
        return f"its robots.txt was never read; it is fetched before anything else{but}"
    if found.known is RobotsKnown.EXPIRED:
        return f"its robots.txt is more than a day old{read}; it is fetched again before anything else{but}"
    if found.known is RobotsKnown.UNREACHABLE:
        answer = f"answered {found.status}" if found.status is not None else "did not answer"
        return f"its robots.txt {answer}, so nothing may be requested until it does{but}"
    if found.known is RobotsKnown.ALLOW_ALL:
        return f"there is no robots.txt (status {found.status}{read}), so everything may be requested"
    word = "allows" if found.allowed else "forbids"
    why = f"by line {found.line}, {found.rule}" if found.line is not None else found.rule or "for no rule matches"
    return f"robots.txt {word} it, {why}{read}{but if not found.allowed else ''}"
