"""Relative links of the pages: each leads to a file that is committed, and to a heading that is in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from posixpath import dirname, join, normpath

_FENCE = re.compile(r"^```[^\n]*\n.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_OUTSIDE = re.compile(r"^[a-z]+:")


def anchors(page: str) -> set[str]:
    """Return the fragments that lead to headings of a page, spelt as Git hosts spell them."""
    seen: Counter[str] = Counter()
    made = set()
    for heading in _HEADING.findall(_FENCE.sub("", page)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        made.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return made


def links(page: str) -> Iterator[str]:
    """Yield where the links of a page lead, those in code left out."""
    yield from _LINK.findall(_CODE.sub("", _FENCE.sub("", page)))


def broken(pages: Mapping[str, str], files: Collection[str]) -> list[str]:
    """Return a sentence for every relative link that leads nowhere; `files` are all that are committed."""
    folders = {folder for file in files for folder in _folders(file)}
    found = []
    for path, text in pages.items():
        for link in links(text):
            if _OUTSIDE.match(link):
                continue
            target, _, fragment = link.partition("#")
            whole = normpath(join(dirname(path), target)) if target else path
            if whole not in files and whole not in folders:
                found.append(f"{path}: {link} leads to no file")
            elif fragment and fragment not in anchors(pages.get(whole, "")):
                found.append(f"{path}: {link} leads to no heading")
    return found


def _folders(file: str) -> Iterator[str]:
    while file := dirname(file):
        yield file


def unreached(pages: Iterable[str], start: str, texts: Mapping[str, str]) -> list[str]:
    """Return the pages to which no link leads from a page, over any number of others."""
    reached, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        for link in links(texts.get(here, "")):
            target = normpath(join(dirname(here), link.partition("#")[0]))
            if not _OUTSIDE.match(link) and target not in reached:
                reached.add(target)
                waiting.append(target)
    return sorted(set(pages) - reached)
