"""Common parts of all tables: named constraints, and column types that make SQLite and PostgreSQL agree.

Files of this package have no `from __future__ import annotations`: SQLAlchemy would compile the text of each of
their 500 annotations, which costs every process 40 ms.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Dialect, Index, Integer, MetaData, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from holdfast.clock import from_micros, to_micros


class Moment(TypeDecorator[datetime]):
    """An aware UTC datetime, stored as whole microseconds since 1970 in both databases (decision 0004)."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else to_micros(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else from_micros(value)


BigId = BigInteger().with_variant(Integer(), "sqlite")
"""A 64-bit key: SQLite only makes INTEGER PRIMARY KEY the rowid itself."""

KeyText = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that sorts by bytes in both databases, as CDX indexes do."""

Json = JSON().with_variant(JSONB(), "postgresql")


def partial_index(name: str, *columns: Any, where: str, unique: bool = False) -> Index:
    """Return an index of the rows that meet a condition, in both databases."""
    condition = text(where)
    return Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


class Model(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: Moment, dict[str, Any]: Json, list[str]: Json}  # noqa: RUF012 - SQLAlchemy's own form


class Leased:
    """Columns of a row that one process holds at a time (`processes/leases.py`)."""

    owner_id: Mapped[int | None] = mapped_column(BigInteger)
    token: Mapped[int] = mapped_column(BigInteger, server_default="0")
    lease_expires_at: Mapped[datetime | None]
