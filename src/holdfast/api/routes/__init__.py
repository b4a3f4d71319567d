"""The table of all routers: those of the application's host, and those of the replay host.

A route file has `router = LazyRouter(tags=[…])` and plain `def` functions, which take `SessionDep` and
`ArchiveDep` and raise our errors. Each route declares its permission and the statuses of its errors:
`@router.get(path, Permission.WATCH, errors=(404,))`.
"""

from __future__ import annotations

from typing import Final

from holdfast.api.routes import (
    account,
    account_pages,
    admin,
    archive,
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
    snapshots,
    sources,
    streams,
    takedowns,
    uploads,
    webhooks,
)
from holdfast.api.routing import LazyRouter

ROUTERS: Final[tuple[LazyRouter, ...]] = (
    archive.home_router,
    archive.router,
    health.router,
    archive.series_router,
    sources.router,
    exports.router,
    editions.router,
    replay.raw_router,
    search.router,
    snapshots.router,
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
    executions.logs_router,
    jobs.scheduler_router,
    admin.jobs_router,
    reports.admin_router,
    admin.audit_router,
    noise.router,
    frontier.router,
    frontier_v1.router,
    domains.router,
    operator.storage_router,
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
    account.users_router,
)
"""Routers of the application's host. If the paths of two routes overlap, the first one wins."""

REPLAY_ROUTERS: Final[tuple[LazyRouter, ...]] = (
    replay.raw_router,
    replay.cdx_router,
    replay.router,
    renderer.router,
    replay.fallback_router,
)
"""Routers of the replay host: public content only, archived pages included."""
