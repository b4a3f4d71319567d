"""The page of all fields that records show: to whom, and at which routes."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import holdfast
from holdfast.api.routes import REPLAY_ROUTERS, ROUTERS
from holdfast.assistants.server import TOOLS
from holdfast.records import all_records, shown_fields

INTRO = """# Fields and who sees them

Every field of a record with its audience: everybody, members (who signed in), operators (with observers and
administrators), or no caller at all. A route shows a field to callers who may call the route and belong to the
field's audience. Commands with `--json` show all but the last kind. Written by `make docs`; do not edit.
"""
_LABELS = {
    "public": "visible to everybody",
    "member": "visible to members",
    "operator": "visible to operators",
    "never": "never shown",
}


def _records_in(annotation: Any, found: set[type]) -> None:
    """Add the records that an annotation names, and those in their fields."""
    cls = get_origin(annotation) or annotation
    if isinstance(cls, type) and cls in all_records() and cls not in found:
        found.add(cls)
        for field in shown_fields(cls):
            _records_in(field.type, found)
    for one in get_args(annotation):
        _records_in(one, found)


def entry_points() -> dict[type, list[str]]:
    """Return the routes, and the tools of assistants, that respond with each record."""
    places: defaultdict[type, set[str]] = defaultdict(set)
    for router in (*ROUTERS, *REPLAY_ROUTERS):
        for route in router.routes:
            found: set[type] = set()
            _records_in(route.returned, found)
            for cls in found:
                places[cls].update(f"{method} {route.path}" for method in route.methods)
    for name, tool in TOOLS.items():
        found = set()
        _records_in(get_type_hints(tool.run)["return"], found)
        for cls in found:
            places[cls].add(f"MCP {name}")
    return {cls: sorted(rows) for cls, rows in places.items()}


def fields_page() -> str:
    """Return the page."""
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    places = entry_points()
    parts = [INTRO]
    for cls in sorted(all_records(), key=lambda cls: (cls.__name__, cls.__module__)):
        if not cls.__module__.startswith("holdfast."):
            continue
        parts += [f"## {cls.__name__}", "", *_described(cls, places.get(cls, [])), ""]
    return "\n".join(parts)


def _described(cls: type, rows: list[str]) -> Iterator[str]:
    at = ", ".join(f"`{row}`" for row in rows) or "no route responds with it"
    yield f"`{cls.__module__}`; {at}."
    yield ""
    audiences = {field.name: field.audience.name.lower() for field in shown_fields(cls)}
    by_audience: defaultdict[str, list[str]] = defaultdict(list)
    for field in dataclasses.fields(cls):
        by_audience[audiences.get(field.name, "never")].append(field.name)
    for audience, label in _LABELS.items():
        if audience in by_audience:
            yield f"- {label}: {', '.join(f'`{name}`' for name in by_audience[audience])}"
