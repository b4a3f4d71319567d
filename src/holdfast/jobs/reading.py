"""What a run is, read once from what happened: its ending, whether it is tried again, what it is ready for. Pure.

`RULES` is the one table; `docs/endings.md` shows it to people, and a test compares the two. An execution's row keeps
its state, its reason and its shortfalls; retries, readiness, exit codes and sentences follow from these by `rule_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final, NamedTuple

from holdfast.types import Kind, Outcome
from holdfast.values import dataclass

DONE: Final = "done"
UNREACHABLE: Final = "domain_unreachable"
"""The reason with which pages end whose host stayed away for as long as a crawl waits."""
TRUNCATED_BODIES: Final = ("truncated", "truncated_length")
"""Reasons of bodies that are not whole: their server broke off, or our own limit of a body was reached."""
_FORBIDDEN: Final = ("address_forbidden", "domain_forbidden")
_LIMIT: Final = "over_limit:"


class Shortfall(StrEnum):
    """What a run may fall short of, the worst first: the first that happened is its reason."""

    STORAGE = "storage"
    CRASHED = "crashed"
    NO_SERVER = "no_server"
    NOTHING_CAPTURED = "nothing_captured"
    STOPPED = "stopped"
    MAX_TIME = "max_time"
    MAX_BYTES = "max_bytes"
    MAX_PAGES = "max_pages"
    HOSTS_GIVEN_UP = "hosts_given_up"
    TRUNCATED = "truncated"


LIMITS: Final = (Shortfall.MAX_TIME, Shortfall.MAX_BYTES, Shortfall.MAX_PAGES)


class Retry(StrEnum):
    """Whether a job's run is tried again."""

    NO = "no"
    YES = "by the job's retries"
    LATER = "after a cooldown, no retry is burnt"


class Rule(NamedTuple):
    """One row of the table."""

    what: str
    state: str
    reason: str
    retry: Retry
    is_ready: bool
    """Whether an edition with this run may be ready for research without a decision of a person."""
    exit_code: int


RULES: Final = (
    Rule("everything in scope was asked for, and nothing was cut short", "completed", DONE, Retry.NO, True, 0),
    Rule("hosts stayed unreachable for as long as a crawl waits", "completed", "hosts_given_up", Retry.YES, False, 0),
    Rule("bodies stayed cut off after every retry, or at our limit", "completed", "truncated", Retry.NO, False, 0),
    Rule("the limit of pages was reached", "completed", "max_pages", Retry.NO, False, 0),
    Rule("the limit of bytes was reached", "completed", "max_bytes", Retry.NO, False, 0),
    Rule("the limit of time was reached", "completed", "max_time", Retry.NO, False, 0),
    Rule("a person stopped the run of a job", "completed", "stopped", Retry.NO, False, 0),
    Rule("a person stopped a crawl; the same command resumes", "stopped", "stopped", Retry.NO, False, 0),
    Rule("a tool ended well and left no WARC file", "completed", "no_warcs", Retry.NO, False, 0),
    Rule("a tool left WARC files without a whole record", "completed", "damaged_warcs", Retry.NO, False, 0),
    Rule("a tool captured everything, and its final build failed", "completed", "build_failed", Retry.NO, False, 0),
    Rule("no server answered, or none gave its robots.txt", "failed", "no_server", Retry.YES, False, 1),
    Rule("servers answered or are forbidden; no page was captured", "failed", "nothing_captured", Retry.YES, False, 1),
    Rule("crawl processes kept dying", "failed", "crashed", Retry.YES, False, 1),
    Rule("the crawl itself failed", "failed", "failed", Retry.YES, False, 1),
    Rule("worker after worker fell silent, with no page between", "failed", "lease_lost", Retry.YES, False, 1),
    Rule("storage went away or cannot be written", "failed", "storage", Retry.LATER, False, 1),
    Rule("the machine failed otherwise (network, database)", "failed", "infra_error", Retry.LATER, False, 1),
    Rule("the configuration cannot be used", "failed", "infra_error_config", Retry.NO, False, 1),
    Rule("the worker has no runner for its backend", "failed", "no_runner", Retry.NO, False, 1),
    Rule("its ending could not be written", "failed", "unsettled", Retry.YES, False, 1),
    Rule("its job was cancelled; captures are kept", "cancelled", "cancelled", Retry.NO, False, 0),
    Rule("a person discarded it; no capture is kept", "cancelled", "discarded", Retry.NO, False, 0),
)
_BY_WORDS: Final = {(rule.state, rule.reason): rule for rule in RULES}


