"""A page as our client gets it and as a real browser sees it; the browser reaches nothing else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.crawl.probing import BROWSERS, ask_with_browser, browser_command
from holdfast.urls import parse
from tests import needs
from tests.flow.commands import Terminal
from tests.site import Site


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may reach: pytest's own are closed."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture
def browser() -> str:
    """Where a browser is."""
    return next(filter(None, map(shutil.which, BROWSERS)), None) or needs.program("chromium")


WITH_BROWSER = pytest.mark.usefixtures("browser")
LOOPBACK = ("--allow-network", "127.0.0.0/8", "--contact", "t@example.org")


@WITH_BROWSER
def test_a_browser_sees_what_our_client_gets(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = Terminal(tmp_path, capsys).type("probe-browser-fetch", site.url(0, "/"), *LOOPBACK, "--json")

    assert said.code == 0, said
    plain, browser = said.object["plain"], said.object["browser"]
    assert (plain["ok"], plain["status"], browser["ok"], browser["error"]) == (True, 200, True, None)
    assert plain["title"] == browser["title"]
    assert browser["bytes"] > 0


@WITH_BROWSER
def test_a_browser_reaches_no_address_but_the_one_that_was_judged(site: Site, open_folder: Path) -> None:
    other = parse(site.url(1, "/"))
    program = next(filter(None, map(shutil.which, BROWSERS)))
    pinned = browser_command(program, parse(site.url(0, "/")), ip="127.0.0.1", agent="test", folder=open_folder)

    look = ask_with_browser([*pinned[:-1], other.fetch], open_folder, SystemClock(), deadline_s=30)

    assert (look.ok, look.error) == (False, "net::ERR_NAME_NOT_RESOLVED")


def test_a_browser_that_hangs_is_ended(open_folder: Path) -> None:
    program = open_folder / "browser"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)

    look = ask_with_browser([str(program)], open_folder, SystemClock(), deadline_s=0.3)

    assert (look.ok, look.error) == (False, "it took longer than 0.3 s")


def test_nothing_is_asked_of_a_private_address_or_without_a_browser(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(tmp_path, capsys)

    refused = terminal.type("probe-browser-fetch", "http://127.0.0.1/", "--program", "sh", *LOOPBACK[2:])
    assert (refused.code, "127.0.0.1" in refused.err) == (1, True)
    missing = terminal.type("probe-browser-fetch", "https://example.org/", "--program", "no-such-browser")
    assert (missing.code, "no-such-browser" in missing.err) == (1, True)
