"""Writes the account of an edition: the ledger, the manifest of captures, and the report that sums them up.

Stages, all of them while nobody else writes the edition's files: read the edition; sort what its executions know by
address; unite it, one row each; write ledger and table while counting; write the manifest; count the written file again
and refuse what does not add up; put all files in place; bring the row up to them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.editions import artefacts, queries
from holdfast.editions.artefacts import Draft, Written, csv_line
from holdfast.editions.captured import captures_of
from holdfast.editions.composition import Figures, assess, compose, summary
from holdfast.editions.ledger.reading import seeds_of, sightings
from holdfast.editions.ledger.rows import CSV_COLUMNS, Row, as_cells, as_object, pack, unite
from holdfast.editions.ledger.tally import Tally
from holdfast.editions.markdown import report_text
from holdfast.editions.queries import CaptureRow
from holdfast.editions.records import record_report
from holdfast.editions.volume import Shard, Volume, read_volume
from holdfast.sorting import sorted_lines

Tell = Callable[[int], None]
"""Hears how many rows were read so far; it may raise to break off, and then nothing was written."""


class Report(NamedTuple):
    """A report that was written."""

    volume: Volume
    content: dict[str, Any]
    folder: Path


def write_report(
    database: Database, home: Path, clock: Clock, edition_id: int, *, tell: Tell = lambda _count: None,
    apply: bool = True,
) -> Report:  # fmt: skip
    """Write the files of an edition and bring its row up to date; without `apply` only return what they would say.

    EditionNotFound; LedgerUnbalanced if the rows do not add up, EditionBusy, NoSpace: then nothing is changed.
    """
    with database.read() as session:
        known = read_volume(session, edition_id)
    folder = artefacts.edition_folder(home, known.source.code, known.edition.year)
    with artefacts.draft(folder) as made:
        now = clock.now()
        with database.read() as session:
            volume = read_volume(session, edition_id)
        tally = Tally([(page, seed.url) for page, seed in seeds_of(volume).items()])
        lines = (pack(one) for one in sightings(database, volume, now=now, tell=tell))
        ledger, table = _write_ledger(made, unite(sorted_lines(lines, made.scratch)), tally)
        manifest = _write_manifest(database, made, volume)
        tally.check(written=ledger.rows, recounted=_recount(made.scratch / ledger.name))
        figures = _figures(database, volume, tally)
        content = compose(volume, figures, [ledger, manifest, table], now=now)
        if not apply:
            return Report(volume, content, folder)
        report = made.whole(artefacts.REPORT_JSON, _json(content))
        text = made.whole(artefacts.REPORT_MD, report_text(content).encode("utf-8", "replace"))
        made.publish(ledger, manifest, table, text, report)
        with database.write() as session:
            # Shards may have been added or decided about meanwhile: the row says how the edition stands now.
            volume = read_volume(session, edition_id)
            standing = assess(volume, content, tally.missing_seeds)
            record_report(session, volume, standing, summary(volume, standing), now=now)
    return Report(volume, content, folder)


def rewrite_report(made: Draft, content: dict[str, Any]) -> None:
    """Write the report again with other words about its shards; the ledger stays as it is."""
    report = made.whole(artefacts.REPORT_JSON, _json(content))
    text = made.whole(artefacts.REPORT_MD, report_text(content).encode("utf-8", "replace"))
    made.publish(text, report)


def _write_ledger(made: Draft, rows: Iterable[Row], tally: Tally) -> tuple[Written, Written]:
    with made.sheet(artefacts.LEDGER) as ledger, made.sheet(artefacts.CSV) as table:
        table.write(csv_line(CSV_COLUMNS))
        for row in rows:
            tally.add(row)
            ledger.line(json.dumps(as_object(row), ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            table.line(csv_line(as_cells(row)))
        return ledger.close(), table.close()


def _recount(path: Path) -> Counter[str]:
    """Return how many lines of a ledger have each outcome, from the file itself."""
    with path.open("rb") as file:
        return Counter(json.loads(line)["outcome"] for line in file)


def _write_manifest(database: Database, made: Draft, volume: Volume) -> Written:
    with made.sheet(artefacts.MANIFEST) as manifest:
        for shard, row in captures_of(database, volume):
            content = json.dumps(_manifest_row(volume, shard, row), ensure_ascii=False)
            manifest.line(content.encode("utf-8", "replace") + b"\n")
        return manifest.close()


def _manifest_row(volume: Volume, shard: Shard, row: CaptureRow) -> dict[str, Any]:
    if row.withdrawn:
        return {"snapshot_id": row.id, "job_id": shard.job_id, "withdrawn": True}
    path = row.warc_path
    if path is not None and PurePath(path).is_absolute():
        path = PurePath(path).name
    return {
        "snapshot_id": row.id, "url": row.url, "job_id": shard.job_id, "execution_id": row.execution_id,
        "capture_timestamp": row.captured_at.isoformat().replace("+00:00", "Z"), "status_code": row.status,
        "warc_path": path, "warc_record_id": row.record_id and f"<urn:uuid:{row.record_id}>",
        "payload_digest": row.payload_digest, "backend": row.backend, "fidelity": row.fidelity,
        "provenance": {
            "job_id": shard.job_id, "job_name": shard.name, "edition_id": volume.edition.id, "shard_key": shard.key,
            "shard_kind": shard.kind,
        },
    }  # fmt: skip


def _figures(database: Database, volume: Volume, tally: Tally) -> Figures:
    """Return what the report says besides the ledger: what was left out without a row, and what was told in numbers."""
    runs = volume.runs
    ids = [run.id for _, run in runs]
    with database.read() as session:
        left_out = queries.links_left_out(session, ids) if ids else []
        sitemaps = queries.sitemaps(session, ids) if ids else {}
        kept = queries.with_frontier(session, ids)
    newest = {shard.job_id: run for shard, run in runs if run.id not in kept}
    failed = sum(run.items_failed for run in newest.values())
    waiting = sum(max(0, run.items_total - run.items_crawled - run.items_failed) for run in newest.values())
    return Figures(tally=tally, left_out=left_out, sitemaps=sitemaps, unnamed_failed=failed, unnamed_waiting=waiting)


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
