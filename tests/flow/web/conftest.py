"""One served archive for all tests of the browser application, and one browser for each file of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser

from tests.flow.web.stage import OpenWindow, Stage, browsing, opener, staged


@pytest.fixture(scope="package")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The demo's archive, served."""
    base = tmp_path_factory.getbasetemp()
    # Workers of one run have folders beside each other.
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    with staged(shared / "demo-archive", tmp_path_factory.mktemp("web")) as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file: while it is open, no other event loop can run in this process."""
    with browsing() as opened:
        yield opened


@pytest.fixture
def open_window(stage: Stage, browser: Browser) -> Iterator[OpenWindow]:
    """Opens windows, which close with the test."""
    with ExitStack() as stack:
        yield opener(stage, browser, stack)
