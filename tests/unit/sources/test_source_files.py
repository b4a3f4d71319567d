"""Sources as YAML and TOML: there and back again, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.sources.config import SourceRefused
from holdfast.sources.files import FORMS, read_text, write_text
from holdfast.sources.registry import PRESETS

_texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
_values = st.one_of(st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False),
                    _texts, st.lists(_texts, max_size=3))  # fmt: skip
_entries = st.lists(
    st.dictionaries(_texts.filter(bool), st.one_of(_values, st.dictionaries(_texts.filter(bool), _values, max_size=3)),
                    max_size=4), max_size=3)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_presets_come_back_as_they_were(form: str) -> None:
    entries: list[dict[str, Any]] = [
        {"code": p.code, "name": p.name, "base_url": p.base_url, "enabled": True, "config": p.config} for p in PRESETS
    ]

    assert read_text(write_text(entries, form), form) == entries


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=100, deadline=None)
@given(entries=_entries.filter(bool))
def test_whatever_is_written_is_read_back(form: str, entries: list[dict[str, Any]]) -> None:
    assert read_text(write_text(entries, form), form) == entries


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("yaml", "sources: !!python/object/apply:os.system ['true']"),
        ("yaml", "a: &a [x, x]\nsources: [*a, *a]"),
        ("yaml", "sources: [\n"),
        ("yaml", "[" * 5000),
        ("yaml", "- not a mapping"),
        ("yaml", ""),
        ("toml", "sources = "),
        ("toml", "sources = 3"),
        ("toml", "x = 1"),
    ],
)
def test_what_is_no_list_of_plain_sources_is_refused(form: str, text: str) -> None:
    with pytest.raises(SourceRefused):
        read_text(text, form)


@pytest.mark.parametrize(
    ("form", "text", "field", "words"),
    [
        ("yaml", "sources: [{1: 2}]", "sources[0]", "names are text"),
        ("yaml", "sources: [{code: x, config: {zimit: {tool_options: {null: 2}}}}]",
         "sources[0].config.zimit.tool_options", "names are text"),
        ("yaml", "sources: [{code: x, description: 2026-01-01}]", "sources[0].description", "plain value"),
        ("yaml", 'sources: [{code: x, config: {zimit: {tool_options: {a: "b\\0"}}}}]',
         "sources[0].config.zimit.tool_options.a", "NUL"),
        ("json", '{"sources": [{"code": "x\\ud800"}]}', "sources[0].code", "half of a character"),
        ("json", '{"sources": [{"config": {"delay_s": NaN}}]}', "sources[0].config.delay_s", "finite"),
        ("toml", "[[sources]]\nx = 2024-01-01", "sources[0].x", "plain value"),
        ("json", '{"sources": [' + "[" * 40 + "]" * 40 + "]}", "sources[0]" + "[0]" * 32, "deep"),
        ("yaml", f"sources: [{{code: x, config: {{max_pages: {2**63}}}}}]", "sources[0].config.max_pages", "larger"),
        ("yaml", "# " + "x" * (4 * 1024 * 1024), "file", "longer"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused_by_its_place(form: str, text: str, field: str, words: str) -> None:
    with pytest.raises(SourceRefused, match=words) as refused:
        read_text(text, form)

    assert refused.value.field == field


@pytest.mark.parametrize(
    "text",
    [
        "a." * 1_000_000 + "a = 1",
        "[" + "a." * 1_000_000 + "a]",
        "[[sources]]\nx = {" + "a." * 1_000_000 + "a = 1}",
        "x = " + "[" * 1_000_000,
        "x = " + "{a=" * 500_000,
        'x = """' + '\\"""' * 700_000,
        "x = '''" + "'' " * 700_000,
    ],
    ids=["key", "table", "inline", "arrays", "tables", "open string", "open literal"],
)
def test_a_toml_that_goes_deep_is_refused_before_it_is_parsed(text: str) -> None:
    """The parser takes 12 s and 1.7 GB for 40 KB of a dotted key; for these it would never come back."""
    with pytest.raises(SourceRefused, match=r"nested|does not end"):
        read_text(text, "toml")


def test_dots_and_brackets_inside_strings_and_comments_are_no_depth() -> None:
    dots, brackets = "a." * 100, "[{" * 100
    lines = (
        f"[[sources]]  # {dots}{brackets}",
        f'code = "{dots}{brackets}"',
        f"name = '{dots}'",
        f'long = """{dots}"\n{brackets}"""\n',
    )
    text = "\n".join(lines)

    [entry] = read_text(text, "toml")

    assert (entry["code"], entry["name"]) == (dots + brackets, dots)
    assert entry["long"] == f'{dots}"\n{brackets}'
