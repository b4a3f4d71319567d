"""Who may import whom. The floors are those of docs/architecture.md, low to high; only downwards, and to the left."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.house.source import PACKAGE, Module, dotted

FLOORS: dict[str, tuple[str, ...]] = {
    "words": (
        "values",
        "old_spellings",
        "records",
        "errors",
        "cancellation",
        "clock",
        "log",
        "failpoints",
        "metrics",
        "types",
        "sorting",
        "steps",
        "outside_text",
        "gzip_streams",
        "urls",
    ),
    "ground": ("config", "storage", "db", "events", "processes", "series", "audit"),
    "stations": ("fetch", "parse", "warc", "auth"),
    "flows": (
        "withdrawals",
        "sources", "frontier", "feeds", "jobs", "zimit", "index",
        "noise", "imports", "search", "replay", "changes", "editions",
        "exports", "feedback", "retention", "webhooks",
    ),
    "assembly": ("wiring", "crawl", "worker", "operations", "assistants"),
    "demo": ("demo",),
    "edges": ("api", "cli"),
}  # fmt: skip
APART = ("stations", "edges")
"""Floors whose rooms never import each other, not even to the left."""

_PLACE = {room: (level, at) for level, rooms in enumerate(FLOORS.values()) for at, room in enumerate(rooms)}
_NAMES = list(FLOORS)


def imported(module: Module) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name below the package) of everything a module imports from the package."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith(f"{PACKAGE}."):
                    yield node.lineno, alias.name.removeprefix(f"{PACKAGE}.")
        elif isinstance(node, ast.Call) and dotted(node.func).endswith("import_module"):
            name = str(node.args[0].value) if node.args and isinstance(node.args[0], ast.Constant) else ""
            if name.startswith(".") and len(node.args) == 2 and dotted(node.args[1]) == "__package__":
                yield node.lineno, f"{_package(module)}{name}"
            elif name.startswith(f"{PACKAGE}."):
                yield node.lineno, name.removeprefix(f"{PACKAGE}.")
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            for alias in node.names:
                if base == PACKAGE and not alias.name.startswith("__"):
                    yield node.lineno, alias.name
                if base.startswith(f"{PACKAGE}."):
                    yield node.lineno, f"{base.removeprefix(f'{PACKAGE}.')}.{alias.name}"


def _package(module: Module) -> str:
    """Return the dotted name below the house of the package that a module is in."""
    return module.name if module.is_package else module.name.rpartition(".")[0]


def _base(module: Module, node: ast.ImportFrom) -> str:
    """Return the absolute name that a from-import starts at."""
    if node.level == 0:
        return node.module or ""
    here = [PACKAGE, *filter(None, module.name.split("."))]
    here = here[: len(here) - node.level + (1 if module.is_package else 0)]
    return ".".join([*here, *filter(None, [node.module])])


def floor_complaints(modules: Iterable[Module]) -> list[str]:
    """Return one sentence for each import that goes up, sideways where it must not, or to the right."""
    found = []
    for module in modules:
        if not module.name:
            found += [
                f"{module.path}:{line} imports {name}: the package itself stays empty"
                for line, name in imported(module)
            ]
        elif module.room not in _PLACE:
            found.append(f"{module.path}: `{module.room}` stands on no floor; give it one in tests/house/floors.py")
        else:
            found += [why for line, name in imported(module) if (why := _complaint(module, line, name))]
    return found


def _complaint(module: Module, line: int, name: str) -> str:
    room = name.split(".", 1)[0]
    if room == module.room:
        return ""
    if room not in _PLACE:
        return f"{module.path}:{line} imports `{room}`, which stands on no floor"
    (level, at), (other_level, other_at) = _PLACE[module.room], _PLACE[room]
    where = f"{module.path}:{line} ({module.room}) imports {room}"
    if other_level > level:
        return f"{where} from the higher floor {_NAMES[other_level]}: hand it in as an argument instead"
    if other_level == level and _NAMES[level] in APART:
        return f"{where}: the {_NAMES[level]} never import each other; let a flow or wiring.py join them"
    if other_level == level and other_at > at:
        return f"{where}, which stands to its right on the floor {_NAMES[level]}: hand over by file or row"
    return ""


def cycles(modules: Iterable[Module]) -> list[str]:
    """Return each circle of modules that import one another, as a path."""
    by_name = {module.name: module for module in modules}
    edges: dict[str, list[str]] = {}
    for name, module in by_name.items():
        targets = {target if target in by_name else target.rpartition(".")[0] for _, target in imported(module)}
        edges[name] = sorted(target for target in targets if target in by_name and target != name)
    found: list[str] = []
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> None:
        if name in path:
            found.append(" -> ".join([*path[path.index(name) :], name]))
        elif name not in done:
            for target in edges[name]:
                walk(target, [*path, name])
            done.add(name)

    for name in sorted(edges):
        walk(name, [])
    return found
