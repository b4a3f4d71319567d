"""Writes what became of a source from one year's edition to another's: figures, every page, and a text for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.editions import artefacts
from holdfast.editions.artefacts import Draft, Written, csv_line
from holdfast.editions.comparing import WITHDRAWN, Difference, compare, counted, pages_of
from holdfast.editions.markdown import comparison_text
from holdfast.editions.volume import Volume, read_volume
from holdfast.errors import Invalid

KINDS = ("new", "gone", "changed", "unchanged", "moved", "error", WITHDRAWN)
_EXAMPLES = 20


class Comparison(NamedTuple):
    """A comparison that was written."""

    content: dict[str, Any]
    folder: Path
    stem: str


def comparison_stem(earlier_year: int) -> str:
    """Return what the files of a comparison with this year are called, in the later edition's folder."""
    return f"comparison-{earlier_year}"


def write_comparison(database: Database, home: Path, clock: Clock, earlier_id: int, later_id: int) -> Comparison:
    """Compare two editions of one source and write the result beside the later one; Invalid if they cannot be compared.

    EditionNotFound; EditionNotReady if a report or a frozen list is gone, FrozenListDamaged; EditionBusy, NoSpace.
    """
    with database.read() as session:
        earlier, later = read_volume(session, earlier_id), read_volume(session, later_id)
    if earlier.source.id != later.source.id or earlier.edition.year >= later.edition.year:
        raise Invalid("name two editions of one source, the earlier year first")
    folder = artefacts.edition_folder(home, later.source.code, later.edition.year)
    stem = comparison_stem(earlier.edition.year)
    with artefacts.draft(folder) as made:
        before = pages_of(database, home, earlier, made.scratch)
        now = pages_of(database, home, later, made.scratch)
        counts: Counter[str] = Counter()
        examples: dict[str, list[str]] = {}
        found = _sampled(counted(compare(before, now, made.scratch), counts), examples)
        lines, table = _write_pages(made, stem, found)
        content = _content(earlier, later, counts, (lines, table))
        content |= {"generated_at": clock.now().isoformat().replace("+00:00", "Z"), "examples": examples}
        text = made.whole(f"{stem}.md", comparison_text(content).encode())
        whole = made.whole(f"{stem}.json", json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")
        made.publish(lines, table, text, whole)
    return Comparison(content, folder, stem)


def _sampled(differences: Iterable[Difference], examples: dict[str, list[str]]) -> Iterable[Difference]:
    for difference in differences:
        if difference.url is not None and difference.kind != "unchanged":
            some = examples.setdefault(difference.kind, [])
            if len(some) < _EXAMPLES:
                some.append(difference.url)
        yield difference


def _write_pages(made: Draft, stem: str, differences: Iterable[Difference]) -> tuple[Written, Written]:
    with made.sheet(f"{stem}.jsonl") as lines, made.sheet(f"{stem}.csv") as table:
        table.write(csv_line(Difference._fields))
        for difference in differences:
            told = {name: value for name, value in difference._asdict().items() if value is not None}
            lines.line(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            table.line(csv_line(difference))
        return lines.close(), table.close()


def _content(earlier: Volume, later: Volume, counts: Counter[str], files: Iterable[Written]) -> dict[str, Any]:
    return {
        "source": later.source.code, "source_name": later.source.name, "earlier": _edition(earlier),
        "later": _edition(later), "counts": {kind: counts[kind] for kind in KINDS}, "pages": counts.total(),
        "artifacts": {file.name: file.described() for file in files},
    }  # fmt: skip


def _edition(volume: Volume) -> dict[str, Any]:
    row = volume.edition
    return {
        "edition_id": row.id, "year": row.year, "status": row.status, "frozen_digest": row.frozen_digest,
        "frozen_at": row.frozen_at.isoformat() if row.frozen_at else None,
    }  # fmt: skip
