"""ReplayWeb.page as a second way to show a capture: whether it is installed, and where it shows one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from holdfast.config import Settings

RENDERER_FILES: Final = ("ui.js", "sw.js")
"""What it consists of; the operator puts them there."""


def renderer_folder(settings: Settings) -> Path | None:
    """Return the folder with its files; None if one is missing, or captures may not be taken away as packages."""
    folder = settings.replay.renderer_dir
    return None if folder is None or not settings.api.exports or lacking_files(folder) else folder


def lacking_files(folder: Path) -> list[str]:
    """Return which of its files are not there."""
    return [name for name in RENDERER_FILES if not (folder / name).is_file()]


def renderer_path(snapshot_id: int) -> str:
    """Return where it shows a capture, on the replay host."""
    return f"/replay-web-page/open/{snapshot_id}"
