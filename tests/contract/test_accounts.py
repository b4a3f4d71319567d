"""Accounts over HTTP on both databases: signing in and out, what is throttled, what ends, and what is audited."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher

from holdfast import config
from holdfast.api.session_cookie import MARK, SESSION, cookie_name
from holdfast.audit import audit_events
from holdfast.auth import passwords, throttle
from holdfast.auth.errors import LastAdministrator, PasswordRefused, SignInFailed, SignInThrottled, UserExists
from holdfast.auth.passwords import is_password
from holdfast.auth.queries import users
from holdfast.auth.roles import Role
from holdfast.auth.sessions import Browser, SignIn
from holdfast.auth.users import (
    ProviderIdentity,
    add_user,
    change_user,
    find_user,
    make_link,
    make_setup_link,
    set_password,
)
from holdfast.config import AuthSettings
from holdfast.db.engine import Database
from holdfast.wiring.archive import Archive
from tests.client import APP, Client, asking
from tests.clock import FakeClock

PASSWORD = "an otter in the harbour"
ADMIN = {"x-admin-token": "the admin token of this test"}


@pytest.fixture
def real_passwords() -> None:
    """Hashes as they are kept, for a test on the work that they are."""


@pytest.fixture(autouse=True)
def _quick_passwords(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash with little memory: a sign-in is 50 ms of CPU otherwise, and this file signs in two hundred times."""
    if "real_passwords" not in request.fixturenames:
        monkeypatch.setattr(passwords, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


class Site:
    """A server with accounts, and browsers that sign in."""

    def __init__(self, client: Client, archive: Archive, clock: FakeClock) -> None:
        self.client, self.archive, self.clock = client, archive, clock

    def user(self, name: str, role: Role = Role.MEMBER) -> int:
        """Make a user with the one password of this file."""
        with self.archive.database.write() as session:
            return add_user(session, self.clock, name=name, role=role, password=PASSWORD).id

    def sign_in(self, name: str, password: str = PASSWORD, **headers: str) -> httpx.Response:
        """Sign in as a program or a page does."""
        return self.client.post("/api/session", json={"name": name, "password": password}, headers=headers)

    def headers(self, name: str) -> dict[str, str]:
        """Return what a page of ours sends once its reader has signed in."""
        answer = self.sign_in(name)
        assert answer.status_code == 200, answer.text
        cookie = answer.headers["set-cookie"].partition(";")[0]
        return {"cookie": cookie, "origin": APP, "x-csrf-token": answer.json()["csrfToken"]}

    def ask(self, method: str, path: str, headers: dict[str, str], **options: Any) -> httpx.Response:
        """Ask, and let what other processes remember grow old first."""
        self.clock.advance(1.5)
        return self.client.request(method, path, headers=headers, **options)

    def deeds(self, action: str) -> list[tuple[str, str]]:
        """Return what was audited: who, of whom."""
        with self.archive.database.read() as session:
            return [(row.actor, row.subject) for row in audit_events(session, action=action)]


@pytest.fixture
def site(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Site]:
    """A server on each kind of database."""
    settings = config.load(home=tmp_path, database_url=migrated_url)
    token = config.ApiSettings(rate_limiting=False, admin_token=ADMIN["x-admin-token"])
    settings = settings.model_copy(update={"api": token})
    database = Database(migrated_url)
    archive = Archive(settings=settings, database=database, clock=clock)
    with asking(archive) as client:
        yield Site(client, archive, clock)
    database.close()


def test_a_user_signs_in_and_out(site: Site) -> None:
    user_id = site.user("ada", Role.OPERATOR)
    answer = site.sign_in(" Ada ")
    cookie, mark = answer.headers.get_list("set-cookie")
    headers = {"cookie": cookie.partition(";")[0]}
    shown = site.client.get("/api/session", headers=headers).json()
    assert cookie.startswith(f"{cookie_name(site.archive.settings)}=")
    assert set(cookie.split("; ")[1:]) == {"Path=/", "Max-Age=86400", "HttpOnly", "SameSite=Strict"}
    assert mark.startswith(f"{cookie_name(site.archive.settings, MARK)}=")
    assert set(mark.split("; ")[1:]) == {"Path=/", f"Max-Age={180 * 86_400}", "HttpOnly", "SameSite=Strict"}
    assert shown["user"] == {"id": user_id, "name": "ada", "role": "operator"}
    assert shown["permissions"] == ["read", "own_account", "explain", "watch", "operate"]
    assert site.client.get("/api/v1/jobs", headers=headers).status_code == 200

    leaving = {**headers, "origin": APP, "x-csrf-token": shown["csrfToken"]}
    gone = site.client.request("DELETE", "/api/session", headers=leaving)
    assert (gone.status_code, "Max-Age=0" in gone.headers["set-cookie"]) == (204, True)
    assert site.client.get("/api/session", headers=headers).status_code == 401
    assert site.client.get("/api/session").json()["authenticated"] is False
    assert site.deeds("session") == [("ada@127.0.0.1", "user ada")] * 2


def test_outside_loopback_the_cookie_is_bound_to_the_host_and_to_https(site: Site) -> None:
    site.user("ada")
    api = site.archive.settings.api.model_copy(update={"site_url": "https://archive.example"})
    settings = site.archive.settings.model_copy(update={"api": api})
    outside = Archive(settings=settings, database=site.archive.database, clock=site.clock)
    with asking(outside) as client:
        answer = client.post("/api/session", json={"name": "ada", "password": PASSWORD})

    for cookie, purpose in zip(answer.headers.get_list("set-cookie"), (SESSION, MARK), strict=True):
        assert cookie.startswith(f"{cookie_name(settings, purpose, is_secure=True)}=")
        assert "Secure" in cookie.split("; ")


def test_signing_in_again_ends_the_session_that_the_browser_had(site: Site) -> None:
    site.user("ada")
    first = site.headers("ada")
    second = site.sign_in("ada", cookie=first["cookie"])

    assert second.status_code == 403, "a browser says which page sends it"
    again = site.sign_in("ada", cookie=first["cookie"], origin=APP)
    assert again.status_code == 200
    assert site.ask("GET", "/api/account", {"cookie": first["cookie"]}).status_code == 401


def test_a_session_ends_after_a_day(site: Site) -> None:
    site.user("ada")
    headers = site.headers("ada")

    site.clock.advance(86_400 - 10)
    assert site.ask("GET", "/api/account", headers).status_code == 200
    site.clock.advance(10)
    late = site.ask("GET", "/api/account", headers)
    assert (late.status_code, late.json()["code"]) == (401, "credential_wrong")
    assert "Max-Age=0" in late.headers["set-cookie"]


def test_what_one_process_ends_is_over_in_another_within_two_seconds(site: Site) -> None:
    user_id = site.user("ada")
    headers = site.headers("ada")
    made = site.ask("POST", "/api/account/tokens", headers, json={"name": "x", "scopes": ["own_account"]}).json()
    bearer = {"authorization": f"Bearer {made['secret']}"}
    with asking(site.archive, peer="127.0.0.2") as other:
        assert [other.get("/api/account", headers=one).status_code for one in (headers, bearer)] == [200, 200]

        site.ask("PATCH", f"/api/admin/users/{user_id}", ADMIN, json={"disabled": True})

        site.clock.advance(1.1)
        assert [other.get("/api/account", headers=one).status_code for one in (headers, bearer)] == [401, 401]


def test_guesses_are_throttled_for_an_account_and_for_an_address_in_all_processes(site: Site) -> None:
    for name in ("ada", "bob"):
        site.user(name)
    with asking(site.archive) as other, asking(site.archive, peer="127.0.0.2") as elsewhere:
        tries = [client.post("/api/session", json={"name": "ada", "password": f"guess {number}"}).status_code
                 for number in range(6) for client in (site.client, other)]  # fmt: skip
        late = site.sign_in("ada")
        assert tries == [401] * 10 + [429] * 2
        assert (late.status_code, late.json()["code"]) == (429, "sign_in_throttled"), "also with the right one"
        assert 0 < int(late.headers["retry-after"]) <= 900
        assert site.sign_in("bob").status_code == 200, "another account is not kept waiting"
        owner = elsewhere.post("/api/session", json={"name": "ada", "password": PASSWORD})
        assert owner.status_code == 200, "nor is the same one from elsewhere"

        # One guess for each of many names, which may or may not be users: counted by address.
        many = [site.sign_in(f"user-{number}", "guess").status_code for number in range(21)]
        assert many == [401] * 20 + [429]
        assert elsewhere.post("/api/session", json={"name": "bob", "password": PASSWORD}).status_code == 200

    site.clock.advance(901)
    assert site.sign_in("ada").status_code == 200


def test_guesses_of_a_clock_that_was_a_year_ahead_keep_nobody_waiting_for_a_year(site: Site) -> None:
    site.user("ada")
    site.clock.shift_wall(365 * 86_400)
    guesses = [site.sign_in("ada", f"guess {number}").status_code for number in range(11)]
    site.clock.shift_wall(-365 * 86_400)

    assert guesses == [401] * 10 + [429]
    assert site.sign_in("ada").status_code == 200


def _signs_in(sign_in: SignIn, password: str = PASSWORD, **browser: Any) -> str | None:
    """Return the mark that a browser is given; SignInFailed, SignInThrottled."""
    return sign_in.with_password("ada", password, Browser(agent="", **browser)).mark


def test_known_browser_signs_in_during_guesses_from_everywhere(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "FAILURES_PER_ACCOUNT", 20)
    site.user("ada")
    site.user("eve")
    sign_in = SignIn(site.archive.database, site.clock, AuthSettings())
    mark = _signs_in(sign_in, address="192.0.2.200")
    others = sign_in.with_password("eve", PASSWORD, Browser(address="192.0.2.201", agent="")).mark
    for number in range(20):
        with pytest.raises(SignInFailed):
            _signs_in(sign_in, f"guess {number}", address=f"192.0.2.{number}")

    for unknown in (None, "", others, f"{mark}x", "9999999999.x.y", "é" * 9, "x" * 5000):
        with pytest.raises(SignInThrottled):
            _signs_in(sign_in, address="198.51.100.1", mark=unknown)
    assert _signs_in(sign_in, address="198.51.100.1", mark=mark), "wherever it is now"

    # It is no way to guess, either.
    for number in range(10):
        with pytest.raises(SignInFailed):
            _signs_in(sign_in, f"guess {number}", address=f"192.0.2.{number}", mark=mark)
    with pytest.raises(SignInThrottled):
        _signs_in(sign_in, address="198.51.100.1", mark=mark)


def test_a_mark_ends_with_the_password_and_in_time(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "FAILURES_PER_ACCOUNT", 1)
    user_id = site.user("ada")
    sign_in = SignIn(site.archive.database, site.clock, AuthSettings())
    browser = Browser(address="192.0.2.1", agent="")
    old = _signs_in(sign_in, address="192.0.2.1")
    sign_in.change_password(user_id, current=PASSWORD, new=f"{PASSWORD} again", browser=browser, keep=None)
    new = _signs_in(sign_in, f"{PASSWORD} again", address="192.0.2.1")
    with pytest.raises(SignInFailed):
        _signs_in(sign_in, "guess", address="192.0.2.9")

    with pytest.raises(SignInThrottled):
        _signs_in(sign_in, f"{PASSWORD} again", address="192.0.2.1", mark=old)
    assert _signs_in(sign_in, f"{PASSWORD} again", address="192.0.2.1", mark=new)
    site.clock.advance(180 * 86_400)
    with pytest.raises(SignInFailed):
        _signs_in(sign_in, "guess", address="192.0.2.9")
    with pytest.raises(SignInThrottled):
        _signs_in(sign_in, f"{PASSWORD} again", address="192.0.2.1", mark=new)


def test_guesses_do_not_keep_a_signed_in_user_from_a_new_password(site: Site) -> None:
    site.user("ada")
    mine = site.headers("ada")
    assert {site.sign_in("ada", "guess").status_code for _ in range(11)} == {401, 429}

    changed = site.ask("PUT", "/api/account/password", mine, json={"current": PASSWORD, "new": f"{PASSWORD} again"})

    assert changed.status_code == 200


def test_of_two_new_passwords_at_once_the_one_that_knew_the_old_one_last_is_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_id = site.user("ada")
    sign_in = SignIn(site.archive.database, site.clock, AuthSettings())
    browser = Browser(address="192.0.2.1", agent="")
    place = "holdfast.auth.sessions.is_password"

    def owner_is_quicker(stored: str | None, given: str) -> bool:
        monkeypatch.setattr(place, is_password)
        with site.archive.database.write() as session:
            set_password(session, site.clock, find_user(session, user_id), f"{PASSWORD} of the owner")
        return is_password(stored, given)

    monkeypatch.setattr(place, owner_is_quicker)
    with pytest.raises(PasswordRefused, match="meanwhile"):
        sign_in.change_password(user_id, current=PASSWORD, new=f"{PASSWORD} of a thief", browser=browser, keep=None)

    assert _signs_in(sign_in, f"{PASSWORD} of the owner", address="192.0.2.1")


def test_of_a_hundred_guesses_at_once_ten_are_looked_at(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "FAILURES_PER_ADDRESS", 1000)
    monkeypatch.setattr(throttle, "FAILURES_PER_ACCOUNT", 10)
    site.user("ada")
    sign_in = SignIn(site.archive.database, site.clock, AuthSettings())

    def guess(number: int) -> type[Exception]:
        try:
            sign_in.with_password("ada", f"guess {number}", Browser(address=f"192.0.2.{number}", agent=""))
        except (SignInFailed, SignInThrottled) as exc:
            return type(exc)
        raise AssertionError

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(guess, range(100)))

    assert (found.count(SignInFailed), found.count(SignInThrottled)) == (10, 90)


