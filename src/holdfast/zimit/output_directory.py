"""The output directory of a tool: its identity, its lock, how its last run ended, and files left for the next run.

Small files are written atomically. A state field with a wrong type is reset; the others stay.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from holdfast.processes.runfile import alone
from holdfast.storage.disk import write_whole
from holdfast.values import dataclass
from holdfast.zimit.errors import OutputBusy, StateUnwritable, StoreMissing, ToolConfigRefused

SENTINEL = ".holdfast-store"
"""File in the root of mounted storage that distinguishes it from the empty directory below the mount."""


class OutputDirectory:
    """An output directory identified by more than its path: an unmounted disk leaves another directory behind."""

    def __init__(self, path: Path) -> None:
        """Raise OSError if it is missing."""
        self.path, self._identity = path, _identity(path)

    def check(self) -> None:
        """Raise `StoreMissing` if the directory is no longer the one this run started with, or is not writable."""
        self.check_identity()
        probe = self.path / ".archive_tool.probe"
        try:
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as exc:
            raise StoreMissing(self.path, f"not writable, errno {exc.errno}: {exc.strerror}") from exc

    def check_identity(self) -> None:
        """Raise `StoreMissing` if the directory is no longer the one this run started with."""
        try:
            now = _identity(self.path)
        except OSError as exc:
            raise StoreMissing(self.path, f"errno {exc.errno}: {exc.strerror}") from exc
        # A mount that went away leaves an empty directory of the same name: not a byte may go there.
        if now != self._identity:
            raise StoreMissing(self.path, "another directory has taken its place")


def _identity(path: Path) -> tuple[int, int]:
    seen = path.stat()
    return seen.st_dev, seen.st_ino


def open_place(output_dir: Path, store_root: Path | None) -> OutputDirectory:
    """Return the output directory, creating it if missing; raise `StoreMissing` if its parent or store is missing.

    Raise `ToolConfigRefused` if it is not below the store root. With a store root, its sentinel must exist, and
    directories are created below it; without one, the parent must exist.
    """
    try:
        if store_root is not None:
            # Before anything of the store is read: no mount makes this right, so a retry would fail the same way.
            if not output_dir.is_relative_to(store_root):
                raise ToolConfigRefused(
                    "store_root", f"{output_dir} does not lie below {store_root}; set HOLDFAST_ZIMIT_STORE_ROOT to it"
                )
            # Without its mark the store is not mounted; a directory that is made now would fill the disk below.
            if not (store_root / SENTINEL).is_file():
                raise StoreMissing(store_root, f"there is no {SENTINEL} in it")
            output_dir.mkdir(parents=True, exist_ok=True)
        else:
            output_dir.mkdir(exist_ok=True)
        place = OutputDirectory(output_dir)
    except OSError as exc:
        raise StoreMissing(output_dir, f"errno {exc.errno}: {exc.strerror}") from exc
    place.check()
    return place


def store_is_present(store_root: Path) -> bool:
    """Return whether the storage is really mounted: its sentinel can be read."""
    return os.path.isfile(store_root / SENTINEL)  # noqa: PTH113 False also if the storage does not answer


LOCK_NAME = ".archive_tool.lock"
END_NAME = ".archive_end.json"
# A process that only looks who holds a directory has it for microseconds; a tool that starts then must not give up.
_TRIES = 8


@contextmanager
def hold_output(output_dir: Path) -> Iterator[None]:
    """Lock an output directory for this process; raise `OutputBusy` if another process holds it."""
    path = output_dir / LOCK_NAME
    busy = OutputBusy(f"another archive-tool works in {output_dir}; wait for it, or stop it")
    with alone(path, busy, tries=_TRIES):
        # Write only after locking: until then the file names the process that holds the lock.
        path.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        yield


def holder_of(output_dir: Path) -> int | None:
    """Return the id of the process that holds a directory, 0 if it is unknown or not on this machine; None if free."""
    try:
        fd = os.open(output_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Shared, so that two who look do not take each other for a tool.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        content = json_object(os.pread(fd, 4096, 0))
        pid = content.get("pid") if content.get("host") == socket.gethostname() else 0
        # Never less than 0: `kill` would take that for a whole group.
        return pid if isinstance(pid, int) and pid > 0 else 0
    finally:
        os.close(fd)
    return None


def json_object(data: bytes | str) -> dict[str, Any]:
    """Parse a JSON object; return an empty one if the bytes hold no object, or nest too deeply for the parser."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def forget_end(output_dir: Path) -> None:
    """Delete the record of the last run's end, because a new run starts."""
    (output_dir / END_NAME).unlink(missing_ok=True)


def note_end(output_dir: Path, state: str, exit_code: int, now: datetime) -> None:
    """Record the end of a run; if the write fails, the run counts as unfinished and is resumed."""
    content = {"state": state, "exit_code": exit_code, "at": now.isoformat()}
    with suppress(OSError):
        write_whole(output_dir / END_NAME, (json.dumps(content) + "\n").encode())


def last_end(output_dir: Path) -> tuple[str, int] | None:
    """Return state and exit code of the last run's end; None if there was none, it still runs, or it was killed."""
    content = _read(output_dir / END_NAME)
    state, code = content.get("state"), content.get("exit_code")
    return (state, code) if isinstance(state, str) and isinstance(code, int) else None


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
MAX_BYTES = 64 * 1024 * 1024
"""A saved Browsertrix queue of 300,000 addresses takes about 40 MB."""


