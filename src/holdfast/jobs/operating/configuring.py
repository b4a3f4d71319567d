"""A job's configuration as it would run, checked without touching the row; and careful changes to it by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.models import Job, Source
from holdfast.errors import Conflict
from holdfast.jobs.board.queries import locked_both
from holdfast.jobs.operating.repair import word_for
from holdfast.jobs.plans import job_config, planned_config
from holdfast.jobs.specs import BackendCheck, JobNotFound, JobRefused
from holdfast.sources.config import SourceConfig
from holdfast.sources.refusals import SourceRefused

PATCHABLE = ("queued", "retryable", "failed")


class NotPatchable(Conflict):
    """A job's configuration is changed only while nobody works with it."""

    code = "not_patchable"

    def __init__(self, job_id: int, state: str) -> None:
        super().__init__(f"job {job_id} is {state}; its configuration is changed only while {', '.join(PATCHABLE)}")


def effective(job: Job, source: Source, *, check: BackendCheck | None = None) -> SourceConfig:
    """Return the configuration that a job runs with; JobRefused, or the backend's refusal, names what is wrong."""
    try:
        made = job_config(job, source)
    except SourceRefused as exc:
        raise JobRefused(f"config.{exc.field}", exc.reason) from exc
    if check is not None:
        check(made)
    return made


class Patched(NamedTuple):
    """The tool's part of a configuration, before and after."""

    before: dict[str, Any]
    after: dict[str, Any]


def patch_zimit(session: Session, clock: Clock, job_id: int, changes: Mapping[str, Mapping[str, Any]], *,
                check: BackendCheck, apply: bool) -> Patched:  # fmt: skip
    """Change values of a job's `tool_options` and `execution_policy`; None takes one away. Checked before it is kept.

    JobNotFound, NotPatchable for a job that is not waiting, or the refusal of what the change would make of it.
    """
    both = locked_both(session, job_id)
    if both is None or both[0].state is None:
        raise JobNotFound
    job, source = both
    word = word_for(session, job.id)
    if word not in PATCHABLE or job.lock_token is not None:
        raise NotPatchable(job.id, word)
    before = asdict(effective(job, source).zimit)
    after = {**before, **{group: _changed(before[group], given) for group, given in changes.items()}}
    # What is taken away is kept as null: without that word the source's own value would come back.
    taken = {group: dict.fromkeys(set(before[group]) - set(after[group])) for group in changes}
    kept = {group: {**after[group], **taken[group]} for group in changes}
    fresh = {**job.config, "zimit": {**after, **kept, "passthrough_args": list(after["passthrough_args"])}}
    try:
        # zimit's rules hold whatever the backend: the options wait for the day when it is chosen.
        check(planned_config(source, {**fresh, "backend": "zimit"}, start=job.url if job.url_given else None))
    except SourceRefused as exc:
        raise JobRefused(f"config.{exc.field}", exc.reason) from exc
    if apply:
        job.config, job.updated_at = fresh, clock.now()
        audit.record(session, clock, action="job.config_patched", subject=f"job {job.id}", detail=dict(changes))
    return Patched(before, after)


def _changed(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**values, **given}.items() if value is not None}
