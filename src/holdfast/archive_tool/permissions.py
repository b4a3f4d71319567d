"""Loosening permissions: what the container's user wrote becomes readable for all, and nothing becomes writable."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from holdfast import log
from holdfast.archive_tool.docker import INSIDE, Docker
from holdfast.archive_tool.manifest import WARCS
from holdfast.archive_tool.state import temp_dirs_in

_ASK_S = 120.0
_READ = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
_ENTER = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH

Chmod = Callable[[Path, int], None]


def relax(output_dir: Path, chmod: Chmod = os.chmod) -> int:
    """Add read (and enter, for directories) for all below the temporary and stable directories; return the failures.

    Files of another user cannot be changed from here: they are counted.
    """
    failures = 0
    for top in [*temp_dirs_in(output_dir), output_dir / WARCS]:
        failures += _relax_one(top, chmod)
        for root, folders, names in os.walk(top, followlinks=False):
            failures += sum(_relax_one(Path(root, name), chmod) for name in (*folders, *names))
    return failures


def _relax_one(path: Path, chmod: Chmod) -> int:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return 0
        wanted = stat.S_IMODE(mode) | _READ | (_ENTER if stat.S_ISDIR(mode) else 0)
        if wanted != stat.S_IMODE(mode):
            chmod(path, wanted)
    except FileNotFoundError:
        return 0
    except OSError:
        return 1
    return 0


def relax_with(docker: Docker, output_dir: Path, *, image: str, container: str | None, chmod: Chmod = os.chmod) -> bool:
    """Loosen permissions, with the container's own user where ours may not; return whether all of it worked."""
    failures = relax(output_dir, chmod)
    if not failures:
        return True
    change = ["chmod", "-R", "a+rX", INSIDE]
    if container is not None:
        command = ["docker", "exec", container, *change]
    else:
        command = [
            "docker", "run", "--rm", "-v", f"{output_dir}:{INSIDE}", "--entrypoint", change[0], image, *change[1:],
        ]  # fmt: skip
    done = docker.run_quietly(command, _ASK_S)
    log.get().info("permissions.relaxed", failures=failures, by_container=done)
    return done
