"""Which files there are to import below what somebody named: archives, folders of them, an archive_tool's output.

Every file counts once, however many names it has; empty files and dangling links are passed over, and said so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".wacz")
STATE_FILE = ".archive_state.json"
ASIDE = ("warcs_quarantine", "warcs_compacted")
"""Folders of an archive_tool's output that hold what is not to be read: damaged files, and copies of others."""
PASSED_OVER = {
    ".open": "still being written, or left open by a crawl that died; seal it first",
    ".wet": "text taken out of captures, not captures",
    ".wet.gz": "text taken out of captures, not captures",
    ".wat": "metadata taken out of captures, not captures",
    ".wat.gz": "metadata taken out of captures, not captures",
    ".har": "HAR, which is not read; convert it to WARC",
    ".har.gz": "HAR, which is not read; convert it to WARC",
}
"""How names end that an archivist would look for among the files of a folder, and why they are not imported."""
_MAX_STATE_BYTES = 16 * 1024 * 1024


@dataclass(slots=True)
class Found:
    """What there is to import, and what was passed over."""

    files: list[Path] = field(default_factory=list)
    passed_over: list[tuple[Path, str]] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)
    """Named, and not there."""
    unreadable: list[tuple[Path, str]] = field(default_factory=list)
    """Folders that nobody could look into: what lies there is not known, which is not the same as nothing."""


def spelled(path: Path) -> str:
    """Return a path as rows, logs and people can have it: bytes of a name that are no UTF-8 are written as numbers."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def discover(paths: Iterable[Path], *, follow_state: bool = False) -> Found:
    """Return the files that these paths mean, in order, each once. A file that was named is taken whatever its name.

    A state file inside a folder may name any folder of this machine: those are read only if `follow_state` says so.
    """
    found, seen = Found(), set[tuple[int, int]]()
    for path in paths:
        if path.is_dir():
            for file in _below(path, found, follow_state=follow_state):
                _take(file, found, seen)
        elif path.is_file():
            _take(path, found, seen, named=True)
        else:
            found.missing.append(path)
    return found


def _take(path: Path, found: Found, seen: set[tuple[int, int]], *, named: bool = False) -> None:
    try:
        stat = path.stat()
    except OSError:
        found.passed_over.append((path, "dangling link"))
        return
    identity = stat.st_dev, stat.st_ino
    if identity in seen:
        found.passed_over.append((path, "the same file under another name"))
    elif stat.st_size == 0 and not named:
        found.passed_over.append((path, "empty"))
    else:
        seen.add(identity)
        found.files.append(path)


def _below(folder: Path, told: Found, *, follow_state: bool) -> Iterator[Path]:
    """Yield the archives of a folder by name, stable ones before those in temporary folders.

    Links to folders are not followed: what lies below the folder is met anyway, and what lies elsewhere is told.
    Folders that a tool's state file names as its temporary ones belong to it, wherever they are.
    """

    def refuse(exc: OSError) -> None:
        told.unreadable.append((Path(str(exc.filename)), exc.strerror or str(exc)))

    elsewhere = _tracked(folder)
    if not follow_state:
        told.passed_over += [(path, f"{STATE_FILE} names it, outside of {folder}") for path in elsewhere]
    found = []
    roots = [folder, *(elsewhere if follow_state else ())]
    for root in roots:
        for parent, folders, names in os.walk(root, onerror=refuse, followlinks=False):
            folders[:] = sorted(name for name in folders if name not in ASIDE)
            led_away = ((Path(parent, name), _led_away(parent, name, root)) for name in folders)
            told.passed_over += [(path, why) for path, why in led_away if why]
            found += [Path(parent, name) for name in names if name.lower().endswith(SUFFIXES)]
            told.passed_over += [(Path(parent, name), why) for name in sorted(names) if (why := _reason(name))]
    yield from sorted(set(found), key=lambda path: (any(part.startswith(".tmp") for part in path.parts), str(path)))


def _led_away(parent: str, name: str, root: Path) -> str:
    """Return why a folder is not looked into that is a link to one elsewhere; nothing for all others."""
    path = f"{parent}{os.sep}{name}"
    if not os.path.islink(path):  # noqa: PTH114 - pathlib raises where a path is too long to be looked at
        return ""
    target = Path(path).resolve()
    if target.is_relative_to(root.resolve()):
        return ""
    return f"a link to the folder {target}, outside of {root}; name that folder to import it"


def _reason(name: str) -> str:
    """Return why a file of this name is not imported though it looks like an archive; nothing for all others."""
    lowered = name.lower()
    if lowered.endswith(".open") and not lowered.endswith(tuple(f"{suffix}.open" for suffix in SUFFIXES)):
        return ""
    return next((why for ending, why in PASSED_OVER.items() if lowered.endswith(ending)), "")


def _tracked(folder: Path) -> list[Path]:
    """Return the temporary folders that an archive_tool keeps in its state; none if there is no state, or a bad one."""
    state = folder / STATE_FILE
    try:
        if state.stat().st_size > _MAX_STATE_BYTES:
            return []
        listed = json.loads(state.read_bytes()).get("temp_dirs_host_paths", [])
    except (OSError, ValueError, AttributeError, RecursionError):
        return []
    if not isinstance(listed, list):
        return []
    kept = [Path(one) for one in listed if isinstance(one, str) and "\0" not in one]
    return [path for path in kept if path.is_dir() and not path.resolve().is_relative_to(folder.resolve())]
