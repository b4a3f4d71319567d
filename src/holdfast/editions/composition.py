"""Puts the report of an edition together from its figures and its shards. Pure; it names no path of a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.editions.artefacts import Written
from holdfast.editions.ledger.reading import MeantSeed, seeds_of
from holdfast.editions.ledger.rows import FEED_ITEM_POLLED, Fate
from holdfast.editions.ledger.tally import MissingSeed, Tally
from holdfast.editions.queries import LeftOut
from holdfast.editions.readiness import INDEXED, Acceptance, judge
from holdfast.editions.volume import Shard, Volume
from holdfast.errors import UrlRefused
from holdfast.urls import parse_seed

STANDARD = "documented_attainable"
_HEAD = ("edition_id", "source", "source_name", "year")
SHOWN = 50
_SEEDS_SHOWN = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was counted."""

    tally: Tally
    left_out: list[LeftOut]
    sitemaps: Mapping[str, int]
    unnamed_failed: int
    """Failures that a crawler of another make told in numbers only."""
    unnamed_waiting: int


def compose(volume: Volume, figures: Figures, files: Iterable[Written], *, now: datetime) -> dict[str, Any]:
    """Return the report's content."""
    tally, edition = figures.tally, volume.edition
    outcomes: dict[int | None, dict[str, int]] = {}
    for (job_id, fate), count in sorted(tally.shards.items(), key=lambda one: one[0][1]):
        outcomes.setdefault(job_id, {})[fate] = count
    measured = {
        "edition_id": edition.id, "source": volume.source.code, "source_name": volume.source.name,
        "year": edition.year, "standard": STANDARD, "generated_at": now.isoformat().replace("+00:00", "Z"),
        "counts": {**tally.counts(), "excluded_rules": len(figures.left_out)},
        "outcomes": dict(sorted(tally.outcomes.items())), "origins": dict(sorted(tally.origins.items())),
        "reasons": tally.top_reasons(), "backend_counts": dict(sorted(tally.backends.items())),
        "fidelity_counts": dict(sorted(tally.fidelities.items())),
        "exclusion_rules": [left._asdict() for left in figures.left_out],
        "seeds": _seeds(volume, tally),
        "sitemaps": dict(sorted(figures.sitemaps.items())),
        "unnamed": {"failed": figures.unnamed_failed, "not_reached": figures.unnamed_waiting},
        "shards": [{"jobId": shard.job_id, "outcomes": outcomes.get(shard.job_id, {})} for shard in volume.shards],
        "artifacts": {file.name: file.described() for file in files}, "notes": _notes(figures),
    }  # fmt: skip
    return assess(volume, measured, tally.missing_seeds)


def _seeds(volume: Volume, tally: Tally) -> list[dict[str, Any]]:
    """Return each seed as it was given: whether it was captured, and what another try could bring in its area."""
    missing = {parse_seed(seed.url).hash64 for seed in tally.missing_seeds}
    found = []
    for seed in volume.seeds:
        with suppress(UrlRefused):
            is_captured = parse_seed(seed).hash64 not in missing
            found.append({"url": seed, "captured": is_captured, "gaps": tally.gaps_of(seed)})
    return found


def assess(volume: Volume, measured: Mapping[str, Any], missing: Sequence[MissingSeed]) -> dict[str, Any]:
    """Return what was measured with the edition's standing: its shards, its missing seeds, what it is ready for.

    `missing` are all of them; which are accepted is decided by the shards as they are now. A report shows the first.
    """
    meant = seeds_of(volume)
    seeds = [_judged(seed, meant.get(parse_seed(seed.url).hash64)) for seed in missing]
    blocking = sum(not seed.accepted for seed in seeds)
    counts = {**measured["counts"], "missing_seeds": len(seeds), "blocking_seeds": blocking,
              **shard_counts(volume.shards)}  # fmt: skip
    ready = judge(
        [shard.state for shard in volume.shards],
        captured=counts["captured_urls"],
        missing_seeds=blocking,
        seeds=len(meant),
    )
    outcomes = {shard["jobId"]: shard["outcomes"] for shard in measured["shards"]}
    standing = ready.as_object()
    return {
        **{name: measured[name] for name in _HEAD}, **standing, **measured, **standing, "counts": counts,
        "missing_seeds": [seed._asdict() for seed in seeds[:_SEEDS_SHOWN]],
        "shards": [{**shard_object(shard), "outcomes": outcomes.get(shard.job_id, {})} for shard in volume.shards],
    }  # fmt: skip


