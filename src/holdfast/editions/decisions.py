"""Operators' decisions about shards and single addresses of an edition: accepted, excluded, or pending again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import cast

from sqlalchemy.orm import Session

from holdfast import audit, log
from holdfast.clock import Clock
from holdfast.db.audit_events import AuditAction, acting_user
from holdfast.db.engine import Database
from holdfast.editions import queries
from holdfast.editions.composition import assess
from holdfast.editions.edition_view import Acceptance, EditionView, PageDecision, draft_of, view_edition
from holdfast.editions.ledger_reading import is_in_edition
from holdfast.editions.report import forget_report, read_report, record_readiness, rewrite_report
from holdfast.errors import Invalid, NoSpace, NotFound
from holdfast.urls import parse_seed

_log = log.get()
LEAST_CHARS, MOST_CHARS = 3, 2000
_MOST_DECISIONS = 1000
# Writes a decision in the transaction that updates the edition.
_Write = Callable[[Session, datetime], None]


class ShardNotFound(NotFound):
    """The job does not belong to an edition."""

    code = "shard_not_found"

    def __init__(self, job_id: int) -> None:
        super().__init__(f"job {job_id} is no part of an edition; see them with: holdfast edition show")


def _checked(reason: str) -> str:
    """Return a reason with whitespace collapsed; raise Invalid unless it has at least three characters."""
    reason = " ".join(reason.split())
    if not LEAST_CHARS <= len(reason) <= MOST_CHARS:
        raise Invalid(f"give a reason of {LEAST_CHARS} to {MOST_CHARS} characters; the report shows it")
    return reason


class EditionDecisions:
    """Writes decisions. Raises EditionBusy, changing nothing, while a report of the edition is being written.

    The state `pending` undoes an earlier decision; `accepted_gap` is for shards only. Without `apply` nothing is
    written, and the edition is returned as it would be.
    """

    def __init__(self, database: Database, home: Path, clock: Clock) -> None:
        self._database, self._home, self._clock = database, home, clock

    def decide_shard(self, job_id: int, state: Acceptance, reason: str, *, apply: bool = True) -> EditionView:
        """Decide about a shard and return its edition; raise ShardNotFound if the job belongs to none.

        The figures stay until a worker measures again.
        """
        reason = _checked(reason)
        with self._database.read() as session:
            edition_id = queries.edition_of_job(session, job_id) if 0 <= job_id < 1 << 63 else None
        if edition_id is None:
            raise ShardNotFound(job_id)

        def write(session: Session, now: datetime) -> None:
            job = queries.job_of_edition(session, job_id)
            if job is None:
                raise ShardNotFound(job_id)
            made = {"state": state, "reason": reason, "accepted_at": now.isoformat(), "accepted_by": acting_user()}
            kept = None if state is Acceptance.PENDING else made
            queries.mark_shard(job, state.value, now=now, details={"operator_acceptance": kept})
            word = "gap_accepted" if state is Acceptance.ACCEPTED_GAP else f"shard_{state}"
            action = cast(AuditAction, f"edition.{word}")
            audit.record(session, self._clock, action=action, subject=f"job {job_id}", detail={"reason": reason})

        return self._decide(edition_id, write, is_outdated=False, apply=apply)

    def decide_page(
        self, edition_id: int, url: str, state: Acceptance, reason: str, *, apply: bool = True
    ) -> EditionView:
        """Decide about one address and return the edition; raise EditionNotFound, UrlRefused, or Invalid if unknown.

        The present report is outdated then: the next one has the decision in its ledger.
        """
        reason = _checked(reason)
        address = parse_seed(url)
        with self._database.read() as session:
            view = view_edition(session, edition_id)
            # An earlier decision can be undone, even if its URL has left the edition.
            is_known = address.hash64 in view.decisions or is_in_edition(session, view, address, now=self._clock.now())
        if not is_known:
            label = f"{view.source.code} {view.edition.year}"
            raise Invalid(f"url: {address.fetch} is not an address of {label}; see its ledger", field="url")

        def write(session: Session, now: datetime) -> None:
            row = queries.locked(session, edition_id)
            kept = [one for one in row.coverage_summary.get("decisions", ()) if one["url"] != address.fetch]
            if state is not Acceptance.PENDING:
                kept.append(PageDecision(address.fetch, state, reason, now.isoformat(), acting_user())._asdict())
            if len(kept) > _MOST_DECISIONS:
                raise Invalid(
                    f"an edition keeps {_MOST_DECISIONS} decisions about addresses; exclude them in its source"
                )
            row.coverage_summary = {**row.coverage_summary, "decisions": kept}
            action, subject = cast(AuditAction, f"edition.page_{state}"), f"edition {edition_id}"
            detail = {"url": address.fetch, "reason": reason}
            audit.record(session, self._clock, action=action, subject=subject, detail=detail)

        return self._decide(edition_id, write, is_outdated=True, apply=apply)

    def _decide(self, edition_id: int, write: _Write, *, is_outdated: bool, apply: bool) -> EditionView:
        with draft_of(self._database, self._home, edition_id) as (made, known):
            is_readable = known.edition.generated_at is not None and not is_outdated
            written = read_report(made.folder) if is_readable else None
            now = self._clock.now()
            with self._database.write() as session:
                write(session, now)
                session.flush()
                view = view_edition(session, edition_id)
                content = None if written is None else assess(view, *written)
                if content is None:
                    forget_report(session, view, now=now)
                else:
                    record_readiness(session, view, content, now=now)
                if not apply:
                    session.flush()
                    # Detach the objects before the rollback empties them: the dry run shows them.
                    session.expunge_all()
                    session.rollback()
                    return view
            if content is not None:
                try:
                    rewrite_report(made, content)
                # The decision is committed; a worker finds the edition changed and writes the report.
                except (NoSpace, OSError) as exc:
                    _log.warning("edition.report_not_rewritten", edition_id=edition_id, message=str(exc))
        with self._database.read() as session:
            return view_edition(session, edition_id)
