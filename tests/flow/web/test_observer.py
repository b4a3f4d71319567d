"""An observer watches and changes nothing: every page of the control room, without a button that the server refuses."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Request, Response, expect

from holdfast.auth.roles import Role
from tests.flow.web.stage import OpenWindow, Stage
from tests.flow.web.test_layout import pages_of

pytestmark = pytest.mark.slow
_READING = re.compile(
    r"Show as table.*|Show more|More.*|Filter|All|Find|Open|Explain|Which line decides\?|Back|Next|From the beginning"
    r"|Close|Copy.*|Follow again|Pause scrolling|Earlier attempts|Items of .*|Reason: .*|Control room.*|Try again"
    r"|Report a problem|Sign out"
)
"""Names of the buttons that only show something."""


def _operating(page: Page) -> list[str]:
    """Return the names of the buttons, links in a button's look and fields that would change something."""
    found = []
    for one in page.locator("main button:visible").all():
        name = (one.get_attribute("aria-label") or one.inner_text()).strip().replace("\n", " ")
        if one.is_enabled() and one.get_attribute("role") != "tab" and not _READING.fullmatch(name):
            found.append(f"button {name!r}")
    for target in ("/control/start", "/control/sources/new"):
        found += [f"link to {target}"] * page.locator(f'main a[href^="{target}"]:visible').count()
    found += ["a file can be chosen"] * page.locator("main input[type=file]:enabled").count()
    return found


def test_observer_opens_every_page_without_a_refused_request_or_a_button(open_window: OpenWindow, stage: Stage) -> None:
    window, found = open_window(role=Role.OBSERVER), list[str]()
    path = ""

    def answered(response: Response) -> None:
        if response.status == 403:
            found.append(f"{path}: 403 for {response.request.method} {response.url}")

    def asked(request: Request) -> None:
        if request.method not in ("GET", "HEAD"):
            found.append(f"{path}: sent {request.method} {request.url}")

    window.page.on("response", answered)
    window.page.on("request", asked)
    for route, path in pages_of(stage).items():
        if not route.startswith("/control"):
            continue
        page = window.visit(path)
        expect(page.get_by_role("status").filter(has_text=re.compile("…$"))).to_have_count(0)
        page.wait_for_load_state("load")
        found += [f"{path}: {one}" for one in _operating(page)]
    assert not found, "\n".join(found)


def test_observer_reads_who_may_open_a_page_that_is_not_for_observers(open_window: OpenWindow) -> None:
    page = open_window(role=Role.OBSERVER).visit("/control/settings")

    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
    expect(page.get_by_text("This page is for administrators")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_operator_sees_the_buttons_that_an_observer_does_not(open_window: OpenWindow) -> None:
    window = open_window(role=Role.OPERATOR)
    for path, name in (
        ("/control/storage", "Clean up"),
        ("/control/frontier", "Recover"),
        ("/control/index", "Verify files"),
    ):
        assert f"button {name!r}" in _operating(window.visit(path))