@pytest.mark.parametrize("password", ["x" * 1024, "x" * 72 + "\0", "\0", "\u0000otter" * 9, "\ufdfa" * 200])
def test_strange_passwords_are_wrong_and_nothing_else(site: Site, password: str) -> None:
    site.user("ada")
    answer = site.sign_in("ada", password)

    assert answer.status_code in (401, 422), answer.text
    assert site.sign_in("ada", "x" * 2_000_000).status_code == 413


def test_a_password_in_the_field_for_the_name_stands_in_no_log(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.user("ada")
    site.sign_in(PASSWORD, "x")
    site.sign_in("ada", "x")

    logged = capsys.readouterr()
    assert PASSWORD not in logged.out + logged.err
    assert '"account": "ada"' in logged.out + logged.err or "account='ada'" in logged.out + logged.err
    assert (logged.out + logged.err).count("auth.sign_in_failed") == 2


@pytest.mark.usefixtures("real_passwords")
def test_an_unknown_user_is_refused_as_slowly_as_a_known_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("FAILURES_PER_ACCOUNT_AND_ADDRESS", "FAILURES_PER_ADDRESS"):
        monkeypatch.setattr(throttle, limit, 99)
    site.user("ada")
    sign_in = SignIn(site.archive.database, site.clock, AuthSettings())

    def took(name: str) -> float:
        began = time.thread_time()
        with pytest.raises(SignInFailed):
            sign_in.with_password(name, "not the right one", Browser(address="192.0.2.1", agent=""))
        return time.thread_time() - began

    took("ada")
    known, unknown = zip(*[(took("ada"), took("no-such-user")) for _ in range(9)], strict=True)

    # Work, not time: CPU of this thread, of which hashing is nearly all. The least of nine: a neighbour that takes the
    # memory's bandwidth makes the same work dearer, never cheaper.
    assert abs(min(known) - min(unknown)) < 0.005 + 0.2 * min(known)


def test_setup_link_makes_the_first_administrator_once(site: Site) -> None:
    site.user("bob")
    with site.archive.database.write() as session:
        old, secret = make_setup_link(session, site.clock), make_setup_link(session, site.clock)

    def use(token: str | None, name: str = "ada") -> int:
        form = {"token": token, "name": name, "new": PASSWORD, "again": PASSWORD}
        return site.client.post("/setup", data=form, headers={"origin": APP}).status_code

    assert use(old) == 404, "a newer one was printed"
    assert (use(secret, "admin"), use(secret, "bob")) == (422, 422), "a name with a meaning of its own, or taken"
    assert use(secret, "a" * 65) == 422, "a name that is too long is never cut off"
    assert [use(secret), use(secret, "eve")] == [303, 404]
    with site.archive.database.write() as session:
        assert make_setup_link(session, site.clock) is None
        assert [user.role for user in users(session, after=0, limit=9)] == ["member", "administrator"]


def test_an_invited_user_chooses_a_password_with_a_link_that_works_once(site: Site) -> None:
    made = site.ask("POST", "/api/admin/users", ADMIN, json={"name": "Bob@Example.org", "role": "operator"})
    token = made.json()["link"].partition("token=")[2]
    form = {"token": token, "new": PASSWORD, "again": PASSWORD}

    assert (made.status_code, made.json()["user"]["state"]) == (201, "invited")
    assert site.sign_in("bob@example.org").status_code == 401
    opened = site.client.post("/setup", data={"token": token}, headers={"origin": APP})
    assert (opened.status_code, "Bob@Example.org".lower() in opened.text) == (200, True)
    assert site.client.get("/setup").text.count(token) == 0
    short = site.client.post("/setup", data={**form, "new": "short", "again": "short"}, headers={"origin": APP})
    assert short.status_code == 422
    assert site.client.post("/setup", data=form, headers={"origin": APP}).status_code == 303
    assert site.client.post("/setup", data=form, headers={"origin": APP}).status_code == 404
    assert site.sign_in("bob@example.org").status_code == 200


def test_sign_in_link_begins_one_session_and_keeps_the_password(site: Site) -> None:
    def use(secret: str) -> httpx.Response:
        return site.client.post("/setup", data={"token": secret}, headers={"origin": APP})

    site.user("ada", Role.ADMINISTRATOR)
    with site.archive.database.write() as session:
        old = make_link(session, site.clock, find_user(session, "ada"), signs_in=True)
        secret = make_link(session, site.clock, find_user(session, "ada"), signs_in=True)
    changing = {"token": secret, "new": f"{PASSWORD} again", "again": f"{PASSWORD} again"}
    refused = site.client.post("/setup", data=changing, headers={"origin": APP})
    answers = [use(old), refused, use(secret), use(secret)]
    site.user("bob")
    with site.archive.database.write() as session:
        chooses = make_link(session, site.clock, find_user(session, "ada"))
        signs_in = make_link(session, site.clock, find_user(session, "bob"), signs_in=True)
    foreign = site.client.post("/setup", data={"token": signs_in}, headers={"origin": "https://evil.example"})

    assert [one.status_code for one in answers] == [404, 404, 303, 404]
    assert f"{cookie_name(site.archive.settings)}=" in answers[2].headers["set-cookie"]
    assert answers[2].headers["location"] == "/"
    asked = use(chooses)
    assert (asked.status_code, "set-cookie" in asked.headers, foreign.status_code) == (200, False, 403)
    assert site.sign_in("ada").status_code == 200, "with the password as it was"


def test_the_last_administrator_stays(site: Site) -> None:
    ada, bob = site.user("ada", Role.ADMINISTRATOR), site.user("bob", Role.ADMINISTRATOR)
    headers = site.headers("ada")

    assert site.ask("PATCH", f"/api/admin/users/{bob}", headers, json={"role": "member"}).status_code == 200
    for change in ({"role": "operator"}, {"disabled": True}):
        kept = site.ask("PATCH", f"/api/admin/users/{ada}", headers, json=change)
        assert (kept.status_code, kept.json()["code"]) == (409, "last_administrator")
    assert site.ask("DELETE", f"/api/admin/users/{ada}", headers).status_code == 409
    assert site.ask("DELETE", f"/api/admin/users/{bob}", headers).status_code == 204
    assert site.deeds("user.deleted") == [("ada@127.0.0.1", "user bob")]


def test_two_administrators_that_demote_each_other_at_once_leave_one(site: Site) -> None:
    ids = [site.user(name, Role.ADMINISTRATOR) for name in ("ada", "bob")]

    def demote(user_id: int) -> bool:
        try:
            with site.archive.database.write() as session:
                change_user(session, site.clock, user_id, role=Role.MEMBER)
        except LastAdministrator:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(demote, ids)) == [False, True]


