"""How well the main text of the golden pages is found: the mean word F1 of each class and of all, beside its floor."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.parse.document import DocumentKind, parse_document
from tests.golden.extraction.pages import golden_pages, word_f1

FLOORS = Path(__file__).with_name("floors.json")
SLACK = 0.005
"""A floor may lie so far below what is reached, not further: one that was lowered is noticed either way."""


def reached() -> dict[str, float]:
    """Return the mean F1 of each class, and of all pages as `total`."""
    found: dict[str, list[float]] = {}
    for page in golden_pages():
        parsed = parse_document(
            page.html.encode(), kind=DocumentKind.HTML, media_type="text/html", charset="utf-8", url="https://a.org/b/c"
        )
        found.setdefault(page.group, []).append(word_f1(parsed.text, page.text, by_letter=page.name.endswith("-ja")))
    means = {group: sum(values) / len(values) for group, values in found.items()}
    every = [value for values in found.values() for value in values]
    return {**means, "total": sum(every) / len(every)}


def floors() -> dict[str, float]:
    """Return the floors in force."""
    stored: dict[str, float] = json.loads(FLOORS.read_text())
    return stored


def complaints(figures: dict[str, float], least: dict[str, float]) -> list[str]:
    """Return what is wrong with the figures, or with the floors: too low, or left behind."""
    found = [f"{name}: {figure:.4f} is below its floor {least.get(name, 1.0):.4f}; extraction got worse"
             for name, figure in figures.items() if figure < least.get(name, 1.0)]  # fmt: skip
    found += [
        f"{name}: {figure:.4f} exceeds its floor {least[name]:.4f}; run `python -m tests.golden.extraction` to raise it"
        for name, figure in figures.items()
        if name in least and figure > least[name] + SLACK
    ]
    return found + [f"{name}: a floor without a class" for name in least.keys() - figures.keys()]
