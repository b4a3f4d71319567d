"""The command line of `archive-tool`, parsed into one frozen value. Wrong usage exits with code 2."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.archive_tool.errors import ToolConfigRefused
from holdfast.archive_tool.zimit_flags import Flag, check_managed, read_flags, split_workers
from holdfast.errors import Invalid, UrlRefused
from holdfast.urls import parse
from holdfast.values import dataclass

DEFAULT_IMAGE = "ghcr.io/openzim/zimit"
MAX_SEEDS = 1000
MAX_ATTEMPTS = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._:/@-]{0,254}")
MEMORY, CPUS = "4g", 1.5
SHM_SIZE = re.compile(r"\d{1,9}[bkmgBKMG]?")
SHM_SIZE_HINT = "write for example 512m or 1g"


class Backend(StrEnum):
    BROWSERTRIX = "browsertrix"
    HTTP_WARC = "http_warc"
    PLAYWRIGHT_WARC = "playwright_warc"


UNAVAILABLE = (Backend.PLAYWRIGHT_WARC.value,)
"""Named backends that are not implemented yet."""


class ResumePolicy(StrEnum):
    AUTO = "auto"
    FRESH_ONLY = "fresh_only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
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
    """Seconds between two rounds of relaxing permissions; None disables them."""
    store_root: Path | None = None
    monitored: bool = False
    check_every_s: float = 30.0
    stall_s: float = 1800.0
    timeout_errors: int = 10
    http_errors: int = 10
    adaptive_workers: bool = False
    min_workers: int = 1
    max_reductions: int = 3
    adaptive_restart: bool = False
    max_restarts: int = 5
    rotates_vpn: bool = False
    vpn_command: str | None = None
    max_rotations: int = 3
    rotation_every_s: float = 3600.0
    backoff_s: float = 300.0
    resume_policy: ResumePolicy = ResumePolicy.AUTO
    fallback: Backend | None = None
    fresh_failures: int = 0
    """Failed fresh phases after which the fallback runs; 0 leaves that decision to the caller."""
    reset_poisoned: bool = False
    max_temp_dirs: int | None = None
    zimit: tuple[Flag, ...] = ()
    max_attempts: int = MAX_ATTEMPTS
    time_scale: float = 1.0

    @property
    def zim_path(self) -> Path:
        return self.output_dir / f"{self.name}.zim"

    @property
    def wants_build(self) -> bool:
        return not self.skip_final_build


Check = tuple[Callable[[Any], bool], str]
_POSITIVE: Check = (lambda value: value > 0, "it must be more than 0")
_NOT_NEGATIVE: Check = (lambda value: value >= 0, "it cannot be negative")
_AT_LEAST_ONE: Check = (lambda value: value >= 1, "it must be at least 1")
_ATTEMPTS: Check = (lambda value: 1 <= value <= MAX_ATTEMPTS, f"it must lie between 1 and {MAX_ATTEMPTS}")
_CORES: Check = (lambda value: 0 < value <= 1024, "it must lie between 0 and 1024")
_SHARE: Check = (lambda value: 0 < value <= 1, "it must lie between 0 and 1")
_WATCHED, _ADAPTIVE = ("enable_monitoring",), ("enable_monitoring", "enable_adaptive_workers")
_RESTARTING = ("enable_monitoring", "enable_adaptive_restart")
_ROTATING = ("enable_monitoring", "enable_vpn_rotation", "vpn_connect_command")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class ToolFlag(NamedTuple):
    """One flag of archive-tool: how to parse, check and store it, and which job option sets it."""

    flag: str
    into: str
    """The field of `Options` that stores it."""
    default: Any = False
    """False makes it a switch."""
    kind: Callable[[str], Any] = str
    read: Callable[[Any], Any] | None = None
    """Converts the text to the value in `Options`; raises `ToolConfigRefused`."""
    check: Check | None = None
    choices: Sequence[str] | None = None
    unit_s: float = 0.0
    """For durations: the seconds per unit, shortened by `--time-scale`."""
    job: str = ""
    """The group in a job's configuration that may set it."""
    needs: Sequence[str] = ()
    """Job options that must be set for this flag to be passed."""
    help: str | None = None

    @property
    def name(self) -> str:
        return self.flag.removeprefix("--").removesuffix("-json").replace("-", "_")


def read_managed(text: str | None) -> dict[str, Any] | None:
    """Return the managed Browsertrix settings; raise `ToolConfigRefused` if not an object or with forbidden keys."""
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


def _image(text: str) -> str:
    return _matching("--docker-image", text, _IMAGE, "this is no name of an image")


def _memory(flag: str) -> Callable[[str], str]:
    return lambda text: _matching(flag, text, SHM_SIZE, SHM_SIZE_HINT)


