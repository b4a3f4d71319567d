"""Bearer tokens of another system: one algorithm, one key, one issuer, one audience, a short life."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import jwt
import pytest

from holdfast.auth.errors import CredentialWrong
from holdfast.auth.jwt_bearer import JwtBearer
from holdfast.auth.principal import SignInWay
from holdfast.auth.roles import Role
from holdfast.config import ApiSettings, AuthSettings, Settings
from holdfast.errors import Invalid
from holdfast.wiring.server import demand_closed
from tests.clock import FakeClock

_SECRET = "a secret of at least 32 bytes, as it must"
_clock = FakeClock()
_NOW = int(_clock.now().timestamp())


def _claims(**changed: Any) -> dict[str, Any]:
    claims = {"sub": "nightly", "role": "operator", "iss": "holdfast", "aud": "holdfast"}
    claims |= {"iat": _NOW, "exp": _NOW + 300} | changed
    return {name: value for name, value in claims.items() if value is not None}


def _bearer(**settings: Any) -> JwtBearer:
    return JwtBearer(AuthSettings(**{"jwt_secret": _SECRET, **settings}), _clock)


def _raw(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def test_a_token_of_another_system_speaks_for_its_subject() -> None:
    found = _bearer().principal(jwt.encode(_claims(), _SECRET, "HS256"))

    assert (found.name, found.role, found.way) == ("jwt:nightly", Role.OPERATOR, SignInWay.JWT)
    assert found.user_id is None


def test_token_with_a_list_of_audiences_is_accepted() -> None:
    token = jwt.encode(_claims(aud=["other", "holdfast"]), _SECRET, "HS256")

    assert _bearer().principal(token).role is Role.OPERATOR


@pytest.mark.parametrize(
    "changed",
    [{"exp": None}, {"iat": None}, {"aud": None}, {"iss": None}, {"sub": None}, {"exp": _NOW - 31},
     {"exp": str(_NOW + 300)}, {"exp": 1e99}, {"exp": True}, {"exp": [_NOW]}, {"iat": _NOW + 31}, {"iat": "1"},
     {"nbf": _NOW + 31}, {"aud": "other"}, {"aud": ["other", "another"]}, {"aud": []},
     {"role": None}, {"iss": "holdfast "}, {"iss": "Holdfast"},
     {"sub": ""}, {"sub": 7}, {"sub": "x" * 65}, {"sub": "a\nb"}, {"role": "root"}, {"role": "anonymous"}, {"role": 3},
     {"exp": _NOW + 90_000}, {"exp": _NOW}, {"role": ["administrator"]}],
)  # fmt: skip
def test_a_claim_that_is_missing_wrong_or_of_another_time_is_refused(changed: dict[str, Any]) -> None:
    claims = _claims(**changed)
    if changed == {"exp": _NOW}:
        claims["iat"] = _NOW
    # Signed rightly, by hand where the library would not encode it.
    token = jwt.api_jws.encode(json.dumps(claims).encode(), _SECRET, "HS256")

    with pytest.raises(CredentialWrong):
        _bearer().principal(token)


@pytest.mark.parametrize("header", [{"alg": "none"}, {"alg": "None"}, {"alg": ""}, {}, {"alg": ["HS256"]}])
def test_no_algorithm_is_no_signature(header: dict[str, Any]) -> None:
    with pytest.raises(CredentialWrong):
        _bearer().principal(_raw(header, _claims()))


@pytest.mark.parametrize("algorithm", ["HS384", "HS512"])
def test_another_algorithm_is_refused_even_with_the_right_key(algorithm: str) -> None:
    with pytest.raises(CredentialWrong):
        _bearer().principal(jwt.encode(_claims(), _SECRET * 2, algorithm))


def test_a_key_that_the_token_names_is_not_looked_for() -> None:
    own = jwt.encode(_claims(), _SECRET, "HS256", headers={"kid": "../../dev/null"})
    empty = jwt.api_jws.encode(json.dumps(_claims()).encode(), "x" * 32, "HS256", headers={"kid": "../../dev/null"})

    assert _bearer().principal(own).name == "jwt:nightly"
    with pytest.raises(CredentialWrong):
        _bearer().principal(empty)


def test_what_must_be_understood_and_is_not_is_refused() -> None:
    token = jwt.api_jws.encode(json.dumps(_claims()).encode(), _SECRET, "HS256", headers={"crit": ["exp"]})

    with pytest.raises(CredentialWrong):
        _bearer().principal(token)


@pytest.mark.parametrize("token", ["..", "a.b.c", "." * 3, "x" * 5000, "\u00e9.\u00e9.\u00e9", "e30.e30.e30"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(CredentialWrong):
        _bearer().principal(token)


def test_without_a_secret_every_token_is_refused() -> None:
    bearer = JwtBearer(AuthSettings(), _clock)

    for secret in (b"", b"None", _SECRET.encode()):
        head, claims, _ = _raw({"alg": "HS256"}, _claims()).split(".")
        signature = hmac.digest(secret, f"{head}.{claims}".encode(), "sha256")
        with pytest.raises(CredentialWrong):
            bearer.principal(_raw({"alg": "HS256"}, _claims(), signature))


def test_a_weak_secret_keeps_the_server_from_starting() -> None:
    weak = AuthSettings(jwt_secret="x" * 31)

    with pytest.raises(Invalid, match="32 bytes"):
        JwtBearer(weak, _clock)
    with pytest.raises(Invalid, match="32 bytes"):
        demand_closed(Settings(auth=weak, api=ApiSettings()))
