"""The frozen values shared by packages. Nothing here does work; nothing here knows a database or a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from holdfast.values import dataclass


class Outcome(StrEnum):
    """How an attempt ended; `excluded` means by one of our rules."""

    SUCCESS = "success"
    FAILED = "failed"
    TIMEOUT = "timeout"
    BLOCKED_ROBOTS = "blocked_robots"
    BLOCKED_4XX = "blocked_4xx"
    BLOCKED_5XX = "blocked_5xx"
    EXCLUDED = "excluded"


FAILURES: Final = (Outcome.FAILED, Outcome.TIMEOUT, Outcome.BLOCKED_4XX, Outcome.BLOCKED_5XX)
"""Outcomes that count as failed; exclusions by our rules or by robots.txt do not."""


class UrlKind(StrEnum):
    """The purpose of a URL. Only pages count as pages and for the depth."""

    PAGE = "page"
    REQUISITE = "requisite"
    SITEMAP = "sitemap"
    """A list of addresses: a sitemap, or a feed if those are polled."""


class Truncated(StrEnum):
    """Why a stored body is shorter than the server's (WARC-Truncated)."""

    LENGTH = "length"
    TIME = "time"
    DISCONNECT = "disconnect"

    @property
    def broke_off(self) -> bool:
        """Whether the server stopped before the end of the body; false if our own size limit cut it."""
        return self is not Truncated.LENGTH


# `length` is not one of them: a revisit has it, and a body that our size limit cut is complete by our rules.
BROKEN_OFF = frozenset({"disconnect", "time", "unspecified"})
"""WARC-Truncated values of incomplete bodies, in files of any writer."""
CUT_RECORD = "file_ends_inside"
"""The problem of a capture whose record is cut off by the end of the file: replay shows the part that exists."""


class Body(Protocol):
    """The bytes after the head exactly as the server sent them; small ones in memory, large ones on disk."""

    @property
    def size(self) -> int:
        """Size in bytes."""
        ...

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes from the start, in pieces of bounded size; may be called again."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """One GET for `fetch`, or a POST if it has content. `fetch` follows no redirects, decodes and retries nothing."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    """In addition to those that the client always sends: validators, cookies, the user's own."""
    deadline_s: float = 30.0
    max_body_bytes: int = 100 * 1024 * 1024
    before_send: Callable[[], float] | None = None
    """Called right before connecting, after all waiting: returns the seconds left for sending, or raises an exception
    that `fetch` then raises, if the request may not be sent at all.
    """
    fresh_connection: bool = False
    """Whether to use a new connection, even if idle ones exist."""
    content: bytes | None = None
    """The body of a POST; its Content-Type is among the headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """One HTTP exchange as sent and received."""

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
    """When the request was sent, in seconds after `started_at`."""
    first_byte_s: float | None = None
    """When the first byte of the response came, in seconds after `started_at`."""
    truncated: Truncated | None = None
    tls_verified: bool | None = None
    """None for plain HTTP; False if the certificate was invalid and the source allows that."""


REDIRECTED = "redirected"
"""The reason of an address that only redirects to another domain: a successful response, but not a page."""
NEW_OWNER = "redirect_new_owner:"
"""Prefix of the reason for a captured seed that now redirects to a host of another owner, which follows."""
NO_SITEMAP = "no_sitemap"
"""The reason for a missing sitemap at the default location, which no robots.txt named: not a failure."""
DOMAIN_UNREACHABLE = "domain_unreachable"
"""The reason of pages whose host stayed unreachable for as long as a crawl waits."""
DOMAIN_PAUSED = "domain_paused"
"""The reason of pages whose domain was paused by an operator for as long as a crawl waits."""
PURGED, CLEARED = TAKEN_AWAY = ("purged", "cleared")
"""Reasons of attempts that an operator removed from the queue."""
TRUNCATED_BODIES = ("truncated", "truncated_length")
"""Reasons of incomplete bodies: the server broke off, or our size limit was reached."""


class FetchProblem(StrEnum):
    """Why there is no response at all. `transient` problems may be retried."""

    ADDRESS_FORBIDDEN = "address_forbidden"
    URL_REFUSED = "url_refused"
    DNS = "dns_failed"
    NO_SUCH_NAME = "no_such_name"
    """A nameserver answered that the host does not exist; `dns_failed` means that none answered."""
    CONNECT = "connect_failed"
    TLS = "tls_failed"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    BAD_RESPONSE = "bad_response"

    @property
    def transient(self) -> bool:
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
    """A failed exchange, without a response worth storing."""

    url: str
    problem: FetchProblem
    message: str
    started_at: datetime
    took_s: float
    sent_s: float | None = None
    """When the request was sent, in seconds after `started_at`; None if it never was."""
    # Servers close idle connections at any moment, and what comes late may belong to the answer before: such a failure
    # says nothing of this address.
    kept_connection: bool = False
    """Whether a reused connection broke, or returned an invalid response."""
    received: bytes = b""
    """The received part of an unparsable response, stored as evidence."""


class RecordRef(NamedTuple):
    """The position of a record: one seek, whatever the size of the archive."""

    warc_file_id: int
    offset: int
    length: int
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The last committed response of a page, which revisits and 304 responses refer to."""

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
    """One leased page_crawl: an address to fetch, and known facts about it."""

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
    """Cross-domain redirects on the way from the address that was found."""
    generation: int = 0
    """For a requisite: 0 if a page needs it, 1 if a requisite of a page does, and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageToReread:
    """A page fetched before a shorter path to it was found; parsed again so that its links get the smaller depth."""

    attempt: Attempt
    """The page with the smaller depth, and the position of its stored response."""
    base: str
    """The URL of the response."""
    leads_to: str | None = None
    """The URL on another domain that it redirected to, if any."""
    links: tuple[str, ...] = ()
    """Its links, if its body is not stored."""

    @property
    def depth(self) -> int:
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
    """Microseconds since 1970; None means immediately."""
    hops: int = 0
    generation: int = 0


class ListedUrl(NamedTuple):
    """An address in a feed or a sitemap, with its date there."""

    found: FoundUrl
    told_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledListing:
    """The content of a polled feed or sitemap."""

    is_feed: bool = False
    """Whether it lists news (RSS, Atom, JSON Feed) rather than all addresses."""
    items: tuple[ListedUrl, ...] = ()
    """Only those in scope."""
    children: tuple[ListedUrl, ...] = ()
    """Sitemaps listed in an index."""
    named: int = 0
    """Number of addresses in it, including those out of scope."""
    problem: str | None = None
    """Why nothing could be read."""
    moved_to: str | None = None
    """Its new address, according to the server."""
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainLease:
    """The lease of one domain until `expires_at`; the token fences every write that relies on it."""

    domain_id: int
    domain: str
    token: int
    expires_at: datetime
    delay_s: float
    """The delay from the domain's own settings; robots.txt may require more."""
    next_allowed_at: datetime
    taken_over: bool
    """True if a dead owner held it: wait one full delay first."""
    circuit: CircuitState
    robots: tuple[RobotsRecord, ...]
    attempts: tuple[Attempt, ...]
    robots_after: datetime | None = None
    """robots.txt files fetched before this time are fetched again, at an operator's request."""
    changed_at: datetime | None = None
    """The last operator's change known to this lease."""


