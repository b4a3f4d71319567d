"""From the bytes of a page or sheet to the bytes that are replayed, in the same charset wherever that is possible."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.parse.charset import decode, decode_text
from holdfast.replay.deadline import Deadline
from holdfast.replay.links import Links
from holdfast.replay.markup import Bar, Markup
from holdfast.replay.sheet import rewrite_css

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


def rewrite_page(body: bytes, declared: str | None, links: Links, deadline: Deadline, *, bar: Bar | None) -> Rewritten:
    """Return a page whose references lead into the archive; `declared` is its header's charset. TooSlow if it drags."""
    view = _view(body, declared)
    is_xml = view.text[:256].lstrip("\ufeffï»¿ \t\r\n").startswith("<?xml")
    return view.packed(Markup(links, deadline, decode=view.real, is_xml=is_xml).rewrite(view.text, bar))


def rewrite_sheet(body: bytes, declared: str | None, links: Links, deadline: Deadline) -> Rewritten:
    """Return a style sheet whose references lead into the archive. TooSlow if it takes too long."""
    view = _view(body, declared)

    def resolve(reference: str, modifier: str) -> str | None:
        return links.to(reference if reference.isascii() else view.real(reference), modifier)

    return view.packed(rewrite_css(view.text, resolve, deadline))
