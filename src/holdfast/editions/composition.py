"""Puts the report of an edition together from its figures and its shards. Pure; it names no path of a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.editions.artefacts import Written
from holdfast.editions.ledger.tally import Tally
from holdfast.editions.queries import LeftOut
from holdfast.editions.readiness import ACCEPTED, INDEXED, Readiness, judge
from holdfast.editions.volume import Shard, Volume

STANDARD = "documented_attainable"
_SHOWN = 50
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
    counts = {**tally.counts(), "excluded_rules": len(figures.left_out), **shard_counts(volume.shards)}
    ready = judge([shard.state for shard in volume.shards], captured=counts["captured_urls"],
                  missing_seeds=tally.blocking_seeds)  # fmt: skip
    return {
        "edition_id": edition.id, "source": volume.source.code, "source_name": volume.source.name,
        "year": edition.year, **_ready(ready), "standard": STANDARD,
        "generated_at": now.isoformat().replace("+00:00", "Z"), "counts": counts,
        "outcomes": dict(sorted(tally.outcomes.items())), "origins": dict(sorted(tally.origins.items())),
        "reasons": tally.top_reasons(), "backend_counts": dict(sorted(tally.backends.items())),
        "fidelity_counts": dict(sorted(tally.fidelities.items())),
        "exclusion_rules": [left._asdict() for left in figures.left_out],
        "seeds": [
            {"url": seed, "gaps": tally.gaps_of(seed)} for seed in list(volume.seeds)[:_SEEDS_SHOWN]
        ],
        "missing_seeds": [seed._asdict() for seed in tally.missing_seeds[:_SEEDS_SHOWN]],
        "sitemaps": dict(sorted(figures.sitemaps.items())),
        "unnamed": {"failed": figures.unnamed_failed, "not_reached": figures.unnamed_waiting},
        "shards": [shard_object(shard, tally) for shard in volume.shards],
        "artifacts": {file.name: file.described() for file in files}, "notes": _notes(figures),
    }  # fmt: skip


def reassess(volume: Volume, content: dict[str, Any]) -> dict[str, Any]:
    """Return a report's content with its shards as they stand now; the ledger's figures stay."""
    accepted = {shard.key for shard in volume.shards if shard.acceptance in ACCEPTED}
    seeds = [{**seed, "accepted": seed["shard_key"] in accepted} for seed in content["missing_seeds"]]
    counts = {**content["counts"], **shard_counts(volume.shards)}
    ready = judge([shard.state for shard in volume.shards], captured=counts["captured_urls"],
                  missing_seeds=sum(not seed["accepted"] for seed in seeds))  # fmt: skip
    before = {shard["jobId"]: shard.get("outcomes", {}) for shard in content["shards"]}
    shards = [{**shard_object(shard), "outcomes": before.get(shard.job_id, {})} for shard in volume.shards]
    return {**content, **_ready(ready), "counts": counts, "missing_seeds": seeds, "shards": shards}


def shard_counts(shards: Iterable[Shard]) -> dict[str, int]:
    """Return how many shards there are, how many are indexed, and how many wait for somebody."""
    every = list(shards)
    return {
        "shards": len(every), "indexed_shards": sum(shard.status == INDEXED for shard in every),
        "needs_review_shards": sum(shard.state.needs_review for shard in every),
    }  # fmt: skip


def shard_object(shard: Shard, tally: Tally | None = None) -> dict[str, Any]:
    """Return a shard as the report and the admin routes show it (1.7 of the facts)."""
    latest = shard.runs[-1] if shard.runs else None
    shown: dict[str, Any] = {
        "jobId": shard.job_id, "name": shard.name, "status": shard.status, "shardKey": shard.key,
        "shardKind": shard.kind,
        "acceptanceState": "needs_review" if shard.state.needs_review else shard.acceptance,
        "acceptanceReason": shard.reason, "captureBackend": shard.backend, "indexedPageCount": shard.indexed_pages,
        "pagesCrawled": latest.items_crawled if latest else 0, "pagesTotal": latest.items_total if latest else 0,
        "pagesFailed": latest.items_failed if latest else 0, "retryCount": shard.retries,
        "executions": [run.id for run in shard.runs],
    }  # fmt: skip
    if tally is not None:
        shown["outcomes"] = {fate: count for (key, fate), count in sorted(tally.shards.items()) if key == shard.key}
    return shown


def summary(volume: Volume, content: dict[str, Any]) -> dict[str, Any]:
    """Return what the edition's row keeps of a report, and anybody may read: figures and reasons."""
    kept = ("outcomes", "origins", "fidelity_counts", "sitemaps", "unnamed", "artifacts", "notes", "standard")
    return {
        "seeds": list(volume.seeds), **{name: content[name] for name in kept},
        "reasons": content["reasons"][:_SHOWN], "exclusion_rules": content["exclusion_rules"][:_SHOWN],
        "missing_seeds": content["missing_seeds"][:_SHOWN], "missing_seed_count": content["counts"]["missing_seeds"],
        "gaps": {seed["url"]: seed["gaps"] for seed in content["seeds"] if seed["gaps"]},
    }  # fmt: skip


def _ready(ready: Readiness) -> dict[str, Any]:
    return {
        "status": ready.status.value, "search_ready": ready.search_ready, "research_ready": ready.research_ready,
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
    if figures.unnamed_failed or figures.unnamed_waiting:
        notes.append(
            f"A crawler told of {figures.unnamed_failed} failures and {figures.unnamed_waiting} pages that it did not "
            "reach, without naming them: they are not in the ledger."
        )
    return notes


_READ = ("ok", "unchanged", "not_modified", "http_404", "http_410", "redirected")
"""A sitemap at the usual place that is not there hides nothing."""
