"""How rows name files: relative to the data directory where they lie below it, so that the directory can be moved."""

from __future__ import annotations

from pathlib import Path


def relative(home: Path, path: Path) -> str:
    """Return the name that a row stores for a file."""
    home, path = home.resolve(), path.resolve()
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)


def absolute(home: Path, stored: str) -> Path:
    """Return where a file lies that a row names so."""
    return home.resolve() / stored
