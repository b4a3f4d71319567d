"""The job that polls a source's feeds: there while the source wants them, gone when it does not (decision 0017)."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import FeedSettings
from holdfast.db.engine import Database
from holdfast.db.models import Job, Source
from holdfast.errors import Conflict, Invalid
from holdfast.jobs.board import queries
from holdfast.jobs.board.board import Board
from holdfast.jobs.moves import state_of
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.states import Action, State
from holdfast.sources.queries import source_by_id, with_feeds
from holdfast.sources.registry import config_of

_log = log.get()
_RETRIES = 100
"""A run that fails is tried again for days: what feeds answer is no failure of the run, so only we are at fault."""


class Followed(StrEnum):
    """What became of a source's feed job."""

    MADE = "made"
    CHANGED = "changed"
    REMOVED = "removed"
    AS_IT_WAS = "as_it_was"


def follow_feeds(session: Session, board: Board, source: Source, settings: FeedSettings) -> Followed:
    """Bring a source's feed job in line with its configuration: one if feeds are on, none if they are off.

    One that runs is left alone until it has ended. Invalid if the source cannot be crawled as it is.
    """
    queries.locked_source(session, source.id)  # before its jobs, as everywhere (decision 0012)
    job = feed_job(session, source_id=source.id)
    if not (settings.poll and config_of(source).feeds):
        if job is None or state_of(job) is State.RUNNING:
            return Followed.AS_IT_WAS
        board.delete(session, job.id)
        return Followed.REMOVED
    if job is not None and job.interval_minutes == settings.interval_minutes and job.interval_type == "minutes":
        return Followed.AS_IT_WAS
    spec = JobSpec(source_id=source.id, name=f"feeds of {source.code}", interval_minutes=settings.interval_minutes,
                   schedule_enabled=True, adaptive_scheduling=False, max_retries=_RETRIES)  # fmt: skip
    board.upsert(session, spec, kind=queries.FEED)
    return Followed.CHANGED if job is not None else Followed.MADE


def lagging(session: Session, settings: FeedSettings) -> list[int]:
    """Return the sources whose feed job is missing, is not wanted any more, or has another interval."""
    wanted = with_feeds(session) if settings.poll else set()
    there = queries.intervals_of_kind(session, kind=queries.FEED)
    right = {number for number, interval in there.items() if interval == (settings.interval_minutes, "minutes")}
    return sorted((wanted - right) | (there.keys() - wanted))


def follow_all(database: Database, board: Board, settings: FeedSettings) -> int:
    """Let all feed jobs follow their sources, each in a short transaction; return how many were made or removed."""
    with database.read() as session:
        behind = lagging(session, settings)
    count = 0
    for source_id in behind:
        try:
            with database.write() as session:
                source = source_by_id(session, source_id)
                if source is not None:
                    count += follow_feeds(session, board, source, settings) is not Followed.AS_IT_WAS
        except (Invalid, Conflict) as exc:
            _log.warning("feed.job_refused", source=source_id, message=str(exc))
    return count


def feed_job(session: Session, *, source_id: int) -> Job | None:
    """Return the job that polls a source's feeds, locked; None if it has none."""
    return queries.crawl_job(session, source_id=source_id, kind=queries.FEED)


def run_soon(session: Session, clock: Clock, board: Board, source_id: int) -> str | None:
    """Let a source's feeds be polled at once; return the state of their job, None if there is none.

    A job that waits is forced; one that is queued, runs or was paused by hand stays as it is.
    """
    job = feed_job(session, source_id=source_id)
    if job is None:
        return None
    if state_of(job) is State.SCHEDULED and job.next_run_at is not None and job.next_run_at > clock.now():
        board.act(session, job.id, Action.FORCE_RUN)
    elif state_of(job) is State.FAILED:
        board.act(session, job.id, Action.RETRY)
    return job.state
