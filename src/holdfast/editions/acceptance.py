"""A gap that somebody accepts, with a reason: the shard no longer blocks its edition, and the report says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast import audit, log
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.editions.artefacts import LEDGER, REPORT_JSON, draft, edition_folder
from holdfast.editions.composition import assess
from holdfast.editions.ledger.tally import MissingSeed, missing_seeds
from holdfast.editions.readiness import Acceptance
from holdfast.editions.records import forget_report, record_standing
from holdfast.editions.refusals import ShardNotFound
from holdfast.editions.report import rewrite_report
from holdfast.editions.volume import Volume, read_volume
from holdfast.errors import Invalid, NoSpace
from holdfast.jobs.shards import queries as shards

LEAST_CHARS, MOST_CHARS = 3, 2000
_log = log.get()


def accept_gap(
    database: Database, home: Path, clock: Clock, *, job_id: int, reason: str, apply: bool = True
) -> Volume:  # fmt: skip
    """Accept what a shard did not bring; return its edition as it stands then, or would stand without `apply`.

    Invalid without a reason of at least three characters, ShardNotFound if the job is no part of an edition,
    EditionBusy while its report is written: then nothing is changed. What was measured stays; a worker measures anew.
    """
    said = " ".join(reason.split())
    if not LEAST_CHARS <= len(said) <= MOST_CHARS:
        raise Invalid(f"say why, in {LEAST_CHARS} to {MOST_CHARS} characters; it stands in the report for ever")
    known = _edition_of(database, job_id)
    folder = edition_folder(home, known.source.code, known.edition.year)
    with draft(folder) as made:
        written = read_report(folder) if known.edition.generated_at is not None else None
        volume, content = _accept(database, clock, job_id, said, written, apply=apply)
        if not apply:
            return volume
        if content is not None:
            try:
                rewrite_report(made, content)
            except (NoSpace, OSError) as exc:  # it is decided; a worker sees that and writes the report
                _log.warning("edition.report_not_rewritten", job_id=job_id, message=str(exc))
    with database.read() as session:
        return read_volume(session, known.edition.id)


def _edition_of(database: Database, job_id: int) -> Volume:
    with database.read() as session:
        edition_id = shards.edition_of(session, job_id) if 0 <= job_id < 1 << 63 else None
        if edition_id is None:
            raise ShardNotFound(job_id)
        return read_volume(session, edition_id)


_Written = tuple[dict[str, Any], list[MissingSeed]]
"""A report, and all seeds that its ledger has as missing."""


def _accept(
    database: Database, clock: Clock, job_id: int, said: str, written: _Written | None, *, apply: bool
) -> tuple[Volume, dict[str, Any] | None]:
    """Write down what is decided, or undo that; return the edition, and its report as it reads now if there is one."""
    now = clock.now()
    with database.write() as session:
        job = shards.job_of_edition(session, job_id)
        if job is None or job.edition_id is None:
            raise ShardNotFound(job_id)
        state = Acceptance.ACCEPTED_GAP.value
        told = {"state": state, "reason": said, "accepted_at": now.isoformat(), "accepted_by": audit.actor()}
        shards.mark(job, state, now=now, details={"operator_acceptance": told})
        audit.record(session, clock, action="edition.gap_accepted", subject=f"job {job_id}", detail={"reason": said})
        session.flush()
        volume = read_volume(session, job.edition_id)
        content = None if written is None else assess(volume, *written)
        if content is None:
            forget_report(session, volume, now=now)
        else:
            record_standing(session, volume, content, now=now)
        if not apply:
            session.flush()
            session.expunge_all()  # what was thought through stays readable
            session.rollback()
        return volume, content


def read_report(folder: Path) -> _Written | None:
    """Return the report of an edition as it was written last, with its missing seeds; None if it cannot be read."""
    try:
        content = json.loads((folder / REPORT_JSON).read_bytes())
        with (folder / LEDGER).open("rb") as lines:
            missing = missing_seeds(lines)
        is_whole = content["counts"]["missing_seeds"] == len(missing) and isinstance(content["shards"], list)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (content, missing) if is_whole else None
