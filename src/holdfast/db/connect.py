"""From a database address to a connection: `sqlite:///FILE` or `postgresql://…`."""

from __future__ import annotations

import importlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from holdfast.db.raw import RawDatabase, SqliteRawDatabase
from holdfast.errors import Invalid


def sqlite_path(database_url: str) -> Path | None:
    """Return the file of a `sqlite:///…` address, or None for another kind of database."""
    parts = urlsplit(database_url)
    return Path(unquote(database_url[len("sqlite:///") :])) if parts.scheme == "sqlite" else None


def connect(database_url: str) -> RawDatabase:
    """Open a hot connection by address; Invalid for a kind that we do not speak."""
    path = sqlite_path(database_url)
    if path is not None:
        return SqliteRawDatabase(path)
    scheme, _, rest = database_url.partition("://")
    if scheme.split("+")[0] not in ("postgresql", "postgres"):
        raise Invalid(f"cannot use the database address {scheme}://…; write sqlite:///FILE or postgresql://…")
    # Loaded by name: psycopg costs a tenth of a second that a crawl on SQLite need not pay.
    raw_db: RawDatabase = importlib.import_module("holdfast.db.postgres").PostgresRawDatabase(f"postgresql://{rest}")
    return raw_db
