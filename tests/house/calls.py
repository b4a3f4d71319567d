"""What no code of ours may call or import, where SQL may stand, and who may look at the clock."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tests.house.source import Module, docstrings, dotted

_BY_NAME = "only the table of commands loads modules by a name that is not written there"
_LOADERS = ("src/holdfast/cli/main.py",)
_CALLS = {
    "eval": "data never becomes code",
    "exec": "data never becomes code",
    "compile": "data never becomes code",
    "__import__": _BY_NAME,
    "yaml.load": "use a parser that builds no objects",
    "os.system": "use subprocess with a list of arguments",
    "os.popen": "use subprocess with a list of arguments",
    "asyncio.wait_for": "use asyncio.timeout: in Python 3.11 it forgets a cancellation that comes with the result",
    "tempfile.mktemp": "the name can be taken before the file is made",
    "socket.create_connection": "only fetch dials, behind the address guard",
    "asyncio.open_connection": "only fetch dials, behind the address guard",
}
_IMPORTS = {
    "pickle": "data never becomes objects",
    "marshal": "data never becomes objects",
    "shelve": "data never becomes objects",
    "html.parser": "quadratic on hostile input (faults.md, M5); use parse",
    "bs4": "quadratic on hostile input (faults.md, M5); use parse",
    "requests": "only fetch makes requests, behind the address guard",
    "httpx": "only fetch makes requests, behind the address guard",
    "aiohttp": "only fetch makes requests, behind the address guard",
    "urllib3": "only fetch makes requests, behind the address guard",
    "urllib.request": "only fetch makes requests, behind the address guard",
    "http.client": "only fetch makes requests, behind the address guard",
    "pycurl": "only fetch makes requests, behind the address guard",
    "ftplib": "only http and https are asked for",
    "xml.etree": "entities are not safe there; use parse",
    "xml.dom": "entities are not safe there; use parse",
    "xml.sax": "entities are not safe there; use parse",
}
_DIALLING = {
    "socket.create_connection", "asyncio.open_connection", "requests", "httpx", "aiohttp", "urllib3",
    "urllib.request", "http.client", "pycurl",
}  # fmt: skip
_METHODS = {
    "extractall": "read named members one by one, with caps",
    "extract": "read the member, choose the path yourself",
}
_CLOCKS = {
    "time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "datetime.now", "datetime.utcnow",
    "datetime.today", "date.today", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today",
}  # fmt: skip
_SQL = re.compile(
    r"\s*(SELECT\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|CREATE\s+(UNIQUE\s+|TEMP\w*\s+)?(TABLE|INDEX)\s"
    r"|DROP\s+(TABLE|INDEX)\s|ALTER\s+TABLE\s|WITH\s+\w+\s*(\([^)]*\)\s*)?AS\s|PRAGMA\s|BEGIN\s+(IMMEDIATE|EXCLUSIVE)|TRUNCATE\s|COPY\s+\w+\s)"
)
_SQL_BUILDERS = {"select", "insert", "update", "delete", "text", "exists", "union", "union_all"}
_WITHOUT_SQL = tuple(
    f"src/holdfast/{room}/"
    for room in (
        *("api", "cli", "wiring", "worker", "operations"),
        *("crawl", "fetch", "parse", "warc", "urls", "config", "zimit"),
    )
)
"""Rooms that ask others for rows: edges, assembly, and what works on bytes. Only their files of queries hold SQL."""
_WITH_SQL = ("src/holdfast/crawl/signal_pages.py",)
"""Files in them whose noun is a table."""


def forbidden_calls(modules: Iterable[Module]) -> list[str]:
    """Return calls and imports that are forbidden where they stand."""
    found = []
    for module in modules:
        for line, what, why in _used(module):
            if what in _DIALLING and module.room == "fetch":
                continue
            if why == _BY_NAME and module.path in _LOADERS:
                continue
            found.append(f"{module.path}:{line} uses {what}: {why}")
    return found


def _used(module: Module) -> Iterator[tuple[int, str, str]]:
    """Yield (line, name, reason) of everything on the lists above."""
    for node in module.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name}" for name in names]
            for name in names:
                for banned, why in (*_IMPORTS.items(), *_CALLS.items()):
                    if name == banned or name.startswith(f"{banned}."):
                        yield node.lineno, banned, why
        elif isinstance(node, ast.Call):
            called = dotted(node.func)
            if called == "importlib.import_module" and not isinstance(node.args[0], ast.Constant):
                yield node.lineno, called, _BY_NAME
            if called in _CALLS:
                yield node.lineno, called, _CALLS[called]
            if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
                yield node.lineno, node.func.attr, _METHODS[node.func.attr]
            for keyword in node.keywords:
                if keyword.arg == "shell" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value):
                    yield node.lineno, "shell=True", "pass a list of arguments"


def clock_readers(modules: Iterable[Module]) -> list[str]:
    """Return every look at the machine's clock outside clock.py; log.py stamps its own lines."""
    found = []
    for module in modules:
        if module.name in ("clock", "log"):
            continue
        for node in module.nodes:
            names = [dotted(node)] if isinstance(node, ast.Attribute) else []
            if isinstance(node, ast.ImportFrom) and node.module == "time":
                names = [f"time.{alias.name}" for alias in node.names]
            found += [
                f"{module.path}:{getattr(node, 'lineno', 0)} reads {name}: take a Clock as an argument"
                for name in names
                if name in _CLOCKS
            ]
    return found


