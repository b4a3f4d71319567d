"""Labelled digests as WARC writes them (`sha256:` and hex), made over streams and compared with what others wrote.

It refuses to guess: an algorithm that is not known here cannot be checked, and is said to be unknown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Protocol


class Hasher(Protocol):
    """What hashlib returns."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""
        ...

    def digest(self) -> bytes:
        """Return the digest of all bytes so far."""
        ...


_KNOWN = {"md5": "md5", "sha1": "sha1", "sha256": "sha256", "sha384": "sha384", "sha512": "sha512"}
_URL_SAFE = str.maketrans("-_", "+/")
_HEX = re.compile(r"[0-9a-fA-F]+")


def sha256_of(chunks: Iterable[bytes]) -> str:
    """Return the labelled SHA-256 of these bytes in a row."""
    hasher = hashlib.sha256()
    for chunk in chunks:
        hasher.update(chunk)
    return "sha256:" + hasher.hexdigest()


def hasher_for(label: str) -> Hasher | None:
    """Return a fresh hasher for a labelled digest, or None if its algorithm is not known here."""
    name = _KNOWN.get(label.partition(":")[0].strip().lower().replace("-", ""))
    return hashlib.new(name, usedforsecurity=False) if name else None


def agrees(label: str, hasher: Hasher) -> bool:
    """Return whether a labelled digest says what the hasher saw; hex, base32 and base64 are all in use."""
    value = label.partition(":")[2].strip()
    seen = hasher.digest()
    if len(value) == 2 * len(seen) and _HEX.fullmatch(value):
        return bytes.fromhex(value) == seen
    return seen in (_decoded(base64.b32decode, value.upper()), _decoded(base64.b64decode, value.translate(_URL_SAFE)))


def _decoded(decode: Callable[[str], bytes], value: str) -> bytes | None:
    try:
        return decode(value)
    except (binascii.Error, ValueError):
        return None
