"""From what a source says of its scope to zimit's flags. A flag that the source hands on to zimit itself wins. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.archive_tool.zimit_flags import read_flags
from holdfast.sources.config import SourceConfig

_SCOPE = ("--scopeType", "--scopeIncludeRx", "--include")
_EXCLUDE = ("--scopeExcludeRx", "--exclude")
_DEPTH = ("--depth",)
_PAGES = ("--pageLimit", "--limit", "--maxPageLimit")
_CONTACT = ("--adminEmail", "--userAgent")


def scope_flags(config: SourceConfig, contact: str | None, allowed: Sequence[str] = ()) -> list[str]:
    """Return the flags for scope, rules, depth and pages that the source's own flags for zimit leave open.

    With include rules only what they match is in scope, besides the seeds, as with our own crawler. An e-mail address
    as contact is told to the sites. FlagRefused if one of the source's own flags may not reach zimit.
    """
    given = {flag.name for flag in read_flags(config.zimit.passthrough_args, allowed)}
    flags: list[str] = []

    def add(name: str, value: str, unless: Sequence[str]) -> None:
        if not given.intersection(unless):
            flags.extend((name, value))

    if config.include:
        add("--scopeType", "custom", _SCOPE)
        add("--scopeIncludeRx", _either(config.include), _SCOPE)
    else:
        add("--scopeType", config.scope, _SCOPE)
    if config.exclude:
        add("--scopeExcludeRx", _either(config.exclude), _EXCLUDE)
    if config.max_depth >= 0:
        add("--depth", str(config.max_depth), _DEPTH)
    if config.max_pages is not None:
        add("--pageLimit", str(config.max_pages), _PAGES)
    if contact is not None and "@" in contact and "://" not in contact:
        add("--adminEmail", contact, _CONTACT)
    return flags


def _either(rules: Sequence[str]) -> str:
    """Return one pattern that matches what any of the rules does: zimit hears one, the last."""
    return rules[0] if len(rules) == 1 else "|".join(f"(?:{rule})" for rule in rules)
