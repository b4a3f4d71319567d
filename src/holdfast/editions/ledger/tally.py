"""Counts a ledger while it is written, and refuses one whose rows do not add up. Holds figures, never addresses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from holdfast.editions.campaign import LANGUAGES, language_of
from holdfast.editions.ledger.rows import Fate, Origin, Row, is_gap
from holdfast.editions.refusals import LedgerUnbalanced

_REASONS = 200
_MISSING_SEED = b'"intent_source": "seed", "status": "missing"'
"""As `as_object` writes it; inside a value its quotes would be escaped."""
_RULED_OUT = (Fate.EXCLUDED, Fate.ROBOTS, Fate.OVER_LIMIT)


class MissingSeed(NamedTuple):
    """A seed that was not captured."""

    url: str
    outcome: str
    reason: str
    job_id: int | None
    """The shard that decided."""
    shard_key: str | None
    accepted: bool = False
    """Whether somebody accepted the gap of a shard that was to bring it, whichever of them decided."""


def missing_seeds(ledger: Iterable[bytes]) -> list[MissingSeed]:
    """Return the seeds that a written ledger has as missing; ValueError, KeyError or TypeError if it is damaged."""
    rows = (json.loads(line) for line in ledger if _MISSING_SEED in line)
    return [
        MissingSeed(url=row["url"], outcome=row["outcome"], reason=row["reason"], job_id=row["job_id"],
                    shard_key=row["shard_key"])
        for row in rows
    ]  # fmt: skip


class Area(NamedTuple):
    """The part of a site that a seed stands for: a host, and the language that its path names, if it does."""

    host: str
    language: str | None


def area_of(url: str) -> Area:
    """Return the area that an address lies in."""
    return Area(urlsplit(url).netloc.lower(), language_of(url))


class Tally:
    """The figures of one ledger."""

    def __init__(self, seeds: Iterable[tuple[int, str]]) -> None:
        """Count for these seeds (page and address)."""
        self._seeds = dict(seeds)
        self._hosts = {area_of(url).host for url in self._seeds.values()}
        self._last = b"", -1
        self._met: set[int] = set()
        self.rows = 0
        self.outcomes: Counter[str] = Counter()
        self.origins: Counter[str] = Counter()
        self.reasons: Counter[tuple[str, str]] = Counter()
        self.shards: Counter[tuple[int | None, str]] = Counter()
        """By the job that decided, and the outcome: names of shards may be given twice."""
        self.backends: Counter[str] = Counter()
        self.fidelities: Counter[str] = Counter()
        self.gaps: Counter[Area] = Counter()
        self.missing_seeds: list[MissingSeed] = []

    def add(self, row: Row) -> None:
        """Count a row; LedgerUnbalanced if it does not stand behind the one before: then an address is told twice."""
        seen = row.seen
        page = seen.url_hash & 0xFFFF_FFFF_FFFF_FFFF
        if (row.key, page) <= self._last:
            raise LedgerUnbalanced(f"{seen.url[:200]} stands twice in the ledger; nothing was written")
        self._last = row.key, page
        self.rows += 1
        self.outcomes[seen.fate.value] += 1
        self.origins[seen.origin.value] += 1
        self.reasons[seen.fate.value, seen.reason] += 1
        self.shards[seen.job_id, seen.fate.value] += 1
        if seen.fate is Fate.CAPTURED:
            self.backends[seen.backend or "unknown"] += 1
            self.fidelities[seen.fidelity or "unknown"] += 1
        if is_gap(row) and (area := area_of(seen.url)).host in self._hosts:
            self.gaps[area] += 1
        if seen.url_hash in self._seeds:
            self._met.add(seen.url_hash)
            if seen.fate is not Fate.CAPTURED:
                self.missing_seeds.append(
                    MissingSeed(url=self._seeds[seen.url_hash], outcome=seen.fate.value, reason=seen.reason,
                                job_id=seen.job_id, shard_key=seen.shard_key)
                )  # fmt: skip

    def of(self, *fates: Fate) -> int:
        """Return how many addresses had one of these ends."""
        return sum(self.outcomes[fate.value] for fate in fates)

    def counts(self) -> dict[str, int]:
        """Return the figures of the report: captured, failed, missing and excluded add up to intended."""
        return {
            "intended_urls": self.rows, "captured_urls": self.of(Fate.CAPTURED), "failed_urls": self.of(Fate.FAILED),
            "missing_urls": self.of(Fate.NOT_REACHED), "excluded_urls": self.of(*_RULED_OUT),
            "fallback_urls": self.fidelities["fallback"],
        }  # fmt: skip

    def top_reasons(self) -> list[dict[str, Any]]:
        """Return the commonest reasons, each with its outcome; what is beyond the list is in the ledger."""
        ranked = sorted(self.reasons.items(), key=lambda one: (-one[1], one[0]))
        return [
            {"outcome": outcome, "reason": reason, "count": count} for (outcome, reason), count in ranked[:_REASONS]
        ]

    def gaps_of(self, seed: str) -> int:
        """Return how many addresses in a seed's area may still be had by another try."""
        host, language = area_of(seed)
        if language is not None:
            return self.gaps[Area(host, language)]
        return sum(self.gaps[Area(host, one)] for one in (None, *LANGUAGES))

    def check(self, *, written: int, recounted: Mapping[str, int]) -> None:
        """Raise LedgerUnbalanced unless all agree: the figures, the lines that were written, a count of the file."""
        captured = self.of(Fate.CAPTURED)
        sums = {
            "rows written": written, "outcomes": self.outcomes.total(), "origins": self.origins.total(),
            "reasons": self.reasons.total(), "shards": self.shards.total(),
            "lines in the file": sum(recounted.values()),
        }  # fmt: skip
        wrong = [f"{name} {value}" for name, value in sums.items() if value != self.rows]
        of_captured = {"backends": self.backends.total(), "fidelities": self.fidelities.total()}
        wrong += [f"{name} {total} for {captured} captured" for name, total in of_captured.items() if total != captured]
        wrong += [
            f"{fate} {self.outcomes[fate]} counted, {recounted.get(fate, 0)} in the file"
            for fate in Fate
            if self.outcomes[fate] != recounted.get(fate, 0)
        ]
        if lost := len(self._seeds) - len(self._met):
            wrong.append(f"{lost} seeds without a row")
        if self.origins[Origin.SEED.value] != len(self._seeds):
            wrong.append(f"{self.origins[Origin.SEED.value]} rows of seeds for {len(self._seeds)} seeds")
        if wrong:
            raise LedgerUnbalanced(f"the ledger has {self.rows} rows, but: {'; '.join(wrong)}; nothing was written")
