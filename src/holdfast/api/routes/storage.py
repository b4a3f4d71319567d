"""`/api/admin/storage`: the size of each store, and clean-ups."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.api.dependencies import ArchiveDep
from holdfast.api.job_dependencies import FrontierDep
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RequestForm
from holdfast.auth.roles import Permission
from holdfast.db.audit_events import acting
from holdfast.operations.stores import CleanReceipt, CleanTarget, StoreSizes, clean, weigh
from holdfast.wiring import open_runtime

router = LazyRouter(tags=["admin"])


@router.get("/api/admin/storage", Permission.WATCH)
def storage_report(archive: ArchiveDep) -> StoreSizes:
    """Return the size of database, WARC files, search index and caches, and the free space of the disk."""
    return weigh(archive.database, archive.home)


class CleanForm(RequestForm):
    """Parts of the storage to remove."""

    targets: Annotated[list[Annotated[CleanTarget, Field(strict=False)]], Field(min_length=1, max_length=10)] = Field(
        default_factory=lambda: list(CleanTarget), description="All of them by default."
    )
    apply: bool = Field(default=False, description="Remove them; otherwise only list them.")


@router.post("/api/admin/cleanup", Permission.OPERATE)
def clean_storage(archive: ArchiveDep, frontier: FrontierDep, form: CleanForm) -> CleanReceipt:
    """Remove caches and leftovers of tools; a dry run unless `apply` is true. Captures are never removed."""
    # Its own connection: large folders take longer than a change to the frontier should wait.
    with acting(frontier.actor), open_runtime(archive.settings) as runtime:
        return clean(runtime, archive.database, form.targets, apply=form.apply)
