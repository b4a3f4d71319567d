"""What the rows of an installation take, as far as the database tells that without reading them."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from holdfast.db.models import WarcFile

_TABLES = """
SELECT c.relname, pg_total_relation_size(c.oid), greatest(c.reltuples, 0)::bigint FROM pg_class c
 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 2 DESC, 1 LIMIT 100"""


class TableSize(NamedTuple):
    """A table with its indexes."""

    name: str
    bytes: int
    rows: int
    """As the server last estimated them."""


def server_bytes(session: Session) -> int:
    """Return what a database takes on its server."""
    return int(session.scalar(text("SELECT pg_database_size(current_database())")) or 0)


def table_sizes(session: Session) -> list[TableSize]:
    """Return the largest tables of a database server; SQLite would have to read its whole file to tell."""
    return [TableSize._make(row) for row in session.execute(text(_TABLES))]


def warc_totals(session: Session) -> tuple[int, int]:
    """Return the bytes and the number of sealed WARC files: a row a file is read."""
    row = session.execute(select(func.sum(WarcFile.size), func.count()).where(WarcFile.state == "sealed")).one()
    return int(row[0] or 0), int(row[1])
