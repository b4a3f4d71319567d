"""Where the references of one archived page lead: into the archive, at the page's own moment. It fetches nothing."""

from __future__ import annotations

from url import URL, URLError

from holdfast.replay.address import Modifier, replay_path

_MAX_CHARS = 8192
_MAX_REMEMBERED = 4096


class Links:
    """The references of one page, each resolved once however often it is written."""

    __slots__ = ("_base", "_has_base", "_known", "digits", "modifier", "prefix")

    def __init__(self, url: str, *, digits: str, modifier: Modifier = Modifier.PAGE, prefix: str = "") -> None:
        """Take the address of the page, the moment that its links keep, and the origin before them, if they need one.

        A page's links keep its own modifier, so that a frame stays one; an address that is none resolves nothing.
        """
        self.digits, self.modifier, self.prefix = digits, modifier, prefix
        self._known: dict[tuple[str, str], str | None] = {}
        self._has_base = False
        try:
            base = URL.parse(url)
        except (URLError, ValueError):
            base = None
        self._base = None if base is None or base.cannot_be_a_base else base

    def to(self, reference: str, modifier: str) -> str | None:
        """Return where a reference leads inside the archive; None to leave it as it is.

        Left alone are fragments, the empty reference, what is no http(s) address (`javascript:`, `data:`, `mailto:`)
        and what no browser can resolve either.
        """
        if not reference or reference[0] == "#" or len(reference) > _MAX_CHARS:
            return None
        key = (reference, modifier)
        if key in self._known:
            return self._known[key]
        written = self._written_out(reference)
        target = None if written is None else self.prefix + replay_path(self.digits, modifier, written)
        if len(self._known) < _MAX_REMEMBERED:
            self._known[key] = target
        return target

    def set_base(self, href: str) -> None:
        """Take the href of a base element; only the first counts, as in browsers."""
        if self._has_base or self._base is None or len(href) > _MAX_CHARS:
            return
        self._has_base = True
        try:
            base = self._base.join(href)
        except (URLError, ValueError):
            return
        if not base.cannot_be_a_base:
            self._base = base
            self._known.clear()

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
