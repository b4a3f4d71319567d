"""`/api/admin/storage`: what each store takes, and the removal of what may go."""

from __future__ import annotations

from holdfast.api.dependencies import ArchiveDep
from holdfast.api.errors import answers
from holdfast.api.job_dependencies import FrontierDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.schemas.crawler import CleanForm, CleanReceipt, StorageShown
from holdfast.db.audit_events import acting
from holdfast.operations.stores import clean, weigh
from holdfast.wiring import open_runtime

router = LateRouter(tags=["admin"])


@router.get("/api/admin/storage", responses=answers(403, 503))
def storage_report(archive: ArchiveDep) -> StorageShown:
    """Return what database, WARC files, search index and caches take, and how much room the disk has."""
    return StorageShown.of(weigh(archive.database, archive.home))


@router.post("/api/admin/cleanup", responses=answers(403, 422, 503))
def clean_storage(archive: ArchiveDep, frontier: FrontierDep, form: CleanForm) -> CleanReceipt:
    """Remove what can be made anew and what tools left behind; a dry run unless `apply` is true. No capture goes."""
    # A connection of its own: large folders take longer than a change to the frontier should wait.
    with acting(frontier.actor), open_runtime(archive.settings) as runtime:
        found = clean(runtime, archive.database, form.targets, apply=form.apply)
    return CleanReceipt.of(found, applied=form.apply)
