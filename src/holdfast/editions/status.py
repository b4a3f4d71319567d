"""How a campaign stands, source by source, as whoever runs it wants to see it; read from the rows as they are now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from sqlalchemy.orm import Session

from holdfast.archive_tool.contract import ExecutionPolicy
from holdfast.archive_tool.rescue import operator_state, rescue_word
from holdfast.db.models import Source
from holdfast.editions import campaign, queries
from holdfast.editions.readiness import ShardState, judge
from holdfast.editions.refusals import CampaignRefused
from holdfast.editions.scheduling import is_annual
from holdfast.jobs.shards import queries as shards
from holdfast.jobs.shards.queries import ANNUAL, Standing
from holdfast.sources.config import merge_fields
from holdfast.sources.queries import source_by_code, sources

_BROKEN = ("failed", "index_failed", "cancelled")


def annual_status(session: Session, year: int, codes: Iterable[str] = ()) -> dict[str, Any]:
    """Return where each source of a campaign stands (1.9 of the facts); CampaignRefused for a year that cannot be."""
    if not campaign.FIRST_YEAR <= year <= campaign.LAST_YEAR:
        raise CampaignRefused(f"the year must lie between {campaign.FIRST_YEAR} and {campaign.LAST_YEAR}, not {year}")
    # One that has an edition of the year takes part, whatever it is meant for by now.
    taking_part = set(queries.sources_with_edition(session, year=year))
    wanted = campaign.in_order(codes) or campaign.in_order(
        row.code
        for row in sources(session, limit=100_000)
        if row.config.get("schedule_hint") == campaign.HINT or row.id in taking_part
    )
    rows = [_source(session, code, year) for code in wanted]
    states = Counter(row["state"] for row in rows)
    jobs = [job for row in rows for job in row["jobs"]]
    return {
        "campaignYear": year, "campaignDate": f"{campaign.campaign_date(year):%Y-%m-%d}", "sources": rows,
        "summary": {
            "totalSources": len(rows), "indexed": states["indexed"], "inProgress": states["in_progress"],
            "failed": states["failed"], "missing": states["missing"], "errors": states["error"],
            "readyForSearch": bool(rows) and all(row["searchReady"] for row in rows),
            "rescueStates": dict(sorted(Counter(job["rescueState"] for job in jobs).items())),
            "operatorStates": dict(sorted(Counter(job["operatorState"] for job in jobs).items())),
        },
    }  # fmt: skip


def _source(session: Session, code: str, year: int) -> dict[str, Any]:
    source = source_by_code(session, code)
    row: dict[str, Any] = {"sourceCode": code, "state": "error", "searchReady": False, "jobs": []}
    if source is None:
        return {**row, "error": f"there is no source {code[:40]!r}"}
    edition = queries.edition(session, source_id=source.id, year=year)
    jobs = [one for one in shards.of_source(session, source.id)
            if is_annual(one, source, year) or (edition is not None and one.job.edition_id == edition.id)]  # fmt: skip
    ready = judge([ShardState(one.status, one.job.acceptance_state) for one in jobs], captured=1, missing_seeds=None)
    row |= {
        "sourceName": source.name, "state": _state(jobs), "searchReady": ready.search_ready,
        "jobs": [_job(source, one) for one in jobs],
        "edition": None if edition is None else {
            "editionId": edition.id, "status": edition.status, "searchReady": edition.search_ready,
            "researchReady": edition.research_ready,
            "generatedAt": edition.generated_at.isoformat() if edition.generated_at else None,
        },
    }  # fmt: skip
    if row["state"] == "error":
        row["error"] = "several jobs are its annual job; cancel all but one"
    return row


def _state(jobs: list[Standing]) -> str:
    if not jobs:
        return "missing"
    if sum(one.job.kind == ANNUAL and one.status != "cancelled" for one in jobs) > 1:
        return "error"
    states = [ShardState(one.status, one.job.acceptance_state) for one in jobs]
    if any(state.needs_review for state in states):
        return "failed"
    return "in_progress" if any(state.is_blocking for state in states) else "indexed"


def _job(source: Source, one: Standing) -> dict[str, Any]:
    config = merge_fields(source.config, one.job.config)
    given = (config.get("zimit") or {}).get("execution_policy") or {}
    known = {one.name for one in fields(ExecutionPolicy)}
    policy = ExecutionPolicy(**{name: value for name, value in given.items() if name in known})
    stage = one.latest.stage if one.latest is not None else None
    return {
        "jobId": one.job.id, "name": one.job.name, "status": one.status, "shardKey": one.job.shard_key,
        "shardKind": one.job.shard_kind, "acceptanceState": one.job.acceptance_state,
        "retryCount": one.job.current_retry_count, "crawlerStage": stage,
        "pagesCrawled": one.latest.items_crawled if one.latest is not None else 0,
        "rescueState": rescue_word(policy, stage).value, "operatorState": operator_state(one.status, policy, stage),
        "queuedAt": one.job.next_run_at.isoformat() if one.job.next_run_at else None,
    }  # fmt: skip
