"""The installation for operators: processes, settings, storage, the index, and starting and stopping crawls."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from holdfast.api.dependencies import AdminWriteDep, ArchiveDep, FrontierDep, SessionDep, WriteTurnsDep
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import MAX_ID, RequestForm, Words
from holdfast.api.schemas.lists import (
    DEFAULT_LIMIT,
    ListCursor,
    ListLimit,
    Piece,
    decode_cursor,
    decode_id,
    encode_cursor,
    piece_of,
)
from holdfast.api.schemas.source_config import SourceConfiguration
from holdfast.auth.roles import Permission
from holdfast.config import Settings
from holdfast.config.showing import SettingOrigin, SettingRecord, settings_in_force
from holdfast.crawl.stopping import StopReceipt, stop_execution
from holdfast.db.audit_events import acting
from holdfast.db.models import Owner
from holdfast.db.raw import sqlite_path
from holdfast.index.leases import latest_runs
from holdfast.index.stored_files import (
    BrokenFile,
    DayBytes,
    FileIndexing,
    IndexState,
    SourceBytes,
    broken_files,
    files_by_index_state,
    kept_by_source,
    sealed_by_day,
)
from holdfast.jobs.administration.adhoc_crawls import StartedCrawl, begin_crawl
from holdfast.jobs.administration.run_pausing import PausedRun, pause_run, resume_run
from holdfast.jobs.kinds import OperationKind
from holdfast.jobs.views import processes
from holdfast.jobs.views.processes import ProcessKind, ProcessRecord
from holdfast.operations.queries import OperationRow, latest_of_kinds, outstanding_bytes
from holdfast.operations.records import OperationRecord, operation_record
from holdfast.operations.stores import CleanReceipt, CleanTarget, StoreSizes, clean, weigh
from holdfast.operations.uploads import uploads_folder
from holdfast.processes.disk import is_low
from holdfast.processes.owners import GONE, OwnerRow, OwnerState, judged
from holdfast.processes.runfile import parsed_attempts
from holdfast.records import Operator, from_row, record
from holdfast.search import queries as search_queries
from holdfast.search.directory import IndexDirectory
from holdfast.storage.store import captures_folder
from holdfast.wiring import open_runtime


@record
class VolumeRecord:
    """A disk that holds part of the archive."""

    holds: Operator[list[str]]
    """Contents: home, warcs, database, uploads."""
    total_bytes: Operator[int]
    free_bytes: Operator[int]
    is_low: Operator[bool]
    """Whether less is free than HOLDFAST_DISK_FREE_BYTES and HOLDFAST_DISK_FREE_PERCENT require."""


@record
class StorageState:
    """Disk space and its use."""

    volumes: Operator[list[VolumeRecord]]
    sources: Operator[list[SourceBytes]]
    """Largest first."""
    warc_files: Operator[int]
    warc_bytes: Operator[int]
    growth: Operator[list[DayBytes]]
    """By day, oldest first; days without sealed files are omitted."""
    uploads_outstanding_bytes: Operator[int]
    """Bytes of open uploads still to be received."""
    last_verification: Operator[OperationRecord | None]


@record
class SearchIndexState:
    """State of the search index."""

    exists: Operator[bool]
    generation: Operator[str | None]
    waiting: Operator[int]
    """Changes not yet in the index, counted up to 10,000."""
    oldest_waiting_at: Operator[datetime | None]
    last_rebuild: Operator[OperationRecord | None]


@record
class IndexOverview:
    """Indexing progress of the archive."""

    files: Operator[dict[IndexState, int]]
    """Sealed WARC files by state; always all four states."""
    reading: Operator[list[FileIndexing]]
    last_rebuild: Operator[OperationRecord | None]
    search: Operator[SearchIndexState]


router = LazyRouter(prefix="/api/admin", tags=["operations"])
_DOMAINS = 10
_READING = 20


@router.get("/workers", Permission.WATCH)
def list_workers(
    archive: ArchiveDep,
    session: SessionDep,
    kind: Annotated[ProcessKind | None, Query(description="Only these.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Piece[ProcessRecord]:
    """Return the running processes of all machines by id, each with its execution and current pages."""
    after = decode_id(cursor) or 0
    rows = [row for row in processes.open_owners(session) if row.id > after]
    if kind is not None:
        rows = [row for row in rows if _kind(row.kind) is kind]
    rest = encode_cursor(rows[limit - 1].id) if len(rows) > limit else None
    shown = rows[:limit]
    folder, now = archive.home.resolve() / "run", archive.now(session)
    seen = {row.id: judged(_owner(row), folder, silent_since=now - GONE) for row in shown}
    attempts = {row.id: parsed_attempts(seen[row.id].run_path) for row in shown}
    urls = processes.addresses_of(session, {one for found in attempts.values() for one in found})
    held = processes.held_executions(session)
    own = {row.id: [row.execution_id] if row.execution_id else held.get(row.id, []) for row in shown}
    runs = processes.executions_at_work(session, {one for found in own.values() for one in found})
    items = [
        from_row(
            ProcessRecord,
            row,
            name=seen[row.id].name,
            kind=_kind(row.kind),
            is_alive=seen[row.id].state is OwnerState.ALIVE and not seen[row.id].is_silent,
            age_seconds=_seconds(now, row.started_at),
            silent_seconds=_seconds(now, row.heartbeat_at),
            executions=[runs[one] for one in own[row.id] if one in runs],
            domains=processes.domains_held(session, row.id, limit=_DOMAINS),
            urls=[urls[one] for one in attempts[row.id] if one in urls],
        )
        for row in shown
    ]
    return Piece(items=items, next=rest, limit=limit)


def _kind(word: str) -> ProcessKind:
    return ProcessKind(word) if word in ProcessKind._value2member_map_ else ProcessKind.OTHER


def _seconds(now: datetime, since: datetime) -> float:
    return round(max(0.0, (now - since).total_seconds()), 3)


def _owner(row: Owner) -> OwnerRow:
    return from_row(OwnerRow, row, run_path=FilePath(row.run_file), state=OwnerState.ALIVE, is_silent=False)


@router.get("/settings", Permission.ADMINISTER)
def list_settings(
    archive: ArchiveDep,
    search: Annotated[Words | None, Query(description="A part of a name or of its description.")] = None,
    origin: Annotated[SettingOrigin | None, Query(description="Only those that were set there.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = 500,
) -> Piece[SettingRecord]:
    """Return this process's settings and where each was set; secrets are masked."""
    place = decode_cursor(cursor, str)
    after, wanted = str(place[0]) if place else "", (search or "").lower()
    found = [
        one
        for one in sorted(settings_in_force(archive.settings), key=lambda one: one.name)
        if one.name > after and wanted in f"{one.name} {one.description}".lower()
    ]
    return piece_of(
        [one for one in found if origin in (None, one.origin)], limit, lambda one: one, lambda one: one.name
    )


