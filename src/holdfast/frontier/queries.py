"""Slow queries on the frontier, not for pages: figures, lists, the report of an execution.

Reports use a separate raw connection (a frontier's is tuned for look-ups) and read in short transactions: ten
million rows block no other process.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime
from itertools import chain, islice
from typing import Any, NamedTuple

from holdfast.clock import from_micros
from holdfast.db.raw import IS_LAST_ATTEMPT, RawDatabase, Row, Transaction
from holdfast.db.run_slices import IN_SLICE, in_slices
from holdfast.frontier.leasing import moment
from holdfast.frontier.sql import Connection, FrontierTransaction, Statement
from holdfast.records import Operator, record
from holdfast.types import REDIRECTED, Outcome, UrlKind
from holdfast.values import dataclass

FIND_REDIRECT = """
SELECT c.redirected_to FROM page_crawls c JOIN domains d ON d.id = c.domain_id JOIN pages p ON p.id = c.page_id
 WHERE c.execution_id = ? AND d.name = ? AND p.domain_id = d.id AND p.url_hash = ? AND c.reason = 'redirected'
 ORDER BY c.attempt DESC LIMIT 1"""
FIND_CAPTURE = """
SELECT coalesce(c.redirected_to, p.url) FROM page_crawls c JOIN pages p ON p.id = c.page_id
 WHERE c.page_id = ? AND c.execution_id <> ? AND c.outcome = 'success' ORDER BY c.id DESC LIMIT 1"""
_PAGE = 1000
_EXCLUSIONS_SHOWN = 1000


@record
class FrontierStats:
    """The frontier in figures; each URL counts once, however often it was tried."""

    pending: Operator[int]
    """Open attempts, including those that are being fetched."""
    leased_domains: Operator[int]
    """Domains held by a live process."""
    completed: Operator[int]
    failed: Operator[int]
    ruled_out: Operator[int]
    """Excluded by a rule or a limit without a request."""
    domains: Operator[int]
    """Domains with at least one URL."""
    counts: Operator[Mapping[str, Any]] = field(default_factory=dict)
    """Running totals of the processes, added up where they are numbers."""


@record
class OpenAttempt:
    """A queued attempt on a URL."""

    id: Operator[int]
    url: Operator[str]
    domain: Operator[str]
    kind: Operator[UrlKind]
    priority: Operator[int]
    depth: Operator[int]
    number: Operator[int]
    crashes: Operator[int]
    created_at: Operator[datetime]
    scheduled_for: Operator[datetime | None]
    leased: Operator[bool]
    """Whether a live process holds its domain."""


class Account(NamedTuple):
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
    """URL of the page on which it was found."""
    completed_at: datetime | None
    warc_file_id: int | None
    warc_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
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
    depths: Mapping[int | str, int]
    """Requisites and sitemaps have no depth of their own: they count under their kind."""
    redirects: int
    """Pages that only redirect to another URL: counted as successes, but not as captured pages."""
    wire_bytes: int
    exclusions: Mapping[tuple[str, str], int]
    """Links that were not added, by (rule, host): the 1,000 most frequent."""
    response_ms: tuple[float | None, float | None, float | None] = (None, None, None)
    """Response times of captures: average, shortest, longest."""
    examples: Mapping[tuple[str, str], list[str]] = field(default_factory=dict)
    """A few URLs that were not captured, by (outcome, reason)."""


class Unreachable(NamedTuple):
    domain: str
    since: datetime
    next_try_at: datetime


# Use the index of queues with open URLs: a status runs this twice a second, however many domains are known.
OPEN_COUNT = "SELECT coalesce(sum(open), 0) FROM queues WHERE execution_id = ? AND open > 0"


def open_count(tx: FrontierTransaction | Transaction, *, execution_id: int) -> int:
    """Return the number of open attempts; 0 means that the execution is finished."""
    return int(tx.execute(OPEN_COUNT, (execution_id,))[0][0])


def has_frontier(tx: Transaction, *, execution_id: int) -> bool:
    """Return whether an execution has a queue of its own."""
    return bool(tx.execute("SELECT 1 FROM queues WHERE execution_id = ? LIMIT 1", (execution_id,)))


def open_domains(tx: FrontierTransaction, execution_id: int) -> int:
    rows = tx.execute("SELECT count(*) FROM queues WHERE execution_id = ? AND open > 0", (execution_id,))
    return int(rows[0][0])


# Domains with open attempts, and their tokens.
_TOKENS = (
    "SELECT q.domain_id, d.lease_token FROM queues q CROSS JOIN domains d WHERE q.execution_id = ? AND q.open > 0"
    " AND d.id = q.domain_id AND"
)
FORBIDDEN = f"{_TOKENS} NOT d.is_allowed ORDER BY q.domain_id LIMIT ?"
PAUSED = f"{_TOKENS} d.paused_at <= ? ORDER BY q.domain_id LIMIT ?"
HOPELESS = (
    f"{_TOKENS} d.is_allowed AND d.unreachable_since IS NOT NULL"
    " AND d.next_allowed_at >= ? AND d.next_allowed_at >= d.unreachable_since + ?"
    " AND (d.lease_owner IS NULL OR d.lease_expires_at <= ?) ORDER BY q.domain_id LIMIT ?"
)
_UNREACHABLE = (
    "FROM queues q CROSS JOIN domains d WHERE q.execution_id = ? AND d.id = q.domain_id"
    " AND d.unreachable_since IS NOT NULL AND d.next_allowed_at > ?"
)
REACHABLE_AT = f"SELECT min(d.next_allowed_at) {_UNREACHABLE}"
UNREACHABLE = (
    f"SELECT d.name, d.unreachable_since, d.next_allowed_at {_UNREACHABLE} ORDER BY d.next_allowed_at, d.id LIMIT 5"
)


# Number of longest-waiting domains that are searched for unreachable ones: an execution may have millions.
_LOOKED_AT = 50


def waiting_unreachable(tx: Transaction, *, execution_id: int, now: int) -> list[tuple[str, int, int]]:
    """Return unreachable domains that wait for a retry: name, since when, next try."""
    rows = tx.execute(
        # The subquery uses the index of due times: a crawl of millions of URLs requests `status` twice a second.
        "SELECT d.name, d.unreachable_since, d.next_allowed_at FROM (SELECT domain_id FROM queues"
        " WHERE execution_id = ? AND open > 0 AND due_at > ? ORDER BY due_at DESC, domain_id LIMIT ?) q"
        " JOIN domains d ON d.id = q.domain_id WHERE d.unreachable_since IS NOT NULL AND d.next_allowed_at > ?"
        " ORDER BY d.next_allowed_at, d.id",
        (execution_id, now, _LOOKED_AT, now),
    )
    return [(name, since, until) for name, since, until in rows]


def waiting_paused(tx: Transaction, *, execution_id: int) -> list[tuple[str, int]]:
    """Return a few domains with queued URLs that an operator paused, and since when: the longest paused first."""
    rows = tx.execute(
        # Start from the few domains that an operator ever changed (indexed), then read their queues.
        "SELECT d.name, d.paused_at FROM domains d CROSS JOIN queues q WHERE d.changed_at > 0"
        " AND d.paused_at IS NOT NULL AND q.execution_id = ? AND q.domain_id = d.id AND q.open > 0"
        " ORDER BY d.paused_at, d.id LIMIT 5",
        (execution_id,),
    )
    return [(name, since) for name, since in rows]


def stats(tx: FrontierTransaction, execution_id: int | None, *, now: int) -> FrontierStats:
    where, values = ("WHERE execution_id = ?", (execution_id,)) if execution_id is not None else ("", ())
    figures = tx.execute(
        "SELECT coalesce(sum(open), 0), coalesce(sum(succeeded), 0), coalesce(sum(failed), 0),"  # noqa: S608
        f" coalesce(sum(ruled_out), 0), count(DISTINCT domain_id) FROM queues {where}",
        values,
    )
    leased = tx.execute(
        "SELECT count(*) FROM domains d WHERE d.lease_owner IS NOT NULL AND d.lease_expires_at > ?"  # noqa: S608
        + (" AND EXISTS (SELECT 1 FROM queues q WHERE q.execution_id = ? AND q.domain_id = d.id)" if where else ""),
        (now, *values),
    )
    # Each process writes its own totals, so that none of them waits for another.
    totals = tx.execute(f"SELECT counts FROM execution_counts {where}", values)  # noqa: S608
    pending, completed, failed, ruled_out, domains = (int(figure) for figure in figures[0])
    return FrontierStats(
        pending=pending,
        leased_domains=leased[0][0],
        completed=completed,
        failed=failed,
        ruled_out=ruled_out,
        domains=domains,
        counts=_added_up([row[0] for row in totals]),
    )


def _added_up(totals: list[Any]) -> dict[str, Any]:
    """Return the sum of the processes' totals, including nested ones; values that are not numbers are dropped."""
    summed: dict[str, Any] = {}
    for total in totals:
        # SQLite gives JSON as text, PostgreSQL as what it means.
        _add(summed, json.loads(total) if isinstance(total, str) else total)
    return summed


