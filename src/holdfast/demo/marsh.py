"""The marsh station's bundled website: files in two folders; the later ones replace the earlier ones."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from holdfast.demo.answers import TYPES, SiteAnswer, SiteContent, moved, refused, sitemap, stored

_BUNDLE = resources.files(__package__)
_REDIRECTS = {"/home": "/", "/index.html": "/"}
_PRIVATE = "/private/"
# What the later edition of the site no longer has.
_REMOVED = ("/notes/winter-gulls.html",)
_MISSING = "<!DOCTYPE html><title>Not found</title><p>The tide took this page. <a href='/'>Home</a></p>"


def marsh_content(origin: str, *, is_later: bool) -> SiteContent:
    """Return the site's first or later edition; in the later, pages were edited, one is gone, a lost one is back."""
    files = read_files(_BUNDLE / "site", origin)
    if is_later:
        files |= read_files(_BUNDLE / "later", origin)
        files = {path: file for path, file in files.items() if path not in _REMOVED}
    public = [path for path, file in files.items() if file.is_page and not path.startswith(_PRIVATE)]
    listed = sitemap({f"{origin}{path}": None for path in sorted(public)})
    answers = files | {"/sitemap.xml": stored(listed, ".xml")} | {old: moved(new) for old, new in _REDIRECTS.items()}
    return SiteContent(answers=answers, missing=refused(HTTPStatus.NOT_FOUND, _MISSING))


def files_below(folder: Traversable, below: str = "/") -> Iterator[tuple[str, Traversable]]:
    """Yield every file in a folder and in those inside it, with its path."""
    for item in folder.iterdir():
        if item.is_dir():
            yield from files_below(item, f"{below}{item.name}/")
        else:
            yield f"{below}{item.name}", item


def page_path(path: str) -> str:
    """Return the address of a file: `/` for `/index.html`."""
    return path.removesuffix("index.html") if path.endswith("/index.html") else path


def read_files(folder: Traversable, origin: str) -> dict[str, SiteAnswer]:
    found: dict[str, SiteAnswer] = {}
    for path, item in files_below(folder):
        suffix = PurePosixPath(path).suffix
        if suffix in TYPES:
            # The port may be the kernel's choice, so robots.txt cannot name its sitemap by address.
            body = item.read_bytes()
            if item.name == "robots.txt":
                body = body.replace(b"{origin}", origin.encode())
            found[page_path(path)] = stored(body, suffix)
    return found
