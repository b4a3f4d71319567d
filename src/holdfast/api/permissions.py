"""Who may call what: one table of all routes. An application with a route that stands in none of its rows is not built.

A row is `METHOD /path`, as the route declares it. ANY is every method but OPTIONS; HEAD asks for what GET does, and has
a row only where a route has its own way of answering it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.routing import BaseRoute
from starlette.types import Scope

from holdfast.api.errors import AdminTokenMissing
from holdfast.api.late_routes import RouteTable
from holdfast.api.origins import is_own_origin
from holdfast.auth.credentials import is_same
from holdfast.auth.errors import CrossSiteRefused, RoleTooLow, Unauthenticated
from holdfast.auth.principal import ANONYMOUS, Principal, SignInWay
from holdfast.auth.roles import Permission
from holdfast.config import Settings

ROUTES: Final[dict[str, dict[str, Permission]]] = {
    "archive.home_router": {
        "GET /": Permission.READ,
        "GET /status": Permission.READ,
    },
    "archive.router": {
        "GET /api/status": Permission.READ,
        "GET /api/stats": Permission.READ,
        "GET /api/usage": Permission.READ,
    },
    "health.router": {
        "GET /health/live": Permission.READ,
        "GET /health/ready": Permission.READ,
        "GET /api/health": Permission.READ,
        "GET /health": Permission.READ,
    },
    "series.router": {
        "GET /api/stats/timeseries": Permission.WATCH,
        "GET /api/stats/activity": Permission.WATCH,
        "GET /api/crawler/figures": Permission.WATCH,
        "GET /api/alerts": Permission.WATCH,
    },
    "sources.router": {
        "GET /api/sources": Permission.READ,
        "GET /api/sources/{code}/editions": Permission.READ,
        "GET /api/sources/{code}/preview": Permission.READ,
    },
    "exports.router": {
        "GET /api/exports": Permission.READ,
        "GET /api/exports/columns": Permission.READ,
        "GET /api/exports/snapshots": Permission.READ,
        "HEAD /api/exports/snapshots": Permission.READ,
        "GET /api/exports/changes": Permission.READ,
        "HEAD /api/exports/changes": Permission.READ,
        "GET /api/exports/cdxj": Permission.READ,
        "HEAD /api/exports/cdxj": Permission.READ,
        "GET /api/executions/{id}/wacz": Permission.READ,
        "HEAD /api/executions/{id}/wacz": Permission.READ,
        "GET /api/executions/{id}.wacz": Permission.READ,
        "HEAD /api/executions/{id}.wacz": Permission.READ,
        "GET /api/coverage/{source}/{year}/edition.wacz": Permission.READ,
        "HEAD /api/coverage/{source}/{year}/edition.wacz": Permission.READ,
    },
    "editions.router": {
        "GET /api/coverage": Permission.READ,
        "GET /api/coverage/{source}/{year}": Permission.READ,
        "GET /api/coverage/{source}/{year}/addresses": Permission.READ,
        "GET /api/coverage/{source}/{year}/comparison/{earlier}": Permission.READ,
        "GET /api/coverage/{source}/{year}/{file}": Permission.READ,
    },
    "replay.raw_router": {
        "GET /api/snapshots/raw/{snapshot_id}": Permission.READ,
        "HEAD /api/snapshots/raw/{snapshot_id}": Permission.READ,
    },
    "search.router": {
        "GET /api/search": Permission.READ,
        "GET /api/search/syntax": Permission.READ,
        "GET /api/search/export": Permission.READ,
        "GET /api/terms": Permission.READ,
        "GET /api/admin/linked-hosts": Permission.WATCH,
        "GET /api/admin/search-debug": Permission.WATCH,
    },
    "snapshots.router": {
        "GET /api/snapshot/{id}": Permission.READ,
        "GET /api/snapshots/{id}/provenance": Permission.READ,
        "GET /api/snapshots/{id}/latest": Permission.READ,
        "GET /api/replay/resolve": Permission.READ,
    },
    "captures.router": {
        "GET /api/history": Permission.READ,
        "GET /api/snapshots/{id}/view": Permission.READ,
        "GET /api/snapshots/{id}/record": Permission.READ,
        "GET /api/snapshots/{id}/content": Permission.READ,
        "GET /api/snapshots/{id}/parts": Permission.READ,
        "GET /api/snapshots/{id}/wacz": Permission.READ,
    },
    "snapshots.pages_router": {
        "GET /api/pages": Permission.WATCH,
        "GET /api/pages/domain/{domain}": Permission.WATCH,
        "GET /api/pages/{urlHash}": Permission.WATCH,
    },
    "replay.cdx_router": {
        "GET /cdx": Permission.READ,
        "GET /cdx/search/cdx": Permission.READ,
    },
    "replay.router": {
        "OPTIONS /web/{target:path}": Permission.READ,
        "ANY /web/{target:path}": Permission.READ,
    },
    "replay.members_router": {
        "GET /members/web/{target:path}": Permission.READ,
    },
    "changes.router": {
        "GET /api/changes": Permission.READ,
        "GET /api/changes/compare": Permission.READ,
        "GET /api/changes/rss": Permission.READ,
        "GET /api/changes/site": Permission.READ,
        "GET /api/snapshots/{id}/timeline": Permission.READ,
    },
    "live.router": {
        "GET /api/snapshots/{id}/compare-live": Permission.OPERATE,
        "POST /api/v1/fetch": Permission.OPERATE,
        "POST /api/internal/v1/fetch": Permission.OPERATE,
        "POST /api/v1/sources/survey": Permission.OPERATE,
    },
    "reports.router": {
        "POST /api/reports": Permission.READ,
    },
    "reports.form_router": {
        "GET /style.css": Permission.READ,
        "GET /report": Permission.READ,
        "POST /report": Permission.READ,
    },
    "sources.admin_router": {
        "GET /api/v1/sources/exclude-presets": Permission.WATCH,
        "GET /api/v1/sources/names": Permission.WATCH,
        "GET /api/v1/sources": Permission.WATCH,
        "POST /api/v1/sources": Permission.OPERATE,
        "GET /api/v1/sources/export": Permission.WATCH,
        "POST /api/v1/sources/preview": Permission.OPERATE,
        "POST /api/v1/sources/import": Permission.OPERATE,
        "GET /api/v1/sources/{id}": Permission.WATCH,
        "PUT /api/v1/sources/{id}": Permission.OPERATE,
        "PATCH /api/v1/sources/{id}": Permission.OPERATE,
        "POST /api/v1/sources/{id}/enable": Permission.OPERATE,
        "POST /api/v1/sources/{id}/disable": Permission.OPERATE,
        "DELETE /api/v1/sources/{id}": Permission.OPERATE,
    },
    "jobs.router": {
        "GET /api/v1/jobs": Permission.WATCH,
        "POST /api/v1/jobs": Permission.OPERATE,
        "GET /api/v1/jobs/status-counts": Permission.WATCH,
        "GET /api/v1/jobs/{id}": Permission.WATCH,
        "PUT /api/v1/jobs/{id}": Permission.OPERATE,
        "DELETE /api/v1/jobs/{id}": Permission.OPERATE,
        "POST /api/v1/jobs/{id}/pause": Permission.OPERATE,
        "POST /api/v1/jobs/{id}/resume": Permission.OPERATE,
        "POST /api/v1/jobs/{id}/cancel": Permission.OPERATE,
        "POST /api/v1/jobs/{id}/retry": Permission.OPERATE,
        "POST /api/v2/jobs/{id}/force-run": Permission.OPERATE,
        "GET /api/v1/jobs/{id}/stats": Permission.WATCH,
        "GET /api/v1/jobs/{id}/executions": Permission.WATCH,
        "GET /api/v1/executions/{id}": Permission.WATCH,
        "GET /api/v1/events": Permission.WATCH,
    },
    "executions.router": {
        "GET /api/v1/executions/{id}/report": Permission.WATCH,
        "GET /api/v1/failed-urls": Permission.OPERATE,
        "POST /api/v1/executions/{id}/requeue": Permission.OPERATE,
        "GET /api/v1/executions/{id}/exclusions": Permission.WATCH,
        "POST /api/v1/executions/{id}/exclusions/preview": Permission.OPERATE,
        "PUT /api/v1/executions/{id}/exclusions": Permission.OPERATE,
    },
    "job_logs.router": {
        "GET /api/v1/jobs/{id}/logs": Permission.WATCH,
        "GET /api/v1/jobs/{id}/logs/view": Permission.WATCH,
        "GET /api/v1/jobs/{id}/logs/tail": Permission.WATCH,
        "GET /api/v1/jobs/{id}/logs/download": Permission.WATCH,
        "HEAD /api/v1/jobs/{id}/logs/download": Permission.WATCH,
    },
    "jobs.scheduler_router": {
        "GET /api/v1/scheduler/metrics": Permission.WATCH,
        "GET /api/v1/scheduler/distribution": Permission.WATCH,
        "POST /api/v1/scheduler/rebalance/preview": Permission.OPERATE,
        "POST /api/v1/scheduler/rebalance": Permission.OPERATE,
        "POST /api/v1/admin/sync-enabled-sources": Permission.OPERATE,
    },
    "admin.jobs_router": {
        "GET /api/admin/jobs": Permission.WATCH,
        "GET /api/admin/jobs/status-counts": Permission.WATCH,
        "GET /api/admin/jobs/{id}": Permission.WATCH,
        "GET /api/admin/jobs/{id}/snapshots": Permission.WATCH,
    },
    "reports.admin_router": {
        "GET /api/admin/reports": Permission.OPERATE,
        "GET /api/admin/reports/{id}": Permission.OPERATE,
        "PATCH /api/admin/reports/{id}": Permission.OPERATE,
    },
    "admin.audit_router": {
        "GET /api/admin/audit": Permission.ADMINISTER,
    },
    "noise.router": {
        "GET /api/admin/noise": Permission.WATCH,
        "POST /api/admin/noise/mark": Permission.OPERATE,
        "POST /api/admin/noise/clear": Permission.OPERATE,
    },
    "frontier.router": {
        "GET /api/frontier/stats": Permission.WATCH,
        "GET /api/frontier/urls": Permission.WATCH,
        "GET /api/frontier/hosts": Permission.WATCH,
        "POST /api/frontier/add": Permission.OPERATE,
        "POST /api/frontier/seed": Permission.OPERATE,
        "POST /api/frontier/requeue": Permission.OPERATE,
        "POST /api/frontier/recover": Permission.OPERATE,
        "DELETE /api/frontier": Permission.OPERATE,
        "GET /api/crawler/discovered": Permission.WATCH,
    },
    "frontier_v1.router": {
        "GET /api/v1/frontier": Permission.WATCH,
        "GET /api/v1/frontier/stats": Permission.WATCH,
        "POST /api/v1/frontier": Permission.OPERATE,
        "POST /api/v1/frontier/submit": Permission.OPERATE,
        "GET /api/v1/frontier/{id}": Permission.WATCH,
        "POST /api/v1/frontier/{id}/retry": Permission.OPERATE,
        "DELETE /api/v1/frontier/{id}": Permission.OPERATE,
        "GET /api/v1/discovered-links": Permission.WATCH,
        "GET /api/v1/discovered-links/{id}": Permission.WATCH,
        "DELETE /api/v1/discovered-links/{id}": Permission.OPERATE,
        "POST /api/v1/discovered-links/{id}/create-job": Permission.OPERATE,
    },
    "domains.router": {
        "GET /api/domains": Permission.WATCH,
        "GET /api/domains/{domain}": Permission.WATCH,
        "GET /api/domains/{domain}/robots": Permission.WATCH,
        "PUT /api/domains/{domain}/settings": Permission.OPERATE,
        "POST /api/domains/{domain}/refresh-robots": Permission.OPERATE,
        "POST /api/admin/domains/{domain}/reset": Permission.OPERATE,
        "POST /api/domains/{domain}/purge": Permission.OPERATE,
    },
    "storage.router": {
        "GET /api/admin/storage": Permission.WATCH,
        "POST /api/admin/cleanup": Permission.OPERATE,
    },
    "explain.router": {
        "GET /api/explain": Permission.EXPLAIN,
    },
    "mcp.router": {
        "POST /mcp": Permission.READ,
    },
    "editions.admin_router": {
        "GET /api/admin/annual-editions": Permission.WATCH,
        "GET /api/admin/annual-editions/{id}": Permission.WATCH,
        "POST /api/admin/annual-editions/jobs/{job_id}/accept-gap": Permission.OPERATE,
        "PUT /api/admin/annual-editions/jobs/{job_id}/decision": Permission.OPERATE,
        "PUT /api/admin/annual-editions/{id}/pages": Permission.OPERATE,
        "POST /api/admin/annual-editions/plan": Permission.OPERATE,
        "POST /api/admin/annual-editions/{id}/report": Permission.OPERATE,
        "POST /api/admin/annual-editions/{id}/freeze": Permission.OPERATE,
        "POST /api/admin/annual-editions/{id}/verify": Permission.OPERATE,
        "POST /api/admin/annual-editions/{id}/compare": Permission.OPERATE,
    },
    "operations.router": {
        "GET /api/admin/operations": Permission.WATCH,
        "GET /api/admin/operations/{id}": Permission.WATCH,
        "POST /api/admin/operations/{id}/cancel": Permission.OPERATE,
        "POST /api/admin/verifications": Permission.OPERATE,
        "POST /api/admin/index/rebuild": Permission.OPERATE,
        "POST /api/admin/search-index/rebuild": Permission.OPERATE,
    },
    "operator.router": {
        "GET /api/admin/workers": Permission.WATCH,
        "GET /api/admin/settings": Permission.ADMINISTER,
        "GET /api/admin/storage-state": Permission.WATCH,
        "GET /api/admin/index": Permission.WATCH,
        "GET /api/admin/index/broken-files": Permission.WATCH,
        "POST /api/admin/crawls": Permission.OPERATE,
        "POST /api/admin/crawls/pause": Permission.OPERATE,
        "POST /api/admin/crawls/resume": Permission.OPERATE,
        "POST /api/admin/crawls/stop": Permission.OPERATE,
    },
    "feeds.router": {
        "GET /api/admin/feeds": Permission.WATCH,
        "POST /api/admin/feeds": Permission.OPERATE,
        "POST /api/admin/feeds/poll": Permission.OPERATE,
        "POST /api/admin/feeds/discover": Permission.OPERATE,
        "GET /api/admin/feeds/{id}": Permission.WATCH,
        "POST /api/admin/feeds/{id}/enable": Permission.OPERATE,
        "POST /api/admin/feeds/{id}/disable": Permission.OPERATE,
        "DELETE /api/admin/feeds/{id}": Permission.OPERATE,
    },
    "takedowns.router": {
        "GET /api/admin/takedowns": Permission.ADMINISTER,
        "GET /api/admin/takedowns/preview": Permission.ADMINISTER,
        "POST /api/admin/takedowns": Permission.ADMINISTER,
        "GET /api/admin/takedowns/{id}": Permission.ADMINISTER,
        "POST /api/admin/takedowns/{id}/undo": Permission.ADMINISTER,
    },
    "uploads.router": {
        "OPTIONS /api/admin/uploads": Permission.OPERATE,
        "GET /api/admin/uploads": Permission.OPERATE,
        "POST /api/admin/uploads": Permission.OPERATE,
        "GET /api/admin/uploads/{id}": Permission.OPERATE,
        "HEAD /api/admin/uploads/{id}": Permission.OPERATE,
        "PATCH /api/admin/uploads/{id}": Permission.OPERATE,
        "DELETE /api/admin/uploads/{id}": Permission.OPERATE,
        "POST /api/admin/uploads/{id}/import": Permission.OPERATE,
    },
    "admin.metrics_router": {
        "GET /metrics": Permission.WATCH,
    },
    "streams.router": {
        "GET /api/crawler/events": Permission.WATCH,
        "GET /sse/crawler/events": Permission.WATCH,
        "GET /api/events": Permission.WATCH,
        "GET /sse/events": Permission.WATCH,
        "GET /api/health/events": Permission.WATCH,
        "GET /sse/health/events": Permission.WATCH,
        "GET /api/metrics/events": Permission.WATCH,
        "GET /sse/metrics/events": Permission.WATCH,
        "GET /api/v1/jobs/{id}/logs/stream/v2": Permission.WATCH,
        "GET /api/v1/jobs/{id}/logs/stream": Permission.WATCH,
    },
    "webhooks.router": {
        "GET /api/admin/webhooks": Permission.ADMINISTER,
        "POST /api/admin/webhooks": Permission.ADMINISTER,
        "GET /api/admin/webhooks/{id}": Permission.ADMINISTER,
        "PATCH /api/admin/webhooks/{id}": Permission.ADMINISTER,
        "DELETE /api/admin/webhooks/{id}": Permission.ADMINISTER,
        "POST /api/admin/webhooks/{id}/rotate-secret": Permission.ADMINISTER,
        "POST /api/admin/webhooks/{id}/test": Permission.ADMINISTER,
        "GET /api/admin/webhooks/{id}/deliveries": Permission.ADMINISTER,
        "POST /api/admin/webhooks/{id}/deliveries/{delivery_id}/redeliver": Permission.ADMINISTER,
    },
    "reference.router": {
        "GET /openapi.json": Permission.READ,
        "GET /api/openapi.json": Permission.READ,
        "GET /docs": Permission.READ,
    },
    "account.router": {
        "GET /api/auth/me": Permission.READ,
        "GET /api/session": Permission.READ,
        "POST /api/session": Permission.READ,
        "POST /api/auth/login": Permission.READ,
        "POST /api/auth/logout": Permission.OWN_ACCOUNT,
        "DELETE /api/session": Permission.OWN_ACCOUNT,
        "GET /api/account": Permission.OWN_ACCOUNT,
        "PUT /api/account/password": Permission.OWN_ACCOUNT,
        "GET /api/account/sessions": Permission.OWN_ACCOUNT,
        "DELETE /api/account/sessions": Permission.OWN_ACCOUNT,
        "DELETE /api/account/sessions/{id}": Permission.OWN_ACCOUNT,
        "GET /api/account/tokens": Permission.OWN_ACCOUNT,
        "POST /api/account/tokens": Permission.OWN_ACCOUNT,
        "DELETE /api/account/tokens/{id}": Permission.OWN_ACCOUNT,
    },
    "account_pages.router": {
        "GET /account.css": Permission.READ,
        "GET /setup.js": Permission.READ,
        "GET /signin": Permission.READ,
        "POST /signin": Permission.READ,
        "GET /signin/oidc": Permission.READ,
        "GET /signin/oidc/callback": Permission.READ,
        "GET /setup": Permission.READ,
        "POST /setup": Permission.READ,
        "GET /account": Permission.OWN_ACCOUNT,
        "POST /account/sessions": Permission.OWN_ACCOUNT,
        "POST /account/tokens": Permission.OWN_ACCOUNT,
        "POST /account/tokens/revoke": Permission.OWN_ACCOUNT,
        "POST /account/password": Permission.OWN_ACCOUNT,
        "POST /signout": Permission.OWN_ACCOUNT,
    },
    "users.router": {
        "GET /api/admin/users": Permission.ADMINISTER,
        "POST /api/admin/users": Permission.ADMINISTER,
        "GET /api/admin/users/{id}": Permission.ADMINISTER,
        "PATCH /api/admin/users/{id}": Permission.ADMINISTER,
        "DELETE /api/admin/users/{id}": Permission.ADMINISTER,
        "POST /api/admin/users/{id}/link": Permission.ADMINISTER,
        "GET /api/admin/users/{id}/sessions": Permission.ADMINISTER,
        "DELETE /api/admin/users/{id}/sessions": Permission.ADMINISTER,
        "DELETE /api/admin/users/{id}/sessions/{session_id}": Permission.ADMINISTER,
        "GET /api/admin/users/{id}/tokens": Permission.ADMINISTER,
        "DELETE /api/admin/users/{id}/tokens/{token_id}": Permission.ADMINISTER,
    },
    "renderer.router": {
        "GET /replay-web-page/": Permission.READ,
        "GET /replay-web-page/open/{id}": Permission.READ,
        "HEAD /replay-web-page/captures/{id}.wacz": Permission.READ,
        "GET /replay-web-page/captures/{id}.wacz": Permission.READ,
        "GET /replay-web-page/{file}": Permission.READ,
    },
    "replay.stray_router": {
        "ANY /{target:path}": Permission.READ,
    },
}
"""All routes with what each asks for, by where they are declared: a file of `api/routes`, and a router in it.

