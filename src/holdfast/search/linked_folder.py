"""Links to an index that this process may only read, in a temporary folder that is deleted with the process."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from typing import Final
from weakref import finalize

_LINKED: Final = "holdfast-index-"


def _remove_linked(path: Path) -> None:
    """Delete the folder of a killed process; that of a live one is locked."""
    with suppress(OSError):
        held = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            rmtree(path, ignore_errors=True)
        finally:
            os.close(held)


class LinkedFolder:
    """A private folder with links to the files of an index; deleted when no reader uses it."""

    def __init__(self, folder: Path) -> None:
        for path in Path(gettempdir()).glob(f"{_LINKED}*"):
            _remove_linked(path)
        fresh = Path(mkdtemp(prefix=f".{_LINKED}"))
        # Held as long as the folder is used, and freed by the kernel when this process is killed. Under the name that
        # others look for only once it is held.
        held = os.open(fresh, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_EX)
        self._folder, self.path = folder, fresh.rename(fresh.with_name(fresh.name.removeprefix(".")))
        finalize(self, os.close, held)
        finalize(self, rmtree, self.path, ignore_errors=True)
        self.add_new()

    def add_new(self) -> None:
        for path in self._folder.iterdir():
            if not path.name.endswith(".lock"):
                with suppress(FileExistsError):
                    (self.path / path.name).symlink_to(path.resolve())
