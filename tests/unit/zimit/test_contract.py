"""What a job's configuration becomes: checked before it is queued, flags in the agreed order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.config import ZimitSettings, load
from holdfast.sources.config import SourceConfig, ZimitConfig, read_config
from holdfast.zimit.errors import FlagRefused, ToolConfigRefused
from holdfast.zimit.flags import (
    annual_caps,
    below_minimum,
    check_job_config,
    read_options,
    tool_command,
    tool_flags,
)
from holdfast.zimit.passthrough import strip_separator

HOST = ZimitSettings(vpn_command="vpn up", store_root=None)
FULL: dict[str, Any] = {
    "seeds": ["https://example.org/"],
    "passthrough_args": ["--scopeType", "host"],
    "tool_options": {
        "cleanup": True, "overwrite": True, "skip_final_build": True, "enable_monitoring": True,
        "enable_adaptive_workers": True, "enable_adaptive_restart": True, "enable_vpn_rotation": True,
        "initial_workers": 2, "log_level": "DEBUG", "relax_perms": True, "stall_timeout_minutes": 60,
        "docker_shm_size": "1g", "error_threshold_timeout": 50, "error_threshold_http": 51,
        "max_container_restarts": 20, "backoff_delay_minutes": 2, "monitor_interval_seconds": 15, "min_workers": 1,
        "max_worker_reductions": 4, "max_vpn_rotations": 5, "vpn_rotation_frequency_minutes": 30,
        "browsertrix_config": {"extraChromeArgs": ["--disable-http2"]},
    },
    "execution_policy": {
        "capture_backend": "http_warc", "resume_policy": "fresh_only", "fallback_backend": "http_warc",
        "max_fresh_failures_before_fallback": 2, "auto_reset_poisoned_state": True, "max_temp_dirs_before_reset": 9,
    },
}  # fmt: skip
DOCUMENT = {
    "seeds": ["https://www.canada.ca/en/health-canada.html"],
    "passthrough_args": ["--scopeType", "host"],
    "tool_options": {
        "cleanup": False, "overwrite": False, "skip_final_build": True, "enable_monitoring": True,
        "enable_adaptive_workers": True, "enable_adaptive_restart": True, "enable_vpn_rotation": False,
        "initial_workers": 2, "log_level": "INFO", "relax_perms": True, "stall_timeout_minutes": 60,
        "docker_shm_size": "1g", "error_threshold_timeout": 50, "error_threshold_http": 50,
        "max_container_restarts": 20, "backoff_delay_minutes": 2,
    },
}  # fmt: skip


def _checked(content: dict[str, Any], host: ZimitSettings = HOST) -> SourceConfig:
    seeds, zimit = content["seeds"], {name: value for name, value in content.items() if name != "seeds"}
    return check_job_config(read_config({"seeds": seeds, "backend": "zimit", "zimit": zimit}), host)


def _with(**options: Any) -> dict[str, Any]:
    return {"seeds": ["https://example.org/"], "tool_options": options}


def test_every_flag_stands_in_the_agreed_order() -> None:
    flags = tool_flags(_checked(FULL).zimit, HOST)

    assert flags == [
        "--initial-workers", "2", "--cleanup", "--overwrite", "--log-level", "DEBUG", "--docker-shm-size", "1g",
        "--browsertrix-config-json", '{"extraChromeArgs":["--disable-http2"]}', "--enable-monitoring",
        "--monitor-interval-seconds", "15", "--stall-timeout-minutes", "60", "--error-threshold-timeout", "50",
        "--error-threshold-http", "51", "--enable-adaptive-workers", "--min-workers", "1", "--max-worker-reductions",
        "4", "--enable-vpn-rotation", "--vpn-connect-command", "vpn up", "--max-vpn-rotations", "5",
        "--vpn-rotation-frequency-minutes", "30", "--enable-adaptive-restart", "--max-container-restarts", "20",
        "--backoff-delay-minutes", "2", "--relax-perms", "--skip-final-build", "--capture-backend", "http_warc",
        "--resume-policy", "fresh_only", "--fallback-backend", "http_warc", "--max-fresh-failures-before-fallback",
        "2", "--auto-reset-poisoned-state", "--max-temp-dirs-before-reset", "9", "--scopeType", "host",
    ]  # fmt: skip


@pytest.mark.parametrize("content", [FULL, DOCUMENT])
def test_the_tool_understands_what_the_contract_writes(content: dict[str, Any]) -> None:
    config = _checked(content)
    command = tool_command(config, HOST, name="hc-20251209", output_dir=Path("out"))

    assert command[0] == "archive-tool"
    options = read_options(command[1:])
    assert options.workers == 2
    assert options.seeds == config.seeds
    assert options.stall_s == 3600


def test_the_program_may_be_several_words() -> None:
    host = ZimitSettings(command="python -m 'holdfast.zimit'", image="ghcr.io/openzim/zimit:3.0", store_root=Path("/s"))
    command = tool_command(_checked(DOCUMENT, host), host, name="x", output_dir=Path("/s/out"))

    assert command[:3] == ["python", "-m", "holdfast.zimit"]
    assert command[command.index("--docker-image") + 1] == "ghcr.io/openzim/zimit:3.0"
    assert command[command.index("--store-root") + 1] == "/s"


def test_the_server_s_settings_decide_what_runs_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_ZIMIT_FLAGS", "custom-css, blockList")
    monkeypatch.setenv("HOLDFAST_ZIMIT_VPN_COMMAND", "vpn up")
    host = load().zimit

    assert host.flags == ("custom-css", "blockList")
    assert host.vpn_command == "vpn up"
    content = {"seeds": ["https://example.org/"], "passthrough_args": ["--custom-css", "/output/x.css"]}
    command = tool_command(_checked(content, host), host, name="x", output_dir=Path("out"))
    assert read_options(command[1:]).zimit[0].name == "--custom-css"


def test_groups_appear_only_with_what_they_need() -> None:
    """A stored configuration loses a group rather than the run."""
    quiet = {
        "enable_adaptive_workers": True, "min_workers": 1, "stall_timeout_minutes": 5, "backoff_delay_minutes": 1,
        "enable_vpn_rotation": True, "max_container_restarts": 3,
    }  # fmt: skip
    flags = tool_flags(ZimitConfig(tool_options=quiet), HOST)

    assert flags == ["--initial-workers", "1", "--log-level", "INFO"]


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"seeds": ["https://example.org/a,b"]}, "seeds"),
        (_with(backoff_delay_minutes=2), "tool_options.backoff_delay_minutes"),
        (_with(stall_timeout_minutes=5), "tool_options.stall_timeout_minutes"),
        (_with(docker_image="evil"), "tool_options.docker_image"),
        (_with(initial_workers=0), "tool_options.initial_workers"),
        (_with(initial_workers=True), "tool_options.initial_workers"),
        (_with(initial_workers="2"), "tool_options.initial_workers"),
        (_with(min_workers=3), "tool_options.min_workers"),
        (_with(cleanup=1), "tool_options.cleanup"),
        (_with(log_level="LOUD"), "tool_options.log_level"),
        (_with(browsertrix_config={"proxyServer": "x"}), "browsertrix_config.proxyServer"),
        ({"seeds": ["https://example.org/"], "execution_policy": {"fallback_backend": "x"}},
         "execution_policy.fallback_backend"),
    ],
)  # fmt: skip
def test_a_configuration_is_refused_with_the_field_that_is_wrong(content: dict[str, Any], field: str) -> None:
    with pytest.raises(ToolConfigRefused) as refused:
        _checked(content)

    assert refused.value.field == field


def test_a_flag_that_zimit_may_not_have_is_refused_before_anything_is_queued() -> None:
    content = {"seeds": ["https://example.org/"], "passthrough_args": ["--unknown"]}

    with pytest.raises(FlagRefused):
        _checked(content)


def test_a_vpn_needs_a_command_of_the_server() -> None:
    content = _with(enable_monitoring=True, enable_vpn_rotation=True)

    assert _checked(content).zimit.tool_options["enable_vpn_rotation"]
    with pytest.raises(ToolConfigRefused):
        _checked(content, ZimitSettings())


def test_one_leading_separator_is_dropped() -> None:
    assert strip_separator(["--", "--scopeType", "host"]) == ["--scopeType", "host"]
    assert strip_separator(["--scopeType", "--"]) == ["--scopeType", "--"]


def test_annual_jobs_get_their_minima_and_no_caps() -> None:
    low = _checked({**_with(enable_monitoring=True, max_container_restarts=2, error_threshold_http=99,
                                   backoff_delay_minutes=9),
                           "passthrough_args": ["--pageLimit", "5", "--depth=2"]})  # fmt: skip
    raised = below_minimum(low.zimit.tool_options, annual=True)
    quiet = below_minimum(_checked(_with()).zimit.tool_options, annual=True)

    assert raised == {"max_container_restarts": 20, "error_threshold_timeout": 50, "backoff_delay_minutes": 2}
    assert quiet == {"max_container_restarts": 20}
    assert annual_caps(low, ZimitSettings()) == ["--pageLimit", "--depth"]


@pytest.mark.parametrize(
    ("group", "values", "field"),
    [
        ("execution_policy", {"capture_backend": "playwright_warc"}, "execution_policy.capture_backend"),
        ("execution_policy", {"fallback_backend": "playwright_warc"}, "execution_policy.fallback_backend"),
        ("tool_options", {"docker_shm_size": "much"}, "tool_options.docker_shm_size"),
        ("tool_options", {"docker_shm_size": "1 g"}, "tool_options.docker_shm_size"),
    ],
)
def test_what_could_only_fail_when_it_runs_is_refused_when_it_is_saved(
    group: str, values: dict[str, Any], field: str
) -> None:
    with pytest.raises(ToolConfigRefused) as refused:
        _checked({"seeds": ["https://example.org/"], group: values})

    assert refused.value.field == field


def test_flags_that_the_backend_without_a_browser_passes_over_are_told() -> None:
    flags = ["--scopeType", "host", "--waitUntil", "load", "--timeHardLimit=60"]
    zimit = {"passthrough_args": flags, "execution_policy": {"fallback_backend": "http_warc"}}
    told = read_config({"seeds": ["https://example.org/"], "backend": "zimit", "zimit": zimit}).warnings()

    assert [one for one in told if "http_warc" in one] == [
        "zimit: the backend http_warc has no browser and passes over --waitUntil"
    ]
