"""`/api/stats`: what the archive holds, in a few small reads whatever its size."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.api import queries
from holdfast.api.deps import ArchiveDep, SessionDep, TotalsDep
from holdfast.api.errors import answers
from holdfast.api.roles import PUBLIC
from holdfast.api.schemas.archive import RecentPage, Stats, TopDomain, WorkerHeartbeat

router = APIRouter(tags=["archive"], dependencies=[PUBLIC])
_CACHE = "no-cache"
"""It names pages, and one that is withdrawn is to be gone at once."""
_RECENT = 20


@router.get("/api/stats", responses=answers(503))
def stats(archive: ArchiveDep, session: SessionDep, totals: TotalsDep, response: Response) -> Stats:
    """Return the archive's totals and the crawls'. Workers are numbered, not named."""
    found = totals.read(session)
    crawls, latest = found.crawls, found.latest
    response.headers["Cache-Control"] = _CACHE
    return Stats(
        snapshots_total=found.snapshots, pages_total=found.pages, sources_total=len(found.sources),
        latest_capture_date=latest.date() if latest else None,
        latest_capture_age_days=max(0, (archive.clock.now() - latest).days) if latest else None,
        pages_crawled=sum(count.get("pages", 0) for count in crawls.counts),
        pages_failed=sum(map(queries.failures_of, crawls.counts)),
        bytes_downloaded=sum(count.get("bytes", 0) for count in crawls.counts),
        links_discovered=crawls.links,
        duplicates_skipped=max(0, found.snapshots - found.documents),
        frontier_pending=crawls.open, frontier_in_progress=crawls.leased,
        frontier_completed=crawls.succeeded, frontier_failed=crawls.failed, total_domains=crawls.domains,
        active_workers=[f"worker-{number}" for number, _ in enumerate(crawls.workers, 1)],
        worker_heartbeats=[
            WorkerHeartbeat(worker_id=f"worker-{number}", last_heartbeat=owner.heartbeat_at)
            for number, owner in enumerate(crawls.workers, 1)
        ],
        recent_pages=[
            RecentPage(id=page.id, url=page.url, title=page.title, status_code=page.status, crawled_at=page.captured_at)
            for page in queries.newest_pages(session, limit=_RECENT)
        ],
        top_domains=[TopDomain(domain=name, page_count=count) for name, count in crawls.top],
    )  # fmt: skip
