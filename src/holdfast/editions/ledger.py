"""One address in a ledger: where it was found, its outcome, and the reason. Pure functions.

Executions, retries and shards may all have found an address. Their sightings are merged into one row: the best
outcome wins, then the latest, and the nearest origin. The same sightings give the same row in any order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from holdfast.clock import from_micros
from holdfast.editions.campaign import LANGUAGES, language_of
from holdfast.editions.edition_files import utc_text
from holdfast.editions.edition_view import Acceptance, PageDecision
from holdfast.errors import Conflict
from holdfast.types import BROKEN_OFF, REDIRECTED, Outcome
from holdfast.urls.address import url_key


class LedgerUnbalanced(Conflict):
    """The rows of a ledger do not match its counts, so no report is written from it."""

    code = "ledger_unbalanced"


class SightingOrigin(StrEnum):
    """Where an address was found, nearest first."""

    SEED = "seed"
    SITEMAP = "sitemap"
    FEED = "feed"
    LINK = "link"
    CRAWLER = "crawler"
    """Another crawler captured it and does not record where it found it."""


class LedgerOutcome(StrEnum):
    """The outcome of an address, best first."""

    CAPTURED = "captured"
    FAILED = "failed"
    ROBOTS = "robots"
    EXCLUDED = "excluded"
    OVER_LIMIT = "over_limit"
    NOT_REACHED = "not_reached"


_ORIGIN_RANKS: Final = {origin: rank for rank, origin in enumerate(SightingOrigin)}
_OUTCOME_RANKS: Final = {outcome: rank for rank, outcome in enumerate(LedgerOutcome)}
_LIMITS: Final = frozenset({"max_pages", "max_bytes", "max_time"})
_OVER: Final = "over_limit"
# Reasons of attempts that an operator's stop closed: never requested, and excluded by no rule.
_CUT_SHORT: Final = frozenset({"stopped", "cancelled"})


# Reasons of feed items that no shard reached: waiting for a poll, or captured only by a poll, which is not part of an
# edition.
FEED_ITEM_WAITS, FEED_ITEM_POLLED = "feed_item_waits", "feed_item_polled"


# Prefix of reasons for captures that show something else than the page.
NOISE: Final = "noise_"
# The site's own response that the page does not exist.
_NO_SUCH_PAGE: Final = f"{NOISE}soft_404"


class AddressSighting(NamedTuple):
    """Knowledge of one execution about an address, or that no execution requested it."""

    url: str
    url_hash: int
    origin: SightingOrigin
    outcome: LedgerOutcome
    reason: str
    detail: str | None = None
    """Evidence for the reason: the robots rule, the error message."""
    http_status: int | None = None
    at: int | None = None
    """When it was captured or given up, in microseconds."""
    via: str | None = None
    depth: int | None = None
    redirected_to: str | None = None
    job_id: int | None = None
    execution_id: int | None = None
    shard_key: str | None = None
    shard_kind: str | None = None
    snapshot_id: int | None = None
    backend: str | None = None
    fidelity: str | None = None


class Row(NamedTuple):
    key: bytes
    """Its SURT key: the sort key of the ledger."""
    seen: AddressSighting
    """The deciding sighting, with the nearest origin of all."""
    executions: int
    """Number of executions that found it."""
    decision: PageDecision | None = None


def decided(row: Row, decision: PageDecision | None) -> Row:
    if decision is None:
        return row
    seen = row.seen
    if decision.state == Acceptance.EXCLUDED:
        seen = seen._replace(outcome=LedgerOutcome.EXCLUDED, reason="operator", detail=decision.reason)
    return row._replace(seen=seen, decision=decision)


def as_noise(one: AddressSighting, kind: str) -> AddressSighting:
    """Return a sighting as not captured, because its capture shows something else than the page."""
    return one._replace(
        outcome=LedgerOutcome.FAILED, reason=f"{NOISE}{kind}", snapshot_id=None, backend=None, fidelity=None
    )


def outcome_of(outcome: str | None, reason: str | None, *, ended: str) -> tuple[LedgerOutcome, str]:
    """Return outcome and reason in the ledger for an attempt; `ended` is the reason why the execution ended."""
    if outcome is None:
        if ended in _LIMITS:
            return LedgerOutcome.OVER_LIMIT, ended
        return LedgerOutcome.NOT_REACHED, f"execution_{ended}"
    # An attempt without a reason still needs a word in the table of reasons.
    found = reason or outcome
    if outcome == Outcome.SUCCESS:
        return LedgerOutcome.CAPTURED, found
    if outcome == Outcome.BLOCKED_ROBOTS:
        return LedgerOutcome.ROBOTS, found
    if outcome != Outcome.EXCLUDED:
        return LedgerOutcome.FAILED, found
    # The frontier closes these as excluded; in the ledger they are what a longer run would have reached.
    if found in _CUT_SHORT:
        return LedgerOutcome.NOT_REACHED, f"execution_{found}"
    if found.startswith(_OVER):
        return LedgerOutcome.OVER_LIMIT, found.removeprefix(_OVER).lstrip(":") or _OVER
    return LedgerOutcome.EXCLUDED, found


def outcome_of_status(status: int | None, truncated: str | None = None) -> tuple[LedgerOutcome, str]:
    """Return outcome and reason in the ledger for a captured response when only the response is known.

    A truncated body (`truncated`, as in its record) does not count as a capture of the page.
    """
    if status is not None and status >= 400:
        return LedgerOutcome.FAILED, f"http_{status}"
    # A 304 confirms the stored capture and redirects nowhere.
    is_redirect = status is not None and 300 <= status < 400 and status != 304
    # A redirect with a truncated body still has its target.
    if truncated in BROKEN_OFF and not is_redirect:
        return LedgerOutcome.FAILED, "truncated"
    return LedgerOutcome.CAPTURED, REDIRECTED if is_redirect else "ok"


def rank_of(outcome: LedgerOutcome) -> int:
    """Return the rank of an outcome: 0 is the best."""
    return _OUTCOME_RANKS[outcome]


def is_gap(row: Row) -> bool:
    """Return whether a retry could capture an address: it was not reached, or failed other than by a 404.

    False for addresses known only from polled feeds, which a crawl does not find again, and for those with an
    operator's decision.
    """
    if row.seen.reason == FEED_ITEM_POLLED or row.decision is not None:
        return False
    if row.seen.outcome is LedgerOutcome.FAILED:
        status = row.seen.http_status
        if row.seen.reason.endswith(_NO_SUCH_PAGE):
            return False
        # A 4xx is the site's final response, except these three, which ask for a later retry.
        return status is None or not 400 <= status < 500 or status in (408, 425, 429)
    return row.seen.outcome is LedgerOutcome.NOT_REACHED


def pack(sighting: AddressSighting) -> bytes:
    """Return a sighting as a line that sorts by key and page, so that lines of one page are adjacent."""
    # The key sorts the ledger and ends at a NUL, a line at LF: escape both inside it.
    key = url_key(sighting.url).replace("\n", "%0A").replace("\x00", "%00").encode("utf-8", "replace")
    # Signed in the database; unsigned hexadecimal sorts the same on every machine.
    page = sighting.url_hash & 0xFFFF_FFFF_FFFF_FFFF
    return b"%b\x00%016x\x00%b\n" % (key, page, json.dumps(sighting, separators=(",", ":")).encode())


def unpack(line: bytes) -> tuple[bytes, bytes, AddressSighting]:
    key, page, content = line.split(b"\x00", 2)
    found = AddressSighting._make(json.loads(content))
    return key, page, found._replace(origin=SightingOrigin(found.origin), outcome=LedgerOutcome(found.outcome))


def unite(lines: Iterable[bytes]) -> Iterator[Row]:
    """Yield one row for each address, in order of their keys, from sorted lines."""
    for (key, _), group in groupby(map(unpack, lines), key=lambda found: found[:2]):
        yield _united(key, [sighting for _, _, sighting in group])


def _united(key: bytes, sightings: list[AddressSighting]) -> Row:
    if len(sightings) == 1:
        return Row(key, sightings[0], int(sightings[0].execution_id is not None))
    # The result must not depend on the order in which executions were read: the same edition gives the same bytes.
    best = min(sightings, key=_rank)
    # A URL's origin is the nearest of all, even if another sighting decided its outcome.
    nearest = min(sightings, key=lambda one: (_ORIGIN_RANKS[one.origin], one.execution_id or 0, one.via or "", one.url))
    executions = {one.execution_id for one in sightings if one.execution_id is not None}
    decided = best._replace(origin=nearest.origin, via=nearest.via, depth=nearest.depth)
    return Row(key, decided, len(executions))


def _rank(one: AddressSighting) -> tuple[Any, ...]:
    return _OUTCOME_RANKS[one.outcome], -(one.at or 0), -(one.execution_id or 0), one.job_id or 0, json.dumps(one)


def as_object(row: Row) -> dict[str, Any]:
    """Return a row in the format of target-ledger.jsonl."""
    seen = row.seen
    return {
        "url": seen.url,
        "intent_source": seen.origin.value,
        "status": "captured" if seen.outcome is LedgerOutcome.CAPTURED else "missing",
        "outcome": seen.outcome.value,
        "reason": seen.reason,
        "detail": seen.detail,
        "http_status": seen.http_status,
        "at": _moment(seen.at),
        "via": seen.via,
        "depth": seen.depth,
        "redirected_to": seen.redirected_to,
        "job_id": seen.job_id,
        "execution_id": seen.execution_id,
        "executions": row.executions,
        "shard_key": seen.shard_key,
        "shard_kind": seen.shard_kind,
        "snapshot_id": seen.snapshot_id,
        "backend": seen.backend,
        "fidelity": seen.fidelity,
        "decision": row.decision and row.decision._asdict(),
    }


CSV_COLUMNS: Final = (
    *("url", "origin", "outcome", "reason", "detail", "http_status"),
    *("at", "via", "redirected_to", "shard_key", "snapshot_id"),
)


def as_cells(row: Row) -> list[Any]:
    """Return a row in the format of coverage.csv, which is public."""
    seen = row.seen
    # An error message may quote a server or driver: public readers get only the reason.
    detail = None if seen.outcome in (LedgerOutcome.FAILED, LedgerOutcome.CAPTURED) else seen.detail
    return [
        *(seen.url, seen.origin.value, seen.outcome.value, seen.reason, detail, seen.http_status),
        _moment(seen.at),
        seen.via,
        seen.redirected_to,
        seen.shard_key,
        seen.snapshot_id,
    ]


def _moment(micros: int | None) -> str | None:
    return None if micros is None else utc_text(from_micros(micros))


_REASONS = 200
# As `as_object` writes it; inside a value its quotes would be escaped. Matching it avoids parsing every line of a
# ledger of millions.
_MISSING_SEED = b'"intent_source": "seed", "status": "missing"'
_RULED_OUT = (LedgerOutcome.EXCLUDED, LedgerOutcome.ROBOTS, LedgerOutcome.OVER_LIMIT)


class MissingSeed(NamedTuple):
    url: str
    outcome: str
    reason: str
    job_id: int | None
    """The shard that decided."""
    shard_key: str | None
    accepted: bool = False
    """Whether an operator accepted the gap of any shard with this seed, whichever shard decided."""


def missing_seeds(ledger: Iterable[bytes]) -> list[MissingSeed]:
    """Return the missing seeds of a written ledger; raise ValueError, KeyError or TypeError if it is damaged."""
    rows = (json.loads(line) for line in ledger if _MISSING_SEED in line)
    return [
        MissingSeed(
            url=row["url"],
            outcome=row["outcome"],
            reason=row["reason"],
            job_id=row["job_id"],
            shard_key=row["shard_key"],
        )
        for row in rows
    ]


def area_of(url: str) -> tuple[str, str | None]:
    """Return the part of a site that a seed represents: a host, and the language in its path, if any."""
    return urlsplit(url).netloc.lower(), language_of(url)


class Tally:
    def __init__(self, seeds: Iterable[tuple[int, str]]) -> None:
        self._seeds = dict(seeds)
        # Ignore hosts without a seed: they would fill the counter, and no shard could be planned for them.
        self._hosts = {area_of(url)[0] for url in self._seeds.values()}
        self._last = b"", -1
        self._met: set[int] = set()
        self.rows = 0
        self.outcomes: Counter[str] = Counter()
        self.origins: Counter[str] = Counter()
        self.reasons: Counter[tuple[str, str]] = Counter()
        # Keyed by job and outcome: two shards may have the same name.
        self.shards: Counter[tuple[int | None, str]] = Counter()
        self.backends: Counter[str] = Counter()
        self.fidelities: Counter[str] = Counter()
        self.gaps: Counter[tuple[str, str | None]] = Counter()
        self.missing_seeds: list[MissingSeed] = []

    def add(self, row: Row) -> None:
        """Count a row; raise LedgerUnbalanced if it sorts before the previous one or is listed twice."""
        seen = row.seen
        page = seen.url_hash & 0xFFFF_FFFF_FFFF_FFFF
        # A repeated URL would be counted twice, and the report would still add up.
        if (row.key, page) <= self._last:
            raise LedgerUnbalanced(f"{seen.url[:200]} stands twice in the ledger; nothing was written")
        self._last = row.key, page
        self.rows += 1
        self.outcomes[seen.outcome.value] += 1
        self.origins[seen.origin.value] += 1
        self.reasons[seen.outcome.value, seen.reason] += 1
        self.shards[seen.job_id, seen.outcome.value] += 1
        if seen.outcome is LedgerOutcome.CAPTURED:
            self.backends[seen.backend or "unknown"] += 1
            self.fidelities[seen.fidelity or "unknown"] += 1
        if is_gap(row) and (area := area_of(seen.url))[0] in self._hosts:
            self.gaps[area] += 1
        if seen.url_hash in self._seeds:
            self._met.add(seen.url_hash)
            if seen.outcome is not LedgerOutcome.CAPTURED:
                self.missing_seeds.append(
                    MissingSeed(
                        url=self._seeds[seen.url_hash],
                        outcome=seen.outcome.value,
                        reason=seen.reason,
                        job_id=seen.job_id,
                        shard_key=seen.shard_key,
                    )
                )

    def of(self, *outcomes: LedgerOutcome) -> int:
        return sum(self.outcomes[outcome.value] for outcome in outcomes)

    def counts(self) -> dict[str, int]:
        """Return the figures of the report: captured, failed, missing and excluded add up to intended."""
        return {
            "intended_urls": self.rows,
            "captured_urls": self.of(LedgerOutcome.CAPTURED),
            "failed_urls": self.of(LedgerOutcome.FAILED),
            "missing_urls": self.of(LedgerOutcome.NOT_REACHED),
            "excluded_urls": self.of(*_RULED_OUT),
            "fallback_urls": self.fidelities["fallback"],
        }

    def top_reasons(self) -> list[dict[str, Any]]:
        ranked = sorted(self.reasons.items(), key=lambda one: (-one[1], one[0]))
        return [
            {"outcome": outcome, "reason": reason, "count": count} for (outcome, reason), count in ranked[:_REASONS]
        ]

    def gaps_of(self, seed: str) -> int:
        """Return how many addresses in a seed's area a retry could still capture."""
        host, language = area_of(seed)
        if language is not None:
            return self.gaps[host, language]
        return sum(self.gaps[host, one] for one in (None, *LANGUAGES))

    def check(self, *, written: int, recounted: Mapping[str, int]) -> None:
        """Raise LedgerUnbalanced unless figures, number of written lines and a recount of the file agree."""
        captured = self.of(LedgerOutcome.CAPTURED)
        sums = {
            "rows written": written,
            "outcomes": self.outcomes.total(),
            "origins": self.origins.total(),
            "reasons": self.reasons.total(),
            "shards": self.shards.total(),
            "lines in the file": sum(recounted.values()),
        }
        wrong = [f"{name} {value}" for name, value in sums.items() if value != self.rows]
        of_captured = {"backends": self.backends.total(), "fidelities": self.fidelities.total()}
        wrong += [f"{name} {total} for {captured} captured" for name, total in of_captured.items() if total != captured]
        wrong += [
            f"{outcome} {self.outcomes[outcome]} counted, {recounted.get(outcome, 0)} in the file"
            for outcome in LedgerOutcome
            if self.outcomes[outcome] != recounted.get(outcome, 0)
        ]
        # Every seed has a row, even if no shard ran: a missing one was lost in the sort.
        if lost := len(self._seeds) - len(self._met):
            wrong.append(f"{lost} seeds without a row")
        if self.origins[SightingOrigin.SEED.value] != len(self._seeds):
            wrong.append(f"{self.origins[SightingOrigin.SEED.value]} rows of seeds for {len(self._seeds)} seeds")
        if wrong:
            raise LedgerUnbalanced(f"the ledger has {self.rows} rows, but: {'; '.join(wrong)}; nothing was written")
