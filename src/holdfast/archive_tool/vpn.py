"""A change of the VPN while the crawl goes on: the operator's command, found on PATH, within a time limit, no shell."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess

from holdfast import log
from holdfast.archive_tool.bell import Bell
from holdfast.archive_tool.environment import docker_environment
from holdfast.archive_tool.times import Times

_POLL_S = 0.1


class Vpn:
    """Runs the connect command."""

    def __init__(self, command: str, times: Times, bell: Bell) -> None:
        self._command, self._times, self._bell = command, times, bell

    def arguments(self) -> list[str] | None:
        """Return the command as a list, its program as a path; None if it makes no sense or is not on PATH."""
        try:
            words = shlex.split(self._command)
        except ValueError:
            return None
        program = shutil.which(words[0]) if words else None
        return [program, *words[1:]] if program else None

    def rotate(self) -> bool:
        """Connect anew and let the network settle; return whether the command ended well, in time."""
        arguments = self.arguments()
        if arguments is None:
            log.get().warning("vpn.command_missing", command=self._command[:100])
            return False
        try:
            process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=docker_environment(), start_new_session=True,
            )  # fmt: skip
        except OSError as exc:
            log.get().warning("vpn.failed", reason=str(exc))
            return False
        code = self._finish(process)
        if code != 0:
            log.get().warning("vpn.failed", exit_code=code)
            return False
        log.get().info("vpn.rotated")
        self._bell.pause(self._times.vpn_settle)
        return True

    def _finish(self, process: subprocess.Popen[bytes]) -> int | None:
        """Return the exit code; None if the time ran out or somebody asked for the end."""
        waited = 0.0
        while waited < self._times.vpn_limit and not self._bell.stopping:
            step = min(_POLL_S, self._times.vpn_limit)
            try:
                return process.wait(timeout=step)
            except subprocess.TimeoutExpired:
                waited += step
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
