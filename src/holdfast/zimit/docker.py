"""The `docker` command: always a list of arguments, never a shell, with an environment without secrets.

Every crawl preserves its temporary directory (`--keep`): without it, zimit deletes its WARC files when stopped.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Self

from holdfast import log
from holdfast.processes.child_process import ChildProcess
from holdfast.values import dataclass
from holdfast.zimit.errors import DockerMissing, ToolMissing
from holdfast.zimit.flags import Options
from holdfast.zimit.output_directory import temp_dirs_in
from holdfast.zimit.passthrough import for_final_build, with_size_left, words_of
from holdfast.zimit.warc_files import WARCS

_PLAIN = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"),
)
_DOCKER = tuple(f"DOCKER_{name}" for name in ("HOST", "CONTEXT", "CONFIG", "CERT_PATH", "TLS_VERIFY", "API_VERSION"))
_CRAWL = (
    *("HOLDFAST_CONTACT", "HOLDFAST_USER_AGENT", "HOLDFAST_ALLOW_NETWORKS", "HOLDFAST_LOG_LEVEL"),
    *("HOLDFAST_POLITENESS_", "HOLDFAST_FETCH_", "HOLDFAST_TIMINGS_"),
    *("HOLDFAST_WARC_", "HOLDFAST_ENGINE_", "HOLDFAST_DISK_"),
)


def docker_environment(outer: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {name: outer[name] for name in (*_PLAIN, *_DOCKER) if name in outer}


def crawl_environment(outer: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of Holdfast's own crawler when it captures instead of zimit."""
    ours = {name: value for name, value in outer.items() if name.startswith(_CRAWL)}
    return {**{name: outer[name] for name in _PLAIN if name in outer}, **ours}


