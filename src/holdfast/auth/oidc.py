"""Sign-in at an identity provider: OpenID Connect, code flow with PKCE, state and nonce.

All requests go through the function passed in, which connects only to addresses that the address guard permits.
No claim is trusted before its signature, issuer, audience, time and nonce are checked.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from holdfast import log
from holdfast.auth.errors import ProviderFailed, ProviderRefused
from holdfast.auth.roles import Role
from holdfast.auth.sign_in_flow import SignInFlow
from holdfast.auth.users import ROLES, ProviderIdentity
from holdfast.clock import Clock
from holdfast.config import AuthSettings
from holdfast.errors import Invalid
from holdfast.types import FetchRequest

AskProvider = Callable[[FetchRequest], Awaitable[bytes]]
"""Returns the body of a successful response; raises ProviderFailed otherwise."""
# Algorithms with a key that only the provider has: never `none`, and never a secret that we share with it.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_REMEMBERED_S = 600.0
_LEEWAY_S = 60
_BODY_BYTES = 1024 * 1024
_FOLLOWING_BYTES = 1024
_DEADLINE_S = 10.0
_log = log.get()


def role_map(settings: AuthSettings) -> dict[str, Role]:
    """Return the role for each value of the claim; raise Invalid if an entry is not written as value=role."""
    found = {}
    for pair in settings.oidc_roles:
        value, _, role = pair.rpartition("=")
        if not value or role not in [one.value for one in ROLES]:
            raise Invalid(f"HOLDFAST_AUTH_OIDC_ROLES: {pair!r} is not written as value=role, as in archivists=operator")
        found[value] = Role(role)
    return found


class IdentityProvider:
    """The configured provider."""

    def __init__(self, settings: AuthSettings, ask: AskProvider, clock: Clock) -> None:
        """Raise Invalid if the settings are incomplete, or would send secrets unencrypted."""
        issuer, client_id = settings.oidc_issuer, settings.oidc_client_id
        if not issuer or not client_id:
            raise Invalid("HOLDFAST_AUTH_OIDC_ISSUER needs HOLDFAST_AUTH_OIDC_CLIENT_ID beside it")
        if "openid" not in settings.oidc_scopes:
            raise Invalid("HOLDFAST_AUTH_OIDC_SCOPES: openid is not among them")
        self._settings, self._ask, self._clock = settings, ask, clock
        self._issuer, self._client_id, self._roles = issuer, client_id, role_map(settings)
        self._documents: dict[str, tuple[float, dict[str, Any]]] = {}

    async def begin(self, redirect_uri: str, following: str) -> tuple[str, SignInFlow]:
        """Return the provider's URL to send a browser to, and the flow that the browser stores until it returns.

        Raise ProviderFailed if the provider does not answer.
        """
        flow = SignInFlow(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            # Browsers drop a cookie of more than 4 KiB, and with it the sign-in.
            following=following if len(following.encode()) <= _FOLLOWING_BYTES else "/",
        )
        url = prepare_grant_uri(
            await self._endpoint("authorization_endpoint"),
            client_id=self._client_id,
            response_type="code",
            redirect_uri=redirect_uri,
            scope=" ".join(self._settings.oidc_scopes),
            state=flow.state,
            nonce=flow.nonce,
            code_challenge=create_s256_code_challenge(flow.verifier),
            code_challenge_method="S256",
        )
        return url, flow

    async def finish(self, answer: Mapping[str, str], flow: SignInFlow, redirect_uri: str) -> ProviderIdentity:
        """Return the user who came back; raise ProviderRefused if the provider refused, or a check fails."""
        if not hmac.compare_digest(answer.get("state", "").encode(), flow.state.encode()):
            raise ProviderRefused("this answer belongs to another sign-in; start again")
        # RFC 9207: a response of another provider must not be sent to this one.
        if answer.get("iss", self._issuer) != self._issuer:
            raise ProviderRefused("this answer comes from another identity provider; start again")
        if "error" in answer or not answer.get("code"):
            raise ProviderRefused("the identity provider did not let you in; start again, or ask its administrator")
        tokens = await self._exchange(answer["code"], flow, redirect_uri)
        claims = await self._verified(tokens.get("id_token"), flow.nonce)
        claims = await self._with_userinfo(claims, tokens.get("access_token"))
        return self._identity(claims)

    def _identity(self, claims: Mapping[str, Any]) -> ProviderIdentity:
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
            raise ProviderFailed("the identity provider names no subject that can be kept")
        name = claims.get(self._settings.oidc_name_claim)
        role = self._role(claims.get(self._settings.oidc_role_claim))
        if role is None:
            _log.warning("auth.provider_role_missing", subject=subject)
            raise ProviderRefused(
                "the identity provider knows you, but nothing it says gives you a role here; ask an administrator"
            )
        return ProviderIdentity(
            issuer=self._issuer, subject=subject, name=name if isinstance(name, str) else subject, role=role
        )

    def _role(self, claimed: Any) -> Role | None:
        values = claimed if isinstance(claimed, list) else [claimed]
        found = [self._roles[value] for value in values if isinstance(value, str) and value in self._roles]
        default = self._settings.oidc_default_role
        return max(found, key=list(Role).index) if found else Role(default) if default else None

    async def _exchange(self, code: str, flow: SignInFlow, redirect_uri: str) -> dict[str, Any]:
        body = prepare_token_request(
            "authorization_code", code=code, redirect_uri=redirect_uri, code_verifier=flow.verifier
        )
        headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")]
        secret = self._settings.oidc_client_secret
        methods = (await self._metadata()).get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if secret is None:
            body += "&" + urlencode({"client_id": self._client_id})
        elif "client_secret_basic" in methods:
            # RFC 6749, 2.3.1: both are form-encoded first.
            pair = f"{quote(self._client_id, safe='')}:{quote(secret.get_secret_value(), safe='')}"
            headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"))
        else:
            body += "&" + urlencode({"client_id": self._client_id, "client_secret": secret.get_secret_value()})
        url = await self._endpoint("token_endpoint")
        return await self._asked(url, headers=tuple(headers), content=body.encode("ascii"))

    async def _verified(self, token: Any, nonce: str) -> dict[str, Any]:
        if not isinstance(token, str) or len(token) > 64 * 1024:
            raise ProviderFailed("the identity provider sent no ID token")
        registry = jwt.JWTClaimsRegistry(
            now=int(self._clock.now().timestamp()),
            leeway=_LEEWAY_S,
            iss={"essential": True, "value": self._issuer},
            aud={"essential": True, "value": self._client_id},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        # The key is unknown: the provider may have changed its keys since they were fetched.
        for is_fresh in (False, True):
            try:
                found = await self._remembered(await self._endpoint("jwks_uri"), fresh=is_fresh)
                keys = KeySet.import_key_set(found)  # type: ignore[arg-type]
                claims = jwt.decode(token, keys, algorithms=_ALGORITHMS).claims
                registry.validate(claims)
            except (JoseError, ValueError, TypeError) as exc:
                if is_fresh:
                    _log.warning("auth.provider_token_refused", message=str(exc))
                    raise ProviderRefused("what the identity provider says is not signed as it must be") from exc
                continue
            # OpenID Connect Core, 3.1.3.7: with several audiences, `azp` names the client of the token.
            if claims.get("azp", self._client_id) != self._client_id:
                raise ProviderRefused("the identity provider's answer is for another application")
            return dict(claims)
        raise AssertionError

    async def _with_userinfo(self, claims: dict[str, Any], access_token: Any) -> dict[str, Any]:
        """Add claims from the userinfo endpoint where the ID token lacks those we need."""
        wanted = {self._settings.oidc_name_claim, self._settings.oidc_role_claim}
        endpoint = (await self._metadata()).get("userinfo_endpoint")
        if wanted <= claims.keys() or not endpoint or not isinstance(access_token, str):
            return claims
        headers = (("Authorization", f"Bearer {access_token}"), ("Accept", "application/json"))
        more = await self._asked(await self._endpoint("userinfo_endpoint"), headers=headers)
        # OpenID Connect Core, 5.3.2: otherwise it may be another user's.
        return {**more, **claims} if more.get("sub") == claims.get("sub") else claims

    async def _metadata(self) -> dict[str, Any]:
        found = await self._remembered(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != self._issuer:
            raise ProviderFailed(
                f"the identity provider calls itself {str(found.get('issuer'))[:200]!r}; "
                "HOLDFAST_AUTH_OIDC_ISSUER must be the same, letter by letter"
            )
        return found

    async def _endpoint(self, name: str) -> str:
        url = (await self._metadata()).get(name)
        # Secrets are sent there: never in clear text, unless the whole provider uses http.
        if not isinstance(url, str) or urlsplit(url).scheme not in ("https", urlsplit(self._issuer).scheme):
            raise ProviderFailed(f"the identity provider names no {name} that can be used")
        return url

    async def _remembered(self, url: str, *, fresh: bool = False) -> dict[str, Any]:
        kept = self._documents.get(url)
        now = self._clock.monotonic()
        if kept is None or fresh or now - kept[0] > _REMEMBERED_S:
            kept = (now, await self._asked(url, headers=(("Accept", "application/json"),)))
            # At most two, of this provider: their URLs come from the settings and its own metadata.
            self._documents = {**dict(list(self._documents.items())[-1:]), url: kept}
        return kept[1]

    async def _asked(
        self, url: str, *, headers: tuple[tuple[str, str], ...], content: bytes | None = None
    ) -> dict[str, Any]:
        body = await self._ask(
            FetchRequest(url=url, headers=headers, content=content, deadline_s=_DEADLINE_S, max_body_bytes=_BODY_BYTES)
        )
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as exc:
            raise ProviderFailed("the identity provider answers with no JSON") from exc
        if not isinstance(found, dict):
            raise ProviderFailed("the identity provider answers with no JSON object")
        return found
