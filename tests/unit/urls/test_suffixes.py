"""Registrable domains by the list that ships with the package."""

from __future__ import annotations

from importlib.resources import files

import pytest

from holdfast.urls import is_public_suffix, registrable


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("example.org", "example.org"),
        ("www.example.org", "example.org"),
        ("a.b.c.example.co.uk", "example.co.uk"),
        ("EXAMPLE.Co.UK.", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("com", "com"),
        ("alice.github.io", "alice.github.io"),
        ("x.alice.github.io", "alice.github.io"),
        ("www.ck", "www.ck"),
        ("a.www.ck", "www.ck"),
        ("a.other.ck", "a.other.ck"),
        ("b.a.other.ck", "a.other.ck"),
        ("city.kawasaki.jp", "city.kawasaki.jp"),
        ("x.y.kawasaki.jp", "x.y.kawasaki.jp"),
        ("a.example.xn--55qx5d.cn", "example.xn--55qx5d.cn"),
        ("localhost", "localhost"),
        ("a.b.nosuchtld", "b.nosuchtld"),
        ("192.168.1.10", "192.168.1.10"),
        ("[2001:db8::1]", "[2001:db8::1]"),
    ],
)
def test_the_registrable_part_of_a_host(host: str, expected: str) -> None:
    assert registrable(host) == expected


@pytest.mark.parametrize("host", ["com", "co.uk", "github.io", "other.ck", "nosuchtld", "y.kawasaki.jp", "xn--p1ai"])
def test_what_is_a_public_suffix(host: str) -> None:
    assert is_public_suffix(host)


@pytest.mark.parametrize("host", ["example.com", "www.ck", "city.kawasaki.jp", "127.0.0.1", "[::1]", "alice.github.io"])
def test_what_is_none(host: str) -> None:
    assert not is_public_suffix(host)


def test_the_list_keeps_its_licence() -> None:
    head = files("holdfast.urls").joinpath("public_suffix_list.dat").read_text("utf-8")[:300]

    assert "Mozilla Public" in head