@router.get("/storage-state", Permission.WATCH)
def get_storage_state(archive: ArchiveDep, session: SessionDep) -> StorageState:
    """Return the free space, the size of the stores, and the result of the last verification."""
    kept = kept_by_source(session)
    verified = latest_of_kinds(session, [OperationKind.VERIFY.value]).get(OperationKind.VERIFY.value)
    return StorageState(
        volumes=_volumes(archive.settings),
        sources=kept,
        warc_files=sum(one.files for one in kept),
        warc_bytes=sum(one.bytes for one in kept),
        growth=sealed_by_day(session),
        uploads_outstanding_bytes=outstanding_bytes(session),
        last_verification=_operation(verified),
    )


def _operation(row: OperationRow | None) -> OperationRecord | None:
    return None if row is None else operation_record(row)


def _volumes(settings: Settings) -> list[VolumeRecord]:
    places = {"home": settings.home, "warcs": captures_folder(settings.home), "uploads": uploads_folder(settings.home)}
    database = sqlite_path(settings.database)
    if database is not None:
        places["database"] = database.parent
    found: dict[int, tuple[FilePath, list[str]]] = {}
    for name, folder in places.items():
        try:
            found.setdefault(folder.stat().st_dev, (folder, []))[1].append(name)
        except OSError:
            # The folder does not exist yet, or its storage is unavailable.
            continue
    shown = []
    for folder, names in found.values():
        disk = os.statvfs(folder)
        shown.append(
            VolumeRecord(
                holds=names,
                total_bytes=disk.f_blocks * disk.f_frsize,
                free_bytes=disk.f_bavail * disk.f_frsize,
                is_low=is_low(folder, settings.disk),
            )
        )
    return shown


@router.get("/index", Permission.WATCH)
def get_index_state(archive: ArchiveDep, session: SessionDep) -> IndexOverview:
    """Return the number of files to index, the ones being indexed, and the state of the search index."""
    counts = files_by_index_state(session)
    kinds = (OperationKind.REBUILD_INDEX.value, OperationKind.REBUILD_SEARCH.value)
    rebuilt = latest_of_kinds(session, kinds)
    directory = IndexDirectory(archive.home)
    exists = directory.exists()
    return IndexOverview(
        files={word: counts.get(word.value, 0) for word in IndexState},
        reading=[
            from_row(FileIndexing, run, file=file.id, name=file.file_key.name, source=code)
            for run, file, code in latest_runs(session, limit=_READING)
            if run.finished_at is None
        ],
        last_rebuild=_operation(rebuilt.get(kinds[0])),
        search=SearchIndexState(
            exists=exists,
            generation=directory.current().name if exists else None,
            waiting=search_queries.waiting_count(session),
            oldest_waiting_at=search_queries.oldest_waiting(session),
            last_rebuild=_operation(rebuilt.get(kinds[1])),
        ),
    )


