"""What the suites of editions share: campaigns on a bed of jobs, and executions that say what they met."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import select

from holdfast.clock import to_micros
from holdfast.config import ZimitSettings
from holdfast.db.models import Edition, Execution, Job, Source
from holdfast.db.models.frontier import Domain, Exclusion, Page, PageCrawl
from holdfast.editions.campaign import CampaignRequest, Plan
from holdfast.editions.decisions import EditionDecisions
from holdfast.editions.edition_view import Acceptance, EditionView
from holdfast.editions.report import write_report
from holdfast.editions.scheduling import Campaigns
from holdfast.jobs.endings import FailureCause, RunEnding, RunResult
from holdfast.jobs.leases import ExecutionLease
from holdfast.urls import parse_seed
from holdfast.wiring.archive import Archive
from tests.clock import FakeClock
from tests.jobs_bed import Bed, open_bed

INDEXED = RunEnding(result=RunResult.COMPLETED, reason="done", index_state="indexed")
BROKEN = RunEnding(
    result=RunResult.FAILED, failure=FailureCause.CONFIG, reason="infra_error_config", error="unrecognized arguments"
)


class EditionBed:
    """A bed of jobs with campaigns on it."""

    def __init__(self, jobs: Bed, clock: FakeClock, home: Path) -> None:
        self.jobs, self.clock, self.home, self.database = jobs, clock, home, jobs.database
        self.decisions = EditionDecisions(jobs.database, home, clock)
        self.campaigns = Campaigns(jobs.database, jobs.party.actions, clock, ZimitSettings())

    def schedule(self, *sources: str, year: int | None = 2026, apply: bool = True, **wish: Any) -> Plan:
        """Schedule a campaign."""
        return self.campaigns.schedule(CampaignRequest(year=year, sources=sources, apply=apply, **wish))

    def begin(self) -> ExecutionLease:
        """Let what is due be queued, and take the first."""
        self.jobs.party.scheduler.tick()
        return self.jobs.party.taken()

    def end(self, lease: ExecutionLease, ending: RunEnding = INDEXED) -> None:
        """Settle a run."""
        self.jobs.party.leases.settle(lease, ending)

    def ran(self, *met: tuple[Any, ...], ending: RunEnding = INDEXED) -> ExecutionLease:
        """Run what waits longest: it met these addresses and ended like this."""
        lease = self.begin()
        for one in met:
            self.meet(lease.execution_id, *one)
        self.end(lease, ending)
        return lease

    def meet(self, execution_id: int, url: str, outcome: str | None, reason: str | None = None, **fields: Any) -> int:
        """Write an attempt on an address; return its page's id. A second one on the same page is a retry."""
        made, now = parse_seed(url), to_micros(self.clock.now())
        with self.database.write() as session:
            domain = session.scalars(select(Domain).where(Domain.name == made.domain)).one_or_none()
            if domain is None:
                domain = Domain(name=made.domain, created_at=self.clock.now())
                session.add(domain)
                session.flush()
            page = session.scalars(select(Page).where(Page.url_hash == made.hash64)).one_or_none()
            if page is None:
                page = Page(domain_id=domain.id, url_hash=made.hash64, url=made.fetch, created_at=self.clock.now())
                session.add(page)
                session.flush()
            tried = session.scalars(select(PageCrawl.attempt).where(
                PageCrawl.execution_id == execution_id, PageCrawl.page_id == page.id)).all()  # fmt: skip
            values = {"kind": "page", "depth": 1, **fields}
            session.add(PageCrawl(
                execution_id=execution_id, domain_id=domain.id, page_id=page.id, attempt=len(tried) + 1, priority=1,
                outcome=outcome, reason=reason, created_at=now, completed_at=None if outcome is None else now, **values,
            ))  # fmt: skip
            return page.id

    def left_out(self, execution_id: int, rule: str, host: str, count: int) -> None:
        """Count links that were not followed."""
        with self.database.write() as session:
            session.add(Exclusion(execution_id=execution_id, rule=rule, host=host, count=count))

    def edition(self, code: str, year: int = 2026) -> Edition:
        """Return an edition's row."""
        with self.database.read() as session:
            return session.scalars(
                select(Edition).join(Source, Source.id == Edition.source_id)
                .where(Source.code == code, Edition.year == year)
            ).one()  # fmt: skip

    def job(self, name: str) -> Job:
        """Return a job by its name."""
        with self.database.read() as session:
            return session.scalars(select(Job).where(Job.name == name)).one()

    def report(self, code: str, year: int = 2026, **how: Any) -> tuple[dict[str, Any], Path]:
        """Write the report of an edition."""
        return write_report(self.database, self.home, self.clock, self.edition(code, year).id, **how)

    def accept(self, job_id: int, reason: str) -> EditionView:
        """Accept the gap of a shard."""
        return self.decisions.decide_shard(job_id, Acceptance.ACCEPTED_GAP, reason)

    def ledger(self, code: str, year: int = 2026) -> list[dict[str, Any]]:
        """Return the rows of a ledger as they were written."""
        path = self.home / "editions" / code / str(year) / "target-ledger.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def open_edition_bed(url: str, clock: FakeClock, home: Path) -> Iterator[EditionBed]:
    """Open a bed and close it."""
    with open_bed(url, clock, home) as jobs:
        yield EditionBed(jobs, clock, home)


def adopt(archive: Archive, code: str, year: int, *, executions: tuple[str, ...], seeds: tuple[str, ...]) -> int:
    """Make executions of a built archive (`source-number`) the shards of an edition; return the edition's id."""
    with archive.database.write() as session:
        source = session.scalars(select(Source).where(Source.code == code)).one()
        row = Edition(source_id=source.id, year=year, status="planned", backend_counts={},
                      coverage_summary={"seeds": list(seeds)}, created_at=archive.clock.now())  # fmt: skip
        session.add(row)
        session.flush()
        for number, fingerprint in enumerate(executions, 1):
            job = session.scalars(select(Job).where(Job.fingerprint == fingerprint)).one()
            job.kind, job.state, job.name = "annual", "completed", f"{code}-{year}0101-{number}"
            job.edition_id, job.shard_key, job.shard_kind = row.id, f"part-{number}", "legacy_full_site"
            job.config = {"seeds": list(seeds)}
            run = session.scalars(select(Execution).where(Execution.job_id == job.id)).one()
            run.index_state = "indexed"
        return row.id
