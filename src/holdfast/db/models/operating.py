"""What an operator has done over HTTP that takes long: operations, and files that arrive in pieces; single values."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, Model


class Operation(Model):
    """Work that takes minutes or hours: who wants it, how far it is, what came of it."""

    __tablename__ = "operations"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    flight: Mapped[str] = mapped_column(Text)
    """What at most one open operation may be at; the unique key below decides, not a look before."""
    subject: Mapped[str] = mapped_column(Text)
    """What it is about, for people."""
    parameters: Mapped[dict[str, Any]] = mapped_column(default=dict)
    state: Mapped[str] = mapped_column(String(16))
    """queued, running, done, failed, cancelled."""
    phase: Mapped[str | None] = mapped_column(String(64))
    done_units: Mapped[int] = mapped_column(BigInteger, server_default="0")
    total_units: Mapped[int | None] = mapped_column(BigInteger)
    result: Mapped[dict[str, Any]] = mapped_column(default=dict)
    error: Mapped[str | None] = mapped_column(Text)
    error_code: Mapped[str | None] = mapped_column(String(64))
    actor: Mapped[str] = mapped_column(Text)
    stop_asked: Mapped[bool] = mapped_column(server_default=text("false"))
    attempt: Mapped[int] = mapped_column(server_default="0")
    """How often it was begun, and the fencing token of its lease: a late process of an earlier one writes nothing."""
    run_file: Mapped[str | None] = mapped_column(Text)
    """Of the process that is at it; its lock tells a start on the same machine whether it lives."""
    lease_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    updated_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]

    __table_args__ = (
        Index(
            "uq_operations_open_flight",
            "flight",
            unique=True,
            sqlite_where=text("finished_at IS NULL"),
            postgresql_where=text("finished_at IS NULL"),
        ),
        Index("ix_operations_kind", "kind", "id"),
    )


class Upload(Model):
    """A file that arrives in pieces, and may go on after a break."""

    __tablename__ = "uploads"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_code: Mapped[str] = mapped_column(String(64))
    source_name: Mapped[str | None] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    """As the client calls it: shown, never used as the name of a file."""
    strict: Mapped[bool] = mapped_column(server_default=text("false"))
    sha256: Mapped[str | None] = mapped_column(String(64))
    """What the client says that the whole file has; held against it before it is imported."""
    metadata_text: Mapped[str] = mapped_column(Text)
    """The metadata as they were sent, for a client that asks for them."""
    size: Mapped[int] = mapped_column(BigInteger)
    received: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Bytes that are on disk and count; what a killed server wrote beyond is cut off."""
    state: Mapped[str] = mapped_column(String(16))
    """receiving, received, imported, failed, terminated, expired."""
    operation_id: Mapped[int | None] = mapped_column(ForeignKey("operations.id"))
    actor: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    """When an unfinished one is removed; None once it is over."""

    __table_args__ = (
        Index(
            "ix_uploads_expiry",
            "expires_at",
            sqlite_where=text("expires_at IS NOT NULL"),
            postgresql_where=text("expires_at IS NOT NULL"),
        ),
        # The same file twice at once would be sent, stored and read twice.
        Index(
            "uq_uploads_open_digest",
            "sha256",
            unique=True,
            sqlite_where=text("expires_at IS NOT NULL AND sha256 IS NOT NULL"),
            postgresql_where=text("expires_at IS NOT NULL AND sha256 IS NOT NULL"),
        ),
    )


class ClockAnchor(Model):
    """When a boot began by the wall clock, as its first process read it; for SQLite (`db/sqlite.py`)."""

    __tablename__ = "clock_anchors"

    boot_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    micros: Mapped[int] = mapped_column(BigInteger)


class InstallationValue(Model):
    """One value of the whole installation (`db/installation.py`)."""

    __tablename__ = "installation"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    value: Mapped[str] = mapped_column(Text)
