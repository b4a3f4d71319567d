"""A members' source looked for through every door, by every role, on both databases.

Two sources are alike in everything and share pages; one of them is for members. Every door tells of the other one to
everybody, and of the members' one to members alone.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from holdfast.api.permissions import PERMISSIONS
from holdfast.auth.roles import Permission, Role
from holdfast.clock import digits14
from tests.archive import days_later
from tests.client import REPLAY
from tests.contract.members_bed import (
    BORROWED,
    CLUB,
    MEMBERS,
    MIXED,
    NAMED,
    OPEN,
    REVISITED,
    Side,
    World,
    open_world,
)

Door = Callable[[World, Role, Side], str]
"""Asks for what a source has, as somebody of a role; returns what is told."""


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def world(
    request: pytest.FixtureRequest, _sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """One archive for all doors and roles: reading changes nothing."""
    with open_world(request, _sqlite_template, tmp_path_factory.mktemp("members")) as made:
        yield made


def _asked(path: str) -> Door:
    """Return a door whose path may name the source's code, host, word, page or executions."""

    def ask(world: World, role: Role, side: Side) -> str:
        first, last = side.executions
        page = quote(side.own, safe="")
        given = {"code": side.code, "host": side.host, "word": side.word, "page": page, "own": side.own}
        return world.told(path.format(**given, first=first, last=last, mixed=MIXED), role)

    return ask


def _of_ids(path: str) -> Door:
    """Return a door to single captures: all that a source has."""
    return lambda world, role, side: "".join(world.told(path.format(id=one), role) for one in world.ids[side.code])


def _mistyped(world: World, role: Role, side: Side) -> str:
    """Ask for a word that is nearly one of the source's."""
    told = json.loads(world.told(f"/api/search?q={side.word[:-2]}x{side.word[-1]}", role))
    return json.dumps({name: told[name] for name in told if name != "query"})


def _term(world: World, role: Role, side: Side) -> str:
    """Count a word over time: the answer repeats it, so that its counts must tell."""
    [term] = json.loads(world.told(f"/api/terms?q={side.word}", role))["terms"]
    return side.word if term["captures"] or term["newDocuments"] else ""


def _compared(world: World, role: Role, side: Side) -> str:
    """Ask what changed up to each capture, and between each and the one before."""
    ids = world.ids[side.code]
    asked = [f"/api/changes/compare?toSnapshotId={one}" for one in ids]
    asked += [f"/api/changes/compare?toSnapshotId={one}&fromSnapshotId={ids[0]}" for one in ids]
    told = [world.ask(url, role) for url in asked]
    return "".join(answer.text for answer in told if answer.status_code == 200)


def _exported_changes(world: World, role: Role, side: Side) -> str:
    """Read the changes: they name captures by their numbers."""
    told = world.told("/api/exports/changes?format=jsonl&compressed=false", role)
    return side.word if any(re.search(rf"\b{number}\b", told) for number in world.ids[side.code]) else ""


def _package(path: str) -> Door:
    """Return a door to packages: everything in them is read."""

    def ask(world: World, role: Role, side: Side) -> str:
        answer = world.ask(path.format(code=side.code, first=side.executions[0]), role)
        if answer.status_code == 404:
            return ""
        assert answer.status_code == 200, answer.text
        with zipfile.ZipFile(io.BytesIO(answer.content)) as package:
            raws = [(name, package.read(name)) for name in package.namelist()]
        return "".join(
            (gzip.decompress(raw) if name.endswith(".gz") else raw).decode("utf-8", "replace") for name, raw in raws
        )

    return ask


