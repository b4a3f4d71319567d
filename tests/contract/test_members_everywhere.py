"""A members' source looked for through every door, by every role, on both databases.

Two sources are alike in everything and share pages; one of them is for members. Every door tells of the other one to
everybody, and of the members' one to members alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import event
from starlette.types import ASGIApp

from holdfast.auth.roles import Role
from holdfast.clock import digits14
from holdfast.db.models import Domain, Page, PageCrawl, Queue
from holdfast.jobs.views.recorded import crawl_totals
from holdfast.replay.cdx.queries import KeyRange, batch
from holdfast.replay.finding import candidates, neighbours
from holdfast.search.outbox import drain
from holdfast.search.search import SearchRequest, SearchService
from holdfast.urls import surt
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, Viewer, seen_by
from holdfast.withdrawals.visibility import visible_snapshot
from tests.archive import days_later
from tests.client import REPLAY, Client
from tests.contract.members_bed import (
    BORROWED,
    CLUB,
    MEMBERS,
    NAMED,
    OPEN,
    REVISITED,
    Side,
    World,
    open_world,
)
from tests.contract.members_doors import DOORS, package_door


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def world(
    request: pytest.FixtureRequest, _sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """One archive for all doors and roles: reading changes nothing."""
    with open_world(request, _sqlite_template, tmp_path_factory.mktemp("members")) as made:
        yield made


def _tells(told: str, world: World, side: Side) -> bool:
    """Return whether an answer gives anything of a source away: a word, its host, its name, a capture's number."""
    text = told.casefold()
    turned = ",".join(reversed(side.host.split(".")))
    words = [side.word, f"{side.host}/", turned, f'"{side.code}"', f"{side.code}-", f">{side.code}<", f">{side.code}:"]
    numbers = [str(number) for number in world.ids[side.code]]
    return any(word in text for word in words) or any(re.search(rf"(?<!\d){one}(?!\d)", text) for one in numbers)


_ECHOES = {"calendar", "addresses", "timegate"}
"""Doors whose answers repeat the address: what they tell of it are the moments of captures."""


def _shown(door: str, told: str, world: World, side: Side) -> bool:
    if door in _ECHOES:
        days = [digits14(days_later(day + (0 if side is CLUB else 0.2))) for day in (0, 10)]
        return any(day in told for day in days)
    return _tells(told, world, side)


@pytest.mark.parametrize("door", DOORS)
def test_no_door_tells_everybody_of_a_members_source(world: World, door: str) -> None:
    told = DOORS[door][1](world, Role.ANONYMOUS, CLUB)

    assert not _shown(door, told, world, CLUB), told


@pytest.mark.parametrize("door", DOORS)
def test_every_door_tells_everybody_of_the_public_source(world: World, door: str) -> None:
    assert _shown(door, DOORS[door][1](world, Role.ANONYMOUS, OPEN), world, OPEN)


@pytest.mark.parametrize("role", MEMBERS)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_tells_members_of_their_source(world: World, door: str, role: Role) -> None:
    assert _shown(door, DOORS[door][1](world, role, CLUB), world, CLUB)


def test_what_may_not_be_seen_is_answered_like_what_is_not_there(world: World) -> None:
    hidden, missing = world.ids["club"][0], 4_000_000_001
    for path in (
        "/api/snapshot/{}",
        "/api/snapshots/{}/latest",
        "/api/snapshots/{}/timeline",
        "/api/snapshots/raw/{}",
        f"{REPLAY}/api/snapshots/raw/{{}}",
        "/api/changes/compare?toSnapshotId={}",
        "/api/search?like={}",
        "/api/search?similarTo={}",
    ):
        one, other = (world.ask(path.format(number), Role.ANONYMOUS) for number in (hidden, missing))
        assert one.status_code == other.status_code == 404, path
        assert _told(one.text, str(hidden)) == _told(other.text, str(missing)), path
    for path in (
        "/api/sources/{}/editions",
        "/api/sources/{}/preview",
        "/api/search?source={}",
        "/api/changes?source={}",
        "/api/changes/rss?source={}",
        "/api/terms?q=word&source={}",
        "/api/exports/snapshots?source={}",
        "/api/exports/cdxj?source={}",
        "/api/coverage/{}/2024",
        "/api/coverage/{}/2024/coverage.csv",
        "/api/coverage/{}/2024/edition.wacz",
    ):
        one, other = (world.ask(path.format(code), Role.ANONYMOUS) for code in ("club", "nosuch"))
        assert one.status_code == other.status_code == 404, path
        assert _told(one.text, "club") == _told(other.text, "nosuch"), path
    for path in ("/api/executions/{}/wacz", "/api/exports/cdxj?jobId={}", "/api/changes/site?from={}&to=3"):
        one, other = (world.ask(path.format(number), Role.ANONYMOUS) for number in (1, 9_999))
        assert one.status_code == other.status_code == 404, path
        assert _told(one.text, "1") == _told(other.text, "9999"), path


