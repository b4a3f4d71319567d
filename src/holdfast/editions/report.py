"""Writes the report of an edition: the ledger, the manifest of captures, and the report that summarizes them.

Stages, all while no other process writes the edition's files: read the edition; sort what its executions know
by address; merge it into one row each; write ledger and table while counting; write the manifest; count the
written file again and reject a mismatch; move all files into place; update the row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Edition, Source
from holdfast.editions import edition_files, queries
from holdfast.editions.composition import SHOWN, assess, compose, report_text, shard_counts, summary
from holdfast.editions.edition_files import LEDGER, REPORT_JSON, EditionDraft, WrittenFile, csv_line, utc_text
from holdfast.editions.edition_view import (
    Acceptance,
    EditionStatus,
    EditionView,
    Shard,
    captures_of,
    draft_of,
    judge,
    view_edition,
)
from holdfast.editions.ledger import (
    CSV_COLUMNS,
    MissingSeed,
    Row,
    Tally,
    as_cells,
    as_object,
    decided,
    missing_seeds,
    pack,
    unite,
)
from holdfast.editions.ledger_reading import seeds_of, sightings
from holdfast.editions.queries import CaptureRow
from holdfast.events import EventName, record_event
from holdfast.sorting import sorted_lines


def ensure_edition(session: Session, source: Source, year: int, *, seeds: tuple[str, ...], now: datetime) -> Edition:
    """Return the edition of a source and year, created if it is missing: planned, with its intended seeds."""
    found = queries.edition(session, source_id=source.id, year=year)
    if found is not None:
        return found
    made = Edition(
        source_id=source.id,
        year=year,
        status=EditionStatus.PLANNED.value,
        backend_counts={},
        coverage_summary={"seeds": list(seeds)},
        created_at=now,
    )
    return queries.insert_edition(session, made)


def record_report(
    session: Session, view: EditionView, content: dict[str, Any], summary: dict[str, Any], *, now: datetime
) -> None:
    """Update an edition's row from a report, and mark the shards that wait for an operator."""
    row, counts = queries.locked(session, view.edition.id), content["counts"]
    folder = f"editions/{view.source.code}/{row.year}"
    row.intended_url_count, row.captured_url_count = counts["intended_urls"], counts["captured_urls"]
    row.failed_url_count, row.missing_url_count = counts["failed_urls"], counts["missing_urls"]
    row.excluded_url_count, row.fallback_url_count = counts["excluded_urls"], counts["fallback_urls"]
    row.backend_counts, row.coverage_summary, row.generated_at = content["backend_counts"], summary, now
    row.target_ledger_path = f"{folder}/{edition_files.LEDGER}"
    row.capture_manifest_path = f"{folder}/{edition_files.MANIFEST}"
    row.coverage_report_json_path = f"{folder}/{edition_files.REPORT_JSON}"
    row.coverage_report_md_path = f"{folder}/{edition_files.REPORT_MD}"
    _write_readiness(row, content)
    mark_shards(session, view, now=now)
    newest = {shard.runs[-1].id: f"{folder}/{shard_report_name(shard.job.id)}" for shard in view.shards if shard.runs}
    queries.note_reports(session, newest)
    session.flush()
    payload = {"editionId": row.id, "source": view.source.code, "year": row.year, "status": content["status"]}
    payload |= {"intendedUrls": counts["intended_urls"], "capturedUrls": counts["captured_urls"]}
    record_event(session, EventName.EDITION_REPORTED, at=now, source_id=view.source.id, data=payload)


def record_readiness(session: Session, view: EditionView, content: dict[str, Any], *, now: datetime) -> None:
    """Update an edition's row from the decisions about its shards; measured figures stay."""
    row = queries.locked(session, view.edition.id)
    row.coverage_summary = {**row.coverage_summary, "missing_seeds": content["missing_seeds"][:SHOWN]}
    _write_readiness(row, content)
    mark_shards(session, view, now=now)


def record_plan(session: Session, view: EditionView, *, now: datetime) -> None:
    """Update the status of an edition without figures from its shards; a report is due."""
    row = queries.locked(session, view.edition.id)
    ready = judge([shard.state for shard in view.shards], captured=row.captured_url_count, missing_seeds=None)
    _write_readiness(row, {**ready.as_object(), "counts": shard_counts(view.shards)})
    mark_shards(session, view, now=now)


