"""Every way to what was captured: how each is asked, and which route it is. A house test holds the list complete."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable
from urllib.parse import quote

from holdfast.auth.roles import Role
from holdfast.clock import digits14
from tests.archive import days_later
from tests.contract.members_bed import MIXED, SAME, Side, World

Door = Callable[[World, Role, Side], str]
"""Asks for what a source has, as somebody of a role; returns what is told."""


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


def _history_of_both(world: World, role: Role, side: Side) -> str:
    """Read the history of a page that both have: it names captures by their numbers."""
    told = world.told(f"/api/history?url={quote(MIXED, safe='')}", role)
    return side.word if any(re.search(rf"\b{number}\b", told) for number in world.ids[side.code]) else ""


def _parts_of_ids(world: World, role: Role, side: Side) -> str:
    """Read what pages are made of: an answer tells that there is such a capture, and what it names."""
    told = "".join(world.told(f"/api/snapshots/{one}/parts", role) for one in world.ids[side.code])
    return f"{side.word} {told}" if told else ""


def _exported_changes(world: World, role: Role, side: Side) -> str:
    """Read the changes: they name captures by their numbers."""
    told = world.told("/api/exports/changes?format=jsonl&compressed=false", role)
    return side.word if any(re.search(rf"\b{number}\b", told) for number in world.ids[side.code]) else ""


def package_door(path: str) -> Door:
    """Return a door to packages: everything in them is read."""

    def ask(world: World, role: Role, side: Side) -> str:
        answer = world.ask(path.format(code=side.code, first=side.executions[0], word=side.word), role)
        if answer.status_code == 404:
            return ""
        assert answer.status_code == 200, answer.text
        with zipfile.ZipFile(io.BytesIO(answer.content)) as package:
            raws = [(name, package.read(name)) for name in package.namelist()]
        return "".join(
            (gzip.decompress(raw) if name.endswith(".gz") else raw).decode("utf-8", "replace") for name, raw in raws
        )

    return ask


def _page_package(world: World, role: Role, side: Side) -> str:
    """Read the package of every capture."""
    return "".join(package_door(f"/api/snapshots/{one}/wacz")(world, role, side) for one in world.ids[side.code])


def _tool(name: str, **arguments: object) -> Door:
    """Return a door to a tool for assistants; `{…}` in an argument is filled in."""

    def ask(world: World, role: Role, side: Side) -> str:
        given = {"word": side.word, "own": side.own}
        filled = {key: one.format(**given) if isinstance(one, str) else one for key, one in arguments.items()}
        call = {"name": name, "arguments": filled}
        answer = world.ask(
            "/mcp",
            role,
            method="POST",
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
            headers={"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"},
        )
        assert answer.status_code == 200, answer.text
        result = answer.json()["result"]
        # The address that was asked for is repeated.
        told = {key: one for key, one in result.get("structuredContent", {}).items() if key != "url"}
        return "" if result.get("isError") else json.dumps(told)

    return ask


def _tool_history_of_equals(world: World, role: Role, side: Side) -> str:
    """Read when a page was captured that both have with one text: of equal captures it names the first."""
    told = _tool("page_history", url=SAME)(world, role, side)
    return side.word if any(re.search(rf"\b{number}\b", told) for number in world.ids[side.code]) else ""


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
    "provenance": ("GET /api/snapshots/{id}/provenance", _of_ids("/api/snapshots/{id}/provenance")),
    "timeline": ("GET /api/snapshots/{id}/timeline", _of_ids("/api/snapshots/{id}/timeline")),
    "page through time": ("GET /api/history", _asked("/api/history?url={page}")),
    "page of both through time": ("GET /api/history", _history_of_both),
    "view of a capture": ("GET /api/snapshots/{id}/view", _of_ids("/api/snapshots/{id}/view")),
    "record of a capture": ("GET /api/snapshots/{id}/record", _of_ids("/api/snapshots/{id}/record")),
    "text of a capture": ("GET /api/snapshots/{id}/content", _of_ids("/api/snapshots/{id}/content")),
    "markup of a capture": ("GET /api/snapshots/{id}/content", _of_ids("/api/snapshots/{id}/content?form=source")),
    "parts of a capture": ("GET /api/snapshots/{id}/parts", _parts_of_ids),
    "raw view": ("GET /api/snapshots/raw/{snapshot_id}", _of_ids("/api/snapshots/raw/{id}")),
    "raw view on the replay host": ("GET /api/snapshots/raw/{snapshot_id}", _of_ids("/api/snapshots/raw/{id}")),
    "resolve": ("GET /api/replay/resolve", _asked("/api/replay/resolve?url={page}")),
    "replay": ("GET /web/{target:path}", _asked(f"/web/{_AT}/{{own}}")),
    "original bytes": ("GET /web/{target:path}", _asked(f"/web/{_AT}id_/{{own}}")),
    "mixed page": ("GET /web/{target:path}", _asked(f"/web/{digits14(days_later(0))}id_/{{mixed}}")),
    "timegate": ("GET /web/{target:path}", _asked("/web/{own}")),
    "timemap link": ("GET /web/{target:path}", _asked("/web/timemap/link/{own}")),
    "timemap json": ("GET /web/{target:path}", _asked("/web/timemap/json/{own}")),
    "timemap cdxj": ("GET /web/{target:path}", _asked("/web/timemap/cdxj/{own}")),
    "calendar": ("GET /web/{target:path}", _asked("/web/*/{own}")),
    "addresses": ("GET /web/{target:path}", _asked("/web/*/{host}/*")),
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
    "package": ("GET /api/executions/{id}/wacz", package_door("/api/executions/{first}/wacz")),
    "package by name": ("GET /api/executions/{id}.wacz", package_door("/api/executions/{first}.wacz")),
    "package of an edition": (
        "GET /api/coverage/{source}/{year}/edition.wacz",
        package_door("/api/coverage/{code}/2024/edition.wacz"),
    ),
    "editions": ("GET /api/coverage", _asked("/api/coverage")),
    "addresses of an edition": (
        "GET /api/coverage/{source}/{year}/addresses",
        _asked("/api/coverage/{code}/2024/addresses"),
    ),
    "comparison of editions": (
        "GET /api/coverage/{source}/{year}/comparison/{earlier}",
        _asked("/api/coverage/{code}/2025/comparison/2024"),
    ),
    "edition": ("GET /api/coverage/{source}/{year}", _asked("/api/coverage/{code}/2024")),
    "package of a page": ("GET /api/snapshots/{id}/wacz", _page_package),
    "results to take away": ("GET /api/search/export", _asked("/api/search/export?q={word}&format=jsonl")),
    "package of results": ("GET /api/search/export", package_door("/api/search/export?q={word}&format=wacz")),
    "edition report": (
        "GET /api/coverage/{source}/{year}/{file}",
        _asked("/api/coverage/{code}/2024/coverage-report.json"),
    ),
    "edition table": ("GET /api/coverage/{source}/{year}/{file}", _asked("/api/coverage/{code}/2024/coverage.csv")),
    "frozen list": ("GET /api/coverage/{source}/{year}/{file}", _asked("/api/coverage/{code}/2024/frozen.jsonl")),
    "sources": ("GET /api/sources", _asked("/api/sources")),
    "crawls of a source": ("GET /api/sources/{code}/editions", _asked("/api/sources/{code}/editions")),
    "figures": ("GET /api/stats", _asked("/api/stats")),
    "tool: search": ("POST /mcp", _tool("search", query="{word}")),
    "tool: history": ("POST /mcp", _tool("page_history", url="{own}")),
    "tool: history of equal captures": ("POST /mcp", _tool_history_of_equals),
    "tool: text": ("POST /mcp", _tool("page_text", url="{own}")),
    "tool: comparison": ("POST /mcp", _tool("compare", url="{own}", earlier="2024-03-01", later="2024-03-12")),
    "home": ("GET /", _asked("/")),
}
"""Every way to what was captured, by the row of its route in the table of permissions."""

NO_DOORS = {
    "GET /api/health": "figures, of which a test of its own holds that they count what may be seen",
    "GET /health": "the same",
    "GET /health/live": "the same",
    "GET /health/ready": "the same",
    "GET /replay-web-page/": "shows public captures, as tests/flow/replay/test_renderer.py holds",
    "GET /replay-web-page/open/{id}": "the same",
    "GET /replay-web-page/captures/{id}.wacz": "the same",
    "GET /replay-web-page/{file}": "the same",
    "GET /api/exports": "what can be exported at all",
    "GET /api/exports/columns": "what columns mean",
    "GET /api/search/syntax": "the query language",
    "GET /api/sources/{code}/preview": "always 404",
    "GET /api/status": "the newest public capture and how many sources are public, for every viewer",
    "GET /status": "the same",
    "GET /api/usage": "how often the archive is used, by day; a test of its own holds that no members' capture counts",
    "GET /api/openapi.json": "the reference",
    "GET /openapi.json": "the reference",
    "GET /docs": "the reference",
    "GET /style.css": "a style sheet",
    "GET /account.css": "a style sheet",
    "GET /signin": "signing in",
    "POST /signin": "signing in",
    "GET /signin/oidc": "signing in",
    "GET /signin/oidc/callback": "signing in",
    "GET /setup": "making the first account",
    "GET /setup.js": "a script",
    "POST /setup": "making the first account",
    "GET /api/session": "who is signed in",
    "POST /api/session": "signing in",
    "GET /api/auth/me": "who is signed in",
    "POST /api/auth/login": "signing in",
    "GET /members/web/{target:path}": "leads on to /web/, and looks nothing up",
    "OPTIONS /web/{target:path}": "which requests may be sent there; looks nothing up",
    "GET /report": "a form",
    "POST /report": "takes a report in, and looks nothing up",
    "POST /api/reports": "the same",
    **{
        f"{method} /web/{{target:path}}": "looks a captured request up as GET does"
        for method in ("POST", "PUT", "PATCH", "DELETE")
    },
    **{
        f"{method} /{{target:path}}": "leads a stray request back to where it came from, and looks nothing up"
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    },
}
"""Routes for everybody that tell nothing of captures, and why."""
