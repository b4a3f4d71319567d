"""What the frontier is set to, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, NamedTuple

from holdfast.types import Outcome, UrlKind, Visit
from holdfast.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierSettings:
    """Sizes and times; the defaults are those of the design."""

    lease_s: float = 60.0
    """How long a domain is held without renewal."""
    links_per_transaction: int = 5_000
    """Found addresses that one transaction adds at most; a larger settle is split between visits."""
    known_domains: int = 100_000
    """Names whose id is remembered (about 150 bytes each)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What came of a settle."""

    closed: int = 0
    """How many attempts were closed now."""
    new: int = 0
    """How many addresses the execution had not seen before."""
    retried: int = 0
    """How many attempts n+1 were inserted."""
    added: frozenset[int] = frozenset()
    """Domains that have something new to ask for."""
    refused: tuple[Visit, ...] = ()
    """Visits with a token that is no longer the domain's: nothing of them was written."""
    repeated: tuple[Visit, ...] = ()
    """Visits of attempts that were closed before, by an earlier settle of ours or by somebody's decision."""
    lost: tuple[int, ...] = ()
    """Domains whose update was not taken, because their token is another one now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierStats:
    """The frontier in figures (TC-033); each address counts once, however often it was tried."""

    pending: int
    """Open attempts, those in hand included."""
    leased_domains: int
    """Domains that a live owner holds."""
    completed: int
    failed: int
    ruled_out: int
    """Closed by a rule or a limit of ours, without being asked."""
    domains: int
    """Domains with at least one address."""
    counts: Mapping[str, Any] = field(default_factory=dict)
    """Running totals of the processes, added up where they are numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAttempt:
    """One line of `holdfast frontier list`."""

    id: int
    url: str
    domain: str
    kind: UrlKind
    priority: int
    depth: int
    number: int
    crashes: int
    created_at: datetime
    scheduled_for: datetime | None
    leased: bool
    """Whether a live owner holds its domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSignals:
    """What was kept of a page before."""

    fetched_at: datetime
    content_hash: str | None
    has_all_links: bool
    """Whether the links that were kept are all that the page has to other groups."""


class Account(NamedTuple):
    """The current outcome of one address in one execution: its last attempt."""

    url: str
    domain: str
    kind: UrlKind
    depth: int
    attempts: int
    outcome: Outcome | None
    """None while it is open."""
    reason: str | None
    status: int | None
    message: str | None
    media_type: str | None
    wire_bytes: int | None
    title: str | None
    redirected_to: str | None
    via: str | None
    """The address of the page that it was found on."""
    completed_at: datetime | None
    warc_file_id: int | None
    warc_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """An execution's addresses by their current outcome, counted each way that a reader may ask."""

    total: int
    open: int
    outcomes: Mapping[str, int]
    reasons: Mapping[tuple[str, str], int]
    """By (outcome, reason)."""
    kinds: Mapping[tuple[str, str], int]
    """By (kind, outcome)."""
    statuses: Mapping[int, int]
    media_types: Mapping[str, int]
    domains: Mapping[str, int]
    depths: Mapping[int, int]
    """Pages only: requisites have no depth of their own."""
    wire_bytes: int
    exclusions: Mapping[tuple[str, str], int]
    """Links that were not added, by (rule, host): the largest thousand."""


class Unreachable(NamedTuple):
    """A domain that cannot be reached, and when it is tried again."""

    domain: str
    since: datetime
    next_try_at: datetime
