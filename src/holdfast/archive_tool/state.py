"""`.archive_state.json`: what a run leaves for the next one. A field of a wrong type is begun anew, alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.archive_tool.errors import StateUnwritable
from holdfast.archive_tool.files import write_whole

STATE_NAME = ".archive_state.json"
TEMP_PREFIX = ".tmp"
ERROR_KINDS = ("timeout", "http", "other")
_MAX_BYTES = 4 * 1024 * 1024
_MAX_COUNT = 1_000_000


def is_temp_dir(path: Path, output_dir: Path) -> bool:
    """Return whether this is a temporary directory of a crawl: directly in the output directory, no link."""
    return path.name.startswith(TEMP_PREFIX) and path.parent == output_dir and path.is_dir() and not path.is_symlink()


def temp_dirs_in(output_dir: Path) -> list[Path]:
    """Return every temporary directory that stands in an output directory, oldest first.

    None where there is no such directory; OSError if the disk does not answer, for that is not the same.
    """
    try:
        found = list(output_dir.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return _by_age(path for path in found if is_temp_dir(path, output_dir))


def _by_age(paths: Iterable[Path]) -> list[Path]:
    return sorted(dict.fromkeys(paths), key=lambda path: (_changed_at(path), path.name))


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


@dataclass(slots=True, kw_only=True)
class CrawlState:
    """Workers, temporary directories and what has been tried. Changes are on disk when a method returns."""

    output_dir: Path
    initial_workers: int
    current_workers: int
    temp_dirs: list[Path] = field(default_factory=list)
    vpn_rotations: int = 0
    worker_reductions: int = 0
    container_restarts: int = 0
    errors: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ERROR_KINDS, 0))
    awaits_build: bool = False
    """Whether the crawl has come to its end and only the ZIM is missing: the next run only builds."""
    guard: Callable[[], None] = lambda: None
    """Asked before each write; raises if the directory is no longer the one that it was."""

    @property
    def path(self) -> Path:
        """Where the state is kept."""
        return self.output_dir / STATE_NAME

    def save(self) -> None:
        """Write the state, synced, without temporary directories that are gone; StateUnwritable if the disk refuses."""
        self.guard()
        self.temp_dirs = _by_age(path for path in self.temp_dirs if is_temp_dir(path, self.output_dir))
        content = {
            "current_workers": self.current_workers,
            "initial_workers": self.initial_workers,
            "temp_dirs_host_paths": [str(path) for path in self.temp_dirs],
            "vpn_rotations_done": self.vpn_rotations,
            "worker_reductions_done": self.worker_reductions,
            "container_restarts_done": self.container_restarts,
            "error_counts": self.errors,
            "awaits_build": self.awaits_build,
        }
        try:
            write_whole(self.path, (json.dumps(content, indent=2) + "\n").encode())
        except OSError as exc:
            raise StateUnwritable(self.path, exc) from exc

    def add_temp_dir(self, path: Path) -> bool:
        """Remember a temporary directory; False if it is none of this output directory's."""
        canonical = self.output_dir / path.name
        if path.resolve().parent != self.output_dir or not is_temp_dir(canonical, self.output_dir):
            return False
        if canonical not in self.temp_dirs:
            self.temp_dirs.append(canonical)
            self.save()
        return True

    def reduce_workers(self) -> None:
        """Use one worker less from now on."""
        self.current_workers -= 1
        self.worker_reductions += 1
        self.save()

    def count_restart(self) -> None:
        """Count one restart of the container."""
        self.container_restarts += 1
        self.save()

    def count_rotation(self) -> None:
        """Count one change of the VPN that worked."""
        self.vpn_rotations += 1
        self.save()

    def note_crawl(self, *, awaits_build: bool) -> None:
        """Write down whether a crawl has come to its end and waits for its final build."""
        if self.awaits_build != awaits_build:
            self.awaits_build = awaits_build
            self.save()

    def reset_adaptation(self) -> None:
        """Begin a new phase: all workers, nothing tried yet."""
        self.current_workers = self.initial_workers
        self.vpn_rotations = self.worker_reductions = self.container_restarts = 0
        self.errors = dict.fromkeys(ERROR_KINDS, 0)
        self.save()

    def forget(self) -> None:
        """Remove the file and begin as if nothing had been."""
        self.path.unlink(missing_ok=True)
        self.temp_dirs = []
        self.awaits_build = False
        self.current_workers = self.initial_workers
        self.vpn_rotations = self.worker_reductions = self.container_restarts = 0
        self.errors = dict.fromkeys(ERROR_KINDS, 0)


def load_state(output_dir: Path, workers: int) -> CrawlState:
    """Return the state of an output directory, with at most as many workers as are asked for now.

    A missing or unreadable file is an empty state; temporary directories are those that exist, oldest first.
    """
    output_dir = output_dir.resolve()
    content = _read(output_dir / STATE_NAME)
    state = CrawlState(
        output_dir=output_dir,
        initial_workers=workers,
        current_workers=min(workers, _count(content, "current_workers", workers, least=1)),
        vpn_rotations=_count(content, "vpn_rotations_done", 0),
        worker_reductions=_count(content, "worker_reductions_done", 0),
        container_restarts=_count(content, "container_restarts_done", 0),
        awaits_build=content.get("awaits_build") is True,
    )
    counts = content.get("error_counts")
    if isinstance(counts, dict):
        state.errors = {kind: _count(counts, kind, 0) for kind in ERROR_KINDS}
    listed = content.get("temp_dirs_host_paths")
    if isinstance(listed, list):
        named = [Path(entry) for entry in listed if isinstance(entry, str) and entry and "\0" not in entry]
        canonical = [output_dir / path.name for path in named if path.resolve().parent == output_dir]
        state.temp_dirs = _by_age(path for path in canonical if is_temp_dir(path, output_dir))
    return state


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            return {}
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _count(content: dict[str, Any], key: str, default: int, *, least: int = 0) -> int:
    value = content.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MAX_COUNT:
        return default
    return value
