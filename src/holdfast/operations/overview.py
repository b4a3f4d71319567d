"""The installation for operators: processes, settings, storage, the index; crawls that they start and stop."""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum

from holdfast.crawl.stopping import StoppingExecution
from holdfast.jobs.states import State
from holdfast.operations.records import OperationRecord
from holdfast.records import Operator, record


class ProcessKind(StrEnum):
    WORKER = "worker"
    RUNNER = "runner"
    SCHEDULER = "scheduler"
    SUPERVISOR = "supervisor"
    PROCESS = "process"
    INDEXER = "indexer"
    VISITOR = "visitor"
    OTHER = "other"


@record
class ActiveExecution:
    """An execution that a process works on."""

    id: Operator[int]
    job_id: Operator[int]
    source: Operator[str]
    state: Operator[str]


@record
class ProcessRecord:
    """A process and its current work."""

    id: Operator[int]
    name: Operator[str]
    """Name in the leases of jobs."""
    kind: Operator[ProcessKind]
    host: Operator[str]
    pid: Operator[int]
    is_alive: Operator[bool]
    """Whether it holds its lock, or sent a heartbeat within two minutes."""
    started_at: Operator[datetime]
    heartbeat_at: Operator[datetime]
    age_seconds: Operator[float]
    silent_seconds: Operator[float]
    """Seconds since its last heartbeat."""
    executions: Operator[list[ActiveExecution]]
    domains: Operator[list[str]]
    """Some of the domains that it has leased."""
    urls: Operator[list[str]]
    """Pages that it is parsing, if it runs on this machine."""


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
class SourceBytes:
    """Sealed WARC files of a source."""

    source: Operator[str]
    files: Operator[int]
    bytes: Operator[int]


@record
class DayBytes:
    """WARC files sealed on a day."""

    day: Operator[date]
    """UTC."""
    files: Operator[int]
    bytes: Operator[int]


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


class IndexState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    INDEXED = "indexed"
    FAILED = "failed"


@record
class FileIndexing:
    """A file that is being indexed."""

    file: Operator[int]
    name: Operator[str]
    source: Operator[str]
    phase: Operator[str]
    records: Operator[int]
    pages: Operator[int]
    bytes_done: Operator[int]
    bytes_total: Operator[int]
    started_at: Operator[datetime]
    progress_at: Operator[datetime]


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


@record
class BrokenFile:
    """A sealed file that could not be indexed."""

    file: Operator[int]
    name: Operator[str]
    source: Operator[str]
    execution_id: Operator[int]
    error: Operator[str | None]


@record
class StartedCrawl:
    """A crawl that waits for a worker."""

    job_id: Operator[int]
    """Watch it at /api/v1/jobs/{id}."""
    source: Operator[str]
    is_new_source: Operator[bool]
    state: Operator[State]


@record
class StopReceipt:
    """Executions that received a stop request."""

    execution_ids: Operator[list[int]]
    held: Operator[list[StoppingExecution]]
    """Executions that have not ended yet."""
