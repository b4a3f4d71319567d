"""Whether something is done about a dead path: seen so more than once, for long enough, not helped too often. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from holdfast.config import StorageSettings

SEEN_DEAD, SEEN_ALIVE, FREED = "seen_dead", "seen_alive", "path_freed"
WORDS = (SEEN_DEAD, SEEN_ALIVE, FREED)
"""What is noted in `recoveries` about a job's path."""
HOUR, DAY = timedelta(hours=1), timedelta(hours=24)


class Note(NamedTuple):
    """One earlier sight of a job's path, or a deed for it."""

    job_id: int
    at: datetime
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether something is done about a path, for which of its jobs, and why; or why nothing is."""

    jobs: tuple[int, ...] = ()
    """Empty if nothing is done."""
    reason: str


def decide(affected: Sequence[int], notes: Sequence[Note], limits: StorageSettings, *, now: datetime) -> Decision:
    """Return what to do about a path that these jobs write to and that is dead now.

    `notes` hold a day of sights and deeds of all jobs, oldest first: what was done for one path counts for all.
    """
    streaks = [streak(notes, job_id) for job_id in affected]
    looks = 1 + max(map(len, streaks), default=0)
    if looks < limits.confirmations:
        return Decision(reason=f"seen dead {looks} of {limits.confirmations} times")
    dead_s = (now - min((one[0].at for one in streaks if one), default=now)).total_seconds()
    if dead_s < limits.dead_s:
        return Decision(reason=f"dead for {dead_s:.0f} of {limits.dead_s:g} s")
    deeds = sorted({note.at for note in notes if note.action == FREED})
    if deeds and (now - deeds[-1]).total_seconds() < limits.cooldown_s:
        return Decision(reason="something was done a short while ago")
    if _since(deeds, now - HOUR) >= limits.per_hour or _since(deeds, now - DAY) >= limits.per_day:
        return Decision(reason="something was done too often")
    free = tuple(job_id for job_id in affected if _helped(notes, job_id, now) < limits.per_job)
    return Decision(jobs=free, reason="dead" if free else "its jobs were helped too often today")


def streak(notes: Sequence[Note], job_id: int) -> list[Note]:
    """Return the sights of a dead path that no other note of the job follows, oldest first."""
    found: list[Note] = []
    for note in reversed([one for one in notes if one.job_id == job_id]):
        if note.action != SEEN_DEAD:
            break
        found.append(note)
    return found[::-1]


def _since(deeds: Sequence[datetime], moment: datetime) -> int:
    return sum(at > moment for at in deeds)


def _helped(notes: Sequence[Note], job_id: int, now: datetime) -> int:
    return sum(note.job_id == job_id and note.action == FREED and note.at > now - DAY for note in notes)
