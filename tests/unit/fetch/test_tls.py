"""Which certificates are trusted, and how long a failure is remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import Unavailable
from holdfast.fetch.guard import InvalidHosts, trust_store
from tests.clock import FakeClock


def test_the_configured_bundle_wins_and_must_exist(tmp_path: Path) -> None:
    bundle = tmp_path / "own.pem"
    bundle.write_text("")

    assert trust_store(bundle) == str(bundle)
    with pytest.raises(Unavailable):
        trust_store(tmp_path / "other.pem")


def test_the_system_has_a_bundle() -> None:
    assert Path(trust_store()).read_bytes().count(b"BEGIN CERTIFICATE") > 10


def test_a_failure_is_forgotten_after_a_while() -> None:
    clock = FakeClock()
    hosts = InvalidHosts(clock, ttl_s=60)

    hosts.add("example.com", 443)

    assert hosts.known("example.com", 443)
    assert not hosts.known("example.com", 8443)
    assert not hosts.known("example.org", 443)
    clock.advance(61)
    assert not hosts.known("example.com", 443)


def test_only_so_many_failures_are_remembered() -> None:
    hosts = InvalidHosts(FakeClock())
    for number in range(10_001):
        hosts.add(f"h{number}.example.com", 443)

    assert not hosts.known("h0.example.com", 443)
    assert hosts.known("h1.example.com", 443)
