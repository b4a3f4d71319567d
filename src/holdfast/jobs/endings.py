"""How runs end and what follows: the table of endings, retries, the adaptive interval, and a runner's report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from holdfast.types import (
    DOMAIN_PAUSED,
    DOMAIN_UNREACHABLE,
    FAILURES,
    NEW_OWNER,
    REDIRECTED,
    TAKEN_AWAY,
    TRUNCATED_BODIES,
    Outcome,
    UrlKind,
)
from holdfast.values import dataclass

if TYPE_CHECKING:
    from holdfast.config.timings import Timings
    from holdfast.db.models import Job

DONE: Final = "done"
_FORBIDDEN: Final = ("address_forbidden", "domain_forbidden")
_LIMIT: Final = "over_limit:"


class Shortfall(StrEnum):
    """Shortfalls of a run, worst first: the first that applies is its reason."""

    STORAGE = "storage"
    CRASHED = "crashed"
    NO_SERVER = "no_server"
    NOTHING_CAPTURED = "nothing_captured"
    STOPPED = "stopped"
    MAX_TIME = "max_time"
    MAX_BYTES = "max_bytes"
    MAX_PAGES = "max_pages"
    HOSTS_GIVEN_UP = "hosts_given_up"
    FILES_ELSEWHERE = "files_elsewhere"
    SEEDS_MOVED = "seeds_moved"
    BUILT_IN_LIMITS = "limits"
    TRUNCATED = "truncated"


LIMITS: Final = (Shortfall.MAX_TIME, Shortfall.MAX_BYTES, Shortfall.MAX_PAGES)


class Retry(StrEnum):
    NO = "no"
    YES = "by the job's retries"
    LATER = "after a cooldown, no retry is burnt"


class ReadingRule(NamedTuple):
    what: str
    state: str
    reason: str
    retry: Retry = Retry.NO

    @property
    def is_ready(self) -> bool:
        """Whether an edition with this run may be research-ready without a decision by a person."""
        return (self.state, self.reason) == ("completed", DONE)

    @property
    def exit_code(self) -> int:
        return int(self.state == "failed")

    @property
    def word(self) -> str:
        """The one word for this ending, in commands, the API and pages: completed, incomplete, stopped, failed,
        cancelled or discarded.
        """
        if self.reason in (Shortfall.STOPPED, "discarded"):
            return self.reason
        return "incomplete" if self.state == "completed" and not self.is_ready else self.state

    @property
    def is_success(self) -> bool:
        """Whether the run counts as a success; a run stopped by a person counts as neither success nor failure."""
        return self.state == "completed" and self.word != "stopped"


RULES: Final = (
    ReadingRule("everything in scope was requested, and nothing was cut short", "completed", DONE),
    ReadingRule("hosts stayed unreachable for as long as a crawl waits", "completed", "hosts_given_up", Retry.YES),
    ReadingRule("WARC files are not on the machine that ended the run", "completed", "files_elsewhere"),
    ReadingRule("bodies stayed cut off after every retry, or at our limit", "completed", "truncated"),
    ReadingRule("seeds now lead to hosts of other owners and were not followed", "completed", "seeds_moved"),
    ReadingRule("built-in limits or traps left out links, or pages were not read to their end", "completed", "limits"),
    ReadingRule("the limit of pages was reached", "completed", "max_pages"),
    ReadingRule("the limit of bytes was reached", "completed", "max_bytes"),
    ReadingRule("the limit of time was reached", "completed", "max_time"),
    ReadingRule("a person stopped the run of a job", "completed", "stopped"),
    ReadingRule("a person stopped a crawl; the same command resumes", "stopped", "stopped"),
    ReadingRule("a tool ended well and left no WARC file", "completed", "no_warcs"),
    ReadingRule("a tool left WARC files without a readable record", "completed", "damaged_warcs"),
    ReadingRule("a tool captured everything, and its final build failed", "completed", "build_failed"),
    ReadingRule("no server answered, or none gave its robots.txt", "failed", "no_server", Retry.YES),
    ReadingRule("servers answered or are forbidden; no page was captured", "failed", "nothing_captured", Retry.YES),
    ReadingRule("crawl processes kept dying", "failed", "crashed", Retry.YES),
    ReadingRule("the crawl itself failed", "failed", "failed", Retry.YES),
    ReadingRule("worker after worker fell silent, with no page between", "failed", "lease_lost", Retry.YES),
    ReadingRule("storage went away or cannot be written", "failed", "storage", Retry.LATER),
    ReadingRule("the machine failed otherwise (network, database)", "failed", "infra_error", Retry.LATER),
    ReadingRule("the configuration cannot be used", "failed", "infra_error_config"),
    ReadingRule("the worker has no runner for its backend", "failed", "no_runner"),
    ReadingRule("its ending could not be written", "failed", "unsettled", Retry.YES),
    ReadingRule("its job was cancelled; captures are kept", "cancelled", "cancelled"),
    ReadingRule("a person discarded it; no capture is kept", "cancelled", "discarded"),
)
_BY_WORDS: Final = {(rule.state, rule.reason): rule for rule in RULES}


def rule_of(state: str, reason: str | None) -> ReadingRule:
    """Return the rule for a state and reason.

    A completed run without a reason comes from a tool that gives none: it counts as done. An unknown reason is
    never ready; with state `failed` it is retried.
    """
    # zimit and imports give no reason for a good end.
    known = _BY_WORDS.get((state, reason or (DONE if state == "completed" else "")))
    if known is not None:
        return known
    return ReadingRule("it ended otherwise", state, reason or state, Retry.YES if state == "failed" else Retry.NO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Counts of what happened to the URLs of a run, by the last attempt on each."""

    captured: int = 0
    """Number of pages."""
    redirects: int = 0
    """Pages that only redirect to another URL."""
    moved: int = 0
    """Seeds that now redirect to a host of another owner."""
    answered: int = 0
    """URLs with any response from a server, robots.txt included: a rejection counts."""
    failed: int = 0
    forbidden: int = 0
    """Pages that were not requested because their URL or domain is forbidden here."""
    hosts_given_up: int = 0
    """Hosts whose pages or sitemaps were closed as unreachable; embedded resources do not count."""
    files_elsewhere: int = 0
    """WARC files missing on the machine that ends the run: another machine wrote them."""
    truncated: int = 0
    over: Mapping[str, int] = field(default_factory=dict)
    """URLs left over because of a limit, by its name."""
    stopped: int | None = None
    """URLs left when a person stopped the run; None if it was not stopped."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Links skipped by built-in limits and traps, and documents not read to the end, by rule."""


