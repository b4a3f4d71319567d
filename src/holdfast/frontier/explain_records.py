"""The explanation of a URL, section by section: returned by the route, `holdfast explain --json` and MCP."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from holdfast.records import Operator, Public, record
from holdfast.types import Outcome, UrlKind
from holdfast.urls.steps import SpellingStep


@record
class ExplainedStep:
    """One normalisation step that changed the URL."""

    step: Public[SpellingStep]
    after: Public[str]
    sentence: Public[str]


@record
class ExplainedAddress:
    """The URL: as given, as requested, and in its normalised forms."""

    given: Public[str]
    """The URL as given, without credentials, at most 8,192 characters."""
    refused: Public[str | None]
    """Why no crawl would request the URL as given; null if one would."""
    steps: Public[list[ExplainedStep]]
    fetch: Public[str | None]
    """The URL to request; null if it is not a website URL."""
    normalised: Public[str]
    """The normalised URL: the identity of the page."""
    key: Public[str]
    """The SURT key by which archives sort the page."""
    url_hash: Public[str]
    """SHA-256 of the normalised URL."""
    group: Public[str | None]
    domain: Public[str | None]
    """The domain that politeness limits apply to."""
    origin: Public[str | None]
    """The origin that one robots.txt covers."""
    priority: Public[int | None]
    """Crawl priority by the URL alone: 3 early, 1 late."""


@record
class ExplainedSource:
    """Decision of one source's rules about the URL."""

    source: Public[str]
    enabled: Public[bool]
    job: Public[int | None]
    """The job whose configuration decided; null if it was the source's own."""
    in_scope: Public[bool | None]
    """Null if its rules cannot be read; `sentence` contains the reason."""
    rule: Public[str | None]
    """The rule that decided: seed, scope:…, include:…, exclude:…, trap:…."""
    sentence: Public[str]
    normalised: Public[str | None]
    """The URL as normalised by this source if different; else null."""
    max_depth: Public[int | None]
    """Maximum number of links followed from a seed; null without a limit."""
    delay_s: Public[float]
    robots: Public[str]
    """`obey`, or `ignore` with a reason that the audit log records."""
    storage: Public[str]
    backend: Public[str]


@record
class ExplainedSources:
    """The sources whose scope includes the URL, and why the others exclude it."""

    in_scope: Public[list[ExplainedSource]]
    out_of_scope: Public[list[ExplainedSource]]
    """At most fifty, by code."""
    out_of_scope_count: Public[int]
    is_all: Public[bool]
    """False if there are more sources than were checked."""
    sentence: Public[str]


class RobotsKnown(StrEnum):
    RULES = "rules"
    ALLOW_ALL = "allow_all"
    UNREACHABLE = "unreachable"
    EXPIRED = "expired"
    """Read more than a day ago: it is fetched again before any other request."""
    UNKNOWN = "unknown"


@record
class ExplainedRobots:
    """The robots.txt rule for the URL, from its last fetch."""

    origin: Public[str | None]
    known: Public[RobotsKnown]
    allowed: Public[bool | None]
    """Null while unknown."""
    rule: Public[str | None]
    line: Public[int | None]
    crawl_delay_s: Public[float | None]
    status: Public[int | None]
    failures: Public[int]
    fetched_at: Public[datetime | None]
    checked_at: Public[datetime | None]
    next_try_at: Public[datetime | None]
    live: Public[bool]
    """Whether robots.txt was fetched just now."""
    ignored_by: Public[list[str]]
    """Sources that ignore robots.txt, with a reason in the audit log."""
    sentence: Public[str]


