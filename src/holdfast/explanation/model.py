"""What is told of an address, section by section; the route and `holdfast explain --json` answer with this object."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from holdfast.types import Outcome, UrlKind
from holdfast.urls.steps import SpellingStep


class Told(BaseModel):
    """A part of an explanation; `next_allowed_at` is `nextAllowedAt` in JSON."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True, frozen=True, defer_build=True
    )


class ExplainedStep(Told):
    """One step by which the spelling of the address changed."""

    step: SpellingStep
    after: str
    sentence: str


class ExplainedAddress(Told):
    """The address: as it was given, as it is asked for, and as pages go by it."""

    given: str = Field(description="As it was given, without credentials, at most 8,192 characters.")
    refused: str | None = Field(description="Why no crawl would ask for it as it was given; null if one would.")
    steps: list[ExplainedStep]
    fetch: str | None = Field(description="What is asked for; null if it is no address of a website.")
    normalised: str = Field(description="The one spelling of the page: its identity.")
    key: str = Field(description="The SURT key under which archives sort it.")
    url_hash: str = Field(description="SHA-256 of the normalised address.")
    group: str | None
    domain: str | None = Field(description="The politeness key.")
    origin: str | None = Field(description="What one robots.txt covers.")
    priority: int | None = Field(description="By its spelling alone: 3 soon, 1 late.")


class ExplainedSource(Told):
    """What one source's rules say of the address."""

    source: str
    enabled: bool
    job: int | None = Field(description="The job whose configuration decided; null if it was the source's own.")
    in_scope: bool | None = Field(description="Null if its rules cannot be read; `sentence` says why.")
    rule: str | None = Field(description="The rule that decided: seed, scope:…, include:…, exclude:…, trap:….")
    sentence: str
    normalised: str | None = Field(description="Where this source spells the page otherwise; else null.")
    max_depth: int | None = Field(description="Links from a seed that are followed at most; null without a limit.")
    delay_s: float
    robots: str = Field(description="`obey`, or `ignore` with a reason that stands in the audit log.")
    storage: str
    backend: str


class ExplainedSources(Told):
    """Which sources the address belongs to, and why the others do not have it."""

    in_scope: list[ExplainedSource]
    out_of_scope: list[ExplainedSource] = Field(description="At most fifty, by code.")
    out_of_scope_count: int
    is_all: bool = Field(description="False if there are more sources than were looked at.")
    sentence: str


class RobotsKnown(StrEnum):
    """What is known of an origin's robots.txt."""

    RULES = "rules"
    ALLOW_ALL = "allow_all"
    UNREACHABLE = "unreachable"
    EXPIRED = "expired"
    """Read more than a day ago: it is asked for again before anything else."""
    UNKNOWN = "unknown"


class ExplainedRobots(Told):
    """What robots.txt says of the address, from what was last read of it."""

    origin: str | None
    known: RobotsKnown
    allowed: bool | None = Field(description="Null while nothing is known.")
    rule: str | None
    line: int | None
    crawl_delay_s: float | None
    status: int | None
    failures: int
    fetched_at: datetime | None
    checked_at: datetime | None
    next_try_at: datetime | None
    live: bool = Field(description="Whether it was asked for just now.")
    ignored_by: list[str] = Field(description="Sources that ignore robots.txt, with a reason in the audit log.")
    sentence: str


