"""Which flags may reach zimit inside the container, and what may stand behind them. Everything else is refused.

The list holds what says *what* to crawl. It leaves out what names files, programs, proxies or ports, what decides where
output goes, and what would let zimit delete its WARC files: those belong to this tool or to nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from holdfast.archive_tool.refusals import FlagRefused

MAX_VALUE_CHARS = 4096


class Takes(Enum):
    """What stands behind a flag."""

    NOTHING = "nothing"
    NUMBER = "number"
    TEXT = "text"


_SWITCHES = (
    "allowHashUrls", "headless", "generateCDX", "combineWARC", "failOnFailedSeed", "failOnFailedLimit",
    "failOnInvalidStatus", "noMobileDevice", "blockAds", "restartsOnError", "keep",
)  # fmt: skip
_NUMBERS = (
    "workers", "depth", "extraHops", "pageLimit", "limit", "maxPageLimit", "pageLoadTimeout", "timeout",
    "rolloverSize", "behaviorTimeout", "postLoadDelay", "pageExtraDelay", "delay", "saveStateInterval",
    "saveStateHistory", "sizeSoftLimit", "sizeHardLimit", "sizeLimit", "diskUtilization", "timeSoftLimit",
    "timeHardLimit", "timeLimit", "netIdleWait", "maxPageRetries",
)  # fmt: skip
_TEXTS = (
    "scopeType", "scopeIncludeRx", "scopeExcludeRx", "include", "exclude", "waitUntil", "selectLinks",
    "clickSelector", "blockRules", "blockMessage", "adBlockMessage", "collection", "logging", "logLevel",
    "logContext", "logExcludeContext", "text", "mobileDevice", "userAgent", "userAgentSuffix", "useSitemap",
    "sitemapFromDate", "sitemapToDate", "behaviors", "dedupPolicy", "screenshot", "warcInfo", "saveState", "lang",
    "warcPrefix", "serviceWorker", "adminEmail", "title", "description", "long-description", "zim-lang", "favicon",
    "creator", "publisher", "source", "tags", "crawlId", "acceptable-crawler-exit-codes", "profile",
)  # fmt: skip
FLAGS: dict[str, Takes] = {
    **{f"--{name}": Takes.NOTHING for name in _SWITCHES},
    **{f"--{name}": Takes.NUMBER for name in _NUMBERS},
    **{f"--{name}": Takes.TEXT for name in _TEXTS},
    "-w": Takes.NUMBER,
}
_BUILD = (
    "--title", "--description", "--long-description", "--zim-lang", "--lang", "--favicon", "--creator", "--publisher",
    "--source", "--tags", "--adminEmail",
)  # fmt: skip
_NUMBER = re.compile(r"-?\d{1,15}")
_WORKERS = ("--workers", "-w")
_SIZE = "--sizeSoftLimit"
_EXCLUSIVE = (("--sizeSoftLimit", "--sizeHardLimit"), ("--timeSoftLimit", "--timeHardLimit"))
_PROFILE = re.compile(r"(?:/output/)?[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}")


class Flag(NamedTuple):
    """One flag as it was given, with its value if it takes one."""

    name: str
    value: str | None

    @property
    def words(self) -> list[str]:
        """The flag as it goes into an argument list; a value that begins with a dash is tied to it."""
        if self.value is None:
            return [self.name]
        return [f"{self.name}={self.value}"] if self.value.startswith("-") else [self.name, self.value]


def read_flags(arguments: Sequence[str], allowed: Iterable[str] = ()) -> tuple[Flag, ...]:
    """Return the flags that go to zimit; FlagRefused names the first that may not.

    One leading `--` is passed over. `allowed` are flags with a text value that this installation permits besides. Of a
    soft and a hard limit zimit takes one.
    """
    words = list(arguments[1:] if arguments[:1] == ["--"] else arguments)
    known = FLAGS | {name if name.startswith("-") else f"--{name}": Takes.TEXT for name in allowed}
    found = tuple(_flags(words, known))
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
    if not value.isprintable():
        raise FlagRefused(name, "its value has control characters")
    if name == "--profile" and not _PROFILE.fullmatch(value):
        raise FlagRefused(name, "a browser profile is a file in the output directory, by its name")
    if value.startswith("--"):
        raise FlagRefused(name, "another flag stands where its value should be")
    return value


def split_workers(flags: Iterable[Flag]) -> tuple[int | None, tuple[Flag, ...]]:
    """Return the number of workers that the flags ask for, None if they do not, and the other flags.

    FlagRefused if it is less than one.
    """
    workers, others = None, []
    for flag in flags:
        if flag.name in _WORKERS:
            workers = int(flag.value or "0")
            if workers < 1:
                raise FlagRefused(flag.name, "at least one worker is needed")
        elif flag.name != "--keep":  # always given by this tool (faults.md, M19)
            others.append(flag)
    return workers, tuple(others)


def size_limit(flags: Iterable[Flag]) -> int | None:
    """Return how many bytes of WARC files a crawl may capture before it ends well; None if there is no such limit."""
    found = [int(flag.value or "0") for flag in flags if flag.name == _SIZE]
    return found[-1] if found and found[-1] > 0 else None


def with_size_left(flags: Iterable[Flag], captured_bytes: int) -> tuple[Flag, ...]:
    """Return the flags with a size limit that is less by what has been captured, and never none at all."""
    return tuple(
        Flag(flag.name, str(max(1, int(flag.value or "0") - captured_bytes)))
        if flag.name == _SIZE and int(flag.value or "0") > 0 else flag
        for flag in flags
    )  # fmt: skip


def for_final_build(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """Return the flags that also say something about the finished ZIM: title, description, language, icon."""
    return tuple(flag for flag in flags if flag.name in _BUILD)
