"""Answers about the frontier and its domains, and the forms by which operators change them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Self

from pydantic import Field, StringConstraints

from holdfast.api.schemas.base import Answer, RequestForm
from holdfast.clock import digits14, from_micros
from holdfast.jobs.administration.frontier_actions import MOST_URLS, Added, AddedAs, AddedPlace, Closed
from holdfast.jobs.administration.requeueing import Requeued, RequeueStatus
from holdfast.jobs.views.frontier_queries import FrontierUrl, MeantFrontier, QueueFigures, UrlStatus
from holdfast.jobs.views.host_queries import DomainRow, DomainState, HostOfCrawl, LeftOutHost, QueueOfDomain
from holdfast.jobs.views.outcome_words import outcome_word, robots_line
from holdfast.jobs.views.run_captures import CaptureOfRun
from holdfast.operations.stores import Cleaning, CleanTarget, StoreName, WeighedStores
from holdfast.types import Outcome, RobotsAnswer, UrlKind

_Address = Annotated[str, StringConstraints(min_length=1, max_length=8192)]
_Code = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class FrontierFigures(Answer):
    """The frontier of an execution in figures; each address counts once."""

    execution_id: int
    source_code: str
    state: str = Field(description="Of the execution: queued, running, stopped, completed, failed or cancelled.")
    pending: int = Field(description="Queued, those that are being asked for included.")
    in_progress: int = Field(description="Domains that are being asked, one request at a time each.")
    completed: int
    failed: int
    ruled_out: int = Field(description="Ended by a rule, a limit or an operator without being asked for.")
    total_domains: int
    paused_domains: int = Field(description="With something queued that waits for them to be resumed.")
    waiting: int = Field(description="Added by hand, for the next run of the source; counted up to 10,000.")

    @classmethod
    def of(cls, meant: MeantFrontier, figures: QueueFigures) -> Self:
        """Return the figures as they are answered."""
        return cls(
            execution_id=meant.execution_id,
            source_code=meant.source,
            state=meant.state,
            pending=figures.pending,
            in_progress=figures.in_progress,
            completed=figures.completed,
            failed=figures.failed,
            ruled_out=figures.ruled_out,
            total_domains=figures.domains,
            paused_domains=figures.paused_domains,
            waiting=figures.waiting,
        )


class RunCapture(Answer):
    """What a run captured of an address, or of the page that its answer shows."""

    snapshot_id: int
    timestamp: str = Field(description="14 digits, as in the address of its replay.", examples=["20261118103000"])
    url: str

    @classmethod
    def of(cls, row: CaptureOfRun) -> Self:
        """Return it as it is answered."""
        return cls(snapshot_id=row.snapshot_id, timestamp=digits14(row.captured_at), url=row.url)


class QueuedUrl(Answer):
    """One attempt on an address."""

    id: int
    url: str
    domain: str
    kind: UrlKind
    status: UrlStatus
    priority: int
    depth: int
    attempt: int = Field(description="1 for the first try.")
    outcome: Outcome | None = Field(description="How it ended; null while it is queued.")
    word: str = Field(description="The same for people, such as `not found`.")
    reason: str | None
    robots_line: int | None = Field(description="The line of robots.txt that forbids it; `message` has its rule.")
    status_code: int | None
    message: str | None
    crashes: int = Field(description="Processes that died while they parsed it.")
    created_at: datetime
    scheduled_for: datetime | None = Field(description="Not before this moment.")
    completed_at: datetime | None
    capture: RunCapture | None = Field(
        description="Null if nothing was captured, if it is not indexed yet, or if it may not be seen."
    )

    @classmethod
    def of(cls, row: FrontierUrl, capture: CaptureOfRun | None = None) -> Self:
        """Return an attempt as it is answered."""
        created_at, scheduled_for, completed_at = row.moments()
        return cls(
            id=row.id,
            url=row.url,
            domain=row.domain,
            kind=UrlKind(row.kind),
            status=row.status,
            priority=row.priority,
            depth=row.depth,
            attempt=row.attempt,
            outcome=None if row.outcome is None else Outcome(row.outcome),
            word=outcome_word(row.outcome, row.reason),
            reason=row.reason,
            robots_line=robots_line(row.reason),
            status_code=row.status_code,
            message=row.message,
            crashes=row.crashes,
            created_at=created_at,
            scheduled_for=scheduled_for,
            completed_at=completed_at,
            capture=None if capture is None else RunCapture.of(capture),
        )


class AddForm(RequestForm):
    """Addresses to crawl."""

    urls: Annotated[list[_Address], Field(min_length=1, max_length=MOST_URLS)] = Field(
        description="Addresses, all of them checked before one is added.", examples=[["https://example.org/news"]]
    )
    source: _Code | None = Field(
        default=None, description="The source that they belong to; without it, it is found by its scope."
    )
    priority: Annotated[int, Field(ge=1, le=3)] | None = Field(
        default=None, description="3 is asked first; without it, as the crawl itself would rank them."
    )


class SeedForm(RequestForm):
    """Seeds to crawl."""

    urls: Annotated[list[_Address], Field(max_length=MOST_URLS)] = Field(
        default_factory=list, description="Addresses; without any, the seeds of the source.", examples=[[]]
    )
    source: _Code | None = Field(default=None, examples=["example-org"])


class RequeueForm(RequestForm):
    """Pages to queue again."""

    domain: Annotated[str, StringConstraints(min_length=1, max_length=255)] = Field(examples=["example.org"])
    since: date | None = Field(
        None, strict=False, description="First day (UTC) of their last fetch, or failure. Required without `until`."
    )
    until: date | None = Field(
        None, strict=False, description="Last day. Required without `since`.", examples=["2026-01-31"]
    )
    status: RequeueStatus = Field(RequeueStatus.FETCHED, strict=False, description="Which pages: fetched or failed.")
    apply: bool = Field(False, description="Queue them; without it, only count.")
    after: int | None = Field(None, description="`next` of the answer before.", ge=-(2**63), lt=2**63)


class AddedTo(Answer):
    """Where some of the addresses went."""

    source_code: str
    status: AddedAs = Field(
        description="`joined` a run under way, `waits` for the next one, or `job_made`: a job captures them once "
        "and follows links only from seeds."
    )
    urls: int
    added: int = Field(description="Those that were not known there.")
    raised: int = Field(description="Those that were queued there already, and now have the higher priority.")
    execution_id: int | None
    job_id: int | None
    when: str = Field(
        description="When they are crawled, in a sentence for people.",
        examples=["They wait for the next run of example-org: job 4, at 2026-01-31 03:00 UTC."],
    )

    @classmethod
    def of(cls, place: AddedPlace) -> Self:
        """Return it as it is answered."""
        return cls(
            source_code=place.source,
            status=place.as_what,
            urls=place.urls,
            added=place.added,
            raised=place.raised,
            execution_id=place.execution_id,
            job_id=place.job_id,
            when=place.when,
        )


class RequeueReceipt(Answer):
    """What was found, and queued."""

    matched: int = Field(examples=[12])
    added: int = Field(description="Those that were not queued already; 0 without `apply`.")
    skipped: int = Field(description="Out of scope now, or of a source that takes no addresses.")
    places: list[AddedTo] = Field(description="What takes them.")
    next: int | None = Field(description="Ask again with `after` set to this; null at the end.")

    @classmethod
    def of(cls, done: Requeued[int]) -> RequeueReceipt:
        """Return it as it is answered."""
        places = [AddedTo.of(place) for place in done.places]
        return cls(matched=done.matched, added=done.added, skipped=done.skipped, places=places, next=done.next)


class RunRequeueForm(RequestForm):
    """What failed of a run, to queue again."""

    apply: bool = Field(False, description="Queue them; without it, only count.", examples=[True])
    cursor: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        None, description="`next` of the answer before."
    )


class RunRequeueReceipt(Answer):
    """What failed of a run, and what takes it."""

    matched: int = Field(examples=[12])
    added: int = Field(description="Those that were not queued already; 0 without `apply`.")
    skipped: int = Field(description="Out of scope now, or of a source that takes no addresses.")
    places: list[AddedTo]
    next: str | None = Field(description="Ask again with `cursor` set to this; null at the end.")


class AddReceipt(Answer):
    """What became of addresses that were added."""

    added: int
    total: int
    places: list[AddedTo]

    @classmethod
    def of(cls, done: Added) -> Self:
        """Return it as it is answered."""
        return cls(
            added=done.added,
            total=done.total,
            places=[AddedTo.of(place) for place in done.places],
        )


class ClearReceipt(Answer):
    """What was taken from a queue."""

    removed: int
    done: bool = Field(description="Whether nothing is left; otherwise the same request goes on.")
    executions: list[int] = Field(description="Whose frontiers it was taken from.")

    @classmethod
    def of(cls, done: Closed) -> Self:
        """Return it as it is answered."""
        return cls(removed=done.closed, done=done.is_done, executions=list(done.executions))


class RecoverReceipt(Answer):
    """What was freed of processes that died."""

    recovered: int = Field(description="Domains that can be asked again.")
    processes: int = Field(description="Dead processes that were cleaned up after.")
    files: list[str] = Field(description="WARC files that were repaired and sealed.")
    orphan_records: int = Field(description="Records that are kept and will be fetched again.")


class DomainSummary(Answer):
    """A domain as it stands."""

    domain: str
    state: DomainState
    page_count: int = Field(description="Pages that are known, counted up to 10,000.")
    crawl_delay: float | None = Field(description="Seconds between requests that an operator set; null: the source's.")
    is_allowed: bool
    paused: bool
    paused_at: datetime | None
    circuit: str = Field(description="closed, open or half_open.")
    circuit_failures: int
    circuit_opened_at: datetime | None
    slow_down: float = Field(description="Factor on the delay after 429 and 503; 1 is none.")
    unreachable_since: datetime | None
    next_allowed_at: datetime | None
    leased: bool = Field(description="Whether a process asks it at this moment.")
    created_at: datetime

    @classmethod
    def of(cls, row: DomainRow, *, pages: int, now: datetime) -> Self:
        """Return a domain as it is answered."""
        return cls(**_domain_fields(row, pages=pages, now=now))


class QueueInExecution(Answer):
    """What one execution has of a domain."""

    execution_id: int
    pending: int
    completed: int
    failed: int
    ruled_out: int

    @classmethod
    def of(cls, row: QueueOfDomain) -> Self:
        """Return it as it is answered."""
        return cls(
            execution_id=row.execution_id,
            pending=row.open,
            completed=row.succeeded,
            failed=row.failed,
            ruled_out=row.ruled_out,
        )


class CrawledHost(Answer):
    """A host in one crawl: what it has queued and done, and how it stands."""

    domain: str
    state: DomainState = Field(description="Of the host itself, whichever crawl asks it.")
    pending: int
    completed: int
    failed: int
    ruled_out: int
    due_at: datetime | None = Field(description="Nothing of it is asked for before; null if nothing is queued.")
    next_allowed_at: datetime | None
    crawl_delay: float | None = Field(description="Seconds between requests that an operator set; null: the source's.")
    circuit: str = Field(description="closed, open or half_open.")
    circuit_failures: int
    slow_down: float = Field(description="Factor on the delay after 429 and 503; 1 is none.")
    paused_at: datetime | None
    unreachable_since: datetime | None

    @classmethod
    def of(cls, row: HostOfCrawl, *, now: datetime) -> Self:
        """Return a host as it is answered."""
        domain, queue = row.domain, row.queue
        return cls(
            domain=domain.name,
            state=domain.state(now),
            pending=queue.open,
            completed=queue.succeeded,
            failed=queue.failed,
            ruled_out=queue.ruled_out,
            due_at=from_micros(row.due_at) if queue.open and row.due_at else None,
            next_allowed_at=domain.next_moment,
            crawl_delay=domain.delay_s,
            circuit=domain.circuit_state,
            circuit_failures=domain.circuit_failures,
            slow_down=domain.penalty,
            paused_at=domain.paused_at,
            unreachable_since=domain.unreachable_since,
        )


class RobotsOfOrigin(Answer):
    """What is known of one robots.txt."""

    origin: str
    answer: RobotsAnswer = Field(description="rules, allow_all (there is none), or unreachable: nothing may be asked.")
    status: int | None
    failures: int
    fetched_at: datetime
    checked_at: datetime


class DomainDetail(DomainSummary):
    """A domain in full."""

    robots: list[RobotsOfOrigin]
    queue: QueueInExecution | None = Field(description="In the newest crawl; null if it has not met this domain.")

    @classmethod
    def in_full(
        cls,
        row: DomainRow,
        *,
        pages: int,
        now: datetime,
        robots: list[RobotsOfOrigin],
        queue: QueueInExecution | None,
    ) -> Self:
        """Return a domain as it is answered."""
        return cls(**_domain_fields(row, pages=pages, now=now), robots=robots, queue=queue)


def _domain_fields(row: DomainRow, *, pages: int, now: datetime) -> dict[str, object]:
    return {
        "domain": row.name,
        "state": row.state(now),
        "page_count": pages,
        "crawl_delay": row.delay_s,
        "is_allowed": row.is_allowed,
        "paused": row.paused_at is not None,
        "paused_at": row.paused_at,
        "circuit": row.circuit_state,
        "circuit_failures": row.circuit_failures,
        "circuit_opened_at": row.circuit_opened_at,
        "slow_down": row.penalty,
        "unreachable_since": row.unreachable_since,
        "next_allowed_at": row.next_moment,
        "leased": row.is_held(now),
        "created_at": row.created_at,
    }


class RobotsRuling(Answer):
    """What robots.txt says of one address."""

    url: str
    allowed: bool
    rule: str | None = Field(description="The line that decided, as it is written; null if none matched.")
    line: int | None
    reason: str = Field(description="In words.")


class DomainRobots(Answer):
    """The robots files of a domain. Their text is of others: show it as text, never as markup."""

    domain: str
    robots_txt: str | None = Field(description="Of the address that was asked about, or of the first origin.")
    fetched_at: datetime | None
    origins: list[RobotsOfOrigin]
    crawl_delay: float | None = Field(description="Seconds that it asks of us.")
    sitemaps: list[str]
    ruling: RobotsRuling | None = Field(description="Of the address that was asked about.")


class DomainSettingsForm(RequestForm):
    """What is to change; what is left out stays as it is."""

    crawl_delay: Annotated[float, Field(ge=0, le=86_400)] | None = Field(
        default=None,
        alias="crawlDelay",
        description="Seconds between two requests, 1 at least; null leaves it to the source. It only ever slows.",
    )
    paused: bool | None = Field(default=None, description="Nothing is asked; what is queued stays queued.")
    is_allowed: bool | None = Field(
        default=None, alias="isAllowed", description="A forbidden domain is never asked; what is queued ends."
    )


class DomainSettingsShown(Answer):
    """What is set for a domain."""

    domain: str
    crawl_delay: float | None
    is_allowed: bool
    paused: bool
    paused_at: datetime | None


class DomainReceipt(Answer):
    """What was done to a domain."""

    domain: str
    changed: bool


class DiscoveredHost(Answer):
    """A host that links led to and that was not followed."""

    host: str
    rule: str = Field(description="The rule that left it out.")
    links: int

    @classmethod
    def of(cls, row: LeftOutHost) -> Self:
        """Return it as it is answered."""
        return cls(host=row.host, rule=row.rule, links=row.links)


class StoreShown(Answer):
    """What one store takes."""

    name: StoreName
    bytes: int
    files: int | None
    whole: bool = Field(description="False if there are more files than are weighed for a request.")


class TableShown(Answer):
    """A table with its indexes."""

    table: str
    bytes: int
    rows: int = Field(description="As the database server last estimated them.")


class StorageShown(Answer):
    """What each store takes, and how much room is left."""

    stores: list[StoreShown]
    tables: list[TableShown] = Field(description="The largest; none on SQLite, which keeps all in one file.")
    disk_bytes: int
    free_bytes: int

    @classmethod
    def of(cls, report: WeighedStores) -> Self:
        """Return it as it is answered."""
        return cls(
            stores=[
                StoreShown(name=store.name, bytes=store.bytes, files=store.files, whole=store.is_whole)
                for store in report.stores
            ],
            tables=[TableShown(table=table.name, bytes=table.bytes, rows=table.rows) for table in report.tables],
            disk_bytes=report.disk_bytes,
            free_bytes=report.free_bytes,
        )


class CleanForm(RequestForm):
    """What is to go."""

    targets: Annotated[list[Annotated[CleanTarget, Field(strict=False)]], Field(min_length=1, max_length=10)] = Field(
        default_factory=lambda: list(CleanTarget), description="All of them if left out."
    )
    apply: bool = Field(default=False, description="Do it; without this, only say what would go.")


class CleanedShown(Answer):
    """One thing that went, or would go."""

    target: CleanTarget
    what: str
    bytes: int
    refusal: str | None = Field(description="Why it stays.")


class CleanReceipt(Answer):
    """What a clean-up removed, or would."""

    applied: bool
    freed_bytes: int
    items: list[CleanedShown]

    @classmethod
    def of(cls, found: Sequence[Cleaning], *, applied: bool) -> Self:
        """Return it as it is answered."""
        return cls(
            applied=applied,
            freed_bytes=sum(one.bytes for one in found if one.refusal is None),
            items=[
                CleanedShown(target=one.target, what=one.what, bytes=one.bytes, refusal=one.refusal) for one in found
            ],
        )