def _watch(
    flag: str,
    field: str,
    default: Any = False,
    kind: Callable[[str], Any] = str,
    check: Check | None = None,
    *,
    unit_s: float = 0.0,
    needs: Sequence[str] = _WATCHED,
) -> ToolFlag:
    return ToolFlag(flag, field, default, kind, check=check, unit_s=unit_s, job="tool_options", needs=needs)


def _policy(flag: str, field: str, default: Any = False, **more: Any) -> ToolFlag:
    return ToolFlag(flag, field, default, job="execution_policy", **more)


def _fallback(word: str) -> Backend | None:
    return None if word == "none" else Backend(word)


_BACKENDS, _POLICIES = [one.value for one in Backend], [one.value for one in ResumePolicy]
_JSON, _SHM, _EVERY = "--browsertrix-config-json", "--docker-shm-size", "--vpn-rotation-frequency-minutes"
TOOL_FLAGS: Final = (
    ToolFlag("--initial-workers", "workers", 1, int, check=_AT_LEAST_ONE, help="browser workers at the start (1)"),
    ToolFlag("--cleanup", "cleanup", help="after success, keep the WARCs and remove the rest"),
    ToolFlag("--overwrite", "overwrite", help="replace an existing ZIM by one of a fresh crawl"),
    ToolFlag("--log-level", "log_level", "INFO", choices=LOG_LEVELS),
    ToolFlag("--docker-image", "image", DEFAULT_IMAGE, read=_image),
    ToolFlag("--docker-memory", "memory", MEMORY, read=_memory("--docker-memory"), help="memory of the container"),
    ToolFlag("--docker-cpus", "cpus", CPUS, float, check=_CORES, help="CPU cores of the container"),
    ToolFlag("--store-root", "store_root", None, Path, Path.resolve, help="mounted storage, checked by its sentinel"),
    ToolFlag(_SHM, "shm_size", None, read=_memory(_SHM), job="tool_options", help="shared memory, for example 1g"),
    ToolFlag(_JSON, "managed_config", None, read=read_managed, job="tool_options", help="settings for every phase"),
    _watch("--enable-monitoring", "monitored"),
    _watch("--monitor-interval-seconds", "check_every_s", 30.0, float, _POSITIVE, unit_s=1),
    _watch("--stall-timeout-minutes", "stall_s", 30.0, float, _POSITIVE, unit_s=60),
    _watch("--error-threshold-timeout", "timeout_errors", 10, int, _AT_LEAST_ONE),
    _watch("--error-threshold-http", "http_errors", 10, int, _AT_LEAST_ONE),
    _watch("--enable-adaptive-workers", "adaptive_workers", needs=_ADAPTIVE),
    _watch("--min-workers", "min_workers", 1, int, _AT_LEAST_ONE, needs=_ADAPTIVE),
    _watch("--max-worker-reductions", "max_reductions", 3, int, _NOT_NEGATIVE, needs=_ADAPTIVE),
    _watch("--enable-vpn-rotation", "rotates_vpn", needs=_ROTATING),
    _watch("--vpn-connect-command", "vpn_command", None, needs=_ROTATING),
    _watch("--max-vpn-rotations", "max_rotations", 3, int, _NOT_NEGATIVE, needs=_ROTATING),
    _watch(_EVERY, "rotation_every_s", 60.0, float, _NOT_NEGATIVE, unit_s=60, needs=_ROTATING),
    _watch("--enable-adaptive-restart", "adaptive_restart", needs=_RESTARTING),
    _watch("--max-container-restarts", "max_restarts", 5, int, _NOT_NEGATIVE, needs=_RESTARTING),
    _watch("--backoff-delay-minutes", "backoff_s", 5.0, float, _NOT_NEGATIVE, unit_s=60),
    ToolFlag("--relax-perms", "", job="tool_options", help="make the files of the container readable for all"),
    ToolFlag("--skip-final-build", "skip_final_build", job="tool_options", help="stop at the WARC files"),
    _policy("--capture-backend", "backend", "browsertrix", read=Backend, choices=_BACKENDS),
    _policy("--resume-policy", "resume_policy", "auto", read=ResumePolicy, choices=_POLICIES),
    _policy("--fallback-backend", "fallback", "none", read=_fallback, choices=["none", *_BACKENDS[1:]]),
    _policy("--max-fresh-failures-before-fallback", "fresh_failures", 0, kind=int, check=_NOT_NEGATIVE),
    _policy("--auto-reset-poisoned-state", "reset_poisoned", help="clear a queue that cannot continue"),
    _policy("--max-temp-dirs-before-reset", "max_temp_dirs", None, kind=int, check=_AT_LEAST_ONE),
    ToolFlag("--relax-perms-interval-seconds", "", 180.0, float, help="(180, at least 10)"),
    ToolFlag("--dry-run", "dry_run", help="print the plan, touch nothing"),
    ToolFlag("--vpn-disconnect-command", "", None, help="accepted and ignored"),
    ToolFlag("--max-attempts", "max_attempts", MAX_ATTEMPTS, int, check=_ATTEMPTS, help=argparse.SUPPRESS),
    ToolFlag("--time-scale", "time_scale", 1.0, float, check=_SHARE, help=argparse.SUPPRESS),
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="archive-tool",
        allow_abbrev=False,
        description="Crawl with zimit in a container: resumed where it stopped, watched, and never without its WARCs.",
        epilog="Other flags go to zimit, if they are among those that say what to crawl. Example: archive-tool"
        " --seeds https://example.org --name example --output-dir jobs/example --skip-final-build --scopeType host",
    )
    made.add_argument("--seeds", nargs="+", required=True, metavar="URL", help="where the crawl begins")
    made.add_argument("--name", required=True, help="name of the job and of its ZIM file")
    made.add_argument("--output-dir", required=True, type=Path, help="directory of all output of this crawl")
    made.add_argument("--allow-zimit-flag", action="append", default=[], metavar="FLAG", help="let one more through")
    for one in TOOL_FLAGS:
        takes: dict[str, Any] = {"action": "store_true"}
        if one.default is not False:
            takes = {"default": one.default, "type": one.kind, "choices": one.choices}
        made.add_argument(one.flag, dest=one.name, help=one.help, **takes)
    return made


