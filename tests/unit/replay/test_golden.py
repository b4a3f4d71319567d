"""Whole documents rewritten, compared byte for byte with what a person has read: tests/golden/replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.replay.address import Modifier
from holdfast.replay.body import Additions, rewrite_page, rewrite_sheet
from holdfast.replay.links import Deadline, Links

GOLDEN = Path(__file__).parents[2] / "golden" / "replay"


def rewritten(name: str) -> bytes:
    """Return what becomes of a document."""
    links = Links("http://example.org/a/page.html", digits="20240301120000", modifier=Modifier.PAGE)
    deadline = Deadline(SystemClock(), 60)
    body = (GOLDEN / name).read_bytes()
    if name.endswith(".css"):
        return rewrite_sheet(body, None, links, deadline)[0]
    return rewrite_page(body, None, links, deadline, Additions(bar="<!--bar-->", shim="<!--shim-->"))[0]


@pytest.mark.parametrize("name", ["ordinary.html", "quirks.html", "sheet.css"])
def test_a_document_is_rewritten_as_it_was_read_and_approved(name: str) -> None:
    assert rewritten(name) == (GOLDEN / f"{name}.rewritten").read_bytes()
