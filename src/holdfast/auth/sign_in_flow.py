"""A sign-in at an identity provider in progress. The client of the provider is only loaded if one is configured."""

from __future__ import annotations

import base64
import json

from holdfast.auth.errors import ProviderRefused
from holdfast.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInFlow:
    """A sign-in in progress: what the browser stores until it returns from the provider."""

    state: str
    nonce: str
    verifier: str
    following: str
    """Where to go after signing in."""

    def sealed(self) -> str:
        parts = json.dumps([self.state, self.nonce, self.verifier, self.following], ensure_ascii=False).encode()
        return base64.urlsafe_b64encode(parts).decode("ascii").rstrip("=")

    @classmethod
    def opened(cls, cookie: str | None) -> SignInFlow:
        """Decode a cookie; raise ProviderRefused if it is invalid."""
        try:
            parts = json.loads(base64.urlsafe_b64decode((cookie or "").encode("ascii") + b"=="))
            state, nonce, verifier, following = parts
            if not all(isinstance(one, str) for one in parts) or not (state + nonce + verifier).isascii():
                raise ValueError
        except (ValueError, TypeError, UnicodeError, RecursionError):
            raise ProviderRefused("this sign-in was started elsewhere or took too long; start again") from None
        return cls(state=state, nonce=nonce, verifier=verifier, following=following)
