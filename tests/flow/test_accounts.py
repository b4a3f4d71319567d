"""Accounts in Chromium: the first administrator, signing in and out, sessions that end, and an identity provider."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from holdfast.api.session_cookie import MARK, SESSION, cookie_name
from holdfast.auth.queries import tokens_of, users
from holdfast.auth.roles import Role
from holdfast.auth.users import add_user, link_url, make_setup_link
from holdfast.clock import Clock, SystemClock
from holdfast.config import ApiSettings, AuthSettings, Settings
from holdfast.db.engine import Database
from holdfast.wiring import prepare
from holdfast.wiring.archive import Archive
from tests import forked, needs
from tests.clock import FakeClock
from tests.flow.replay.stage import find_chromium, serving
from tests.patience import deadline

_PROVIDER = Path(__file__).parent / "oidc"
_PASSWORD = "an otter in the harbour"
_SECRET = "a secret of the tests: &=+%"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for these tests."""
    with sync_playwright() as playwright:
        # The pages of the identity provider ask for a font, which is nothing to wait for.
        rules = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"
        opened = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", rules])
        yield opened
        opened.close()


@contextmanager
def opened(home: Path, clock: Clock, *, port: int = 8060, **auth: Any) -> Iterator[Archive]:
    """Open an empty archive that asks its own machine for a sign-in, too."""
    api = ApiSettings(rate_limiting=False, admin_token="a token of the tests", port=port)
    settings = Settings(home=home, api=api, auth=AuthSettings(**auth))
    prepare(settings)
    archive = Archive(settings=settings, database=Database(settings.database), clock=clock)
    yield archive
    archive.database.close()


def _sign_in(page: Page, password: str) -> None:
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_two_archives_on_one_host_name_keep_their_own_sessions(browser: Browser, tmp_path: Path) -> None:
    clock, context = FakeClock(), browser.new_context()
    with ExitStack() as stack:
        sites = []
        for name in ("first", "second"):
            archive = stack.enter_context(opened(tmp_path / name, clock))
            with archive.database.write() as session:
                add_user(session, clock, name="ada", role=Role.OPERATOR, password=_PASSWORD)
            sites.append(f"http://localhost:{stack.enter_context(serving(archive))}")

        for site in (*sites, *sites):
            page = context.new_page()
            page.goto(f"{site}/account")
            if page.url != f"{site}/account":
                _sign_in(page, _PASSWORD)
            expect(page.get_by_role("heading", name="ada")).to_be_visible()

        with closing(context):
            page = context.new_page()
            page.goto(f"{sites[1]}/account")
            page.get_by_role("button", name="Sign out").click()
            page.wait_for_url(f"{sites[1]}/signin")
            page.goto(f"{sites[0]}/account")
            expect(page.get_by_role("heading", name="ada")).to_be_visible()
            # Signed in once in each: the second visit of a site asked for no password.
            assert page.get_by_role("row").filter(has_text="127.0.0.1").count() == 1


def test_one_time_link_survives_a_reload_and_speaks_french(browser: Browser, tmp_path: Path) -> None:
    clock = FakeClock()
    with opened(tmp_path, clock) as archive, serving(archive) as port:
        site = f"http://localhost:{port}"
        with archive.database.write() as session:
            link = link_url(site, str(make_setup_link(session, clock)))
        with closing(browser.new_context(locale="en-GB")) as context:
            page = context.new_page()
            page.goto(link)
            expect(page.get_by_role("heading", name="Create your administrator account")).to_be_visible()
            page.goto(f"{site}/setup")
            expect(page.get_by_role("heading", name="Create your administrator account")).to_be_visible()
            page.get_by_role("link", name="Français").click()
            expect(page.get_by_role("heading", name="Créez votre compte d’administrateur")).to_be_visible()

            page.get_by_label("Nom").fill("Ada")
            for label in ("Nouveau mot de passe", "Répétez le mot de passe"):
                page.get_by_label(label).fill(_PASSWORD)
            page.get_by_role("button", name="Enregistrer et se connecter").click()
            expect(page.get_by_role("heading", name="Holdfast")).to_be_visible()
            page.goto(f"{site}/account")
            expect(page.get_by_role("button", name="Changer le mot de passe")).to_be_visible()
            assert page.locator("html").get_attribute("lang") == "fr"
            # The link is spent: the page asks for a code again, and does not try the old one for ever.
            page.goto(f"{site}/setup")
            expect(page.get_by_role("heading", name="Ce lien ne fonctionne pas")).to_be_visible()
            page.goto(f"{site}/setup")
            expect(page.get_by_role("heading", name="Lien à usage unique")).to_be_visible()


