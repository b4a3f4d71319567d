"""Known browsers: an account's owner can sign in from one while strangers guess the password.

A mark lets no one in. It proves that this browser has signed in before, so that its attempts are counted apart
from those of strangers. It is signed with the stored password hash: a new password invalidates all marks, and
none is stored here.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from typing import Final

from holdfast.db.models import User

LASTS: Final = timedelta(days=180)
_MAX_CHARS: Final = 200
_NAME_BYTES: Final = 12


def new_mark(user: User, *, now: datetime) -> str | None:
    """Return a mark for a browser whose user has just entered the password; None for a user without one."""
    if user.password_hash is None:
        return None
    said = f"{int((now + LASTS).timestamp())}.{secrets.token_urlsafe(_NAME_BYTES)}"
    return f"{said}.{_signed(user.id, user.password_hash, said)}"


def known_browser(user: User | None, mark: str | None, *, now: datetime) -> str | None:
    """Return the name in a browser's mark; None if the mark is missing, expired or not valid for this user."""
    if user is None or user.password_hash is None or mark is None or len(mark) > _MAX_CHARS or not mark.isascii():
        return None
    said, _, signature = mark.rpartition(".")
    ends, _, name = said.partition(".")
    # Check the signature first: an unsigned mark is not read.
    if not hmac.compare_digest(signature, _signed(user.id, user.password_hash, said)):
        return None
    return name if int(ends) > now.timestamp() else None


def _signed(user_id: int, password_hash: str, said: str) -> str:
    made = hmac.digest(password_hash.encode(), f"holdfast known browser\0{user_id}\0{said}".encode(), "sha256")
    return urlsafe_b64encode(made).rstrip(b"=").decode()
