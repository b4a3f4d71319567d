"""The judge of politeness: reads the site's own log and says what broke a promise. It trusts no word of the client."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tests.site.log import Entry

TOLERANCE_S = 0.001
_ABORT_TOLERANCE_S = 0.05
"""When a client hangs up, the kernel does not tell us when: our loop notices a little later."""


class Violation(NamedTuple):
    """Two requests to one host that came too close."""

    kind: str
    """`overlap`, `gap` or `retry_after`."""
    host: str
    short_by_s: float
    earlier: str
    later: str

    def __str__(self) -> str:
        return f"{self.kind} on {self.host}: {self.later} came {self.short_by_s:.3f} s too early after {self.earlier}"


def judge(
    entries: Iterable[Entry],
    *,
    delay_s: float,
    delays: Mapping[str, float] | None = None,
    tolerance_s: float = TOLERANCE_S,
) -> list[Violation]:
    """Return every broken promise: two open requests at once, two starts closer than the delay, Retry-After not obeyed.

    `delays` names hosts that asked for another delay than `delay_s`. A host is a name and a port.
    """
    by_host: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_host[f"{entry.host}:{entry.port}"].append(entry)
    found: list[Violation] = []
    for host, asked in by_host.items():
        asked.sort(key=lambda entry: entry.start)
        delay = (delays or {}).get(asked[0].host, delay_s)
        found += _of_host(host, asked, delay, tolerance_s)
    return found


def _of_host(host: str, asked: list[Entry], delay_s: float, tolerance_s: float) -> list[Violation]:
    """Compare each request with those before it; the longest open one and the last ban are what matters."""
    found: list[Violation] = []
    busiest = asked[0]
    banned_until, banned_by = float("-inf"), asked[0]
    for before, entry in itertools.pairwise(asked):
        if _end(before) > _end(busiest):
            busiest = before
        if before.retry_after is not None and _end(before) + before.retry_after > banned_until:
            banned_until, banned_by = _end(before) + before.retry_after, before
        if _end(busiest) - entry.start > (_ABORT_TOLERANCE_S if busiest.aborted else tolerance_s):
            found.append(Violation("overlap", host, _end(busiest) - entry.start, busiest.path, entry.path))
        if entry.start - before.start < delay_s - tolerance_s:
            short_by_s = delay_s - (entry.start - before.start)
            found.append(Violation("gap", host, short_by_s, before.path, entry.path))
        if entry.start < banned_until - tolerance_s:
            found.append(Violation("retry_after", host, banned_until - entry.start, banned_by.path, entry.path))
    return found


def _end(entry: Entry) -> float:
    return float("inf") if entry.end is None else entry.end
