"""`/api/auth/*`: the older spelling of signing in, the session and signing out."""

from __future__ import annotations

from holdfast.auth.roles import Role
from tests.client import APP
from tests.contract.test_accounts import PASSWORD, Site
from tests.contract.test_accounts import site as site


def test_auth_routes_sign_in_show_and_sign_out(site: Site) -> None:
    user_id = site.user("ada", Role.OPERATOR)
    wrong = site.client.post("/api/auth/login", json={"username": "ada", "password": "something else"})
    partial = site.client.post("/api/auth/login", json={"username": "ada"})
    begun = site.client.post("/api/auth/login", json={"username": "ada", "password": PASSWORD})
    headers = {"cookie": begun.headers.get_list("set-cookie")[0].partition(";")[0]}
    shown = site.client.get("/api/auth/me", headers=headers).json()
    forged = site.client.post("/api/auth/logout", headers={**headers, "origin": APP})
    leaving = {**headers, "origin": APP, "x-csrf-token": shown["csrfToken"]}
    gone = site.client.post("/api/auth/logout", headers=leaving)

    assert [wrong.status_code, partial.status_code, begun.status_code] == [401, 422, 200]
    assert (shown["authenticated"], shown["user"]["id"]) == (True, user_id)
    assert [forged.status_code, gone.status_code] == [403, 204]
    assert site.client.get("/api/auth/me", headers=headers).status_code == 401
    assert site.client.get("/api/auth/me").json()["authenticated"] is False
