"""A gap that somebody accepts, with a reason: the shard no longer blocks its edition, and the report says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.editions.artefacts import REPORT_JSON, edition_folder
from holdfast.editions.composition import reassess
from holdfast.editions.records import record_plan, record_standing
from holdfast.editions.refusals import ShardNotFound
from holdfast.editions.report import rewrite_report
from holdfast.editions.volume import Volume, read_volume
from holdfast.errors import Invalid
from holdfast.jobs.shards import queries as shards

LEAST_CHARS, MOST_CHARS = 3, 2000
ACCEPTED_GAP = "accepted_gap"


def accept_gap(database: Database, home: Path, clock: Clock, *, job_id: int, reason: str) -> Volume:
    """Accept what a shard did not bring; return its edition as it stands then.

    Invalid without a reason of at least three characters, ShardNotFound if the job is no part of an edition. What was
    measured stays, so this is quick whatever the edition's size; the report is written again with the new standing.
    """
    said = " ".join(reason.split())
    if not LEAST_CHARS <= len(said) <= MOST_CHARS:
        raise Invalid(f"say why, in {LEAST_CHARS} to {MOST_CHARS} characters; it stands in the report for ever")
    now = clock.now()
    with database.write() as session:
        job = shards.job_of_edition(session, job_id) if 0 <= job_id < 1 << 63 else None
        if job is None or job.edition_id is None:
            raise ShardNotFound(job_id)
        told = {"state": ACCEPTED_GAP, "reason": said, "accepted_at": now.isoformat(), "accepted_by": audit.actor()}
        shards.mark(job, ACCEPTED_GAP, now=now, details={"operator_acceptance": told})
        audit.record(session, clock, action="edition.gap_accepted", subject=f"job {job_id}", detail={"reason": said})
        session.flush()
        volume = read_volume(session, job.edition_id)
        content = written_report(home, volume)
        if content is None:
            record_plan(session, volume, now=now)
        else:
            content = reassess(volume, content)
            record_standing(session, volume, content, now=now)
    if content is not None:
        rewrite_report(home, volume, content)
    with database.read() as session:
        return read_volume(session, volume.edition.id)


def written_report(home: Path, volume: Volume) -> dict[str, Any] | None:
    """Return the report of an edition as it was written last, or None if there is none that can be read."""
    if volume.edition.generated_at is None:
        return None
    path = edition_folder(home, volume.source.code, volume.edition.year) / REPORT_JSON
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