def forget_report(session: Session, view: EditionView, *, now: datetime) -> None:
    """Record that the files of a report are unreadable: the edition needs a new report."""
    queries.locked(session, view.edition.id).generated_at = None
    record_plan(session, view, now=now)


def _write_readiness(row: Edition, content: dict[str, Any]) -> None:
    counts = content["counts"]
    row.status, row.search_ready = content["status"], content["search_ready"]
    row.research_ready = content["research_ready"]
    row.shard_count, row.indexed_shard_count = counts["shards"], counts["indexed_shards"]
    row.needs_review_shard_count = counts["needs_review_shards"]


def mark_shards(session: Session, view: EditionView, *, now: datetime) -> None:
    """Store which shards need review; one that improved in a retry is pending again."""
    for shard in view.shards:
        wanted = (Acceptance.NEEDS_REVIEW if shard.state.needs_review else Acceptance.PENDING).value
        known = shard.job.acceptance_state
        # A report never changes an operator's decision, ...
        if shard.state.is_accepted or known == wanted:
            continue
        job = queries.job_of_edition(session, shard.job.id)
        # ... not even one made since the shards were read.
        if job is not None and job.acceptance_state == known:
            queries.mark_shard(job, wanted, now=now)


# Called with the number of rows read; if it raises, nothing is written.
OnRow = Callable[[int], None]


def write_report(
    database: Database,
    home: Path,
    clock: Clock,
    edition_id: int,
    *,
    on_row: OnRow = lambda _count: None,
    apply: bool = True,
) -> tuple[dict[str, Any], Path]:
    """Write the files of an edition and update its row; return the report and the folder of the files.

    Without `apply` nothing is written. Raise EditionNotFound; LedgerUnbalanced if the rows do not add up,
    EditionBusy, NoSpace: then nothing is changed.
    """
    # Take the time before reading the edition: a later change of a job makes the edition due for another report.
    now = clock.now()
    with draft_of(database, home, edition_id) as (made, view):
        tally = Tally([(page, seed.url) for page, seed in seeds_of(view).items()])
        lines = (pack(one) for one in sightings(database, view, now=now, on_row=on_row))
        decisions = view.decisions
        united = unite(sorted_lines(lines, made.scratch))
        rows = (decided(row, decisions.get(row.seen.url_hash)) for row in united) if decisions else united
        ledger, table = _write_ledger(made, rows, tally)
        manifest = _write_manifest(database, made, view)
        # Check the file itself, not the rows to write: this reveals a full disk or a bug of the sort.
        with (made.scratch / ledger.name).open("rb") as file:
            recounted = Counter(json.loads(line)["outcome"] for line in file)
        tally.check(written=ledger.rows, recounted=recounted)
        content = compose(view, tally, _figures(database, view), [ledger, manifest, table], now=now)
        if not apply:
            # A dry run does all the work, so it fails whenever the real one would.
            return content, made.folder
        made.publish(ledger, manifest, table, *_report_files(made, content))
        with database.write() as session:
            # Shards may have changed meanwhile: the row needs the edition's current state.
            view = view_edition(session, edition_id)
            assessed = assess(view, content, tally.missing_seeds)
            record_report(session, view, assessed, summary(view, assessed), now=now)
    return content, made.folder


def rewrite_report(made: EditionDraft, content: dict[str, Any]) -> None:
    """Write the report again with changed shards; the ledger stays as it is."""
    made.publish(*_report_files(made, content))


def shard_report_name(job_id: int) -> str:
    return f"shard-{job_id}.json"


def _report_files(made: EditionDraft, content: dict[str, Any]) -> list[WrittenFile]:
    """Write the report as text, one file for each shard, and the report itself: last, because readers rely on it."""
    head = {name: content[name] for name in ("edition_id", "source", "year", "generated_at")}
    files = [made.whole(edition_files.REPORT_MD, report_text(content).encode("utf-8", "replace"))]
    files += [made.whole(shard_report_name(one["jobId"]), _json({**head, **one})) for one in content["shards"]]
    return [*files, made.whole(edition_files.REPORT_JSON, _json(content))]


