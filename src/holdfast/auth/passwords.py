"""Passwords: argon2id hashes and the requirements for a new password."""

from __future__ import annotations

import unicodedata

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from holdfast.auth.errors import PasswordRefused

MIN_CHARS = 12
MAX_BYTES = 256
"""Longer passwords are rejected before hashing: hashing a megabyte would let strangers waste our CPU."""
# Most characters to read: some are typed as three and stored as one.
_MAX_GIVEN = 4 * MAX_BYTES
# OWASP's first choice of 19 MiB and two passes: 50 ms and little enough memory for several at once. RFC 9106's 64 MiB
# with four lanes takes 220 ms of CPU here, and a flood of sign-ins would take the server down.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
# The hash of no password, verified for unknown users, so that both responses take the same time.
_NOBODY = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


def hash_password(password: str, *, name: str = "") -> str:
    """Hash a password; raise PasswordRefused if it is too short, too long, or equal to the user name."""
    text = unicodedata.normalize("NFKC", password)
    if len(text) < MIN_CHARS:
        raise PasswordRefused(f"a password has at least {MIN_CHARS} characters; choose a longer one")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise PasswordRefused(f"a password has at most {MAX_BYTES} bytes; choose a shorter one")
    if len(set(text)) < 4 or (name and text.casefold() in (name * 16).casefold()):
        raise PasswordRefused("this password is too easy to guess; choose another one")
    return _HASHER.hash(text.encode("utf-8", "surrogatepass"))


def is_password(stored: str | None, given: str) -> bool:
    """Verify a password; takes as long if no hash is stored."""
    text = unicodedata.normalize("NFKC", given[:_MAX_GIVEN]).encode("utf-8", "surrogatepass")
    # Truncate it instead of rejecting it: a faster response would reveal something, and no stored password is that
    # long.
    fits = len(given) <= _MAX_GIVEN and len(text) <= MAX_BYTES
    try:
        return _HASHER.verify(stored or _NOBODY, text[:MAX_BYTES]) and stored is not None and fits
    except (VerificationError, InvalidHashError):
        return False


def is_outdated(stored: str) -> bool:
    return _HASHER.check_needs_rehash(stored)
