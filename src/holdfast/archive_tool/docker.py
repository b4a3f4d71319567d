"""The `docker` command: always a list of arguments, never a shell, with an environment that holds no secret.

Every crawl keeps its temporary directory (`--keep`): without it zimit deletes its WARC files when it is stopped.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.archive_tool.environment import docker_environment
from holdfast.archive_tool.options import Options
from holdfast.archive_tool.times import Times
from holdfast.archive_tool.zimit_flags import Flag, for_final_build, with_size_left
from holdfast.errors import Unavailable

INSIDE = "/output"
SUCCESS_CODES = frozenset({0, 14, 15, 16, 32, 33})
"""Done; and the ways to stop at a limit with everything kept: size, time and disk, and the other numbers that crawlers
of another age have for size and time."""
START_FAILURES = frozenset({125, 126, 127})
"""The daemon refused, or there is no such program in the image."""
_POLL_S = 0.2
_ID = re.compile(r"[0-9a-f]{6,64}")


class DockerMissing(Unavailable):
    """The container engine does not answer."""

    code = "docker_missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One container to run."""

    label: str
    command: tuple[str, ...]


def crawl_arguments(options: Options, workers: int, config: Path | None, *, captured_bytes: int = 0) -> list[str]:
    """Return zimit's arguments for a crawl; `config` is a file in the output directory.

    zimit weighs only what one container captures, so its size limit is less by what earlier ones did.
    """
    arguments = ["--seeds", ",".join(options.seeds), "--name", options.name, "--workers", str(workers)]
    arguments += _words(with_size_left(options.zimit, captured_bytes))
    if config is not None:
        arguments += ["--config", f"{INSIDE}/{config.name}"]
    return [*arguments, "--keep", "--output", INSIDE]


def build_arguments(options: Options, warcs: Sequence[str]) -> list[str]:
    """Return zimit's arguments for building the ZIM from WARC files, named as the container sees them."""
    arguments = ["--seeds", options.seeds[0], "--name", options.name, "--zim-file", options.zim_path.name]
    arguments += ["--warcs", ",".join(warcs), *_words(for_final_build(options.zimit))]
    if options.overwrite:
        arguments.append("--overwrite")
    return [*arguments, "--keep", "--output", INSIDE]


def _words(flags: Sequence[Flag]) -> list[str]:
    return [word for flag in flags for word in flag.words]


def directory_label(output_dir: Path) -> str:
    """Return the label by which the containers of an output directory are found again."""
    return f"archive_dir={hashlib.sha256(str(output_dir).encode()).hexdigest()[:16]}"


def prepare_launch(options: Options, zimit_arguments: Sequence[str]) -> Launch:
    """Return the whole `docker run` command of one stage."""
    label = f"archive-{options.name}-{uuid.uuid4().hex[:8]}"
    command = [
        "docker", "run", "--rm", "-v", f"{options.output_dir}:{INSIDE}", "--label", f"archive_job={label}",
        "--label", directory_label(options.output_dir), "--memory", "4g", "--memory-swap", "4g",
        "--memory-swappiness", "10", "--cpus", "1.5",
    ]  # fmt: skip
    if options.shm_size:
        command += ["--shm-size", options.shm_size]
    return Launch(label=label, command=(*command, options.image, "zimit", *zimit_arguments))


def inside_path(path: Path, output_dir: Path) -> str | None:
    """Return a file's name inside the container; None if it cannot have one, or its name would be read as two."""
    if not path.is_relative_to(output_dir) or "," in path.name:
        return None
    return f"{INSIDE}/{path.relative_to(output_dir)}"


class Docker:
    """What is asked of the engine besides running a crawl."""

    def __init__(self, times: Times) -> None:
        self._times = times

    def check(self) -> str:
        """Return the version of the engine's command; DockerMissing if it does not answer."""
        try:
            done = self._ask(["docker", "--version"])
        except (OSError, subprocess.TimeoutExpired) as exc:
            raise DockerMissing(f"docker does not answer ({exc}); install or start it, and run this again") from exc
        if done.returncode != 0:
            raise DockerMissing(f"docker --version ended with {done.returncode}: {done.stderr[:200]}")
        return done.stdout.strip()

    def daemon(self) -> str:
        """Return the version of the engine itself; DockerMissing if only its command is there, or not even that."""
        try:
            done = self._ask(["docker", "version", "--format", "{{.Server.Version}}"])
        except (OSError, subprocess.TimeoutExpired) as exc:
            raise DockerMissing(f"docker does not answer ({exc}); install or start it, and run this again") from exc
        if done.returncode != 0 or not done.stdout.strip():
            said = " ".join((done.stderr or done.stdout).split())[:200]
            raise DockerMissing(f"docker is installed, and its daemon does not answer: {said or done.returncode}")
        return done.stdout.strip()

    def containers(self, label: str) -> list[str]:
        """Return the ids of running containers with a label; none if the engine does not answer."""
        try:
            done = self._ask(["docker", "ps", "-q", "--filter", f"label={label}"])
        except (OSError, subprocess.TimeoutExpired):
            return []
        return [word for word in done.stdout.split() if _ID.fullmatch(word)] if done.returncode == 0 else []

    def stop(self, container: str, urgent: Callable[[], bool] = lambda: False) -> bool:
        """Stop a container with its grace, which ends as soon as it is urgent; return whether the engine said so."""
        grace = 0.0 if urgent() else self._times.stop_grace
        # Whole seconds are all that docker takes; a scaled-down grace is never rounded down to none.
        seconds = max(1, round(grace)) if grace else 0
        try:
            process = subprocess.Popen(
                ["docker", "stop", "-t", str(seconds), container], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=docker_environment(), start_new_session=True,
            )  # fmt: skip
        except OSError:
            return False
        waited, limit = 0.0, seconds + self._times.stop_margin
        while waited < limit:
            try:
                return process.wait(timeout=_POLL_S) == 0
            except subprocess.TimeoutExpired:
                waited += _POLL_S
            if urgent() and grace:
                self.run_quietly(["docker", "kill", container], self._times.docker_answer)
                grace = 0.0
        process.kill()
        process.wait()
        return False

    def run_quietly(self, command: Sequence[str], timeout: float) -> bool:
        """Run another docker command; return whether it ended well in time."""
        try:
            return self._ask(list(command), timeout=timeout).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False

    def _ask(self, command: list[str], timeout: float | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, stdin=subprocess.DEVNULL,
            env=docker_environment(), timeout=timeout or self._times.docker_answer, start_new_session=True,
        )  # fmt: skip