def _told(text: str, name: str) -> str:
    """Return what an error says, without what was asked for and the number of the request."""
    return re.sub(r'"requestId": ?"[^"]*"', "", text).replace(name, "…")


def test_a_public_capture_counts_although_members_had_the_same_text_before(world: World) -> None:
    for role, sources in ((Role.ANONYMOUS, ["open"]), (Role.MEMBER, ["club", "open"])):
        found = world.ask("/api/search?q=comoros&similar=show", role).json()

        assert sorted(one["sourceCode"] for one in found["results"]) == sources, role
        assert found["total"] == len(sources)


def test_a_revisit_shows_no_body_of_members(world: World) -> None:
    [revisit] = [one for one in world.ids["open"] if one not in _known(world, Role.ANONYMOUS)]

    for role, status in ((Role.ANONYMOUS, 404), (Role.MEMBER, 200)):
        assert world.ask(f"/api/snapshot/{revisit}", role).status_code == status
        assert world.followed(f"/web/2024id_/{REVISITED}", role).status_code == status
        assert (world.ask(f"/api/search?q={BORROWED}", role).json()["total"] > 0) == (status == 200)
    assert BORROWED not in package_door("/api/executions/{first}/wacz")(world, Role.MEMBER, replaced(OPEN, 4))


def replaced(side: Side, execution: int) -> Side:
    """Return a side whose first execution is another one."""
    return Side(side.code, side.host, side.word, (execution, execution))


def _known(world: World, role: Role) -> set[int]:
    told = world.told("/api/exports/snapshots?format=jsonl&compressed=false", role)
    pages = {json.loads(line)["snapshot_id"] for line in told.splitlines()}
    shown = [one for one in world.ids["open"] if world.ask(f"/api/snapshot/{one}", role).status_code == 200]
    return pages | set(shown)


def test_what_members_pages_call_others_finds_nothing(world: World) -> None:
    assert world.ask(f"/api/search?q={NAMED}", Role.ANONYMOUS).json()["total"] == 0
    urls = {one["originalUrl"] for one in world.ask(f"/api/search?q={NAMED}", Role.MEMBER).json()["results"]}
    assert OPEN.own not in urls


def test_the_words_of_links_come_and_go_with_who_may_see_them(world: World) -> None:
    def named() -> set[str]:
        drain(world.archive.database, world.archive.home, world.archive.clock)
        service = SearchService(world.archive.database, world.archive.home, world.archive.clock)
        with seen_by(PUBLIC):
            found = service.ask(SearchRequest(q=NAMED), wait=True)
        return {hit.row.url for hit in found.hits}

    try:
        assert named() == set()
        world.show("public")
        assert OPEN.own in named()
    finally:
        world.show("members")
    assert named() == set()


def test_figures_count_what_may_be_seen(world: World) -> None:
    everybody, member = (world.ask("/api/stats", role).json() for role in (Role.ANONYMOUS, Role.MEMBER))
    found, all_found = (
        world.ask("/api/search?includeDuplicates=true", role).json() for role in (Role.ANONYMOUS, Role.MEMBER)
    )

    assert everybody["sourcesTotal"] == 1
    assert member["sourcesTotal"] == 2
    assert everybody["snapshotsTotal"] < member["snapshotsTotal"]
    assert found["total"] < all_found["total"]
    assert sum(bucket["count"] for bucket in found["histogram"]["buckets"]) == found["total"]
    assert {one["value"] for one in found["facets"]["source"]} == {"open"}


def test_no_cache_keeps_what_a_member_was_told(world: World) -> None:
    for path in ("/api/search", "/api/stats", "/cdx?url=example.org&matchType=domain", "/api/changes/rss", "/"):
        everybody, member = world.ask(path, Role.ANONYMOUS), world.ask(path, Role.MEMBER)

        assert member.headers["cache-control"] == "private, no-store", path
        assert "private" not in everybody.headers.get("cache-control", ""), path
        for answer in (everybody, member):
            assert {"cookie", "authorization"} <= {one.strip().lower() for one in answer.headers["vary"].split(",")}


