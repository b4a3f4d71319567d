"""Where captures lie: folders that are marked inside and known outside, so that a mount which is away is noticed.

The empty directory below a mount is never written to: StoreMissing is the machine's fault, and costs no retry.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.archive_tool.errors import StoreMissing
from holdfast.archive_tool.output_directory import SENTINEL, store_is_present

KNOWN = "stores"
"""The folder beside the database that is there once captures were stored, with one in it for each source that did."""


def open_store(home: Path, code: str) -> Path:
    """Return the folder of a source, made and marked at its first use; StoreMissing if a mark has gone since.

    The folder of all sources is looked at in the same way: either may be a mount.
    """
    root = home / "warcs"
    _open(root, home / KNOWN)
    _open(root / code, home / KNOWN / code)
    return (root / code).resolve()


def _open(folder: Path, known: Path) -> None:
    if known.exists():
        if not store_is_present(folder):
            raise StoreMissing(folder, f"its {SENTINEL} is not there any more; make that file if this is the place")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SENTINEL).touch()
        known.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreMissing(folder, f"errno {exc.errno}: {exc.strerror}") from exc


def relative(home: Path, path: Path) -> str:
    """Return the name that a row stores for a file."""
    home, path = home.resolve(), path.resolve()
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)
