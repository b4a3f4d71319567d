"""Whole pages against what they are known to say."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from holdfast.parse import parse_page

_GOLDEN = Path(__file__).parents[2] / "golden" / "parse"


@pytest.mark.parametrize("name", sorted(path.stem for path in _GOLDEN.glob("*.html")))
def test_a_golden_page_says_what_it_always_said(name: str) -> None:
    body = (_GOLDEN / f"{name}.html").read_bytes()

    page = parse_page(body, url="https://river.example/x", media_type="text/html", charset=None, want_text=True)

    said = asdict(page)
    for kind in ("links", "resources"):
        said[kind] = [f"{rel} {url}" for url, rel in said[kind]]
    said["text"] = (page.text or "").split("\n")
    said["problems"] = list(page.problems)
    assert said == json.loads((_GOLDEN / f"{name}.json").read_text())
