"""One table of all routers: what the application's host answers, and what the replay host answers.

A file of routes holds `router = APIRouter(tags=[…], dependencies=[PUBLIC])` (or ADMIN) and plain `def` functions that
take `SessionDep` and `ArchiveDep`, raise our errors, and say which: `@router.get(…, responses=answers(404, 422))`.
"""

from __future__ import annotations

from fastapi import APIRouter

from holdfast.api.routes import (
    admin_audit,
    admin_jobs,
    admin_reports,
    annual_editions,
    astray,
    cdx,
    changes,
    coverage,
    executions,
    exports,
    health,
    home,
    job_logs,
    jobs,
    managed_sources,
    metrics,
    pages,
    raw,
    reference,
    report_page,
    reports,
    scheduler,
    search,
    snapshots,
    sources,
    stats,
    usage,
    wacz,
    wayback,
)

ROUTERS: tuple[APIRouter, ...] = (
    home.router,
    health.router,
    stats.router,
    sources.router,
    wacz.router,
    coverage.router,
    raw.router,
    search.router,
    snapshots.router,
    pages.router,
    cdx.router,
    wayback.router,
    changes.router,
    exports.router,
    usage.router,
    reports.router,
    report_page.router,
    managed_sources.router,
    jobs.router,
    executions.router,
    job_logs.router,
    scheduler.router,
    admin_jobs.router,
    admin_reports.router,
    admin_audit.router,
    annual_editions.router,
    metrics.router,
    reference.router,
)
"""The application's host. Order matters only where two paths overlap: the narrower one first."""

REPLAY_ROUTERS: tuple[APIRouter, ...] = (raw.router, cdx.router, wayback.router, astray.router)
"""The replay host: only what may be read by anybody, archived pages included."""