class RunReading(NamedTuple):
    state: str
    reason: str
    shortfalls: dict[str, int]
    """All shortfalls, worst first, with counts; then the rules behind `limits`, with their counts."""

    @property
    def rule(self) -> ReadingRule:
        return rule_of(self.state, self.reason)

    def sentence(self) -> str:
        return sentence_of(self.state, self.reason, self.shortfalls)


def read(facts: Facts) -> RunReading:
    """Classify a run that ended: nothing is open, or a limit or a person ended it."""
    fell: dict[Shortfall, int] = {}
    # The time limit also leaves over URLs of a dead site: the run waited for them in vain like for the rest.
    waited = facts.over.get(Shortfall.MAX_TIME.value, 0)
    missed = facts.failed + facts.forbidden + facts.redirects + facts.moved + waited
    if facts.stopped is None and not facts.captured and missed:
        silent = (facts.failed or waited) and not facts.answered
        fell[Shortfall.NO_SERVER if silent else Shortfall.NOTHING_CAPTURED] = missed
    if facts.stopped is not None:
        fell[Shortfall.STOPPED] = facts.stopped
    counted = {word: facts.over.get(word.value, 0) for word in LIMITS} | {
        Shortfall.HOSTS_GIVEN_UP: facts.hosts_given_up,
        Shortfall.FILES_ELSEWHERE: facts.files_elsewhere,
        Shortfall.SEEDS_MOVED: facts.moved,
        Shortfall.BUILT_IN_LIMITS: sum(facts.left_out.values()),
        Shortfall.TRUNCATED: facts.truncated,
    }
    # Include all shortfalls, not only the worst: a run may reach its limit and also lose hosts.
    fell |= {word: count for word, count in counted.items() if count}
    # Keep the order of the enum, the worst first.
    worst = [word for word in Shortfall if word in fell]
    shortfalls = {word.value: fell[word] for word in worst} | dict(facts.left_out)
    if not worst:
        return RunReading("completed", DONE, {})
    state = "failed" if worst[0] in _OF_THE_WHOLE else "completed"
    return RunReading(state, worst[0].value, shortfalls)


