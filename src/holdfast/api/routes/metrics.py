"""`/metrics` for Prometheus: what the archive holds and how it serves; only with the admin token."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter, Response

from holdfast.api import queries
from holdfast.api.deps import MetricsDep, SessionDep, TotalsDep
from holdfast.api.errors import answers
from holdfast.api.roles import ADMIN
from holdfast.jobs.listing.queries import admin_counts, cleanup_counts, settled_pages
from holdfast.metrics import ArchiveFigures, exposition

router = APIRouter(tags=["admin"], dependencies=[ADMIN])
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/plain": {"example": "holdfast_snapshots_total 26.0\n"}},
        "description": "Text format 0.0.4.",
    }
}


@router.get("/metrics", response_class=Response, responses=_TEXT | answers(403, 500, 503))
def metrics(session: SessionDep, totals: TotalsDep, server: MetricsDep) -> Response:
    """Return the names of HA-085 under our prefix, and this process's own counts."""
    found = totals.read(session)
    crawled, failed = Counter[str](), Counter[str]()
    for code, counts in queries.counts_by_source(session):
        crawled[code] += counts.get("pages", 0)
        failed[code] += queries.failures_of(counts)
    for code, done, missed in settled_pages(session):
        crawled[code] += done
        failed[code] += missed
    figures = ArchiveFigures(
        jobs={"status": admin_counts(session), "cleanup_status": cleanup_counts(session)},
        snapshots={source.code: source.snapshots for source in found.sources},
        pages=found.pages, crawled=crawled, failed=failed, warc_bytes=queries.warc_bytes(session),
    )  # fmt: skip
    return Response(exposition(server, figures), media_type="text/plain; version=0.0.4; charset=utf-8")