_AT = digits14(days_later(5))
DOORS: dict[str, tuple[str, Door]] = {
    "search by words": ("GET /api/search", _asked("/api/search?q={word}&includeDuplicates=true")),
    "search of pages": ("GET /api/search", _asked("/api/search?q={word}&view=pages")),
    "search by address": ("GET /api/search", _asked("/api/search?q={page}")),
    "search by host": ("GET /api/search", _asked("/api/search?q=site:{host}")),
    "search by part of an address": ("GET /api/search", _asked("/api/search?q=inurl:{host}")),
    "facets and newest": ("GET /api/search", _asked("/api/search?pageSize=100&includeDuplicates=true")),
    "suggestion": ("GET /api/search", _mistyped),
    "captures like one": ("GET /api/search", _of_ids("/api/search?like={id}&includeDuplicates=true")),
    "near duplicates": ("GET /api/search", _of_ids("/api/search?similarTo={id}&includeDuplicates=true")),
    "terms over time": ("GET /api/terms", _term),
    "snapshot": ("GET /api/snapshot/{id}", _of_ids("/api/snapshot/{id}")),
    "latest": ("GET /api/snapshots/{id}/latest", _of_ids("/api/snapshots/{id}/latest")),
    "timeline": ("GET /api/snapshots/{id}/timeline", _of_ids("/api/snapshots/{id}/timeline")),
    "raw view": ("GET /api/snapshots/raw/{snapshot_id}", _of_ids("/api/snapshots/raw/{id}")),
    "raw view on the replay host": ("GET /api/snapshots/raw/{snapshot_id}", _of_ids("/api/snapshots/raw/{id}")),
    "resolve": ("GET /api/replay/resolve", _asked("/api/replay/resolve?url={page}")),
    "replay": ("ANY /web/{target:path}", _asked(f"/web/{_AT}/{{own}}")),
    "original bytes": ("ANY /web/{target:path}", _asked(f"/web/{_AT}id_/{{own}}")),
    "mixed page": ("ANY /web/{target:path}", _asked(f"/web/{digits14(days_later(0))}id_/{{mixed}}")),
    "timegate": ("ANY /web/{target:path}", _asked("/web/{own}")),
    "timemap link": ("ANY /web/{target:path}", _asked("/web/timemap/link/{own}")),
    "timemap json": ("ANY /web/{target:path}", _asked("/web/timemap/json/{own}")),
    "timemap cdxj": ("ANY /web/{target:path}", _asked("/web/timemap/cdxj/{own}")),
    "calendar": ("ANY /web/{target:path}", _asked("/web/*/{own}")),
    "addresses": ("ANY /web/{target:path}", _asked("/web/*/{host}/*")),
    "cdx": ("GET /cdx", _asked("/cdx?url={page}")),
    "cdx of a domain": ("GET /cdx", _asked("/cdx?url=example.org&matchType=domain")),
    "cdx in json": ("GET /cdx/search/cdx", _asked("/cdx/search/cdx?url={host}&matchType=host&output=json")),
    "changes": ("GET /api/changes", _asked("/api/changes?includeUnchanged=true&pageSize=100&from=2024-01-01")),
    "changes of a source": ("GET /api/changes", _asked("/api/changes?source={code}&includeUnchanged=true")),
    "changes of a crawl": ("GET /api/changes", _asked("/api/changes?jobId={first}&includeUnchanged=true")),
    "newest changes": ("GET /api/changes", _asked("/api/changes?pageSize=100&includeUnchanged=true")),
    "change feed": ("GET /api/changes/rss", _asked("/api/changes/rss")),
    "comparison of captures": ("GET /api/changes/compare", _compared),
    "comparison of crawls": (
        "GET /api/changes/site",
        _asked("/api/changes/site?from={first}&to={last}&includeUnchanged=true"),
    ),
    "export of snapshots": (
        "GET /api/exports/snapshots",
        _asked("/api/exports/snapshots?format=jsonl&compressed=false"),
    ),
    "export of a source": (
        "GET /api/exports/snapshots",
        _asked("/api/exports/snapshots?format=csv&compressed=false&source={code}"),
    ),
    "export of changes": ("GET /api/exports/changes", _exported_changes),
    "index of a crawl": ("GET /api/exports/cdxj", _asked("/api/exports/cdxj?jobId={first}")),
    "index of a source": ("GET /api/exports/cdxj", _asked("/api/exports/cdxj?source={code}")),
    "package": ("GET /api/executions/{id}/wacz", _package("/api/executions/{first}/wacz")),
    "package by name": ("GET /api/executions/{id}.wacz", _package("/api/executions/{first}.wacz")),
    "package of an edition": (
        "GET /api/coverage/{source}/{year}/edition.wacz",
        _package("/api/coverage/{code}/2024/edition.wacz"),
    ),
    "edition": ("GET /api/coverage/{source}/{year}", _asked("/api/coverage/{code}/2024")),
    "edition report": (
        "GET /api/coverage/{source}/{year}/{file}",
        _asked("/api/coverage/{code}/2024/coverage-report.json"),
    ),
    "edition table": ("GET /api/coverage/{source}/{year}/{file}", _asked("/api/coverage/{code}/2024/coverage.csv")),
    "frozen list": ("GET /api/coverage/{source}/{year}/{file}", _asked("/api/coverage/{code}/2024/frozen.jsonl")),
    "sources": ("GET /api/sources", _asked("/api/sources")),
    "crawls of a source": ("GET /api/sources/{code}/editions", _asked("/api/sources/{code}/editions")),
    "figures": ("GET /api/stats", _asked("/api/stats")),
    "home": ("GET /", _asked("/")),
}
"""Every way to what was captured, by the row of its route in the table of permissions."""

