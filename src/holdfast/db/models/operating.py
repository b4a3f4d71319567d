"""Files uploaded in pieces, and single values."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, Model, partial_index


class Upload(Model):
    """A resumable upload of a file in pieces."""

    __tablename__ = "uploads"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_code: Mapped[str] = mapped_column(String(64))
    source_name: Mapped[str | None] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    """The client's name for the file: only shown, never used as a file name."""
    strict: Mapped[bool] = mapped_column(server_default=text("false"))
    sha256: Mapped[str | None] = mapped_column(String(64))
    """The client's digest of the whole file; checked before the import."""
    metadata_text: Mapped[str] = mapped_column(Text)
    """The metadata as sent, for clients that request them."""
    size: Mapped[int] = mapped_column(BigInteger)
    received: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Bytes on disk that count; anything that a killed server wrote beyond is truncated."""
    state: Mapped[str] = mapped_column(String(16))
    """receiving, received, imported, failed, terminated, expired."""
    operation_id: Mapped[int | None] = mapped_column(ForeignKey("executions.id"))
    actor: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    """When an unfinished upload is deleted; None once it has ended."""

    __table_args__ = (
        partial_index("ix_uploads_expiry", "expires_at", where="expires_at IS NOT NULL"),
        # Without this, concurrent uploads would send, store and read the same file twice.
        partial_index(
            "uq_uploads_open_digest", "sha256", where="expires_at IS NOT NULL AND sha256 IS NOT NULL", unique=True
        ),
    )


class ClockAnchor(Model):
    """Wall-clock time of a boot, as its first process read it; for SQLite (`db/sqlite.py`)."""

    __tablename__ = "clock_anchors"

    boot_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    micros: Mapped[int] = mapped_column(BigInteger)


class InstallationValue(Model):
    """One value of the whole installation (`db/installation.py`)."""

    __tablename__ = "installation"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    value: Mapped[str] = mapped_column(Text)