def _identity(**changed: Any) -> ProviderIdentity:
    return ProviderIdentity(
        **{"issuer": "https://login.example", "subject": "7", "name": "Ada L", "role": Role.MEMBER, **changed}
    )


def test_what_a_provider_calls_a_user_is_not_who_did_it(site: Site) -> None:
    sign_in = SignIn(site.archive.database, site.clock, AuthSettings())
    browser = Browser(address="192.0.2.1", agent="")
    begun = sign_in.with_identity(_identity(name="admin"), browser)
    again = sign_in.with_identity(_identity(name=f"root@host\n{'x' * 5000}"), browser)

    assert begun.principal.name == again.principal.name == "admin-2"
    assert site.deeds("session.begun") == [("admin-2@192.0.2.1", "user admin-2")] * 2
    assert site.deeds("user.created") == [("admin-2@192.0.2.1", "user admin-2")]
    assert begun.mark is None, "there is no password to guess"


def test_a_new_user_that_signs_in_twice_at_once_is_made_once(site: Site) -> None:
    sign_in = SignIn(site.archive.database, site.clock, AuthSettings())

    def enter(number: int) -> int | None:
        return sign_in.with_identity(_identity(), Browser(address=f"192.0.2.{number}", agent="")).principal.user_id

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(enter, range(4)))) == 1


