"""Secrets of webhooks, and the headers that sign a message: version 1 of the Standard Webhooks convention."""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable
from hashlib import sha256

PREFIX = "whsec_"
# The convention asks for 24 to 64 bytes.
_SECRET_BYTES = 32


def new_secret() -> str:
    """Return a new secret, as receivers are given it."""
    return PREFIX + b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def new_message_id() -> str:
    """Return an id that no other message has."""
    return f"msg_{secrets.token_hex(16)}"


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message at a moment, with its version."""
    key = b64decode(secret.removeprefix(PREFIX))
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return f"v1,{b64encode(hmac.new(key, signed, sha256).digest()).decode()}"


def signed_headers(known: Iterable[str], message_id: str, timestamp: int, body: bytes) -> tuple[tuple[str, str], ...]:
    """Return the headers that sign a message, with a signature for each secret that receivers may know."""
    signatures = " ".join(signature(secret, message_id, timestamp, body) for secret in known)
    return (
        ("webhook-id", message_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", signatures),
    )