def _add(summed: dict[str, Any], total: Mapping[str, Any]) -> None:
    for key, value in total.items():
        if isinstance(value, Mapping):
            _add(summed.setdefault(key, {}), value)
        elif isinstance(value, (int, float)):
            summed[key] = summed.get(key, 0) + value


# Two lists, each in the order of an index: one ORDER BY over both would sort all open attempts of a domain.
_LISTED = (
    "SELECT c.id, p.url, c.kind, c.priority, c.depth, c.attempt, c.crashes, c.created_at, c.scheduled_for"
    " FROM page_crawls c CROSS JOIN pages p"
    " WHERE c.execution_id = ? AND c.domain_id = ? AND c.outcome IS NULL AND p.id = c.page_id AND "
)
_LISTS = (
    _LISTED + "c.scheduled_for IS NULL ORDER BY c.priority DESC, c.id LIMIT ?",
    _LISTED + "c.scheduled_for IS NOT NULL ORDER BY c.scheduled_for, c.id LIMIT ?",
)


def list_open(tx: FrontierTransaction, execution_id: int, *, limit: int, now: int) -> list[OpenAttempt]:
    """Return open attempts in the order of their domains' turns."""
    listed: list[OpenAttempt] = []
    heads = tx.execute(
        "SELECT q.domain_id, d.name, d.lease_owner IS NOT NULL AND d.lease_expires_at > ? FROM queues q"
        " CROSS JOIN domains d WHERE q.execution_id = ? AND q.open > 0 AND d.id = q.domain_id"
        " ORDER BY q.due_at, q.domain_id LIMIT ?",
        (now, execution_id, limit),
    )
    for domain_id, name, leased in heads:
        for statement in _LISTS:
            if len(listed) >= limit:
                return listed
            rows = tx.execute(statement, (execution_id, domain_id, limit - len(listed)))
            listed += [_open_attempt(row, name, leased=bool(leased)) for row in rows]
    return listed


