"""The frozen values that travel between packages. Nothing here does work; nothing here knows a database or a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from holdfast.values import dataclass


class Outcome(StrEnum):
    """How an attempt ended; `excluded` is what a rule of ours kept out."""

    SUCCESS = "success"
    FAILED = "failed"
    TIMEOUT = "timeout"
    BLOCKED_ROBOTS = "blocked_robots"
    BLOCKED_4XX = "blocked_4xx"
    BLOCKED_5XX = "blocked_5xx"
    EXCLUDED = "excluded"


FAILURES: Final = (Outcome.FAILED, Outcome.TIMEOUT, Outcome.BLOCKED_4XX, Outcome.BLOCKED_5XX)
"""Outcomes that count as failed; what a rule of ours or of a robots file kept out does not."""


class UrlKind(StrEnum):
    """Why a URL is asked for. Only pages count as pages and as depth."""

    PAGE = "page"
    REQUISITE = "requisite"
    SITEMAP = "sitemap"
    """A list of addresses: a sitemap, or a feed where those are polled."""


class Truncated(StrEnum):
    """Why a stored body is shorter than what the server had (WARC-Truncated)."""

    LENGTH = "length"
    TIME = "time"
    DISCONNECT = "disconnect"

    @property
    def broke_off(self) -> bool:
        """Whether the server stopped before its body ended; a body that our own size limit cut is what we asked for."""
        return self is not Truncated.LENGTH


# `length` is none of them: a revisit has it, and what a size limit cut is what was asked for.
BROKEN_OFF = frozenset({"disconnect", "time", "unspecified"})
"""What WARC-Truncated says of a body that is not whole, in files of any maker."""
CUT_RECORD = "file_ends_inside"
"""The problem of a capture whose record the file ends in: as much of its body as is there is shown."""


class Body(Protocol):
    """The bytes that a server sent after the head, exactly as they came; small ones in memory, large ones on disk."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes from the start, in pieces of bounded size; may be called again."""
        ...

    def close(self) -> None:
        """Let go of memory or disk."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """One GET that `fetch` is asked to make, or a POST if it has content. Nothing is followed, decoded or retried below
    this line.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    """Beyond those that the client always sends: validators, cookies, the user's own."""
    deadline_s: float = 30.0
    max_body_bytes: int = 100 * 1024 * 1024
    before_send: Callable[[], float] | None = None
    """Called right before it connects, when all waiting is over: returns how many seconds it has to leave, and raises
    what `fetch` then raises if it may not leave at all."""
    fresh_connection: bool = False
    """Whether it goes over a new connection, whatever others are kept."""
    content: bytes | None = None
    """What a POST carries; its Content-Type stands among the headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """One exchange as it went over the wire."""

    url: str
    status: int
    request_head: bytes
    """Request line and headers as sent, with the closing empty line."""
    response_head: bytes
    """Status line and headers as received, byte for byte, with the closing empty line."""
    body: Body
    """As received: still chunked, still compressed."""
    ip: str
    started_at: datetime
    took_s: float
    sent_s: float = 0.0
    """When the request left, in seconds after `started_at`."""
    first_byte_s: float | None = None
    """When the first byte of the answer came, in seconds after `started_at`."""
    truncated: Truncated | None = None
    tls_verified: bool | None = None
    """None for plain HTTP, False where the source allows an invalid certificate and it was one."""


REDIRECTED = "redirected"
"""The reason of an address that only leads to another one, on another domain: a good answer, but no page."""
NEW_OWNER = "redirect_new_owner:"
"""Begins the reason of a seed that was captured before and now leads to a host of another owner, which it names."""
NO_SITEMAP = "no_sitemap"
"""The reason of the usual place of a sitemap, which no robots.txt named and where there is none: not a failure."""


class FetchProblem(StrEnum):
    """Why there is no response at all. `transient` problems may be retried."""

    ADDRESS_FORBIDDEN = "address_forbidden"
    URL_REFUSED = "url_refused"
    DNS = "dns_failed"
    NO_SUCH_NAME = "no_such_name"
    """A nameserver said that the host's name does not exist; `dns_failed` is that none could tell."""
    CONNECT = "connect_failed"
    TLS = "tls_failed"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    BAD_RESPONSE = "bad_response"

    @property
    def transient(self) -> bool:
        """Whether asking again later may help."""
        return self in _TRANSIENT


