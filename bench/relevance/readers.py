"""Readers of back-of-book indexes: each yields an entry as a reader would type it, and the address it leads to."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag

from selectolax.lexbor import LexborHTMLParser

IndexReader = Callable[[Path], Iterator[tuple[str, str]]]
"""Takes the manual's folder."""

_NOT_TYPED = re.compile(r"\(\)|\((?:in module|class in|C \w+|built-in \w+|module)?|\b(?:method|attribute)\)|[()]")
_BOOKMARK = re.compile(r'\{url:"([^"?]+)[^"]*", app:"[^"]*", text:"([^"]+)"\}')


def _links(page: Path, css: str, root: Path) -> Iterator[tuple[str, str]]:
    """Yield text and target of the links of a page."""
    folder = page.parent.relative_to(root).as_posix()
    for link in LexborHTMLParser(page.read_bytes()).css(css):
        target = unquote(urldefrag(link.attributes.get("href") or "")[0])
        if target and ":" not in target:
            yield " ".join(link.text().split()), posixpath.normpath(posixpath.join(folder, target)).lower()


def sphinx(root: Path) -> Iterator[tuple[str, str]]:
    """Read a Sphinx index; leave out the words that only distinguish two entries of one name."""
    for path in sorted(root.glob("genindex-?.html")) or [root / "genindex.html"]:
        for text, target in _links(path, "table.indextable a, table.genindextable a", root):
            if not text.startswith("["):
                yield " ".join(_NOT_TYPED.sub(" ", text).split()), target


def docbook(root: Path) -> Iterator[tuple[str, str]]:
    """Read a DocBook index."""
    index = next(path for name in ("bookindex", "gimp-help-index") if (path := root / f"{name}.html").exists())
    for entry in LexborHTMLParser(index.read_bytes()).css(".indexdiv > dl > dt"):
        text = ""
        for part in entry.iter(include_text=True):
            if part.tag == "a":
                break
            text += part.text()
        named = re.sub(r"\([^)]*\)", " ", text).rstrip(", \n")
        for link in entry.css("a.indexterm"):
            yield " ".join(named.split()), unquote(urldefrag(link.attributes.get("href") or "")[0]).lower()


def texinfo(root: Path) -> Iterator[tuple[str, str]]:
    """Read the indexes of a Texinfo manual."""
    for path in sorted(root.glob("*-Index.html")):
        yield from _links(path, "table[class^=index-] td[valign=top]:nth-child(2) > a", root)


def apache(root: Path) -> Iterator[tuple[str, str]]:
    """Read Apache's list of directives."""
    for text, target in _links(root / "mod" / "directives.html", "#directive-list li > a", root):
        yield text.strip("<>"), target


def sqlite(root: Path) -> Iterator[tuple[str, str]]:
    """Read SQLite's list of keywords."""
    yield from _links(root / "keyword_index.html", "ul.lessindent > li > a", root)


def libreoffice(root: Path) -> Iterator[tuple[str, str]]:
    """Read LibreOffice's bookmarks: an entry and its sub-entry are typed one after the other."""
    for path in sorted(root.glob("*/bookmarks.js")):
        for target, text in _BOOKMARK.findall(path.read_text()):
            yield text.replace(" -- ", " "), unquote(target).lower()
