"""Where the server may listen, and what it refuses to be."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import ApiSettings, ReplaySettings, Settings
from holdfast.errors import Conflict, Invalid
from holdfast.wiring.server import demand_closed, listen
from tests import patience

_TOKEN = "0123456789abcdef"


def _settings(*, replay_origin: str | None = None, **api: Any) -> Settings:
    return Settings(home=Path("unused"), api=ApiSettings(**api), replay=ReplaySettings(origin=replay_origin))


@pytest.mark.parametrize(
    "api",
    [{}, {"host": "::1"}, {"host": "localhost"}, {"host": "127.0.0.53"}, {"host": "0.0.0.0", "admin_token": "short"},
     {"environment": "production", "admin_token": _TOKEN}, {"environment": "test"},
     {"site_url": "https://archive.example", "replay_origin": "https://replay.example", "admin_token": _TOKEN},
     {"site_url": "http://localhost:8060", "allowed_hosts": ("127.0.0.1", "archive.localhost")},
     {"trusted_proxies": ("127.0.0.1",)}, {"replay_origin": "http://pages.localhost:8060"},
     {"allowed_hosts": ("archive.example",)}, {"site_url": "https://archive.example"}],
)  # fmt: skip
def test_what_is_closed_to_strangers_may_start(api: dict[str, Any]) -> None:
    demand_closed(_settings(**api))


@pytest.mark.parametrize(
    ("api", "word"),
    [({"host": "0.0.0.0"}, "loopback"), ({"host": "::"}, "loopback"), ({"host": "archive.example"}, "loopback"),
     ({"environment": "production"}, "ADMIN_TOKEN"), ({"environment": "prod"}, "ADMIN_TOKEN"),
     ({"environment": "live "}, "ADMIN_TOKEN"), ({"environment": "STAGING", "admin_token": _TOKEN[1:]}, "16"),
     ({"site_url": "https://a.example/x", "replay_origin": "https://a.example:8443", "admin_token": _TOKEN},
      "own host"),
     ({"allowed_hosts": ("b.example",), "replay_origin": "https://b.example", "admin_token": _TOKEN}, "own host"),
     ({"replay_origin": "http://127.0.0.1:8061"}, "own host"), ({"replay_origin": "http://localhost:1"}, "own host")],
)  # fmt: skip
def test_what_would_be_open_is_refused_with_the_way_out(api: dict[str, Any], word: str) -> None:
    with pytest.raises(Invalid, match=word):
        demand_closed(_settings(**api))


def test_a_free_port_is_bound_and_a_taken_one_is_named() -> None:
    with listen(_settings(port=0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Conflict, match=f"port {port} .* --port {port + 1}"):
            listen(_settings(port=port))

        with socket.create_connection(("127.0.0.1", port), timeout=patience.deadline(5)):
            pass


def test_the_secret_is_never_printed() -> None:
    settings = _settings(admin_token=_TOKEN)

    assert _TOKEN not in repr(settings)
    assert _TOKEN not in str(settings.api.admin_token)
