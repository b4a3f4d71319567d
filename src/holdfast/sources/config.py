"""The crawl configuration of a source, as one checked value. Every queued configuration has passed through here.

Commands that run on the host (images, commands, proxies) are not part of it: they come from the server's
settings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from datetime import datetime
from typing import Any, Final

from holdfast.errors import Invalid, UrlRefused
from holdfast.sources.extraction import MAX_REMOVED, MAX_SELECTOR_CHARS, SINGLE, ExtractRules, why_no_selector
from holdfast.urls import DEFAULT, ScopeKind, parse_seed
from holdfast.urls.scope import Patterns
from holdfast.values import dataclass

MAX_LIST = 10_000
# Python's recursion limit is about a thousand; the walk below must end long before.
MAX_NESTED = 32
# The largest BIGINT of both databases; a JSON file may hold a longer number.
_MAX_WHOLE = 1 << 63
_NAME_CHARS = 60


class SourceRefused(Invalid):
    """The configuration of a source is invalid; `field` is the invalid part."""

    code = "source_refused"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


def demand_plain(value: object, place: str, *, nested: int = 0) -> None:
    """Raise SourceRefused with the place of the first value that cannot be stored or exported.

    Allowed are text that any database stores, finite numbers, true, false, null, lists, and objects with text
    names.
    """
    if nested > MAX_NESTED:
        raise SourceRefused(place, f"it is nested more than {MAX_NESTED} deep")
    if isinstance(value, Mapping):
        for name, one in value.items():
            if not isinstance(name, str):  # YAML has such names, JSON and TOML do not
                raise SourceRefused(place, f"{str(name)[:_NAME_CHARS]} is no name; names are text")
            inner = f"{place}.{ascii(name[:_NAME_CHARS])[1:-1]}"
            demand_plain(name, inner)
            demand_plain(one, inner, nested=nested + 1)
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            demand_plain(one, f"{place}[{number}]", nested=nested + 1)
    elif (reason := why_not_plain(value)) is not None:
        raise SourceRefused(place, reason)


def why_not_plain(value: object) -> str | None:
    """Return why a text, a number or another single value cannot be stored; None if it can."""
    if isinstance(value, str):
        # PostgreSQL refuses a NUL in text and in JSON.
        if "\x00" in value:
            return "it holds a NUL character"
        try:
            value.encode()
        except UnicodeEncodeError:
            return "it holds half of a character (a lone surrogate)"
        return None
    # NaN and Infinity are not valid JSON: PostgreSQL rejects them, and no other program reads the exported file.
    if isinstance(value, float) and not math.isfinite(value):
        return "it is no finite number"
    if isinstance(value, int) and not -_MAX_WHOLE <= value < _MAX_WHOLE:
        return "it is a larger number than we keep"
    plain = value is None or isinstance(value, int | float)
    return None if plain else "it must be a plain value: text, a number, true, false, a list or an object"


class Fields:
    """An external mapping, read field by field; raises SourceRefused for invalid values."""

    def __init__(self, content: object, *, prefix: str = "") -> None:
        if not isinstance(content, Mapping):
            raise SourceRefused(prefix.rstrip(".") or "config", "it must be an object with named fields")
        self._content: dict[Any, Any] = dict(content)
        self._prefix = prefix

    def named(self, name: str) -> str:
        """Return a field's full name, as its author wrote it."""
        return f"{self._prefix}{name}"

    def refuse(self, name: str, reason: str) -> SourceRefused:
        return SourceRefused(self.named(name), reason)

    def _take(self, name: str, default: Any = None) -> Any:
        """Return a field's value; the default if it is missing or null."""
        value = self._content.pop(name, None)
        return default if value is None else value

    def text(self, name: str, *, limit: int = 2048) -> str | None:
        """Return a single-line string, or None if it is missing or empty."""
        value = self._take(name)
        # An empty form value and `--set FIELD=` unset the field.
        if value is None or value == "":
            return None
        if not isinstance(value, str) or not value.isprintable() or len(value) > limit:
            raise self.refuse(name, f"it must be a line of at most {limit} printable characters")
        return value

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, str) or value not in allowed:
            raise self.refuse(name, f"it must be one of {', '.join(allowed)}")
        return value

    def switch(self, name: str, default: bool) -> bool:
        value = self._take(name, default)
        if not isinstance(value, bool):
            raise self.refuse(name, "it must be true or false")
        return value

    def whole(self, name: str, *, least: int, most: int) -> int | None:
        value = self._take(name)
        if value is None:
            return None
        # True is an int in Python; a depth of `true` is a mistake.
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.refuse(name, f"it must be a whole number from {least} to {most}")
        return value

    def wholes(self, name: str, *, least: int, most: int) -> tuple[int, ...]:
        """Return a list of integers within bounds, unique and sorted."""
        value = self._take(name, ())
        is_list = isinstance(value, list | tuple) and len(value) <= MAX_LIST
        if not is_list or any(isinstance(one, bool) or not isinstance(one, int) for one in value):
            raise self.refuse(name, "it must be a list of whole numbers")
        if any(not least <= one <= most for one in value):
            raise self.refuse(name, f"each must be from {least} to {most}")
        return tuple(sorted(set(value)))

    def number(self, name: str, *, least: float, most: float) -> float | None:
        value = self._take(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.refuse(name, f"it must be a number from {least:g} to {most:g}")
        return float(value)

    def texts(self, name: str, *, limit: int, most: int = MAX_LIST) -> tuple[str, ...]:
        value = self._take(name, ())
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise self.refuse(name, "it must be a list of strings")
        if len(value) > most:
            raise self.refuse(name, f"{len(value)} entries are more than {most}")
        for one in value:
            if not one.isprintable() or not one.strip() or len(one) > limit:
                raise self.refuse(name, f"{one[:60]!r} is empty, has control characters, or is over {limit} characters")
        return tuple(value)

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._take(name, {})
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise self.refuse(name, "it must be an object with named fields")
        return dict(value)

    def scalars(self, name: str) -> dict[str, Any]:
        value = self._take(name, {})
        if not isinstance(value, Mapping):
            raise self.refuse(name, "it must be an object with named fields")
        for key, one in value.items():
            if not isinstance(key, str) or not isinstance(one, str | int | float | bool | dict | None):
                raise self.refuse(f"{name}.{str(key)[:80]}", "it must be a plain value")
        demand_plain(value, self.named(name))
        return dict(value)

    def inner(self, name: str) -> Fields:
        return Fields(self._take(name, {}), prefix=f"{self.named(name)}.")

    def done(self) -> None:
        """Raise SourceRefused for unknown fields."""
        # Reject misspelled fields: they would have no effect, and the crawl would not be the intended one.
        for name in self._content:
            raise self.refuse(str(name)[:80], "there is no such field")


DEFAULT_DEPTH: Final = 3
# A source with a greater depth gets a warning.
DEEP: Final = 5
UNLIMITED: Final = -1
STORAGE: Final = ("warc", "signals")
BACKENDS: Final = ("native", "zimit")
HTTP_WARC_OPTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("--scopeType",), "--scope"),
    **dict.fromkeys(("--include", "--scopeIncludeRx"), "--include"),
    **dict.fromkeys(("--exclude", "--scopeExcludeRx"), "--exclude"),
    **dict.fromkeys(("--depth",), "--depth"),
    **dict.fromkeys(("--pageLimit", "--limit", "--maxPageLimit"), "--max-pages"),
    **dict.fromkeys(("--timeSoftLimit", "--timeHardLimit", "--timeLimit"), "--max-time"),
    **dict.fromkeys(("--sizeSoftLimit", "--sizeHardLimit", "--sizeLimit"), "--max-bytes"),
    **dict.fromkeys(("--pageExtraDelay", "--delay"), "--delay"),
    **dict.fromkeys(("--userAgent",), "--user-agent"),
    **dict.fromkeys(("--adminEmail",), "--contact"),
}
"""The option of our own crawler for each zimit flag that the backend `http_warc` supports; it ignores all others."""
_BROWSER_OPTIONS: Final = ("initial_workers", "docker_shm_size", "browsertrix_config", "enable_monitoring")
_TEMPLATE: Final = re.compile(r"\{(?:code|date:((?:%[YmdHMS]|[-_.])+))\}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]{0,120}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZimitConfig:
    """Options of a crawl by zimit; `holdfast.zimit` checks them fully before it is queued."""

    passthrough_args: tuple[str, ...] = ()
    tool_options: dict[str, Any] = field(default_factory=dict)
    execution_policy: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """Seeds, scope, politeness and storage of one source."""

    seeds: tuple[str, ...] = ()
    scope: str = ScopeKind.HOST.value
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_depth: int = DEFAULT_DEPTH
    """-1 means no limit, 0 only the seeds."""
    max_pages: int | None = None
    quota_bytes: int | None = None
    """Download limit of one execution in bytes."""
    max_time_s: float | None = None
    """Time limit of one execution over all resumptions; a worker has a limit of its own besides."""
    delay_s: float | None = None
    """Seconds between two requests to a domain; None uses the settings."""
    per_ip_rate: float | None = None
    """Requests per second to one IP address, for all its hosts; None uses the settings."""
    user_agents: tuple[str, ...] = ()
    """Used in rotation by execution; each still includes the product's token and the contact."""
    robots: str = "obey"
    robots_reason: str | None = None
    sitemaps: bool = True
    feeds: bool = False
    requisites: bool = True
    strip_trailing_slash: bool = False
    force_https: bool = False
    tracking: tuple[str, ...] | None = None
    """Query parameters that do not change a page; None for the default list, an empty list for none."""
    allow_ports: tuple[int, ...] = ()
    storage: str = "warc"
    backend: str = "native"
    name_template: str = "{code}-{date:%Y%m%d}"
    schedule_hint: str | None = None
    zimit: ZimitConfig = field(default_factory=ZimitConfig)
    extract: ExtractRules = field(default_factory=ExtractRules)

    def stored(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults, for storage and export."""
        plain, default = asdict(self), asdict(_DEFAULT)
        kept = {name: value for name, value in plain.items() if value != default[name]}
        for group in ("zimit", "extract"):
            if group in kept:
                kept[group] = {name: value for name, value in kept[group].items() if value}
        return {name: _listed(value) for name, value in kept.items()}

    def warnings(self) -> tuple[str, ...]:
        found = []
        if self.max_depth == 0:
            found.append("max_depth: 0 captures only the seeds and their embedded files")
        if self.max_depth > DEEP:
            found.append(f"max_depth: {self.max_depth} is more than {DEEP}: the crawl may grow very large")
        # The minimum of one second applies to the public web, whatever a source says; this only warns.
        if self.delay_s is not None and self.delay_s < 1.0:
            found.append(f"delay_s: {self.delay_s:g} applies only inside an allowed private network; elsewhere it is 1")
        if self.storage == "signals" and self.backend == "zimit":
            found.append("storage: zimit always writes WARC files; signals needs the native backend")
        if self.backend == "zimit":
            found += self._ignored_by_zimit()
        return tuple(found)

    def _ignored_by_zimit(self) -> list[str]:
        found = []
        if self.robots == "obey":
            found.append("robots: zimit checks robots.txt for pages only, and crawls if robots.txt does not respond")
        if self.user_agents:
            found.append("user_agents: zimit uses its browser's own name, with the contact; these are ignored")
        if not self.requisites:
            found.append("requisites: zimit's browser always fetches what pages embed")
        policy = self.zimit.execution_policy
        if "http_warc" in (policy.get("capture_backend"), policy.get("fallback_backend")):
            flags = {one.partition("=")[0] for one in self.zimit.passthrough_args if one.startswith("--")}
            options = [name for name in _BROWSER_OPTIONS if name in self.zimit.tool_options]
            if lost := [*sorted(flags - HTTP_WARC_OPTIONS.keys() - {"--"}), *options]:
                found.append(f"zimit: the backend http_warc has no browser and passes over {', '.join(lost)}")
        return found

    def user_agent(self, number: int) -> str | None:
        """Return the user agent for an execution: the list in rotation, by the execution's number."""
        return self.user_agents[(number - 1) % len(self.user_agents)] if self.user_agents else None

    def job_name(self, code: str, at: datetime) -> str:
        """Return the name of a run that starts at this time, for example hc-20251209."""
        return _TEMPLATE.sub(lambda found: at.strftime(found[1]) if found[1] else code, self.name_template)


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _listed(one) for name, one in value.items()}
    return list(value) if isinstance(value, tuple) else value


_DEFAULT: Final = SourceConfig()


def read_config(content: Mapping[str, Any], *, needs_seeds: bool = True) -> SourceConfig:
    """Return a checked configuration from external content; raise SourceRefused with the first invalid field."""
    given = Fields(content)
    # Read the ports before the seeds: they decide whether a seed with an odd port is valid.
    ports = given.wholes("allow_ports", least=1, most=65_535)
    seeds = _seeds(given, frozenset(ports))
    if needs_seeds and not seeds:
        raise given.refuse("seeds", "at least one is needed, for example https://example.org/")
    made = SourceConfig(
        seeds=seeds,
        scope=given.choice("scope", [kind.value for kind in ScopeKind], _DEFAULT.scope),
        include=_rules(given, "include"),
        exclude=_rules(given, "exclude"),
        max_depth=_depth(given),
        max_pages=given.whole("max_pages", least=1, most=10**12),
        quota_bytes=given.whole("quota_bytes", least=1, most=10**18),
        max_time_s=given.number("max_time_s", least=1.0, most=10.0**9),
        delay_s=given.number("delay_s", least=0.0, most=3600.0),
        per_ip_rate=given.number("per_ip_rate", least=0.0, most=100_000.0),
        user_agents=_agents(given),
        robots=given.choice("robots", ("obey", "ignore"), "obey"),
        robots_reason=given.text("robots_reason", limit=500),
        sitemaps=given.switch("sitemaps", True),
        feeds=given.switch("feeds", False),
        requisites=given.switch("requisites", True),
        strip_trailing_slash=given.switch("strip_trailing_slash", False),
        force_https=given.switch("force_https", False),
        tracking=_tracking(given, content),
        allow_ports=ports,
        storage=given.choice("storage", STORAGE, "warc"),
        backend=given.choice("backend", BACKENDS, "native"),
        name_template=_template(given),
        schedule_hint=given.text("schedule_hint", limit=200),
        zimit=_zimit(given),
        extract=_extract(given),
    )
    given.done()
    # An archive must be able to explain later why it did not obey.
    if made.robots == "ignore" and not made.robots_reason:
        raise given.refuse("robots_reason", "ignoring robots.txt needs a reason; it lands in the audit log")
    return made


def merged(
    config: SourceConfig, *, overrides: Mapping[str, Any] | None = None, start: str | None = None
) -> SourceConfig:
    """Return the checked configuration of one job: with overrides, and its own start page as the first seed.

    In a group of fields (`zimit` and those below it) the overrides replace only the named ones; the rest is the
    source's.
    """
    content = {one.name: getattr(config, one.name) for one in fields(config)}
    if overrides and "extract" in overrides:
        # A body is parsed once, whichever job captured it.
        raise SourceRefused("extract", "it belongs to the source, whose captures are all read alike; set it there")
    content["zimit"], content["extract"] = asdict(config.zimit), asdict(config.extract)
    content = {**content, **{name: _within(content.get(name), value) for name, value in (overrides or {}).items()}}
    if start is not None and isinstance(content["seeds"], list | tuple):
        content["seeds"] = (start, *content["seeds"])
    # Validate the result as a whole: this rejects an override of the wrong shape (seeds that are not a list) by its
    # name.
    return read_config(content)


def _within(present: Any, fresh: Any) -> Any:
    return merge_fields(present, fresh) if isinstance(present, Mapping) and isinstance(fresh, Mapping) else fresh


def merge_fields(present: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields updated with others; in a group, unnamed fields stay, and null removes a field."""
    made = dict(present)
    for name, value in fresh.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = _within(made.get(name), value)
    return made


def zimit_job(config: SourceConfig) -> dict[str, Any]:
    made: dict[str, Any] = {
        "seeds": list(config.seeds),
        "zimit_passthrough_args": list(config.zimit.passthrough_args),
        "tool_options": dict(config.zimit.tool_options),
    }
    if config.zimit.execution_policy:
        made["execution_policy"] = dict(config.zimit.execution_policy)
    return made


def _depth(given: Fields) -> int:
    depth = given.whole("max_depth", least=UNLIMITED, most=10_000)
    return DEFAULT_DEPTH if depth is None else depth


def _tracking(given: Fields, content: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return a source's tracking parameters; an empty list means none, null the default list."""
    names = given.texts("tracking", limit=100)
    return None if content.get("tracking") is None else names


def _seeds(given: Fields, ports: frozenset[int]) -> tuple[str, ...]:
    found: dict[int, str] = {}
    policy = replace(DEFAULT, allow_ports=ports)
    for seed in given.texts("seeds", limit=8192):
        try:
            # One page under two spellings is one seed; the first spelling is requested.
            url = parse_seed(seed, policy)
        except UrlRefused as exc:
            raise given.refuse("seeds", str(exc)) from exc
        found.setdefault(url.hash64, url.fetch)
    return tuple(found.values())


def _rules(given: Fields, name: str) -> tuple[str, ...]:
    """Return scope rules that RE2 accepts, at most 500 of 1 KB each."""
    rules = given.texts(name, limit=2**20)
    try:
        return Patterns(rules).texts
    except Invalid as exc:
        raise given.refuse(name, str(exc)) from exc


def _agents(given: Fields) -> tuple[str, ...]:
    agents = given.texts("user_agents", limit=200, most=50)
    for agent in agents:
        # RFC 9110, 5.5: servers interpret non-ASCII field values differently.
        if not agent.isascii():
            raise given.refuse("user_agents", f"{agent[:60]!r} has characters that no header may carry")
    return agents


def _extract(given: Fields) -> ExtractRules:
    inner = given.inner("extract")
    rules = {name: inner.text(name, limit=MAX_SELECTOR_CHARS) for name in SINGLE}
    removed = inner.texts("remove", limit=MAX_SELECTOR_CHARS, most=MAX_REMOVED)
    inner.done()
    for name, selector in [*rules.items(), *(("remove", one) for one in removed)]:
        if selector is not None and (reason := why_no_selector(selector)):
            raise inner.refuse(name, reason)
    return ExtractRules(**rules, remove=removed)


def _template(given: Fields) -> str:
    template = given.text("name_template", limit=120)
    if template is None:
        return _DEFAULT.name_template
    # str.format() would let a template read attributes of objects ({code.__class__}), and a slash would leave the
    # folder.
    if not _PLAIN.fullmatch(_TEMPLATE.sub("", template)):
        raise given.refuse("name_template", "write letters, digits, {code} and {date:%Y%m%d}")
    return template


def _zimit(given: Fields) -> ZimitConfig:
    inner = given.inner("zimit")
    made = ZimitConfig(
        passthrough_args=inner.texts("passthrough_args", limit=4096, most=500),
        tool_options=inner.scalars("tool_options"),
        execution_policy=inner.scalars("execution_policy"),
    )
    inner.done()
    options = made.tool_options
    for name in ("enable_adaptive_workers", "enable_adaptive_restart", "enable_vpn_rotation"):
        if options.get(name) and not options.get("enable_monitoring"):
            raise SourceRefused(inner.named(f"tool_options.{name}"), "it needs enable_monitoring")
    # A command from a form or a file would run on the host with the rights of the worker.
    if "vpn_connect_command" in options:
        raise SourceRefused(
            inner.named("tool_options.vpn_connect_command"), "commands come from the server's settings, never from here"
        )
    return made
