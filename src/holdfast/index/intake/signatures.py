"""Signatures of WACZ packages (WACZ Signing and Verification 0.1.0): what one is worth.

The work is done in `verification`, which is loaded when a package is signed: its libraries take a tenth of a second.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple


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


def check_signature(signed: dict[str, Any]) -> Signature:
    """Return what the signature in `signedData` is worth. Nothing is raised, and nothing is asked of a network."""
    check: Callable[[dict[str, Any]], Signature] = importlib.import_module(
        "holdfast.index.intake.verification"
    ).check_signed_data
    return check(signed)
