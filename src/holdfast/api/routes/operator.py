"""What operators ask of the machine behind the archive: processes, settings, storage, the index; crawls by hand."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import Query, Response

from holdfast.api import operator_queries
from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.errors import answers
from holdfast.api.job_dependencies import AdminWriteDep, WriteTurnsDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.schemas.base import Words
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, Listed, ListLimit, decode_cursor, encode_cursor
from holdfast.api.schemas.operations import OperationShown
from holdfast.api.schemas.operator import (
    BrokenFileShown,
    CrawlBegun,
    CrawlForm,
    CrawlHeld,
    CrawlPaused,
    CrawlPauseForm,
    CrawlStopForm,
    CrawlStopped,
    ExecutionHeld,
    IndexedNow,
    IndexOverview,
    IndexStateWord,
    KeptShown,
    ProcessKind,
    SealedShown,
    SearchIndexState,
    SettingOrigin,
    SettingShown,
    StorageState,
    Volume,
    WorkerShown,
    setting_origin,
)
from holdfast.config import Settings
from holdfast.config.showing import settings_in_force
from holdfast.coordination.disk import is_low
from holdfast.coordination.owners import GONE, OwnerRow, OwnerState, judged
from holdfast.coordination.runfile import parsed_attempts
from holdfast.db.audit_events import acting
from holdfast.db.models import Operation, Owner
from holdfast.db.raw import sqlite_path
from holdfast.index.leases import latest_runs
from holdfast.jobs.administration.adhoc_crawls import CrawlWish, begin_crawl
from holdfast.jobs.administration.run_pausing import pause_run, resume_run
from holdfast.jobs.states import state_of
from holdfast.operations.crawl_stopping import stop_execution
from holdfast.operations.long_running import OperationKind
from holdfast.operations.operation_queries import latest_of_kinds
from holdfast.operations.upload_queries import outstanding_bytes
from holdfast.operations.uploads import uploads_folder
from holdfast.search import queries as search_queries
from holdfast.search.directory import IndexDirectory

router = LateRouter(prefix="/api/admin", tags=["operations"])
_DOMAINS = 10
_READING = 20


@router.get("/workers", responses=answers(403, 422, 503))
def list_workers(
    archive: ArchiveDep,
    session: SessionDep,
    kind: Annotated[ProcessKind | None, Query(description="Only these.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Listed[WorkerShown]:
    """Return the processes at work on all machines, by id, each with the run and the pages that it is at."""
    place = decode_cursor(cursor, int)
    after = int(place[0]) if place else -1
    rows = [row for row in operator_queries.open_owners(session) if row.id > after]
    if kind is not None:
        rows = [row for row in rows if _kind(row.kind) is kind]
    rest = encode_cursor(rows[limit - 1].id) if len(rows) > limit else None
    shown = rows[:limit]
    folder, now = archive.home.resolve() / "run", archive.now(session)
    seen = {row.id: judged(_owner(row), folder, silent_since=now - GONE) for row in shown}
    attempts = {row.id: parsed_attempts(seen[row.id].run_path) for row in shown}
    urls = operator_queries.addresses_of(session, {one for found in attempts.values() for one in found})
    held = operator_queries.held_executions(session)
    own = {row.id: [row.execution_id] if row.execution_id else held.get(_name(row), []) for row in shown}
    runs = operator_queries.executions_at_work(session, {one for found in own.values() for one in found})
    items = [
        WorkerShown(
            id=row.id,
            name=_name(row),
            kind=_kind(row.kind),
            host=row.host,
            pid=row.pid,
            is_alive=seen[row.id].state is OwnerState.ALIVE and not seen[row.id].is_silent,
            started_at=row.started_at,
            heartbeat_at=row.heartbeat_at,
            age_seconds=_seconds(now, row.started_at),
            silent_seconds=_seconds(now, row.heartbeat_at),
            executions=[
                ExecutionHeld(id=run.execution_id, job_id=run.job_id, source=run.source, state=run.state)
                for one in own[row.id]
                if (run := runs.get(one)) is not None
            ],
            domains=operator_queries.domains_held(session, row.id, limit=_DOMAINS),
            urls=[urls[one] for one in attempts[row.id] if one in urls],
        )
        for row in shown
    ]
    return Listed(items=items, next=rest, limit=limit)


def _name(row: Owner) -> str:
    return f"{row.host}/{row.id}"


def _kind(word: str) -> ProcessKind:
    return ProcessKind(word) if word in ProcessKind._value2member_map_ else ProcessKind.OTHER


def _seconds(now: datetime, since: datetime) -> float:
    return round(max(0.0, (now - since).total_seconds()), 3)


def _owner(row: Owner) -> OwnerRow:
    return OwnerRow(
        id=row.id,
        kind=row.kind,
        host=row.host,
        pid=row.pid,
        run_path=FilePath(row.run_file),
        execution_id=row.execution_id,
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        ended_at=row.ended_at,
    )


@router.get("/settings", responses=answers(403, 422, 503))
def list_settings(
    archive: ArchiveDep,
    search: Annotated[Words | None, Query(description="A part of a name or of what it means.")] = None,
    origin: Annotated[SettingOrigin | None, Query(description="Only those that were set there.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = 500,
) -> Listed[SettingShown]:
    """Return the settings in force in this process and where each was set; secrets are masked."""
    place = decode_cursor(cursor, str)
    after, wanted = str(place[0]) if place else "", (search or "").lower()
    found = [
        SettingShown(
            name=one.name,
            value=one.value,
            origin=setting_origin(one.origin),
            is_secret=one.is_secret,
            description=one.description,
        )
        for one in sorted(settings_in_force(archive.settings))
        if one.name > after and wanted in f"{one.name} {one.description}".lower()
    ]
    found = [one for one in found if origin is None or one.origin is origin]
    rest = encode_cursor(found[limit - 1].name) if len(found) > limit else None
    return Listed(items=found[:limit], next=rest, limit=limit)


@router.get("/storage-state", responses=answers(403, 503))
def get_storage_state(archive: ArchiveDep, session: SessionDep) -> StorageState:
    """Return how much room there is, what takes it, and how the last verification ended."""
    kept = operator_queries.kept_by_source(session)
    verified = latest_of_kinds(session, [OperationKind.VERIFY.value]).get(OperationKind.VERIFY.value)
    return StorageState(
        volumes=_volumes(archive.settings),
        sources=[KeptShown(source=one.source, files=one.files, bytes=one.size) for one in kept],
        warc_files=sum(one.files for one in kept),
        warc_bytes=sum(one.size for one in kept),
        growth=[
            SealedShown(day=one.day, files=one.files, bytes=one.size) for one in operator_queries.sealed_by_day(session)
        ],
        uploads_outstanding_bytes=outstanding_bytes(session),
        last_verification=_operation(verified),
    )


def _operation(row: Operation | None) -> OperationShown | None:
    return None if row is None else OperationShown.of(row)


def _volumes(settings: Settings) -> list[Volume]:
    places = {"home": settings.home, "warcs": settings.home / "warcs", "uploads": uploads_folder(settings.home)}
    database = sqlite_path(settings.database)
    if database is not None:
        places["database"] = database.parent
    found: dict[int, tuple[FilePath, list[str]]] = {}
    for name, folder in places.items():
        try:
            found.setdefault(folder.stat().st_dev, (folder, []))[1].append(name)
        except OSError:
            # Not made yet, or its storage is away.
            continue
    shown = []
    for folder, names in found.values():
        disk = os.statvfs(folder)
        shown.append(
            Volume(
                holds=names,
                total_bytes=disk.f_blocks * disk.f_frsize,
                free_bytes=disk.f_bavail * disk.f_frsize,
                is_low=is_low(folder, settings.disk),
            )
        )
    return shown


@router.get("/index", responses=answers(403, 503))
def get_index_state(archive: ArchiveDep, session: SessionDep) -> IndexOverview:
    """Return how many files wait to be read, what is being read, and whether search has taken all of it in."""
    counts = operator_queries.files_by_index_state(session)
    kinds = (OperationKind.REBUILD_INDEX.value, OperationKind.REBUILD_SEARCH.value)
    rebuilt = latest_of_kinds(session, kinds)
    directory = IndexDirectory(archive.home)
    exists = directory.exists()
    return IndexOverview(
        files={word: counts.get(word.value, 0) for word in IndexStateWord},
        reading=[
            IndexedNow(
                file=file.id,
                name=file.path.rpartition("/")[2],
                source=code,
                phase=run.phase,
                records=run.records,
                pages=run.pages,
                bytes_done=run.bytes_done,
                bytes_total=run.bytes_total,
                started_at=run.started_at,
                progress_at=run.progress_at,
            )
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


@router.get("/index/broken-files", responses=answers(403, 422, 503))
def list_broken_files(
    session: SessionDep, cursor: ListCursor = None, limit: ListLimit = DEFAULT_LIMIT
) -> Listed[BrokenFileShown]:
    """Return sealed files that the index could not read, by id, and why."""
    place = decode_cursor(cursor, int)
    rows = operator_queries.broken_files(session, after=int(place[0]) if place else -1, limit=limit + 1)
    items = [
        BrokenFileShown(
            file=row.id,
            name=row.path.rpartition("/")[2],
            source=row.source,
            execution_id=row.execution_id,
            error=row.error,
        )
        for row in rows[:limit]
    ]
    return Listed(items=items, next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None, limit=limit)


@router.post("/crawls", status_code=202, responses=answers(403, 404, 409, 413, 415, 422, 503))
def start_crawl(admin: AdminWriteDep, archive: ArchiveDep, response: Response, form: CrawlForm) -> CrawlBegun:
    """Crawl addresses once, as soon as a worker is free; a source is made for their host if none is named."""
    service = admin.job_service
    wish = CrawlWish(urls=tuple(form.urls), source=form.source, name=form.name, config=form.config)
    with admin.write() as session:
        job, source, is_new = begin_crawl(session, service.clock, service.actions, wish, archive.settings)
        begun = CrawlBegun(job_id=job.id, source=source.code, is_new_source=is_new, state=state_of(job))
    response.headers["Location"] = f"/api/v1/jobs/{begun.job_id}"
    return begun


@router.post("/crawls/pause", responses=answers(403, 404, 409, 413, 415, 422, 503))
def pause_crawl(admin: AdminWriteDep, form: CrawlPauseForm) -> CrawlPaused:
    """Let a run wait until it is resumed: what is under way is finished and kept, then nothing is asked of its sites.

    It hears of it within a second. Its time limit stands still meanwhile, and it can be stopped as ever. One that is
    paused already stays so; to let the next runs of a job wait is `POST /api/v1/jobs/{id}/pause`.
    """
    with admin.write() as session:
        return CrawlPaused.of(pause_run(session, admin.job_service.clock, form.execution))


@router.post("/crawls/resume", responses=answers(403, 404, 409, 413, 415, 422, 503))
def resume_crawl(admin: AdminWriteDep, form: CrawlPauseForm) -> CrawlPaused:
    """Let a paused run go on where it was; one that is not paused stays as it is.

    One that was stopped is over: the next run of its job goes on with what it left, as soon as a worker is free.
    """
    with admin.write() as session:
        return CrawlPaused.of(resume_run(session, admin.job_service.clock, form.execution))


@router.post("/crawls/stop", status_code=202, responses=answers(403, 404, 409, 413, 415, 422, 503))
def stop_crawl(archive: ArchiveDep, turns: WriteTurnsDep, form: CrawlStopForm) -> CrawlStopped:
    """Ask a run to end: it drains and is sealed, or is thrown away; `held` says what has not ended at once.

    404 if there is no such run; 409 if it has not begun, or has ended.
    """
    # Without the turn to write: to throw away a run that no process holds may take minutes, in short transactions.
    with acting(turns.actor):
        ids, held = stop_execution(archive.settings, form.execution, discard=form.discard)
    return CrawlStopped(
        execution_ids=ids,
        held=[
            CrawlHeld(
                execution_id=one.execution_id,
                state=one.state,
                holder=one.holder,
                heard_at=one.heard_at,
                is_silent=one.is_silent,
            )
            for one in held
        ],
    )
