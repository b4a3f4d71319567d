"""How often an address may ask, and when it may ask again."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode
from types import CodeType

import pytest
from fastapi.routing import APIRoute

from holdfast.api.middleware.rate_limits import Rates, Tier, address_of
from holdfast.api.routes import ROUTERS
from holdfast.auth.roles import LOWEST_ROLE, Permission, Role
from holdfast.auth.tokens import make_token
from holdfast.auth.users import add_user
from holdfast.wiring.archive import Archive
from tests.api_routes import SEEDING
from tests.client import REPLAY, asking
from tests.clock import FakeClock
from tests.unit.api.conftest import MakeArchive, MakeClient

_FIVE = Tier("five", 5)


@pytest.mark.parametrize(
    ("method", "path", "limit"),
    [("GET", "/nothing", 120), ("GET", "/api/search", 60), ("GET", "/api/exports/snapshots", 10),
     ("POST", "/api/reports", 5)],
)  # fmt: skip
def test_each_kind_of_route_has_its_limit(make_client: MakeClient, method: str, path: str, limit: int) -> None:
    client = make_client()
    statuses = [client.request(method, path).status_code for _ in range(limit)]
    over = client.request(method, path)

    assert 429 not in statuses
    assert over.status_code == 429
    assert over.json()["error"] == "Rate limit exceeded"
    assert over.json()["code"] == "too_many_requests"
    assert 1 <= int(over.headers["retry-after"]) <= 61


def test_a_full_kind_of_route_leaves_the_others_open(make_client: MakeClient) -> None:
    client = make_client()
    for _ in range(6):
        client.post("/api/reports")

    assert client.post("/api/reports").status_code == 429
    assert client.get("/api/stats").status_code == 200


def test_after_the_time_that_was_named_one_may_ask_again(make_client: MakeClient, clock: FakeClock) -> None:
    client = make_client(reports_per_minute=2)
    for _ in range(2):
        client.post("/api/reports")
    wait_s = int(client.post("/api/reports").headers["retry-after"])

    clock.advance(wait_s)

    assert client.post("/api/reports").status_code != 429


@pytest.mark.parametrize(
    "path", ["/metrics", "/api/v1/jobs", "/api/v1/scheduler/metrics", "/api/admin/jobs", "/api/pages",
             "/api/v1/sources/x.wacz", "/api/admin/jobs/1.wacz"],
)  # fmt: skip
def test_guessing_the_admin_token_is_slow(make_client: MakeClient, path: str) -> None:
    client = make_client(admin_token="x" * 20)
    guesses = [client.get(path, headers={"x-admin-token": f"guess {n}"}).status_code for n in range(11)]

    assert guesses == [401] * 10 + [429]
    assert client.get("/metrics", headers={"x-admin-token": "x" * 20}).status_code == 200


def _bearers(archive: Archive, role: Role, count: int = 2) -> list[dict[str, str]]:
    """Return what tokens of one user show."""
    scopes = frozenset(one for one in Permission if role.is_at_least(LOWEST_ROLE[one]))
    with archive.database.write() as session:
        user = add_user(session, archive.clock, name=f"the-{role}", role=role)
        made = [make_token(session, archive.clock, user, name="a test", scopes=scopes) for _ in range(count)]
    return [{"authorization": f"Bearer {one.secret}"} for one in made]


@pytest.mark.parametrize(
    ("role", "path", "tier"),
    [(Role.MEMBER, "/api/account", "member"), (Role.OPERATOR, "/api/account", "admin"),
     (Role.OPERATOR, "/api/v1/jobs", "admin"), (Role.ADMINISTRATOR, "/api/admin/users", "admin")],
)  # fmt: skip
def test_a_signed_in_user_has_one_limit_of_its_role_whatever_it_shows(
    make_archive: MakeArchive, role: Role, path: str, tier: str
) -> None:
    archive = make_archive(admin_token="x" * 20, member_per_minute=3, admin_per_minute=4, intruder_per_minute=1)
    limit = {"member": 3, "admin": 4}[tier]
    first, second = _bearers(archive, role)
    with asking(archive) as client:
        answers = [client.get(path, headers=(first, second)[number % 2]) for number in range(limit + 1)]
        other = client.get("/api/admin/users", headers={"x-admin-token": "x" * 20})

    assert [one.status_code for one in answers] == [200] * limit + [429]
    assert answers[0].headers["ratelimit-policy"] == f'"{tier}";q={limit};w=60'
    assert [one.headers["ratelimit-remaining"] for one in answers[:2]] == [str(limit - 1), str(limit - 2)]
    assert other.status_code == 200, "who shares the address has a count of its own"


def test_a_member_who_asks_for_more_than_it_may_is_counted_as_one(make_archive: MakeArchive) -> None:
    archive = make_archive(admin_token="x" * 20, member_per_minute=2, intruder_per_minute=1)
    (member,) = _bearers(archive, Role.MEMBER, 1)
    with asking(archive) as client:
        asked = [client.get("/api/v1/jobs", headers=member).status_code for _ in range(3)]

    assert asked == [403, 403, 429]


@pytest.mark.parametrize("row", sorted(SEEDING))
def test_whatever_brings_addresses_into_a_frontier_has_a_limit_of_its_own(make_client: MakeClient, row: str) -> None:
    client = make_client(seeds_per_minute=2)
    path = row.partition(" ")[2].replace("{id}", "example.org")
    asked = [client.post(path) for _ in range(3)]

    assert [one.status_code == 429 for one in asked] == [False, False, True]
    assert asked[0].headers["ratelimit-policy"] == '"seeds";q=2;w=60'
    assert client.get("/api/v1/jobs").status_code == 200


def _names(code: CodeType) -> set[str]:
    """Return the names that a function and the functions inside it use."""
    inner = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)


def test_every_route_that_adds_addresses_is_known_to_be_one() -> None:
    # By what they call: a new way in does not go unlimited.
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    adding = {
        f"{method} {route.path}"
        for route in routes
        for method in route.methods or ()
        if {"adding_urls", "begin_crawl"} & _names(route.endpoint.__code__)
    }

    assert adding - SEEDING == {"POST /api/v1/frontier/{id}/retry"}, "which asks again for one that is known"
    assert SEEDING - adding == {"POST /api/v1/sources/survey"}, "which requests a site and adds nothing"


def test_tools_of_assistants_are_no_second_way_past_the_limit_of_searches(make_client: MakeClient) -> None:
    client = make_client(search_per_minute=2)
    asked = [client.get("/api/search?q=x").status_code, client.post("/mcp", json={}).status_code]

    assert 429 not in asked
    assert client.post("/mcp", json={}).status_code == client.get("/api/search?q=x").status_code == 429


def test_capabilities_that_are_made_up_are_limited_like_all_else(make_client: MakeClient) -> None:
    client = make_client(replay_per_minute=2, cdx_per_minute=1)
    # Each names another key, which the database is asked for.
    made_up = [urlsafe_b64encode(struct.pack(">BIQI", 1, number, 1, 2**31) + b"x" * 16).decode() for number in range(9)]
    asked = [client.get(f"{REPLAY}/!{one.rstrip('=')}/web/2024/http://example.org/") for one in made_up[:3]]

    assert [one.status_code for one in asked] == [403, 403, 429]
    for answer in asked:
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    root = client.app.state.replay_keys.root(7)  # type: ignore[attr-defined]
    assert [client.get(f"{REPLAY}{root}/cdx?url=x").status_code for _ in range(2)] == [200, 429]


def test_the_replay_host_has_a_limit_of_its_own(make_client: MakeClient) -> None:
    client = make_client(replay_per_minute=3)

    assert [client.get(f"{REPLAY}/x").status_code for _ in range(4)] == [404, 404, 404, 429]


def test_cdx_queries_count_by_themselves_and_on_both_hosts_together(make_client: MakeClient) -> None:
    client = make_client(cdx_per_minute=2)
    asked = [client.get(f"{host}/cdx?url=x").status_code for host in ("", REPLAY, REPLAY, "")]

    assert asked == [200, 200, 429, 429]
    assert client.get("/api/stats").status_code == 200


def test_counting_can_be_switched_off(make_client: MakeClient) -> None:
    client = make_client(rate_limiting=False, general_per_minute=1)

    assert {client.get("/api/stats").status_code for _ in range(3)} == {200}


def test_no_minute_holds_more_than_the_limit_wherever_it_begins(clock: FakeClock) -> None:
    rates, asked = Rates(clock), []

    for _ in range(400):
        clock.advance(0.7)
        if rates.count(_FIVE, "a").wait_s == 0:
            asked.append(clock.monotonic())

    assert len(asked) >= 15
    assert max(sum(start <= at < start + 60 for at in asked) for start in asked) == 5


def test_a_wait_is_neither_too_short_nor_far_too_long(clock: FakeClock) -> None:
    rates = Rates(clock)
    for spent in (1, 3, 20, 47, 59):
        clock.advance(spent)
        while (wait_s := rates.count(_FIVE, "a").wait_s) == 0:
            pass
        clock.advance(wait_s)
        assert rates.count(_FIVE, "a").wait_s == 0
        clock.advance(200)


def test_addresses_are_counted_apart_and_forgotten_in_time(clock: FakeClock) -> None:
    rates = Rates(clock, addresses=3)
    for _ in range(5):
        rates.count(_FIVE, "old")

    assert rates.count(_FIVE, "old").wait_s > 0
    for name in ("b", "c", "d"):
        assert rates.count(_FIVE, name).wait_s == 0
    assert rates.count(_FIVE, "old").wait_s == 0, "the least recent address is forgotten first"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("192.0.2.1", "192.0.2.2", False), ("2001:db8::1", "2001:db8::ffff:1", True),
     ("2001:db8:0:1::1", "2001:db8:0:2::1", False), ("::ffff:192.0.2.1", "192.0.2.1", True)],
)  # fmt: skip
def test_whom_an_address_stands_for(one: str, other: str, same: bool) -> None:
    assert (address_of({"client": (one, 1)}) == address_of({"client": (other, 2)})) is same


@pytest.mark.parametrize("client", [None, ("junk", 1), ("", 0), ("unknown", 0), ("203.0.113.7, x", 0), ("1.2.3", 0)])
def test_what_is_no_address_counts_as_one_client(client: tuple[str, int] | None) -> None:
    assert address_of({"client": client}) == "unknown"


@pytest.mark.parametrize("path", ["/api/health", "/health", "/api/health?details=1", "/metrics"])
def test_monitors_are_never_limited(make_client: MakeClient, path: str) -> None:
    client = make_client(general_per_minute=1, admin_per_minute=1, intruder_per_minute=1)

    assert {client.get(path).status_code for _ in range(5)} == {200}
    assert [client.get("/api/stats").status_code for _ in range(2)] == [200, 429], "they count for nothing else"


def test_files_that_are_made_for_one_reader_count_as_exports(make_client: MakeClient) -> None:
    client = make_client(exports_per_minute=3, general_per_minute=1, replay_per_minute=1, search_per_minute=1)
    made = ("/api/search/export?q=x", "/api/snapshots/7/wacz", "/api/exports/snapshots", "/api/snapshots/8/wacz")
    answers = [client.get(path) for path in made]

    assert {one.headers["ratelimit-policy"] for one in answers} == {'"exports";q=3;w=60'}
    assert [one.status_code == 429 for one in answers] == [False, False, False, True]
    # The same packages, for the second renderer.
    rendered = client.get(f"{REPLAY}/replay-web-page/captures/7.wacz")
    assert (rendered.headers["ratelimit-policy"], rendered.status_code) == ('"packages";q=60;w=60', 404)
    asked = client.request("HEAD", f"{REPLAY}/replay-web-page/captures/7.wacz")
    assert asked.headers["ratelimit-policy"] == '"replay";q=1;w=60'
    # Those of whole crawls are kept, and read in many parts.
    assert "replay" in client.get("/api/executions/1/wacz").headers["ratelimit-policy"]