class CircuitKnown(StrEnum):
    """The breaker of a domain."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class ExplainedHolder(Told):
    """The process that asks the domain now."""

    owner: int
    kind: str | None
    host: str | None
    pid: int | None
    execution: int | None
    until: datetime


class ExplainedDomain(Told):
    """How the domain is treated now."""

    name: str
    known: bool = Field(description="False if it was never asked.")
    allowed: bool = Field(description="False if an operator forbids it.")
    paused_since: datetime | None = Field(description="Since when an operator lets it rest; null if it is not paused.")
    delay_s: float = Field(description="Seconds between the starts of two requests.")
    delay_reasons: list[str]
    next_allowed_at: datetime | None = Field(description="Null if it may be asked now.")
    circuit: CircuitKnown
    circuit_failures: int
    circuit_open_until: datetime | None
    unreachable_since: datetime | None
    penalty: float = Field(description="Factor on the delay after 429 and 503.")
    holder: ExplainedHolder | None
    sentence: str


class ExplainedRecord(Told):
    """Where what was answered is stored."""

    warc_file: str | None
    warc_file_id: int
    offset: int
    length: int | None
    snapshot: int | None = Field(description="The snapshot's id once the file is indexed.")
    record_id: str | None
    digest: str | None


class ExplainedAttempt(Told):
    """One attempt on the page inside an execution."""

    id: int
    source: str | None
    job: int | None
    execution: int
    number: int
    kind: UrlKind
    depth: int
    found_on: str | None
    outcome: Outcome | None = Field(description="Null while it is open.")
    word: str = Field(description="The same for people, such as `not found`.")
    reason: str | None
    status: int | None
    message: str | None
    media_type: str | None
    wire_bytes: int | None
    redirected_to: str | None
    scheduled_for: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    record: ExplainedRecord | None
    sentence: str


class ExplainedAttempts(Told):
    """Every attempt, newest first, piece by piece."""

    items: list[ExplainedAttempt]
    next: str | None = Field(description="Ask again with `cursor` set to this; null at the end.")
    limit: int


class ExplainedSnapshot(Told):
    """One capture of the page."""

    id: int
    captured_at: datetime
    source: str | None
    execution: int
    url: str
    status: int | None
    media_type: str | None
    record_type: str
    record_id: str | None
    digest: str | None
    replay_path: str
    noise: str | None = Field(description="Why it shows something else than the page; null if it shows the page.")
    duplicate_of: int | None
    withdrawn: bool


class ExplainedSnapshots(Told):
    """Captures of the page."""

    count: int
    is_exact: bool = Field(description="False if there are more than were counted.")
    first_at: datetime | None
    last_at: datetime | None
    other_spellings: int = Field(description="Captures under the same SURT key with another spelling (http, www).")
    items: list[ExplainedSnapshot] = Field(description="The newest, as many as `limit` says.")
    sentence: str


class ExplainedWithdrawal(Told):
    """A withdrawal in force."""

    id: int
    snapshot: int | None = Field(description="Null if a whole page is withdrawn; another's if captures show its body.")
    reason: str
    actor: str
    at: datetime


class Seen(StrEnum):
    """Who may see the captures of the page."""

    EVERYBODY = "everybody"
    MEMBERS = "members"
    """Signed-in members: its source is for them."""
    SOME = "some"
    """Some captures are withdrawn or for members, others are not."""
    NOBODY = "nobody"
    """The page is withdrawn, or every single capture of it."""


class ExplainedVisibility(Told):
    """Who may see the captures, and what was withdrawn."""

    seen_by: Seen
    members_only: list[str] = Field(description="Sources of its captures that are for members.")
    withdrawals: list[ExplainedWithdrawal] = Field(description="At most a hundred.")
    sentence: str


class OutlookKind(StrEnum):
    """What happens to the address next."""

    UNDER_WAY = "under_way"
    QUEUED = "queued"
    DUE = "due"
    SCHEDULED = "scheduled"
    WAITS = "waits"
    """For a person: a job is paused or failed, or an execution was paused or stopped."""
    NEVER = "never"


class ExplainedTurn(Told):
    """One thing that may happen to the address."""

    kind: OutlookKind
    source: str | None
    job: int | None
    execution: int | None
    at: datetime | None = Field(description="Not before then; null if it could be now, or is not known.")
    place: int | None = Field(description="Place in the queue of its domain; null if it is in none.")
    sentence: str


class ExplainedOutlook(Told):
    """What happens next, and when."""

    next: ExplainedTurn
    all: list[ExplainedTurn] = Field(description="For every source and queue that has to do with it; the next first.")


class Explanation(Told):
    """Everything that is known of one address, and why; for readers, what they may see of it."""

    address: ExplainedAddress
    sources: ExplainedSources
    robots: ExplainedRobots
    domain: ExplainedDomain | None = Field(description="Null if it is no address of a website, and for readers.")
    attempts: ExplainedAttempts
    snapshots: ExplainedSnapshots
    visibility: ExplainedVisibility
    outlook: ExplainedOutlook
    at: datetime = Field(description="When this was looked up.")
