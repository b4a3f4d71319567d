"""Secrets that are shown once: how to create them, check them without a database query, and store them.

Each ends in a checksum of itself, so that guesses, truncated copies and secrets of other systems are rejected
without a query. Only the SHA-256 is stored.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import zlib
from hashlib import sha256

TOKEN_PREFIX = "hf_"  # noqa: S105 - what all tokens begin with, so that scanners of repositories find them
_RANDOM_BYTES = 32
# 32 bytes and a checksum of four, in base64 without its padding.
_CHARS = 48


def new_secret(prefix: str = "") -> str:
    random = secrets.token_bytes(_RANDOM_BYTES)
    return prefix + base64.urlsafe_b64encode(random + _checksum(prefix, random)).decode("ascii")


def digest_of(secret: str, prefix: str = "") -> bytes | None:
    """Return the digest that is stored for a secret; None if the checksum does not match."""
    if len(secret) != len(prefix) + _CHARS or not secret.startswith(prefix) or not secret.isascii():
        return None
    try:
        raw = base64.b64decode(secret.removeprefix(prefix), altchars=b"-_", validate=True)
    except ValueError:
        return None
    if not hmac.compare_digest(_checksum(prefix, raw[:_RANDOM_BYTES]), raw[_RANDOM_BYTES:]):
        return None
    return sha256(secret.encode("ascii")).digest()


def _checksum(prefix: str, random: bytes) -> bytes:
    return zlib.crc32(random, zlib.crc32(prefix.encode("ascii"))).to_bytes(4, "big")


def csrf_token(session_secret: str) -> str:
    """Return the token that our pages send with each change; it is useless without its session."""
    made = hmac.digest(session_secret.encode("utf-8", "surrogatepass"), b"holdfast csrf", "sha256")
    return base64.urlsafe_b64encode(made).decode("ascii").rstrip("=")


def is_same(shown: str, expected: str) -> bool:
    """Compare two secrets in constant time."""
    # Digests of equal length, so that neither the length nor the first wrong character can be timed.
    digests = (sha256(one.encode("utf-8", "surrogatepass")).digest() for one in (shown, expected))
    return hmac.compare_digest(*digests)
