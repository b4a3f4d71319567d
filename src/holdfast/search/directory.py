"""Where the search index lies: generations side by side under HOLDFAST_HOME/search, one in force, one writer.

`current` names the generation in force; a rebuild makes the next one beside it and swaps the name. It refuses a second
writer at once instead of waiting.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname
from uuid import uuid4

from holdfast.coordination.runfile import boot_id
from holdfast.errors import Conflict
from holdfast.search.segments import is_of_this_version, write_safely


class IndexBusy(Conflict):
    """Another process writes the search index now."""

    code = "search_index_busy"


class IndexElsewhere(IndexBusy):
    """The changes of this database are taken in by the index of another data directory: there they will be found."""

    code = "search_index_elsewhere"

    def __init__(self, home: str, host: str) -> None:
        super().__init__(
            f"the search index of this database is kept in {home} on {host}: search there, or keep it here from now on "
            "with: holdfast search-index rebuild"
        )
        self.home, self.host = home, host


_IDENTITY = "search-index-id"


def is_gone(home: str, machine: str, identity: str) -> bool | None:
    """Return whether an index is no longer where it was; None if that cannot be known from here.

    Neither the name of a machine nor a path proves anything: two containers may share both. A path means the same
    only where the same kernel shows the same file systems; elsewhere only the silence of the index tells.
    """
    # The same id in the same place: it is there, whichever machine we are.
    if _read_identity(Path(home)) == identity:
        return False
    return True if machine == this_machine() else None


def this_machine() -> str:
    """Return an id of what this process sees: this boot of the kernel, and its view of the file systems."""
    try:
        view = str(Path("/proc/self/ns/mnt").readlink())
    except OSError:
        view = ""
    boot = boot_id()
    # Where the kernel tells neither, no process is sure to see what another saw.
    return f"{boot} {view}" if boot and view else uuid4().hex


def _read_identity(home: Path) -> str | None:
    try:
        return (home / _IDENTITY).read_text().strip()
    except OSError:
        return None


def _new_identity(home: Path) -> str:
    """Return a new id, or the one that another process has just made."""
    home.mkdir(parents=True, exist_ok=True)
    fresh = home / f".{_IDENTITY}.{uuid4().hex}"
    write_safely(fresh, uuid4().hex.encode())
    try:
        with suppress(FileExistsError):
            # A link fails if the name is taken: of two processes that start together, one makes the id and both use
            # it.
            os.link(fresh, home / _IDENTITY)
    finally:
        fresh.unlink()
    return (home / _IDENTITY).read_text().strip()


class IndexDirectory:
    """The folder of the search index."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "search"
        self._home = home
        self._identity: str | None = None

    def identity(self) -> str:
        """Return the id by which the database knows this data directory's index; made once, and kept by rebuilds."""
        if self._identity is None:
            self._identity = _read_identity(self._home) or _new_identity(self._home)
        return self._identity

    def address(self) -> tuple[str, str, str]:
        """Return the data directory, what the machine that it is on is called, and what this process sees of it."""
        return str(self._home.resolve()), gethostname(), this_machine()

    def current(self) -> Path:
        """Return the folder of the generation in force; it may not exist yet."""
        try:
            name = (self.folder / "current").read_text().strip()
        except FileNotFoundError:
            name = "1"
        return self.folder / (name if name.isdecimal() else "1")

    def exists(self) -> bool:
        """Return whether a generation is in force that this program can use; one of another version is none."""
        return is_of_this_version(self.current())

    def discard(self) -> None:
        """Remove all generations, the one in force first; only under the writer's lock."""
        # First what makes it the one in force: a death in between leaves no index rather than half of one.
        (self.current() / "manifest.json").unlink(missing_ok=True)
        for path in self.folder.iterdir():
            if path.name.isdecimal():
                shutil.rmtree(path, ignore_errors=True)

    def fresh(self) -> Path:
        """Return an empty folder for the next generation; only under the writer's lock."""
        numbers = [int(path.name) for path in self.folder.iterdir() if path.name.isdecimal()]
        folder = self.folder / str(max([0, *numbers]) + 1)
        folder.mkdir(parents=True)
        return folder

    def swap(self, folder: Path) -> None:
        """Put a generation in force and remove the others; a reader that has an old one open keeps its files."""
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
            # A lock of the kernel, freed when the process dies: no stale file has to be judged.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as exc:
            raise IndexBusy("another process writes the search index now; it takes in what waits") from exc
        finally:
            os.close(fd)
