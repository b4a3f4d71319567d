"""What is known of an address in a ledger: how it came to be meant, what became of it, and the reason. Pure.

Executions, retries and shards may all have met an address. Their sightings are united into one row: the best outcome
wins, then the latest, and the nearest origin. The same sightings give the same row, in whatever order they come.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, NamedTuple

from holdfast.clock import from_micros
from holdfast.index.keys import url_key
from holdfast.types import BROKEN_OFF, Outcome


class Origin(StrEnum):
    """How an address came to be meant, nearest first."""

    SEED = "seed"
    SITEMAP = "sitemap"
    FEED = "feed"
    LINK = "link"
    CRAWLER = "crawler"
    """A crawler of another make captured it and does not say where it found it."""


class Fate(StrEnum):
    """What became of an address, best first."""

    CAPTURED = "captured"
    FAILED = "failed"
    ROBOTS = "robots"
    EXCLUDED = "excluded"
    OVER_LIMIT = "over_limit"
    NOT_REACHED = "not_reached"


_ORIGINS: Final = {origin: rank for rank, origin in enumerate(Origin)}
_FATES: Final = {fate: rank for rank, fate in enumerate(Fate)}
_LIMITS: Final = frozenset({"max_pages", "max_bytes", "max_time"})
_OVER: Final = "over_limit"
_CUT_SHORT: Final = frozenset({"stopped", "cancelled"})
"""What attempts are closed with when somebody ends an execution: nobody asked for them, no rule kept them out."""
REDIRECTED: Final = "redirected"
"""The reason of what was answered with another address; `redirects` says what came of that."""


FEED_ITEM_WAITS, FEED_ITEM_POLLED = "feed_item_waits", "feed_item_polled"
"""What feeds named and no shard met: nobody has asked for it yet, or only a poll, which is no part of an edition."""


class Sighting(NamedTuple):
    """What one execution knows of an address, or that nobody ever asked for it."""

    url: str
    url_hash: int
    origin: Origin
    fate: Fate
    reason: str
    detail: str | None = None
    """The robots rule, the error's message: what stands behind the reason."""
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
    """One address in the ledger."""

    key: bytes
    """Its SURT key: the order of the ledger."""
    seen: Sighting
    """The sighting that decided, with the nearest origin of all."""
    executions: int
    """How many executions met it."""


def fate_of(outcome: str | None, reason: str | None, *, ended: str) -> tuple[Fate, str]:
    """Return what an attempt's outcome means for the ledger, and its reason; `ended` is the execution's own reason."""
    if outcome is None:
        if ended in _LIMITS:
            return Fate.OVER_LIMIT, ended
        return Fate.NOT_REACHED, f"execution_{ended}"
    found = reason or outcome
    if outcome == Outcome.SUCCESS:
        return Fate.CAPTURED, found
    if outcome == Outcome.BLOCKED_ROBOTS:
        return Fate.ROBOTS, found
    if outcome != Outcome.EXCLUDED:
        return Fate.FAILED, found
    if found in _CUT_SHORT:
        return Fate.NOT_REACHED, f"execution_{found}"
    if found.startswith(_OVER):
        return Fate.OVER_LIMIT, found.removeprefix(_OVER).lstrip(":") or _OVER
    return Fate.EXCLUDED, found


def fate_of_status(status: int | None, truncated: str | None = None) -> tuple[Fate, str]:
    """Return what a captured answer means for the ledger where nothing but the answer is known.

    A body that broke off (`truncated`, as its record has it) is no capture of the page.
    """
    if status is not None and status >= 400:
        return Fate.FAILED, f"http_{status}"
    is_redirect = status is not None and 300 <= status < 400 and status != 304
    if truncated in BROKEN_OFF and not is_redirect:
        return Fate.FAILED, "truncated"
    return Fate.CAPTURED, REDIRECTED if is_redirect else "ok"


def rank_of(fate: Fate) -> int:
    """Return how good an end is: 0 is the best."""
    return _FATES[fate]


