"""Which addresses belong to a crawl, and which rule says so."""

from __future__ import annotations

import time

import pytest

from holdfast.errors import Invalid
from holdfast.types import UrlKind
from holdfast.urls import Base, Normalisation, Scope, ScopeKind, ScopeVerdict, TrapLimits, parse, resolve
from tests import patience
from tests.patience import Calls

SEED = parse("https://www.example.org/docs/start.html")


def decide(scope: Scope, url: str, depth: int = 1, kind: UrlKind = UrlKind.PAGE) -> ScopeVerdict:
    return scope.decide(parse(url), depth, kind)


@pytest.mark.parametrize(
    ("kind", "url", "allowed"),
    [
        ("page", "https://www.example.org/docs/other.html", False),
        ("page", "http://www.example.org/docs/start.html", False),
        ("prefix", "https://www.example.org/docs/other.html", True),
        ("prefix", "http://example.org/docs/a/b?c", True),
        ("prefix", "https://www.example.org/docs", True),
        ("prefix", "https://www.example.org/docs?x", True),
        ("prefix", "https://www.example.org/docsother", False),
        ("prefix", "https://www.example.org/", False),
        ("prefix", "https://sub.example.org/docs/x", False),
        ("host", "https://www.example.org/", True),
        ("host", "http://www.example.org/x", True),
        ("host", "https://example.org/x", True),
        ("host", "http://example.org:80/x", True),
        ("host", "https://example.org:8443/x", False),
        ("host", "https://www.www.example.org/", False),
        ("host", "https://sub.example.org/", False),
        ("host", "https://example.com/", False),
        ("domain", "https://example.org/", True),
        ("domain", "http://a.b.example.org/", True),
        ("domain", "https://notexample.org/", False),
        ("domain", "https://example.org:8443/", False),
        ("domain", "https://example.org.evil.example/", False),
        ("any", "https://elsewhere.example/", True),
    ],
)
def test_a_kind_of_scope_covers_what_it_says(kind: str, url: str, allowed: bool) -> None:
    scope = Scope.build([SEED], ScopeKind(kind))

    assert decide(scope, url) == (allowed, f"scope:{kind}")


@pytest.mark.parametrize("kind", list(ScopeKind))
def test_a_seed_belongs_to_every_scope(kind: ScopeKind) -> None:
    assert decide(Scope.build([SEED], kind, max_depth=0), SEED.fetch, 5) == (True, "seed")


def test_a_port_is_part_of_the_host() -> None:
    seed = parse("http://example.org:8080/")

    host = Scope.build([seed], ScopeKind.HOST)
    assert decide(host, "https://www.example.org:8080/x") == (True, "scope:host")
    assert decide(host, "http://example.org/x") == (False, "scope:host")
    domain = Scope.build([seed], ScopeKind.DOMAIN)
    assert decide(domain, "http://a.example.org:8080/x") == (True, "scope:domain")
    assert decide(domain, "http://a.example.org/x") == (False, "scope:domain")


def test_an_ip_address_stands_for_itself() -> None:
    scope = Scope.build([parse("http://192.0.2.10:8080/")], ScopeKind.DOMAIN)

    assert decide(scope, "http://192.0.2.10:8080/x")[0]
    assert not decide(scope, "http://192.0.2.11:8080/x")[0]
    assert not decide(scope, "http://x.192.0.2.10.example:8080/")[0]


def test_people_on_one_public_suffix_are_strangers() -> None:
    scope = Scope.build([parse("https://alice.github.io/")], ScopeKind.DOMAIN)

    assert decide(scope, "https://www.alice.github.io/")[0]
    assert not decide(scope, "https://bob.github.io/")[0]
    assert not decide(scope, "https://github.io/")[0]


def test_the_www_twin_goes_both_ways() -> None:
    assert decide(Scope.build([parse("https://example.org/")]), "http://www.example.org/a")[0]
    assert decide(Scope.build([parse("https://www.example.org/")]), "http://example.org/a")[0]


