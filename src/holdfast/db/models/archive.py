"""The archive's tables, from the sealed WARC file on."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, Model


class WarcFile(Model):
    """One WARC file: open while a process writes it, sealed for ever after."""

    __tablename__ = "warc_files"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    execution_id: Mapped[int] = mapped_column(ForeignKey("executions.id"))
    owner_id: Mapped[int | None] = mapped_column(BigInteger)
    path: Mapped[str]
    """The sealed name, relative to the data directory where it lies below it."""
    state: Mapped[str] = mapped_column(String(16))
    """open, sealed, discarded."""
    size: Mapped[int | None] = mapped_column(BigInteger)
    sha256: Mapped[str | None] = mapped_column(String(64))
    crc32: Mapped[int | None] = mapped_column(BigInteger)
    record_count: Mapped[int | None]
    repaired: Mapped[bool] = mapped_column(server_default=text("false"))
    created_at: Mapped[datetime]
    sealed_at: Mapped[datetime | None]
    origin: Mapped[str | None]
    """Where an imported file came from, as it was named; None for our own."""
    origin_sha256: Mapped[str | None] = mapped_column(String(64))
    """Digest of the imported file or package member: the same file again is the same row."""
    index_state: Mapped[str] = mapped_column(String(8), server_default=text("'pending'"))
    """pending, running, indexed, failed."""
    first_at: Mapped[datetime | None]
    last_at: Mapped[datetime | None]
    """Dates of its earliest and latest snapshot, set when it is indexed: who looks for a time skips whole files. Only a
    latest one, in 1970: it has no snapshots."""

    __table_args__ = (
        UniqueConstraint("path"),
        Index("ix_warc_files_origin_sha256", "origin_sha256"),
        Index(
            "ix_warc_files_to_index",
            "id",
            sqlite_where=text("state = 'sealed' AND index_state IN ('pending','running')"),
            postgresql_where=text("state = 'sealed' AND index_state IN ('pending','running')"),
        ),
        Index("ix_warc_files_execution_id", "execution_id", "id"),
        Index(
            "ix_warc_files_open",
            "owner_id",
            sqlite_where=text("state = 'open'"),
            postgresql_where=text("state = 'open'"),
        ),
    )
