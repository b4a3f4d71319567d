"""A report for people: the content of coverage-report.json as Markdown. Words from the web cannot break its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_TOP = 40
_PLAIN = str.maketrans({"|": "\\|", "\n": " ", "\r": " ", "<": "&lt;", "`": "'", "[": "\\[", "*": "\\*", "_": "\\_"})


def report_text(content: Mapping[str, Any]) -> str:
    """Return the report of an edition as Markdown."""
    counts = content["counts"]
    lines = [
        f"# {_text(content['source_name'])}, {content['year']}",
        "",
        f"Status: **{content['status']}**. Ready for search: {_yes(content['search_ready'])}. "
        f"Ready for research: {_yes(content['research_ready'])}. Written {content['generated_at']}.",
        "",
        *_table(("figure", "count"), [(name.replace("_", " "), count) for name, count in counts.items()]),
        *_part("Outcomes", ("outcome", "URLs"), content["outcomes"].items()),
        *_part("How they came to be meant", ("origin", "URLs"), content["origins"].items()),
        *_part("Reasons", ("outcome", "reason", "URLs"),
               [(one["outcome"], one["reason"], one["count"]) for one in content["reasons"]]),
        *_part("Seeds that are missing", ("seed", "outcome", "reason", "accepted"),
               [(one["url"], one["outcome"], one["reason"], _yes(one["accepted"]))
                for one in content["missing_seeds"]]),
        *_part("Shards", ("job", "shard", "kind", "status", "ended", "acceptance", "backend", "reason"),
               [(one["jobId"], one["shardKey"], one["shardKind"], one["status"], _ended(one), one["acceptanceState"],
                 one["captureBackend"], one["acceptanceReason"] or "") for one in content["shards"]]),
        *_part("Links left out, by rule", ("rule", "links", "hosts"),
               [(one["rule"], one["links"], one["hosts"]) for one in content["exclusion_rules"]]),
        *_part("Sitemaps", ("ended as", "sitemaps"), content["sitemaps"].items()),
        *_part("Files", ("file", "rows", "bytes", "SHA-256"),
               [(one["file"], one["rows"], one["bytes"], one["sha256"]) for one in content["artifacts"].values()]),
        "", "## Notes", "", *(f"- {_text(note)}" for note in content["notes"]), "",
    ]  # fmt: skip
    return "\n".join(lines)


def _ended(shard: Mapping[str, Any]) -> str:
    """Return how the last run of a shard ended, with what it fell short of."""
    told = ", ".join(f"{word} {count}" for word, count in (shard.get("shortfalls") or {}).items())
    return f"{shard.get('ended') or ''} ({told})" if told else str(shard.get("ended") or "")


def comparison_text(content: Mapping[str, Any]) -> str:
    """Return what became of a source between two editions as Markdown."""
    earlier, later = content["earlier"], content["later"]
    lines = [
        f"# {_text(content['source_name'])}, {earlier['year']} to {later['year']}",
        "",
        f"Written {content['generated_at']}. {content['pages']:,} pages.",
        "",
        *_table(("what became of it", "pages"), list(content["counts"].items())),
        "",
        *(f"- {one['year']}: " + (f"frozen as `{one['frozen_digest']}`" if one["frozen_digest"] else "not frozen")
          for one in (earlier, later)),
    ]  # fmt: skip
    for kind, urls in content["examples"].items():
        lines += ["", f"## Some that are {kind}", "", *(f"- {_text(url)}" for url in urls)]
    lines += _part("Files", ("file", "rows", "bytes", "SHA-256"),
                   [(one["file"], one["rows"], one["bytes"], one["sha256"])
                    for one in content["artifacts"].values()])  # fmt: skip
    return "\n".join([*lines, ""])


def _part(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    every = list(rows)
    if not every:
        return []
    more = [f"\n{len(every) - _TOP} more stand in the JSON."] if len(every) > _TOP else []
    return ["", f"## {title}", "", *_table(head, every[:_TOP]), *more]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return a table; figures are at the right."""
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