_TRANSIENT = {
    FetchProblem.DNS,
    FetchProblem.NO_SUCH_NAME,
    FetchProblem.CONNECT,
    FetchProblem.TIMEOUT,
    FetchProblem.DISCONNECTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchFailed:
    """An exchange that gave no response worth keeping."""

    url: str
    problem: FetchProblem
    message: str
    started_at: datetime
    took_s: float
    sent_s: float | None = None
    """When the request left, in seconds after `started_at`; None if it never did."""
    # Servers close idle connections at any moment, and what comes late may belong to the answer before: such a failure
    # says nothing of this address.
    kept_connection: bool = False
    """Whether the connection had served before and broke, or said something that is no answer."""
    received: bytes = b""
    """What came of an answer that cannot be read as one, up to where that was noticed; to be kept as evidence."""


class RecordRef(NamedTuple):
    """Where a record stands: one seek, whatever the size of the archive."""

    warc_file_id: int
    offset: int
    length: int
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The last committed response of a page: what a revisit may point to and what a 304 stands for."""

    record_id: str
    """The bare UUID of its WARC-Record-ID."""
    url: str
    captured_at: datetime
    payload_digest: str
    """`sha256:` and hex, after transfer decoding."""
    warc_file_id: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One page_crawl that a lease handed out: an address to ask for, and what we know of it."""

    id: int
    page_id: int
    domain_id: int
    url: str
    url_hash: int
    """First 64 bits of the SHA-256 of the normalised URL, as a signed integer."""
    kind: UrlKind
    depth: int
    number: int
    """1 for the first attempt in this execution."""
    priority: int
    etag: str | None = None
    last_modified: str | None = None
    original: Original | None = None
    hops: int = 0
    """Redirects from one domain to another that led here from the address that was found."""
    generation: int = 0
    """Of a requisite: 0 if a page needs it, 1 if something that a page needs does, and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageToReread:
    """A page that was fetched before a shorter way to it was found: what it leads to counts from the smaller depth."""

    attempt: Attempt
    """The page with that depth, and where its answer is stored."""
    base: str
    """The address that answered."""
    leads_to: str | None = None
    """The address on another domain that it sent us to, if it did."""
    links: tuple[str, ...] = ()
    """Where it leads, if its body is not kept."""

    @property
    def depth(self) -> int:
        """The smaller depth."""
        return self.attempt.depth


# A tuple, because a page can have a thousand.
class FoundUrl(NamedTuple):
    """An in-scope address to add to the frontier."""

    url: str
    url_hash: int
    domain: str
    kind: UrlKind
    depth: int
    priority: int
    scheduled_for: int | None = None
    """Microseconds since 1970, or at once."""
    hops: int = 0
    generation: int = 0


class ListedUrl(NamedTuple):
    """An address that a feed or a sitemap names, and the date that it gives."""

    found: FoundUrl
    told_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledListing:
    """What a feed or a sitemap that is polled answered."""

    is_feed: bool = False
    """Whether it tells news (RSS, Atom, JSON Feed) rather than everything there is."""
    items: tuple[ListedUrl, ...] = ()
    """In scope."""
    children: tuple[ListedUrl, ...] = ()
    """Sitemaps that an index names."""
    named: int = 0
    """How many addresses it names, those out of scope included."""
    problem: str | None = None
    """Why nothing could be read."""
    moved_to: str | None = None
    """Where it says that it is from now on."""
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainLease:
    """The right to ask one domain, until `expires_at`; the token fences every write that relies on it."""

    domain_id: int
    domain: str
    token: int
    expires_at: datetime
    delay_s: float
    """What the domain's own settings ask for; robots may ask for more."""
    next_allowed_at: datetime
    taken_over: bool
    """True if a dead owner held it: wait one full delay first."""
    circuit: CircuitState
    robots: tuple[RobotsState, ...]
    attempts: tuple[Attempt, ...]
    robots_after: datetime | None = None
    """Robots files that were asked for before this moment are asked for anew, as an operator wishes."""
    changed_at: datetime | None = None
    """The last change of an operator that this lease knows of."""


class DomainChange(NamedTuple):
    """An operator's change to a domain: who holds it gives it back, and reads the rest with the next lease."""

    domain_id: int
    changed_at: datetime
    delay_s: float


class LeaseRefusal(StrEnum):
    """Why a domain cannot be had for one request."""

    HELD = "held"
    """By another process, or another worker of this one: it will be free some time."""
    BARRED = "barred"
    """It is forbidden, or must rest: nothing of it can be had soon by any process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitState:
    """The breaker of one domain, and its adaptive slow-down."""

    state: str = "closed"
    failures: int = 0
    successes: int = 0
    opened_at: datetime | None = None
    penalty: float = 1.0
    """Factor on the delay after 429 and 503; decays with every good answer."""
    unreachable_since: datetime | None = None


class RobotsAnswer(StrEnum):
    """What the last try to read a robots.txt means for its origin (RFC 9309, section 2.3.1)."""

    RULES = "rules"
    ALLOW_ALL = "allow_all"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsState:
    """What we know of one origin's robots.txt; kept across restarts."""

    origin: str
    answer: RobotsAnswer
    fetched_at: datetime
    """When the answer in force was read."""
    checked_at: datetime
    """When we last asked, whatever came of it."""
    status: int | None = None
    body: bytes = b""
    """At most 512 KiB, decoded."""
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What is kept of a page whose body is dropped."""

    description: str | None
    words: tuple[tuple[str, int], ...]
    """Folded keywords and how often they occur."""
    from_hash: int
    """Of the address of the page's group."""
    links: tuple[tuple[int, str], ...]
    """The first link to each other group, at most 200: the group's hash, and the address to ask for."""
    links_count: int
    """Links to other addresses in all: more than `links` has means that those do not tell where the page leads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What came of one attempt: everything that `frontier.settle` writes in one transaction."""

    attempt: Attempt
    token: int
    outcome: Outcome
    reason: str
    started_at: datetime
    finished_at: datetime
    status: int | None = None
    message: str | None = None
    media_type: str | None = None
    wire_bytes: int = 0
    requests: int = 0
    record: RecordRef | None = None
    payload_digest: str | None = None
    content_hash: str | None = None
    redirected_to: str | None = None
    title: str | None = None
    language: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    original: Original | None = None
    """Set when this visit is a new original for the page."""
    found: tuple[FoundUrl, ...] = ()
    shallower: tuple[FoundUrl, ...] = ()
    """Pages that were found before, by a longer way: not added again, but their depth is this one from now on."""
    excluded: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Links that were not added, counted by (rule, host)."""
    retry_at: datetime | None = None
    """If set, attempt n+1 is inserted in the transaction that closes this one."""
    signals: Signals | None = None
    """Set for a new or changed page of a source that keeps no bodies."""
    listing: PolledListing | None = None
    """Of a feed or a sitemap that was polled and answered."""
    feeds: tuple[FoundUrl, ...] = ()
    """Feeds that a page refers to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainUpdate:
    """What a lease holder learned about a domain; written with the next settle or release, fenced by the token."""

    domain_id: int
    token: int
    next_allowed_at: datetime
    circuit: CircuitState
    delay_s: float | None = None
    robots: tuple[RobotsState, ...] = ()


class Link(NamedTuple):
    """An address that a document mentions, as written there; the caller resolves it against the base."""

    url: str
    rel: str
    """Where it stood: a, area, canonical, alternate, refresh, img, css, script, font, media, frame, sitemap, feed…

    `feed` is a link to a feed, `item` one in it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPage:
    """What a parser took from one body. Problems are notes, never exceptions."""

    title: str | None = None
    description: str | None = None
    language: str | None = None
    """BCP-47."""
    charset: str | None = None
    canonical: str | None = None
    base: str | None = None
    """The document's own base href, raw; links are resolved against it by the caller."""
    text: str | None = None
    links: tuple[Link, ...] = ()
    """To follow: a, area, canonical, alternate, meta refresh, frames. Raw, as written, once each."""
    resources: tuple[Link, ...] = ()
    """Needed to show the page: images, styles, scripts, fonts, media."""
    links_over: int = 0
    """Links beyond those that are listed."""
    resources_over: int = 0
    nofollow: bool = False
    noindex: bool = False
    problems: tuple[str, ...] = ()
