"""The figures of running crawls for a node exporter, written whole or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

from holdfast.archive_tool.files import write_whole
from holdfast.errors import Unavailable
from holdfast.jobs.listing.queries import admin_counts, cleanup_counts
from holdfast.metrics import CrawlFigure, CrawlFigures, WarcCheckFigures, textfile
from holdfast.wiring.jobs import Jobs
from holdfast.worker.care.sights import RunSight, see_all


def read_figures(jobs: Jobs) -> CrawlFigures:
    """Return what is to be told of this installation now."""
    now = jobs.clock.now()
    with jobs.database.read() as session:
        counts, cleanups = admin_counts(session), cleanup_counts(session)
    sights = see_all(jobs)
    return CrawlFigures(
        [_figure(sight, jobs.settings.recovery.stalled_s) for sight in sights], jobs=counts, cleanups=cleanups,
        free_bytes=shutil.disk_usage(jobs.settings.home).free, written_at=now.timestamp(),
    )  # fmt: skip


def _figure(sight: RunSight, stalled_s: float) -> CrawlFigure:
    return CrawlFigure(
        job=sight.run.job.id, source=sight.run.source.code, stalled=sight.sight.idle_s >= stalled_s,
        progress_age_s=sight.sight.idle_s, pages_per_minute=sight.sight.pages_per_minute, state_ok=sight.state_ok,
        restarts=sight.restarts, errors=sight.errors,
    )  # fmt: skip


def write_textfile(path: Path, figures: CrawlFigures | WarcCheckFigures) -> bytes:
    """Put the text in place and return it; a scraper sees the old file or the new one. Unavailable if it cannot be."""
    data = textfile(figures)
    try:
        write_whole(path, data)
    except OSError as exc:
        raise Unavailable(f"cannot write {path}: {exc.strerror}; choose another place with --out") from exc
    return data
