"""Layout of the search index: generations side by side under HOLDFAST_HOME/search, one current, one writer.

`current` contains the name of the current generation; without it there is no index. A build creates the next
one beside it and sets the name when it is complete. A second writer is rejected immediately instead of waiting.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import randbelow
from socket import gethostname
from typing import Final, NamedTuple
from uuid import uuid4

from holdfast.errors import Conflict
from holdfast.failpoints import reach
from holdfast.processes.directory_id import directory_id, read_directory_id
from holdfast.processes.runfile import boot_id
from holdfast.search.engine import IndexBroken
from holdfast.search.segments import entries_of, is_of_this_version
from holdfast.storage.disk import sync_directory, write_whole


class IndexBusy(Conflict):
    """Another process is writing the search index."""

    code = "search_index_busy"


class IndexPending(IndexBroken):
    """The first search index is being built; search will be available soon."""

    code = "search_index_pending"


class IndexElsewhere(IndexBusy):
    """The index of another data directory receives this database's changes; search there."""

    code = "search_index_elsewhere"

    def __init__(self, home: str, host: str) -> None:
        super().__init__(
            f"the search index of this database is kept in {home} on {host}: search there, or keep it here from now on "
            "with: holdfast search-index rebuild"
        )
        self.home, self.host = home, host


class IndexMark(NamedTuple):
    folder: Path
    modified_ns: int
    inode: int


_NONE: Final = "0"
_FIRST_NAMES: Final = 10**9
# A rebuild takes far longer than a look: the second one finds what the first has missed.
_LOOKS: Final = 5
# Of the name of a generation, which is a number.
_NAME_BYTES: Final = 64


def is_gone(home: str, machine: str, identity: str) -> bool | None:
    """Return True if an index no longer exists at its location; None if that cannot be determined from here.

    Neither a machine name nor a path proves anything: two containers may share both. A path means the same only
    where the same kernel shows the same file systems; otherwise only a silent index counts as gone.
    """
    # The same id in the same place: it is there, whichever machine we are.
    if read_directory_id(Path(home)) == identity:
        return False
    return True if machine == this_machine() else None


def this_machine() -> str:
    try:
        view = str(Path("/proc/self/ns/mnt").readlink())
    except OSError:
        view = ""
    boot = boot_id()
    # If the kernel reports neither, no process can be sure to see the same files as another.
    return f"{boot} {view}" if boot and view else uuid4().hex


class IndexDirectory:
    def __init__(self, home: Path) -> None:
        self.folder = home / "search"
        self._home = home
        self._identity: str | None = None
        self._current = str(self.folder / "current")
        self._seen: tuple[str, Path, str] | None = None

    def identity(self) -> str:
        """Return the id of this data directory's index in the database; created once, and preserved by rebuilds."""
        if self._identity is None:
            self._identity = directory_id(self._home)
        return self._identity

    def address(self) -> tuple[str, str, str]:
        return str(self._home.resolve()), gethostname(), this_machine()

    def current(self) -> Path:
        """Return the folder of the current generation; a path that never exists without one."""
        # An index in the making has another name until it is whole: what a death leaves of it is then no index.
        return self.folder / (self._named() or _NONE)

    def _named(self) -> str | None:
        # Asked for twice by every search: by way of a Path it takes four times as long.
        try:
            fd = os.open(self._current, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            name = os.read(fd, _NAME_BYTES).decode("ascii", "replace").strip()
        finally:
            os.close(fd)
        return name if name.isdecimal() else None

    def _manifest(self, name: str) -> tuple[Path, str]:
        seen = self._seen
        if seen is None or seen[0] != name:
            folder = self.folder / name
            seen = self._seen = (name, folder, str(folder / "manifest.json"))
        return seen[1], seen[2]

    def mark(self) -> IndexMark | None:
        """Return the mark of the current state, which changes with every new state; None if there is no index.

        Raise IndexBroken if the named one is missing, or only one under construction exists: an empty answer would
        imply that nothing was captured.
        """
        for _ in range(_LOOKS):
            name = self._named()
            if name is None:
                if self._generations():
                    raise IndexPending(
                        "the search index is being made, or the making of it broke off; the next index run, worker or "
                        "search command rebuilds it, or run: holdfast search-index rebuild"
                    )
                return None
            folder, manifest = self._manifest(name)
            try:
                found = os.stat(manifest)  # noqa: PTH116 - a third of the time of Path.stat
            except FileNotFoundError:
                # A rebuild names the new one before it removes the old one: look again.
                if self._named() == name:
                    raise IndexBroken(
                        f"the search index in {self.folder / name} is gone; the next index run, worker or search "
                        "command rebuilds it, or run: holdfast search-index rebuild"
                    ) from None
                continue
            # The inode, too: a manifest is replaced by a rename, and two within one tick of the clock have the same
            # time.
            return IndexMark(folder, found.st_mtime_ns, found.st_ino)
        raise IndexBroken("the search index changes faster than it can be read; try again")

    def exists(self) -> bool:
        """Return True if the current generation is usable by this program; one of another version is not."""
        folder = self.current()
        # Without its tantivy files the index is invalid: a writer would create empty ones, and searches find nothing.
        return is_of_this_version(folder) and entries_of(folder) is not None

    def discard(self) -> None:
        """Delete the current generation; call this only under the writer's lock."""
        folder = self.current()
        # First what makes it the one in force: a death in between leaves no index rather than half of one.
        (self.folder / "current").unlink(missing_ok=True)
        sync_directory(self.folder)
        shutil.rmtree(folder, ignore_errors=True)

    def fresh(self) -> Path:
        in_force, found = self._named(), self._generations()
        numbers = [int(name) for name in (in_force, *found) if name is not None]
        for name in found - {in_force}:
            # Left behind by a build that died: dying again and again must not fill the disk.
            shutil.rmtree(self.folder / name, ignore_errors=True)
        # The name of a generation is never used again, not even after all were deleted: readers reuse open files by
        # name, and a writer whose folder was deleted must not write into a new one.
        folder = self.folder / str(max(numbers) + 1 if numbers else 1 + randbelow(_FIRST_NAMES))
        folder.mkdir(parents=True)
        return folder

    def swap(self, folder: Path) -> None:
        """Make a generation current and delete the others; a reader with an open old one can still read its files."""
        write_whole(self.folder / "current", folder.name.encode())
        for name in self._generations() - {folder.name}:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _generations(self) -> set[str]:
        try:
            return {path.name for path in self.folder.iterdir() if path.name.isdecimal()}
        except FileNotFoundError:
            return set()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writer's lock for the block; raise IndexBusy if another process has it. The kernel frees it on
        death.
        """
        reach("search.writing")
        self.folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # A lock of the kernel, freed when the process dies: no stale file has to be judged.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as exc:
            raise IndexBusy("another process is writing the search index; it also indexes pending changes") from exc
        finally:
            os.close(fd)