class _Noting(Client):
    """A client that keeps what it was answered."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self.answers = list[httpx.Response]()

    def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        """Ask, and keep the answer."""
        self.answers.append(super().request(method, url, **options))
        return self.answers[-1]


@pytest.mark.parametrize("door", DOORS)
def test_shared_caches_ask_again_before_they_answer(world: World, door: str) -> None:
    with closing(_Noting(world.servers[0].app)) as noting:
        DOORS[door][1](replace(world, servers=[noting]), Role.ANONYMOUS, OPEN)

    assert noting.answers
    for answer in noting.answers:
        assert answer.headers["cache-control"] in ("no-cache", "no-store"), answer.url


def test_a_tag_that_a_member_was_given_opens_nothing(world: World) -> None:
    paths = [f"/api/executions/{CLUB.executions[0]}/wacz", f"/api/changes/rss?source={CLUB.code}"]
    for path in paths:
        tag = world.ask(path, Role.MEMBER).headers["etag"]

        assert world.ask(path, Role.MEMBER, headers={"If-None-Match": tag}).status_code == 304
        assert world.ask(path, Role.ANONYMOUS, headers={"If-None-Match": tag}).status_code == 404


def test_a_source_is_shown_and_hidden_at_once_by_every_process(world: World) -> None:
    doors = ("search by words", "terms over time", "facets and newest", "cdx", "sources", "figures", "home", "package")
    try:
        for visibility, is_shown in (("public", True), ("members", False), ("public", True), ("members", False)):
            world.show(visibility)
            for server in (0, 1):
                told = World(world.archive, [world.servers[server]], world.ids, world.credentials)
                for door in doors:
                    found = DOORS[door][1](told, Role.ANONYMOUS, CLUB)
                    assert _shown(door, found, world, CLUB) == is_shown, (door, visibility, server)
    finally:
        world.show("members")


def _opened(world: World, url: str, role: Role = Role.MEMBER) -> httpx.Response:
    """Return what a member's browser gets for an address, at the end of redirects."""
    answer = world.followed(url, role)
    assert answer.status_code == 200, answer.text
    assert str(answer.url).startswith(f"{REPLAY}/!")
    return answer


_PAGE = f"/web/{digits14(days_later(0))}/{CLUB.own}"


def test_everything_on_a_members_page_carries_its_capability(world: World) -> None:
    page = _opened(world, _PAGE)
    root = f"/!{str(page.url).partition('/!')[2].partition('/')[0]}"

    addresses = re.findall(r'(?:href|src)="([^"]*)"', page.text)
    assert len(addresses) >= 4
    assert all(one.startswith(f"{root}/web/") for one in addresses), addresses
    framed = world.ask(str(page.url), Role.ANONYMOUS, headers={"Sec-Fetch-Dest": "iframe"})
    assert f'"root": "{root}"' in framed.text, "and what its scripts ask for"
    for link in re.findall(r"<([^>]*)>; rel=\"(?:[a-z ]*memento|timegate|timemap)\"", page.headers["link"]):
        assert link.startswith(f"{REPLAY}{root}/web/"), link
    [picture] = [one for one in addresses if one.endswith("club.png")]
    for path in (picture, f"{root}/web/*/{CLUB.own}", f"{root}/web/timemap/link/{CLUB.own}"):
        below = world.ask(f"{REPLAY}{path}", Role.ANONYMOUS)
        assert below.status_code == 200, path
        assert all(root in line for line in re.findall(r'href="(/[^"]*)"', below.text))
    moved = world.ask(f"{REPLAY}{root}/web/2024/{CLUB.own}", Role.ANONYMOUS)
    assert moved.status_code == 302
    assert moved.headers["location"].startswith(f"{root}/web/")


def test_what_a_capability_opened_is_for_no_cache_and_no_other_site(world: World) -> None:
    page = _opened(world, _PAGE)
    sent: tuple[dict[str, str], ...] = ({}, {"Origin": "null"}, {"Origin": "https://elsewhere.example"})
    for headers in sent:
        for method in ("GET", "HEAD", "OPTIONS"):
            extra = {"Access-Control-Request-Method": "GET"} if method == "OPTIONS" else {}
            answer = world.ask(str(page.url), Role.ANONYMOUS, method=method, headers={**headers, **extra})
            assert answer.headers["cache-control"] == "private, no-store"
            assert answer.headers.get("access-control-allow-origin") in (None, "null")
            if headers.get("Origin") != "null":
                assert "access-control-allow-origin" not in answer.headers
            assert answer.headers["referrer-policy"] == "same-origin"
            assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("suffix", ["", "mp_", "id_"])