def test_of_two_who_make_the_same_user_at_once_one_is_told(site: Site) -> None:
    def make(_number: int) -> bool:
        try:
            site.user("ada")
        except UserExists:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(make, range(4))) == [False, False, False, True]


def test_a_new_password_ends_the_other_sessions(site: Site) -> None:
    site.user("ada")
    mine, other = site.headers("ada"), site.headers("ada")
    change = {"current": PASSWORD, "new": f"{PASSWORD} again"}

    wrong = site.ask("PUT", "/api/account/password", mine, json={**change, "current": "a guess of mine"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "password_refused")
    assert site.ask("PUT", "/api/account/password", mine, json=change).json() == {"ended": 1}
    assert site.ask("GET", "/api/account", mine).status_code == 200
    assert site.ask("GET", "/api/account", other).status_code == 401
    assert site.sign_in("ada").status_code == 401


def test_a_token_is_shown_once_limited_and_revoked(site: Site) -> None:
    user_id = site.user("ada", Role.OPERATOR)
    headers = site.headers("ada")
    form = {"name": "backup", "scopes": ["own_account", "watch"], "days": 7}
    made = site.ask("POST", "/api/account/tokens", headers, json=form).json()
    bearer = {"authorization": f"Bearer {made['secret']}"}

    assert made["secret"].startswith("hf_")
    listed = site.ask("GET", "/api/account/tokens", headers).text
    assert made["secret"] not in listed
    assert site.ask("GET", "/metrics", bearer).status_code == 200
    assert site.ask("GET", "/api/explain?url=https://a.example/", bearer).status_code == 403, "not among its scopes"
    more = site.ask("POST", "/api/account/tokens", bearer, json={**form, "scopes": ["operate"]})
    assert more.status_code == 403, "a token makes none that may do more"
    beyond = site.ask("POST", "/api/account/tokens", headers, json={**form, "scopes": ["administer"]})
    assert beyond.status_code == 422
    site.client.app.state.accounts.identities.flush()  # type: ignore[attr-defined]
    (used,) = site.ask("GET", f"/api/admin/users/{user_id}/tokens", ADMIN).json()["items"]
    assert used["usedAt"] is not None
    assert site.ask("DELETE", f"/api/account/tokens/{made['token']['id']}", headers).status_code == 204
    assert site.ask("GET", "/metrics", bearer).status_code == 401
    assert site.deeds("token.made") == site.deeds("token.revoked") == [("ada@127.0.0.1", "user ada")]


def test_a_token_makes_none_that_outlives_it(site: Site) -> None:
    site.user("ada", Role.OPERATOR)
    form = {"name": "short", "scopes": ["own_account"], "days": 1}
    made = site.ask("POST", "/api/account/tokens", site.headers("ada"), json=form).json()
    bearer = {"authorization": f"Bearer {made['secret']}"}
    site.clock.advance(3600)
    longer = site.ask("POST", "/api/account/tokens", bearer, json={**form, "name": "long", "days": 366}).json()

    assert longer["token"]["expiresAt"] == made["token"]["expiresAt"]
    site.clock.advance(86_400)
    assert site.ask("GET", "/api/account", {"authorization": f"Bearer {longer['secret']}"}).status_code == 401


def test_a_token_ends_with_its_days(site: Site) -> None:
    site.user("ada", Role.OPERATOR)
    form = {"name": "backup", "scopes": ["watch"], "days": 1}
    made = site.ask("POST", "/api/account/tokens", site.headers("ada"), json=form).json()
    bearer = {"authorization": f"Bearer {made['secret']}"}

    assert site.ask("GET", "/metrics", bearer).status_code == 200
    site.clock.advance(86_400)
    assert site.ask("GET", "/metrics", bearer).status_code == 401


@pytest.mark.parametrize("field", ["id", "passwordHash", "password_hash", "state", "issuer", "owner", "userId"])
def test_unknown_fields_are_rejected(site: Site, field: str) -> None:
    user_id = site.user("ada", Role.ADMINISTRATOR)
    headers = site.headers("ada")

    for path, form in ((f"/api/admin/users/{user_id}", {}), ("/api/admin/users", {"name": "x", "role": "member"})):
        verb = "PATCH" if path.endswith(str(user_id)) else "POST"
        assert site.ask(verb, path, headers, json={**form, field: 1}).status_code == 422, field
    wanted: dict[str, Any] = {"name": "x", "scopes": ["read"], field: 1}
    assert site.ask("POST", "/api/account/tokens", headers, json=wanted).status_code == 422
    assert site.ask("POST", "/api/admin/users", headers, json={"name": "x", "role": "anonymous"}).status_code == 422


def test_a_form_of_the_account_page_needs_the_token_of_its_session(site: Site) -> None:
    site.user("ada")
    headers = site.headers("ada")
    for path in ("/account/password", "/account/sessions", "/account/tokens", "/account/tokens/revoke", "/signout"):
        for csrf in ({}, {"csrf": "x"}, {"csrf": site.headers("ada")["x-csrf-token"]}):
            refused = site.ask("POST", path, headers, data={"id": "1", "name": "x", **csrf})
            assert (refused.status_code, refused.json()["code"]) == (403, "cross_site_refused"), path
    done = site.ask("POST", "/signout", headers, data={"csrf": headers["x-csrf-token"]})
    assert (done.status_code, done.headers["location"]) == (303, "/signin")


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/\t/evil.example"])
def test_signin_ignores_next_when_it_is_another_site(site: Site, target: str) -> None:
    site.user("ada")
    form = {"name": "ada", "password": PASSWORD, "next": target}

    answer = site.client.post("/signin", data=form, headers={"origin": APP})

    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_names_and_agents_with_markup_are_shown_as_text(site: Site) -> None:
    site.user("ada")
    answer = site.sign_in("ada", **{"user-agent": "<script>alert(1)</script>\x1b[31m"})
    cookie = answer.headers["set-cookie"].partition(";")[0]
    page = site.client.get("/account", headers={"cookie": cookie})
    failed = site.client.post("/signin", data={"name": '"><script>', "password": "x"}, headers={"origin": APP})

    assert "<script>" not in page.text + failed.text
    assert "\x1b" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    assert page.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/api/admin/users", {"name": "a b", "role": "member"}, "name"),
        ("/api/admin/users", {"name": "a\x00b", "role": "member"}, "name"),
        ("/api/account/tokens", {"name": "a\x07", "scopes": ["read"]}, "name"),
        ("/api/account/tokens", {"name": "t", "scopes": ["administer"]}, "scopes"),
    ],
)
def test_refusal_names_the_wrong_field(site: Site, path: str, body: dict[str, Any], field: str) -> None:
    site.user("opal", Role.OPERATOR)

    answer = site.client.post(path, json=body, headers=ADMIN if "admin" in path else site.headers("opal"))
    listed = site.client.get("/api/admin/users", params={"cursor": "zzz"}, headers=ADMIN)

    assert (answer.status_code, answer.json().get("field")) == (422, field), answer.text
    assert answer.json()["detail"].startswith(f"{field}: ")
    assert (listed.status_code, listed.json()["code"], listed.json()["field"]) == (422, "bad_cursor", "cursor")
