"""The sign-in and account pages speak English and French: every sentence that they say is translated."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from holdfast.api import account_words
from holdfast.api.routes import account_pages

_HOLES = re.compile(r"\{\w+\}")


def _said() -> set[str]:
    """Return the sentences that the pages pass to `t`, and those of their tables."""
    calls = [node for node in ast.walk(ast.parse(Path(account_pages.__file__).read_text("utf-8")))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "t"]  # fmt: skip
    first = [call.args[0] for call in calls if call.args]
    found = {one.value for one in first if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    tables = (*account_pages._PLACES, *account_pages._THEMES)
    return found | {name for _, name in tables} | set(account_pages._MAY.values())


@pytest.mark.parametrize("sentence", sorted(_said()))
def test_account_page_sentence_has_a_french_translation(sentence: str) -> None:
    french = account_words.french().get(sentence)
    assert french, sentence
    assert _HOLES.findall(french) == _HOLES.findall(sentence)


def test_account_pages_say_no_text_outside_the_catalogue() -> None:
    source = Path(account_pages.__file__).read_text("utf-8")
    # Text between tags, without what a program fills in.
    texts = re.findall(r">([^<>{}\"'\n]*[A-Za-z]{3}[^<>{}\"'\n]*)<", source)
    assert [one for one in texts if one.strip() not in ("Holdfast", "token=")] == []
