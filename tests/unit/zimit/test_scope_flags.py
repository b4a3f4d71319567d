"""A source's scope in zimit's flags: whoever switches the backend keeps the bounds of the crawl."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.config import ApiSettings, Settings, ZimitSettings
from holdfast.sources.config import read_config
from holdfast.sources.registry import PRESETS
from holdfast.wiring.jobs import ZimitUnguarded, zimit_config
from holdfast.zimit.errors import FlagRefused
from holdfast.zimit.passthrough import crawl_flags

SEED = ["https://example.org/"]


def _flags(contact: str | None = None, *given: str, **config: Any) -> list[str]:
    content = {"seeds": SEED, "max_depth": -1, "delay_s": 0, **config, "zimit": {"passthrough_args": list(given)}}
    flags = crawl_flags(read_config(content), contact=contact)
    return flags[: len(flags) - 2 * sum(word.startswith("--") for word in given)]


@pytest.mark.parametrize("scope", ["page", "prefix", "host", "domain", "any"])
def test_the_scopes_have_the_same_words(scope: str) -> None:
    assert _flags(scope=scope) == ["--scopeType", scope]


def test_rules_depth_and_pages_become_flags() -> None:
    flags = _flags(include=["^https://a/", "^https://b/"], exclude=[r"\.pdf$"], max_depth=4, max_pages=10)

    assert flags == [
        "--scopeType", "custom", "--scopeIncludeRx", "(?:^https://a/)|(?:^https://b/)", "--scopeExcludeRx", r"\.pdf$",
        "--depth", "4", "--pageLimit", "10",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (("--scopeType", "domain"), ["--scopeExcludeRx", "x", "--depth", "4", "--pageLimit", "10"]),
        (("--include=y",), ["--scopeExcludeRx", "x", "--depth", "4", "--pageLimit", "10"]),
        (("--exclude", "y"), ["--scopeType", "host", "--depth", "4", "--pageLimit", "10"]),
        (("--depth", "1", "--limit", "5"), ["--scopeType", "host", "--scopeExcludeRx", "x"]),
    ],
)
def test_what_is_said_to_zimit_itself_wins(given: tuple[str, ...], left: list[str]) -> None:
    assert _flags(None, *given, exclude=["x"], max_depth=4, max_pages=10) == left


@pytest.mark.parametrize(
    ("contact", "told"),
    [("a@example.org", ["--adminEmail", "a@example.org"]), ("https://example.org/about", []), (None, [])],
)
def test_sites_are_told_whom_to_write_to(contact: str | None, told: list[str]) -> None:
    assert _flags(contact)[2:] == told
    assert _flags(contact, "--userAgent", "mine") == ["--scopeType", "host"]


def test_a_flag_that_may_not_pass_is_refused() -> None:
    with pytest.raises(FlagRefused, match="driver"):
        _flags(None, "--driver", "x.js")


def test_every_preset_can_be_crawled_by_zimit_within_its_bounds_and_without_caps() -> None:
    for preset in PRESETS:
        made = zimit_config(read_config(preset.config), Settings())
        flags = made.zimit.passthrough_args
        assert "--depth" not in flags
        assert "--pageLimit" not in flags
        assert flags[flags.index("--scopeType") + 1] == ("host" if preset.code == "cihr" else "custom")


@pytest.mark.parametrize(("environment", "relaxed"), [("development", True), ("production", False)])
def test_zimit_is_refused_when_strict_unless_accepted(environment: str, relaxed: bool) -> None:
    config = read_config({"seeds": SEED, "backend": "zimit"})
    settings = Settings(api=ApiSettings(environment=environment))
    if relaxed:
        assert zimit_config(config, settings).seeds
        return
    with pytest.raises(ZimitUnguarded, match="HOLDFAST_ZIMIT_ACCEPT_UNGUARDED"):
        zimit_config(config, settings)
    own = {"execution_policy": {"capture_backend": "http_warc"}}
    assert zimit_config(read_config({"seeds": SEED, "backend": "zimit", "zimit": own}), settings).seeds
    accepted = Settings(api=settings.api, zimit=ZimitSettings(accept_unguarded=True))
    assert zimit_config(config, accepted).seeds


@pytest.mark.parametrize(("environment", "relaxed"), [("development", True), ("production", False)])
def test_permissions_are_loosened_where_the_environment_is_not_strict(environment: str, relaxed: bool) -> None:
    settings = Settings(api=ApiSettings(environment=environment), zimit=ZimitSettings(accept_unguarded=True))

    assert zimit_config(read_config({"seeds": SEED}), settings).zimit.tool_options.get("relax_perms", False) is relaxed
    told = read_config({"seeds": SEED, "zimit": {"tool_options": {"relax_perms": not relaxed}}})
    assert zimit_config(told, settings).zimit.tool_options.get("relax_perms", False) is not relaxed
