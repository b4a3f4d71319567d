"""Settings: where they are read from, what wins, what is refused, and that what was read does not change."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from holdfast import config
from holdfast.config import Settings, load, removed
from holdfast.config.showing import walk
from holdfast.errors import Invalid


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in an empty directory, without variables of ours."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.upper().startswith("HOLDFAST_"):
            monkeypatch.delenv(name)


def test_every_source_is_read_and_the_nearer_one_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("holdfast.toml").write_text('contact = "toml"\n[politeness]\ndelay_s = 40\nretries = 4\nmax_delay_s = 400\n')
    Path(".env").write_text(
        '# mine\nexport HOLDFAST_POLITENESS_DELAY_S="50"\nHOLDFAST_POLITENESS_RETRIES=5 # five\nOTHER=1\n'
    )
    monkeypatch.setenv("HOLDFAST_POLITENESS_DELAY_S", "60.5")

    settings = load(home=Path("given"), user_agent=None)

    politeness = settings.politeness
    assert (politeness.delay_s, politeness.retries, politeness.max_delay_s) == (60.5, 5, 400.0)
    assert (settings.contact, settings.home, settings.user_agent) == ("toml", Path("given"), None)
    assert settings.model_fields_set == {"contact", "home", "politeness"}
    assert settings.fetch == config.FetchSettings()


def test_another_toml_file_is_named_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("other.toml").write_text("[warc]\nbytes = 5000\n")
    monkeypatch.setenv("HOLDFAST_CONFIG", "other.toml")
    assert load().warc.bytes == 5000


def test_a_toml_file_that_is_named_and_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_CONFIG", "none.toml")

    with pytest.raises(Invalid, match=r"there is no file none\.toml, which HOLDFAST_CONFIG names"):
        load()
    monkeypatch.setenv("HOLDFAST_CONFIG", "")
    assert load().politeness == config.PolitenessSettings(), "empty is unset"


@pytest.mark.parametrize(
    ("file", "content"), [("holdfast.toml", b"a = "), ("holdfast.toml", b"\xff"), (".env", b"\xff=1")]
)
def test_a_file_that_cannot_be_read_is_named(file: str, content: bytes) -> None:
    Path(file).write_bytes(content)

    with pytest.raises(Invalid, match=f"^the settings cannot be read: {file}: "):
        load()


@pytest.mark.parametrize(
    ("variable", "text", "group", "key", "value"),
    [
        ("HOLDFAST_API_PORT", " 80 ", "api", "port", 80),
        ("holdfast_api_port", "80.0", "api", "port", 80),
        ("HOLDFAST_API_HSTS", "Off", "api", "hsts", False),
        ("HOLDFAST_API_HSTS", "1", "api", "hsts", True),
        ("HOLDFAST_API_ALLOWED_HOSTS", "a.example, b.example,", "api", "allowed_hosts", ("a.example", "b.example")),
        ("HOLDFAST_API", '{"port": 81}', "api", "port", 81),
        ("HOLDFAST_API_TRUSTED_PROXIES", "::1,10.0.0.0/8", "api", "trusted_proxies", ("::1", "10.0.0.0/8")),
        ("HOLDFAST_API_TRUSTED_PROXIES", "*", "api", "trusted_proxies", ("*",)),
        ("HOLDFAST_FETCH_NAMESERVERS", "192.0.2.53", "fetch", "nameservers", ("192.0.2.53",)),
        ("HOLDFAST_FETCH_NAMESERVERS", "::1,[::1]:53,[::1]", "fetch", "nameservers", ("::1", "[::1]:53", "[::1]")),
        ("HOLDFAST_FETCH_NAMESERVERS", "192.0.2.53:5353", "fetch", "nameservers", ("192.0.2.53:5353",)),
        ("HOLDFAST_FETCH_PER_IP_RATE", "1e1", "fetch", "per_ip_rate", 10.0),
        ("HOLDFAST_ZIMIT_STORE_ROOT", "/mnt", "zimit", "store_root", Path("/mnt")),
        ("HOLDFAST_ZIMIT_VPN_COMMAND", "", "zimit", "vpn_command", ""),
    ],
)
def test_a_variable_becomes_a_value_of_its_type(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, group: str, key: str, value: object
) -> None:
    monkeypatch.setenv(variable, text)
    read = getattr(getattr(load(), group), key)
    assert read == value
    assert type(read) is type(value)


def test_networks_are_read_from_text_and_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_ALLOW_NETWORKS", "10.0.0.0/8, fc00::/7")
    assert [str(network) for network in load().allow_networks] == ["10.0.0.0/8", "fc00::/7"]
    assert [str(network) for network in load(allow_networks=["127.0.0.0/8"]).allow_networks] == ["127.0.0.0/8"]


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("HOLDFAST_POLITENESS_DELAY_S", "-0.5"),
        ("HOLDFAST_POLITENESS_DELAY_S", "nan"),
        ("HOLDFAST_POLITENESS_DELAY_S", "soon"),
        ("HOLDFAST_API_RATES", "serach=30"),
        ("HOLDFAST_API_RATES", "search=0"),
        ("HOLDFAST_API_RATES", "search"),
        ("HOLDFAST_API_PORT", "65536"),
        ("HOLDFAST_API_PORT", "1.5"),
        ("HOLDFAST_API_HSTS", "perhaps"),
        ("HOLDFAST_API_ADMIN_TOKEN", ""),
        ("HOLDFAST_API_PROT", "80"),
        ("HOLDFAST_JOBS_HISTORY_DAYS", "0"),
        ("HOLDFAST_LOG_LEVEL", "loud"),
        ("HOLDFAST_REPLAY_ORIGIN", "replay.example.org"),
        ("HOLDFAST_REPLAY_ORIGIN", "https://replay.example.org\n"),
        ("HOLDFAST_ALLOW_NETWORKS", "10.0.0.1/8"),
        ("HOLDFAST_FETCH_NAMESERVERS", "dns.example"),
        ("HOLDFAST_FETCH_NAMESERVERS", "192.0.2.53, 192.0.2.53:0"),
        ("HOLDFAST_FETCH_NAMESERVERS", "[192.0.2.53"),
        ("HOLDFAST_FETCH_NAMESERVERS", "192.0.2.0/24"),
        ("HOLDFAST_API_TRUSTED_PROXIES", "proxy.example"),
        ("HOLDFAST_API_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.1/8"),
    ],
)
def test_what_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, text: str) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(Invalid, match=f"the setting {variable} cannot be used: "):
        load()


@pytest.mark.parametrize(
    "toml",
    ["[politeness]\ndelay = 1\n", "contact = 5\n", "politeness = 5\n", '[api]\nhsts = "perhaps"\n', "[politeness\n"],
)
def test_a_toml_file_that_is_wrong_is_refused(toml: str) -> None:
    Path("holdfast.toml").write_text(toml)
    with pytest.raises(Invalid, match=r"docs/settings\.md"):
        load()


def test_names_of_no_group_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SOMETHING_ELSE", "1")
    Path("holdfast.toml").write_text("[elsewhere]\nkey = 1\n")
    assert load() == Settings()


def test_settings_do_not_change_and_copies_do() -> None:
    settings = load(home=Path("here"))
    with pytest.raises((AttributeError, ValueError)):
        settings.home = Path("there")
    politeness = settings.politeness.model_copy(update={"delay_s": 5.0})
    copy = settings.model_copy(update={"politeness": politeness})
    assert (copy.politeness.delay_s, settings.politeness.delay_s, copy.home) == (5.0, 1.0, Path("here"))
    assert politeness.model_fields_set == {"delay_s"}
    assert copy.model_fields_set == {"home", "politeness"}
    assert pickle.loads(pickle.dumps(copy)) == copy != settings


def test_rates_differ_from_the_defaults_where_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_API_RATES", "search=30, replay=6000")
    api = load().api
    assert [api.per_minute(kind) for kind in ("search", "replay", "general")] == [30, 6000, 120]


@pytest.mark.parametrize("name", sorted(removed.REMOVED))
def test_removed_setting_is_ignored_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    variable = f"HOLDFAST_{name.replace('.', '_').upper()}"
    group, _, key = name.partition(".")
    assert load() == Settings()
    monkeypatch.setenv(variable, "7")
    monkeypatch.setenv("_HOLDFAST_REMOVED_SETTINGS_PRINTED", "")
    assert load() == Settings()
    said = f"holdfast: {variable} is no longer a setting and is ignored: {removed.REMOVED[name]}\n"
    assert capsys.readouterr().err == said
    assert load() == Settings()
    assert capsys.readouterr().err == "", "child processes do not repeat it"

    monkeypatch.delenv(variable)
    Path("holdfast.toml").write_text(f"[{group}]\n{key} = 7\n")
    assert load().removed == (said.removeprefix("holdfast: ").rstrip(),)


@pytest.mark.parametrize("name", sorted(removed.UNSAFE))
def test_removed_setting_is_refused_where_ignoring_it_is_unsafe(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    variable = f"HOLDFAST_{name.replace('.', '_').upper()}"
    monkeypatch.setenv(variable, "7")
    with pytest.raises(Invalid, match=f"the setting {variable} cannot be used: it was removed: "):
        load()


def test_removed_names_are_no_settings() -> None:
    names = {name for name, *_ in walk(Settings())}
    removed_names = {f"HOLDFAST_{name.replace('.', '_').upper()}" for name in (*removed.REMOVED, *removed.UNSAFE)}
    assert not names & removed_names
    assert len(names) <= 90


def test_timings_of_tests_are_read_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_TIMINGS_LEASE_RENEW_S", "0.5")
    monkeypatch.setenv("HOLDFAST_TIMINGS_CRAWL_SETTLE_PAGES", "2")
    timings = load().timings
    assert (timings.lease_renew_s, timings.lease_seconds, timings.crawl_settle_pages) == (0.5, 60.0, 2)

    monkeypatch.setenv("HOLDFAST_API_ENVIRONMENT", "production")
    with pytest.raises(Invalid, match="HOLDFAST_TIMINGS_\\* is for tests"):
        load()


@pytest.mark.parametrize(("name", "value"), [("LEASE_RENEW", "1"), ("LEASES_RENEW_S", "1"), ("LEASE_RENEW_S", "soon")])
def test_invalid_timing_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"HOLDFAST_TIMINGS_{name}", value)
    with pytest.raises(Invalid, match=f"HOLDFAST_TIMINGS_{name}"):
        load()


def test_api_port_is_8060_by_default() -> None:
    assert load().api.port == 8060


def test_a_secret_is_not_shown() -> None:
    api = config.ApiSettings(admin_token="not to be seen")
    assert api.admin_token is not None
    assert api.admin_token.get_secret_value() == "not to be seen"
    assert "not to be seen" not in f"{api} {api!r} {api.admin_token} {api.admin_token!r}"


@pytest.mark.parametrize("value", ["inf", "nan", "-inf", "1e999"])
def test_a_number_is_one_that_can_be_waited_for(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HOLDFAST_POLITENESS_DELAY_S", value)

    with pytest.raises(Invalid, match="HOLDFAST_POLITENESS_DELAY_S cannot be used"):
        load()


@pytest.mark.parametrize("value", ["x", "[1]", "5", '"text"', "null"])
def test_a_group_that_is_no_object_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HOLDFAST_REPLAY", value)

    with pytest.raises(Invalid, match="HOLDFAST_REPLAY "):
        load()
