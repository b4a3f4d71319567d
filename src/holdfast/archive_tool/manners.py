"""From a source's manners (delay, quota, robots.txt) to what zimit and the browser in it know of such things. Pure.

What the source hands on to zimit itself wins, but for robots.txt: ignoring it needs a reason, and is said in one place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.archive_tool.refusals import ToolConfigRefused
from holdfast.archive_tool.zimit_flags import read_flags, split_workers
from holdfast.sources.config import SourceConfig

_DELAY = ("--pageExtraDelay", "--delay")
_SIZE = ("--sizeSoftLimit", "--sizeHardLimit", "--sizeLimit")
_TIME = ("--timeSoftLimit", "--timeHardLimit", "--timeLimit")
_ROBOTS = "useRobots"
_MANAGED = "browsertrix_config"


def manner_flags(config: SourceConfig, allowed: Sequence[str] = ()) -> list[str]:
    """Return the flags for delay and quota that the source's own flags for zimit leave open.

    zimit waits after each page, and each of its workers by itself: the wait grows with their number, so that pages of a
    domain start no closer than the source says. A quota ends the crawl well; what was captured is kept.
    """
    workers, flags = split_workers(read_flags(config.zimit.passthrough_args, allowed))
    given = {flag.name for flag in flags}
    made: list[str] = []
    if config.delay_s > 0 and not given.intersection(_DELAY):
        count = workers or _workers(config.zimit.tool_options)
        made += [_DELAY[0], str(math.ceil(config.delay_s * count))]
    if config.quota_bytes is not None and not given.intersection(_SIZE):
        made += [_SIZE[0], str(config.quota_bytes)]
    if config.max_time_s is not None and not given.intersection(_TIME):
        made += [_TIME[0], str(math.ceil(config.max_time_s))]
    return made


def within_time(given: Sequence[str], most_s: float | None, allowed: Sequence[str] = ()) -> list[str]:
    """Return the source's own flags with limits of time that are longer than a run may take cut to that."""
    if most_s is None or not {word.partition("=")[0] for word in given}.intersection(_TIME):
        return list(given)
    most = math.ceil(most_s)
    flags = read_flags(given, allowed)
    cut = [flag._replace(value=str(_cut(flag.value, most))) if flag.name in _TIME else flag for flag in flags]
    return [word for flag in cut for word in flag.words]


def _cut(value: str | None, most: int) -> int:
    asked = int(value or 0)
    return min(asked, most) if asked > 0 else most  # 0 is how the browser is told that there is no limit


def _workers(options: Mapping[str, Any]) -> int:
    given = options.get("initial_workers", 1)
    return given if isinstance(given, int) and given > 0 else 1


def with_robots(config: SourceConfig, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tool options with robots.txt obeyed by the browser unless the source says otherwise.

    Only the crawler inside zimit knows of robots.txt, so this goes into the settings that every phase has. A crawler
    that is too old for it passes over the setting. ToolConfigRefused if the settings speak of it themselves.
    """
    managed = options.get(_MANAGED)
    if isinstance(managed, Mapping) and _ROBOTS in managed:
        raise ToolConfigRefused(
            f"tool_options.{_MANAGED}.{_ROBOTS}", "the source's field robots says this: obey, or ignore with a reason"
        )
    if config.robots != "obey" or not (managed is None or isinstance(managed, Mapping)):
        return dict(options)
    return {**options, _MANAGED: {**(managed or {}), _ROBOTS: True}}
