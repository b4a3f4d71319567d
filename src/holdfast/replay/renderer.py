"""ReplayWeb.page as an alternative replay: whether it is installed, and its URLs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from holdfast.config import Settings

RENDERER_FILES: Final = ("ui.js", "sw.js")
"""Its files, which the operator installs."""


def renderer_folder(settings: Settings) -> Path | None:
    """Return the folder of its files; None if one is missing, or packages of captures may not be downloaded."""
    folder = settings.replay.renderer_dir
    return None if folder is None or not settings.api.exports or lacking_files(folder) else folder


def lacking_files(folder: Path) -> list[str]:
    return [name for name in RENDERER_FILES if not (folder / name).is_file()]


def renderer_path(snapshot_id: int) -> str:
    return f"/replay-web-page/open/{snapshot_id}"