_OF_THE_WHOLE: Final = (Shortfall.NO_SERVER, Shortfall.NOTHING_CAPTURED)


def failed(word: Shortfall, count: int, so_far: RunReading) -> RunReading:
    """Classify a run that failed before its end; earlier shortfalls are included."""
    # Omit whether a page was captured: the run had not finished.
    before = {name: known for name, known in so_far.shortfalls.items() if name not in _OF_THE_WHOLE}
    return RunReading("failed", word.value, {word.value: count} | before)


class EndedAs(NamedTuple):
    """Number of a run's URLs with the same outcome, reason and kind, as the frontier counts them."""

    outcome: str | None
    reason: str | None
    kind: str
    addresses: int
    domains: int
    statuses: int
    """How many of them had a response with a status."""


def facts_of(groups: Iterable[EndedAs], *, stopped: int | None = None) -> Facts:
    captured = answered = failed = truncated = forbidden = taken_away = redirects = moved = 0
    over: dict[str, int] = {}
    hosts = {UrlKind.PAGE.value: 0, UrlKind.SITEMAP.value: 0}
    for group in groups:
        reason, is_page = group.reason or "", group.kind == UrlKind.PAGE.value
        # A robots.txt that forbids is a response: the server exists, so `no_server` would be wrong.
        said = group.outcome in (Outcome.SUCCESS.value, Outcome.BLOCKED_ROBOTS.value)
        answered += group.addresses if said else group.statuses
        if group.outcome == Outcome.SUCCESS.value and is_page:
            redirects += group.addresses if reason == REDIRECTED else 0
            captured += group.addresses if reason != REDIRECTED else 0
        moved += group.addresses if reason.startswith(NEW_OWNER) else 0
        failed += group.addresses if group.outcome in FAILURES else 0
        # Images and scripts may be on other owners' hosts: their silence says nothing about the site.
        if reason in (DOMAIN_UNREACHABLE, DOMAIN_PAUSED) and group.kind in hosts:
            hosts[group.kind] += group.domains
        truncated += group.addresses if reason in TRUNCATED_BODIES else 0
        forbidden += group.addresses if reason in _FORBIDDEN and is_page else 0
        taken_away += group.addresses if reason in TAKEN_AWAY else 0
        if reason.startswith(_LIMIT):
            word = reason.removeprefix(_LIMIT)
            over[word] = over.get(word, 0) + group.addresses
    return Facts(
        captured=captured,
        redirects=redirects,
        moved=moved,
        answered=answered,
        failed=failed,
        forbidden=forbidden,
        # A host whose pages were given up usually also serves the sitemaps.
        hosts_given_up=max(hosts.values()),
        truncated=truncated,
        over=over,
        # Count URLs that an operator removed from the queue like those left over by a stop.
        stopped=(stopped or 0) + taken_away if taken_away else stopped,
    )


_COUNTED: Final = {
    Shortfall.HOSTS_GIVEN_UP.value: "{} given up: nothing could be reached there",
    Shortfall.FILES_ELSEWHERE.value: "{} written by another machine and missing here",
    Shortfall.SEEDS_MOVED.value: "{} led to a host of another owner; to follow it, add that address as a seed",
    Shortfall.BUILT_IN_LIMITS.value: "{} left out or not read because of built-in limits",
    "over_limit:links": "{} beyond the limit of one page or sitemap",
    "over_limit:requisites": "{} that pages embed beyond the limit of one document or too many steps away",
    "over_limit:sitemaps": "{} of sitemaps beyond the limit of one run",
    "over_limit:sitemap_depth": "{} of sitemaps in indexes that are nested too deep",
    "over_limit:unread": "{} not read to their end, so that links may be missing",
    "trap:query_variants": "{} with too many queries of one path",
    "trap:subdomains": "{} on too many hosts of one domain",
    "trap:directory_budget": "{} in directories with too many addresses",
    "trap:domain_budget": "{} on hosts with too many addresses",
    "trap:path_depth": "{} with paths that are too deep",
    "trap:repeated_segments": "{} with paths that repeat themselves",
    Shortfall.TRUNCATED.value: "{} cut off by their servers or by our limit",
    Shortfall.MAX_PAGES.value: "{} left over by the limit of pages",
    Shortfall.MAX_BYTES.value: "{} left over by the limit of bytes",
    Shortfall.MAX_TIME.value: "{} left over by the limit of time",
    Shortfall.STOPPED.value: "{} left when it was stopped",
    Shortfall.NO_SERVER.value: "{} asked for and no server answered",
    Shortfall.NOTHING_CAPTURED.value: "{} asked for and none captured",
}
_NOUNS: Final = {
    Shortfall.HOSTS_GIVEN_UP.value: "host",
    Shortfall.FILES_ELSEWHERE.value: "file",
    Shortfall.SEEDS_MOVED.value: "seed",
    Shortfall.TRUNCATED.value: "body",
    "over_limit:unread": "document",
}
_PLURALS: Final = {"body": "bodies", "address": "addresses"}


