"""Maps the references of one archived page into the archive, at the page's own time. It fetches nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from enum import Enum, auto
from html.entities import html5

from url import URL, URLError

from holdfast.clock import Clock
from holdfast.errors import Unavailable
from holdfast.replay.address import Modifier, replay_path
from holdfast.replay.origins import site_of

MAX_CHARS = 8192
"""Longer references are not looked up: no archive has them."""
_MAX_REMEMBERED = 4096
_ELSEWHERE = re.compile(r"[\x00-\x20]{0,64}(?!https?:)[a-z][a-z0-9+.\-]{0,31}:", re.IGNORECASE)
# Target of a reference that is too long to be looked up, so that it stays in the archive.
_NOWHERE = "http://too-long.invalid/"


class Links:
    """The references of one page, each resolved once however often it appears."""

    __slots__ = ("_base", "_has_base", "_known", "_site", "digits", "modifier", "prefix", "site_pass")

    def __init__(
        self, url: str, *, digits: str, modifier: Modifier = Modifier.PAGE, prefix: str = "", site_pass: str = ""
    ) -> None:
        """Set the page's address, the time for its links, and the origin before them, if needed.

        Links inherit the page's modifier, so that a frame stays one; an invalid address resolves nothing. `site_pass`
        is the pass of the page's site, for content that its scripts may read.
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
        """Return the archive URL of a reference; None to leave it unchanged.

        Unchanged are fragments, the empty reference, other schemes than http(s) (`javascript:`, `data:`, `mailto:`),
        and references that no browser can resolve. A reference that is too long leads to nothing in the archive.
        """
        return self._to(reference, modifier, readable=False)

    def to_readable(self, reference: str, modifier: str) -> str | None:
        """Return an archive URL that scripts may read; None for another site or an unresolvable reference."""
        return self._to(reference, modifier, readable=True) if self.site_pass else None

    def _to(self, reference: str, modifier: str, *, readable: bool) -> str | None:
        if not reference or reference[0] == "#":
            return None
        # Unchanged, a long URL would leave the archive for the live web.
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
        # A hostile page may contain a million different references: remember no more than a real page has.
        if len(self._known) < _MAX_REMEMBERED:
            self._known[key] = target
        return target

    def _path(self, modifier: str, url: str, site_pass: str = "") -> str:
        return self.prefix + replay_path(self.digits, modifier, url, site_pass=site_pass)

    def set_base(self, href: str) -> None:
        """Set the base from a base element's href; only the first counts, as in browsers."""
        if self._has_base or self._base is None or len(href) > MAX_CHARS:
            return
        self._has_base = True
        try:
            base = self._base.join(href)
        except (URLError, ValueError):
            return
        if not base.cannot_be_a_base:
            self._base = base
            # References resolved against the old base are invalid now.
            self._known.clear()

    def inside(self) -> Links:
        """Return a resolver for a document in an attribute of this page.

        It starts with this page's base; a base element in the document does not affect this page.
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
        # Browsers ignore slashes beyond two, the parser does not.
        if bare.startswith("///"):
            bare = f"//{bare.lstrip('/')}"
        try:
            written = str(self._base.join(bare))
        except (URLError, ValueError):
            return None
        # Keep `javascript:`, `data:` and `mailto:`: they send no request.
        return written if written.startswith(("http://", "https://")) else None


def is_elsewhere(reference: str) -> bool:
    """Return whether a reference has a non-web scheme: `data:`, `javascript:`, `mailto:`."""
    return _ELSEWHERE.match(reference) is not None


class AttributeKind(Enum):
    """How to interpret an attribute's value."""

    ADDRESS = auto()
    SRCSET = auto()
    STYLE = auto()
    SRCDOC = auto()
    REFRESH = auto()
    RETIRED = auto()
    """Renamed, so that browsers ignore it."""


RETIRED_PREFIX = "data-archive-orig-"

_ADDRESSES = frozenset(
    {
        *("href", "src", "action", "formaction", "poster", "background", "data", "codebase", "archive"),
        *("cite", "longdesc", "manifest", "xlink:href", "lowsrc", "dynsrc", "data-src", "data-original"),
        *("data-lazy-src", "data-background", "data-background-image", "data-bg", "data-poster"),
    }
)
_SRCSETS = frozenset({"srcset", "imagesrcset", "data-srcset", "data-lazy-srcset"})
# integrity: rewritten content has other bytes. ping, attributionsrc: they report that the page is being read. csp: the
# archive's own policy is stricter.
_RETIRED = frozenset({"integrity", "ping", "attributionsrc", "csp"})
_RETIRED_METAS = frozenset(
    {
        *("content-security-policy", "content-security-policy-report-only", "x-content-security-policy"),
        *("x-webkit-csp", "x-dns-prefetch-control", "set-cookie", "origin-trial"),
        *("delegate-ch", "accept-ch", "pics-label", "x-frame-options"),
    }
)