def read_options(arguments: Sequence[str]) -> Options:
    """Parse a command line; print an error and raise SystemExit(2) if an option is invalid."""
    made = parser()
    known, rest = made.parse_known_args(list(arguments))
    try:
        workers, flags = split_workers(read_flags(rest, known.allow_zimit_flag))
        return _options(known, workers, flags)
    except Invalid as exc:
        made.error(str(exc))


def _options(known: argparse.Namespace, workers: int | None, flags: tuple[Flag, ...]) -> Options:
    if not known.enable_monitoring and (
        known.enable_adaptive_workers or known.enable_adaptive_restart or known.enable_vpn_rotation
    ):
        raise ToolConfigRefused("--enable-monitoring", "adaptive workers, adaptive restart and VPN rotation need it")
    if known.enable_vpn_rotation and not (known.vpn_connect_command or "").strip():
        raise ToolConfigRefused("--vpn-connect-command", "VPN rotation needs it")
    given = {one.into: _value(one, getattr(known, one.name), known.time_scale) for one in TOOL_FLAGS if one.into}
    relax_s = max(10.0, known.relax_perms_interval_seconds) * known.time_scale if known.relax_perms else None
    given |= {} if workers is None else {"workers": workers}
    return Options(
        seeds=read_seeds(known.seeds),
        name=read_name(known.name),
        output_dir=_directory(known.output_dir),
        relax_perms_s=relax_s,
        zimit=flags,
        **given,
    )


def _value(one: ToolFlag, value: Any, time_scale: float) -> Any:
    if value is None:
        return None
    if one.check is not None and not one.check[0](value):
        raise ToolConfigRefused(one.flag, one.check[1])
    if one.unit_s:
        return value * one.unit_s * time_scale
    return value if one.read is None else one.read(value)


def read_name(text: str) -> str:
    """Return the name of a crawl, also used for files; raise `ToolConfigRefused` if it is not a plain name."""
    return _matching("--name", text, _NAME, "letters, digits, dots and dashes only, at most 120")


def read_seeds(seeds: Sequence[str]) -> tuple[str, ...]:
    """Return the seeds as they will be requested; raise `ToolConfigRefused` naming the invalid URL."""
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


def _directory(path: Path) -> Path:
    text = str(path)
    # `-v DIR:/output` and lists of WARC files are divided by these.
    if ":" in text or "," in text or not text.isprintable():
        raise ToolConfigRefused("--output-dir", "colons, commas and control characters have a meaning for docker")
    return path.resolve()


_DATE = re.compile(r"\{date(?::(%[A-Za-z](?:[-_]?%[A-Za-z])*))?\}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


def job_name(template: str, now: datetime) -> str:
    """Return the job name of a template at a time in UTC: `hc-{date:%Y%m%d}` becomes `hc-20251209`.

    Only `{date}` is known; raise `ToolConfigRefused` if the result is not a plain word.
    """
    moment = now.astimezone(UTC)
    name = _DATE.sub(lambda match: moment.strftime(match.group(1) or "%Y%m%d"), template)
    return _checked("name_template", name)


def _checked(field: str, word: str) -> str:
    if not _WORD.fullmatch(word):
        raise ToolConfigRefused(field, f"{word!r:.100} is not made of letters, digits, dots and dashes")
    return word
