"""A command of the server's settings, run with the path of a mount: a list of words, no shell, no secret, in time."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from holdfast.archive_tool.environment import docker_environment

MOUNT = "{mount}"
_SAID_BYTES = 2000
_END_S = 1.0


class Step(NamedTuple):
    """One thing that was done about a path, and how it ended."""

    name: str
    ok: bool
    said: str


def run_step(name: str, command: str, mount: str, *, deadline_s: float, outer: Mapping[str, str] = os.environ) -> Step:
    """Run a command with `{mount}` replaced and say how it ended; a program that is not on PATH is no program."""
    try:
        words = [word.replace(MOUNT, mount) for word in shlex.split(command)]
    except ValueError as exc:
        return Step(name, False, f"{command[:100]!r} is no command: {exc}")
    program = shutil.which(words[0]) if words else None
    if program is None:
        return Step(name, False, f"there is no program {(words or [''])[0][:100]!r} on PATH")
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [program, *words[1:]], stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            env=docker_environment(outer), cwd="/", start_new_session=True,
        )  # fmt: skip
        try:
            code: int | None = process.wait(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            code = None
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_END_S)
        said.seek(0)
        text = said.read(_SAID_BYTES).decode("utf-8", "replace").strip()
    if code is None:
        return Step(name, False, f"it took longer than {deadline_s:g} s; {text}".rstrip("; "))
    return Step(name, code == 0, f"ended with {code}; {text}".rstrip("; "))
