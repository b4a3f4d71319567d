"""The politeness of a source as options of zimit: who switches the backend stays as polite, as far as zimit can be."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.config import PolitenessSettings, Settings, WorkerSettings
from holdfast.sources.config import read_config
from holdfast.wiring.jobs import zimit_config
from holdfast.zimit.errors import ToolConfigRefused
from holdfast.zimit.passthrough import crawl_flags


def _config(*given: str, options: dict[str, Any] | None = None, **fields: Any) -> Any:
    zimit = {"passthrough_args": list(given), "tool_options": options or {}}
    return read_config({"seeds": ["https://example.org/"], "backend": "zimit", "zimit": zimit, **fields})


@pytest.mark.parametrize(
    ("fields", "given", "options", "flags"),
    [
        ({}, (), {}, ["--pageExtraDelay", "1"]),
        ({"delay_s": 0}, (), {}, []),
        ({"delay_s": 0.2}, (), {}, ["--pageExtraDelay", "1"]),
        ({"delay_s": 2.5}, (), {"initial_workers": 3}, ["--pageExtraDelay", "8"]),
        ({"delay_s": 2}, ("--workers", "4"), {"initial_workers": 3}, ["--pageExtraDelay", "8"]),
        ({"quota_bytes": 9}, ("--delay", "7"), {}, ["--sizeSoftLimit", "9"]),
        ({"max_time_s": 90.5}, ("--delay", "7"), {}, ["--timeSoftLimit", "91"]),
        ({"max_time_s": 90}, ("--delay", "7", "--timeLimit", "5"), {}, []),
        ({"quota_bytes": 9}, ("--pageExtraDelay=7", "--sizeHardLimit", "5"), {}, []),
    ],
)
def test_delay_and_quota_become_flags_unless_zimit_is_told_itself(
    fields: dict[str, Any], given: tuple[str, ...], options: dict[str, Any], flags: list[str]
) -> None:
    own = [part for word in given for part in word.split("=")]

    assert crawl_flags(_config(*given, options=options, **fields), scoped=False) == [*flags, *own]


@pytest.mark.parametrize(("own", "setting", "told"), [(None, 4.0, "4"), (None, 0.0, "1"), (2.0, 4.0, "2")])
def test_a_source_without_a_delay_has_that_of_the_settings_and_at_least_a_second(
    own: float | None, setting: float, told: str
) -> None:
    settings = Settings(contact="a@example.org", politeness=PolitenessSettings(delay_s=setting))
    flags = zimit_config(_config(delay_s=own), settings).zimit.passthrough_args

    assert flags[flags.index("--pageExtraDelay") + 1] == told


@pytest.mark.parametrize(
    ("own", "given", "flags"),
    [
        (None, (), ["--timeSoftLimit", "600"]),
        (90, (), ["--timeSoftLimit", "90"]),
        (900, (), ["--timeSoftLimit", "600"]),
        (None, ("--timeLimit", "60"), ["--timeLimit", "60"]),
        (None, ("--timeHardLimit=6000",), ["--timeHardLimit", "600"]),
        (None, ("--timeLimit", "0"), ["--timeLimit", "600"]),
    ],
)
def test_no_run_of_zimit_takes_longer_than_a_workers_run_may(
    own: float | None, given: tuple[str, ...], flags: list[str]
) -> None:
    fields: dict[str, Any] = {} if own is None else {"max_time_s": own}
    config = _config(*given, **fields)
    settings = Settings(worker=WorkerSettings(max_time_s=600))

    told = list(zimit_config(config, settings).zimit.passthrough_args)

    assert [words for at, words in enumerate(told) if "time" in words or (at and "time" in told[at - 1])] == flags


def test_without_a_limit_of_the_worker_the_sources_own_stands() -> None:
    settings = Settings(worker=WorkerSettings(max_time_s=0))

    assert "--timeSoftLimit" not in zimit_config(_config(), settings).zimit.passthrough_args
    assert "6000" in zimit_config(_config("--timeLimit", "6000"), settings).zimit.passthrough_args


def test_robots_are_obeyed_beside_other_managed_settings_unless_the_source_says_otherwise() -> None:
    managed = {"browsertrix_config": {"behaviors": "autoscroll"}}

    obeying = zimit_config(_config(options=managed), Settings()).zimit.tool_options["browsertrix_config"]
    assert obeying == {"behaviors": "autoscroll", "useRobots": True}
    ignoring = _config(options=managed, robots="ignore", robots_reason="ours")
    assert zimit_config(ignoring, Settings()).zimit.tool_options["browsertrix_config"] == {"behaviors": "autoscroll"}


def test_robots_are_not_ignored_behind_the_back_of_the_source() -> None:
    with pytest.raises(ToolConfigRefused, match=r"browsertrix_config\.useRobots.*robots"):
        zimit_config(_config(options={"browsertrix_config": {"useRobots": False}}), Settings())


def test_two_limits_that_zimit_would_refuse_are_refused_before_anything_is_queued() -> None:
    with pytest.raises(ToolConfigRefused, match="--sizeSoftLimit, not both"):
        zimit_config(_config("--sizeSoftLimit", "1", "--sizeHardLimit", "2"), Settings())


def test_what_zimit_does_not_heed_is_said_when_the_source_is_saved() -> None:
    said = _config(user_agents=["mine"], requisites=False).warnings()

    assert [warning.partition(":")[0] for warning in said] == ["robots", "user_agents", "requisites"]
    assert _config(robots="ignore", robots_reason="ours").warnings() == ()
