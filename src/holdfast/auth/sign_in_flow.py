"""A sign-in at an identity provider that is under way. What speaks to a provider is loaded only where one is named."""

from __future__ import annotations

import base64
import json

from holdfast.auth.errors import ProviderRefused
from holdfast.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInFlow:
    """One sign-in under way: what the browser keeps until it comes back."""

    state: str
    nonce: str
    verifier: str
    following: str
    """Where to go afterwards."""

    def sealed(self) -> str:
        """Return it as one cookie holds it."""
        parts = json.dumps([self.state, self.nonce, self.verifier, self.following], ensure_ascii=False).encode()
        return base64.urlsafe_b64encode(parts).decode("ascii").rstrip("=")

    @classmethod
    def opened(cls, cookie: str | None) -> SignInFlow:
        """Return what a cookie holds; ProviderRefused if it is invalid."""
        try:
            parts = json.loads(base64.urlsafe_b64decode((cookie or "").encode("ascii") + b"=="))
            state, nonce, verifier, following = parts
            if not all(isinstance(one, str) for one in parts) or not (state + nonce + verifier).isascii():
                raise ValueError
        except (ValueError, TypeError, UnicodeError, RecursionError):
            raise ProviderRefused("this sign-in was not begun in this browser, or took too long; start anew") from None
        return cls(state=state, nonce=nonce, verifier=verifier, following=following)
