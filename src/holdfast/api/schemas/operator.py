"""What operators see of the machine behind the archive: processes, settings, storage, the index; and crawls by hand."""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import MAX_ID, Answer, RequestForm
from holdfast.api.schemas.operations import OperationShown
from holdfast.api.schemas.source_config import SourceConfiguration
from holdfast.editions.campaign import PlanStep
from holdfast.jobs.administration.run_pausing import PausedRun
from holdfast.jobs.states import State


class ProcessKind(StrEnum):
    """What a process does."""

    WORKER = "worker"
    RUNNER = "runner"
    SCHEDULER = "scheduler"
    SUPERVISOR = "supervisor"
    PROCESS = "process"
    INDEXER = "indexer"
    VISITOR = "visitor"
    OTHER = "other"


class ExecutionHeld(Answer):
    """A run that a process works on."""

    id: int
    job_id: int
    source: str
    state: str


class WorkerShown(Answer):
    """A process that lives, and what it is at."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": 12,
                    "name": "archive-1/12",
                    "kind": "process",
                    "host": "archive-1",
                    "pid": 4711,
                    "isAlive": True,
                    "startedAt": "2026-11-15T12:15:00Z",
                    "heartbeatAt": "2026-11-15T12:16:58Z",
                    "ageSeconds": 120.0,
                    "silentSeconds": 2.0,
                    "executions": [{"id": 12, "jobId": 1, "source": "example", "state": "running"}],
                    "domains": ["example.org"],
                    "urls": ["https://example.org/large"],
                }
            ]
        }
    )

    id: int
    name: str = Field(description="As it stands on the locks of jobs.")
    kind: ProcessKind
    host: str
    pid: int
    is_alive: bool = Field(description="Whether its lock is held, or it was heard of within two minutes.")
    started_at: datetime
    heartbeat_at: datetime
    age_seconds: float
    silent_seconds: float = Field(description="Since it was last heard of.")
    executions: list[ExecutionHeld]
    domains: list[str] = Field(description="Domains that it asks now, the first few.")
    urls: list[str] = Field(description="Pages that it reads at this moment, if it runs on this machine.")


class SettingOrigin(StrEnum):
    """Where a setting was set."""

    DEFAULT = "default"
    FILE = "file"
    DOTENV = "dotenv"
    ENVIRONMENT = "environment"
    COMMAND = "command"


class SettingShown(Answer):
    """A setting in force."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "HOLDFAST_LEASE_SECONDS",
                    "value": 60.0,
                    "origin": "default",
                    "isSecret": False,
                    "description": "How long a domain's lease lasts without renewal.",
                }
            ]
        }
    )

    name: str = Field(description="The variable that sets it.")
    value: bool | int | float | str | None = Field(description="Secrets are masked.")
    origin: SettingOrigin
    is_secret: bool
    description: str


class Volume(Answer):
    """A disk that something of the archive lies on."""

    holds: list[str] = Field(description="home, warcs, database, uploads.")
    total_bytes: int
    free_bytes: int
    is_low: bool = Field(description="Less is free than HOLDFAST_DISK_FREE_BYTES and HOLDFAST_DISK_FREE_PERCENT ask.")


class KeptShown(Answer):
    """What is kept of a source."""

    source: str
    files: int
    bytes: int


class SealedShown(Answer):
    """What was sealed on a day."""

    day: date = Field(description="UTC.")
    files: int
    bytes: int


class StorageState(Answer):
    """Room, and what takes it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "volumes": [{"holds": ["home"], "totalBytes": 1000000000, "freeBytes": 500000000, "isLow": False}],
                    "sources": [{"source": "example", "files": 3, "bytes": 1031830}],
                    "warcFiles": 3,
                    "warcBytes": 1031830,
                    "growth": [{"day": "2026-11-15", "files": 3, "bytes": 1031830}],
                    "uploadsOutstandingBytes": 0,
                    "lastVerification": None,
                }
            ]
        }
    )

    volumes: list[Volume]
    sources: list[KeptShown] = Field(description="The largest first.")
    warc_files: int
    warc_bytes: int
    growth: list[SealedShown] = Field(
        description="What was sealed on each day, the first day first; days without anything are left out."
    )
    uploads_outstanding_bytes: int = Field(description="Still to come of open uploads.")
    last_verification: OperationShown | None


class IndexStateWord(StrEnum):
    """How the index stands to a sealed file."""

    PENDING = "pending"
    RUNNING = "running"
    INDEXED = "indexed"
    FAILED = "failed"


class IndexedNow(Answer):
    """A file that is being read."""

    file: int
    name: str
    source: str
    phase: str
    records: int
    pages: int
    bytes_done: int
    bytes_total: int
    started_at: datetime
    progress_at: datetime


class SearchIndexState(Answer):
    """The search index."""

    exists: bool
    generation: str | None
    waiting: int = Field(description="Changes that it has not taken in, counted up to 10,000.")
    oldest_waiting_at: datetime | None
    last_rebuild: OperationShown | None


class IndexOverview(Answer):
    """What of the archive can be found, and what not yet."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "files": {"pending": 1, "running": 0, "indexed": 40, "failed": 0},
                    "reading": [],
                    "lastRebuild": None,
                    "search": {
                        "exists": True,
                        "generation": "g-1",
                        "waiting": 0,
                        "oldestWaitingAt": None,
                        "lastRebuild": None,
                    },
                }
            ]
        }
    )

    files: dict[IndexStateWord, int] = Field(description="Sealed WARC files by state; all four are named.")
    reading: list[IndexedNow]
    last_rebuild: OperationShown | None
    search: SearchIndexState