@router.get("/index/broken-files", Permission.WATCH)
def list_broken_files(
    session: SessionDep, cursor: ListCursor = None, limit: ListLimit = DEFAULT_LIMIT
) -> Piece[BrokenFile]:
    """Return sealed files that could not be indexed, by id, with the error."""
    rows = broken_files(session, after=decode_id(cursor) or 0, limit=limit + 1)
    return piece_of(rows, limit, lambda row: row, lambda row: row.file)


class CrawlForm(RequestForm, example={"urls": ["https://example.org/"], "config": {"max_depth": 2, "max_pages": 100}}):
    """A one-time crawl."""

    urls: list[str] = Field(min_length=1, max_length=1000, description="Start URLs.")
    source: str | None = Field(
        None, max_length=64, description="A source's code; by default the first host's source, created if missing."
    )
    name: str | None = Field(None, max_length=200, description="Name of a source that is created; its host by default.")
    config: SourceConfiguration = Field(
        default_factory=dict, description="Settings that differ from the source's; seeds are `urls`."
    )


@router.post("/crawls", Permission.OPERATE, errors=(404, 409, 413, 415), status_code=202, is_seeding=True)
def start_crawl(admin: AdminWriteDep, archive: ArchiveDep, response: Response, form: CrawlForm) -> StartedCrawl:
    """Crawl URLs once, as soon as a worker is free; without a source, their host's is used or created."""
    service = admin.job_service
    with admin.write() as session:
        started = begin_crawl(session, service.clock, service.actions, archive.settings, **form.model_dump())
    response.headers["Location"] = f"/api/v1/jobs/{started.job_id}"
    return started


class CrawlPauseForm(RequestForm, example={"execution": 12}):
    """The execution to pause or resume."""

    execution: int = Field(ge=0, le=MAX_ID, description="The execution.")


@router.post("/crawls/pause", Permission.OPERATE, errors=(404, 409, 413, 415))
def pause_crawl(admin: AdminWriteDep, form: CrawlPauseForm) -> PausedRun:
    """Pause an execution until it is resumed: running requests finish and are stored, then no more are sent.

    It takes effect within a second. The time limit is suspended meanwhile, and the execution can be stopped as
    usual. A paused execution stays paused; to hold back the next runs of a job, use `POST /api/v1/jobs/{id}/pause`.
    """
    with admin.write() as session:
        return pause_run(session, admin.clock, form.execution)


@router.post("/crawls/resume", Permission.OPERATE, errors=(404, 409, 413, 415))
def resume_crawl(admin: AdminWriteDep, form: CrawlPauseForm) -> PausedRun:
    """Resume a paused execution; one that is not paused is not changed.

    A stopped execution has ended: the next run of its job continues with what it left, as soon as a worker is free.
    """
    with admin.write() as session:
        return resume_run(session, admin.clock, form.execution)


class CrawlStopForm(RequestForm, example={"execution": 12}):
    """The execution to stop, and whether to preserve its captures."""

    execution: int = Field(ge=0, le=MAX_ID, description="The execution.")
    discard: bool = Field(False, description="Discard its captures; otherwise it drains and is sealed.")


@router.post("/crawls/stop", Permission.OPERATE, errors=(404, 409, 413, 415), status_code=202)
def stop_crawl(archive: ArchiveDep, turns: WriteTurnsDep, form: CrawlStopForm) -> StopReceipt:
    """Stop an execution: it drains and is sealed, or is discarded; `held` lists what has not ended yet.

    404 for an unknown execution; 409 if it has not started, or has ended.
    """
    # Do not hold the write permit: discarding a run that no process holds may take minutes, in short transactions.
    with acting(turns.actor):
        return stop_execution(archive.settings, form.execution, discard=form.discard)


storage_router = LazyRouter(prefix="/api/admin", tags=["admin"])


@storage_router.get("/storage", Permission.WATCH)
def storage_report(archive: ArchiveDep) -> StoreSizes:
    """Return the size of database, WARC files, search index and caches, and the free space of the disk."""
    return weigh(archive.database, archive.home)


class CleanForm(RequestForm):
    """Parts of the storage to remove."""

    targets: Annotated[list[Annotated[CleanTarget, Field(strict=False)]], Field(min_length=1, max_length=10)] = Field(
        default_factory=lambda: list(CleanTarget), description="All of them by default."
    )
    apply: bool = Field(default=False, description="Remove them; otherwise only list them.")


@storage_router.post("/cleanup", Permission.OPERATE)
def clean_storage(archive: ArchiveDep, frontier: FrontierDep, form: CleanForm) -> CleanReceipt:
    """Remove caches and leftovers of tools; a dry run unless `apply` is true. Captures are never removed."""
    # Use a separate connection: large folders take longer than a change to the frontier should wait.
    with acting(frontier.actor), open_runtime(archive.settings) as runtime:
        return clean(runtime, archive.database, form.targets, apply=form.apply)
