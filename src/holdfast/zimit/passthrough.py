"""The flags that may be passed to zimit in the container, their values, and the mapping from a source's fields.

Every other flag is rejected. The list contains flags that define *what* to crawl. It omits flags that name
files, programs, proxies or ports, flags that set the output location, and flags that would let zimit delete its
WARC files: those are reserved for this tool.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from holdfast.sources.config import HTTP_WARC_OPTIONS, SourceConfig
from holdfast.urls.scope import spelled_out
from holdfast.zimit.errors import FlagRefused, ToolConfigRefused

MAX_VALUE_CHARS = 4096


class Takes(Enum):
    NOTHING = "nothing"
    NUMBER = "number"
    TEXT = "text"


_ZIM = "title description long-description zim-lang favicon creator publisher source tags adminEmail"
"""Flags that describe the ZIM."""
_TABLE: tuple[tuple[Takes, str, str], ...] = (
    (
        Takes.NOTHING,
        "allowHashUrls failOnFailedSeed failOnInvalidStatus blockAds",
        "headless generateCDX combineWARC failOnFailedLimit noMobileDevice restartsOnError keep",
    ),
    (
        Takes.NUMBER,
        "depth extraHops pageLoadTimeout timeout rolloverSize behaviorTimeout postLoadDelay pageExtraDelay delay "
        "saveStateInterval saveStateHistory netIdleWait maxPageRetries diskUtilization",
        "workers pageLimit limit maxPageLimit sizeSoftLimit sizeHardLimit sizeLimit timeSoftLimit timeHardLimit "
        "timeLimit",
    ),
    (
        Takes.TEXT,
        "scopeType scopeIncludeRx scopeExcludeRx include exclude waitUntil selectLinks clickSelector blockRules "
        "logging logLevel text mobileDevice userAgent userAgentSuffix useSitemap behaviors dedupPolicy screenshot "
        "warcInfo saveState lang warcPrefix serviceWorker",
        "blockMessage adBlockMessage collection logContext logExcludeContext sitemapFromDate sitemapToDate "
        "crawlId profile acceptable-crawler-exit-codes",
    ),
    (Takes.TEXT, "", _ZIM),
)
"""What flags take, those that a job may also manage as settings of the crawler, and the others."""
FLAGS: dict[str, Takes] = {
    "-w": Takes.NUMBER,
    **{f"--{name}": takes for takes, *groups in _TABLE for group in groups for name in group.split()},
}
_MANAGED = {"extraChromeArgs", "context", "useRobots"}.union(*(managed.split() for _, managed, _ in _TABLE))
_BUILD = {"--lang", *(f"--{name}" for name in _ZIM.split())}
_NUMBER = re.compile(r"-?\d{1,15}")
_WORKERS = ("--workers", "-w")
_SIZE = "--sizeSoftLimit"
_EXCLUSIVE = (("--sizeSoftLimit", "--sizeHardLimit"), ("--timeSoftLimit", "--timeHardLimit"))
_PROFILE = re.compile(r"(?:/output/)?[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}")


class Flag(NamedTuple):
    name: str
    value: str | None

    @property
    def words(self) -> list[str]:
        """The flag as command-line arguments; a value that starts with a dash is joined with `=`."""
        if self.value is None:
            return [self.name]
        return [f"{self.name}={self.value}"] if self.value.startswith("-") else [self.name, self.value]


def words_of(flags: Iterable[Flag]) -> list[str]:
    return [word for flag in flags for word in flag.words]


def zimit_flags(*options: str) -> frozenset[str]:
    """Return the zimit flags that set these options of our own crawler."""
    return frozenset(flag for flag, option in HTTP_WARC_OPTIONS.items() if option in options)


def strip_separator(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without one leading `--`, which people type before flags for zimit."""
    return list(arguments[1:] if list(arguments[:1]) == ["--"] else arguments)


def read_flags(arguments: Sequence[str], allowed: Iterable[str] = ()) -> tuple[Flag, ...]:
    """Return the flags to pass to zimit; raise `FlagRefused` naming the first that is not allowed.

    One leading `--` is skipped. `allowed` lists extra flags with a text value that this installation permits. Of a
    soft and a hard limit, zimit accepts only one.
    """
    # From the server's settings alone: no request can widen the list.
    known = FLAGS | {name if name.startswith("-") else f"--{name}": Takes.TEXT for name in allowed}
    found = tuple(_flags(strip_separator(arguments), known))
    given = {flag.name for flag in found}
    for soft, hard in _EXCLUSIVE:
        if soft in given and hard in given:
            raise FlagRefused(hard, f"zimit takes it or {soft}, not both")
    return found


