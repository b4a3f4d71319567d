"""What an identity provider says is believed only if it is signed, of this provider, for us, of now, and asked for."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from holdfast.auth.errors import ProviderFailed, ProviderRefused
from holdfast.auth.oidc import IdentityProvider
from holdfast.auth.roles import Role
from holdfast.auth.sign_in_flow import SignInFlow
from holdfast.auth.users import ProviderIdentity
from holdfast.config import AuthSettings
from holdfast.errors import Invalid
from holdfast.types import FetchRequest
from tests.clock import FakeClock

_ISSUER = "https://login.example"
_BACK = "https://archive.example/signin/oidc/callback"
_KEY = RSAKey.generate_key(2048, {"kid": "one"})
_OTHER = RSAKey.generate_key(2048, {"kid": "one"})
_clock = FakeClock()
_NOW = int(_clock.now().timestamp())


class Provider:
    """A provider that answers what a test wants."""

    def __init__(self, **changed: Any) -> None:
        self.metadata: dict[str, Any] = {
            "issuer": _ISSUER,
            "authorization_endpoint": f"{_ISSUER}/auth",
            "token_endpoint": f"{_ISSUER}/token",
            "jwks_uri": f"{_ISSUER}/keys",
            **changed,
        }
        self.sign: Callable[[dict[str, Any]], str] = lambda claims: jwt.encode(
            {"alg": "RS256", "kid": "one"}, claims, _KEY
        )
        self.claims: dict[str, Any] = {}
        self.nonce = ""
        self.asked: list[FetchRequest] = []

    async def __call__(self, request: FetchRequest) -> bytes:
        self.asked.append(request)
        path = urlsplit(request.url).path
        if path == "/token":
            claims = {"iss": _ISSUER, "sub": "7", "aud": "holdfast", "exp": _NOW + 60, "iat": _NOW, "nonce": self.nonce}
            claims |= {"preferred_username": "Ada L", "groups": ["staff"], **self.claims}
            kept = {name: value for name, value in claims.items() if value is not None}
            return json.dumps({"access_token": "x", "token_type": "Bearer", "id_token": self.sign(kept)}).encode()
        if path == "/keys":
            return json.dumps({"keys": [_KEY.as_dict(private=False)]}).encode()
        return json.dumps(self.metadata).encode()


def _sign_in(provider: Provider, *, answer: dict[str, str] | None = None, **settings: Any) -> ProviderIdentity:
    own = {"oidc_issuer": _ISSUER, "oidc_client_id": "holdfast", "oidc_roles": "staff=member,heads=operator"}
    auth = AuthSettings(**{**own, **settings})

    async def run() -> ProviderIdentity:
        made = IdentityProvider(auth, provider, _clock)
        url, flow = await made.begin(_BACK, "/account")
        sent = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert sent["code_challenge_method"] == "S256"
        provider.nonce = sent["nonce"]
        opened = SignInFlow.opened(flow.sealed())
        return await made.finish({"code": "c", "state": sent["state"], **(answer or {})}, opened, _BACK)

    return asyncio.run(run())


def test_a_person_is_known_by_issuer_and_subject_and_has_the_highest_role_that_fits() -> None:
    provider = Provider()
    provider.claims = {"groups": ["visitors", "heads", "staff", 7]}

    found = _sign_in(provider, oidc_client_secret="a secret: %")

    assert found == ProviderIdentity(issuer=_ISSUER, subject="7", name="Ada L", role=Role.OPERATOR)
    (exchange,) = [one for one in provider.asked if one.content is not None]
    assert exchange.content is not None
    assert {"code_verifier", "redirect_uri", "code"} <= set(parse_qs(exchange.content.decode()))
    assert dict(exchange.headers)["Authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    "claims",
    [{"iss": "https://evil.example"}, {"aud": "other"}, {"exp": _NOW - 61}, {"exp": None}, {"nonce": "another"},
     {"nonce": None}, {"iat": _NOW + 3600}, {"azp": "other"}, {"sub": None}, {"exp": "never"}, {"iat": None}],
)  # fmt: skip
def test_a_claim_that_does_not_fit_is_refused(claims: dict[str, Any]) -> None:
    provider = Provider()
    provider.claims = claims

    with pytest.raises(ProviderRefused):
        _sign_in(provider)


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def test_a_signature_of_another_key_or_of_none_is_refused() -> None:
    def unsigned(claims: dict[str, Any]) -> str:
        head, _, rest = jwt.encode({"alg": "RS256"}, claims, _KEY).partition(".")
        assert head
        return f"eyJhbGciOiJub25lIn0.{rest.partition('.')[0]}."

    def by_public_key(claims: dict[str, Any]) -> str:
        payload = jwt.encode({"alg": "RS256"}, claims, _KEY).split(".")[1]
        signed = f"{_encoded(json.dumps({'alg': 'HS256', 'kid': 'one'}).encode())}.{payload}"
        return f"{signed}.{_encoded(hmac.digest(_KEY.as_pem(private=False), signed.encode(), 'sha256'))}"

    forgeries: list[Callable[[dict[str, Any]], str]] = [
        lambda claims: jwt.encode({"alg": "RS256", "kid": "one"}, claims, _OTHER),
        by_public_key,
        unsigned,
        lambda _claims: "no token",
    ]
    for forged in forgeries:
        provider = Provider()
        provider.sign = forged
        with pytest.raises(ProviderRefused):
            _sign_in(provider)


@pytest.mark.parametrize(
    "answer", [{"state": "another"}, {"iss": "https://evil.example"}, {"error": "access_denied"}, {"code": ""}]
)
def test_an_answer_that_was_not_asked_for_is_refused(answer: dict[str, str]) -> None:
    with pytest.raises(ProviderRefused):
        _sign_in(Provider(), answer=answer)


@pytest.mark.parametrize(
    "changed", [{"issuer": "https://login.example/"}, {"token_endpoint": "http://login.example/token"},
                {"authorization_endpoint": 7}, {"jwks_uri": "file:///etc/passwd"}],
)  # fmt: skip
def test_a_provider_that_lies_about_itself_is_not_asked(changed: dict[str, Any]) -> None:
    with pytest.raises(ProviderFailed):
        _sign_in(Provider(**changed))


def test_a_person_that_no_claim_gives_a_role_is_not_let_in_unless_there_is_a_default() -> None:
    provider = Provider()
    provider.claims = {"groups": ["visitors"]}

    with pytest.raises(ProviderRefused, match="role"):
        _sign_in(provider)
    assert _sign_in(provider, oidc_default_role="member").role is Role.MEMBER


@pytest.mark.parametrize("cookie", [None, "", "x", "W10", "bnVsbA", "W1tdLFtdXQ"])
def test_a_cookie_that_is_none_of_ours_begins_nothing(cookie: str | None) -> None:
    with pytest.raises(ProviderRefused):
        SignInFlow.opened(cookie)


@pytest.mark.parametrize(
    "settings", [{"oidc_client_id": None}, {"oidc_scopes": "profile"}, {"oidc_roles": "staff"},
                 {"oidc_roles": "staff=root"}, {"oidc_roles": "staff=anonymous"}],
)  # fmt: skip
def test_settings_that_are_not_whole_are_refused_at_the_start(settings: dict[str, Any]) -> None:
    auth = AuthSettings(**{"oidc_issuer": _ISSUER, "oidc_client_id": "holdfast", **settings})

    with pytest.raises(Invalid, match="OIDC"):
        IdentityProvider(auth, Provider(), _clock)


@pytest.mark.parametrize(
    "parts",
    ["[]", '["a", "b", "c"]', '["\\ud800", "b", "c", "/"]', '["a", "b", "\\udfff", "/"]', '["a", 1, "c", "/"]',
     '{"a": 1, "b": 2, "c": 3, "d": 4}', "1", '["é", "b", "c", "/"]'],
)  # fmt: skip
def test_a_cookie_that_we_did_not_write_is_refused(parts: str) -> None:
    cookie = base64.urlsafe_b64encode(parts.encode("utf-8", "surrogatepass")).decode().rstrip("=")

    async def run() -> None:
        auth = AuthSettings(oidc_issuer=_ISSUER, oidc_client_id="holdfast")
        flow = SignInFlow.opened(cookie)
        await IdentityProvider(auth, Provider(), _clock).finish({"code": "c", "state": "x"}, flow, _BACK)

    with pytest.raises(ProviderRefused):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("following", "kept"), [("/a?b=é", "/a?b=é"), ("/" + "é" * 2000, "/"), ("/" + "x" * 2000, "/")]
)
def test_flow_fits_into_a_cookie_whatever_path_follows(following: str, kept: str) -> None:
    auth = AuthSettings(oidc_issuer=_ISSUER, oidc_client_id="holdfast")
    _, flow = asyncio.run(IdentityProvider(auth, Provider(), _clock).begin(_BACK, following))

    assert SignInFlow.opened(flow.sealed()).following == kept
    assert len(flow.sealed()) < 4000