class BrokenFileShown(Answer):
    """A sealed file that the index could not read."""

    file: int
    name: str
    source: str
    execution_id: int
    error: str | None


class CrawlForm(RequestForm):
    """A crawl that is wanted once."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"urls": ["https://example.org/"], "config": {"max_depth": 2, "max_pages": 100}}]
        }
    )

    urls: list[str] = Field(min_length=1, max_length=1000, description="Where it begins.")
    source: str | None = Field(
        None, max_length=64, description="A source's code; left out, the one of the first host, made if it is new."
    )
    name: str | None = Field(None, max_length=200, description="Of a source that is made; its host if left out.")
    config: SourceConfiguration = Field(
        default_factory=dict, description="What this crawl has otherwise than its source; seeds are `urls`."
    )


class CrawlBegun(Answer):
    """A crawl that waits for a worker."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"jobId": 9, "source": "example-org", "isNewSource": True, "state": "pending"}]}
    )

    job_id: int = Field(description="Watch it at /api/v1/jobs/{id}.")
    source: str
    is_new_source: bool
    state: State


class CrawlStopForm(RequestForm):
    """Which run is to end, and whether what it brought is kept."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"execution": 12}]})

    execution: int = Field(ge=0, le=MAX_ID, description="The run.")
    discard: bool = Field(False, description="Throw away what it has captured; otherwise it drains and is sealed.")


class CrawlPauseForm(RequestForm):
    """Which run is to wait, or to go on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"execution": 12}]})

    execution: int = Field(ge=0, le=MAX_ID, description="The run.")


class CrawlPaused(Answer):
    """How a run stands after it was paused or resumed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "executionId": 12,
                    "pausedAt": "2026-11-15T12:15:03Z",
                    "pausedBy": "ana@example.org",
                    "pausedSeconds": 0.0,
                    "isChanged": True,
                }
            ]
        }
    )

    execution_id: int
    paused_at: datetime | None = Field(description="Since when it waits; null: it goes on.")
    paused_by: str | None
    paused_seconds: float = Field(description="How long it was paused in all, until now.")
    is_changed: bool = Field(description="False if it was so before.")

    @classmethod
    def of(cls, done: PausedRun) -> Self:
        """Return it as it is answered."""
        return cls(
            execution_id=done.execution_id,
            paused_at=done.paused_at,
            paused_by=done.paused_by,
            paused_seconds=round(done.paused_seconds, 1),
            is_changed=done.is_changed,
        )


class CrawlHeld(Answer):
    """A run that was asked to stop and has not ended yet."""

    execution_id: int
    state: str
    holder: str | None = Field(description="The process that is to end it; null: the next worker does.")
    heard_at: datetime | None
    is_silent: bool


class CrawlStopped(Answer):
    """What became of the request."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"executionIds": [12], "held": []}]})

    execution_ids: list[int]
    held: list[CrawlHeld] = Field(description="Those that are still ending.")


class EditionPlanForm(RequestForm):
    """A campaign of a year that is planned, or applied."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"year": 2026, "sources": ["example"]}]})

    year: int = Field(ge=1970, le=9999)
    sources: list[str] = Field(default_factory=list, max_length=1000, description="Codes; all annual ones if empty.")
    shards: bool = Field(
        False, description="Give each seed a shard of its own where the report shows gaps, instead of yearly crawls."
    )
    max_create: int | None = Field(None, ge=0, le=100_000, description="Jobs to make at most.")
    apply: bool = Field(False, description="Make the jobs; otherwise only say what would be made.")


class EditionPlanEntry(Answer):
    """One source, or one shard of it."""

    source: str
    action: PlanStep
    reason: str | None
    name: str | None
    shard_key: str | None
    seed: str | None
    queued_at: datetime | None
    job_id: int | None
    notes: list[str]


class EditionPlanShown(Answer):
    """What a campaign makes, or would make."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"year": 2026, "applied": False, "created": 0, "errors": 0, "entries": []}]}
    )

    year: int
    applied: bool
    created: int
    errors: int = Field(description="What keeps the plan from being applied at all.")
    entries: list[EditionPlanEntry]


class ShardDecisionForm(RequestForm):
    """What is decided about a shard."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"state": "excluded", "reason": "replaced on 2 March"}]})

    state: Literal["accepted", "accepted_gap", "excluded", "pending"] = Field(description="`pending` undoes it.")
    reason: str = Field(min_length=3, max_length=2000, description="Why; the report shows it.")


class PageDecisionForm(RequestForm):
    """What is decided about one address of an edition."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"url": "https://example.org/old", "state": "accepted", "reason": "gone"}]}
    )

    url: str = Field(max_length=8192, description="The address, as the ledger has it.")
    state: Literal["accepted", "excluded", "pending"] = Field(description="`pending` undoes it.")
    reason: str = Field(min_length=3, max_length=2000, description="Why; the ledger shows it.")


class FreezeForm(RequestForm):
    """How an edition is frozen."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"again": False}]})

    again: bool = Field(False, description="Freeze it anew; the earlier list is kept.")


class EditionVerifyForm(RequestForm):
    """How closely a frozen edition is verified."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"quick": True}]})

    quick: bool = Field(False, description="Look at the sizes of WARC files, do not read them.")


class CompareEditionsForm(RequestForm):
    """Which edition an edition is compared with."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"earlierYear": 2025}]})

    earlier_year: int = Field(ge=1970, le=9999, alias="earlierYear", description="Of the same source.")


def setting_origin(name: str) -> SettingOrigin:
    """Return the word for where a setting was set."""
    known: dict[str, Any] = {one.value: one for one in SettingOrigin if one is not SettingOrigin.FILE}
    return SettingOrigin.DOTENV if name == ".env" else known.get(name, SettingOrigin.FILE)