def test_a_person_signs_in_looks_after_the_account_and_signs_out(browser: Browser, tmp_path: Path) -> None:
    clock = FakeClock()
    with opened(tmp_path, clock) as archive, serving(archive) as port:
        site = f"http://localhost:{port}"
        with archive.database.write() as session:
            link = link_url(site, str(make_setup_link(session, clock)))
        page = browser.new_page()

        # The first administrator, by the link that the server prints.
        page.goto(link)
        page.get_by_label("Name").fill("Ada")
        for label in ("New password", "Repeat password"):
            page.get_by_label(label).fill(_PASSWORD)
        page.get_by_role("button", name="Save and sign in").click()
        expect(page.get_by_role("heading", name="Holdfast")).to_be_visible()
        kept = {(one["name"], one["httpOnly"], one["sameSite"]) for one in page.context.cookies()}
        assert kept == {(cookie_name(archive.settings, one), True, "Strict") for one in (SESSION, MARK)}
        page.goto(link)
        expect(page.get_by_role("heading", name="This link does not work")).to_be_visible()
        assert page.url == f"{site}/setup", "the secret is gone from the address"

        # A token, shown once.
        page.goto(f"{site}/account")
        page.get_by_label("Name of a new token").fill("backup")
        page.get_by_label("watch").check()
        page.get_by_role("button", name="Create token").click()
        token = page.locator("code.secret").inner_text()
        asked = httpx.get(f"{site}/metrics", headers={"Authorization": f"Bearer {token}"}, timeout=deadline(20))
        assert asked.status_code == 200
        page.goto(f"{site}/account")
        assert token not in page.content()

        # A second browser; the new password signs the first one's others out.
        other = browser.new_context().new_page()
        other.goto(f"{site}/account")
        assert other.url == f"{site}/signin?next=%2Faccount"
        _sign_in(other, "not the right one")
        expect(other.get_by_role("alert")).to_contain_text("wrong")
        _sign_in(other, _PASSWORD)
        expect(other.get_by_role("heading", name="ada")).to_be_visible()
        page.goto(f"{site}/account")
        page.get_by_label("Current password").fill(_PASSWORD)
        for label in ("New password", "Repeat password"):
            page.get_by_label(label).fill(f"{_PASSWORD} again")
        page.get_by_role("button", name="Change password").click()
        expect(page.get_by_role("status")).to_contain_text("Other sessions ended: 1")
        other.goto(f"{site}/account")
        assert other.url == f"{site}/signin?next=%2Faccount"
        assert [one["name"] for one in other.context.cookies()] == [cookie_name(archive.settings, MARK)]

        # What ends: by time, and by hand.
        _sign_in(other, f"{_PASSWORD} again")
        expect(other.get_by_role("heading", name="ada")).to_be_visible()
        clock.advance(24 * 3600 + 1)
        other.goto(f"{site}/account")
        assert other.url == f"{site}/signin?next=%2Faccount"
        _sign_in(other, f"{_PASSWORD} again")
        expect(other.get_by_role("heading", name="ada")).to_be_visible()
        other.get_by_role("button", name="Sign out").click()
        other.wait_for_url(f"{site}/signin")
        assert [one["name"] for one in other.context.cookies()] == [cookie_name(archive.settings, MARK)]


