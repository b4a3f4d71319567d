"""The command line: what it means, and what ends it with exit code 2 before anything is touched."""

from __future__ import annotations

import pytest

from holdfast.zimit.flags import Backend, Options, ResumePolicy, read_options

BASE = ("--seeds", "https://example.org/", "--name", "job", "--output-dir", "out")


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        read_options(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_the_defaults_are_those_of_the_document() -> None:
    options = read_options(BASE)

    assert (options.workers, options.backend, options.image) == (1, Backend.BROWSERTRIX, "ghcr.io/openzim/zimit")
    assert (options.monitored, options.check_every_s, options.stall_s, options.backoff_s) == (False, 30, 1800, 300)
    assert (options.timeout_errors, options.http_errors, options.min_workers, options.max_reductions) == (10, 10, 1, 3)
    assert (options.max_restarts, options.max_rotations, options.rotation_every_s) == (5, 3, 3600)
    assert (options.resume_policy, options.fallback) == (ResumePolicy.AUTO, None)
    assert (options.relax_perms_s, options.max_attempts) == (None, 100)


@pytest.mark.parametrize(
    "wrong",
    [
        ("--enable-adaptive-workers",),
        ("--enable-adaptive-restart",),
        ("--enable-vpn-rotation", "--vpn-connect-command", "x"),
        ("--enable-monitoring", "--enable-vpn-rotation"),
        ("--enable-monitoring", "--enable-vpn-rotation", "--vpn-connect-command", " "),
        ("--min-workers", "0"),
        ("--initial-workers", "0"),
        ("--workers", "0"),
        ("--max-container-restarts", "-1"),
        ("--vpn-rotation-frequency-minutes", "-1"),
        ("--max-temp-dirs-before-reset", "0"),
        ("--max-fresh-failures-before-fallback", "-1"),
        ("--monitor-interval-seconds", "0"),
        ("--capture-backend", "netscape"),
        ("--resume-policy", "maybe"),
        ("--docker-shm-size", "1g --privileged"),
        ("--docker-image", "-v/:/host"),
        ("--browsertrix-config-json", "[]"),
        ("--browsertrix-config-json", "{"),
        ("--browsertrix-config-json", '{"driver": "evil.js"}'),
        ("--browsertrix-config-json", '{"extraChromeArgs": ["--proxy-server=x"]}'),
        ("--initial", "2"),
    ],
)
def test_usage_that_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str], wrong: tuple[str, ...]) -> None:
    assert "archive-tool: error:" in _refused(capsys, *BASE, *wrong)


@pytest.mark.parametrize("name", ["../x", "", "a/b", "-x", "a b", "a,b"])
def test_a_name_is_a_plain_word(capsys: pytest.CaptureFixture[str], name: str) -> None:
    _refused(capsys, "--seeds", "https://example.org/", f"--name={name}", "--output-dir", "out")


@pytest.mark.parametrize(
    "seed",
    ["-x", "--config", "ftp://example.org/", "https://a b/", "https://a/\n--x", "https://a/1,2", "https://u:p@a/"],
)
def test_a_seed_is_an_address_and_nothing_else(capsys: pytest.CaptureFixture[str], seed: str) -> None:
    _refused(capsys, f"--seeds={seed}", "--name", "job", "--output-dir", "out")


@pytest.mark.parametrize("folder", ["a:b", "a,b", "a\nb"])
def test_a_directory_that_docker_would_misread_is_refused(capsys: pytest.CaptureFixture[str], folder: str) -> None:
    _refused(capsys, "--seeds", "https://example.org/", "--name", "job", f"--output-dir={folder}")


def _words(options: Options) -> list[str]:
    return [word for flag in options.zimit for word in flag.words]


@pytest.mark.parametrize("given", [("--workers", "4"), ("--workers=4",), ("-w", "4"), ("--", "--workers", "4")])
def test_workers_behind_the_tool_s_own_flags_win(given: tuple[str, ...]) -> None:
    options = read_options((*BASE, "--initial-workers", "2", *given, "--scopeType", "host"))

    assert options.workers == 4
    assert _words(options) == ["--scopeType", "host"]


def test_seeds_are_written_out_once_each() -> None:
    arguments = ["--seeds", "https://Example.org", "https://example.org/", "https://b.test/x#y"]
    options = read_options([*arguments, "--name", "job", "--output-dir", "out"])

    assert options.seeds == ("https://example.org/", "https://b.test/x")


def test_the_interval_of_relaxing_has_a_floor() -> None:
    options = read_options((*BASE, "--relax-perms", "--relax-perms-interval-seconds", "1"))

    assert options.relax_perms_s == 10


def test_the_disconnect_command_is_accepted_and_ignored() -> None:
    assert read_options((*BASE, "--vpn-disconnect-command", "x")) == read_options(BASE)
