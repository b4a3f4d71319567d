"""One table of all routers: what the application's host answers, and what the replay host answers.

A file of routes holds `router = LateRouter(tags=[…])` and plain `def` functions with a row each in
`api/permissions.py`; they take `SessionDep` and `ArchiveDep`, raise our errors, and say which:
`@router.get(…, responses=answers(404, 422))`.
"""

from __future__ import annotations

from typing import Final

from holdfast.api.late_routes import LateRouter
from holdfast.api.routes import (
    account,
    account_pages,
    admin,
    archive,
    captures,
    changes,
    domains,
    editions,
    executions,
    explain,
    exports,
    feeds,
    frontier,
    frontier_v1,
    health,
    job_logs,
    jobs,
    live,
    mcp,
    noise,
    operations,
    operator,
    reference,
    renderer,
    replay,
    reports,
    search,
    series,
    snapshots,
    sources,
    storage,
    streams,
    takedowns,
    uploads,
    users,
    webhooks,
)

ROUTERS: Final[tuple[LateRouter, ...]] = (
    archive.home_router,
    archive.router,
    health.router,
    series.router,
    sources.router,
    exports.router,
    editions.router,
    replay.raw_router,
    search.router,
    snapshots.router,
    captures.router,
    snapshots.pages_router,
    replay.cdx_router,
    replay.router,
    replay.members_router,
    changes.router,
    live.router,
    reports.router,
    reports.form_router,
    sources.admin_router,
    jobs.router,
    executions.router,
    job_logs.router,
    jobs.scheduler_router,
    admin.jobs_router,
    reports.admin_router,
    admin.audit_router,
    noise.router,
    frontier.router,
    frontier_v1.router,
    domains.router,
    storage.router,
    explain.router,
    mcp.router,
    editions.admin_router,
    operations.router,
    operator.router,
    feeds.router,
    takedowns.router,
    uploads.router,
    admin.metrics_router,
    streams.router,
    webhooks.router,
    reference.router,
    account.router,
    account_pages.router,
    users.router,
)
"""The application's host. Of two routes whose paths overlap the first is taken."""

REPLAY_ROUTERS: Final[tuple[LateRouter, ...]] = (
    replay.raw_router,
    replay.cdx_router,
    replay.router,
    renderer.router,
    replay.stray_router,
)
"""The replay host: only what is public, archived pages included."""
