"""The main text of the golden pages, ours beside that of trafilatura and readability where these are installed.

Run as `python -m bench.extraction [--manual FOLDER]`: word F1 by class, and milliseconds a page. With a folder of HTML
pages only the time is told, for nothing there is known.
"""

from __future__ import annotations

import argparse
import importlib
import re
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

from holdfast.parse.document import DocumentKind, parse_document
from tests.golden.extraction.pages import golden_pages, word_f1

Extract = Callable[[str], str]
_TAGS = re.compile(r"<[^>]{0,2000}>")


def _ours(html: str) -> str:
    return parse_document(html.encode(), kind=DocumentKind.HTML, media_type="text/html", charset="utf-8").text


def _peers() -> dict[str, Extract]:
    """Return the others that are installed: none of them is a dependency of ours."""
    found: dict[str, Extract] = {}
    try:
        trafilatura: Any = importlib.import_module("trafilatura")
    except ImportError:
        pass
    else:
        found["trafilatura"] = lambda html: trafilatura.extract(html, include_comments=False) or ""
        found["trafilatura, recall"] = lambda html: trafilatura.extract(html, favor_recall=True) or ""
    try:
        readability: Any = importlib.import_module("readability")
    except ImportError:
        pass
    else:
        found["readability"] = lambda html: unescape(_TAGS.sub(" ", readability.Document(html).summary()))
    return found


def measure(extract: Extract) -> tuple[dict[str, float], float]:
    """Return the mean F1 by class and in total, and the CPU milliseconds a page."""
    groups: dict[str, list[float]] = {}
    began = time.process_time()
    texts = [(page, extract(page.html)) for page in golden_pages()]
    spent = time.process_time() - began
    for page, text in texts:
        groups.setdefault(page.group, []).append(word_f1(text, page.text, by_letter=page.name.endswith("-ja")))
    every = [value for values in groups.values() for value in values]
    means = {group: sum(values) / len(values) for group, values in groups.items()}
    return {**means, "total": sum(every) / len(every)}, spent * 1000 / len(texts)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.extraction", description=__doc__)
    parser.add_argument("--manual", type=Path)
    options = parser.parse_args()
    tried = {"ours": _ours, **_peers()}
    results = {name: measure(extract) for name, extract in tried.items()}
    for group in next(iter(results.values()))[0]:
        print(f"{group:<12}", *(f"{name} {figures[group]:.3f}" for name, (figures, _) in results.items()), sep="  ")
    print(f"{'ms a page':<12}", *(f"{name} {spent:.2f}" for name, (_, spent) in results.items()), sep="  ")
    if options.manual is not None:
        pages = [path.read_text("utf-8", "replace") for path in sorted(options.manual.rglob("*.html"))[:300]]
        for name, extract in tried.items():
            began = time.process_time()
            chars = sum(len(extract(page)) for page in pages)
            spent = (time.process_time() - began) * 1000 / max(len(pages), 1)
            print(f"{options.manual.name}: {name} {spent:.2f} ms a page, {chars} characters")


if __name__ == "__main__":
    main()