def rule_of(state: str, reason: str | None) -> Rule:
    """Return what follows from how a run ended.

    A completed run without a reason is one of a tool that gives none: nothing is known against it. A word that the
    table does not know is never ready; one that failed is tried again.
    """
    known = _BY_WORDS.get((state, reason or (DONE if state == "completed" else "")))
    if known is not None:
        return known
    failed = state == "failed"
    retry = Retry.YES if failed else Retry.NO
    return Rule("it ended otherwise", state, reason or state, retry, is_ready=False, exit_code=int(failed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What happened to the addresses of a run, counted over the last attempt on each."""

    captured: int = 0
    """Pages."""
    answered: int = 0
    """Addresses that a server said anything to, robots.txt included: a refusal is an answer."""
    failed: int = 0
    forbidden: int = 0
    """Pages that were not asked for because their address or domain is forbidden here."""
    hosts_given_up: int = 0
    """Hosts whose pages or sitemaps were closed because nothing could be reached; those of embedded things do not
    count."""
    truncated: int = 0
    over: Mapping[str, int] = field(default_factory=dict)
    """Addresses that a limit left over, by its word."""
    stopped: int | None = None
    """Addresses that were left when a person stopped it; None if it was not stopped."""


class Reading(NamedTuple):
    """What a run is."""

    state: str
    reason: str
    shortfalls: dict[str, int]
    """Everything that it fell short of, the worst first, with counts."""

    @property
    def rule(self) -> Rule:
        """What follows from it."""
        return rule_of(self.state, self.reason)

    def sentence(self) -> str:
        """Return it in words for people."""
        return sentence_of(self.state, self.reason, self.shortfalls)


def read(facts: Facts) -> Reading:
    """Return what a run is that came to its end: nothing is open, or a limit or a person ended it."""
    fell: dict[Shortfall, int] = {}
    # What a limit of time left over at a dead site was still waited for: it was asked for in vain like the rest.
    waited = facts.over.get(Shortfall.MAX_TIME.value, 0)
    missed = facts.failed + facts.forbidden + waited
    if facts.stopped is None and not facts.captured and missed:
        silent = (facts.failed or waited) and not facts.answered
        fell[Shortfall.NO_SERVER if silent else Shortfall.NOTHING_CAPTURED] = missed
    if facts.stopped is not None:
        fell[Shortfall.STOPPED] = facts.stopped
    for word in LIMITS:
        if facts.over.get(word.value):
            fell[word] = facts.over[word.value]
    if facts.hosts_given_up:
        fell[Shortfall.HOSTS_GIVEN_UP] = facts.hosts_given_up
    if facts.truncated:
        fell[Shortfall.TRUNCATED] = facts.truncated
    worst = [word for word in Shortfall if word in fell]
    shortfalls = {word.value: fell[word] for word in worst}
    if not worst:
        return Reading("completed", DONE, {})
    failed = worst[0] in (Shortfall.NO_SERVER, Shortfall.NOTHING_CAPTURED)
    return Reading("failed" if failed else "completed", worst[0].value, shortfalls)


class EndedAs(NamedTuple):
    """How many addresses of a run ended with these words, as the frontier counts them."""

    outcome: str | None
    reason: str | None
    kind: str
    addresses: int
    domains: int
    statuses: int
    """How many of them had an answer with a status."""


_FAILED: Final = (Outcome.FAILED.value, Outcome.TIMEOUT.value, Outcome.BLOCKED_4XX.value, Outcome.BLOCKED_5XX.value)


def facts_of(groups: Iterable[EndedAs], *, stopped: int | None = None) -> Facts:
    """Return the facts of a run from its addresses, grouped by how they ended."""
    captured = answered = failed = truncated = forbidden = 0
    over: dict[str, int] = {}
    hosts = {Kind.PAGE.value: 0, Kind.SITEMAP.value: 0}
    for group in groups:
        reason, is_page = group.reason or "", group.kind == Kind.PAGE.value
        said = group.outcome in (Outcome.SUCCESS.value, Outcome.BLOCKED_ROBOTS.value)
        answered += group.addresses if said else group.statuses
        captured += group.addresses if group.outcome == Outcome.SUCCESS.value and is_page else 0
        failed += group.addresses if group.outcome in _FAILED else 0
        if reason == UNREACHABLE and group.kind in hosts:
            hosts[group.kind] += group.domains
        truncated += group.addresses if reason in TRUNCATED_BODIES else 0
        forbidden += group.addresses if reason in _FORBIDDEN and is_page else 0
        if reason.startswith(_LIMIT):
            word = reason.removeprefix(_LIMIT)
            over[word] = over.get(word, 0) + group.addresses
    return Facts(
        captured=captured,
        answered=answered,
        failed=failed,
        forbidden=forbidden,
        hosts_given_up=max(hosts.values()),  # a host whose pages were given up is mostly the one of its sitemaps, too
        truncated=truncated,
        over=over,
        stopped=stopped,
    )


_COUNTED: Final = {
    Shortfall.HOSTS_GIVEN_UP.value: "{} given up: nothing could be reached there",
    Shortfall.TRUNCATED.value: "{} cut off by their servers or by our limit",
    Shortfall.MAX_PAGES.value: "{} left over by the limit of pages",
    Shortfall.MAX_BYTES.value: "{} left over by the limit of bytes",
    Shortfall.MAX_TIME.value: "{} left over by the limit of time",
    Shortfall.STOPPED.value: "{} left when it was stopped",
    Shortfall.NO_SERVER.value: "{} asked for and no server answered",
    Shortfall.NOTHING_CAPTURED.value: "{} asked for and none captured",
}
_NOUNS: Final = {Shortfall.HOSTS_GIVEN_UP.value: "host", Shortfall.TRUNCATED.value: "body"}
_PLURALS: Final = {"host": "hosts", "body": "bodies", "address": "addresses"}


def shortfall_text(word: str, count: int) -> str:
    """Return one shortfall in words, with its count."""
    noun = _NOUNS.get(word, "address")
    counted = f"{count:,} {noun if count == 1 else _PLURALS[noun]}"
    return _COUNTED[word].format(counted) if word in _COUNTED else f"{word}: {count:,}"


def sentence_of(state: str, reason: str | None, shortfalls: Mapping[str, int]) -> str:
    """Return in words how a run ended and what it fell short of."""
    rule = rule_of(state, reason)
    told = "; ".join(shortfall_text(word, count) for word, count in shortfalls.items())
    return f"{rule.what} ({told})" if told else rule.what
