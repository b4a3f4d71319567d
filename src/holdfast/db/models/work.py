"""Sources, jobs and executions, and the owners that work on them."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, SmallInteger, String, Text, UniqueConstraint, cast, select, text
from sqlalchemy.orm import Mapped, column_property, mapped_column

from holdfast.db.models.base import BigId, Model, partial_index


class Source(Model):
    """A website, or part of one, in the archive."""

    __tablename__ = "sources"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    # SQLite checks no length, and changing one would rewrite the table.
    code: Mapped[str] = mapped_column(String(40).with_variant(String(16), "sqlite"), unique=True)
    name: Mapped[str]
    base_url: Mapped[str | None]
    description: Mapped[str | None]
    enabled: Mapped[bool] = mapped_column(default=True)
    config: Mapped[dict[str, Any]] = mapped_column(default=dict)
    feeds_sought_at: Mapped[datetime | None]
    """When its start page was last searched for feeds."""
    visibility: Mapped[str] = mapped_column(String(8), default="public", server_default=text("'public'"))
    """public, members: access to its captures."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (partial_index("ix_sources_members", "visibility", "id", where="visibility = 'members'"),)


class Owner(Model):
    """A process that may hold leases. Its file lock shows the same machine immediately that it has ended."""

    __tablename__ = "owners"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    host: Mapped[str]
    pid: Mapped[int]
    run_file: Mapped[str]
    execution_id: Mapped[int | None] = mapped_column(ForeignKey("executions.id"))
    started_at: Mapped[datetime]
    heartbeat_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    directory: Mapped[str | None] = mapped_column(String(32))
    """For a worker that runs crawls: the id of its data directory."""

    __table_args__ = (
        partial_index("ix_owners_open", "host", where="ended_at IS NULL"),
        partial_index("ix_owners_directory", "directory", "heartbeat_at", where="directory IS NOT NULL"),
    )