_BY_TAG = {
    "img": Modifier.IMAGE,
    "image": Modifier.IMAGE,
    "input": Modifier.IMAGE,
    "use": Modifier.IMAGE,
    "feimage": Modifier.IMAGE,
    "picture": Modifier.IMAGE,
    "body": Modifier.IMAGE,
    "table": Modifier.IMAGE,
    "td": Modifier.IMAGE,
    "script": Modifier.SCRIPT,
    "iframe": Modifier.FRAME,
    "frame": Modifier.FRAMESET,
    "embed": Modifier.OBJECT,
    "object": Modifier.OBJECT,
    "applet": Modifier.OBJECT,
    "audio": Modifier.OBJECT,
    "video": Modifier.OBJECT,
    "source": Modifier.OBJECT,
    "track": Modifier.OBJECT,
    "bgsound": Modifier.OBJECT,
    "html": Modifier.OBJECT,
}
_IMAGES = frozenset(
    {
        *("poster", "background", "lowsrc", "data-src", "data-original", "data-lazy-src"),
        *("data-background", "data-background-image", "data-bg", "data-poster"),
    }
)
_BY_REL = {
    "stylesheet": Modifier.STYLE,
    "icon": Modifier.IMAGE,
    "apple-touch-icon": Modifier.IMAGE,
    "apple-touch-icon-precomposed": Modifier.IMAGE,
    "mask-icon": Modifier.IMAGE,
    "image_src": Modifier.IMAGE,
    "modulepreload": Modifier.SCRIPT,
    "manifest": Modifier.OBJECT,
}
_BY_AS = {
    "style": Modifier.STYLE,
    "script": Modifier.SCRIPT,
    "worker": Modifier.SCRIPT,
    "image": Modifier.IMAGE,
    "font": Modifier.OBJECT,
    "fetch": Modifier.OBJECT,
    "track": Modifier.OBJECT,
    "video": Modifier.OBJECT,
    "audio": Modifier.OBJECT,
    "document": Modifier.FRAME,
}
_OTHER_WINDOWS = frozenset({"_blank", "_new", "_top", "_parent"})
# A preload is more than a hint: scripts turn it into a style sheet (`onload="this.rel='stylesheet'"`).
_HINTS = frozenset({"prefetch", "prerender", "preconnect", "dns-prefetch"})
# Content that scripts can read if it is marked `crossorigin`: pixels, samples, cues.
_READ = frozenset({"img", "image", "video", "audio", "source", "track"})


_KINDS = {
    **dict.fromkeys(_ADDRESSES, AttributeKind.ADDRESS),
    **dict.fromkeys(_SRCSETS, AttributeKind.SRCSET),
    **dict.fromkeys(_RETIRED, AttributeKind.RETIRED),
    "style": AttributeKind.STYLE,
}


def kind_of(tag: str, name: str, values: Mapping[str, str]) -> AttributeKind | None:
    """Return how to interpret this attribute; None to leave it unchanged."""
    found = _KINDS.get(name)
    if found is not None:
        return None if name == "data" and tag != "object" else found
    if name == "srcdoc" and tag == "iframe":
        return AttributeKind.SRCDOC
    if tag == "meta":
        return _kind_of_meta(name, values)
    if name == "type" and tag == "script" and values[name].strip().lower() == "speculationrules":
        return AttributeKind.RETIRED
    # A sandbox opens no windows and cannot leave its frame: such a link would do nothing.
    if name == "target" and values[name].strip().lower() in _OTHER_WINDOWS:
        return AttributeKind.RETIRED
    if name == "crossorigin" and values[name].strip().lower() == "use-credentials":
        return AttributeKind.RETIRED
    if name == "rel" and tag == "link" and _is_hint(values):
        return AttributeKind.RETIRED
    return None


def is_readable(tag: str, values: Mapping[str, str]) -> bool:
    """Return whether a page embeds this with permission to read it."""
    if "crossorigin" not in values:
        return False
    return tag in _READ or (tag == "link" and values.get("as", "").strip().lower() == "fetch")


