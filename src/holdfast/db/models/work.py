"""What is kept and when it is run: sources, jobs, executions; and who is at work: owners."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, Model


class Source(Model):
    """A website, or part of one, that we keep."""

    __tablename__ = "sources"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    code: Mapped[str] = mapped_column(String(16), unique=True)
    name: Mapped[str]
    base_url: Mapped[str | None]
    description: Mapped[str | None]
    enabled: Mapped[bool] = mapped_column(default=True)
    config: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class Job(Model):
    """When and how a source is crawled. An ad-hoc crawl is a job of kind `adhoc`."""

    __tablename__ = "jobs"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id"), index=True)
    kind: Mapped[str] = mapped_column(String(16))
    fingerprint: Mapped[str] = mapped_column(String(64))
    """SHA-256 of seeds and scope: the same command again finds its unfinished execution by it."""
    config: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime]

    __table_args__ = (Index("ix_jobs_kind_fingerprint", "kind", "fingerprint"),)


class Execution(Model):
    """One run of a job: its output directory, its limits, its counts."""

    __tablename__ = "executions"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id"))
    number: Mapped[int]
    state: Mapped[str] = mapped_column(String(16))
    """running, stopped (resumable), completed, cancelled, failed."""
    reason: Mapped[str | None]
    stop_requested: Mapped[str | None] = mapped_column(String(8))
    """`drain` or `cancel`, set from another terminal."""
    config: Mapped[dict[str, Any]] = mapped_column(default=dict)
    output_dir: Mapped[str]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    run_seconds: Mapped[float] = mapped_column(default=0.0)
    """Time at work over all resumptions; `--max-time` counts this."""

    __table_args__ = (
        UniqueConstraint("job_id", "number"),
        # At most one open execution per job; the database says so, not a check before.
        Index(
            "uq_executions_open",
            "job_id",
            unique=True,
            sqlite_where=text("state IN ('running','stopped')"),
            postgresql_where=text("state IN ('running','stopped')"),
        ),
    )


class Owner(Model):
    """One process that may hold leases. Its file lock tells a machine at once that it is gone."""

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

    __table_args__ = (
        Index(
            "ix_owners_open", "host", sqlite_where=text("ended_at IS NULL"), postgresql_where=text("ended_at IS NULL")
        ),
    )


class AuditEvent(Model):
    """Who did what, when, from where: append-only."""

    __tablename__ = "audit_events"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    at: Mapped[datetime]
    actor: Mapped[str]
    action: Mapped[str] = mapped_column(String(64))
    subject: Mapped[str]
    detail: Mapped[dict[str, Any]] = mapped_column(default=dict)