def _judged(seed: MissingSeed, meant: MeantSeed | None) -> MissingSeed:
    return seed if meant is None else seed._replace(url=meant.url, accepted=meant.is_accepted)


def shard_counts(shards: Iterable[Shard]) -> dict[str, int]:
    """Return how many shards there are, how many are indexed, and how many wait for somebody."""
    every = list(shards)
    return {
        "shards": len(every), "indexed_shards": sum(shard.status == INDEXED for shard in every),
        "needs_review_shards": sum(shard.state.needs_review for shard in every),
        "short_shards": sum(shard.state.falls_short for shard in every),
    }  # fmt: skip


def shard_object(shard: Shard) -> dict[str, Any]:
    """Return a shard as the report and the admin routes show it (1.7 of the facts)."""
    latest = shard.runs[-1] if shard.runs else None
    return {
        "jobId": shard.job_id, "name": shard.name, "status": shard.status, "shardKey": shard.key,
        "shardKind": shard.kind,
        "acceptanceState": Acceptance.NEEDS_REVIEW.value if shard.state.needs_review else shard.acceptance,
        "acceptanceReason": shard.reason, "captureBackend": shard.backend, "indexedPageCount": shard.indexed_pages,
        "pagesCrawled": latest.items_crawled if latest else 0, "pagesTotal": latest.items_total if latest else 0,
        "pagesFailed": latest.items_failed if latest else 0, "retryCount": shard.retries,
        "executions": [run.id for run in shard.runs], "ended": latest.ended if latest else None,
        "shortfalls": latest.shortfalls if latest else {}, "fallsShort": shard.state.falls_short,
    }  # fmt: skip


def summary(volume: Volume, content: dict[str, Any]) -> dict[str, Any]:
    """Return what the edition's row keeps of a report, and anybody may read: figures and reasons."""
    kept = ("outcomes", "origins", "fidelity_counts", "sitemaps", "unnamed", "artifacts", "notes", "standard")
    return {
        "seeds": list(volume.seeds), **{name: content[name] for name in kept},
        "reasons": content["reasons"][:SHOWN], "exclusion_rules": content["exclusion_rules"][:SHOWN],
        "missing_seeds": content["missing_seeds"][:SHOWN], "missing_seed_count": content["counts"]["missing_seeds"],
        "gaps": {seed["url"]: seed["gaps"] or 1 for seed in content["seeds"] if seed["gaps"] or not seed["captured"]},
    }  # fmt: skip


def _notes(figures: Figures) -> list[str]:
    notes = [
        "Intended are seeds, what sitemaps and feeds named, and links in scope; what pages embed is not counted.",
        "Links out of scope, traps and links beyond a thousand a page have no row: exclusion_rules counts them.",
    ]
    over = sum(left.links for left in figures.left_out if left.rule == "over_limit:links")
    if over:
        notes.append(f"{over} links on very long pages were counted and not followed.")
    unread = {reason: count for reason, count in figures.sitemaps.items() if reason not in _READ}
    if unread:
        notes.append(f"Sitemaps that could not be read, and may have named more: {unread}.")
    polled = figures.tally.reasons[Fate.NOT_REACHED.value, FEED_ITEM_POLLED]
    if polled:
        notes.append(f"{polled} addresses that feeds named were taken by polls alone, which are no part of an edition.")
    if figures.unnamed_failed or figures.unnamed_waiting:
        notes.append(
            f"A crawler told of {figures.unnamed_failed} failures and {figures.unnamed_waiting} pages that it did not "
            "reach, without naming them: they are not in the ledger."
        )
    return notes


_READ = ("ok", "unchanged", "not_modified", "http_404", "http_410", "redirected")
"""A sitemap at the usual place that is not there hides nothing."""