def test_scripts_below_a_capability_run_in_frames_alone(world: World, suffix: str) -> None:
    page = str(_opened(world, _PAGE).url)
    url = re.sub(r"(/web/\d+)", rf"\1{suffix}", page)

    def policy(url: str, destination: str | None) -> str:
        headers = {} if destination is None else {"Sec-Fetch-Dest": destination}
        return world.ask(url, Role.ANONYMOUS, headers=headers).headers["content-security-policy"]

    for destination in (None, "document"):
        assert "allow-scripts" not in policy(url, destination)
        assert "script-src 'none'" in policy(url, destination)
    assert "allow-scripts" in policy(url, "iframe")
    public = f"{REPLAY}/web/{digits14(days_later(0.2))}{suffix}/{OPEN.own}"
    assert "allow-scripts" in policy(public, "document"), "what is public has no capability to tell"


def test_a_capability_opens_its_source_and_no_other_and_not_the_api(world: World) -> None:
    page = _opened(world, _PAGE)
    root = f"/!{str(page.url).partition('/!')[2].partition('/')[0]}"
    number = world.ids["club"][0]

    assert world.ask(f"{REPLAY}{root}/api/snapshots/raw/{number}", Role.ANONYMOUS).status_code == 200
    assert world.ask(f"{REPLAY}{root}/cdx?url={CLUB.own}", Role.ANONYMOUS).text.strip()
    for path in (f"/api/snapshot/{number}", "/api/search?q=zanzibar", f"/web/2024id_/{CLUB.own}", "/api/sources"):
        assert world.ask(f"{root}{path}", Role.ANONYMOUS).status_code == 404, "the application knows no capability"
        assert CLUB.word not in world.ask(f"{REPLAY}{root}{path}", Role.ANONYMOUS).text or path.startswith("/web/")
    # The same path without it, on either host.
    assert world.ask(f"{REPLAY}/web/2024id_/{CLUB.own}", Role.ANONYMOUS).status_code == 404
    assert world.ask(f"{REPLAY}/web/2024id_/{CLUB.own}", Role.ANONYMOUS, headers={"Cookie": "a=b"}).status_code == 404


def test_a_capability_of_another_source_opens_nothing_of_members(world: World) -> None:
    keys = world.servers[0].app.state.replay_keys  # type: ignore[attr-defined]
    root = keys.root(10_000)

    assert world.ask(f"{REPLAY}{root}/web/2024id_/{CLUB.own}", Role.ANONYMOUS).status_code == 404
    assert world.ask(f"{REPLAY}{root}/web/2024id_/{OPEN.own}", Role.ANONYMOUS).status_code == 200


def test_a_capability_that_is_none_is_refused_with_the_way_to_another(world: World) -> None:
    refused = world.ask(f"{REPLAY}/!nonsense/web/2024/{CLUB.own}", Role.ANONYMOUS)

    assert refused.status_code == 403
    assert CLUB.word not in refused.text
    assert f'href="http://localhost:8060/members/web/2024/{CLUB.own}"' in refused.text
    led = world.ask(f"/members/web/2024/{CLUB.own}", Role.ANONYMOUS)
    assert f'content="0; url=/web/2024/{CLUB.own}"' in led.text, "which brings the session of a signed-in reader"
    assert refused.headers["cache-control"] == "private, no-store"


def test_members_are_led_to_a_page_and_others_are_not(world: World) -> None:
    for role in (Role.ANONYMOUS, *MEMBERS):
        led = world.ask(_PAGE, role)

        assert led.status_code == 307
        assert ("/!" in led.headers["location"]) == (role is not Role.ANONYMOUS)
    public = world.ask(f"/web/2024/{OPEN.own}", Role.MEMBER)
    assert public.headers["location"] == f"{REPLAY}/web/2024/{OPEN.own}", "what is public needs none"


