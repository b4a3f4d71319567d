"""The rules of a campaign: its year and date, its order, its names, and that nothing caps it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast.config import ZimitSettings
from holdfast.editions.campaign import (
    CampaignRefused,
    campaign_date,
    campaign_year,
    in_order,
    job_name,
    labels,
    shard_seeds,
    uncapped,
)
from holdfast.errors import Invalid
from holdfast.sources.config import merged, read_config

NEW_YEAR = datetime(2027, 1, 1, 23, 59, tzinfo=UTC)
SOME_DAY = datetime(2026, 9, 1, tzinfo=UTC)


@pytest.mark.parametrize(("year", "now", "meant"), [(None, NEW_YEAR, 2027), (2026, NEW_YEAR, 2026),
                                                     (1970, SOME_DAY, 1970), (2100, SOME_DAY, 2100)])  # fmt: skip
def test_the_year_may_be_left_out_on_new_years_day_only(year: int | None, now: datetime, meant: int) -> None:
    assert campaign_year(year, now=now) == meant


@pytest.mark.parametrize(("year", "now"), [(None, SOME_DAY), (None, datetime(2027, 1, 2, tzinfo=UTC)),
                                            (1969, SOME_DAY), (2101, SOME_DAY)])  # fmt: skip
def test_other_years_are_refused(year: int | None, now: datetime) -> None:
    with pytest.raises(CampaignRefused, match="year"):
        campaign_year(year, now=now)


def test_sources_are_queued_in_one_order_however_they_are_named() -> None:
    assert in_order(["zeta", "cihr", "alpha", "phac", "hc", "phac"]) == ["hc", "phac", "cihr", "alpha", "zeta"]


def test_a_job_is_named_by_source_year_and_shard() -> None:
    assert job_name("hc", 2026) == "hc-20260101"
    assert job_name("hc", 2026, "lang-en") == "hc-20260101-lang-en"
    assert labels(2026)["campaign_date_utc"] == "2026-01-01T00:00:00+00:00"
    assert campaign_date(2026) == datetime(2026, 1, 1, tzinfo=UTC)


def test_each_seed_has_a_shard_named_by_its_language_or_its_place() -> None:
    seeds = [
        "https://a.ca/en/x.html",
        "https://a.ca/f/193.html",
        "https://a.ca/about",
        "https://a.ca/e/y",
        "https://a.ca/",
    ]

    assert [key for _, key in shard_seeds(seeds)] == ["lang-en", "lang-fr", "seed-3", "lang-en-2", "seed-5"]
    assert shard_seeds(seeds) == shard_seeds(seeds)


def test_caps_on_pages_and_depth_are_lifted_and_told() -> None:
    config = read_config({"seeds": ["https://a.ca/"], "max_depth": 4, "max_pages": 100, "quota_bytes": 10**9})

    overrides, notes = uncapped(config, config.seeds, ZimitSettings())

    made = merged(config, overrides=overrides)
    assert (made.max_depth, made.max_pages, made.quota_bytes) == (-1, None, 10**9)
    assert [note.split(" ")[0] for note in notes] == ["max_depth", "max_pages", "quota_bytes"]


def test_a_source_without_caps_has_nothing_to_tell() -> None:
    config = read_config({"seeds": ["https://a.ca/"], "max_depth": -1})

    assert uncapped(config, config.seeds, ZimitSettings())[1] == ()


def test_what_the_server_offers_zimit_counts_in_a_campaign_too() -> None:
    zimit = {
        "passthrough_args": ["--extraChromeArgs", "headless"],
        "tool_options": {"enable_monitoring": True, "enable_vpn_rotation": True},
    }
    config = read_config({"seeds": ["https://a.ca/"], "max_depth": -1, "backend": "zimit", "zimit": zimit})
    host = ZimitSettings(vpn_command="vpn next", flags=("extraChromeArgs",))

    overrides, _ = uncapped(config, config.seeds, host)

    made = merged(config, overrides=overrides)
    assert made.zimit.passthrough_args == ("--extraChromeArgs", "headless")
    changed = read_config({**config.stored(), "zimit": {**zimit, "passthrough_args": []}})
    with pytest.raises(Invalid, match="VPN"):
        uncapped(changed, config.seeds, ZimitSettings())


def test_zimit_gets_the_annual_minima_and_loses_its_caps() -> None:
    config = read_config({
        "seeds": ["https://a.ca/"], "max_depth": -1, "backend": "zimit",
        "zimit": {"passthrough_args": ["--depth", "3", "--lang", "en", "--pageLimit=10"],
                  "tool_options": {"enable_monitoring": True, "max_container_restarts": 30, "backoff_delay_minutes": 9,
                                   "error_threshold_http": 5}},
    })  # fmt: skip

    overrides, notes = uncapped(config, config.seeds, ZimitSettings())

    made = merged(config, overrides=overrides)
    assert made.zimit.passthrough_args == ("--lang", "en")
    options = made.zimit.tool_options
    assert (options["max_container_restarts"], options["error_threshold_timeout"]) == (30, 50)
    assert (options["error_threshold_http"], options["backoff_delay_minutes"]) == (50, 2)
    assert options["enable_monitoring"] is True
    assert any("--depth" in note for note in notes)
    assert any("backoff_delay_minutes raised from 9 to 2" in note for note in notes)
