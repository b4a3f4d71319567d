"""The flags of `archive-tool`, in one table: its command line, the options of a job, and the command of a job's crawl.

Wrong usage of the command line exits with code 2. A job's configuration is checked before anything is queued.
Settings that control the host (the image, the VPN command) come from the server; a configuration that contains
them is rejected.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.config import ZimitSettings
from holdfast.errors import Invalid, UrlRefused
from holdfast.sources.config import SourceConfig, ZimitConfig
from holdfast.urls import parse
from holdfast.values import dataclass
from holdfast.zimit.errors import ToolConfigRefused
from holdfast.zimit.passthrough import (
    Flag,
    check_managed,
    read_flags,
    split_workers,
    strip_separator,
    zimit_flags,
)

OPTIONS, POLICY = "tool_options", "execution_policy"
_HOST = "host"
MAX_SEEDS = 1000
_MOST = 1_000_000
"""The largest number that a job's configuration may contain."""
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._:/@-]{0,254}")
_SIZE = re.compile(r"\d{1,9}[bkmgBKMG]?")
Read = Callable[[Any], Any]


class Backend(StrEnum):
    BROWSERTRIX = "browsertrix"
    HTTP_WARC = "http_warc"
    PLAYWRIGHT_WARC = "playwright_warc"


_UNAVAILABLE = (Backend.PLAYWRIGHT_WARC.value,)
"""Named backends that are not implemented yet."""


class ResumePolicy(StrEnum):
    AUTO = "auto"
    FRESH_ONLY = "fresh_only"


class ToolFlag(NamedTuple):
    """One flag: how to parse, check and store it, and who else may set it."""

    flag: str
    default: Any = False
    """False makes it a switch."""
    kind: Callable[[str], Any] = str
    read: Read | None = None
    """Return the value to store; raises ValueError with the reason if it is not allowed."""
    choices: Sequence[str] | None = None
    unit_s: float = 0.0
    """For durations: the seconds per unit, shortened by `--time-scale`."""
    group: str = ""
    """Who sets it besides the command line: `tool_options` or `execution_policy` of a job, or the server."""
    needs: Sequence[str] = ()
    """Job options that must be set for this flag to be passed."""
    help: str | None = None

    @property
    def name(self) -> str:
        return self.flag.removeprefix("--").removesuffix("-json").replace("-", "_")

    @property
    def is_switch(self) -> bool:
        return self.default is False

    @property
    def unset(self) -> Any:
        """The value of a job that leaves this flag to the tool; None also if the configuration may say null."""
        return None if self.needs and not self.is_switch else self.default

    @property
    def job_type(self) -> type:
        """The type of the value in a job's configuration."""
        types: dict[Any, type] = {int: int, float: int, _json: dict}
        return bool if self.is_switch else types.get(self.kind, str)

    def value(self, given: Any, where: str) -> Any:
        """Return the value to store; raise `ToolConfigRefused` for the field `where` if it is not allowed."""
        if given is None:
            return None
        if self.choices is not None and given not in self.choices:
            raise ToolConfigRefused(where, f"it must be one of {', '.join(self.choices)}")
        try:
            return given if self.read is None else self.read(given)
        except ValueError as exc:
            raise ToolConfigRefused(where, str(exc)) from exc


