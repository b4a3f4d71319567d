"""What a signature of a WACZ package is worth (WACZ Signing and Verification 0.1.0); `verification` finds it out."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Worth(StrEnum):
    """How far a signature can be relied on."""

    VALID = "valid"
    UNTRUSTED = "untrusted"
    """It holds, but what stands behind it goes back to no root that is trusted here."""
    INVALID = "invalid"


class Signature(NamedTuple):
    """What the check of one signature found."""

    worth: Worth
    kind: str
    """anonymous (a key of its own) or domain (a certificate of a host name)."""
    by: str
    """The host name, or the SHA-256 of the public key."""
    at: datetime | None = None
    """When it was signed, by the word of a timestamp authority."""
    why: str = ""
    """What is wrong or missing."""

    def sentence(self) -> str:
        """Return the finding as a line for people."""
        who = f"signed by {self.by}" if self.kind == "domain" else f"signed with the key {self.by}"
        when = f" on {self.at:%Y-%m-%d %H:%M:%S} UTC" if self.at is not None else ""
        if self.worth is Worth.INVALID:
            return f"{who}{when}: the signature does not hold: {self.why}"
        if self.worth is Worth.UNTRUSTED:
            return f"{who}{when}: the signature holds but is not trusted: {self.why}"
        told = "its certificate and its time are trusted" if self.kind == "domain" else "it does not say who signed"
        return f"{who}{when}: the signature holds; {told}"