def may_hold_sql(path: str) -> bool:
    """Return whether SQL may stand in this file."""
    return path.endswith("queries.py") or path in _WITH_SQL or not path.startswith(_WITHOUT_SQL)


def stray_sql(modules: Iterable[Module]) -> list[str]:
    """Return SQL text and SQL builders outside the files that may hold them."""
    found = []
    for module in modules:
        if may_hold_sql(module.path):
            continue
        prose = docstrings(module)
        for node in module.nodes:
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in prose
                and _SQL.match(node.value)
            ):
                found.append(f"{module.path}:{node.lineno} holds SQL: move it to the noun whose rows it reads")
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sqlalchemy":
                built = sorted({alias.name for alias in node.names} & _SQL_BUILDERS)
                found += [
                    f"{module.path}:{node.lineno} builds SQL with {name}: move it to the noun whose rows it reads"
                    for name in built
                ]
    return found


_INTERPRETER = "sys.executable"


def careless_interpreters(package: Iterable[Module]) -> Iterator[str]:
    """Return interpreters that import from the working directory, too: a stray jwt.py there would be run."""
    for module in package:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.List | ast.Tuple) or not node.elts or dotted(node.elts[0]) != _INTERPRETER:
                continue
            first = node.elts[1] if len(node.elts) > 1 else None
            if not (isinstance(first, ast.Constant) and first.value in ("-P", "-I")):
                yield f"{module.path}:{node.lineno}: start {_INTERPRETER} with -P or -I"


_STORES = ("storage", "warc", "db")
"""Rooms that turn the store and key of a row into a file."""
_LOCAL = {
    "crawl": "it appends to files, and repairs and deletes them on the disk that they were written to",
    "imports": "files that it places are synced on the local disk",
    "operations": "it compares registered files with those that a tool left in a folder",
    "worker": "a missing folder shows that its storage is not mounted",
    "cli": "a command verifies, and a person opens, the file at its path",
}
"""Rooms that may ask for the local path of a stored file, and why."""


def joined_captures(modules: Iterable[Module]) -> list[str]:
    """Return the places outside storage that join paths of WARC files, or open them by a path."""
    found = []
    for module in modules:
        if module.room in _STORES:
            continue
        for node in module.nodes:
            line = getattr(node, "lineno", 0)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _names_capture(node.right):
                found.append(f"{module.path}:{line} joins a path of captures: take it from storage.roots")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                name = dotted(node.func).rpartition(".")[2]
                if name == "joinpath" and any(map(_names_capture, node.args)):
                    found.append(f"{module.path}:{line} joins a path of captures: take it from storage.roots")
                if name in ("local_path", "full_path") and module.room not in _LOCAL:
                    found.append(f"{module.path}:{line} asks for the path of a stored file: open the StoredFile")
    return found


def _names_capture(node: ast.expr) -> bool:
    """Return whether an operand is the folder of captures, or the key or path of a row."""
    if isinstance(node, ast.Call) and dotted(node.func) in ("str", "Path") and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.partition("/")[0] == "warcs"
    return isinstance(node, ast.Attribute) and (
        node.attr in ("file_key", "key") or (node.attr == "path" and dotted(node.value) in ("row", "file", "one"))
    )
