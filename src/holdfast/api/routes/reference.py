"""The OpenAPI document and a page of it; neither exists in a strict environment (A24)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse

from holdfast.api.deps import ArchiveDep
from holdfast.api.reference import reference_page
from holdfast.api.roles import PUBLIC
from holdfast.errors import NotFound
from holdfast.wiring.archive import Archive

router = APIRouter(tags=["reference"], dependencies=[PUBLIC], include_in_schema=False)


@router.get("/api/openapi.json", name="openapi_below_api")
@router.get("/openapi.json")
def openapi(request: Request, archive: ArchiveDep) -> JSONResponse:
    """Return the OpenAPI document."""
    return JSONResponse(_document(request, archive))


@router.get("/docs")
def docs(request: Request, archive: ArchiveDep) -> HTMLResponse:
    """Return the routes as a page; it loads nothing from elsewhere and runs no script."""
    return HTMLResponse(reference_page(_document(request, archive)))


def _document(request: Request, archive: Archive) -> dict[str, Any]:
    if archive.settings.api.strict:
        raise NotFound("the reference is not served here; docs/api.md has it")
    document: dict[str, Any] = request.app.openapi()
    return document