class CircuitKnown(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@record
class ExplainedHolder:
    """The process that currently crawls the domain."""

    owner: Operator[int]
    kind: Operator[str | None]
    host: Operator[str | None]
    pid: Operator[int | None]
    execution: Operator[int | None]
    until: Operator[datetime]


@record
class ExplainedDomain:
    """Current politeness state of the domain."""

    name: Operator[str]
    known: Operator[bool]
    """False if it was never requested."""
    allowed: Operator[bool]
    """False if an operator forbids it."""
    paused_since: Operator[datetime | None]
    """When an operator paused it; null if it is not paused."""
    delay_s: Operator[float]
    """Seconds between the starts of two requests."""
    delay_reasons: Operator[list[str]]
    next_allowed_at: Operator[datetime | None]
    """Null if it may be requested now."""
    circuit: Operator[CircuitKnown]
    circuit_failures: Operator[int]
    circuit_open_until: Operator[datetime | None]
    unreachable_since: Operator[datetime | None]
    penalty: Operator[float]
    """Factor on the delay after 429 and 503."""
    holder: Operator[ExplainedHolder | None]
    sentence: Operator[str]


@record
class ExplainedRecord:
    """Location of the stored response."""

    warc_file: Public[str | None]
    warc_file_id: Public[int]
    offset: Public[int]
    length: Public[int | None]
    snapshot: Public[int | None]
    """The snapshot's id once the file is indexed."""
    record_id: Public[str | None]
    digest: Public[str | None]


@record
class ExplainedAttempt:
    """One attempt at the page within an execution."""

    id: Public[int]
    source: Public[str | None]
    job: Public[int | None]
    execution: Public[int]
    number: Public[int]
    kind: Public[UrlKind]
    depth: Public[int]
    found_on: Public[str | None]
    outcome: Public[Outcome | None]
    """Null while it is open."""
    word: Public[str]
    """The outcome in plain words, such as `not found`."""
    reason: Public[str | None]
    status: Public[int | None]
    message: Public[str | None]
    media_type: Public[str | None]
    wire_bytes: Public[int | None]
    redirected_to: Public[str | None]
    scheduled_for: Public[datetime | None]
    started_at: Public[datetime | None]
    completed_at: Public[datetime | None]
    record: Public[ExplainedRecord | None]
    sentence: Public[str]


@record
class ExplainedAttempts:
    """Attempts, newest first, in pages."""

    items: Public[list[ExplainedAttempt]]
    next: Public[str | None]
    """Pass this as `cursor` to get the next page; null at the end."""
    limit: Public[int]


@record
class ExplainedSnapshot:
    """One capture of the page."""

    id: Public[int]
    captured_at: Public[datetime]
    source: Public[str | None]
    execution: Public[int]
    url: Public[str]
    status: Public[int | None]
    media_type: Public[str | None]
    record_type: Public[str]
    record_id: Public[str | None]
    digest: Public[str | None]
    replay_path: Public[str]
    noise: Public[str | None]
    """Why it shows something other than the page; null if it shows the page."""
    duplicate_of: Public[int | None]
    withdrawn: Public[bool]


@record
class ExplainedSnapshots:
    """Captures of the page."""

    count: Public[int]
    is_exact: Public[bool]
    """False if there are more than were counted."""
    first_at: Public[datetime | None]
    last_at: Public[datetime | None]
    other_spellings: Public[int]
    """Captures under the same SURT key with another spelling (http, www)."""
    items: Public[list[ExplainedSnapshot]]
    """The newest captures, up to `limit`."""
    sentence: Public[str]


@record
class ExplainedWithdrawal:
    """An active takedown."""

    id: Operator[int]
    snapshot: Operator[int | None]
    """Null if a whole page is taken down; another snapshot's id if captures share its body."""
    reason: Operator[str]
    actor: Operator[str]
    at: Operator[datetime]


class Seen(StrEnum):
    EVERYBODY = "everybody"
    MEMBERS = "members"
    """Signed-in members only: the source is restricted to members."""
    SOME = "some"
    """Some captures are taken down or for members only, others are public."""
    NOBODY = "nobody"
    """The page, or every single capture of it, is taken down."""


@record
class ExplainedVisibility:
    """Visibility of the captures, and takedowns."""

    seen_by: Public[Seen]
    members_only: Public[list[str]]
    """Sources of its captures that are restricted to members."""
    withdrawals: Public[list[ExplainedWithdrawal]]
    """At most 100."""
    sentence: Public[str]


class OutlookKind(StrEnum):
    UNDER_WAY = "under_way"
    QUEUED = "queued"
    DUE = "due"
    SCHEDULED = "scheduled"
    DONE = "done"
    """A run that is queued or running has requested the URL; only a later run requests it again."""
    WAITS = "waits"
    """A person must act: a job is paused or failed, or an execution was paused or stopped."""
    NEVER = "never"


@record
class ExplainedTurn:
    """One possible next event for the URL."""

    kind: Public[OutlookKind]
    source: Public[str | None]
    job: Public[int | None]
    execution: Public[int | None]
    at: Public[datetime | None]
    """Earliest time; null if it could be now, or is unknown."""
    place: Public[int | None]
    """Position in the queue of its domain; null if it is not queued."""
    sentence: Public[str]


@record
class ExplainedOutlook:
    """Next events for the URL, and when."""

    next: Public[ExplainedTurn]
    all: Public[list[ExplainedTurn]]
    """For every related source and queue; the next event first."""


@record
class Explanation:
    """Everything known about one URL, and why; for readers, the part visible to them."""

    address: Public[ExplainedAddress]
    sources: Public[ExplainedSources]
    robots: Public[ExplainedRobots]
    domain: Public[ExplainedDomain | None]
    """Null if it is not a website URL, and for readers."""
    attempts: Public[ExplainedAttempts]
    snapshots: Public[ExplainedSnapshots]
    visibility: Public[ExplainedVisibility]
    outlook: Public[ExplainedOutlook]
    at: Public[datetime]
    """Time of this lookup."""
