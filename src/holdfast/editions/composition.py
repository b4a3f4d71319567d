"""Composes the report of an edition from its figures and shards. Pure functions; contains no server paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from holdfast.editions.edition_files import WrittenFile, utc_text
from holdfast.editions.edition_view import INDEXED, EditionView, Shard, judge
from holdfast.editions.ledger import FEED_ITEM_POLLED, LedgerOutcome, MissingSeed, Tally
from holdfast.editions.ledger_reading import seeds_of
from holdfast.editions.records import shard_record
from holdfast.errors import UrlRefused
from holdfast.records import encode
from holdfast.urls import parse_seed

STANDARD = "documented_attainable"
_HEAD = ("edition_id", "source", "source_name", "year")
SHOWN = 50
_SEEDS_SHOWN = 1000


def compose(
    view: EditionView, tally: Tally, figures: Mapping[str, Any], files: Iterable[WrittenFile], *, now: datetime
) -> dict[str, Any]:
    edition = view.edition
    outcomes: dict[int | None, dict[str, int]] = {}
    for (job_id, outcome), count in sorted(tally.shards.items(), key=lambda one: one[0][1]):
        outcomes.setdefault(job_id, {})[outcome] = count
    measured = {
        "edition_id": edition.id,
        "source": view.source.code,
        "source_name": view.source.name,
        "year": edition.year,
        "standard": STANDARD,
        "generated_at": utc_text(now),
        "counts": {**tally.counts(), "excluded_rules": len(figures["exclusion_rules"])},
        "outcomes": dict(sorted(tally.outcomes.items())),
        "origins": dict(sorted(tally.origins.items())),
        "reasons": tally.top_reasons(),
        "backend_counts": dict(sorted(tally.backends.items())),
        "fidelity_counts": dict(sorted(tally.fidelities.items())),
        "exclusion_rules": figures["exclusion_rules"],
        "seeds": _seeds(view, tally),
        "sitemaps": figures["sitemaps"],
        "unnamed": figures["unnamed"],
        "shards": [{"jobId": shard.job.id, "outcomes": outcomes.get(shard.job.id, {})} for shard in view.shards],
        "artifacts": {file.name: file.described() for file in files},
        "notes": _notes(tally, figures),
    }
    return assess(view, measured, tally.missing_seeds)


def _seeds(view: EditionView, tally: Tally) -> list[dict[str, Any]]:
    missing = {parse_seed(seed.url).hash64 for seed in tally.missing_seeds}
    found = []
    for seed in view.seeds:
        # A seed of an earlier year may be invalid today.
        with suppress(UrlRefused):
            is_captured = parse_seed(seed).hash64 not in missing
            found.append({"url": seed, "captured": is_captured, "gaps": tally.gaps_of(seed)})
    return found


def assess(view: EditionView, measured: Mapping[str, Any], missing: Sequence[MissingSeed]) -> dict[str, Any]:
    """Return the figures with the edition's status: its shards, missing seeds, and readiness.

    `missing` are all of them; the current state of the shards decides which are accepted. A report shows the first
    ones.
    """
    intended = seeds_of(view)
    seeds = []
    for seed in missing:
        known = intended.get(parse_seed(seed.url).hash64)
        seeds.append(seed if known is None else seed._replace(url=known.url, accepted=known.is_accepted))
    blocking = sum(not seed.accepted for seed in seeds)
    counts = {
        **measured["counts"],
        "missing_seeds": len(seeds),
        "blocking_seeds": blocking,
        **shard_counts(view.shards),
    }
    ready = judge(
        [shard.state for shard in view.shards],
        captured=counts["captured_urls"],
        missing_seeds=blocking,
        seeds=len(intended),
    )
    outcomes = {shard["jobId"]: shard["outcomes"] for shard in measured["shards"]}
    readiness = ready.as_object()
    return {
        # Given twice: first for the order in the file, then to override an older report's values.
        **{name: measured[name] for name in _HEAD},
        **readiness,
        **measured,
        **readiness,
        "counts": counts,
        # The ledger has the whole list; a source with 10,000 seeds must not make the report unreadable.
        "missing_seeds": [seed._asdict() for seed in seeds[:_SEEDS_SHOWN]],
        "shards": [
            {**encode(shard_record(shard)), "outcomes": outcomes.get(shard.job.id, {})} for shard in view.shards
        ],
    }


def shard_counts(shards: Iterable[Shard]) -> dict[str, int]:
    every = list(shards)
    return {
        "shards": len(every),
        "indexed_shards": sum(shard.status == INDEXED for shard in every),
        "needs_review_shards": sum(shard.state.needs_review for shard in every),
        "short_shards": sum(shard.state.falls_short for shard in every),
    }


def summary(view: EditionView, content: dict[str, Any]) -> dict[str, Any]:
    kept = ("outcomes", "origins", "fidelity_counts", "sitemaps", "unnamed", "artifacts", "notes", "standard")
    return {
        "seeds": list(view.seeds),
        "decisions": view.edition.coverage_summary.get("decisions", []),
        **{name: content[name] for name in kept},
        "reasons": content["reasons"][:SHOWN],
        "exclusion_rules": content["exclusion_rules"][:SHOWN],
        "missing_seeds": content["missing_seeds"][:SHOWN],
        "missing_seed_count": content["counts"]["missing_seeds"],
        # A missing seed counts as one gap even if nothing else in its area is missing, so that it gets its shard.
        "gaps": {seed["url"]: seed["gaps"] or 1 for seed in content["seeds"] if seed["gaps"] or not seed["captured"]},
    }


def _notes(tally: Tally, figures: Mapping[str, Any]) -> list[str]:
    notes = [
        "Intended are seeds, what sitemaps and feeds named, and links in scope; what pages embed is not counted.",
        "Links out of scope, traps and links beyond a limit have no row: exclusion_rules counts them.",
    ]
    over = sum(left["links"] for left in figures["exclusion_rules"] if left["rule"] == "over_limit:links")
    if over:
        notes.append(f"{over} links on very long pages were counted and not followed.")
    unread = {reason: count for reason, count in figures["sitemaps"].items() if reason not in _READ}
    if unread:
        notes.append(f"Sitemaps that could not be read, and may have named more: {unread}.")
    polled = tally.reasons[LedgerOutcome.NOT_REACHED.value, FEED_ITEM_POLLED]
    if polled:
        notes.append(f"{polled} addresses that feeds named were taken by polls alone, which are no part of an edition.")
    failed, waiting = figures["unnamed"]["failed"], figures["unnamed"]["not_reached"]
    if failed or waiting:
        notes.append(
            f"A crawler reported {failed} failures and {waiting} pages that it did not reach, without naming them: "
            "they are not in the ledger."
        )
    return notes


# A missing sitemap at the usual path hides no pages.
_READ = ("ok", "ambiguous_length", "unchanged", "not_modified", "http_404", "http_410", "redirected")


_TOP = 40
# Titles, URLs and error messages come from the web: none may add a table, link or markup to the report.
_PLAIN = str.maketrans({"|": "\\|", "\n": " ", "\r": " ", "<": "&lt;", "`": "'", "[": "\\[", "*": "\\*", "_": "\\_"})


def report_text(content: Mapping[str, Any]) -> str:
    counts = content["counts"]
    lines = [
        f"# {_text(content['source_name'])}, {content['year']}",
        "",
        f"Status: **{content['status']}**. Ready for search: {_yes(content['search_ready'])}. "
        f"Ready for research: {_yes(content['research_ready'])}. Written {content['generated_at']}.",
        "",
        *_table(("figure", "count"), [(name.replace("_", " "), count) for name, count in counts.items()]),
        *_part("Outcomes", ("outcome", "URLs"), content["outcomes"].items()),
        *_part("Where they were named", ("origin", "URLs"), content["origins"].items()),
        *_part(
            "Reasons",
            ("outcome", "reason", "URLs"),
            [(one["outcome"], one["reason"], one["count"]) for one in content["reasons"]],
        ),
        *_part(
            "Seeds that are missing",
            ("seed", "outcome", "reason", "accepted"),
            [(one["url"], one["outcome"], one["reason"], _yes(one["accepted"])) for one in content["missing_seeds"]],
        ),
        *_part(
            "Shards",
            ("job", "shard", "kind", "status", "ended", "acceptance", "backend", "reason"),
            [
                (
                    one["jobId"],
                    one["shardKey"],
                    one["shardKind"],
                    one["status"],
                    _ended(one),
                    one["acceptanceState"],
                    one["captureBackend"],
                    one["acceptanceReason"] or "",
                )
                for one in content["shards"]
            ],
        ),
        *_part(
            "Links left out, by rule",
            ("rule", "links", "hosts"),
            [(one["rule"], one["links"], one["hosts"]) for one in content["exclusion_rules"]],
        ),
        *_part("Sitemaps", ("ended as", "sitemaps"), content["sitemaps"].items()),
        *_part(
            "Files",
            ("file", "rows", "bytes", "SHA-256"),
            [(one["file"], one["rows"], one["bytes"], one["sha256"]) for one in content["artifacts"].values()],
        ),
        "",
        "## Notes",
        "",
        *(f"- {_text(note)}" for note in content["notes"]),
        "",
    ]
    return "\n".join(lines)


def _ended(shard: Mapping[str, Any]) -> str:
    shortfalls = ", ".join(f"{word} {count}" for word, count in (shard.get("shortfalls") or {}).items())
    return f"{shard.get('ended') or ''} ({shortfalls})" if shortfalls else str(shard.get("ended") or "")


def comparison_text(content: Mapping[str, Any]) -> str:
    earlier, later = content["earlier"], content["later"]
    lines = [
        f"# {_text(content['source_name'])}, {earlier['year']} to {later['year']}",
        "",
        f"Written {content['generated_at']}. {content['pages']:,} pages.",
        "",
        *_table(("what became of it", "pages"), list(content["counts"].items())),
        "",
        *(
            f"- {one['year']}: " + (f"frozen as `{one['frozen_digest']}`" if one["frozen_digest"] else "not frozen")
            for one in (earlier, later)
        ),
    ]
    for kind, urls in content["examples"].items():
        lines += ["", f"## Some that are {kind}", "", *(f"- {_text(url)}" for url in urls)]
    lines += _part(
        "Files",
        ("file", "rows", "bytes", "SHA-256"),
        [(one["file"], one["rows"], one["bytes"], one["sha256"]) for one in content["artifacts"].values()],
    )
    return "\n".join([*lines, ""])


def _part(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    every = list(rows)
    if not every:
        return []
    more = [f"\n{len(every) - _TOP} more stand in the JSON."] if len(every) > _TOP else []
    return ["", f"## {title}", "", *_table(head, every[:_TOP]), *more]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    every = [list(row) for row in rows]
    marks = ["---:" if every and isinstance(every[0][at], int) else "---" for at in range(len(head))]
    made = [f"| {' | '.join(head)} |", f"|{'|'.join(marks)}|"]
    return made + [f"| {' | '.join(_text(cell) for cell in row)} |" for row in every]


def _text(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "".join(c if c.isprintable() else " " for c in str(value)).translate(_PLAIN)[:400]


def _yes(value: bool) -> str:
    return "yes" if value else "no"