def shortfall_text(word: str, count: int) -> str:
    noun = _NOUNS.get(word, "address")
    counted = f"{count:,} {noun if count == 1 else _PLURALS.get(noun, f'{noun}s')}"
    return _COUNTED[word].format(counted) if word in _COUNTED else f"{word}: {count:,}"


def ending_word(state: str, reason: str | None) -> str | None:
    """Return the word for an ending; None while the run is open."""
    return None if state in ("queued", "running") else rule_of(state, reason).word


def ending_text(state: str, reason: str | None) -> str:
    """Return a run's ending as a word with its reason: `incomplete (max_pages)`; its state while it is open."""
    word = ending_word(state, reason) or state
    return f"{word} ({reason})" if reason and reason != word else word


def sentence_of(state: str, reason: str | None, shortfalls: Mapping[str, int]) -> str:
    rule = rule_of(state, reason)
    details = "; ".join(shortfall_text(word, count) for word, count in shortfalls.items())
    return f"{rule.what} ({details})" if details else rule.what


CAP_S = 3600
"""Maximum wait between two attempts."""
ZIMIT_RETRIES = 2
"""A zimit crawl has two retries, without a wait."""


class FailureCause(StrEnum):
    FAILED = "failed"
    """The crawl failed: uses a retry."""
    INFRA = "infra_error"
    """The machine failed (storage, mount, network): waits for a cooldown and uses no retry."""
    CONFIG = "infra_error_config"
    """The configuration is wrong: retrying changes nothing."""
    LEASE_LOST = "lease_lost"
    """Its owners stopped responding too often."""


def backoff(base_s: float, attempt: int) -> timedelta:
    """Return the wait before a retry: base·2^(attempt-1), at most an hour; the first retry is attempt 1."""
    # Bound the exponent first: from 2**1024 on, the product with a float overflows.
    doublings = min(max(attempt, 1) - 1, 32)
    return timedelta(seconds=min(base_s * 2**doublings, CAP_S))


RetryDecision = tuple[timedelta, int, int]
"""The wait before a retry, and the new values of the job's two counters of retries."""


def after_failure(failure: FailureCause, job: Job, timings: Timings, *, backend: str) -> RetryDecision | None:
    """Return when a failed run is retried, or None if its job fails.

    A native crawl waits longer before each retry; zimit is retried immediately.
    """
    # The same configuration would fail the same way again: a retry would only fill the history.
    if failure is FailureCause.CONFIG:
        return None
    retries, infra_retries = job.current_retry_count, job.infra_retry_count
    if failure is FailureCause.INFRA:
        # Count machine failures separately: a disk that is away for an hour must not use up the retries for the site.
        if infra_retries >= timings.jobs_infra_retries:
            return None
        return timedelta(seconds=timings.jobs_infra_cooldown_s), retries, infra_retries + 1
    is_zimit = backend == "zimit"
    if retries >= (min(job.max_retries, ZIMIT_RETRIES) if is_zimit else job.max_retries):
        return None
    return backoff(0 if is_zimit else job.retry_backoff_seconds, retries + 1), retries + 1, 0


