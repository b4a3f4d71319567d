"""The manuals: their packages, their pages, and the half that each belongs to.

A manual is one package in one language. The bench downloads the package and unpacks it into the work folder; it
installs nothing. The sha256 of a manual's name decides its half. The set was chosen before the first run, so that each
half has English, four other spaced languages and three that the bench treats as unspaced.
"""

from __future__ import annotations

import hashlib
import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from bench.relevance import readers

SEED: Final = 20261116
PAGE_LIMIT: Final = 1500
HALVES: Final = ("tuning", "reporting")
UNSPACED: Final = ("ja", "ko", "th", "zh")
"""Languages whose questions are runs of characters. Korean has spaces, but its particles are part of the word."""

_REFRESH = re.compile(rb"(?i)<meta[^>]{0,40}http-equiv=.?refresh")


class Manual(NamedTuple):
    """One package in one language."""

    name: str
    language: str
    package: str
    folder: str
    """The folder of the pages in the package; addresses are relative to it."""
    entries: readers.IndexReader | None = None
    """The reader of its back-of-book index."""
    below: str = ""
    """Only pages below this folder are part of the manual."""
    limit: int = PAGE_LIMIT
    """A larger manual is reduced to a seeded choice of its folders."""
    styles: str = ""
    """Another package with the style sheets."""

    @property
    def half(self) -> str:
        """The half that the manual's name falls into."""
        return HALVES[hashlib.sha256(self.name.encode()).digest()[0] % 2]

    @property
    def is_spaced(self) -> bool:
        """Whether the language puts spaces between words."""
        return self.language not in UNSPACED


_HANDBOOK: Final = "usr/share/doc/debian-handbook/html"
_INSTALL: Final = "usr/share/doc/installation-guide-amd64"
_APACHE: Final = "usr/share/doc/apache2-doc/manual"


def _libreoffice(language: str, folder: str) -> Manual:
    return Manual(
        f"libreoffice-{folder.lower()}", language, f"libreoffice-help-{folder.lower()}", "usr/share/libreoffice/help",
        readers.libreoffice, below=f"{folder}/text", limit=500, styles="libreoffice-help-common",
    )  # fmt: skip


MANUALS: Final = (
    Manual("postgresql", "en", "postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html", readers.docbook),
    Manual("sqlite", "en", "sqlite3-doc", "usr/share/doc/sqlite3", readers.sqlite),
    Manual("git", "en", "git-doc", "usr/share/doc/git-doc"),
    Manual("octave", "en", "octave-doc", "usr/share/doc/octave/octave.html", readers.texinfo),
    Manual("gimp-fr", "fr", "gimp-help-fr", "usr/share/gimp/2.0/help/fr", readers.docbook),
    Manual("handbook-de", "de", "debian-handbook", f"{_HANDBOOK}/de-DE"),
    Manual("aptitude-ru", "ru", "aptitude-doc-ru", "usr/share/doc/aptitude/html/ru"),
    Manual("apache-tr", "tr", "apache2-doc", f"{_APACHE}/tr", readers.apache),
    Manual("install-ja", "ja", "installation-guide-amd64", f"{_INSTALL}/ja"),
    _libreoffice("ko", "ko"),
    _libreoffice("zh", "zh-CN"),
    Manual("python", "en", "python3.11-doc", "usr/share/doc/python3.11/html", readers.sphinx),
    Manual("django", "en", "python-django-doc", "usr/share/doc/python-django-doc/html", readers.sphinx),
    Manual("exim", "en", "exim4-doc-html", "usr/share/doc/exim4-doc-html/spec_html"),
    Manual("apache-fr", "fr", "apache2-doc", f"{_APACHE}/fr", readers.apache),
    Manual("handbook-es", "es", "debian-handbook", f"{_HANDBOOK}/es-ES"),
    Manual("gimp-ru", "ru", "gimp-help-ru", "usr/share/gimp/2.0/help/ru", readers.docbook),
    Manual("aptitude-cs", "cs", "aptitude-doc-cs", "usr/share/doc/aptitude/html/cs"),
    Manual("apache-ja", "ja", "apache2-doc", f"{_APACHE}/ja", readers.apache),
    Manual("install-ko", "ko", "installation-guide-amd64", f"{_INSTALL}/ko"),
    Manual("handbook-zh-cn", "zh", "debian-handbook", f"{_HANDBOOK}/zh-CN"),
)


def once(target: Path, write: Callable[[Path], None]) -> Path:
    """Create a file or a folder if it is missing. It appears whole or not at all, also when two runs share a folder."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{target.name}.{random.SystemRandom().getrandbits(32):08x}")
        write(partial)
        if target.exists():
            subprocess.run(["rm", "-rf", partial], check=True)
        else:
            partial.rename(target)
    return target


def unpacked(manual: Manual, work: Path) -> Path:
    """Download and unpack the manual's packages once for a work folder; return the root of the unpacked files."""

    def unpack(tree: Path) -> None:
        tree.mkdir()
        for package in filter(None, (manual.package, manual.styles)):
            downloads = work / "packages" / package
            downloads.mkdir(parents=True, exist_ok=True)
            if not (found := sorted(downloads.glob("*.deb"))):
                subprocess.run(["apt-get", "-qq", "download", package], cwd=downloads, check=True)
                found = sorted(downloads.glob("*.deb"))
            subprocess.run(["dpkg", "-x", found[-1], tree], check=True)

    return once(work / "trees" / manual.package, unpack)


def pages_of(manual: Manual, tree: Path) -> dict[str, Path]:
    """Return the manual's pages by address, which is the path below its folder in lower case, as search returns it.

    Pages that only redirect are left out, and so is the second of two pages whose addresses differ in case alone.
    """
    root = tree / manual.folder
    folders: dict[Path, dict[str, Path]] = defaultdict(dict)
    for path in sorted((root / manual.below).rglob("*.html")):
        if path.is_file() and not _REFRESH.search(_head(path)):
            folders[path.parent].setdefault(path.relative_to(root).as_posix().lower(), path)
    order = list(folders)
    if sum(map(len, folders.values())) > manual.limit:
        random.Random(SEED).shuffle(order)
    chosen: dict[str, Path] = {}
    for folder in order:
        if len(chosen) + len(folders[folder]) <= manual.limit:
            chosen |= folders[folder]
    return chosen


def _head(path: Path) -> bytes:
    """Return the start of a page without `noscript`: browsers run scripts, so its redirect is for others."""
    with path.open("rb") as page:
        return re.sub(rb"(?is)<noscript>.*?</noscript>", b"", page.read(4096))