def is_gap(row: Row) -> bool:
    """Return whether another try could bring an address: it was not reached, or failed otherwise than by a 4xx.

    What only a poll of a feed knows is not found by crawling again.
    """
    if row.seen.reason == FEED_ITEM_POLLED:
        return False
    if row.seen.fate is Fate.FAILED:
        status = row.seen.http_status
        return status is None or not 400 <= status < 500 or status in (408, 425, 429)
    return row.seen.fate is Fate.NOT_REACHED


def pack(sighting: Sighting) -> bytes:
    """Return a sighting as a line that sorts by key and page; lines of one page stand together."""
    key = url_key(sighting.url).replace("\n", "%0A").replace("\x00", "%00").encode("utf-8", "replace")
    page = sighting.url_hash & 0xFFFF_FFFF_FFFF_FFFF
    return b"%b\x00%016x\x00%b\n" % (key, page, json.dumps(sighting, separators=(",", ":")).encode())


def unpack(line: bytes) -> tuple[bytes, bytes, Sighting]:
    """Return a line's key, its page, and the sighting."""
    key, page, content = line.split(b"\x00", 2)
    found = Sighting._make(json.loads(content))
    return key, page, found._replace(origin=Origin(found.origin), fate=Fate(found.fate))


def unite(lines: Iterable[bytes]) -> Iterator[Row]:
    """Yield one row for each address, in the order of their keys, from sorted lines."""
    for (key, _), group in groupby(map(unpack, lines), key=lambda found: found[:2]):
        yield _united(key, [sighting for _, _, sighting in group])


def _united(key: bytes, sightings: list[Sighting]) -> Row:
    if len(sightings) == 1:
        return Row(key, sightings[0], int(sightings[0].execution_id is not None))
    best = min(sightings, key=_rank)
    nearest = min(sightings, key=lambda one: (_ORIGINS[one.origin], one.execution_id or 0, one.via or "", one.url))
    executions = {one.execution_id for one in sightings if one.execution_id is not None}
    decided = best._replace(origin=nearest.origin, via=nearest.via, depth=nearest.depth)
    return Row(key, decided, len(executions))


def _rank(one: Sighting) -> tuple[Any, ...]:
    """Return what sorts the best first; ties are broken by every field that could still differ."""
    return _FATES[one.fate], -(one.at or 0), -(one.execution_id or 0), one.job_id or 0, json.dumps(one)


def as_object(row: Row) -> dict[str, Any]:
    """Return a row as it stands in target-ledger.jsonl."""
    seen = row.seen
    return {
        "url": seen.url, "intent_source": seen.origin.value,
        "status": "captured" if seen.fate is Fate.CAPTURED else "missing", "outcome": seen.fate.value,
        "reason": seen.reason, "detail": seen.detail, "http_status": seen.http_status, "at": _moment(seen.at),
        "via": seen.via, "depth": seen.depth, "redirected_to": seen.redirected_to, "job_id": seen.job_id,
        "execution_id": seen.execution_id, "executions": row.executions, "shard_key": seen.shard_key,
        "shard_kind": seen.shard_kind, "snapshot_id": seen.snapshot_id, "backend": seen.backend,
        "fidelity": seen.fidelity,
    }  # fmt: skip


CSV_COLUMNS: Final = (
    "url", "origin", "outcome", "reason", "detail", "http_status", "at", "via", "redirected_to", "shard_key",
    "snapshot_id",
)  # fmt: skip


def as_cells(row: Row) -> list[Any]:
    """Return a row as it stands in coverage.csv, which anybody may read: an error's own words stay inside."""
    seen = row.seen
    detail = None if seen.fate in (Fate.FAILED, Fate.CAPTURED) else seen.detail
    return [
        seen.url, seen.origin.value, seen.fate.value, seen.reason, detail, seen.http_status, _moment(seen.at),
        seen.via, seen.redirected_to, seen.shard_key, seen.snapshot_id,
    ]  # fmt: skip


def _moment(micros: int | None) -> str | None:
    return None if micros is None else from_micros(micros).isoformat().replace("+00:00", "Z")