def _open_attempt(row: Row, domain: str, *, leased: bool) -> OpenAttempt:
    number, url, kind, priority, depth, attempt, crashes, created_at, scheduled_for = row
    return OpenAttempt(
        id=number,
        url=url,
        domain=domain,
        kind=UrlKind(kind),
        priority=priority,
        depth=depth,
        number=attempt,
        crashes=crashes,
        created_at=from_micros(created_at),
        scheduled_for=moment(scheduled_for),
        leased=leased,
    )


_ACCOUNT = (
    "SELECT c.domain_id, c.page_id, p.url, d.name, c.kind, c.depth, c.attempt, c.outcome, c.reason, c.status_code,"  # noqa: S608
    " c.message, c.media_type, c.wire_bytes, c.title, c.redirected_to, v.url, c.completed_at, c.warc_file_id,"
    " c.warc_offset FROM page_crawls c JOIN pages p ON p.id = c.page_id JOIN domains d ON d.id = c.domain_id"
    " LEFT JOIN pages v ON v.id = c.via_page_id"
    f" WHERE c.execution_id = ? AND (c.domain_id, c.page_id) > (?, ?) AND {IS_LAST_ATTEMPT}"
    " ORDER BY c.domain_id, c.page_id LIMIT ?"
)


def account_slice(
    raw_db: RawDatabase, execution_id: int, after: tuple[int, int]
) -> tuple[list[Account], tuple[int, int] | None]:
    """Return the next 1,000 rows of an account, and the key to continue after; None at the end."""
    # By key, not by OFFSET: the last of ten million rows is found as quickly as the first.
    with Connection(raw_db).read() as tx:
        rows = tx.execute(_ACCOUNT, (execution_id, *after, _PAGE))
    found = [
        known._replace(
            kind=UrlKind(known.kind),
            outcome=Outcome(known.outcome) if known.outcome else None,
            completed_at=moment(row[16]),
        )
        for row in rows
        for known in [Account(*row[2:])]
    ]
    return found, (rows[-1][0], rows[-1][1]) if len(rows) == _PAGE else None


_TOOK = "c.completed_at - c.started_at"
SUMMARY = (
    "SELECT c.domain_id, c.kind, c.depth, c.outcome, c.reason, c.status_code, c.media_type, count(*),"  # noqa: S608
    f" coalesce(sum(c.wire_bytes), 0), count({_TOOK}), sum({_TOOK}), min({_TOOK}), max({_TOOK}), min(c.page_id)"
    f" FROM page_crawls c WHERE {IN_SLICE} AND {IS_LAST_ATTEMPT} GROUP BY 1, 2, 3, 4, 5, 6, 7"
)
# A run may end addresses for as many reasons as robots files have lines: a few of each of the first are named.
_EXAMPLES, _EXAMPLES_EACH = 500, 3
_URLS = Statement(
    sqlite="SELECT id, url FROM pages WHERE id IN (SELECT value FROM json_each(?))",
    postgresql="SELECT id, url FROM pages WHERE id = ANY(?::bigint[])",
)
_NAMES = (
    "SELECT d.id, d.name FROM queues q JOIN domains d ON d.id = q.domain_id"
    " WHERE q.execution_id = ? AND q.domain_id > ? ORDER BY q.domain_id LIMIT ?"
)