class Job(Model):
    """When and how a source is crawled, or an operation. An ad-hoc crawl is a job of kind `adhoc`."""

    __tablename__ = "jobs"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_id: Mapped[int | None] = mapped_column(ForeignKey("sources.id"), index=True)
    """Null for an operation, which belongs to the whole archive."""
    kind: Mapped[str] = mapped_column(String(16))
    fingerprint: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the fields that identify the job. For an ad-hoc crawl seeds and scope: the same command finds its
    unfinished execution again.
    """
    config: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]
    """A deleted job that has run stays as a row: its executions hold files."""
    name: Mapped[str | None]
    url: Mapped[str | None]
    """The start page: its content decides the adaptive interval."""
    url_given: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether `url` was set explicitly: then it is an additional seed. Otherwise it was the first seed at creation."""
    state: Mapped[str | None] = mapped_column(String(9))
    """One of `jobs.states`; null for jobs outside the scheduler (ad hoc, import), whose execution has the state."""
    interval_minutes: Mapped[int | None]
    """In units of `interval_type`; null runs once."""
    interval_type: Mapped[str] = mapped_column(String(7), server_default="minutes")
    anchor: Mapped[str | None] = mapped_column(String(64))
    """First turn of a schedule at a time of day, as 2026-01-31T03:00[Europe/Paris]; null for other schedules."""
    schedule_enabled: Mapped[bool] = mapped_column(server_default=text("false"))
    adaptive_scheduling: Mapped[bool] = mapped_column(server_default=text("true"))
    next_run_at: Mapped[datetime | None]
    """Set only while the job waits to be queued."""
    due_at: Mapped[datetime | None]
    """The scheduled time of the latest execution."""
    rhythm_at: Mapped[datetime | None]
    """The latest time that the schedule set, possibly in the future; forced runs and retries do not move it."""
    placed_at: Mapped[datetime | None]
    """When a slot was last chosen for it."""
    paused_at: Mapped[datetime | None]
    paused_by: Mapped[str | None] = mapped_column(String(6))
    """`user`, or `source` if its source was disabled."""
    cancelled_at: Mapped[datetime | None]
    lock_token: Mapped[str | None] = mapped_column(String(32))
    lock_epoch: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Incremented with each lease; a write with an older number is rejected."""
    lock_owner_id: Mapped[int | None] = mapped_column(BigInteger)
    lock_owner: Mapped[str | None] = column_property(
        select(Owner.host + "/" + cast(Owner.id, String)).where(Owner.id == lock_owner_id).scalar_subquery()
    )
    """The name of the worker that runs it, as people see it."""
    lock_acquired_at: Mapped[datetime | None]
    lock_heartbeat_at: Mapped[datetime | None]
    max_retries: Mapped[int] = mapped_column(server_default="3")
    retry_backoff_seconds: Mapped[int] = mapped_column(server_default="60")
    current_retry_count: Mapped[int] = mapped_column(server_default="0")
    infra_retry_count: Mapped[int] = mapped_column(server_default="0")
    """Consecutive failures caused by the machine; they do not count as retries."""
    last_failure_at: Mapped[datetime | None]
    error_message: Mapped[str | None]
    last_execution_at: Mapped[datetime | None]
    total_runs: Mapped[int] = mapped_column(server_default="0")
    successful_runs: Mapped[int] = mapped_column(server_default="0")
    failed_runs: Mapped[int] = mapped_column(server_default="0")
    total_duration_ms: Mapped[int] = mapped_column(BigInteger, server_default="0")
    start_hash: Mapped[str | None] = mapped_column(String(128))
    start_changed_at: Mapped[datetime | None]
    unchanged_count: Mapped[int] = mapped_column(server_default="0")
    details: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default=text("'{}'"))
    """The `metadata` that clients attach to a job, stored and returned; editions store the year of a campaign
    and operators' decisions here.
    """
    edition_id: Mapped[int | None] = mapped_column(BigInteger)
    shard_key: Mapped[str | None] = mapped_column(String(64))
    shard_kind: Mapped[str | None] = mapped_column(String(20))
    acceptance_state: Mapped[str | None] = mapped_column(String(16))

    __table_args__ = (
        Index("ix_jobs_kind_fingerprint", "kind", "fingerprint"),
        partial_index("ix_jobs_due", "next_run_at", "id", where="next_run_at IS NOT NULL"),
        partial_index("ix_jobs_locked", "lock_heartbeat_at", "id", where="lock_token IS NOT NULL"),
        Index("ix_jobs_state", "state", "id"),
        Index("ix_jobs_updated", "updated_at"),
        Index("ix_jobs_edition", "edition_id"),
        # A source has at most one crawl job that is not in a final state.
        partial_index(
            "uq_jobs_crawl",
            "source_id",
            where="kind = 'crawl' AND state <> 'cancelled' AND deleted_at IS NULL",
            unique=True,
        ),
        # At most one operation of a subject is open: its fingerprint is that of the subject.
        partial_index(
            "uq_jobs_operation",
            "fingerprint",
            where="source_id IS NULL AND state IN ('pending','scheduled','running')",
            unique=True,
        ),
    )


class Execution(Model):
    """One run of a job: its output directory, its limits, its counts."""

    __tablename__ = "executions"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id"))
    number: Mapped[int]
    state: Mapped[str] = mapped_column(String(16))
    """queued (not leased by a worker), running, stopped (resumable), completed, cancelled, failed."""
    reason: Mapped[str | None]
    stop_requested: Mapped[str | None] = mapped_column(String(8))
    """`drain` or `cancel`, set from another terminal."""
    paused_at: Mapped[datetime | None]
    """When an operator paused this run, which stays `running`; distinct from a job's pause."""
    paused_by: Mapped[str | None]
    paused_seconds: Mapped[float] = mapped_column(default=0.0, server_default="0")
    """Total length of finished pauses."""
    config: Mapped[dict[str, Any]] = mapped_column(default=dict)
    output_dir: Mapped[str]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    run_seconds: Mapped[float] = mapped_column(default=0.0)
    """Running time over all resumptions; `--max-time` limits this."""
    due_at: Mapped[datetime | None]
    """The turn of its job that it was queued for; a unique key allows one execution per turn."""
    queued_at: Mapped[datetime | None]
    """Workers lease the earliest first, and none before its time."""
    takeovers: Mapped[int] = mapped_column(SmallInteger, server_default="0")
    """Consecutive times that an unresponsive owner lost it without progress in between."""
    lost_items: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Items done when an unresponsive owner last lost it: progress since then resets `takeovers`."""
    retry_attempt: Mapped[int] = mapped_column(server_default="0")
    resumed_from: Mapped[int | None] = mapped_column(BigInteger)
    """The execution whose directory a retry continues."""
    frontier_id: Mapped[int | None] = mapped_column(BigInteger)
    """The execution whose frontier a retry continues; null if it has its own, or none."""
    failure: Mapped[str | None] = mapped_column(String(20))
    """failed, infra_error, infra_error_config or lease_lost."""
    exit_code: Mapped[int | None]
    stage: Mapped[str | None]
    duration_ms: Mapped[int | None] = mapped_column(BigInteger)
    cpu_ms: Mapped[int | None] = mapped_column(BigInteger)
    peak_memory_bytes: Mapped[int | None] = mapped_column(BigInteger)
    items_crawled: Mapped[int] = mapped_column(BigInteger, server_default="0")
    items_indexed: Mapped[int] = mapped_column(BigInteger, server_default="0")
    items_failed: Mapped[int] = mapped_column(BigInteger, server_default="0")
    items_total: Mapped[int] = mapped_column(BigInteger, server_default="0")
    error: Mapped[str | None] = mapped_column(Text)
    stack: Mapped[str | None] = mapped_column(Text)
    metrics: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default=text("'{}'"))
    shortfalls: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default=text("'{}'"))
    """Shortfalls by code and count, the worst first; the codes are those of `jobs.endings.Shortfall`."""
    index_state: Mapped[str | None] = mapped_column(String(12))
    """pending, indexing, indexed, index_failed; null while there is nothing to index."""
    artifacts: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default=text("'{}'"))
    """Files besides the WARC files, by kind: combined_log, state_file, final_zim, coverage_report."""
    storage: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default=text("'{}'"))
    """Disk usage at the last scan: warc_bytes, output_bytes, tmp_bytes, tmp_non_warc_bytes, scanned_at."""
    cleanup_status: Mapped[str] = mapped_column(String(20), server_default="none")
    cleaned_at: Mapped[datetime | None]
    log_lines: Mapped[int] = mapped_column(server_default="0")
    log_bytes: Mapped[int] = mapped_column(BigInteger, server_default="0")
    log_dropped: Mapped[int] = mapped_column(server_default="0")
    pruned_at: Mapped[datetime | None]
    """When its log, metrics and stack were deleted."""
    directory: Mapped[str | None] = mapped_column(String(32))
    """Id of the data directory that contains its files; null before its first start."""

    __table_args__ = (
        UniqueConstraint("job_id", "number"),
        Index("uq_executions_due", "job_id", "due_at", unique=True),
        # The database enforces at most one open execution per job.
        partial_index("uq_executions_open", "job_id", where="state IN ('queued','running','stopped')", unique=True),
        partial_index("ix_executions_queued", "queued_at", "id", where="state = 'queued'"),
        partial_index("ix_executions_to_index", "id", where="index_state IN ('pending','indexing')"),
        partial_index("ix_executions_unpruned", "job_id", "number", where="pruned_at IS NULL"),
        partial_index(
            "ix_executions_aging", "finished_at", "id", where="pruned_at IS NULL AND finished_at IS NOT NULL"
        ),
        partial_index(
            "ix_executions_failed",
            "finished_at",
            "id",
            where="pruned_at IS NULL AND (state = 'failed' OR index_state = 'index_failed')",
        ),
    )


class Hold(Model):
    """One owner's lease of an execution: its start, its end, and how it ended."""

    __tablename__ = "holds"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    job_id: Mapped[int] = mapped_column(BigInteger)
    execution_id: Mapped[int] = mapped_column(BigInteger)
    epoch: Mapped[int] = mapped_column(BigInteger)
    owner: Mapped[str]
    acquired_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    ending: Mapped[str | None] = mapped_column(String(10))
    """settled, released, died or lease_lost; null while it lasts."""

    __table_args__ = (UniqueConstraint("job_id", "epoch"), Index("ix_holds_execution", "execution_id", "id"))