def _kind_of_meta(name: str, values: Mapping[str, str]) -> AttributeKind | None:
    effect = values.get("http-equiv", "").strip().lower()
    if name == "content" and effect == "refresh":
        return AttributeKind.REFRESH
    return AttributeKind.RETIRED if name == "http-equiv" and effect in _RETIRED_METAS else None


def _is_hint(values: Mapping[str, str]) -> bool:
    """Whether a link only is a performance hint; in an archive that is a useless request."""
    words = frozenset(values["rel"].lower().split())
    return bool(words) and words <= _HINTS


def modifier_of(tag: str, name: str, values: Mapping[str, str], page: Modifier) -> Modifier:
    """Return the modifier for an address in this place; `page` is the modifier of the page itself."""
    if name in _IMAGES:
        return Modifier.IMAGE
    if tag == "link" and name == "href":
        for word in values.get("rel", "").lower().split():
            if word in _BY_REL:
                return _BY_REL[word]
        return _BY_AS.get(values.get("as", "").lower(), page)
    if name in ("cite", "longdesc", "formaction", "action"):
        return page
    return _BY_TAG.get(tag, page)


# Steps between two reads of the clock: a step takes about a microsecond, a read half of one.
_STRIDE = 256


class TooSlow(Unavailable):
    """Rewriting this capture takes too long."""

    code = "rewrite_too_slow"


class Deadline:
    """Counts steps, and reads the clock only from time to time."""

    __slots__ = ("_clock", "_ends_at", "_left")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._ends_at = clock.monotonic() + seconds
        self._left = _STRIDE

    def check(self, steps: int = 1) -> None:
        """Count steps; raise TooSlow after the deadline."""
        self._left -= steps
        if self._left <= 0:
            self._left = _STRIDE
            if self._clock.monotonic() > self._ends_at:
                raise TooSlow("this page takes too long to rewrite; its raw bytes are at /web/<digits>id_/<address>")


# Characters escaped between two checks of the deadline.
_STEP_CHARS = 4096
_REFERENCE = re.compile(r"&(?:#([0-9]{1,9});?|#[xX]([0-9a-fA-F]{1,8});?|([A-Za-z][A-Za-z0-9]{0,40})(;?))")
_SPECIAL = re.compile(r"[&\"<>]|[^\x20-\x7e]")
_NAMED = {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;"}
# The numbers 128 to 159 mean windows-1252 (HTML standard, "numeric character reference end state").
_LATIN_HOLE = {0x80 + at: bytes((0x80 + at,)).decode("cp1252", "replace") for at in range(32)}


def unescape(value: str, deadline: Deadline | None = None) -> str:
    """Decode the character references of an attribute's value; raise TooSlow on timeout.

    A name without a semicolon before `=` is unchanged, as in browsers: `?a=1&copy=2` has no copyright sign.
    """
    if "&" not in value:
        return value

    def character(match: re.Match[str]) -> str:
        if deadline is not None:
            deadline.check()
        return _character(match, value)

    return _REFERENCE.sub(character, value)


def _character(match: re.Match[str], value: str) -> str:
    decimal, hexadecimal, name, semicolon = match.groups()
    if name is not None:
        if semicolon:
            return html5.get(f"{name};", match[0])
        # HTML standard, "named character reference state": keeps the meaning of old query strings.
        return match[0] if value[match.end() : match.end() + 1] == "=" else html5.get(name, match[0])
    code = int(decimal) if decimal is not None else int(hexadecimal, 16)
    if code in _LATIN_HOLE:
        return _LATIN_HOLE[code]
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"


def escape(text: str, deadline: Deadline | None = None) -> str:
    """Escape a text for an element or a double-quoted attribute, in ASCII, so that it is right in any charset.

    Raise TooSlow on timeout.
    """
    # Nearly every URL is plain ASCII, and `replace` is faster than the pattern.
    if text.isascii() and text.isprintable():
        return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    pieces = []
    for at in range(0, len(text), _STEP_CHARS):
        if deadline is not None:
            deadline.check(_STEP_CHARS // 8)
        pieces.append(_SPECIAL.sub(_reference, text[at : at + _STEP_CHARS]))
    return "".join(pieces)


def _reference(match: re.Match[str]) -> str:
    return _NAMED.get(match[0]) or f"&#{ord(match[0])};"
