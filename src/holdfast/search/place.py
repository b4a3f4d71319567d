"""Where the search index lies: generations side by side under HOLDFAST_HOME/search, one in force, one writer.

`current` names the generation in force; a rebuild makes the next one beside it and swaps the name. It refuses a second
writer at once instead of waiting.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import Conflict
from holdfast.search.segments import write_safely


class IndexBusy(Conflict):
    """Another process writes the search index now."""

    code = "search_index_busy"


class Place:
    """The folder of the search index."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "search"

    def current(self) -> Path:
        """Return the folder of the generation in force; it may not exist yet."""
        try:
            name = (self.folder / "current").read_text().strip()
        except FileNotFoundError:
            name = "1"
        return self.folder / (name if name.isdecimal() else "1")

    def exists(self) -> bool:
        """Return whether a generation is in force."""
        return (self.current() / "manifest.json").exists()

    def fresh(self) -> Path:
        """Return an empty folder for the next generation; only under the writer's lock."""
        numbers = [int(path.name) for path in self.folder.iterdir() if path.name.isdecimal()]
        folder = self.folder / str(max([0, *numbers]) + 1)
        folder.mkdir(parents=True)
        return folder

    def swap(self, folder: Path) -> None:
        """Put a generation in force and remove the others; readers that have one open keep it until they look again."""
        write_safely(self.folder / "current", folder.name.encode())
        for path in self.folder.iterdir():
            if path.name.isdecimal() and path.name != folder.name:
                shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the one writer for the block; IndexBusy if another process is. The kernel frees it if we die."""
        self.folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as exc:
            raise IndexBusy("another process writes the search index now; it takes in what waits") from exc
        finally:
            os.close(fd)