CAP = timedelta(hours=24)
# More doublings change nothing: the result is already longer than any interval of a job.
_DOUBLINGS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPage:
    """A run's observation of its start page. With neither a hash nor `not_modified` it cannot be compared."""

    content_hash: str | None = None
    not_modified: bool = False
    """The server responded with 304, or with the ETag that we had."""


def note_start_page(job: Job, page: StartPage, *, now: datetime) -> None:
    """Record whether a job's start page changed; a page that cannot be compared changes nothing."""
    # An equal ETag counts like a 304: the server says that its page is the same.
    if page.not_modified or (page.content_hash is not None and page.content_hash == job.start_hash):
        job.unchanged_count = max(job.unchanged_count, 0) + 1
    elif page.content_hash is not None:
        job.start_hash, job.start_changed_at, job.unchanged_count = page.content_hash, now, 0


def interval(baseline: timedelta, unchanged: int) -> timedelta:
    """Return baseline·2^unchanged, at most 24 hours, but never less than the baseline."""
    if unchanged <= 0 or baseline <= timedelta():
        return baseline
    # An unchanged page must not shorten an interval of a week to a day.
    longest = max(CAP, baseline)
    doublings = min(unchanged, _DOUBLINGS)
    return min(longest, timedelta(seconds=min(baseline.total_seconds() * 2**doublings, longest.total_seconds())))


MAX_ERROR_CHARS = 4_000
MAX_STACK_CHARS = 32_000


class RunResult(StrEnum):
    """The three final results of a run; a run that will continue is released instead."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    items_crawled: int = 0
    items_indexed: int = 0
    items_failed: int = 0
    items_total: int = 0
    cpu_ms: int | None = None
    peak_memory_bytes: int | None = None

    @property
    def items(self) -> tuple[int, int, int, int]:
        return self.items_crawled, self.items_indexed, self.items_failed, self.items_total

    def after(self, before: Counts) -> Counts:
        """Add the cost of the execution's earlier holders: times add up, peak memory is the maximum."""
        spent = [one for one in (before.cpu_ms, self.cpu_ms) if one is not None]
        peaks = [one for one in (before.peak_memory_bytes, self.peak_memory_bytes) if one is not None]
        return replace(self, cpu_ms=sum(spent) if spent else None, peak_memory_bytes=max(peaks, default=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendVerdict:
    """A backend's own decision after a failed crawl, instead of the retry budget."""

    again: bool
    """Retry immediately, or fail."""
    resets_count: bool = False
    """Reset the failure count: something else does the work from here on."""
    job_config: dict[str, Any] | None = None
    """New configuration of the job, if something else does the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnding:
    result: RunResult
    reason: str | None = None
    shortfalls: Mapping[str, int] = field(default_factory=dict)
    """Shortfalls by the words of `Shortfall`, worst first."""
    failure: FailureCause | None = None
    error: str | None = None
    stack: str | None = None
    exit_code: int | None = None
    stage: str | None = None
    counts: Counts = field(default_factory=Counts)
    metrics: dict[str, Any] = field(default_factory=dict)
    start: StartPage = field(default_factory=StartPage)
    index_state: str | None = None
    """`pending` if there are WARC files to index."""
    artifacts: dict[str, Any] = field(default_factory=dict)
    """Files beside the WARC files, by kind: combined_log, state_file, final_zim, coverage_report."""
    not_before: datetime | None = None
    """When unreachable hosts may be requested again: a retry that starts earlier would only wait."""
    verdict: BackendVerdict | None = None
    """Used only if the crawl itself failed."""

    @classmethod
    def of(cls, reading: RunReading, **fields: Any) -> Self:
        """Return the ending for a reading: completed, failed, or cancelled.

        Failures count as the crawl's own, except those that use no retry: these are the machine's.
        """
        result = RunResult(reading.state)
        failure = None
        if result is RunResult.FAILED:
            failure = FailureCause.INFRA if reading.rule.retry is Retry.LATER else FailureCause.FAILED
        return cls(result=result, reason=reading.reason, shortfalls=reading.shortfalls, failure=failure, **fields)

    @property
    def rule(self) -> ReadingRule:
        """The rule for its reason, or for its failure cause if it has no reason."""
        return rule_of(self.result.value, self.reason or self.failure)

    def sentence(self) -> str:
        return sentence_of(self.result.value, self.reason, self.shortfalls)
