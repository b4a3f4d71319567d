"""The command line of `archive-tool`, turned into one frozen value. Wrong usage ends the program with exit code 2."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

from holdfast.archive_tool.errors import ToolConfigRefused
from holdfast.archive_tool.zimit_flags import Flag, check_managed, read_flags, split_workers
from holdfast.errors import Invalid, UrlRefused
from holdfast.urls import parse

DEFAULT_IMAGE = "ghcr.io/openzim/zimit"
MAX_SEEDS = 1000
MAX_ATTEMPTS = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._:/@-]{0,254}")
MEMORY, CPUS = "4g", 1.5
"""What a container may use where nothing else is said."""
SHM_SIZE = re.compile(r"\d{1,9}[bkmgBKMG]?")
SHM_SIZE_HINT = "write for example 512m or 1g"


class Backend(StrEnum):
    """What captures pages."""

    BROWSERTRIX = "browsertrix"
    HTTP_WARC = "http_warc"
    PLAYWRIGHT_WARC = "playwright_warc"


UNAVAILABLE = (Backend.PLAYWRIGHT_WARC.value,)
"""Backends that have a name and that nothing here runs yet."""


class ResumePolicy(StrEnum):
    """Whether an earlier queue may be taken up again."""

    AUTO = "auto"
    FRESH_ONLY = "fresh_only"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """How a crawl is watched, and what may be tried when it is in trouble."""

    enabled: bool = False
    interval_s: float = 30.0
    stall_s: float = 1800.0
    timeout_errors: int = 10
    http_errors: int = 10
    adaptive_workers: bool = False
    min_workers: int = 1
    max_reductions: int = 3
    adaptive_restart: bool = False
    max_restarts: int = 5
    vpn: bool = False
    vpn_command: str | None = None
    max_rotations: int = 3
    rotation_every_s: float = 3600.0
    backoff_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryOptions:
    """What is done with the remains of earlier runs, and when another backend takes over."""

    policy: ResumePolicy = ResumePolicy.AUTO
    fallback: Backend | None = None
    fresh_failures: int = 0
    """Failed fresh phases after which the fallback runs; 0 leaves that decision to the caller."""
    reset_poisoned: bool = False
    max_temp_dirs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One crawl, as it was asked for."""

    seeds: tuple[str, ...]
    name: str
    output_dir: Path
    workers: int = 1
    backend: Backend = Backend.BROWSERTRIX
    cleanup: bool = False
    overwrite: bool = False
    skip_final_build: bool = False
    dry_run: bool = False
    log_level: str = "INFO"
    image: str = DEFAULT_IMAGE
    shm_size: str | None = None
    memory: str = MEMORY
    cpus: float = CPUS
    managed_config: dict[str, Any] | None = None
    relax_perms_s: float | None = None
    """Seconds between two rounds of loosening permissions; None leaves them alone."""
    store_root: Path | None = None
    watch: WatchOptions = WatchOptions()
    recovery: RecoveryOptions = RecoveryOptions()
    zimit: tuple[Flag, ...] = ()
    max_attempts: int = MAX_ATTEMPTS
    time_scale: float = 1.0

    @property
    def zim_path(self) -> Path:
        """Where the finished ZIM stands."""
        return self.output_dir / f"{self.name}.zim"

    @property
    def wants_build(self) -> bool:
        """Whether a ZIM is built at the end."""
        return not self.skip_final_build


