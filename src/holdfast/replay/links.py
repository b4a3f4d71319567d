"""Where the references of one archived page lead: into the archive, at the page's own moment. It fetches nothing."""

from __future__ import annotations

import re
from copy import copy

from url import URL, URLError

from holdfast.replay.address import Modifier, replay_path
from holdfast.replay.site_pass import site_of

MAX_CHARS = 8192
"""Longer references are not looked up: no archive has them."""
_MAX_REMEMBERED = 4096
_ELSEWHERE = re.compile(r"[\x00-\x20]{0,64}(?!https?:)[a-z][a-z0-9+.\-]{0,31}:", re.IGNORECASE)
_NOWHERE = "http://too-long.invalid/"
"""Where a reference leads that is too long to be looked up, so that it does not lead out of the archive."""


class Links:
    """The references of one page, each resolved once however often it is written."""

    __slots__ = ("_base", "_has_base", "_known", "_site", "digits", "modifier", "prefix", "site_pass")

    def __init__(
        self, url: str, *, digits: str, modifier: Modifier = Modifier.PAGE, prefix: str = "", site_pass: str = ""
    ) -> None:
        """Take the address of the page, the moment that its links keep, and the origin before them, if they need one.

        A page's links keep its own modifier, so that a frame stays one; an address that is none resolves nothing.
        `site_pass` is the pass of the page's site, for what its scripts may read.
        """
        self.digits, self.modifier, self.prefix, self.site_pass = digits, modifier, prefix, site_pass
        self._site = site_of(url) if site_pass else ""
        self._known: dict[tuple[str, str, bool], str | None] = {}
        self._has_base = False
        try:
            base = URL.parse(url)
        except (URLError, ValueError):
            base = None
        self._base = None if base is None or base.cannot_be_a_base else base

    def to(self, reference: str, modifier: str) -> str | None:
        """Return where a reference leads inside the archive; None to leave it as it is.

        Left alone are fragments, the empty reference, what is no http(s) address (`javascript:`, `data:`, `mailto:`)
        and what no browser can resolve either. A reference that is too long leads to nothing in the archive.
        """
        return self._to(reference, modifier, readable=False)

    def to_readable(self, reference: str, modifier: str) -> str | None:
        """Return where a reference leads whose answer scripts may read; None if it leads to another site or nowhere."""
        return self._to(reference, modifier, readable=True) if self.site_pass else None

    def _to(self, reference: str, modifier: str, *, readable: bool) -> str | None:
        if not reference or reference[0] == "#":
            return None
        if len(reference) > MAX_CHARS:
            return None if readable or is_elsewhere(reference) else self._path(modifier, _NOWHERE)
        key = (reference, modifier, readable)
        if key in self._known:
            return self._known[key]
        written = self._written_out(reference)
        if written is None or (readable and site_of(written) != self._site):
            target = None
        else:
            target = self._path(modifier, written, self.site_pass if readable else "")
        if len(self._known) < _MAX_REMEMBERED:
            self._known[key] = target
        return target

    def _path(self, modifier: str, url: str, site_pass: str = "") -> str:
        return self.prefix + replay_path(self.digits, modifier, url, site_pass=site_pass)

    def set_base(self, href: str) -> None:
        """Take the href of a base element; only the first counts, as in browsers."""
        if self._has_base or self._base is None or len(href) > MAX_CHARS:
            return
        self._has_base = True
        try:
            base = self._base.join(href)
        except (URLError, ValueError):
            return
        if not base.cannot_be_a_base:
            self._base = base
            self._known.clear()

    def inside(self) -> Links:
        """Return what resolves the references of a document in an attribute of this page.

        It begins at this page's base, and a base element of its own is not this page's.
        """
        inner = copy(self)
        inner._known, inner._has_base = {}, False
        return inner

    def _written_out(self, reference: str) -> str | None:
        if self._base is None:
            return None
        bare = reference.strip(" \t\n\r\f")
        if not bare or bare[0] == "#":
            return None
        if bare.startswith("///"):  # browsers ignore slashes beyond two, the parser does not
            bare = f"//{bare.lstrip('/')}"
        try:
            written = str(self._base.join(bare))
        except (URLError, ValueError):
            return None
        return written if written.startswith(("http://", "https://")) else None


def is_elsewhere(reference: str) -> bool:
    """Return whether a reference has a scheme that is not of the web: `data:`, `javascript:`, `mailto:`."""
    return _ELSEWHERE.match(reference) is not None
