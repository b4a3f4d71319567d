"""Which attributes of which elements hold addresses, and what kind of capture each asks for. Pure tables."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from holdfast.replay.address import Modifier


class Kind(Enum):
    """How an attribute's value is read."""

    ADDRESS = auto()
    SRCSET = auto()
    STYLE = auto()
    SRCDOC = auto()
    REFRESH = auto()
    RETIRED = auto()
    """Kept under another name, where no browser acts on it."""


RETIRED_PREFIX = "data-archive-orig-"

_ADDRESSES = frozenset(
    {
        "href", "src", "action", "formaction", "poster", "background", "data", "codebase", "archive", "cite",
        "longdesc", "manifest", "xlink:href", "lowsrc", "dynsrc", "data-src", "data-original", "data-lazy-src",
        "data-background", "data-background-image", "data-bg", "data-poster",
    }
)  # fmt: skip
_SRCSETS = frozenset({"srcset", "imagesrcset", "data-srcset", "data-lazy-srcset"})
# integrity: what we rewrite has other bytes. ping, attributionsrc: they tell others that somebody read the page.
# csp: the archive's own policy is stricter. nonce: ours is not theirs.
_RETIRED = frozenset({"integrity", "ping", "attributionsrc", "csp"})
_RETIRED_METAS = frozenset(
    {
        "content-security-policy", "content-security-policy-report-only", "x-content-security-policy",
        "x-webkit-csp", "x-dns-prefetch-control", "set-cookie", "origin-trial", "delegate-ch", "accept-ch",
        "pics-label", "x-frame-options",
    }
)  # fmt: skip

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
    {"poster", "background", "lowsrc", "data-src", "data-original", "data-lazy-src", "data-background",
     "data-background-image", "data-bg", "data-poster"}
)  # fmt: skip
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
    "style": Modifier.STYLE, "script": Modifier.SCRIPT, "worker": Modifier.SCRIPT, "image": Modifier.IMAGE,
    "font": Modifier.OBJECT, "fetch": Modifier.OBJECT, "track": Modifier.OBJECT, "video": Modifier.OBJECT,
    "audio": Modifier.OBJECT, "document": Modifier.FRAME,
}  # fmt: skip
_OTHER_WINDOWS = frozenset({"_blank", "_new", "_top", "_parent"})
# A preload is no mere hint: scripts of its own turn it into the style sheet (`onload="this.rel='stylesheet'"`).
_HINTS = frozenset({"prefetch", "prerender", "preconnect", "dns-prefetch"})
_READ = frozenset({"img", "image", "video", "audio", "source", "track"})
"""What scripts can read once it is marked `crossorigin`: pixels, samples, cues."""


_KINDS = {
    **dict.fromkeys(_ADDRESSES, Kind.ADDRESS),
    **dict.fromkeys(_SRCSETS, Kind.SRCSET),
    **dict.fromkeys(_RETIRED, Kind.RETIRED),
    "style": Kind.STYLE,
}


def kind_of(tag: str, name: str, values: Mapping[str, str]) -> Kind | None:
    """Return how this attribute of this element is read; None if it is left alone."""
    found = _KINDS.get(name)
    if found is not None:
        return None if name == "data" and tag != "object" else found
    if name == "srcdoc" and tag == "iframe":
        return Kind.SRCDOC
    if tag == "meta":
        return _kind_of_meta(name, values)
    if name == "type" and tag == "script" and values[name].strip().lower() == "speculationrules":
        return Kind.RETIRED
    # A sandbox opens no window and leaves no frame: such a link would do nothing.
    if name == "target" and values[name].strip().lower() in _OTHER_WINDOWS:
        return Kind.RETIRED
    if name == "crossorigin" and values[name].strip().lower() == "use-credentials":
        return Kind.RETIRED
    if name == "rel" and tag == "link" and _is_hint(values):
        return Kind.RETIRED
    return None


def is_readable(tag: str, values: Mapping[str, str]) -> bool:
    """Return whether a page asks for what it embeds here with leave to read it."""
    if "crossorigin" not in values:
        return False
    return tag in _READ or (tag == "link" and values.get("as", "").strip().lower() == "fetch")


def _kind_of_meta(name: str, values: Mapping[str, str]) -> Kind | None:
    effect = values.get("http-equiv", "").strip().lower()
    if name == "content" and effect == "refresh":
        return Kind.REFRESH
    return Kind.RETIRED if name == "http-equiv" and effect in _RETIRED_METAS else None


def _is_hint(values: Mapping[str, str]) -> bool:
    """Whether a link only tells a browser to hurry; in an archive that is a request for nothing."""
    words = frozenset(values["rel"].lower().split())
    return bool(words) and words <= _HINTS


def modifier_of(tag: str, name: str, values: Mapping[str, str], page: Modifier) -> Modifier:
    """Return what kind of capture an address in this place asks for; `page` is the kind of the page itself."""
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