def parser() -> argparse.ArgumentParser:
    """Return the parser; flags that it does not know are zimit's."""
    made = argparse.ArgumentParser(
        prog="archive-tool",
        allow_abbrev=False,
        description="Crawl with zimit in a container: resumed where it stopped, watched, and never without its WARCs.",
        epilog="Other flags go to zimit, if they are among those that say what to crawl. Example: archive-tool"
        " --seeds https://example.org --name example --output-dir jobs/example --skip-final-build --scopeType host",
    )
    made.add_argument("--seeds", nargs="+", required=True, metavar="URL", help="where the crawl begins")
    made.add_argument("--name", required=True, help="name of the job and of its ZIM file")
    made.add_argument("--output-dir", required=True, type=Path, help="directory of everything that this crawl makes")
    made.add_argument("--initial-workers", type=int, default=1, help="browser workers to begin with (1)")
    made.add_argument("--log-level", default="INFO", choices=["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
    made.add_argument("--dry-run", action="store_true", help="print the plan, touch nothing")
    made.add_argument("--cleanup", action="store_true", help="after success, keep the WARCs and remove the rest")
    made.add_argument("--overwrite", action="store_true", help="build an existing ZIM anew, from a fresh crawl")
    made.add_argument("--skip-final-build", action="store_true", help="stop at the WARC files")
    made.add_argument("--docker-image", default=DEFAULT_IMAGE)
    made.add_argument("--docker-memory", metavar="SIZE", default=MEMORY, help="memory of the container")
    made.add_argument("--docker-cpus", metavar="NUMBER", type=float, default=CPUS, help="CPU cores of the container")
    made.add_argument("--docker-shm-size", metavar="SIZE", help="shared memory of the browser, for example 1g")
    made.add_argument("--browsertrix-config-json", metavar="JSON", help="settings that every phase must have")
    made.add_argument("--relax-perms", action="store_true", help="make what the container wrote readable for all")
    made.add_argument("--relax-perms-interval-seconds", type=float, default=180.0, help="(180, at least 10)")
    made.add_argument("--store-root", type=Path, help="mounted storage; without its sentinel nothing is written")
    made.add_argument("--allow-zimit-flag", action="append", default=[], metavar="FLAG", help="let one more through")
    made.add_argument("--max-attempts", type=int, default=MAX_ATTEMPTS, help=argparse.SUPPRESS)
    made.add_argument("--time-scale", type=float, default=1.0, help=argparse.SUPPRESS)
    _add_recovery(made)
    _add_watch(made)
    return made


def _add_recovery(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("backends and earlier runs")
    fallbacks = ["none", Backend.HTTP_WARC.value, Backend.PLAYWRIGHT_WARC.value]
    group.add_argument("--capture-backend", default="browsertrix", choices=[one.value for one in Backend])
    group.add_argument("--resume-policy", default="auto", choices=[one.value for one in ResumePolicy])
    group.add_argument("--fallback-backend", default="none", choices=fallbacks)
    group.add_argument("--max-fresh-failures-before-fallback", type=int, default=0, metavar="N", help="0 is never")
    group.add_argument("--auto-reset-poisoned-state", action="store_true", help="clear a queue that cannot go on")
    group.add_argument("--max-temp-dirs-before-reset", type=int, metavar="N", help="clear up beyond this many")


def _add_watch(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("watching")
    group.add_argument("--enable-monitoring", action="store_true")
    group.add_argument("--monitor-interval-seconds", type=float, default=30.0)
    group.add_argument("--stall-timeout-minutes", type=float, default=30.0)
    group.add_argument("--error-threshold-timeout", type=int, default=10)
    group.add_argument("--error-threshold-http", type=int, default=10)
    group.add_argument("--enable-adaptive-workers", action="store_true")
    group.add_argument("--min-workers", type=int, default=1)
    group.add_argument("--max-worker-reductions", type=int, default=3)
    group.add_argument("--enable-adaptive-restart", action="store_true")
    group.add_argument("--max-container-restarts", type=int, default=5)
    group.add_argument("--enable-vpn-rotation", action="store_true")
    group.add_argument("--vpn-connect-command", metavar="COMMAND")
    group.add_argument("--vpn-disconnect-command", metavar="COMMAND", help="accepted and ignored")
    group.add_argument("--max-vpn-rotations", type=int, default=3)
    group.add_argument("--vpn-rotation-frequency-minutes", type=float, default=60.0)
    group.add_argument("--backoff-delay-minutes", type=float, default=5.0)


def read_options(arguments: Sequence[str]) -> Options:
    """Return what the command line asks for; SystemExit(2) with a sentence on standard error if it makes no sense."""
    made = parser()
    known, rest = made.parse_known_args(list(arguments))
    try:
        _check_watch(known)
        workers, flags = split_workers(read_flags(rest, known.allow_zimit_flag))
        return _options(known, workers, flags)
    except Invalid as exc:
        _refuse(made, str(exc))


def _refuse(made: argparse.ArgumentParser, sentence: str) -> NoReturn:
    made.error(sentence)


def _check_watch(known: argparse.Namespace) -> None:
    wants = known.enable_adaptive_workers or known.enable_adaptive_restart or known.enable_vpn_rotation
    rules = (
        (
            wants and not known.enable_monitoring,
            "--enable-monitoring",
            "adaptive workers, adaptive restart and VPN rotation need it",
        ),
        (
            known.enable_vpn_rotation and not (known.vpn_connect_command or "").strip(),
            "--vpn-connect-command",
            "VPN rotation needs it",
        ),
        (known.min_workers < 1, "--min-workers", "it must be at least 1"),
        (known.initial_workers < 1, "--initial-workers", "it must be at least 1"),
        (known.max_container_restarts < 0, "--max-container-restarts", "it cannot be negative"),
        (known.max_worker_reductions < 0, "--max-worker-reductions", "it cannot be negative"),
        (known.max_vpn_rotations < 0, "--max-vpn-rotations", "it cannot be negative"),
        (known.vpn_rotation_frequency_minutes < 0, "--vpn-rotation-frequency-minutes", "it cannot be negative"),
        (known.backoff_delay_minutes < 0, "--backoff-delay-minutes", "it cannot be negative"),
        (not known.monitor_interval_seconds > 0, "--monitor-interval-seconds", "it must be more than 0"),
        (not known.stall_timeout_minutes > 0, "--stall-timeout-minutes", "it must be more than 0"),
        (known.error_threshold_timeout < 1, "--error-threshold-timeout", "it must be at least 1"),
        (known.error_threshold_http < 1, "--error-threshold-http", "it must be at least 1"),
        (known.max_fresh_failures_before_fallback < 0, "--max-fresh-failures-before-fallback", "it cannot be negative"),
        (
            known.max_temp_dirs_before_reset is not None and known.max_temp_dirs_before_reset <= 0,
            "--max-temp-dirs-before-reset",
            "it must be more than 0",
        ),
        (not 1 <= known.max_attempts <= MAX_ATTEMPTS, "--max-attempts", f"it lies between 1 and {MAX_ATTEMPTS}"),
        (not 0 < known.docker_cpus <= 1024, "--docker-cpus", "it lies between 0 and 1024"),
        (not 0 < known.time_scale <= 1, "--time-scale", "it lies between 0 and 1"),
    )
    for broken, flag, reason in rules:
        if broken:
            raise ToolConfigRefused(flag, reason)


def _options(known: argparse.Namespace, workers: int | None, flags: tuple[Flag, ...]) -> Options:
    fallback = None if known.fallback_backend == "none" else Backend(known.fallback_backend)
    return Options(
        seeds=read_seeds(known.seeds),
        name=read_name(known.name),
        output_dir=_directory(known.output_dir),
        workers=workers if workers is not None else known.initial_workers,
        backend=Backend(known.capture_backend),
        cleanup=known.cleanup,
        overwrite=known.overwrite,
        skip_final_build=known.skip_final_build,
        dry_run=known.dry_run,
        log_level=known.log_level,
        image=_matching("--docker-image", known.docker_image, _IMAGE, "this is no name of an image"),
        shm_size=known.docker_shm_size
        and _matching("--docker-shm-size", known.docker_shm_size, SHM_SIZE, SHM_SIZE_HINT),
        memory=_matching("--docker-memory", known.docker_memory, SHM_SIZE, SHM_SIZE_HINT),
        cpus=known.docker_cpus,
        managed_config=read_managed(known.browsertrix_config_json),
        relax_perms_s=_relax_s(known),
        store_root=known.store_root and known.store_root.resolve(),
        watch=_watch(known),
        zimit=flags,
        time_scale=known.time_scale,
        max_attempts=known.max_attempts,
        recovery=RecoveryOptions(
            policy=ResumePolicy(known.resume_policy),
            fallback=fallback,
            fresh_failures=known.max_fresh_failures_before_fallback,
            reset_poisoned=known.auto_reset_poisoned_state,
            max_temp_dirs=known.max_temp_dirs_before_reset,
        ),
    )


def _relax_s(known: argparse.Namespace) -> float | None:
    return max(10.0, known.relax_perms_interval_seconds) * known.time_scale if known.relax_perms else None


def _watch(known: argparse.Namespace) -> WatchOptions:
    scale = known.time_scale
    return WatchOptions(
        enabled=known.enable_monitoring,
        interval_s=known.monitor_interval_seconds * scale,
        stall_s=known.stall_timeout_minutes * 60 * scale,
        timeout_errors=known.error_threshold_timeout,
        http_errors=known.error_threshold_http,
        adaptive_workers=known.enable_adaptive_workers,
        min_workers=known.min_workers,
        max_reductions=known.max_worker_reductions,
        adaptive_restart=known.enable_adaptive_restart,
        max_restarts=known.max_container_restarts,
        vpn=known.enable_vpn_rotation,
        vpn_command=known.vpn_connect_command,
        max_rotations=known.max_vpn_rotations,
        rotation_every_s=known.vpn_rotation_frequency_minutes * 60 * scale,
        backoff_s=known.backoff_delay_minutes * 60 * scale,
    )


def read_name(text: str) -> str:
    """Return the name of a crawl, which is also that of files; ToolConfigRefused if it could be anything but a name."""
    return _matching("--name", text, _NAME, "letters, digits, dots and dashes only, at most 120")


def read_seeds(seeds: Sequence[str]) -> tuple[str, ...]:
    """Return the seeds as they will be asked for; ToolConfigRefused names the one that is no address."""
    if not seeds:
        raise ToolConfigRefused("seeds", "at least one is needed")
    # Seeds go to the container as one argument, and the kernel bounds its length.
    if len(seeds) > MAX_SEEDS:
        raise ToolConfigRefused("seeds", f"at most {MAX_SEEDS} fit on a command line")
    found = []
    for seed in seeds:
        # A seed that begins with a dash would be read as a flag.
        if not isinstance(seed, str) or not seed.startswith(("http://", "https://")):
            raise ToolConfigRefused("seeds", f"{seed!r:.200} does not begin with http:// or https://")
        if not seed.isprintable() or " " in seed:
            raise ToolConfigRefused("seeds", f"{seed!r:.200} has blanks or control characters in it")
        # zimit takes all seeds in one argument, separated by commas.
        if "," in seed:
            raise ToolConfigRefused("seeds", f"{seed!r:.200} has a comma, which separates seeds; write it as %2C")
        try:
            found.append(parse(seed).fetch)
        except UrlRefused as exc:
            raise ToolConfigRefused("seeds", str(exc)) from exc
    return tuple(dict.fromkeys(found))


def read_managed(text: str | None) -> dict[str, Any] | None:
    """Return the managed Browsertrix settings; ToolConfigRefused if they are no object or hold what they must not."""
    if not text:
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ToolConfigRefused("--browsertrix-config-json", f"this is no JSON: {exc}") from exc
    return check_managed(content)


def _matching(flag: str, text: str, pattern: re.Pattern[str], reason: str) -> str:
    if not pattern.fullmatch(text):
        raise ToolConfigRefused(flag, reason)
    return text


def _directory(path: Path) -> Path:
    text = str(path)
    # `-v DIR:/output` and lists of WARC files are divided by these.
    if ":" in text or "," in text or not text.isprintable():
        raise ToolConfigRefused("--output-dir", "colons, commas and control characters have a meaning for docker")
    return path.resolve()


_DATE = re.compile(r"\{date(?::(%[A-Za-z](?:[-_]?%[A-Za-z])*))?\}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


def job_name(template: str, now: datetime) -> str:
    """Return the name that a template gives at a moment, in UTC: `hc-{date:%Y%m%d}` becomes `hc-20251209`.

    Only `{date}` is known; ToolConfigRefused if the result is no plain word.
    """
    moment = now.astimezone(UTC)
    name = _DATE.sub(lambda match: moment.strftime(match.group(1) or "%Y%m%d"), template)
    return _checked("name_template", name)


def _checked(field: str, word: str) -> str:
    if not _WORD.fullmatch(word):
        raise ToolConfigRefused(field, f"{word!r:.100} is not made of letters, digits, dots and dashes")
    return word