def _flags(words: list[str], known: dict[str, Takes]) -> Iterator[Flag]:
    at = 0
    while at < len(words):
        name, tied, value = words[at].partition("=")
        at += 1
        if name not in known:
            raise FlagRefused(name, "only flags that say what to crawl may reach zimit; see docs/archive-tool.md")
        takes = known[name]
        if takes is Takes.NOTHING:
            if tied:
                raise FlagRefused(name, "it takes no value")
            yield Flag(name, None)
            continue
        if not tied:
            if at == len(words):
                raise FlagRefused(name, "its value is missing")
            value = words[at]
            at += 1
        yield Flag(name, _checked(name, value, takes))


def _checked(name: str, value: str, takes: Takes) -> str:
    if takes is Takes.NUMBER and not _NUMBER.fullmatch(value):
        raise FlagRefused(name, "its value is no whole number")
    if not value or len(value) > MAX_VALUE_CHARS:
        raise FlagRefused(name, f"its value is empty or longer than {MAX_VALUE_CHARS} characters")
    # A line break or an escape would reach logs and terminals.
    if not value.isprintable():
        raise FlagRefused(name, "its value has control characters")
    if name == "--profile" and not _PROFILE.fullmatch(value):
        raise FlagRefused(name, "a browser profile is a file in the output directory, by its name")
    # A value that is missing would swallow the next flag.
    if value.startswith("--"):
        raise FlagRefused(name, "another flag stands where its value should be")
    return value


def split_workers(flags: Iterable[Flag]) -> tuple[int | None, tuple[Flag, ...]]:
    """Return the number of workers in the flags (None if not set) and the other flags.

    Raise `FlagRefused` if it is less than one.
    """
    workers, others = None, []
    for flag in flags:
        if flag.name in _WORKERS:
            workers = int(flag.value or "0")
            if workers < 1:
                raise FlagRefused(flag.name, "at least one worker is needed")
        # This tool gives `--keep` to every container itself.
        elif flag.name != "--keep":
            others.append(flag)
    return workers, tuple(others)


def size_limit(flags: Iterable[Flag]) -> int | None:
    """Return the WARC size in bytes at which a crawl ends successfully; None without a limit."""
    found = [int(flag.value or "0") for flag in flags if flag.name == _SIZE]
    return found[-1] if found and found[-1] > 0 else None


def with_size_left(flags: Iterable[Flag], captured_bytes: int) -> tuple[Flag, ...]:
    """Return the flags with the size limit reduced by `captured_bytes`, but never to zero."""
    return tuple(
        # Never 0, which zimit takes for no limit at all.
        Flag(flag.name, str(max(1, int(flag.value or "0") - captured_bytes)))
        if flag.name == _SIZE and int(flag.value or "0") > 0
        else flag
        for flag in flags
    )


