"""From the bytes of a page or sheet to the bytes that are replayed, in the same charset wherever that is possible."""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.parse.charset import decode, decode_text
from holdfast.parse.page import looks_pathological
from holdfast.parse.text import tree_of
from holdfast.replay.css import rewrite_css
from holdfast.replay.links import RETIRED_PREFIX, Deadline, Links, escape, is_elsewhere
from holdfast.replay.markup import Bar, Markup, refresh_target

# In these a byte of markup may be part of another character: they are decoded, and served as UTF-8.
_WIDE = frozenset({"utf-16le", "utf-16be", "iso-2022-jp", "us-ascii"})


class Rewritten(NamedTuple):
    """A body to serve, and the charset to announce with it."""

    body: bytes
    charset: str


class _View(NamedTuple):
    """A body as text to cut: its own characters, or one for each byte of a charset that markup is safe in."""

    text: str
    charset: str
    is_bytes: bool

    def real(self, piece: str) -> str:
        """Return what a piece of the text says."""
        return decode_text(piece.encode("latin-1"), self.charset)[0] if self.is_bytes else piece

    def packed(self, text: str) -> Rewritten:
        """Return a changed text as bytes."""
        if self.is_bytes:
            return Rewritten(text.encode("latin-1"), self.charset)
        return Rewritten(text.encode("utf-8", "replace"), "utf-8")


def _view(body: bytes, declared: str | None) -> _View:
    content, charset, _ = decode(body, declared)
    if charset in _WIDE:
        # `us-ascii` stands for the encodings that browsers refuse, too.
        return _View(content if isinstance(content, str) else content.decode("utf-8", "replace"), charset, False)
    return _View(body.decode("latin-1"), charset, True)


class Additions(NamedTuple):
    """What a page gets from us."""

    bar: Bar | None = None
    shim: str = ""
    is_xml: bool = False
    """Whether browsers read it as XML, where no tag may be left out."""
    framed_at: str = ""
    """Where the page is without the bar: a frameset is shown below the bar in a frame of its own."""


NOTHING = Additions()


def rewrite_page(
    body: bytes, declared: str | None, links: Links, deadline: Deadline, add: Additions = NOTHING
) -> Rewritten:
    """Return a page whose references lead into the archive; `declared` is its header's charset. TooSlow if it drags."""
    view = _view(body, declared)
    markup = Markup(links, deadline, decode=view.real, is_xml=add.is_xml, shim=add.shim)
    text = markup.rewrite(view.text, add.bar)
    if markup.has_frames and add.bar is not None and add.framed_at:
        text = framed(markup.title, add.bar, add.framed_at)
    elif _may_refresh(text) and _refreshes_elsewhere(text, links):
        text = _without_refresh(text)
    return view.packed(text)


_FRAMED = (
    "<!doctype html><html><head><title>{title}</title><style>html,body{{height:100%;margin:0}}"
    "body{{display:flex;flex-direction:column}}iframe{{flex:1;border:0;width:100%}}</style></head>"
    '<body>{bar}<iframe src="{address}"></iframe></body></html>\n'
)


def framed(title: str, bar: Bar, address: str) -> str:
    """Return a page of ours with the bar above and the capture in a frame; the title is markup already."""
    return _FRAMED.format(title=title, bar=bar.html, address=escape(address))


_MAX_PARSED = 1024 * 1024
_EQUIV = re.compile(r"http-equiv", re.IGNORECASE)
_REFRESHES = re.compile(r"refresh", re.IGNORECASE)


def _may_refresh(text: str) -> bool:
    return _EQUIV.search(text) is not None and _REFRESHES.search(text) is not None


def _refreshes_elsewhere(text: str, links: Links) -> bool:
    """Return whether a browser would find a refresh in this page that leads out of the archive.

    The rewriter goes by tags, and a hostile page may nest drawings, raw text and tables so that a tag shows up for a
    browser where the rewriter saw none. A whole parser sees what a browser sees; what is dangerous to parse is guilty.
    """
    if len(text) > _MAX_PARSED or looks_pathological(text.encode("latin-1", "replace")) is not None:
        return True
    for meta in tree_of(text).css("meta[http-equiv]"):
        if (meta.attributes.get("http-equiv") or "").strip().lower() == "refresh":
            target = refresh_target(meta.attributes.get("content") or "")
            is_inside = target.startswith((f"{links.prefix}/web/", "#")) or is_elsewhere(target)
            if target and not is_inside:
                return True
    return False


def _without_refresh(text: str) -> str:
    """Return a page in which no tag refreshes anything, wherever a browser finds one."""
    return _EQUIV.sub(f"{RETIRED_PREFIX}http-equiv", text)


def unrewritten_page(body: bytes, declared: str | None) -> Rewritten:
    """Return a page that could not be rewritten, as it was but for its refreshes, which need no script to lead out."""
    view = _view(body, declared)
    return view.packed(_without_refresh(view.text) if _may_refresh(view.text) else view.text)


def rewrite_sheet(body: bytes, declared: str | None, links: Links, deadline: Deadline) -> Rewritten:
    """Return a style sheet whose references lead into the archive. TooSlow if it takes too long."""
    view = _view(body, declared)

    def resolve(reference: str, modifier: str) -> str | None:
        return links.to(reference if reference.isascii() else view.real(reference), modifier)

    return view.packed(rewrite_css(view.text, resolve, deadline))