def find_program(command: str, outer: Mapping[str, str] = os.environ) -> list[str]:
    """Return the command's words with the path of its program first; raise `ToolMissing` if it is not found."""
    try:
        words = shlex.split(command)
    except ValueError as exc:
        raise ToolMissing(command, str(exc)) from exc
    if not words:
        raise ToolMissing(command, "it is empty")
    beside = Path(sys.executable).parent / words[0]
    if "/" not in words[0] and beside.is_file() and os.access(beside, os.X_OK):
        return [str(beside), *words[1:]]
    found = shutil.which(words[0], path=outer.get("PATH", os.defpath))
    if found is None:
        raise ToolMissing(command, "there is no such program beside the interpreter or on PATH")
    return [found, *words[1:]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Durations in seconds, measured on the monotonic clock."""

    stop_grace: float = 90.0
    """Time that `docker stop` gives the container before killing it."""
    stop_margin: float = 30.0
    """Extra time beyond the grace to wait for `docker` itself."""
    lookup_every: float = 2.0
    docker_answer: float = 60.0
    """Timeout of `docker ps` and `docker --version`."""
    vpn_limit: float = 120.0
    vpn_settle: float = 15.0
    status_every: float = 30.0
    """Interval between two statistics lines of Holdfast's own crawler."""

    @classmethod
    def scaled(cls, factor: float) -> Self:
        """Return all times multiplied by `factor`; timeouts for program responses have a floor."""
        plain, floors = asdict(cls()), {"stop_margin": 10.0, "docker_answer": 60.0, "status_every": 3.0}
        return cls(**{name: max(floors.get(name, 0.0), value * factor) for name, value in plain.items()})


LOOKUPS = 5
INSIDE = "/output"
SUCCESS_CODES = frozenset({0, 14, 15, 16, 32, 33})
"""Exit codes of success and of stops at a limit with all files preserved: size, time and disk.

Includes the size and time codes of other crawler versions. Such a crawl is not retried.
"""
START_FAILURES = frozenset({125, 126, 127})
"""The daemon refused the container, or the image lacks the program."""
_ID = re.compile(r"[0-9a-f]{6,64}")


def crawl_arguments(options: Options, workers: int, config: Path | None, *, captured_bytes: int = 0) -> list[str]:
    """Return zimit's arguments for a crawl; `config` is a file in the output directory.

    zimit counts only the bytes of one container, so its size limit is reduced by `captured_bytes`.
    """
    arguments = ["--seeds", ",".join(options.seeds), "--name", options.name, "--workers", str(workers)]
    arguments += words_of(with_size_left(options.zimit, captured_bytes))
    if config is not None:
        arguments += ["--config", f"{INSIDE}/{config.name}"]
    # Always `--keep`: zimit removes its temporary directory when it is stopped, and the WARC files in it with it.
    return [*arguments, "--keep", "--output", INSIDE]


def build_arguments(options: Options, warcs: Sequence[str]) -> list[str]:
    """Return zimit's arguments for building the ZIM from WARC files, using their paths inside the container."""
    arguments = ["--seeds", options.seeds[0], "--name", options.name, "--zim-file", options.zim_path.name]
    arguments += ["--warcs", ",".join(warcs), *words_of(for_final_build(options.zimit))]
    if options.overwrite:
        arguments.append("--overwrite")
    return [*arguments, "--keep", "--output", INSIDE]


def directory_label(output_dir: Path) -> str:
    # By the directory, not by the process: the next tool there finds the containers that a killed one left running.
    return f"archive_dir={hashlib.sha256(str(output_dir).encode()).hexdigest()[:16]}"


def prepare_launch(options: Options, zimit_arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Return the label of a new container, and the command that runs zimit in it."""
    label = f"archive_job=archive-{options.name}-{uuid.uuid4().hex[:8]}"
    command = ["docker", "run", "--rm", "-v", f"{options.output_dir}:{INSIDE}"]
    command += ["--label", label, "--label", directory_label(options.output_dir)]
    command += ["--memory", options.memory, "--memory-swap", options.memory, "--memory-swappiness", "10"]
    command += ["--cpus", f"{options.cpus:g}"]
    if options.shm_size:
        command += ["--shm-size", options.shm_size]
    return label, [*command, options.image, "zimit", *zimit_arguments]


def inside_path(path: Path, output_dir: Path) -> str | None:
    """Return a file's path inside the container; None if it has none or zimit would split its name in two."""
    if not path.is_relative_to(output_dir) or "," in path.name:
        return None
    return f"{INSIDE}/{path.relative_to(output_dir)}"


def start_quietly(command: Sequence[str]) -> ChildProcess:
    """Start a program without our secrets, and discard its output."""
    return ChildProcess(command, docker_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ask(command: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return what it said; raise OSError or `subprocess.TimeoutExpired` if it cannot."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        stdin=subprocess.DEVNULL,
        env=environment,
        timeout=timeout_s,
        start_new_session=True,
    )


class Docker:
    def __init__(self, times: Times) -> None:
        self._times = times

    def check(self) -> str:
        done = self.ask("--version")
        if done.returncode != 0:
            raise DockerMissing(f"docker --version ended with {done.returncode}: {done.stderr[:200]}")
        return done.stdout.strip()

    def daemon(self) -> str:
        """Return the version of the daemon; raise `DockerMissing` if the daemon or the command is unavailable."""
        # The client answers `docker --version` even while its daemon is down.
        done = self.ask("version", "--format", "{{.Server.Version}}")
        if done.returncode != 0 or not done.stdout.strip():
            said = " ".join((done.stderr or done.stdout).split())[:200]
            raise DockerMissing(f"docker is installed, and its daemon does not answer: {said or done.returncode}")
        return done.stdout.strip()

    def containers(self, label: str) -> list[str]:
        """Return the ids of running containers with a label; empty if the engine does not respond."""
        try:
            done = self.ask("ps", "-q", "--filter", f"label={label}")
        except DockerMissing:
            return []
        # Only what looks like an id is passed on as an argument of `docker stop`.
        return [word for word in done.stdout.split() if _ID.fullmatch(word)] if done.returncode == 0 else []

    def stop(self, container: str, urgent: Callable[[], bool] = lambda: False) -> bool:
        """Stop a container with its grace, which ends as soon as `urgent()` is true; return whether the engine
        confirmed.
        """
        hurried, margin = urgent(), self._times.stop_margin
        # Whole seconds are all that docker takes; a scaled-down grace is never rounded down to none.
        seconds = 0 if hurried else max(1, round(self._times.stop_grace))
        try:
            stopping = start_quietly(["docker", "stop", "-t", str(seconds), container])
        except OSError:
            return False
        code = stopping.wait(seconds + margin, lambda: not hurried and urgent())
        # A second request to end takes the rest of the grace away.
        hurries = code is None and not hurried and urgent()
        if hurries:
            with suppress(DockerMissing):
                self.ask("kill", container)
        return stopping.finish(margin if hurries else 0.0) == 0

    def ask(self, *words: str, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
        """Run another docker command; raise `DockerMissing` if docker does not answer in time."""
        try:
            return ask(["docker", *words], docker_environment(), timeout_s or self._times.docker_answer)
        except (OSError, subprocess.TimeoutExpired) as exc:
            raise DockerMissing(f"docker does not answer ({exc}); install or start it, and run this again") from exc


_CHMOD_S = 120.0
_READ = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
_ENTER = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def relax(docker: Docker, output_dir: Path, *, image: str, container: str | None) -> bool:
    """Add read permission (and execute for directories) below the temporary and stable directories.

    The container's own user does it where ours lacks the rights. Return whether everything succeeded.
    """
    failures = 0
    for top in [*temp_dirs_in(output_dir), output_dir / WARCS]:
        failures += _relax_one(top)
        for root, folders, names in os.walk(top, followlinks=False):
            failures += sum(_relax_one(Path(root, name)) for name in (*folders, *names))
    if not failures:
        return True
    if container is not None:
        words = ["exec", container, "chmod"]
    else:
        words = ["run", "--rm", "-v", f"{output_dir}:{INSIDE}", "--entrypoint", "chmod", image]
    done = False
    with suppress(DockerMissing):
        done = docker.ask(*words, "-R", "a+rX", INSIDE, timeout_s=_CHMOD_S).returncode == 0
    log.get().info("permissions.relaxed", failures=failures, by_container=done)
    return done


def _relax_one(path: Path) -> int:
    try:
        mode = path.lstat().st_mode
        # A link may lead out of the directory: permissions are changed by name only below it.
        if stat.S_ISLNK(mode):
            return 0
        wanted = stat.S_IMODE(mode) | _READ | (_ENTER if stat.S_ISDIR(mode) else 0)
        if wanted != stat.S_IMODE(mode):
            path.chmod(wanted)
    except FileNotFoundError:
        return 0
    except OSError:
        return 1
    return 0