def _json(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def _demand(reason: str, check: Callable[[Any], bool]) -> Read:
    def read(value: Any) -> Any:
        if not check(value):
            raise ValueError(reason)
        return value

    return read


_positive = _demand("it must be more than 0", lambda value: value > 0)
_not_negative = _demand("it cannot be negative", lambda value: value >= 0)
_at_least_one = _demand("it must be at least 1", lambda value: value >= 1)
_attempts = _demand("it must lie between 1 and 100", lambda value: 1 <= value <= 100)
_cores = _demand("it must lie between 0 and 1024", lambda value: 0 < value <= 1024)
_share = _demand("it must lie between 0 and 1", lambda value: 0 < value <= 1)
_size = _demand("write for example 512m or 1g", lambda text: _SIZE.fullmatch(text) is not None)
_image = _demand("this is no name of an image", lambda text: _IMAGE.fullmatch(text) is not None)


def _fallback(word: str) -> Backend | None:
    return None if word == "none" else Backend(word)


def _flag(flag: str, default: Any = False, **more: Any) -> Any:
    """Return the field of `Options` that stores this flag."""
    made = ToolFlag(flag, default, **more)
    stored = made.value(default, flag)
    return field(default=stored * made.unit_s if made.unit_s else stored, metadata={"flag": made})


_CORE = ("initial_workers", "log_level")
"""Options of a job that are always passed."""
_BACKENDS, _POLICIES = [one.value for one in Backend], [one.value for one in ResumePolicy]
_WATCHED: Final = ("enable_monitoring",)
_job, _policy, _host = partial(_flag, group=OPTIONS), partial(_flag, group=POLICY), partial(_flag, group=_HOST)
_watch = partial(_job, needs=_WATCHED)
_adapt = partial(_job, needs=(*_WATCHED, "enable_adaptive_workers"))
_rotate = partial(_job, needs=(*_WATCHED, "enable_vpn_rotation", "vpn_connect_command"))
_restart = partial(_job, needs=(*_WATCHED, "enable_adaptive_restart"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The parsed command line; durations in seconds. In this order a job's flags are passed."""

    seeds: tuple[str, ...]
    name: str
    output_dir: Path
    zimit: tuple[Flag, ...] = ()
    workers: int = _job("--initial-workers", 1, kind=int, read=_at_least_one, help="browser workers at the start (1)")
    cleanup: bool = _job("--cleanup", help="after success, keep the WARCs and remove the rest")
    overwrite: bool = _job("--overwrite", help="replace an existing ZIM by one of a fresh crawl")
    log_level: str = _job("--log-level", "INFO", choices=_LOG_LEVELS)
    image: str = _host("--docker-image", "ghcr.io/openzim/zimit", read=_image)
    memory: str = _host("--docker-memory", "4g", read=_size, help="memory of the container")
    cpus: float = _host("--docker-cpus", 1.5, kind=float, read=_cores, help="CPU cores of the container")
    store_root: Path | None = _host(
        "--store-root", None, kind=Path, read=Path.resolve, help="mounted storage, checked by its sentinel"
    )
    shm_size: str | None = _job("--docker-shm-size", None, read=_size, help="shared memory, for example 1g")
    managed_config: dict[str, Any] | None = _job(
        "--browsertrix-config-json", None, kind=_json, read=check_managed, help="settings for every phase"
    )
    monitored: bool = _watch("--enable-monitoring")
    check_every_s: float = _watch("--monitor-interval-seconds", 30.0, kind=float, read=_positive, unit_s=1)
    stall_s: float = _watch("--stall-timeout-minutes", 30.0, kind=float, read=_positive, unit_s=60)
    timeout_errors: int = _watch("--error-threshold-timeout", 10, kind=int, read=_at_least_one)
    http_errors: int = _watch("--error-threshold-http", 10, kind=int, read=_at_least_one)
    adaptive_workers: bool = _adapt("--enable-adaptive-workers")
    min_workers: int = _adapt("--min-workers", 1, kind=int, read=_at_least_one)
    max_reductions: int = _adapt("--max-worker-reductions", 3, kind=int, read=_not_negative)
    rotates_vpn: bool = _rotate("--enable-vpn-rotation")
    vpn_command: str | None = _rotate("--vpn-connect-command", None, kind=str.strip)
    max_rotations: int = _rotate("--max-vpn-rotations", 3, kind=int, read=_not_negative)
    rotation_every_s: float = _rotate(
        "--vpn-rotation-frequency-minutes", 60.0, kind=float, read=_not_negative, unit_s=60
    )
    adaptive_restart: bool = _restart("--enable-adaptive-restart")
    max_restarts: int = _restart("--max-container-restarts", 5, kind=int, read=_not_negative)
    backoff_s: float = _watch("--backoff-delay-minutes", 5.0, kind=float, read=_not_negative, unit_s=60)
    relaxes: bool = _job("--relax-perms", help="make the files of the container readable for all")
    skip_final_build: bool = _job("--skip-final-build", help="stop at the WARC files")
    backend: Backend = _policy("--capture-backend", "browsertrix", read=Backend, choices=_BACKENDS)
    resume_policy: ResumePolicy = _policy("--resume-policy", "auto", read=ResumePolicy, choices=_POLICIES)
    fallback: Backend | None = _policy("--fallback-backend", "none", read=_fallback, choices=["none", *_BACKENDS[1:]])
    fresh_failures: int = _policy("--max-fresh-failures-before-fallback", 0, kind=int, read=_not_negative)
    """Failed fresh phases after which the fallback runs; 0 leaves that decision to the caller."""
    reset_poisoned: bool = _policy("--auto-reset-poisoned-state", help="clear a queue that cannot continue")
    max_temp_dirs: int | None = _policy("--max-temp-dirs-before-reset", None, kind=int, read=_at_least_one)
    relax_every_s: float = _flag(
        "--relax-perms-interval-seconds",
        180.0,
        kind=float,
        read=lambda value: max(10.0, value),
        unit_s=1,
        help="(180, at least 10)",
    )
    dry_run: bool = _flag("--dry-run", help="print the plan, touch nothing")
    vpn_disconnect: None = _flag(
        "--vpn-disconnect-command", None, read=lambda _command: None, help="accepted and ignored"
    )
    max_attempts: int = _flag("--max-attempts", 100, kind=int, read=_attempts, help=argparse.SUPPRESS)
    time_scale: float = _flag("--time-scale", 1.0, kind=float, read=_share, help=argparse.SUPPRESS)

    @property
    def zim_path(self) -> Path:
        return self.output_dir / f"{self.name}.zim"

    @property
    def relax_perms_s(self) -> float | None:
        """Seconds between two rounds of relaxing permissions; None disables them."""
        return self.relax_every_s if self.relaxes else None

    @property
    def wants_build(self) -> bool:
        return not self.skip_final_build


_FLAGS: Final[dict[str, ToolFlag]] = {one.name: one.metadata["flag"] for one in fields(Options) if one.metadata}
"""Each flag by the field of `Options` that stores it."""
PROMOTED: Final = ("primary_backend", "last_promoted_from_backend", "last_promotion_reason")
"""Fields of an execution policy that record a promotion; no flag passes them."""
JOB_FLAGS: Final[dict[str, dict[str, ToolFlag]]] = {
    OPTIONS: {one.name: one for one in _FLAGS.values() if one.group == OPTIONS},
    POLICY: {one.name: one for one in _FLAGS.values() if one.group == POLICY}
    | {name: ToolFlag(f"--{name}", None) for name in PROMOTED},
}
"""The fields of both groups of a job's configuration."""


def _unmet(given: Mapping[str, Any], rows: Iterable[ToolFlag]) -> tuple[ToolFlag, str] | None:
    """Return the first flag that is set without an option that it needs, and that option."""
    for row in rows:
        if given.get(row.name) not in (None, False):
            for name in row.needs:
                if not given.get(name):
                    return row, name
    return None


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
    for one in _FLAGS.values():
        takes: dict[str, Any] = {"action": "store_true"}
        if not one.is_switch:
            takes = {"default": one.default, "type": one.kind, "choices": one.choices}
        made.add_argument(one.flag, dest=one.name, help=one.help, **takes)
    return made


def read_options(arguments: Sequence[str]) -> Options:
    """Parse a command line; print an error and raise SystemExit(2) if an option is invalid."""
    made = parser()
    known, rest = made.parse_known_args(list(arguments))
    try:
        return _options(known, *split_workers(read_flags(rest, known.allow_zimit_flag)))
    except Invalid as exc:
        made.error(str(exc))


def _options(known: argparse.Namespace, workers: int | None, flags: tuple[Flag, ...]) -> Options:
    if found := _unmet(vars(known), (one for one in _FLAGS.values() if one.is_switch)):
        needed = JOB_FLAGS[OPTIONS][found[1]].flag
        raise ToolConfigRefused(needed, f"{found[0].flag} needs it")
    given: dict[str, Any] = {}
    for stored, one in _FLAGS.items():
        value = one.value(getattr(known, one.name), one.flag)
        given[stored] = value * one.unit_s * known.time_scale if one.unit_s else value
    given |= {} if workers is None else {"workers": workers}
    seeds, name, folder = read_seeds(known.seeds), read_name(known.name), _directory(known.output_dir)
    return Options(seeds=seeds, name=name, output_dir=folder, zimit=flags, **given)


def read_name(text: str) -> str:
    """Return the name of a crawl, also used for files; raise `ToolConfigRefused` if it is not a plain name."""
    if not _NAME.fullmatch(text):
        raise ToolConfigRefused("--name", "letters, digits, dots and dashes only, at most 120")
    return text


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


def backend_of(policy: Mapping[str, Any]) -> str:
    """Return the capture backend that an execution policy names."""
    return str(policy.get("capture_backend") or Backend.BROWSERTRIX.value)


def check_job_config(config: SourceConfig, host: ZimitSettings) -> SourceConfig:
    """Return a configuration with its zimit options checked; raise `ToolConfigRefused` naming the invalid field.

    Both groups of options then contain only what differs from the defaults.
    """
    given = config.zimit
    # Read to be checked: a flag that may not reach zimit is refused when the job is saved.
    split_workers(read_flags(given.passthrough_args, host.flags))
    zimit = ZimitConfig(
        passthrough_args=tuple(strip_separator(given.passthrough_args)),
        tool_options=_read_group(OPTIONS, given.tool_options),
        execution_policy=_read_group(POLICY, given.execution_policy),
    )
    _check_options(zimit.tool_options, host)
    return replace(config, seeds=read_seeds(config.seeds), zimit=zimit)


def _read_group(group: str, content: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in content.items():
        where, row = f"{group}.{str(name)[:80]}", _row(group, str(name))
        if value is None and row.unset is None:
            continue
        if not isinstance(value, row.job_type) or (isinstance(value, bool) and not row.is_switch):
            raise ToolConfigRefused(where, f"it must be {_ARTICLES[row.job_type]}")
        if isinstance(value, int) and value > _MOST:
            raise ToolConfigRefused(where, f"it must be at most {_MOST}")
        # Refused when a job is saved: at run time it would burn its retries.
        if row.choices is not None and value in _UNAVAILABLE:
            why = f"{value} is not available here yet; use {Backend.HTTP_WARC.value}, or zimit itself"
            raise ToolConfigRefused(where, why)
        row.value(value, where)
        if value != row.unset:
            given[name] = value
    return given


_ARTICLES = {bool: "true or false", int: "a whole number", str: "a string", dict: "an object"}


def _row(group: str, name: str) -> ToolFlag:
    rows = JOB_FLAGS[group]
    if name not in rows:
        raise ToolConfigRefused(f"{group}.{name[:80]}", f"there is no such option; known: {', '.join(rows)}")
    return rows[name]


def _check_options(options: Mapping[str, Any], host: ZimitSettings) -> None:
    # An option that would never reach the tool is refused, not ignored.
    rows = [one for one in JOB_FLAGS[OPTIONS].values() if one.is_switch or one.needs == _WATCHED]
    if found := _unmet({**options, "vpn_connect_command": host.vpn_command}, rows):
        needed = "a VPN command of the server" if found[1] == "vpn_connect_command" else found[1]
        raise ToolConfigRefused(f"tool_options.{found[0].name}", f"it needs {needed}")
    if options.get("min_workers", 1) > options.get("initial_workers", 1):
        raise ToolConfigRefused("tool_options.min_workers", "it is more than initial_workers")


def tool_flags(config: ZimitConfig, host: ZimitSettings) -> list[str]:
    """Return a job's flags in the order of the table, zimit's own last and without a separator.

    Monitoring, adaptation and rotation flags appear only together with the flags they need. A configuration stored
    before a rule existed loses that group of flags instead of failing the run.
    """
    options = {**config.tool_options, "vpn_connect_command": host.vpn_command}
    # Only what differs: another program may stand in for the tool, and need not know these.
    of_host = {row.name: getattr(host, stored) for stored, row in _FLAGS.items() if row.group == _HOST}
    given = {OPTIONS: options, POLICY: config.execution_policy, _HOST: of_host}
    flags: list[str] = []
    for row in _FLAGS.values():
        value = given.get(row.group, {}).get(row.name, row.unset)
        is_left_out = value in (None, row.unset) and row.name not in _CORE
        if is_left_out or not all(options.get(name) for name in row.needs):
            continue
        flags.append(row.flag)
        if isinstance(value, dict):
            flags.append(json.dumps(value, separators=(",", ":"), sort_keys=True))
        elif not row.is_switch:
            flags.append(str(value))
    flags += [f"--allow-zimit-flag={name}" for name in host.flags]
    return [*flags, *config.passthrough_args]


def tool_command(
    config: SourceConfig, host: ZimitSettings, *, name: str, output_dir: Path, program: Sequence[str] = ()
) -> list[str]:
    """Return the command of a crawl; `program` replaces the words of the configured command (`find_program`)."""
    # A list of arguments, and no shell: a seed or a name is never read as a command.
    command = [*(program or shlex.split(host.command)), "--seeds", *config.seeds, "--name", name]
    return [*command, "--output-dir", str(output_dir), *tool_flags(config.zimit, host)]


_ANNUAL_RESTARTS, _ANNUAL_ERRORS, _ANNUAL_BACKOFF_MINUTES = 20, 50, 2
_OTHER_RESTARTS = 6
"""Minimum number of restarts allowed for a job that is not annual."""


def below_minimum(options: Mapping[str, object], *, annual: bool) -> dict[str, int]:
    """Return the tool options that are below their minimum, with the required values.

    Annual crawls have a lower bound for restarts and thresholds, and an exact wait.
    """
    least = {"max_container_restarts": _ANNUAL_RESTARTS if annual else _OTHER_RESTARTS}
    # Without monitoring the tool takes neither thresholds nor a wait.
    annual = annual and bool(options.get("enable_monitoring"))
    if annual:
        least |= {"error_threshold_timeout": _ANNUAL_ERRORS, "error_threshold_http": _ANNUAL_ERRORS}
    found = {name: value for name, value in least.items() if _number(options.get(name)) < value}
    if annual and options.get("backoff_delay_minutes") != _ANNUAL_BACKOFF_MINUTES:
        found["backoff_delay_minutes"] = _ANNUAL_BACKOFF_MINUTES
    return found


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def annual_caps(config: SourceConfig, host: ZimitSettings) -> list[str]:
    """Return the flags that limit pages or depth, which an annual crawl must not have."""
    caps = zimit_flags("--max-pages", "--depth")
    return [flag.name for flag in read_flags(config.zimit.passthrough_args, host.flags) if flag.name in caps]


_SWITCH = {**dict.fromkeys(("true", "yes", "on", "1"), True), **dict.fromkeys(("false", "no", "off", "0"), False)}


def read_patch(options: Iterable[str], policy: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the values to set in a job's configuration, by group; None removes a value.

    Raise `ToolConfigRefused` naming the invalid word.
    """
    words = {OPTIONS: options, POLICY: policy}
    made = {group: dict(_assigned(group, word) for word in given) for group, given in words.items()}
    return {group: given for group, given in made.items() if given}


def _assigned(group: str, word: str) -> tuple[str, Any]:
    name, equals, written = (part.strip() for part in word.partition("="))
    if not equals or not name:
        raise ToolConfigRefused(group, f"{word[:80]!r} is no KEY=VALUE")
    row = _row(group, name)
    if written.lower() in ("null", "none") and row.unset is None:
        return name, None
    try:
        value = _SWITCH[written.lower()] if row.is_switch else written if row.job_type is str else json.loads(written)
        if type(value) is not row.job_type:
            raise ValueError(written)
    except (KeyError, ValueError, RecursionError) as exc:
        raise ToolConfigRefused(f"{group}.{name}", f"{written[:80]!r} is not {_ARTICLES[row.job_type]}") from exc
    return name, value