NO_DOORS = {
    "GET /api/health": "figures of the whole server, no capture",
    "GET /health": "the same",
    "GET /api/exports": "what can be exported at all",
    "GET /api/exports/columns": "what columns mean",
    "GET /api/search/syntax": "the query language",
    "GET /api/sources/{code}/preview": "always 404",
    "GET /api/usage": "how often the archive is used, by day",
    "GET /api/openapi.json": "the reference",
    "GET /openapi.json": "the reference",
    "GET /docs": "the reference",
    "GET /style.css": "a style sheet",
    "GET /report": "a form",
    "POST /report": "takes a report in, and looks nothing up",
    "POST /api/reports": "the same",
    "ANY /{target:path}": "leads a stray request back to where it came from, and looks nothing up",
}
"""Routes for everybody that tell nothing of captures, and why."""


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


def test_every_route_for_everybody_is_a_door_or_says_why_not() -> None:
    open_to_all = {row for row, asked in PERMISSIONS.items() if asked is Permission.READ}

    assert open_to_all == {row for row, _ in DOORS.values()} | NO_DOORS.keys()


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
    for role, sources in ((Role.ANONYMOUS, {"open"}), (Role.MEMBER, {"club"})):
        found = world.ask("/api/search?q=comoros", role).json()

        assert {one["sourceCode"] for one in found["results"]} == sources, role
        assert found["total"] == 1


def test_a_revisit_shows_no_body_of_members(world: World) -> None:
    [revisit] = [one for one in world.ids["open"] if one not in _known(world, Role.ANONYMOUS)]

    for role, status in ((Role.ANONYMOUS, 404), (Role.MEMBER, 200)):
        assert world.ask(f"/api/snapshot/{revisit}", role).status_code == status
        assert world.followed(f"/web/2024id_/{REVISITED}", role).status_code == status
        assert (world.ask(f"/api/search?q={BORROWED}", role).json()["total"] > 0) == (status == 200)
    assert BORROWED not in _package("/api/executions/{first}/wacz")(world, Role.MEMBER, replaced(OPEN, 4))


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
                told = World(world.archive, [world.servers[server]], world.ids)
                for door in doors:
                    found = DOORS[door][1](told, Role.ANONYMOUS, CLUB)
                    assert _shown(door, found, world, CLUB) == is_shown, (door, visibility, server)
    finally:
        world.show("members")
