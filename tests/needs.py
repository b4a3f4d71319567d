"""What a test needs beside Python. Where everything was promised (`make test`, CI) a lack is a failure, else a skip."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAMPLES = {
    "archives": Path(os.environ.get("HOLDFAST_FOREIGN_ARCHIVES") or ROOT.parent / "shared" / "data"),
    "bench": Path(os.environ.get("HOLDFAST_BENCH_WEB") or ROOT.parent / "shared" / "bench"),
}
"""Folders beside the checkout that nothing installs: archives of many other writers, and the benchmark's web."""
_NAMED_BY = {"archives": "HOLDFAST_FOREIGN_ARCHIVES", "bench": "HOLDFAST_BENCH_WEB"}


REQUIRED = "TESTS_REQUIRE_SERVICES"
"""The variable that `tests/conftest.py` makes of HOLDFAST_REQUIRE_SERVICES."""


def is_required() -> bool:
    """Return whether this run promised to have every service and tool."""
    return os.environ.get("CI") == "true" or os.environ.get(REQUIRED) == "1"


def lacking(what: str, next_step: str) -> None:
    """End the test: failed where everything was promised, else skipped, in one line that names the next step."""
    message = f"{what} is not here; {next_step}"
    if is_required():
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def has_samples(item: pytest.Item) -> bool:
    """Return whether the folder is there that a test marked `samples(name)` reads.

    A checkout without it leaves the test out, and is no worse tested: each has a counterpart that has the same tools
    write files while it runs. A folder that was named must be there.
    """
    for mark in item.iter_markers("samples"):
        (name,) = mark.args
        if not SAMPLES[name].is_dir():
            if os.environ.get(_NAMED_BY[name]):
                raise pytest.UsageError(f"{_NAMED_BY[name]} names {SAMPLES[name]}, which is no folder")
            return False
    return True


def other_volume(path: Path) -> Path:
    """Return a folder that may be written to on another file system than `path`."""
    for folder in (Path("/dev/shm"), Path(tempfile.gettempdir()), Path("/var/tmp"), Path.home(), ROOT):
        if folder.is_dir() and os.access(folder, os.W_OK) and folder.stat().st_dev != path.stat().st_dev:
            return folder
    lacking("a second file system", f"one beside that of {path}, for example a tmpfs at /dev/shm")
    raise AssertionError


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
    """End a test whose mount was refused."""
    lacking("mounting", f"a test mounts a small disk of its own, which needs root: {error}")
