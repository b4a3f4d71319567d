"""A source's configuration: what is taken, what is refused and by which field."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.sources.config import SourceConfig, SourceRefused, ZimitConfig, merged, read_config, zimit_job
from holdfast.sources.extraction import ExtractRules, extraction_rules, why_no_selector
from holdfast.sources.plan import CrawlDefaults, crawl_plan
from holdfast.sources.registry import PRESETS

SEED = {"seeds": ["https://example.org/"]}


def test_a_seed_is_enough() -> None:
    config = read_config(SEED)

    assert config == SourceConfig(seeds=("https://example.org/",))
    assert (config.max_depth, config.storage, config.backend, config.sitemaps) == (3, "warc", "native", True)
    assert config.stored() == SEED
    assert config.warnings() == ()


def test_everything_survives_being_stored() -> None:
    content: dict[str, Any] = {
        "seeds": ["example.org/a", "https://example.org/b"], "scope": "prefix", "include": ["/x"], "exclude": ["/y"],
        "max_depth": -1, "max_pages": 5, "quota_bytes": 10**9, "max_time_s": 3600.0, "delay_s": 2.5,
        "user_agents": ["A/1", "B/2"],
        "robots": "ignore", "robots_reason": "we own it", "sitemaps": False, "feeds": True, "requisites": False,
        "storage": "signals", "name_template": "x-{date:%Y}", "schedule_hint": "weekly",
        "zimit": {"passthrough_args": ["--lang", "en"], "tool_options": {"initial_workers": 2}},
    }  # fmt: skip
    config = read_config(content)

    assert read_config(json.loads(json.dumps(config.stored()))) == config
    assert config.seeds == ("https://example.org/a", "https://example.org/b")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"seeds": []}, "seeds"),
        ({"seeds": "https://example.org/"}, "seeds"),
        ({"seeds": ["ftp://example.org/"]}, "seeds"),
        ({"seeds": ["https://user:pw@example.org/"]}, "seeds"),
        ({"scope": "galaxy"}, "scope"),
        ({"include": ["(?=x)"]}, "include"),
        ({"exclude": ["a" * 2000]}, "exclude"),
        ({"exclude": ["x"] * 501}, "exclude"),
        ({"exclude": [1]}, "exclude"),
        ({"max_depth": -2}, "max_depth"),
        ({"max_depth": True}, "max_depth"),
        ({"max_depth": "3"}, "max_depth"),
        ({"quota_bytes": 0}, "quota_bytes"),
        ({"max_time_s": 0}, "max_time_s"),
        ({"max_pages": 1.5}, "max_pages"),
        ({"delay_s": -1}, "delay_s"),
        ({"delay_s": float("nan")}, "delay_s"),
        ({"user_agents": ["two\nlines"]}, "user_agents"),
        ({"user_agents": ["é"]}, "user_agents"),
        ({"robots": "ignore"}, "robots_reason"),
        ({"sitemaps": "yes"}, "sitemaps"),
        ({"storage": "s3"}, "storage"),
        ({"backend": "browser"}, "backend"),
        ({"name_template": "{code.__class__}"}, "name_template"),
        ({"name_template": "../{code}"}, "name_template"),
        ({"name_template": "{0}"}, "name_template"),
        ({"name_template": "a b"}, "name_template"),
        ({"name_template": "{date:%Y/%m}"}, "name_template"),
        ({"docker_image": "evil"}, "docker_image"),
        ({"zimit": {"image": "evil"}}, "zimit.image"),
        ({"zimit": {"tool_options": {"vpn_connect_command": "sh"}}}, "zimit.tool_options.vpn_connect_command"),
        ({"zimit": {"tool_options": {"enable_adaptive_workers": True}}}, "zimit.tool_options.enable_adaptive_workers"),
        ({"zimit": {"tool_options": {"enable_vpn_rotation": True}}}, "zimit.tool_options.enable_vpn_rotation"),
        ({"zimit": {"passthrough_args": [["x"]]}}, "zimit.passthrough_args"),
        ({"zimit": []}, "zimit"),
    ],
)
def test_the_field_that_is_wrong_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(SourceRefused) as caught:
        read_config({**SEED, **change})
    assert caught.value.field == field


@pytest.mark.parametrize(("written", "depth", "warned"), [(0, 0, True), (None, 3, False), (5, 5, False), (6, 6, True),
                                                          (-1, -1, False)])  # fmt: skip
def test_depth_is_three_unless_said_and_above_five_is_warned_about(written: int, depth: int, warned: bool) -> None:
    config = read_config({**SEED, "max_depth": written})

    assert config.max_depth == depth
    assert bool(config.warnings()) == warned


def test_user_agents_take_turns() -> None:
    config = read_config({**SEED, "user_agents": ["A", "B", "C"]})

    assert [config.user_agent(number) for number in range(1, 6)] == ["A", "B", "C", "A", "B"]
    assert read_config(SEED).user_agent(7) is None


def test_a_job_is_named_by_its_date() -> None:
    at = datetime(2025, 12, 9, 23, tzinfo=UTC)

    assert read_config(SEED).job_name("hc", at) == "hc-20251209"
    assert read_config({**SEED, "name_template": "y{date:%Y}-{code}"}).job_name("hc", at) == "y2025-hc"


def test_a_job_has_a_start_page_of_its_own_and_changes_options_within_their_group() -> None:
    zimit = {
        "passthrough_args": ["--lang", "en"],
        "tool_options": {"initial_workers": 2, "enable_monitoring": True, "log_level": "DEBUG"},
    }
    base = read_config({**SEED, "zimit": zimit})
    own = {"max_pages": 3, "zimit": {"tool_options": {"initial_workers": 4, "log_level": None}}}

    made = merged(base, start="https://example.org/b", overrides=own)

    assert made.seeds == ("https://example.org/b", "https://example.org/")
    assert made.max_pages == 3
    assert zimit_job(made) == {
        "seeds": ["https://example.org/b", "https://example.org/"], "zimit_passthrough_args": ["--lang", "en"],
        "tool_options": {"initial_workers": 4, "enable_monitoring": True},
    }  # fmt: skip
    with pytest.raises(SourceRefused, match="enable_adaptive_restart"):
        merged(read_config(SEED), overrides={"zimit": {"tool_options": {"enable_adaptive_restart": True}}})


def test_the_presets_are_valid_and_have_the_annual_minima() -> None:
    assert [preset.code for preset in PRESETS] == ["hc", "phac", "cihr"]
    for preset in PRESETS:
        config = read_config(preset.config)
        options = config.zimit.tool_options
        assert (options["max_container_restarts"], options["error_threshold_timeout"]) == (20, 50)
        assert (options["error_threshold_http"], options["backoff_delay_minutes"]) == (50, 2)
        assert (config.max_depth, config.max_pages, config.quota_bytes) == (-1, None, None)
        assert preset.base_url in config.seeds


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"zimit": 5}, "zimit"), ({"zimit": {"tool_options": 5}}, "zimit.tool_options"), ({"seeds": 5}, "seeds"),
        ({"seeds": "https://other.example/"}, "seeds"), ({"zimit": "x"}, "zimit"),
    ],
)  # fmt: skip
def test_overrides_of_the_wrong_shape_are_refused_by_name(overrides: dict[str, Any], field: str) -> None:
    base = read_config({"seeds": ["https://example.org/"]})
    with pytest.raises(SourceRefused) as refused:
        merged(base, start="https://more.example/", overrides=overrides)

    assert refused.value.field == field


def test_a_source_may_say_how_its_pages_are_told_apart_and_its_crawl_does_so() -> None:
    content = {
        "seeds": ["http://example.org:6697/"], "strip_trailing_slash": True, "force_https": True, "tracking": ["from"],
        "allow_ports": [6697],
    }  # fmt: skip
    made = read_config(content)
    policy = crawl_plan(made, CrawlDefaults(contact="a@example.org"), number=1).normalisation()

    assert made.stored() == content
    assert merged(made) == made
    assert (policy.strip_trailing_slash, policy.force_https) == (True, True)
    assert (policy.tracking, policy.tracking_prefixes, policy.allow_ports) == (
        frozenset({"from"}),
        (),
        frozenset({6697}),
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [("allow_ports", [0]), ("allow_ports", ["80"]), ("allow_ports", 6697), ("tracking", "ref"), ("force_https", 1)],
)
def test_what_is_no_such_policy_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(SourceRefused, match=field):
        read_config({"seeds": ["https://example.org/"], field: value})


def test_an_empty_list_of_tracking_parameters_drops_none() -> None:
    made = read_config({"seeds": ["https://example.org/"], "tracking": []})

    assert made.tracking == ()
    assert crawl_plan(made, CrawlDefaults(contact="a@example.org"), number=1).normalisation().tracking == frozenset()


def test_every_field_of_a_source_is_documented_with_its_meaning() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sources.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    told = {word for row in rows for word in row.split("`")[1::2]}

    own = {one.name for one in fields(SourceConfig)} - {"zimit", "extract"}
    groups = {f"zimit.{one.name}" for one in fields(ZimitConfig)} | {
        f"extract.{one.name}" for one in fields(ExtractRules)
    }
    assert told == own | groups


SEEDS = {"seeds": ["https://example.org/"]}


@pytest.mark.parametrize(
    "selector",
    ["main", "div.content > p", "#x", "[itemprop=articleBody]", 'div[class*="post body" i] .text', "a.b#c[d]", "*"],
)
def test_a_template_is_made_of_plain_selectors(selector: str) -> None:
    made = read_config({**SEEDS, "extract": {"main": selector, "remove": [selector, ".ad"]}})

    assert made.extract == ExtractRules(main=selector, remove=(selector, ".ad"))
    assert made.stored()["extract"] == {"main": selector, "remove": [selector, ".ad"]}
    assert extraction_rules(made.stored()) == {"main": selector, "remove": [selector, ".ad"]}


@pytest.mark.parametrize(
    "selector",
    [
        "a:has(b)",
        "a b c d",
        "p::before",
        "a," * 11 + "b",
        "a{",
        "x" * 301,
        "[a=']']",
        "a > > b",
        "a~b",
        "div,,p",
        "\\",
        ",",
    ],
)
def test_a_selector_that_a_page_could_make_slow_is_refused_by_its_field(selector: str) -> None:
    for extract in ({"author": selector}, {"remove": [selector]}):
        with pytest.raises(SourceRefused, match=r"^extract\.(author|remove): "):
            read_config({**SEEDS, "extract": extract})
    assert why_no_selector(selector)
    assert extraction_rules({"extract": {"author": selector}}) is None


def test_a_template_is_the_sources_and_no_jobs() -> None:
    source = read_config({**SEEDS, "extract": {"title": "h2"}})

    assert merged(source, overrides={"max_depth": 1}).extract == source.extract
    with pytest.raises(SourceRefused, match="belongs to the source"):
        merged(source, overrides={"extract": {"title": "h3"}})
    with pytest.raises(SourceRefused, match=r"^extract\.footer: there is no such field"):
        read_config({**SEEDS, "extract": {"footer": "p"}})