def test_answers_name_where_a_member_can_look(world: World) -> None:
    detail = world.ask(f"/api/snapshot/{world.ids['club'][0]}", Role.MEMBER).json()
    hit = world.ask(f"/api/search?q={CLUB.word}", Role.MEMBER).json()["results"][0]
    resolved = world.ask(f"/api/replay/resolve?url={CLUB.own}", Role.MEMBER).json()
    entry = world.ask(f"/api/snapshots/{world.ids['club'][0]}/timeline", Role.MEMBER).json()["snapshots"][0]

    for one in (detail, hit, resolved, entry):
        answer = world.followed(one["browseUrl"].partition("#")[0], Role.MEMBER)
        assert answer.status_code == 200
        assert CLUB.word in answer.text
    assert world.ask(f"/api/snapshot/{world.ids['open'][0]}", Role.MEMBER).json()["browseUrl"].startswith(REPLAY)


def test_a_revisit_of_a_members_body_is_named_where_a_member_can_look(world: World) -> None:
    [revisit] = [one for one in world.ids["open"] if one not in _known(world, Role.ANONYMOUS)]
    timeline = world.ask(f"/api/snapshots/{revisit}/timeline", Role.MEMBER).json()["snapshots"]
    hits = world.ask(f"/api/search?q={BORROWED}&includeDuplicates=true", Role.MEMBER).json()["results"]
    named = {
        "detail": world.ask(f"/api/snapshot/{revisit}", Role.MEMBER).json()["browseUrl"],
        "timeline": next(one["browseUrl"] for one in timeline if one["snapshotId"] == revisit),
        "search": next((one["browseUrl"] for one in hits if one["id"] == revisit), None),
    }

    for where, url in named.items():
        if url is not None:
            answer = world.followed(url.partition("#")[0], Role.MEMBER)
            assert (answer.status_code, BORROWED in answer.text) == (200, True), (where, url)
    assert named["detail"].startswith("/web/")


@pytest.mark.parametrize("fields", ["", "&fl=timestamp", "&fields=timestamp"])
def test_a_list_of_links_leads_a_member_to_what_it_names(world: World, fields: str) -> None:
    told = world.ask(f"/cdx?url={CLUB.own}&output=link{fields}", Role.MEMBER).text
    mementos = re.findall(r'<([^>]*)>; rel="memento"', told)
    root = f"/!{str(_opened(world, _PAGE).url).partition('/!')[2].partition('/')[0]}"
    below = world.ask(f"{REPLAY}{root}/cdx?url={CLUB.own}&output=link{fields}", Role.ANONYMOUS).text

    assert mementos
    assert all(CLUB.word in world.followed(one, Role.MEMBER).text for one in mementos)
    assert all(one.startswith(f"{REPLAY}{root}/web/") for one in re.findall(r'<([^>]*)>; rel="memento"', below))


def test_what_an_assistant_cites_leads_a_member_to_it(world: World) -> None:
    told = json.loads(DOORS["tool: history"][1](world, Role.MEMBER, CLUB))
    cited = [one["citation"]["permalink"] for one in told["captures"]]

    assert cited
    assert all(CLUB.word in world.followed(one.partition("#")[0], Role.MEMBER).text for one in cited)


def test_the_permalink_of_a_members_capture_leads_members_to_it_and_holds(world: World) -> None:
    view = world.ask(f"/api/snapshots/{world.ids[CLUB.code][0]}/view", Role.MEMBER).json()

    assert "/!" not in view["permalink"]
    assert CLUB.word in world.followed(view["permalink"], Role.MEMBER).text
    assert world.followed(view["permalink"], Role.ANONYMOUS).status_code == 404
    assert CLUB.word in world.ask(view["frameUrl"], Role.ANONYMOUS).text, "what is shown now has a capability"
    assert view["frameSeconds"] == 3600
    assert world.ask(f"/api/snapshots/{world.ids[OPEN.code][0]}/view", Role.MEMBER).json()["frameSeconds"] is None


def test_results_that_are_taken_away_name_where_a_member_can_look(world: World) -> None:
    told = world.told(f"/api/search/export?q={CLUB.word}&format=jsonl", Role.MEMBER)
    links = [json.loads(line)["permalink"] for line in told.splitlines()]

    assert links
    assert all(CLUB.word in world.followed(one, Role.MEMBER).text for one in links)


def test_health_counts_no_job_of_members(world: World) -> None:
    everybody, member = (
        world.ask("/api/health?details=1", role).json()["checks"] for role in (Role.ANONYMOUS, Role.MEMBER)
    )

    assert sum(everybody["jobs"].values()) == sum(member["jobs"].values()) / 2
    assert everybody["snapshots"]["total"] < member["snapshots"]["total"]