A test holds the rows against the routes.
"""
PERMISSIONS: Final = {
    row: asked for rows in ROUTES.values() for row, asked in rows.items() if not row.startswith("HEAD ")
}
"""What each route asks for."""
COMPARE_LIVE: Final = ("GET", "/api/snapshots/{id}/compare-live")
SEEDING: Final = frozenset(
    {
        "POST /api/admin/crawls",
        "POST /api/frontier/add",
        "POST /api/frontier/seed",
        "POST /api/frontier/requeue",
        "POST /api/v1/executions/{id}/requeue",
        "POST /api/v1/discovered-links/{id}/create-job",
        "POST /api/internal/v1/fetch",
        "POST /api/v1/fetch",
        "POST /api/v1/sources/survey",
        "POST /api/v1/frontier",
        "POST /api/v1/frontier/submit",
    }
)
"""The rows by which addresses come into a frontier, up to ten thousand with one request; they have their own rate."""


def permission_of(method: str, path: str) -> Permission:
    """Return what a route asks for, by its declared path; KeyError if it has no row."""
    asked = "GET" if method == "HEAD" else method
    return PERMISSIONS.get(f"{asked} {path}") or PERMISSIONS[f"ANY {path}"]


def permission_here(method: str, path: str, settings: Settings) -> Permission:
    """Return what a route asks for in this installation: `api.compare_live` opens the live comparison to everybody."""
    if settings.api.compare_live and (method, path) == COMPARE_LIVE:
        return Permission.READ
    return permission_of(method, path)


def principal_of(scope: Scope) -> Principal:
    """Return who asks; `api.middleware.identity` has put it there."""
    found: Principal = scope.get("state", {}).get("principal", ANONYMOUS)
    return found


def credential_error(scope: Scope) -> Unauthenticated | None:
    """Return what is wrong with the credential that a request shows, None if nothing is."""
    found: Unauthenticated | None = scope.get("state", {}).get("credential_error")
    return found


async def _principal(request: Request) -> Principal:
    return principal_of(request.scope)


PrincipalDep = Annotated[Principal, Depends(_principal)]
"""Who asks."""


async def check_permission(request: Request) -> None:
    """Let in who has the permission of the route that was found.

    Unauthenticated without an identity or with a wrong one, RoleTooLow for one that has not the permission, and
    CrossSiteRefused for a change that a page of another site had a browser send.
    """
    scope = request.scope
    settings: Settings = request.app.state.archive.settings
    permission = permission_here(request.method, scope["route"].path, settings)
    principal = principal_of(scope)
    # A strict environment closes what it cannot guard.
    is_guarded = settings.api.admin_token is not None or not settings.api.strict
    if not is_guarded and permission is not Permission.READ and principal.way is SignInWay.ANONYMOUS:
        raise AdminTokenMissing
    if (wrong := credential_error(scope)) is not None:
        raise wrong
    if not principal.may(permission):
        if principal.way is SignInWay.ANONYMOUS:
            raise Unauthenticated
        raise RoleTooLow(permission.value)
    if request.method not in SAFE_METHODS and principal.way is SignInWay.SESSION:
        _demand_same_site(request, settings, permission)


SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
FORM_PATHS: Final = frozenset(
    {"/account/password", "/account/sessions", "/account/tokens", "/account/tokens/revoke", "/signout"}
)
"""Where a page of ours sends a form: the token stands in a field of it, which the route looks at."""


def _demand_same_site(request: Request, settings: Settings, permission: Permission) -> None:
    """Refuse a change with a session that a page of another site may have had a browser send."""
    origin = request.headers.get("origin")
    is_own = origin is not None and is_own_origin(origin, request.scope, settings)
    shown = request.headers.get("x-csrf-token", "")
    is_form = request.url.path in FORM_PATHS or permission is Permission.READ
    if not is_own or not (is_form or is_same(shown, request.scope["state"]["csrf_token"])):
        raise CrossSiteRefused


class PathPermissions:
    """Tells what a path asks for before its route is found: for limits and for pages of other origins."""

    def __init__(self, table: RouteTable, settings: Settings) -> None:
        self._table, self._settings = table, settings

    def asked(self, method: str, path: str) -> Permission | None:
        """Return the permission that the route of a path requires here; None if no route matches."""
        row = self._row(method, path)
        return None if row is None else permission_here(*row, self._settings)

    def is_seeding(self, method: str, path: str) -> bool:
        """Return whether the route of a path takes addresses into a frontier."""
        row = self._row(method, path)
        return row is not None and f"{row[0]} {row[1]}" in SEEDING

    def _row(self, method: str, path: str) -> tuple[str, str] | None:
        """Return the method and the declared path of the route that a request is for; None if there is none."""
        found = [route for route in self._table.candidates(path) if route.path_regex.match(path)]
        taken = "GET" if method == "HEAD" else method
        for route in found:
            if taken in (route.methods or ()):
                return taken, route.path
        return (sorted(found[0].methods or ())[0], found[0].path) if found else None


def demand_permissions(routes: Iterable[BaseRoute]) -> None:
    """Refuse, with RuntimeError, a table of routes in which one has no row."""
    for route in routes:
        path: Any = getattr(route, "path", route)
        for method in getattr(route, "methods", None) or ("ANY",):
            try:
                permission_of(method, path)
            except KeyError:
                raise RuntimeError(f"{method} {path} has no row in api/permissions.py") from None
