"""What routes of lists and exports share: where this archive is found, which source is meant, which days."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import Query, Request
from sqlalchemy.orm import Session

from holdfast.config import Settings
from holdfast.errors import NotFound
from holdfast.sources.queries import source_by_code

SourceCode = Annotated[str | None, Query(max_length=64, description="A source's code.", examples=["example-org"])]
Since = Annotated[date | None, Query(alias="from", description="First day, UTC.", examples=["2026-01-01"])]
Until = Annotated[date | None, Query(alias="to", description="Last day, UTC.", examples=["2026-12-31"])]


def site_of(request: Request, settings: Settings) -> str:
    """Return what links begin with: the configured site, or the host that was asked."""
    return (settings.api.site_url or str(request.base_url)).rstrip("/")


def source_id_of(session: Session, code: str | None) -> int | None:
    """Return the source that is meant, None if none is named; NotFound if there is none of this code."""
    if not code:
        return None
    found = source_by_code(session, code) if "\x00" not in code else None
    if found is None:
        raise NotFound(f"there is no source {code[:64]!r}; they are listed at /api/sources")
    return found.id