def for_final_build(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """Return the flags that also apply to the finished ZIM: title, description, language, icon."""
    return tuple(flag for flag in flags if flag.name in _BUILD)


_FIELD = "browsertrix_config"
_CHROME_ARGS = (
    *("--disable-http2", "--disable-quic", "--disable-gpu", "--disable-dev-shm-usage"),
    "--disable-background-networking",
)
_MAX_LIST = 500


def check_managed(content: object) -> dict[str, Any]:
    """Return the settings unchanged; raise `ToolConfigRefused` if not an object or if one may not be managed."""
    if not isinstance(content, dict):
        raise ToolConfigRefused(_FIELD, "it must be an object")
    for key, value in content.items():
        if key not in _MANAGED:
            raise ToolConfigRefused(f"{_FIELD}.{key!s:.80}", "this setting may not be managed")
        if not _plain(value):
            raise ToolConfigRefused(f"{_FIELD}.{key}", "only text, numbers, booleans and lists of them")
    for argument in content.get("extraChromeArgs", ()):
        # A browser's arguments can open ports, load extensions and leave the sandbox.
        if argument not in _CHROME_ARGS:
            raise ToolConfigRefused(f"{_FIELD}.extraChromeArgs", f"{argument!r:.100} is not among the permitted ones")
    return dict(content)


def _plain(value: object) -> bool:
    if isinstance(value, list):
        return len(value) <= _MAX_LIST and all(isinstance(one, str | int | float | bool | dict) for one in value)
    return isinstance(value, str | int | float | bool)


def merged(managed: dict[str, Any], resume: dict[str, Any]) -> dict[str, Any]:
    """Return the saved settings overridden by the managed ones.

    Managed scalars win, lists start with the managed entries without duplicates, mappings are merged recursively,
    and values that exist only in the saved file stay.
    """
    result = dict(resume)
    for key, value in managed.items():
        before = resume.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            result[key] = merged(value, before)
        elif isinstance(value, list):
            result[key] = _joined(value, before if isinstance(before, list) else [])
        else:
            result[key] = value
    return result


def _joined(first: list[Any], second: list[Any]) -> list[Any]:
    joined: list[Any] = []
    for one in (*first, *second):
        if one not in joined:
            joined.append(one)
    return joined


# What passes between two requests to a domain of the public web, whatever the settings say.
_LEAST_DELAY_S = 1.0
_TIME = zimit_flags("--max-time")
_ROBOTS = "useRobots"


def crawl_flags(
    config: SourceConfig,
    allowed: Sequence[str] = (),
    *,
    delay_s: float = 1.0,
    most_s: float | None = None,
    contact: str | None = None,
    scoped: bool = True,
) -> list[str]:
    """Return zimit's flags for a source: those of its fields that its own zimit flags do not set, then its own.

    Without `scoped`, its scope, rules, depth, pages and contact are left to zimit. With include rules, only matching
    URLs and the seeds are in scope, as with Holdfast's own crawler. A contact that is an e-mail address is sent to the
    sites. No time limit exceeds `most_s`. At a limit the crawl ends successfully; captured pages are preserved. Raise
    `FlagRefused` if one of the source's own flags is not allowed.

    zimit waits after each page in each worker separately. The delay grows with the number of workers, so that pages
    of a domain start no closer together than the source's delay, or `delay_s` if it has none.
    """
    own = read_flags(config.zimit.passthrough_args, allowed)
    # zimit has no floor of its own: a setting for private networks must not let it hurry on the public web.
    wait_s = max(delay_s, _LEAST_DELAY_S) if config.delay_s is None else config.delay_s
    # Each worker waits by itself: times their number, or pages of one host would start closer than the source says.
    delay = math.ceil(wait_s * (split_workers(own)[0] or _workers(config.zimit.tool_options))) or None
    seconds = min((limit for limit in (config.max_time_s, most_s) if limit), default=None)
    email = contact if contact is not None and "@" in contact and "://" not in contact else None
    scope: tuple[_FieldFlag, ...] = (
        ("--scopeType", "custom" if config.include else config.scope, "--scope --include"),
        ("--scopeIncludeRx", _either(config.include), "--scope --include"),
        ("--scopeExcludeRx", _either(config.exclude), "--exclude"),
        ("--depth", config.max_depth if config.max_depth >= 0 else None, "--depth"),
        ("--pageLimit", config.max_pages, "--max-pages"),
        ("--adminEmail", email, "--contact --user-agent"),
    )
    limits: tuple[_FieldFlag, ...] = (
        ("--pageExtraDelay", delay, "--delay"),
        (_SIZE, config.quota_bytes, "--max-bytes"),
        ("--timeSoftLimit", None if seconds is None else math.ceil(seconds), "--max-time"),
    )
    given = {flag.name for flag in own}
    made = [
        Flag(name, str(value))
        for name, value, options in (*(scope if scoped else ()), *limits)
        if value is not None and given.isdisjoint(zimit_flags(*options.split()))
    ]
    return words_of([*made, *(_within(flag, most_s) for flag in own)])


_FieldFlag = tuple[str, str | int | None, str]
"""A flag, the value that a source's field gives it, and the options of our own crawler that say the same."""


def _within(flag: Flag, most_s: float | None) -> Flag:
    """Return the flag with a time limit reduced to `most_s`; 0 means no limit to the browser."""
    if most_s is None or flag.name not in _TIME or 0 < int(flag.value or 0) <= math.ceil(most_s):
        return flag
    return Flag(flag.name, str(math.ceil(most_s)))


def _workers(options: Mapping[str, Any]) -> int:
    given = options.get("initial_workers", 1)
    return given if isinstance(given, int) and given > 0 else 1


def with_robots(config: SourceConfig, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tool options with robots.txt enabled in the browser unless the source disables it.

    Only the crawler inside zimit reads robots.txt, so this goes into the settings used in every phase. Old crawler
    versions ignore the setting. Raise `ToolConfigRefused` if the settings already contain it.
    """
    managed = options.get(_FIELD)
    if isinstance(managed, Mapping) and _ROBOTS in managed:
        raise ToolConfigRefused(
            f"tool_options.{_FIELD}.{_ROBOTS}", "the source's field robots says this: obey, or ignore with a reason"
        )
    if config.robots != "obey" or not (managed is None or isinstance(managed, Mapping)):
        return dict(options)
    return {**options, _FIELD: {**(managed or {}), _ROBOTS: True}}


def _either(rules: Sequence[str]) -> str | None:
    """Return one pattern that matches if any rule does: zimit only uses the last pattern given."""
    spelled = [spelled_out(rule) for rule in rules]
    return "|".join(f"(?:{rule})" for rule in spelled) if len(spelled) > 1 else next(iter(spelled), None)