def test_include_adds_and_exclude_always_wins() -> None:
    scope = Scope.build([SEED], ScopeKind.HOST, [r"^https://cdn\.example\.net/", "/shared/"], [r"\.pdf$", "/private/"])

    assert decide(scope, "https://cdn.example.net/x") == (True, r"include:^https://cdn\.example\.net/")
    assert decide(scope, "https://other.example/shared/x") == (True, "include:/shared/")
    assert decide(scope, "https://cdn.example.net/x.pdf") == (False, r"exclude:\.pdf$")
    assert decide(scope, "https://www.example.org/x.pdf") == (False, r"exclude:\.pdf$")
    assert decide(scope, "https://www.example.org/x") == (True, "scope:host")
    assert decide(scope, "https://other.example/x") == (False, "scope:host")


def test_exclude_wins_over_seeds_and_embedded_files() -> None:
    scope = Scope.build([SEED], exclude=["/docs/", "ads"])

    assert decide(scope, SEED.fetch, 0) == (False, "exclude:/docs/")
    assert decide(scope, "https://ads.example/x.gif", 1, UrlKind.REQUISITE) == (False, "exclude:ads")


def test_embedded_files_and_sitemaps_belong_whatever_their_host_and_depth() -> None:
    scope = Scope.build([SEED], ScopeKind.PAGE, max_depth=0)

    assert decide(scope, "https://cdn.example.net/a/a/a/a/a.css", 9, UrlKind.REQUISITE) == (True, "requisite")
    assert decide(scope, "https://maps.example.net/sitemap.xml", 9, UrlKind.SITEMAP) == (True, "sitemap")


@pytest.mark.parametrize("unlimited", [None, -1])
def test_depth_is_limited_only_where_it_is_asked_for(unlimited: int | None) -> None:
    url = "https://example.org/x"

    assert decide(Scope.build([SEED], max_depth=3), url, 3)[0]
    assert decide(Scope.build([SEED], max_depth=3), url, 4) == (False, "max_depth")
    assert decide(Scope.build([SEED], ScopeKind.HOST, ["/x"], max_depth=3), url, 4) == (False, "max_depth")
    assert decide(Scope.build([SEED], max_depth=unlimited), url, 400)[0]


def test_traps_are_named() -> None:
    scope = Scope.build([SEED], limits=TrapLimits(path_segments=6))

    assert decide(scope, "https://example.org/a/a/a/a/") == (False, "trap:repeated_segments")
    assert decide(scope, "https://example.org/1/2/3/4/5/6/7") == (False, "trap:path_depth")
    assert decide(scope, "https://elsewhere.example/a/a/a/a/") == (False, "scope:host")


def test_a_seed_may_look_like_a_trap() -> None:
    seed = parse("https://example.org/a/a/a/a/a")

    assert decide(Scope.build([seed]), seed.fetch, 0) == (True, "seed")


@pytest.mark.parametrize("kind", [ScopeKind.HOST, ScopeKind.PREFIX, ScopeKind.DOMAIN])
def test_a_landing_host_widens_a_new_scope_and_leaves_the_old_one(kind: ScopeKind) -> None:
    scope = Scope.build([SEED], kind, exclude=["/private/"], max_depth=3)
    wider = scope.with_landing_hosts([parse("https://new.example.com/home/")])

    assert decide(wider, "https://new.example.com/home/x") == (True, f"scope:{kind}")
    assert decide(wider, "https://example.org/docs/x") == (True, f"scope:{kind}")
    assert decide(wider, "https://new.example.com/home/private/") == (False, "exclude:/private/")
    assert decide(wider, "https://new.example.com/home/x", 4) == (False, "max_depth")
    assert decide(scope, "https://new.example.com/home/x") == (False, f"scope:{kind}")


def test_a_landing_page_belongs_to_a_scope_of_pages() -> None:
    wider = Scope.build([SEED], ScopeKind.PAGE).with_landing_hosts([parse("https://new.example.com/home")])

    assert decide(wider, "https://new.example.com/home") == (True, "seed")
    assert decide(wider, "https://new.example.com/") == (False, "scope:page")