class DomainChange(NamedTuple):
    """An operator's change to a domain: the lease holder releases it, and reads the rest with the next lease."""

    domain_id: int
    changed_at: datetime
    delay_s: float


class LeaseRefusal(StrEnum):
    """Why a domain cannot be leased for one request."""

    HELD = "held"
    """Leased to another process, or another worker of this one: it will become free."""
    BARRED = "barred"
    """Forbidden or paused: no process can lease it soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitState:
    """The circuit breaker of one domain, and its adaptive slow-down."""

    state: str = "closed"
    failures: int = 0
    successes: int = 0
    opened_at: datetime | None = None
    penalty: float = 1.0
    """Factor on the delay after 429 and 503; decays with every successful response."""
    unreachable_since: datetime | None = None


class RobotsAnswer(StrEnum):
    """The meaning of the last attempt to read a robots.txt for its origin (RFC 9309, section 2.3.1)."""

    RULES = "rules"
    ALLOW_ALL = "allow_all"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsRecord:
    """The robots.txt of one origin, stored across restarts."""

    origin: str
    answer: RobotsAnswer
    fetched_at: datetime
    """When the response in force was read."""
    checked_at: datetime
    """When it was last requested, whatever the result."""
    status: int | None = None
    body: bytes = b""
    """At most 512 KiB, decoded."""
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Stored data of a page whose body is dropped."""

    description: str | None
    words: tuple[tuple[str, int], ...]
    """Case-folded keywords with their number of occurrences."""
    from_hash: int
    """Hash of the address of the page's group."""
    links: tuple[tuple[int, str], ...]
    """The first link to each other group, at most 200: the group's hash, and the address to fetch."""
    links_count: int
    """Number of links to other addresses; if it exceeds `links`, that list is incomplete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """The result of one attempt: everything that `frontier.settle` writes in one transaction."""

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
    """Known pages with a shorter path: not added again, but this is their new depth."""
    excluded: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Links that were not added, counted by (rule, host)."""
    retry_at: datetime | None = None
    """If set, attempt n+1 is inserted in the transaction that closes this one."""
    signals: Signals | None = None
    """Set for a new or changed page of a source that stores no bodies."""
    listing: PolledListing | None = None
    """Content of a feed or a sitemap that was polled successfully."""
    feeds: tuple[FoundUrl, ...] = ()
    """Feeds linked from a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainUpdate:
    """A lease holder's findings about a domain; written with the next settle or release, fenced by the token."""

    domain_id: int
    token: int
    next_allowed_at: datetime
    circuit: CircuitState
    delay_s: float | None = None
    robots: tuple[RobotsRecord, ...] = ()


class Link(NamedTuple):
    """An address in a document, as written there; the caller resolves it against the base."""

    url: str
    rel: str
    """Its context: a, area, canonical, alternate, refresh, img, css, script, font, media, frame, sitemap, feed…

    `feed` is a link to a feed, `item` one in it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPage:
    """The parsed content of one body. Problems are recorded, never raised."""

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
    """Number of links beyond those that are listed."""
    resources_over: int = 0
    nofollow: bool = False
    noindex: bool = False
    problems: tuple[str, ...] = ()
