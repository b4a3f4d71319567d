"""Bearer tokens that another system signs with a secret it shares with us (JWT, only HS256)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from holdfast.auth.errors import CredentialWrong
from holdfast.auth.principal import Principal, SignInWay
from holdfast.auth.roles import Role
from holdfast.clock import Clock
from holdfast.config import AuthSettings
from holdfast.errors import Invalid

_MAX_S = 86_400.0
"""Longest time from `iat` to `exp`: a token cannot be revoked before it ends."""

if TYPE_CHECKING:
    from jwt.types import Options

SECRET_BYTES = 32
"""RFC 7518, 3.2: the key must be at least as long as the hash."""
_MAX_CHARS = 4096
_NAME_CHARS = 64
# Tolerance for different clocks of two machines.
_LEEWAY_S = 30
_CLAIMS = ("exp", "iat", "aud", "iss", "sub")


def demand_strong_secret(settings: AuthSettings) -> None:
    """Raise Invalid if the secret could be guessed from one signed token."""
    secret = settings.jwt_secret
    if secret is not None and len(secret.get_secret_value().encode()) < SECRET_BYTES:
        raise Invalid(
            f"HOLDFAST_AUTH_JWT_SECRET has fewer than {SECRET_BYTES} bytes and could be guessed; make one with: "
            "openssl rand -hex 32"
        )


class JwtBearer:
    """Verifies JWTs; disabled until a secret is configured."""

    def __init__(self, settings: AuthSettings, clock: Clock) -> None:
        """Raise Invalid if the configured secret is too short."""
        demand_strong_secret(settings)
        self._settings, self._clock = settings, clock
        self._key = None if settings.jwt_secret is None else settings.jwt_secret.get_secret_value()
        # Import it by name: it takes 50 ms, and few archives set a secret.
        self._jwt: Any = None if self._key is None else importlib.import_module("jwt")

    def looks_like(self, shown: str) -> bool:
        return shown.count(".") == 2

    def principal(self, shown: str) -> Principal:
        """Return the principal of a token; raise CredentialWrong if it is malformed, badly signed or not valid now."""
        if self._key is None or len(shown) > _MAX_CHARS:
            raise CredentialWrong("the bearer token")
        jwt = self._jwt
        try:
            # The time is checked below, by our own clock.
            checks: Options = {
                "require": list(_CLAIMS),
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            }
            read = jwt.decode_complete(
                shown,
                self._key,
                # Pin the algorithm: never trust the one that a token names.
                algorithms=["HS256"],
                audience=self._settings.jwt_audience,
                issuer=self._settings.jwt_issuer,
                options=checks,
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as exc:
            raise CredentialWrong("the bearer token") from exc
        # RFC 7515, 4.1.11: reject a token with a critical extension; we support none.
        if "crit" in read["header"]:
            raise CredentialWrong("the bearer token")
        return self._judged(read["payload"])

    def _judged(self, claims: dict[str, Any]) -> Principal:
        now = self._clock.now().timestamp()
        issued, expires, starts = claims["iat"], claims["exp"], claims.get("nbf", claims["iat"])
        # Use `type(…) is`: true is an int to isinstance, and a string or an infinite number is not a time.
        times_are_whole = all(type(at) in (int, float) and abs(at) < 1e12 for at in (issued, expires, starts))
        if (
            not times_are_whole
            or not max(issued, starts) - _LEEWAY_S <= now < expires + _LEEWAY_S
            # A token that never expires cannot be revoked.
            or not 0 < expires - issued <= _MAX_S
        ):
            raise CredentialWrong("the bearer token")
        # Reject it without a role: members see more than the public, so the other system must state it.
        subject, role = claims["sub"], claims.get("role")
        if not isinstance(subject, str) or not subject.isprintable() or not 0 < len(subject) <= _NAME_CHARS:
            raise CredentialWrong("the bearer token")
        if role not in list(Role) or role == Role.ANONYMOUS.value:
            raise CredentialWrong("the bearer token")
        return Principal(role=Role(role), name=f"jwt:{subject}", way=SignInWay.JWT)
