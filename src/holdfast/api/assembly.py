"""What both applications share: routes with their roles, one body for errors, no documentation of the framework's."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from holdfast import __version__
from holdfast.api import errors
from holdfast.api.roles import Role, demand_roles, roles_of
from holdfast.wiring.archive import Archive

_ANYWHERE = (400, 414, 422, 429, 500, 503)
"""What any route may answer, beside what it says itself."""

_SCHEMES = {
    "adminBearer": {"type": "http", "scheme": "bearer", "description": "HOLDFAST_API_ADMIN_TOKEN."},
    "adminToken": {"type": "apiKey", "in": "header", "name": "X-Admin-Token", "description": "The same."},
}
_LICENCE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}


class _Described(FastAPI):
    """An application whose OpenAPI document also says how to show the admin token."""

    def openapi(self) -> dict[str, Any]:
        """Return the document; made once."""
        document = super().openapi()
        document.setdefault("components", {})["securitySchemes"] = _SCHEMES
        return document


def assemble(title: str, routers: tuple[APIRouter, ...], archive: Archive, **options: Any) -> FastAPI:
    """Return an application with these routes for an open archive; RuntimeError if a route declares no role."""
    demand_roles(routers)
    app = _Described(
        title=title, version=__version__, summary="An archive of websites: search, replay and compare captures.",
        openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False,
        generate_unique_id_function=_operation_id, responses=errors.answers(*_ANYWHERE), license_info=_LICENCE,
        **options,
    )  # fmt: skip
    app.state.archive = archive
    app.state.routes = tuple(route for router in routers for route in router.routes)
    errors.install(app)
    for router in routers:
        _name_roles(router)
        app.include_router(router)
    return app


def _name_roles(router: APIRouter) -> None:
    """Let the OpenAPI document say whom each route is for."""
    for route in router.routes:
        assert isinstance(route, APIRoute)
        role = roles_of(route)[0]
        shown: dict[str, Any] = {"security": [{name: []} for name in _SCHEMES]} if role is Role.ADMIN else {}
        route.openapi_extra = {**(route.openapi_extra or {}), "x-role": role.value, **shown}


def _operation_id(route: APIRoute) -> str:
    return route.name
