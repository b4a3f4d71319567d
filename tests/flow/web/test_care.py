"""The control room's pages about the archive and its machine in Chromium: what they show, do, undo and never lose."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from holdfast.auth.roles import Role
from tests import patience
from tests.flow.faults.bed import until
from tests.flow.web.stage import HOSTILE, HOSTILE_URL, OpenWindow, Stage
from tests.operations_bed import TUS, warc_bytes

pytestmark = pytest.mark.slow
_TOWN = "http://www.kelpsound.example"
_LONG_MS = patience.deadline(40) * 1000


def _edition(stage: Stage) -> str:
    with stage.asking() as client:
        return f"/control/editions/{client.get('/api/admin/annual-editions').json()['items'][0]['editionId']}"


def test_operator_decides_about_a_page_of_an_edition_and_undoes_it(open_window: OpenWindow, stage: Stage) -> None:
    window, url = open_window(role=Role.OPERATOR), f"{_TOWN}/"
    page = window.visit(_edition(stage))
    expect(page.get_by_text("No decisions yet.")).to_be_visible()
    page.get_by_label("Address of a page").fill(url)
    page.get_by_label("Decision", exact=True).select_option("excluded")
    page.get_by_role("button", name="Decide…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("moved to another site")
    dialog.get_by_role("button", name="Exclude").click()
    row = page.get_by_role("table", name="Decisions about pages").get_by_role("row").filter(has_text=url)
    expect(row).to_contain_text("excluded")
    expect(row).to_contain_text("moved to another site")
    complaints = window.complaints("care-edition-decided")
    row.get_by_role("button", name="Undo").click()
    dialog.get_by_label("Reason").fill("a mistake")
    dialog.get_by_role("button", name="Undo").click()

    expect(page.get_by_text("No decisions yet.")).to_be_visible()
    assert complaints == window.faults == []


def test_observer_sees_decisions_without_buttons(open_window: OpenWindow, stage: Stage) -> None:
    page = open_window(role=Role.OBSERVER).visit(_edition(stage))

    expect(page.get_by_text("No decisions yet.")).to_be_visible()
    expect(page.get_by_role("button", name="Decide…")).to_have_count(0)


def test_why_an_address_was_not_crawled_is_told_with_the_line_that_decided(open_window: OpenWindow) -> None:
    window = open_window(role=Role.OPERATOR)
    page = window.visit("/control/explain")
    page.get_by_label("Address").fill(f"{_TOWN}/staff/rota.html#top")
    page.get_by_role("button", name="Explain", exact=True).click()

    robots = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="What robots.txt says"))
    expect(robots.get_by_text("forbidden", exact=True)).to_be_visible()
    expect(robots.get_by_text("3: Disallow: /staff/")).to_be_visible()
    expect(page.get_by_text("forbidden by robots.txt").first).to_be_visible()
    robots.get_by_role("link", name="The whole file").click()
    lit = page.get_by_role("list", name="robots.txt, line by line").locator("[aria-current=true]")
    expect(lit).to_have_text(re.compile(r"3\s*Disallow: /staff/"))
    assert window.faults == []


def test_a_domain_is_slowed_in_a_running_crawl_and_undo_takes_it_back(open_window: OpenWindow, stage: Stage) -> None:
    window = open_window(role=Role.OPERATOR)
    with stage.asking() as client:
        domain = next(
            one["domain"] for one in client.get("/api/domains").json()["items"] if one["domain"].startswith("127.")
        )

        def delay() -> float | None:
            asked = client.get(f"/api/domains/{domain}")
            return None if (found := asked.json()["crawlDelay"]) is None else float(found)

        page = window.visit(f"/control/domains/{domain}")
        page.get_by_label("Seconds between two requests").fill("0.5")
        expect(page.get_by_text("Type a number of seconds from 1")).to_be_visible()
        page.get_by_label("Seconds between two requests").fill("7")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("At most one request every 7 s")).to_be_visible()
        assert delay() == 7
        page.get_by_role("button", name="Undo").click()
        until(lambda: delay() is None, within_s=20, what="the delay is taken back")
    assert window.faults == []


def _send(page: Page, file: Path, code: str) -> None:
    page.get_by_label("Choose files").set_input_files(file)
    page.get_by_label("Source").select_option("A new source…")
    page.get_by_label("ID of the new source").fill(code)
    page.get_by_role("button", name=re.compile("Send 1 file")).click()


def test_a_file_that_is_chosen_is_imported_and_its_page_is_found(
    open_window: OpenWindow, stage: Stage, tmp_path: Path
) -> None:
    window, file = open_window(role=Role.OPERATOR), tmp_path / "<b>dropped.warc.gz"
    body = "<title>A dropped page</title><p>quillwort of the import</p>"
    file.write_bytes(warc_bytes("https://dropped.example/", body=body))
    page = window.visit("/control/imports")

    _send(page, file, "dropped")

    look = page.get_by_role("link", name="Search dropped")
    look.wait_for(timeout=_LONG_MS)
    expect(page.get_by_text("<b>dropped.warc.gz")).to_have_count(1)
    look.click()
    expect(page.get_by_role("link", name="A dropped page").first).to_be_visible(timeout=_LONG_MS)
    window.visit("/search?q=quillwort")
    expect(page.get_by_text("A dropped page").first).to_be_visible()
    assert window.faults == []


def test_an_upload_that_broke_off_goes_on_in_another_tab_where_the_server_is(
    open_window: OpenWindow, stage: Stage, tmp_path: Path
) -> None:
    window, file = open_window(role=Role.OPERATOR), tmp_path / "halved.warc.gz"
    body = "<title>Halved</title><p>spleenwort of the import</p>"
    file.write_bytes(warc_bytes("https://halved.example/", body=body))
    page = window.visit("/control/imports")
    page.route(
        "**/api/admin/uploads/*", lambda route: route.abort() if route.request.method == "PATCH" else route.continue_()
    )
    _send(page, file, "halved")
    expect(page.get_by_text(re.compile("resuming in"))).to_be_visible()
    with stage.asking() as client:
        (half,) = [one for one in client.get("/api/admin/uploads").json()["items"] if one["name"] == file.name]
        headers = {**TUS, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
        sent = client.patch(f"/api/admin/uploads/{half['id']}", headers=headers, content=file.read_bytes()[:100])
        assert sent.status_code == 204, sent.text
    page.close()

    other, offsets = window.context.new_page(), list[str]()
    other.on(
        "request",
        lambda asked: offsets.append(asked.headers["upload-offset"]) if asked.method == "PATCH" else None,
    )
    other.goto(f"{stage.url}/control/imports")
    expect(other.get_by_text("1 file is only partly here")).to_be_visible()
    _send(other, file, "halved")
    other.get_by_role("link", name="Search halved").wait_for(timeout=_LONG_MS)

    assert offsets == ["100"]
    with stage.asking() as client:
        ours = [one for one in client.get("/api/admin/uploads").json()["items"] if one["name"] == file.name]
    assert [(one["id"], one["state"]) for one in ours] == [(half["id"], "imported")]


def test_a_takedown_shows_what_disappears_takes_a_reason_and_is_undone(open_window: OpenWindow, stage: Stage) -> None:
    window, address = open_window(role=Role.ADMINISTRATOR), f"{_TOWN}/services/fees.html"
    page = window.visit("/control/takedowns")
    page.get_by_label("A page's address, or a capture's number").fill(address)
    page.get_by_role("button", name="Show what disappears").click()
    expect(page.get_by_text("4 captures would disappear")).to_be_visible()
    page.get_by_role("button", name="Take down…").click()
    take = page.get_by_role("dialog").get_by_role("button", name="Take down")
    expect(take).to_be_disabled()
    page.get_by_role("dialog").get_by_label("Why").fill(HOSTILE)
    take.click()
    expect(page.get_by_text("4 captures are taken down")).to_be_visible()
    expect(page.get_by_role("table", name="Takedowns").get_by_text(HOSTILE)).to_be_visible()
    with stage.asking() as client:
        hidden = client.get("/cdx", params={"url": address}).text
        page.get_by_role("button", name="Undo").first.click()
        expect(page.get_by_text("captures are taken down")).to_have_count(0)
        shown = client.get("/cdx", params={"url": address}).text

    assert ("fees.html" in hidden, shown.count("text/html")) == (False, 4)
    assert page.locator("img[src=x], main script, main svg[onload]").count() == 0
    assert window.faults == []


def test_a_report_is_triaged_with_notes_and_hostile_words_stay_words(open_window: OpenWindow, stage: Stage) -> None:
    window = open_window(role=Role.OPERATOR)
    report = {"category": "takedown", "description": HOSTILE, "originalUrl": HOSTILE_URL}
    with stage.asking() as client:
        sent = client.post("/api/reports", json=report)
        assert sent.status_code == 201, sent.text
        page = window.visit(f"/control/reports?id={sent.json()['reportId']}")
        expect(page.get_by_text(HOSTILE).first).to_be_visible()
        page.get_by_label("Notes").fill(HOSTILE)
        page.get_by_role("button", name="Save as resolved").click()
        expect(page.get_by_text(re.compile(r"Report \d+ is resolved"))).to_be_visible()
        kept = client.get(f"/api/admin/reports/{sent.json()['reportId']}").json()
    page.get_by_role("link", name="Explain this address").click()
    expect(page.get_by_role("heading", name="How it is spelled")).to_be_visible()

    assert (kept["status"], kept["notes"]) == ("resolved", HOSTILE)
    assert page.locator("img[src=x], main script, main svg[onload]").count() == 0
    assert page.evaluate("window.pwned") is None
    assert window.faults == []


def test_links_and_tokens_are_shown_once_and_what_was_done_stands_in_the_audit_log(
    open_window: OpenWindow, stage: Stage
) -> None:
    window = open_window(role=Role.ADMINISTRATOR)
    page = window.visit("/control/users")
    page.get_by_role("button", name="Invite a user").click()
    page.get_by_label("Name").fill("grace <i>")
    page.get_by_role("button", name="Create link").click()
    expect(page.get_by_label("Name")).to_have_accessible_description(re.compile("1 to 64 letters"))
    # The browser notes each refusal.
    assert ["422" in one for one in window.faults] == [True]
    window.faults.clear()
    page.get_by_label("Name").fill("grace@example.org")
    page.get_by_role("button", name="Create link").click()
    expect(page.get_by_test_id("secret")).to_have_text(re.compile("/setup#token="))
    page.get_by_role("button", name="I've copied it").click()
    expect(page.get_by_test_id("secret")).to_have_count(0)
    page.get_by_role("link", name="grace@example.org").click()
    page.get_by_role("button", name="Disable").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(page.get_by_text("grace@example.org is disabled")).to_be_visible()

    page.goto(f"{window.stage.url}/control/sessions")
    page.wait_for_url(re.compile("/account$"))

    window.visit("/control/audit?action=user")
    expect(page.get_by_role("button", name="user grace@example.org").first).to_be_visible()
    assert window.faults == []


def test_a_webhook_is_added_tested_and_its_failure_is_told(open_window: OpenWindow) -> None:
    window = open_window(role=Role.ADMINISTRATOR)
    page = window.visit("/control/webhooks")
    page.get_by_role("button", name="Add a webhook").first.click()
    page.get_by_label("Address").fill("http://hook.invalid/<b>")
    page.get_by_label("change: all").check()
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="I've copied it").click()
    page.get_by_role("link", name=re.compile("hook.invalid")).click()
    page.get_by_role("button", name="Send a test").click()

    expect(page.get_by_text("webhook: test", exact=True)).to_be_visible(timeout=_LONG_MS)
    page.get_by_text("Message and responses").first.click()
    expect(page.get_by_text(re.compile("no response")).first).to_be_visible(timeout=_LONG_MS)
    # The settings are made anew when the webhook has changed: its new secret is shown all the same.
    page.get_by_role("button", name="New secret").click()
    page.get_by_role("dialog").get_by_role("button", name="Create a new secret").click()
    expect(page.get_by_test_id("secret")).to_have_text(re.compile("^whsec_"))
    page.get_by_role("button", name="I've copied it").click()
    assert window.faults == []


def test_the_archive_is_verified_here_and_its_end_is_told(open_window: OpenWindow) -> None:
    window = open_window(role=Role.OPERATOR)
    page = window.visit("/control/index")
    page.get_by_role("button", name="Verify files").click()
    page.get_by_label(re.compile("Only check that each file exists")).check()
    page.get_by_role("button", name="Start").click()

    done = page.get_by_role("article", name=re.compile("^Verification")).first
    expect(done.get_by_text("done", exact=True)).to_be_visible(timeout=_LONG_MS)
    expect(done.get_by_text(re.compile("damaged: 0"))).to_be_visible()
    assert window.faults == []
