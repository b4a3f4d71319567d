"""The database: raw connections for the crawl, engine and sessions for the rest, models by area, migrations.

`connect` opens a raw connection by URL: `sqlite:///FILE` or `postgresql://…`. This package does not load
SQLAlchemy, so that a crawl process stays small.
"""

from __future__ import annotations

import importlib

from holdfast.db.raw import RawDatabase, SqliteRawDatabase, sqlite_path
from holdfast.errors import Invalid

__all__ = ["connect"]


def connect(database_url: str) -> RawDatabase:
    """Open a raw connection by URL; raise Invalid for an unsupported database."""
    path = sqlite_path(database_url)
    if path is not None:
        return SqliteRawDatabase(path)
    scheme, _, rest = database_url.partition("://")
    if scheme.split("+")[0] not in ("postgresql", "postgres"):
        raise Invalid(f"cannot use the database address {scheme}://…; write sqlite:///FILE or postgresql://…")
    # Import lazily: psycopg takes a tenth of a second that a crawl on SQLite need not spend.
    raw_db: RawDatabase = importlib.import_module(".postgres", __package__).PostgresRawDatabase(f"postgresql://{rest}")
    return raw_db
