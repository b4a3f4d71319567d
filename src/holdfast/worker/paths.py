"""How rows name files: relative to the data directory where they lie below it, so that the directory can be moved.

The way back is `warc.roots.locate`, which refuses places where no file of ours may lie.
"""

from __future__ import annotations

from pathlib import Path


def relative(home: Path, path: Path) -> str:
    """Return the name that a row stores for a file."""
    home, path = home.resolve(), path.resolve()
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)
