"""`/metrics` for Prometheus: what the archive holds and how it serves; only with the admin token."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from holdfast.api.deps import MetricsDep, SessionDep, TotalsDep, WorkDep
from holdfast.api.errors import answers
from holdfast.api.roles import ADMIN
from holdfast.metrics import ArchiveFigures, exposition

router = APIRouter(tags=["admin"], dependencies=[ADMIN])
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/plain": {"example": "holdfast_snapshots_total 26.0\n"}},
        "description": "Text format 0.0.4.",
    }
}


@router.get("/metrics", response_class=Response, responses=_TEXT | answers(403, 500, 503))
def metrics(session: SessionDep, totals: TotalsDep, work: WorkDep, server: MetricsDep) -> Response:
    """Return the names of HA-085 under our prefix, and this process's own counts; what takes long is counted beside."""
    found, done = totals.read(session), work.read(session)
    figures = ArchiveFigures(
        jobs={"status": done.jobs, "cleanup_status": done.cleanups},
        snapshots={source.code: source.snapshots for source in found.sources},
        pages=found.pages, crawled=done.crawled, failed=done.failed, warc_bytes=done.warc_bytes,
    )  # fmt: skip
    return Response(exposition(server, figures), media_type="text/plain; version=0.0.4; charset=utf-8")