def _write_ledger(made: EditionDraft, rows: Iterable[Row], tally: Tally) -> tuple[WrittenFile, WrittenFile]:
    with made.sheet(edition_files.LEDGER) as ledger, made.sheet(edition_files.CSV) as table:
        table.write(csv_line(CSV_COLUMNS))
        for row in rows:
            tally.add(row)
            ledger.line(json.dumps(as_object(row), ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            table.line(csv_line(as_cells(row)))
        return ledger.close(), table.close()


def _write_manifest(database: Database, made: EditionDraft, view: EditionView) -> WrittenFile:
    with made.sheet(edition_files.MANIFEST) as manifest:
        for shard, row in captures_of(database, view):
            content = json.dumps(_manifest_row(view, shard, row), ensure_ascii=False)
            manifest.line(content.encode("utf-8", "replace") + b"\n")
        return manifest.close()


def _manifest_row(view: EditionView, shard: Shard, row: CaptureRow) -> dict[str, Any]:
    if row.withdrawn:
        return {"snapshot_id": row.id, "job_id": shard.job.id, "withdrawn": True}
    path = row.warc_path
    if path is not None and PurePath(path).is_absolute():
        # Readers must not see paths outside the data directory; the file's name suffices.
        path = PurePath(path).name
    return {
        "snapshot_id": row.id,
        "url": row.url,
        "job_id": shard.job.id,
        "execution_id": row.execution_id,
        "capture_timestamp": utc_text(row.captured_at),
        "status_code": row.status,
        "warc_path": path,
        "warc_record_id": row.record_id and f"<urn:uuid:{row.record_id}>",
        "payload_digest": row.payload_digest,
        "backend": row.backend,
        "fidelity": row.fidelity,
        "provenance": {
            "job_id": shard.job.id,
            "job_name": shard.name,
            "edition_id": view.edition.id,
            "shard_key": shard.key,
            "shard_kind": shard.kind,
        },
    }


def _figures(database: Database, view: EditionView) -> dict[str, Any]:
    """Return the figures of a report that its ledger does not have."""
    runs = view.runs
    ids = [run.id for _, run in runs]
    with database.read() as session:
        left_out = queries.links_left_out(session, ids) if ids else []
        kept = queries.with_frontier(session, ids)
    with closing(connect(database.url)) as raw_db:
        sitemaps = queries.sitemaps(raw_db, ids)
    # A shard's last run has the figures of all: their sum would count a page for each retry.
    newest = {shard.job.id: run for shard, run in runs if run.id not in kept}
    failed = sum(run.items_failed for run in newest.values())
    waiting = sum(max(0, run.items_total - run.items_crawled - run.items_failed) for run in newest.values())
    return {
        "exclusion_rules": [left._asdict() for left in left_out],
        "sitemaps": dict(sorted(sitemaps.items())),
        # Another crawler reported only the numbers of these.
        "unnamed": {"failed": failed, "not_reached": waiting},
    }


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


# A report, and all seeds missing in its ledger.
StoredReport = tuple[dict[str, Any], list[MissingSeed]]


def read_report(folder: Path) -> StoredReport | None:
    """Return the latest report of an edition with its missing seeds; None if it cannot be read."""
    try:
        content = json.loads((folder / REPORT_JSON).read_bytes())
        with (folder / LEDGER).open("rb") as lines:
            missing = missing_seeds(lines)
        # Ledger and report are two files: a kill between two renames may leave them out of step.
        is_whole = content["counts"]["missing_seeds"] == len(missing) and isinstance(content["shards"], list)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (content, missing) if is_whole else None


_AT_REST = frozenset({"indexed", "failed", "index_failed", "cancelled"})


def due(session: Session, *, passed: Collection[int] = ()) -> list[int]:
    """Return the editions whose report is due, except those in `passed`; usually none.

    Usually one query: editions that wait for their date or are unchanged since their report are not loaded.
    """
    return [
        found
        for found in queries.unaccounted(session)
        if found not in passed and is_at_rest(view_edition(session, found))
    ]


def is_at_rest(view: EditionView) -> bool:
    """Return whether nothing will happen to an edition by itself."""
    return bool(view.shards) and all(shard.state.is_accepted or shard.status in _AT_REST for shard in view.shards)