def test_demo_prints_a_link_that_signs_a_browser_in(browser: Browser, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast.cli.main", "demo", "--json", "--port", "0", "--home", str(tmp_path)]
    with forked.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            told = json.loads(running.stdout.readline())
            context = browser.new_context()
            page = context.new_page()
            page.goto(told["sign_in_link"])
            page.wait_for_url(f"{told['address']}/")
            session = context.request.get(f"{told['address']}/api/session").json()
            page.goto(told["sign_in_link"])
            expect(page.get_by_role("heading", name="This link does not work")).to_be_visible()
            unsigned = httpx.get(f"{told['address']}/metrics", timeout=deadline(20))
        finally:
            running.terminate()
            out, err = running.communicate(timeout=deadline(60))

    assert (session["user"]["name"], session["user"]["role"]) == ("demo", "administrator")
    assert unsigned.status_code == 401
    assert (out, "no administrator yet" in err) == ("", False)


_EVIL = """<!doctype html><form id=f method=post action="{site}/account/tokens"><input name=name value=stolen>
<input name=scopes value=administer><input name=days value=9></form><pre id=out></pre><script>
Promise.allSettled([
  fetch('{site}/api/account', {{credentials: 'include'}}).then((r) => r.text()),
  fetch('{site}/api/session', {{method: 'DELETE', credentials: 'include', mode: 'no-cors'}}),
  fetch('{site}/api/account/tokens', {{method: 'POST', credentials: 'include', mode: 'no-cors', body: '{{}}'}}),
]).then((told) => {{ document.getElementById('out').textContent = told.map((one) => one.status).join() }});
</script>"""


@contextmanager
def _other_site(body: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_page_of_another_site_neither_reads_nor_changes_anything(browser: Browser, tmp_path: Path) -> None:
    with opened(tmp_path, FakeClock()) as archive, serving(archive) as port:
        site = f"http://localhost:{port}"
        with archive.database.write() as session:
            link = link_url(site, str(make_setup_link(session, archive.clock)))
        page = browser.new_page()
        page.goto(link)
        page.get_by_label("Name").fill("ada")
        for label in ("New password", "Repeat password"):
            page.get_by_label(label).fill(_PASSWORD)
        page.get_by_role("button", name="Save and sign in").click()

        with _other_site(_EVIL.format(site=site)) as evil:
            page.goto(evil)
            page.wait_for_function("document.getElementById('out').textContent")
            assert page.inner_text("#out").split(",")[0] == "rejected"
            with page.expect_navigation() as sent:
                page.evaluate("document.getElementById('f').submit()")
            # SameSite=Strict: the request came without the session, as if no one were signed in.
            assert sent.value.status in (401, 403)

        page.goto(f"{site}/account")
        expect(page.get_by_role("heading", name="ada")).to_be_visible()
        with archive.database.read() as session:
            (user,) = users(session, after=0, limit=10)
            assert tokens_of(session, user.id, after=0, limit=10) == []


@contextmanager
def _identity_provider(redirect_uri: str) -> Iterator[str]:
    node = needs.program("node", package="nodejs")
    needs.peer(_PROVIDER / "node_modules")
    running = subprocess.Popen(
        [node, str(_PROVIDER / "provider.mjs"), redirect_uri],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert running.stdout is not None
        yield f"http://127.0.0.1:{int(running.stdout.readline())}"
    finally:
        running.kill()
        running.communicate()


def _free_port() -> int:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return server.server_port


def test_a_person_signs_in_at_an_identity_provider_with_the_role_that_its_claims_mean(
    browser: Browser, tmp_path: Path
) -> None:
    port = _free_port()
    with _identity_provider(f"http://localhost:{port}/signin/oidc/callback") as issuer:
        auth: dict[str, Any] = {
            "oidc_issuer": issuer,
            "oidc_client_id": "holdfast",
            "oidc_client_secret": _SECRET,
            "oidc_roles": ("staff=member", "archivists=operator", "archive-admins=administrator"),
            "oidc_allow_networks": ("127.0.0.0/8",),
            "oidc_name": "the test provider",
        }
        with opened(tmp_path, SystemClock(), **auth) as archive, serving(archive, port=port):
            site = f"http://localhost:{port}"

            def signed_in_as(name: str) -> Page:
                page = browser.new_context().new_page()
                page.goto(f"{site}/signin?next=/account")
                page.get_by_role("link", name="Sign in with the test provider").click()
                page.locator("input[name=login]").fill(name)
                page.locator("input[name=password]").fill("any")
                page.locator("button[type=submit]").click()
                page.locator("button[type=submit]").click()
                page.wait_for_url(f"{site}/**")
                return page

            for name, role in (("ada", "administrator"), ("otto", "operator"), ("mona", "member")):
                page = signed_in_as(name)
                expect(page.get_by_role("heading", name=name)).to_be_visible()
                assert page.url == f"{site}/account"
                expect(page.get_by_text(f"Your role: {role}.")).to_be_visible()
            refused = signed_in_as("eve")
            expect(refused.get_by_role("alert")).to_contain_text("gives you a role here")
            # An answer that this browser did not ask for, and one that was used already.
            forged = httpx.get(f"{site}/signin/oidc/callback?code=x&state=y", timeout=deadline(20))
            assert (forged.status_code, "set-cookie" in forged.headers) == (403, True)
            with archive.database.read() as session:
                kept = [(user.name, user.issuer, user.subject) for user in users(session, after=0, limit=10)]
            assert kept == [(name, issuer, name) for name in ("ada", "otto", "mona")]
