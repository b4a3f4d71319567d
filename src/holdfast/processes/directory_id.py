"""The id of a data directory: random, stored in a file there, shared by all processes that use the directory.

It stays the same when the directory is moved. Machine name and path prove nothing: two containers may share
both.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from holdfast.storage.disk import synced

_FILE: Final = "search-index-id"


def read_directory_id(home: Path) -> str | None:
    try:
        return (home / _FILE).read_text().strip() or None
    except OSError:
        return None


def directory_id(home: Path) -> str:
    """Return the id of a data directory, creating it on the first call; raise OSError if that fails."""
    return read_directory_id(home) or _new_id(home)


def _new_id(home: Path) -> str:
    home.mkdir(parents=True, exist_ok=True)
    fresh = home / f".{_FILE}.{uuid4().hex}"
    with synced(fresh) as file:
        file.write(uuid4().hex.encode())
    try:
        with suppress(FileExistsError):
            # A link fails if the name exists: if two processes start together, one creates the id and both use it.
            os.link(fresh, home / _FILE)
    finally:
        fresh.unlink()
    return (home / _FILE).read_text().strip()
