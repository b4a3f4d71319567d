"""A source from the typed name to its next runs and its edition, in Chromium, with a preview from a real site."""

from __future__ import annotations

import re
from calendar import isleap
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from holdfast.auth.roles import Role
from tests import patience
from tests.flow.web.stage import OpenWindow, Stage
from tests.site import Site

pytestmark = pytest.mark.slow
_SOON_MS = patience.deadline(20) * 1000
_YEAR = datetime.now(UTC).year + 1


def _fill(page: Page, name: str, seed: str) -> None:
    page.get_by_label("Seeds", exact=True).fill(seed)
    page.get_by_label("Name").fill(name)


def _check_leap_days(runs: list[str]) -> None:
    now = datetime.now(UTC)
    first = now.year if (now.month, now.day) < (2, 28) else now.year + 1
    for year, text in enumerate(runs, first):
        assert f"{28 + isleap(year)} Feb {year}" in text, (year, text)


def test_source_form_leads_from_a_name_to_runs_and_an_edition(open_window: OpenWindow, stage: Stage) -> None:
    found: list[str] = []
    with Site.plain(hosts=1, pages=6) as site:
        window = open_window(role=Role.OPERATOR)
        page = window.visit("/control/sources/new")
        preview = page.get_by_role("complementary", name="Preview")
        _fill(page, "Musée d'Été", site.url(0))
        expect(page.get_by_label("ID")).to_have_value("musee-dete", timeout=_SOON_MS)

        # A wrong pattern is marked at its field while it is written, in words, and has the focus when it is refused.
        exclude = page.get_by_label("Exclude", exact=True)
        exclude.fill("/(private")
        expect(page.get_by_role("alert").filter(has_text="a ( is not closed")).to_be_visible(timeout=_SOON_MS)
        expect(preview.get_by_text("Correct “Exclude”")).to_be_visible()
        page.get_by_role("button", name="Create source").click()
        expect(exclude).to_be_focused(timeout=_SOON_MS)
        expect(exclude).to_have_attribute("aria-invalid", "true")
        expect(page.get_by_text("config.exclude")).to_have_count(0)
        found += window.violations()

        # Addresses come from the site itself; the rules of the form are tried on them.
        exclude.fill("/1.html|/p1")
        read = preview.get_by_role("button", name="Read the site")
        expect(read).to_be_enabled(timeout=_SOON_MS)
        read.click()
        addresses = preview.get_by_role("list", name="Addresses in and out of scope").get_by_role("listitem")
        expect(addresses.nth(2)).to_be_visible(timeout=_SOON_MS)
        expect(preview.get_by_text("example/page")).to_have_count(0)
        shown = addresses.all_inner_texts()
        assert all(site.url(0).split("/")[2] in one for one in shown), shown

        # A year in plain words, with its next three dates from the scheduler.
        page.get_by_label("How often").select_option("yearly")
        page.get_by_label("Month", exact=True).select_option("February")
        page.get_by_label("Day of the month").fill("29")
        page.get_by_label("Time zone").select_option("UTC")
        next_runs = page.get_by_role("region", name="Next runs")
        runs = next_runs.locator("ol li")
        expect(next_runs.get_by_text("Yearly on 29 February at 03:00 UTC.")).to_be_visible(timeout=_SOON_MS)
        expect(runs).to_have_count(3)
        _check_leap_days(runs.all_inner_texts())
        window.faults[:] = [one for one in window.faults if "400 (Bad Request)" not in one]
        found += window.complaints("source-form")
        page.get_by_role("button", name="Create source").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Musée d'Été", timeout=_SOON_MS)

    # The id can be changed until the first run.
    page.get_by_label("ID").fill("musee")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The source is saved.")).to_be_visible(timeout=_SOON_MS)
    expect(page.get_by_role("heading", level=1)).to_contain_text("musee")

    # One click plans the edition, and says what it made.
    page.get_by_role("button", name=f"Plan the {_YEAR} edition").click()
    expect(page.get_by_text(f"The {_YEAR} edition is planned")).to_be_visible(timeout=_SOON_MS)
    found += window.complaints("source-planned")
    page.goto(f"{stage.url}/control/scheduler")
    expect(page).to_have_url(re.compile("/control/schedules$"))
    expect(page.get_by_text("yearly on 29 February at 03:00 UTC")).to_be_visible(timeout=_SOON_MS)
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_source_pages_are_accessible_on_a_phone(open_window: OpenWindow, stage: Stage, theme: str) -> None:
    window, found = open_window(theme=theme, width=390, role=Role.OPERATOR), []
    for name, path in {
        "sources": "/control/sources",
        "schedules": "/control/schedules",
        "frontier": "/control/frontier",
    }.items():
        window.visit(path)
        found += window.complaints(f"{name}-{theme}")
    page = window.visit("/control/sources/new")
    _fill(page, "Phone", "https://ex.example/")
    for often in ("weekly", "monthly", "yearly", "every"):
        page.get_by_label("How often").select_option(often)
        expect(page.get_by_role("region", name="Next runs").locator("ol li")).to_have_count(3, timeout=_SOON_MS)
        found += window.complaints(f"source-{often}-{theme}")
    page = window.visit("/control/editions")
    page.get_by_role("button", name="Plan a year").first.click()
    expect(page.get_by_role("button", name=re.compile(r"Plan \d+ crawls?"))).to_be_enabled(timeout=_SOON_MS)
    assert "holdfast " not in page.get_by_role("dialog").inner_text()
    found += window.complaints(f"plan-{theme}")

    assert found == [], "\n".join(found)
