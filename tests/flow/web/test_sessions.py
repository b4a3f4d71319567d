"""Signing in and out in Chromium: the way to the control room and back, by role, and a session that ends on the way."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from holdfast.auth.roles import Role
from tests.flow.web.stage import HOSTILE_URL, PASSWORD, OpenWindow, Stage

pytestmark = pytest.mark.slow


def _sign_in(page: Page, role: Role) -> None:
    page.get_by_label("Name").fill(f"the-{role}")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_the_control_room_asks_who_it_is_and_leads_back(open_window: OpenWindow, stage: Stage) -> None:
    page = open_window().page

    page.goto(f"{stage.url}/control/jobs?status=failed")
    page.wait_for_url(re.compile(r"/signin\?next="))
    _sign_in(page, Role.ADMINISTRATOR)

    page.wait_for_url(re.compile(r"/control/jobs\?status=failed$"))
    menu = page.get_by_role("navigation", name="Control room", exact=True)
    expect(menu.get_by_role("link", name="Jobs")).to_have_attribute("aria-current", "page")
    expect(menu.get_by_role("link", name="Users")).to_be_visible()


def test_a_menu_holds_what_a_role_may_do(open_window: OpenWindow) -> None:
    operator = open_window(role=Role.OPERATOR)
    page = operator.visit("/control")
    menu = page.get_by_role("navigation", name="Control room", exact=True)
    expect(menu.get_by_role("link", name="Health")).to_be_visible()
    assert [menu.get_by_role("link", name=name).count() for name in ("Users", "Takedowns", "Audit")] == [0, 0, 0]

    member = open_window(role=Role.MEMBER).page
    member.goto(f"{operator.stage.url}/control")
    expect(member.get_by_text("This page is for operators")).to_be_visible()
    expect(member.get_by_role("link", name="Control room")).to_have_count(0)
    member.get_by_role("navigation", name="Menu").get_by_role("link", name="Explain").click()
    expect(member.get_by_role("heading", level=1, name="Explain")).to_be_visible()


def test_a_session_that_ends_leads_to_sign_in_and_back_to_the_same_page(open_window: OpenWindow, stage: Stage) -> None:
    window = open_window(role=Role.OPERATOR)
    page = window.visit("/control/explain")  # asks nothing by itself, so that the click comes first
    stage.end_session(window.secret)

    page.get_by_role("navigation", name="Control room", exact=True).get_by_role("link", name="Domains").click()
    expect(page).to_have_url(re.compile(r"/signin\?next=%2Fcontrol%2Fdomains"))
    _sign_in(page, Role.OPERATOR)

    page.wait_for_url(re.compile(r"/control/domains"))


def test_a_live_page_leads_to_sign_in_by_itself_when_the_session_ends(open_window: OpenWindow, stage: Stage) -> None:
    window = open_window(role=Role.OPERATOR)
    page = window.visit("/control")

    stage.end_session(window.secret)

    expect(page).to_have_url(re.compile(r"/signin\?next=%2Fcontrol$"))


def test_what_is_public_is_still_there_when_a_session_ends(open_window: OpenWindow, stage: Stage) -> None:
    window = open_window(role=Role.MEMBER)
    page = window.visit("/sources")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    stage.end_session(window.secret)

    page.get_by_role("link", name="Changes", exact=True).click()

    expect(page.get_by_role("heading", level=1, name="Changes")).to_be_visible()
    expect(page.get_by_role("navigation").get_by_role("link", name="Sign in")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize(("role", "place"), [(Role.OPERATOR, "/control"), (Role.MEMBER, "/")])
def test_sign_in_without_next_lands_where_the_role_can_act(open_window: OpenWindow, role: Role, place: str) -> None:
    window = open_window()
    window.page.goto(f"{window.stage.url}/signin")

    _sign_in(window.page, role)

    window.page.wait_for_url(f"{window.stage.url}{place}")


def test_members_page_says_that_the_session_ended_and_leads_back(open_window: OpenWindow, stage: Stage) -> None:
    with stage.for_members("hostile"):
        window = open_window(role=Role.MEMBER)
        page = window.visit(f"/view/2?url={quote(HOSTILE_URL, safe='')}")
        expect(page.locator("iframe")).to_be_visible()
        stage.end_session(window.secret)

        page.get_by_role("tab", name="Text").or_(page.get_by_role("link", name="Text")).click()
        expect(page.get_by_text("Your session has ended.")).to_be_visible()
        page.get_by_role("status").get_by_role("link", name="Sign in").click()
        _sign_in(page, Role.MEMBER)

        page.wait_for_url(re.compile(r"/view/\d+\?.*mode=text"))
        expect(page.get_by_text("An otter said")).to_be_visible()
        expect(page.get_by_text("Your session has ended.")).to_have_count(0)


def test_who_signs_out_is_nobody_any_more(open_window: OpenWindow) -> None:
    window = open_window(role=Role.ADMINISTRATOR)
    page = window.visit("/search?q=ferry")

    page.get_by_role("button", name="Sign out").click()

    page.wait_for_url(re.compile(r"/$"))
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    expect(page.get_by_role("link", name="Control room")).to_have_count(0)
    assert {cookie["name"] for cookie in window.context.cookies()} <= {"language"}
    assert window.faults == []


def test_on_a_phone_the_menu_is_opened_and_closes_with_a_choice(open_window: OpenWindow) -> None:
    window = open_window(role=Role.ADMINISTRATOR, width=390, theme="dark")
    page = window.visit("/control")

    page.get_by_text("Control room: Overview").click()
    menu = page.get_by_role("navigation", name="Control room, all places")
    menu.get_by_role("link", name="Jobs").click()

    page.wait_for_url(re.compile(r"/control/jobs"))
    expect(menu).to_be_hidden()
