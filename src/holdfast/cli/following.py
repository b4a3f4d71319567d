"""Other processes that read files while this one does something else; loads nothing of the index itself."""

from __future__ import annotations

import json as jsonlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.config import Settings


def indexing(settings: Settings, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a process that reads files beside this one; it ends between two batches when it is told to."""
    command = [sys.executable, "-m", "holdfast.cli.main", "index", "--json", "--home", str(settings.home), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


@contextmanager
def followed(settings: Settings) -> Iterator[list[dict[str, Any]]]:
    """Have files read as they are sealed, while the block runs, and the last ones after it; what was read is listed."""
    files: list[dict[str, Any]] = []
    follower = indexing(settings, "--follow")
    try:
        yield files
    finally:
        follower.terminate()
        for process in (follower, indexing(settings)):
            said, _ = process.communicate()
            files += jsonlib.loads(said or b'{"files": []}')["files"]