def summary(raw_db: RawDatabase, execution_id: int) -> Summary:
    """Return an execution's URLs by current outcome, counted in several ways; one pass over its attempts."""
    groups = chain.from_iterable(in_slices(raw_db, SUMMARY, execution_id))
    names: dict[int, str] = {}
    while True:
        with raw_db.read() as tx:
            rows = tx.execute(_NAMES, (execution_id, max(names, default=-1), 20 * _PAGE))
        names.update((number, name) for number, name in rows)
        if len(rows) < 20 * _PAGE:
            break
    with raw_db.read() as tx:
        excluded = tx.execute(
            "SELECT rule, host, count FROM exclusions WHERE execution_id = ? ORDER BY count DESC, rule, host LIMIT ?",
            (execution_id, _EXCLUSIONS_SHOWN),
        )
    found, pages = _summed_up(groups, names, {(rule, host): count for rule, host, count in excluded})
    with Connection(raw_db).read() as tx:
        urls: dict[int, str] = dict(
            tx.execute(_URLS, (tx.list(sorted({page for some in pages.values() for page in some})),))
        )
    return replace(
        found, examples={pair: [urls[page] for page in sorted(some) if page in urls] for pair, some in pages.items()}
    )


def _summed_up(
    groups: Iterable[Row], names: dict[int, str], exclusions: dict[tuple[str, str], int]
) -> tuple[Summary, dict[tuple[str, str], list[int]]]:
    pages: dict[tuple[str, str], list[int]] = {}
    counts: dict[str, Counter[Any]] = {
        name: Counter() for name in ("outcome", "reason", "kind", "status", "type", "domain", "depth")
    }
    wire_bytes = redirects = timed = whole = longest = 0
    shortest: int | None = None
    for domain_id, kind, depth, outcome, reason, status, media_type, count, size, *took, page in groups:
        current = outcome or "open"
        wire_bytes += int(size)
        counts["outcome"][current] += count
        counts["reason"][current, reason or "-"] += count
        if current not in ("open", Outcome.SUCCESS):
            some = pages.setdefault((current, reason or "-"), []) if len(pages) < _EXAMPLES else []
            some.extend([page] if len(some) < _EXAMPLES_EACH else [])
        counts["kind"][kind, current] += count
        counts["domain"][names.get(domain_id, str(domain_id))] += count
        if status is not None:
            counts["status"][status] += count
        if media_type is not None:
            counts["type"][media_type] += count
        counts["depth"][depth if kind == UrlKind.PAGE else str(kind)] += count
        if kind == UrlKind.PAGE:
            redirects += count if reason == REDIRECTED else 0
        if outcome == Outcome.SUCCESS and took[0]:
            timed, whole = timed + took[0], whole + int(took[1])
            shortest = took[2] if shortest is None else min(shortest, took[2])
            longest = max(longest, took[3])
    still_open = counts["outcome"].pop("open", 0)
    found = Summary(
        total=still_open + counts["outcome"].total(),
        open=still_open,
        outcomes=counts["outcome"],
        reasons=counts["reason"],
        kinds=counts["kind"],
        statuses=counts["status"],
        media_types=counts["type"],
        domains=counts["domain"],
        depths=counts["depth"],
        redirects=redirects,
        wire_bytes=wire_bytes,
        exclusions=exclusions,
        response_ms=(None, None, None)
        if shortest is None
        else (round(whole / timed / 1000, 1), round(shortest / 1000, 1), round(longest / 1000, 1)),
    )
    return found, pages


FAILURES = (
    "SELECT p.url, c.outcome, c.reason, c.status_code, c.message FROM page_crawls c JOIN pages p ON p.id = c.page_id"  # noqa: S608
    f" WHERE {IN_SLICE} AND c.outcome IN ('failed', 'timeout', 'blocked_4xx', 'blocked_5xx') AND {IS_LAST_ATTEMPT}"
    " ORDER BY c.domain_id, c.page_id"
)


def failures(raw_db: RawDatabase, *, execution_id: int, limit: int) -> list[Row]:
    """Return attempts that failed permanently, by domain: URL, outcome, reason, status, message."""
    rows = (row for slice_ in in_slices(raw_db, FAILURES, execution_id) for row in slice_)
    return list(islice(rows, limit))
