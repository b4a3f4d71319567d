"""What a crawl is asked to do, and what of it may be told."""

from __future__ import annotations

import json
import os

from holdfast import __version__
from holdfast.sources.plan import CrawlPlan
from holdfast.urls import DEFAULT
from tests.patience import Calls


def _plan(**more: object) -> CrawlPlan:
    return CrawlPlan(**{"seeds": ("https://a.test/",), "contact": "a@example.org", **more})  # type: ignore[arg-type]


def test_the_user_agent_always_names_us_and_the_contact() -> None:
    assert _plan().agent() == f"Holdfast/{__version__} (+mailto:a@example.org)"
    assert _plan(contact="https://example.org/bot").agent() == f"Holdfast/{__version__} (+https://example.org/bot)"
    assert _plan(user_agent="Library/1").agent() == f"Library/1 Holdfast/{__version__} (+mailto:a@example.org)"


def test_a_plan_travels_whole_and_is_published_without_its_secrets() -> None:
    plan = _plan(headers=(("Authorization", "hunter2"),), cookies="a\tb\thunter2", include=("x",))

    assert CrawlPlan.from_json(plan.to_json()) == plan
    told = json.dumps(plan.public())
    assert "Authorization" in told
    assert "hunter2" not in told


def test_the_same_crawl_is_the_same_seeds_and_scope_in_any_order() -> None:
    one = _plan(seeds=("https://a.test/", "https://b.test/"), exclude=("x", "y"), max_pages=5)
    other = _plan(seeds=("https://b.test/#top", "https://a.test"), exclude=("y", "x"), delay_s=9.0)

    assert one.fingerprint() == other.fingerprint()
    assert one.fingerprint() != _plan(seeds=("https://a.test/",)).fingerprint()
    assert _plan(scope="domain").fingerprint() != _plan().fingerprint()


def test_how_pages_are_told_apart_travels_to_the_process_and_makes_another_crawl() -> None:
    plain = CrawlPlan(seeds=("http://a.test/",), contact="a@example.org")
    own = CrawlPlan(seeds=("http://a.test/",), contact="a@example.org", strip_trailing_slash=True, force_https=True,
                    tracking=("From", "x_*"), allow_ports=(6697,))  # fmt: skip

    policy = CrawlPlan.from_json(own.to_json()).normalisation()
    assert (policy.strip_trailing_slash, policy.force_https, policy.allow_ports) == (True, True, frozenset({6697}))
    assert (policy.tracking, policy.tracking_prefixes) == (frozenset({"from"}), ("x_",))
    assert plain.normalisation() == DEFAULT
    assert own.fingerprint() != plain.fingerprint()


def test_the_origins_of_many_seeds_are_found_by_reading_few_of_them() -> None:
    odd = ("HTTP://A.test/x", "a.test", "http://a.test:80/y", "http://a.test:8080/y", "https://a.test")
    few, many = (CrawlPlan(seeds=(*odd, *(f"http://a.test/{n}" for n in range(count))), contact="t@example.org")
                 for count in (100, 1100))  # fmt: skip

    with Calls() as calls:
        origins = set(many.seed_origins())

    assert origins == {url.origin for url in many.seed_urls()} == set(few.seed_origins())
    assert calls.count < 10 * 1100, "a look at each, and no more"


def test_plan_uses_processes_that_can_be_busy() -> None:
    cores = len(os.sched_getaffinity(0))
    hosts = tuple(f"https://host{number}.test/" for number in range(3_000))

    assert _plan(delay_s=0.0).busy_processes() == 1
    assert _plan(seeds=hosts[:300], delay_s=1.0).busy_processes() == 1
    assert _plan(seeds=hosts[:2], delay_s=0.0).busy_processes() == min(cores, 2)
    assert _plan(seeds=hosts, delay_s=1.0).busy_processes() == min(cores, 10)
    assert _plan(seeds=hosts, delay_s=0.0, max_pages=9).busy_processes() == 1