def read_mapping(path: Path) -> dict[str, Any] | None:
    """Return the mapping in a file; None if the file is missing, half-written, too large or not a mapping."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        content = _LOADER(path.read_bytes()).get_single_data()
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not content:
        return None
    return {str(key): value for key, value in content.items()}


def as_text(content: dict[str, Any]) -> str:
    """Return a mapping as YAML with its key order preserved."""
    text: str = yaml.dump(content, Dumper=_DUMPER, sort_keys=False, allow_unicode=True)
    return text


STATE_NAME = ".archive_state.json"
RESUME_NAME = ".zimit_resume.yaml"
MANAGED_NAME = ".browsertrix_managed_config.yaml"
TEMP_PREFIX = ".tmp"
_MAX_BYTES = 4 * 1024 * 1024
_MAX_COUNT = 1_000_000


def is_temp_dir(path: Path, output_dir: Path) -> bool:
    """Return whether this is a crawl's temporary directory: directly in the output directory, not a symlink."""
    # Directly in the directory and no link: whatever is called so is removed with all that is in it.
    return path.name.startswith(TEMP_PREFIX) and path.parent == output_dir and path.is_dir() and not path.is_symlink()


def temp_dirs_in(output_dir: Path) -> list[Path]:
    """Return all temporary directories in an output directory, oldest first.

    Empty if the directory is missing; raise OSError if the disk fails, which is a different case.
    """
    output_dir = output_dir.resolve()
    try:
        found = list(output_dir.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    temp_dirs = (path for path in found if is_temp_dir(path, output_dir))
    return sorted(temp_dirs, key=lambda path: (_changed_at(path), path.name))


def remove_temp_dirs(output_dir: Path, folders: Iterable[Path]) -> None:
    """Delete temporary directories of this output directory, and nothing else."""
    for folder in folders:
        if is_temp_dir(folder, output_dir):
            shutil.rmtree(folder)


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


COUNTERS = ("vpn_rotations_done", "worker_reductions_done", "container_restarts_done")
"""Fields of a state that count countermeasures."""


def no_errors() -> dict[str, int]:
    return dict.fromkeys(("timeout", "http", "other"), 0)


@dataclass(slots=True, kw_only=True)
class CrawlState:
    """Workers and countermeasures so far; the file also lists the temporary directories, which nothing reads back."""

    output_dir: Path
    initial_workers: int
    current_workers: int
    vpn_rotations_done: int = 0
    worker_reductions_done: int = 0
    container_restarts_done: int = 0
    errors: dict[str, int] = field(default_factory=no_errors)
    awaits_build: bool = False
    """Whether the crawl is finished and only the ZIM is missing, so that the next run only builds."""
    replaced: Collection[Path] = ()
    """Temporary directories of a crawl that is being overwritten: its queue is not resumed."""
    guard: Callable[[], None] = lambda: None
    """Called before each write; raises if the directory is no longer the same one."""

    @property
    def temp_dirs(self) -> list[Path]:
        return [path for path in temp_dirs_in(self.output_dir) if path not in self.replaced]

    @property
    def path(self) -> Path:
        return self.output_dir / STATE_NAME

    def update(self, **changes: Any) -> None:
        """Set fields, then write and sync the state; raise `StateUnwritable` if the disk fails."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.guard()
        content = {
            "current_workers": self.current_workers,
            "initial_workers": self.initial_workers,
            "temp_dirs_host_paths": [str(path) for path in self.temp_dirs],
            **{name: getattr(self, name) for name in COUNTERS},
            "error_counts": self.errors,
            "awaits_build": self.awaits_build,
        }
        try:
            write_whole(self.path, (json.dumps(content, indent=2) + "\n").encode())
        except OSError as exc:
            why = f"cannot write {self.path} (errno {exc.errno}: {exc.strerror})"
            raise StateUnwritable(f"{why}; mend that, and run this again") from exc

    def reset_adaptation(self) -> None:
        """Start a new phase, not saved yet: all workers, no countermeasures used."""
        self.current_workers, self.errors = self.initial_workers, no_errors()
        for name in COUNTERS:
            setattr(self, name, 0)

    def forget(self) -> None:
        """Delete the state file and reset all fields; temporary directories that exist count as replaced."""
        self.path.unlink(missing_ok=True)
        self.replaced, self.awaits_build = temp_dirs_in(self.output_dir), False
        self.reset_adaptation()


def load_state(output_dir: Path, workers: int) -> CrawlState:
    """Load the state of an output directory, with at most `workers` workers.

    A missing or unreadable file gives an empty state.
    """
    output_dir = output_dir.resolve()
    content = _read(output_dir / STATE_NAME)
    counters: dict[str, Any] = {name: _count(content, name, 0) for name in COUNTERS}
    state = CrawlState(
        output_dir=output_dir,
        initial_workers=workers,
        current_workers=min(workers, _count(content, "current_workers", workers, least=1)),
        **counters,
        awaits_build=content.get("awaits_build") is True,
    )
    counts = content.get("error_counts")
    if isinstance(counts, dict):
        state.errors = {kind: _count(counts, kind, 0) for kind in no_errors()}
    return state


def _read(path: Path) -> dict[str, Any]:
    try:
        return {} if path.stat().st_size > _MAX_BYTES else json_object(path.read_bytes())
    except OSError:
        return {}


def _count(content: dict[str, Any], key: str, default: int, *, least: int = 0) -> int:
    value = content.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MAX_COUNT:
        return default
    return value