def test_crawl_totals_hide_members_only_urls_from_public(world: World) -> None:
    found = {}
    with world.archive.database.write() as session:
        domain = Domain(name=f"{OPEN.host}:81", created_at=days_later(0))
        session.add(domain)
        session.flush()
        for number, execution in enumerate((*CLUB.executions, *CLUB.executions, *OPEN.executions)):
            page = Page(
                domain_id=domain.id, url_hash=number, url=f"https://{OPEN.host}/{number}", created_at=days_later(0)
            )
            session.add(page)
            session.flush()
            place = {"execution_id": execution, "domain_id": domain.id, "created_at": 0}
            session.add(PageCrawl(**place, page_id=page.id, attempt=1, kind="page", priority=1, depth=0))
        for execution in (CLUB.executions[0], OPEN.executions[0]):
            session.add(Queue(execution_id=execution, domain_id=domain.id, open=1, due_at=0))
        session.flush()
        for looking in (PUBLIC, EVERYTHING):
            with seen_by(looking):
                found[looking] = crawl_totals(session, world.archive.clock).links_discovered
        session.rollback()

    assert found[PUBLIC] == 2
    assert found[EVERYTHING] >= 6


def test_usage_excludes_members_captures_for_anonymous(world: World) -> None:
    def used() -> tuple[int, int]:
        totals = world.ask("/api/usage", Role.ANONYMOUS).json()["totals"]
        return totals["snapshotDetailViews"], totals["rawSnapshotViews"]

    before = used()
    for number in world.ids[CLUB.code]:
        for path in (f"/api/snapshot/{number}", f"/api/snapshots/{number}/view", f"/api/snapshots/raw/{number}"):
            assert world.ask(path, Role.MEMBER).status_code == 200
    hidden = used()
    for path in (f"/api/snapshot/{world.ids[OPEN.code][0]}", f"/api/snapshots/raw/{world.ids[OPEN.code][0]}"):
        for role in (Role.MEMBER, Role.ANONYMOUS):
            assert world.ask(path, role).status_code == 200

    assert hidden == before
    assert used() == (before[0] + 2, before[1] + 2)


def test_the_log_says_no_capability(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    page = _opened(world, _PAGE)

    told = capsys.readouterr()
    assert str(page.url).partition("/!")[2].partition("/")[0] not in told.out + told.err


def test_a_stray_request_of_a_members_page_is_led_back_with_its_capability(world: World) -> None:
    page = _opened(world, _PAGE)
    led = world.ask(f"{REPLAY}/club.png", Role.ANONYMOUS, headers={"Referer": str(page.url)})

    assert led.status_code == 307
    assert led.headers["location"].startswith(f"/!{str(page.url).partition('/!')[2].partition('/')[0]}/web/")
    assert world.ask(f"{REPLAY}{led.headers['location']}", Role.ANONYMOUS).status_code == 200


def test_it_costs_no_statement(world: World) -> None:
    database = world.archive.database
    service = SearchService(database, world.archive.home, world.archive.clock)
    asked: list[str] = []
    counts: dict[Viewer, list[int]] = {}
    event.listen(database.engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    for viewer in (EVERYTHING, PUBLIC):
        with seen_by(viewer):
            service.ask(SearchRequest(q=OPEN.word))
            counts[viewer] = []
            for read in _hot_paths(world, service):
                asked.clear()
                read()
                counts[viewer].append(len(asked))

    assert counts[PUBLIC] == counts[EVERYTHING] == [1, 2, 4, 1, counts[PUBLIC][-1]]


def _hot_paths(world: World, service: SearchService) -> Iterator[Callable[[], object]]:
    """Yield what most requests ask: one capture, those near a moment, its neighbours, the index, a search."""
    keys = KeyRange(surt(OPEN.own), surt(OPEN.own))
    with world.archive.database.read() as session:
        session.connection()
        yield lambda: visible_snapshot(session, world.ids["open"][0])
        yield lambda: candidates(session, OPEN.own, "2024")
        yield lambda: neighbours(session, surt(OPEN.own), days_later(5), 0)
        period = days_later(-900), days_later(900)
        yield lambda: batch(session, keys, behind=None, reverse=False, period=period, limit=5)
    yield lambda: service.ask(SearchRequest(q=OPEN.word))
