"""Settings: where they are read from, what wins, what is refused, and that what was read does not change."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from holdfast import config
from holdfast.config import Settings, load
from holdfast.errors import Invalid


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in an empty directory, without variables of ours."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.upper().startswith("HOLDFAST_"):
            monkeypatch.delenv(name)


def test_every_source_is_read_and_the_nearer_one_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("holdfast.toml").write_text('contact = "toml"\n[lease]\nseconds = 40\nrenew_s = 4\nrecover_s = 400\n')
    Path(".env").write_text('# mine\nexport HOLDFAST_LEASE_SECONDS="50"\nHOLDFAST_LEASE_RENEW_S=5 # five\nOTHER=1\n')
    monkeypatch.setenv("HOLDFAST_LEASE_SECONDS", "60.5")

    settings = load(home=Path("given"), user_agent=None)

    assert (settings.lease.seconds, settings.lease.renew_s, settings.lease.recover_s) == (60.5, 5.0, 400.0)
    assert (settings.contact, settings.home, settings.user_agent) == ("toml", Path("given"), None)
    assert settings.model_fields_set == {"contact", "home", "lease"}
    assert settings.politeness == config.PolitenessSettings()


def test_another_toml_file_is_named_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("other.toml").write_text("[warc]\nbytes = 5000\n")
    monkeypatch.setenv("HOLDFAST_CONFIG", "other.toml")
    assert load().warc.bytes == 5000


def test_a_toml_file_that_is_named_and_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_CONFIG", "none.toml")

    with pytest.raises(Invalid, match=r"there is no file none\.toml, which HOLDFAST_CONFIG names"):
        load()
    monkeypatch.setenv("HOLDFAST_CONFIG", "")
    assert load().lease.seconds == config.LeaseSettings().seconds, "empty is unset"


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
        ("HOLDFAST_LEASE_SECONDS", "0.5"),
        ("HOLDFAST_LEASE_SECONDS", "nan"),
        ("HOLDFAST_LEASE_SECONDS", "soon"),
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
    "toml", ["[lease]\nsecond = 1\n", "contact = 5\n", "lease = 5\n", '[api]\nhsts = "perhaps"\n', "[lease\n"]
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
    lease = settings.lease.model_copy(update={"seconds": 5.0})
    copy = settings.model_copy(update={"lease": lease})
    assert (copy.lease.seconds, settings.lease.seconds, copy.home) == (5.0, 60.0, Path("here"))
    assert lease.model_fields_set == {"seconds"}
    assert copy.model_fields_set == {"home", "lease"}
    assert pickle.loads(pickle.dumps(copy)) == copy != settings


def test_api_port_is_8060_by_default() -> None:
    assert load().api.port == 8060


def test_a_secret_is_not_shown() -> None:
    api = config.ApiSettings(admin_token="not to be seen")
    assert api.admin_token is not None
    assert api.admin_token.get_secret_value() == "not to be seen"
    assert "not to be seen" not in f"{api} {api!r} {api.admin_token} {api.admin_token!r}"


@pytest.mark.parametrize("value", ["inf", "nan", "-inf", "1e999"])
def test_a_number_is_one_that_can_be_waited_for(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HOLDFAST_REPLAY_REWRITE_S", value)

    with pytest.raises(Invalid, match="HOLDFAST_REPLAY_REWRITE_S cannot be used"):
        load()


@pytest.mark.parametrize("value", ["x", "[1]", "5", '"text"', "null"])
def test_a_group_that_is_no_object_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HOLDFAST_REPLAY", value)

    with pytest.raises(Invalid, match="HOLDFAST_REPLAY "):
        load()
