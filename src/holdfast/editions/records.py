"""What is written to the rows of an edition and its shards: made, measured, accepted, frozen."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from holdfast.db.models import Edition, Source
from holdfast.editions import artefacts, queries
from holdfast.editions.composition import SHOWN, shard_counts
from holdfast.editions.readiness import Acceptance, Status, judge
from holdfast.editions.volume import Volume
from holdfast.jobs.shards import queries as shards


def ensure_edition(session: Session, source: Source, year: int, *, seeds: tuple[str, ...], now: datetime) -> Edition:
    """Return the edition of a source and a year, made if it is new: planned, with the seeds that are meant."""
    found = queries.edition(session, source_id=source.id, year=year)
    if found is not None:
        return found
    made = Edition(source_id=source.id, year=year, status=Status.PLANNED.value, backend_counts={},
                   coverage_summary={"seeds": list(seeds)}, created_at=now)  # fmt: skip
    return queries.insert_edition(session, made)


def record_report(
    session: Session, volume: Volume, content: dict[str, Any], summary: dict[str, Any], *, now: datetime
) -> None:
    """Bring an edition's row up to a report, and mark the shards that wait for somebody."""
    row, counts = queries.locked(session, volume.edition.id), content["counts"]
    folder = f"editions/{volume.source.code}/{row.year}"
    row.intended_url_count, row.captured_url_count = counts["intended_urls"], counts["captured_urls"]
    row.failed_url_count, row.missing_url_count = counts["failed_urls"], counts["missing_urls"]
    row.excluded_url_count, row.fallback_url_count = counts["excluded_urls"], counts["fallback_urls"]
    row.backend_counts, row.coverage_summary, row.generated_at = content["backend_counts"], summary, now
    row.target_ledger_path = f"{folder}/{artefacts.LEDGER}"
    row.capture_manifest_path = f"{folder}/{artefacts.MANIFEST}"
    row.coverage_report_json_path = f"{folder}/{artefacts.REPORT_JSON}"
    row.coverage_report_md_path = f"{folder}/{artefacts.REPORT_MD}"
    _stand(row, content)
    mark_shards(session, volume, now=now)


def record_standing(session: Session, volume: Volume, content: dict[str, Any], *, now: datetime) -> None:
    """Bring an edition's row up to what is decided about its shards; what was measured stays."""
    row = queries.locked(session, volume.edition.id)
    row.coverage_summary = {**row.coverage_summary, "missing_seeds": content["missing_seeds"][:SHOWN]}
    _stand(row, content)
    mark_shards(session, volume, now=now)


def record_plan(session: Session, volume: Volume, *, now: datetime) -> None:
    """Bring the status of an edition whose measure is not known up to its shards; a report is to be written."""
    row = queries.locked(session, volume.edition.id)
    ready = judge([shard.state for shard in volume.shards], captured=row.captured_url_count, missing_seeds=None)
    _stand(row, {**ready.as_object(), "counts": shard_counts(volume.shards)})
    mark_shards(session, volume, now=now)


def forget_report(session: Session, volume: Volume, *, now: datetime) -> None:
    """Take note that the files of a report cannot be read any more: the edition is to be accounted for anew."""
    queries.locked(session, volume.edition.id).generated_at = None
    record_plan(session, volume, now=now)


def _stand(row: Edition, content: dict[str, Any]) -> None:
    counts = content["counts"]
    row.status, row.search_ready = content["status"], content["search_ready"]
    row.research_ready = content["research_ready"]
    row.shard_count, row.indexed_shard_count = counts["shards"], counts["indexed_shards"]
    row.needs_review_shard_count = counts["needs_review_shards"]


def mark_shards(session: Session, volume: Volume, *, now: datetime) -> None:
    """Write which shards need review; one that was tried again and got better is pending again."""
    for shard in volume.shards:
        wanted = (Acceptance.NEEDS_REVIEW if shard.state.needs_review else Acceptance.PENDING).value
        if shard.state.is_accepted or shard.acceptance == wanted:
            continue
        job = shards.job_of_edition(session, shard.job_id)
        if job is not None and job.acceptance_state == shard.acceptance:
            shards.mark(job, wanted, now=now)
