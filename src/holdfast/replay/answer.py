"""What replay hands to an edge: a status, headers and a body, in one piece or in many. It knows no HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.replay.place import Place
from holdfast.replay.policy import GUARDS, OWN_PAGE_POLICY

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One response, ready to be sent."""

    status: int
    headers: Headers
    body: bytes | Iterator[bytes] = b""


class Asking(NamedTuple):
    """What of a request matters to replay, beside its address."""

    place: Place
    accepts_gzip: bool = False
    if_none_match: str = ""
    byte_range: str = ""
    if_range: str = ""
    sent: str = ""
    """What a request other than GET carried, spelt as part of its key (`index.postquery`); empty for GET and HEAD."""
    mode: str = ""
    destination: str = ""
    """Sec-Fetch-Mode and Sec-Fetch-Dest: what a browser wants it for; empty where it does not say."""
    is_led: bool = False
    """Whether a page led the reader here, by Sec-Fetch-Site; an address that was typed in was not."""

    @property
    def is_framed(self) -> bool:
        """Whether the answer is to be shown inside another page."""
        return self.destination in ("iframe", "frame", "embed", "object")


def own_page(body: bytes, status: int = 200, extra: Headers | None = None) -> Answer:
    """Return a page that we wrote ourselves."""
    headers = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", OWN_PAGE_POLICY),
        ("Cache-Control", "no-cache"),
        *GUARDS,
        *(extra or []),
    ]
    return Answer(status=status, headers=headers, body=body)


def redirect(status: int, location: str, headers: Headers) -> Answer:
    """Return a redirect of our own, to a place in the archive."""
    return Answer(
        status=status,
        headers=[
            ("Location", location),
            ("Content-Security-Policy", OWN_PAGE_POLICY),
            ("Cache-Control", "no-cache"),
            *GUARDS,
            *headers,
        ],
    )
