"""Whether a disk has room for new work: who writes much asks here first."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.config import DiskSettings


def is_low(folder: Path, marks: DiskSettings) -> bool:
    """Return whether the disk under a folder has less room than we keep free."""
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    return free < marks.free_bytes or free < disk.f_blocks * disk.f_frsize * marks.free_percent / 100
