"""Text that users read contains none of the phrases of `language.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tests.house.language import page_complaints, phrases_in, string_complaints
from tests.house.source import ROOT, module_from, modules, tracked_files

_ENTRY = re.compile(r'^\s*"[\w.]+":\s*"(.*)",?$', re.M)


def _pages() -> Iterator[tuple[str, str]]:
    for path in tracked_files():
        is_page = path.startswith("docs/") and path.endswith(".md") and not path.startswith("docs/decisions/")
        if path == "README.md" or is_page or (path.startswith("deploy/") and path.endswith(".md")):
            yield path, (ROOT / path).read_text()


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
    elif isinstance(value, str):
        yield value


def test_docs_contain_no_dialect() -> None:
    pages = list(_pages())
    assert len(pages) > 20
    assert page_complaints(pages) == [], "say it in plain English: CONTRIBUTING.md, How we write"


def test_messages_and_help_contain_no_dialect() -> None:
    assert string_complaints(modules("src/holdfast")) == []


def test_openapi_contains_no_dialect() -> None:
    texts = _strings(json.loads((ROOT / "docs" / "openapi.json").read_text()))
    assert sorted({f"{found!r} in {text[:80]}" for text in texts for _, found in phrases_in(text)}) == []


def test_english_ui_strings_contain_no_dialect() -> None:
    files = [path for path in tracked_files() if path.startswith("web/src/language/en")]
    texts = [match[1] for path in files for match in _ENTRY.finditer((ROOT / path).read_text())]
    assert len(texts) > 100
    assert [text for text in texts if list(phrases_in(text))] == []


def test_phrases_are_found_outside_quotations() -> None:
    text = 'It is begun anew. `anew` and "begun" are quoted.\nWhat is it about? Choose what was kept.'
    assert list(phrases_in(text)) == [(1, "begun"), (1, "anew"), (2, "what was")]


def test_each_kind_of_message_is_read() -> None:
    module = module_from(
        "src/holdfast/cli/x.py",
        'raise Invalid(f"{name} is begun, " "anew")\n'
        '_log.info("x.heed", message="what is")\n'
        'class E(Exception):\n    def __init__(self):\n        super().__init__("meant")\n'
        '@app.command()\ndef show():\n    """Show a wish."""\n'
        'option(help="is none")\n'
        'def inner():\n    """Not shown: what is."""\n    return "meant"\n',
    )
    phrases = [one.split("says ")[1].strip("'") for one in string_complaints([module])]
    assert sorted(phrases) == ["anew", "begun", "heed", "is none", "meant", "what is", "wish"]
