"""One part of `serve` as a child process that dies with its supervisor, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from holdfast.processes.child_process import ChildProcess
from holdfast.processes.parent_death import die_with
from holdfast.processes.part_output import Lines
from holdfast.values import dataclass

STARTED_AGAIN: Final = "HOLDFAST_STARTED_AGAIN"
"""Variable that tells a part that the front has already started before, so that notices are not repeated."""
FOR_PEOPLE: Final = "no administrator yet: "
"""Prefix of a line of the front for the person who started the server: it is passed on unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePart:
    name: str
    command: tuple[str, ...]
    is_front: bool = False
    """Whether it serves readers: it starts first, is stopped last, and prints a line when it is ready."""


class PartProcess(ChildProcess):
    """A running part, whose output is read line by line."""

    def __init__(self, part: ServicePart, environment: Mapping[str, str]) -> None:
        super().__init__(
            part.command,
            {**environment, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Safe here: the supervisor has one thread, so code may run between fork and exec. KILL, not TERM: a
            # draining part would hold port and lock while the next supervisor starts. All work of a part survives a
            # kill.
            preexec_fn=partial(die_with, os.getpid(), signal.SIGKILL),
        )
        assert self.stdout is not None
        assert self.stderr is not None
        self.output, self.errors = Lines(self.stdout.fileno()), Lines(self.stderr.fileno())


def reap_strangers(known: Sequence[int]) -> None:
    """Reap ended processes that are not ours: process 1 of a container inherits all orphans."""
    with suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in known:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
