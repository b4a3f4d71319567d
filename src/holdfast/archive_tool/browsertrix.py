"""The managed Browsertrix settings: what every phase of a crawl must have, resumed ones too.

Settings that name programs, files, proxies or ports are refused; of the browser's own arguments a few may pass.
"""

from __future__ import annotations

from typing import Any

from holdfast.archive_tool.refusals import ToolConfigRefused

MANAGED_NAME = ".browsertrix_managed_config.yaml"
_FIELD = "browsertrix_config"
_KEYS = frozenset({
    "extraChromeArgs", "scopeType", "include", "exclude", "scopeIncludeRx", "scopeExcludeRx", "depth", "extraHops",
    "pageLoadTimeout", "timeout", "behaviorTimeout", "behaviors", "postLoadDelay", "pageExtraDelay", "delay",
    "netIdleWait", "maxPageRetries", "waitUntil", "blockRules", "blockAds", "userAgent", "userAgentSuffix", "lang",
    "saveState", "saveStateInterval", "saveStateHistory", "rolloverSize", "dedupPolicy", "serviceWorker",
    "mobileDevice", "logging", "logLevel", "context", "useSitemap", "allowHashUrls", "selectLinks", "clickSelector",
    "failOnFailedSeed", "failOnInvalidStatus", "warcInfo", "warcPrefix", "diskUtilization", "screenshot", "text",
    "useRobots",
})  # fmt: skip
_CHROME_ARGS = frozenset({
    "--disable-http2", "--disable-quic", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
})  # fmt: skip
_MAX_LIST = 500


def check_managed(content: object) -> dict[str, Any]:
    """Return the settings as they came; ToolConfigRefused if they are no object, or one of them may not be managed."""
    if not isinstance(content, dict):
        raise ToolConfigRefused(_FIELD, "it must be an object")
    for key, value in content.items():
        if key not in _KEYS:
            raise ToolConfigRefused(f"{_FIELD}.{key!s:.80}", "this setting may not be managed")
        if not _plain(value):
            raise ToolConfigRefused(f"{_FIELD}.{key}", "only text, numbers, booleans and lists of them")
    for argument in content.get("extraChromeArgs", ()):
        if argument not in _CHROME_ARGS:
            raise ToolConfigRefused(f"{_FIELD}.extraChromeArgs", f"{argument!r:.100} is not among the permitted ones")
    return dict(content)


def _plain(value: object) -> bool:
    if isinstance(value, list):
        return len(value) <= _MAX_LIST and all(isinstance(one, str | int | float | bool | dict) for one in value)
    return isinstance(value, str | int | float | bool)


def merged(managed: dict[str, Any], resume: dict[str, Any]) -> dict[str, Any]:
    """Return the saved settings with the managed ones over them.

    Managed scalars win, lists begin with the managed entries and name each once, mappings are merged inside, and all
    that only the saved file has stays as it is.
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
