"""What a test needs beside Python. Where everything was promised (`make test`, CI) a lack is a failure, else a skip."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def is_required() -> bool:
    """Return whether this run promised to have every service and tool."""
    return os.environ.get("CI") == "true" or os.environ.get("HOLDFAST_REQUIRE_SERVICES") == "1"


def lacking(what: str, next_step: str) -> None:
    """End the test: failed where everything was promised, else skipped, in one line that names the next step."""
    message = f"{what} is not here; {next_step}"
    if is_required():
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def program(name: str, *, package: str | None = None) -> str:
    """Return where a program is."""
    found = shutil.which(name)
    if found is None:
        lacking(name, f"`tools/services` installs it (package {package or name})")
    assert found is not None
    return found


def peer(path: Path) -> Path:
    """Return a tool of another project, which `make peers` installs."""
    if not path.exists():
        lacking(path.name, "`make peers` builds the environment of other tools")
    return path


def may_mount(error: str) -> None:
    """End a test whose mount was refused: root was promised to be able to, others cannot."""
    if os.geteuid() == 0:
        lacking("mounting", f"a test mounts a small disk of its own: {error}")
    pytest.skip(f"mounting needs root: {error}")