def test_a_directory_is_known_where_trailing_slashes_are_stripped() -> None:
    policy = Normalisation(strip_trailing_slash=True)
    scope = Scope.build([parse("https://example.org/docs/", policy)], ScopeKind.PREFIX)

    assert scope.decide(parse("https://example.org/docs/a/", policy), 1, UrlKind.PAGE).allowed
    assert scope.decide(parse("http://example.org/docs/", policy), 1, UrlKind.PAGE).allowed
    assert not scope.decide(parse("https://example.org/other/", policy), 1, UrlKind.PAGE).allowed


def test_links_are_judged_like_addresses() -> None:
    scope = Scope.build([SEED])
    links = resolve(Base(SEED.fetch), ["/a", "https://elsewhere.example/"])

    assert [scope.decide(link, 1, UrlKind.PAGE).allowed for link in links] == [True, False]


def test_a_scope_needs_a_seed_and_rules_that_compile() -> None:
    with pytest.raises(Invalid, match="seed"):
        Scope.build([])
    with pytest.raises(Invalid, match="look-around"):
        Scope.build([SEED], include=["(?=x)"])


def test_many_seeds_are_built_and_asked_quickly() -> None:
    seeds = [parse(f"https://example.org/{i % 50}/{i}") for i in range(5_000)]
    scope = Scope.build(seeds, ScopeKind.PREFIX)

    assert decide(scope, "https://example.org/49/x") == (True, "scope:prefix")
    assert decide(scope, "https://example.org/50/x") == (False, "scope:prefix")


@pytest.mark.parametrize(
    ("kind", "landing", "is_new"),
    [
        (ScopeKind.HOST, "https://www.example.org/home", False),
        (ScopeKind.HOST, "https://new.example.org/", True),
        (ScopeKind.DOMAIN, "https://new.example.org/", False),
        (ScopeKind.DOMAIN, "https://example.net/", True),
        (ScopeKind.PREFIX, "https://www.example.org/home/", True),
        (ScopeKind.PAGE, "https://example.org/", False),
        (ScopeKind.PAGE, "https://example.org/home", True),
        (ScopeKind.ANY, "https://example.net/", False),
    ],
)
def test_a_landing_place_that_the_scope_has_makes_no_new_one(kind: ScopeKind, landing: str, is_new: bool) -> None:
    scope = Scope.build([parse("https://example.org/")], kind)

    wider = scope.with_landing_hosts([parse(landing)])

    assert (wider is not scope) is is_new
    assert wider.decide(parse(landing), 0).allowed


def test_a_landing_place_that_looks_like_a_trap_is_taken_all_the_same() -> None:
    scope = Scope.build([parse("https://example.org/")], ScopeKind.HOST)
    landing = parse("https://example.org" + "/a" * 30)
    assert not scope.decide(landing, 0).allowed

    assert scope.with_landing_hosts([landing]).decide(landing, 0).allowed


def test_widening_a_scope_of_many_seeds_does_not_read_them_again() -> None:
    scope = Scope.build([parse(f"https://h{n}.example.org/") for n in range(2000)], ScopeKind.HOST)
    landing = parse("https://landing.example.net/")

    with Calls() as work:
        scope.with_landing_hosts([landing])

    assert work.count < 500


def test_a_link_costs_the_same_however_many_directories_the_seeds_have() -> None:
    """Compared with each of 50,000, these links would take ten seconds and more."""
    seeds = [parse(f"https://example.org/d{n}/x/start.html") for n in range(50_000)]
    scope = Scope.build(seeds, ScopeKind.PREFIX)
    outside, inside = parse("https://example.org/other/x/y.html"), parse("https://example.org/d49999/x/y/z.html?a=/d1/")
    started = time.process_time()

    for _ in range(10_000):
        assert not scope.decide(outside, 1).allowed
        assert scope.decide(inside, 1).allowed
    assert time.process_time() - started < patience.allowed(5.0)


def test_a_directory_in_a_query_is_none() -> None:
    scope = Scope.build([parse("https://example.org/a/b/")], ScopeKind.PREFIX)

    assert not decide(scope, "https://example.org/a?/a/b/").allowed
    assert decide(scope, "https://example.org/a/b?/c").allowed
