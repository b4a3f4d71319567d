"""Endless sites: by the shape of a path, by the number of queries of a path, by the number of hosts of a domain."""

from __future__ import annotations

import pytest

from holdfast.urls import TrapGuard, TrapLimits, parse, path_trap

SITE = "https://example.org"


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/", None),
        ("/a/a/a", None),
        ("/a/b/a/c/a/", None),
        ("/a/a/a/a", "trap:repeated_segments"),
        ("/a/b/a/b/a/b/a/b/", "trap:repeated_segments"),
        ("/a//////b", "trap:repeated_segments"),
        ("/x?u=/a/a/a/a/a/a", None),
        ("/" + "/".join(map(str, range(40))), None),
        ("/" + "/".join(map(str, range(40))) + "/", None),
        ("/" + "/".join(map(str, range(41))), "trap:path_depth"),
    ],
)
def test_a_path_that_goes_round_in_circles_or_too_deep_is_a_trap(path: str, rule: str | None) -> None:
    assert path_trap(SITE + path) == rule


def test_limits_are_the_callers() -> None:
    limits = TrapLimits(repeats=1, path_segments=2)

    assert path_trap(f"{SITE}/a/a", limits) == "trap:repeated_segments"
    assert path_trap(f"{SITE}/a/b/c", limits) == "trap:path_depth"
    assert path_trap(f"{SITE}/a/b", limits) is None


def test_a_path_has_so_many_queries_and_no_more() -> None:
    guard = TrapGuard(TrapLimits(query_variants=3))
    variants = [parse(f"{SITE}/list?id={i}") for i in range(5)]

    assert [guard.refuses(url) for url in variants] == [None, None, None, "trap:query_variants", "trap:query_variants"]
    assert guard.refuses(variants[0]) is None
    assert guard.refuses(parse(f"{SITE}/list")) is None
    assert guard.refuses(parse(f"{SITE}/other?id=9")) is None


def test_permutations_of_one_query_are_one_variant_unless_a_name_repeats() -> None:
    guard = TrapGuard(TrapLimits(query_variants=1))

    assert guard.refuses(parse(f"{SITE}/?a=1&b=2")) is None
    assert guard.refuses(parse(f"{SITE}/?b=2&a=1")) is None
    assert guard.refuses(parse(f"{SITE}/?a=2&a=1")) == "trap:query_variants"


def test_a_domain_has_so_many_hosts_and_no_more() -> None:
    guard = TrapGuard(TrapLimits(domains=2))

    assert guard.refuses(parse("https://a.example.co.uk/")) is None
    assert guard.refuses(parse("https://b.example.co.uk/")) is None
    assert guard.refuses(parse("https://c.example.co.uk/")) == "trap:subdomains"
    assert guard.refuses(parse("https://a.example.co.uk/x")) is None
    assert guard.refuses(parse("https://other.co.uk/")) is None


def test_people_who_share_a_public_suffix_do_not_share_its_limit() -> None:
    guard = TrapGuard(TrapLimits(domains=1))

    assert [guard.refuses(parse(f"https://user{i}.github.io/")) for i in range(5)] == [None] * 5


def test_the_memory_is_bounded_and_a_closed_path_stays_closed() -> None:
    guard = TrapGuard(TrapLimits(query_variants=10), max_entries=50)
    for i in range(10):
        assert guard.refuses(parse(f"{SITE}/trap?{i}")) is None
    for path in range(1000):
        assert guard.refuses(parse(f"{SITE}/{path}?x")) is None

    assert guard.refuses(parse(f"{SITE}/trap?new")) == "trap:query_variants"
    assert guard.remembered <= 50


def test_forgotten_hosts_make_room_for_others() -> None:
    guard = TrapGuard(TrapLimits(domains=1), max_entries=5)
    for i in range(100):
        assert guard.refuses(parse(f"https://www.site{i}.example/")) is None

    assert guard.refuses(parse("https://shop.site99.example/")) == "trap:subdomains"
    assert guard.refuses(parse("https://shop.site1.example/")) is None


def test_a_directory_has_so_many_addresses_and_no_more() -> None:
    guard = TrapGuard(TrapLimits(directory_urls=2))

    assert guard.refuses(parse(f"{SITE}/calendar/2026-11-15")) is None
    assert guard.refuses(parse(f"{SITE}/calendar/2026-11-16?view=day/week")) is None
    assert guard.refuses(parse(f"{SITE}/calendar/2026-11-17")) == "trap:directory_budget"
    assert guard.refuses(parse(f"{SITE}/calendar/2026/11")) is None
    assert guard.refuses(parse(f"{SITE}/calendar")) is None


def test_a_domain_has_so_many_addresses_and_no_more() -> None:
    guard = TrapGuard(TrapLimits(domain_urls=3))

    assert [guard.refuses(parse(f"{SITE}/{i}/x")) for i in range(4)] == [None] * 3 + ["trap:domain_budget"]
    assert guard.refuses(parse("https://elsewhere.example/0/x")) is None


def test_budgets_of_many_places_are_kept_in_bounded_memory_and_the_fullest_are_kept_longest() -> None:
    guard = TrapGuard(TrapLimits(directory_urls=5), max_entries=20)
    for i in range(5):
        assert guard.refuses(parse(f"{SITE}/full/{i}")) is None
    for i in range(500):
        assert guard.refuses(parse(f"{SITE}/d{i}/x")) is None

    assert guard.refuses(parse(f"{SITE}/full/new")) == "trap:directory_budget"