class JobEvent(Model):
    """Events of a job, in commit order: the API streams these rows."""

    __tablename__ = "job_events"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    at: Mapped[datetime]
    name: Mapped[str] = mapped_column(String(16))
    """job:status, job:progress or job:completed."""
    job_id: Mapped[int] = mapped_column(BigInteger)
    execution_id: Mapped[int | None] = mapped_column(BigInteger)
    data: Mapped[dict[str, Any]] = mapped_column(default=dict)

    __table_args__ = (Index("ix_job_events_job", "job_id", "id"), Index("ix_job_events_at", "at"))


class LogLine(Model):
    """One line of an execution's log."""

    __tablename__ = "log_lines"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    execution_id: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime]
    level: Mapped[int] = mapped_column(SmallInteger)
    """Python's numbers: 10 debug, 20 info, 30 warning, 40 error."""
    category: Mapped[str] = mapped_column(String(32))
    message: Mapped[str] = mapped_column(Text)
    fields: Mapped[dict[str, Any]] = mapped_column(default=dict)

    __table_args__ = (Index("ix_log_lines_execution", "execution_id", "id"),)


class RunHour(Model):
    """Results of one hour's runs; the scheduler's metrics sum a few of these, however long the history is."""

    __tablename__ = "run_hours"

    hour: Mapped[datetime] = mapped_column(primary_key=True)
    succeeded: Mapped[int] = mapped_column(server_default="0")
    failed: Mapped[int] = mapped_column(server_default="0")
    cancelled: Mapped[int] = mapped_column(server_default="0")
    duration_ms: Mapped[int] = mapped_column(BigInteger, server_default="0")
    stale_locks: Mapped[int] = mapped_column(server_default="0")


class Recovery(Model):
    """An observation of a job or its storage, or a recovery action; their number and effect decide the next action."""

    __tablename__ = "recoveries"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    job_id: Mapped[int] = mapped_column(BigInteger)
    execution_id: Mapped[int | None] = mapped_column(BigInteger)
    at: Mapped[datetime]
    action: Mapped[str] = mapped_column(String(24))
    reason: Mapped[str | None]
    pages: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Pages captured by then."""

    __table_args__ = (Index("ix_recoveries_job", "job_id", "at"),)


class AuditEvent(Model):
    """Audit log: actor, action, time and client address; append-only."""

    __tablename__ = "audit_events"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    at: Mapped[datetime]
    actor: Mapped[str]
    action: Mapped[str] = mapped_column(String(64))
    subject: Mapped[str]
    detail: Mapped[dict[str, Any]] = mapped_column(default=dict)
