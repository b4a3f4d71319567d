"""Damages a SQLite file as a bad disk or an unlucky copy does: pages of some tables become noise."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

_SEED = 3


def damage(path: Path, *tables: str) -> None:
    """Overwrite the first page of these tables and of their indexes; what the file says of itself stays readable."""
    noise = random.Random(_SEED)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = int(database.execute("PRAGMA page_size").fetchone()[0])
        roots = database.execute("SELECT tbl_name, rootpage FROM sqlite_master WHERE rootpage > 0").fetchall()
    with path.open("r+b") as file:
        for table, page in roots:
            if table in tables:
                file.seek((page - 1) * size)
                file.write(noise.randbytes(size))
