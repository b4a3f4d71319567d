"""Each house rule catches what it is for, and leaves alone what is fine."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.house import budgets, calls, files, floors, names, tables
from tests.house.errors import error_tree
from tests.house.source import Module, module_from

Rule = Callable[[Iterable[Module]], list[str]]
_DOC = '"""What it is for."""\n'


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("urls/scope.py", "from holdfast.fetch import guard", "higher floor stations"),
        ("fetch/guard.py", "from holdfast.warc.record import Record", "never import each other"),
        ("fetch/guard.py", "import holdfast.parse.html", "never import each other"),
        ("fetch/guard.py", "from holdfast import parse", "never import each other"),
        ("fetch/guard.py", "importlib.import_module('holdfast.parse.html')", "never import each other"),
        ("jobs/states.py", "from holdfast.index import stream", "stands to its right"),
        ("db/engine.py", "from holdfast.processes import owners", "stands to its right"),
        ("api/app.py", "from holdfast.cli import main", "never import each other"),
        ("frontier/leasing.py", "from ..wiring import open_app", "higher floor assembly"),
        ("fetch/__init__.py", "from ..parse import html", "never import each other"),
        ("plugins/x.py", "", "stands on no floor"),
        ("crawl/x.py", "from holdfast.plugins import y", "stands on no floor"),
        ("__init__.py", "from holdfast import errors", "stays empty"),
    ],
)
def test_an_import_against_the_floors_is_named(path: str, text: str, told: str) -> None:
    (complaint,) = floors.floor_complaints([module_from(f"src/holdfast/{path}", text)])

    assert told in complaint


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "fetch/guard.py",
            "from holdfast.urls import address\nfrom holdfast.fetch.dns import resolve\nfrom . import curl",
        ),
        (
            "crawl/engine.py",
            "from holdfast.fetch import client\nfrom holdfast.warc import writer\nfrom holdfast.sources import x",
        ),
        ("processes/owners.py", "from holdfast.db import engine\nimport json"),
        ("cli/demo.py", "from holdfast.demo import server\nfrom holdfast.wiring import open_app"),
        ("urls/scope.py", "from holdfast.types import Kind"),
    ],
)
def test_imports_down_and_to_the_left_are_fine(path: str, text: str) -> None:
    assert floors.floor_complaints([module_from(f"src/holdfast/{path}", text)]) == []


def test_a_circle_of_imports_is_found_and_a_package_importing_its_parts_is_none() -> None:
    package = module_from("src/holdfast/warc/__init__.py", "from holdfast.warc.a import x")
    a = module_from("src/holdfast/warc/a.py", "from holdfast.warc.b import y")
    b = module_from("src/holdfast/warc/b.py", "from holdfast.warc import a")

    assert floors.cycles([package, a, b]) == ["warc.a -> warc.b -> warc.a"]
    assert floors.cycles([package, a]) == []


_LONG = "def f():\n" + '    """Doc."""\n' + "    x = 1\n" * 61
_FITS = "def f():\n" + '    """Doc\n\n    of some length.\n    """\n' + "    x = 1\n" * 60


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (budgets.long_files, "x = 1\n" * 601, "x = 1\n" * 600),
        (budgets.long_functions, _LONG, _FITS),
        (
            budgets.many_parameters,
            "def f(a, b, c, d, *, e, f, g, h, i): ...",
            "def f(self, a, b, c, d, *, e, f, g, h): ...",
        ),
        (budgets.many_parameters, "def f(a, b, c, d, e, f, *g, **h): ...", "lambda a, b, c, d, e, f, g: 1"),
        (budgets.hidden_imports, "def f():\n    import json", "import json"),
        (
            budgets.hidden_imports,
            "def f():\n    if x:\n        from a import b",
            "def f():\n    try:\n        import extra\n    except ImportError:\n        return None",
        ),
        (budgets.undocumented, "x = 1", _DOC),
        (budgets.forbidden_names, "class CrawlManager: ...", "class CrawlContext: ..."),
        (budgets.banners, "# ------- part two", "# why - because"),
        (names.formatter_off, "x = 1  # fmt: sk" + "ip", "x = 1  # the format skips it"),
        (names.faceless_actors, "x = 1  # some" + "body took it", "x = 1  # another worker took it"),
        (names.faceless_actors, 'def f():\n    """Return who' + 'ever waits."""', "x = 'no" + "body is there'"),
        (names.shared_class_names, "class A: ...\nclass A: ...", "class A: ...\nclass _B: ...\nclass _B: ..."),
        (calls.forbidden_calls, "eval('1')", "evaluate('1')"),
        (calls.forbidden_calls, "import pickle", "import pickletools"),
        (calls.forbidden_calls, "from html.parser import HTMLParser", "from html import escape"),
        (calls.forbidden_calls, "from html import parser", "import html"),
        (calls.forbidden_calls, "import urllib.request", "import urllib.parse"),
        (calls.forbidden_calls, "from socket import create_connection", "from socket import socket"),
        (calls.forbidden_calls, "subprocess.run('x', shell=True)", "subprocess.run(['x'], shell=False)"),
        (calls.forbidden_calls, "archive.extractall(path)", "archive.open(name)"),
        (calls.forbidden_calls, "yaml.load(text)", "toml.load(file)"),
        (calls.forbidden_calls, "importlib.import_module(name)", "importlib.import_module('holdfast.crawl.y')"),
        (calls.clock_readers, "import time\ntime.monotonic()", "clock.monotonic()"),
        (calls.clock_readers, "wait(now=time.time)", "time.sleep(1)"),
        (calls.clock_readers, "from time import monotonic", "from time import sleep"),
        (calls.clock_readers, "datetime.now(UTC)", "clock.now()"),
        (calls.stray_sql, "q = 'SELECT id FROM pages'", "q = 'select a page'"),
        (calls.stray_sql, "q = f'''\n  UPDATE {x} SET a = 1'''\nr = 'UPDATE pages SET a = 1'", '"""SELECT is SQL."""'),
        (calls.stray_sql, "from sqlalchemy import select", "from sqlalchemy.orm import Session"),
    ],
)
def test_a_rule_catches_the_bad_and_leaves_the_good(rule: Rule, bad: str, good: str) -> None:
    assert len(rule([module_from("src/holdfast/crawl/x.py", bad)])) == 1
    assert rule([module_from("src/holdfast/crawl/x.py", good)]) == []


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (budgets.many_parameters, "cli/crawl.py", "def crawl(a, b, c, d, e, f, g, h): ..."),
        (budgets.hidden_imports, "cli/main.py", "def main():\n    import importlib"),
        (calls.forbidden_calls, "cli/main.py", "import importlib\nimportlib.import_module(name)"),
        (calls.forbidden_calls, "fetch/curl.py", "import pycurl"),
        (calls.clock_readers, "clock.py", "time.monotonic()"),
        (calls.stray_sql, "sources/queries.py", "q = 'SELECT 1'"),
        (calls.stray_sql, "frontier/sql.py", "q = 'SELECT 1'"),
        (calls.stray_sql, "db/raw.py", "q = 'SELECT 1'"),
    ],
)
def test_a_rule_knows_its_exceptions(rule: Rule, path: str, text: str) -> None:
    assert rule([module_from(f"src/holdfast/{path}", text)]) == []


@pytest.mark.parametrize("name", ["utils", "crawl_helpers", "common", "job_manager"])
def test_a_name_that_says_nothing_is_refused(name: str) -> None:
    assert budgets.forbidden_names([module_from(f"src/holdfast/crawl/{name}.py", "")])


def test_files_must_not_speak_of_this_machine() -> None:
    bad = [
        "open('/t" + "mp/x')",
        "home = /ro" + "ot/.config",
        "https://files.python" + "hosted.org/x",
        "Co-Auth" + "ored-By: x",
    ]
    good = ["http://example.com/work/1", "network/", "tmp_path / 'x'", "a/tmp/b", "the root/branch"]

    assert len(files.forbidden_text([("f", text) for text in bad])) == len(bad)
    assert files.forbidden_text([("f", text) for text in good]) == []


def test_the_error_tree_is_followed_across_files() -> None:
    root = "class HoldfastError(Exception):\n    code = 'error'\nclass Invalid(HoldfastError):\n    code = 'invalid'"
    leaf = "class Late(Invalid):\n    wrong = 1\nclass Other(ValueError): ..."

    tree = error_tree([module_from("src/holdfast/errors.py", root), module_from("src/holdfast/jobs/x.py", leaf)])

    assert [(error.name, error.code) for error in tree] == [
        ("HoldfastError", "error"),
        ("Invalid", "invalid"),
        ("Late", None),
    ]


def test_a_package_of_one_file_is_a_module() -> None:
    empty = module_from("src/holdfast/a/__init__.py", _DOC)
    full = module_from("src/holdfast/a/__init__.py", f"{_DOC}class A: ...")
    only = module_from("src/holdfast/a/b.py", _DOC)

    assert len(names.lonely_packages([empty, only])) == 1
    assert names.lonely_packages([full, only]) == []


def test_a_requirement_of_a_document_that_is_not_here_is_named() -> None:
    bad = [("a.py", "# as HA-" + "012 asks"), ("docs/x.md", "document 00" + "3 says")]
    good = [("a.py", "RFC 9309, UTF-8, document 12"), ("docs/requirements.md", "HA-" + "012")]

    assert len(names.requirement_numbers(bad)) == 2
    assert names.requirement_numbers(good) == []


@pytest.mark.parametrize(
    ("path", "text", "complaints"),
    [
        ("crawl/x.py", "q = 'DELETE FROM owners'", 1),
        ("crawl/x.py", "q = f'SELECT 1 FROM owners WHERE id = {x}'", 1),
        ("crawl/x.py", "q = 'the owners'", 0),
        ("processes/x.py", "q = 'DELETE FROM owners'", 0),
        ("index/x.py", "q = 'SELECT 1 FROM owners'", 0),
        ("index/x.py", "q = 'UPDATE owners SET pid = 1'", 1),
        ("jobs/x.py", "from holdfast.db.models import Owner\nupdate(Owner)", 1),
        ("jobs/x.py", "from holdfast.db.models import Owner\nOwner(pid=1)", 1),
        ("jobs/x.py", "from holdfast.db.models import Owner\nselect(Owner)", 0),
    ],
)
def test_a_table_is_named_and_written_only_where_it_belongs(path: str, text: str, complaints: int) -> None:
    model = module_from("src/holdfast/db/models/work.py", "class Owner:\n    __tablename__ = 'owners'")
    seen = (model, module_from(f"src/holdfast/{path}", text))

    assert len(tables.foreign_tables(seen) + tables.modelled_writes(seen)) == complaints


@pytest.mark.parametrize(
    "text",
    ['home / "warcs" / code', 'home.joinpath("warcs", code)', "home / row.path", "home / str(row.file_key)",
     "local_path(home, key)"],
)  # fmt: skip
def test_rooms_that_join_paths_of_captures_are_named(text: str) -> None:
    assert calls.joined_captures([module_from("src/holdfast/replay/serving.py", f"x = {text}")])
    assert not calls.joined_captures([module_from("src/holdfast/storage/roots.py", f"x = {text}")])
