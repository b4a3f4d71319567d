"""`python -m bench.near_duplicates`: how well near-duplicates are told from pages that only look alike.

Pages are generated (Zipf vocabularies, 30 to 2,000 words): articles, pages of one site with the same text around them,
and pages made from one template with other data, which are no near-duplicates of each other. Each page gets a mutated
copy, and all pairs of pages are compared: a pair counts as right if one is the copy of the other. `--manuals FOLDER …`
does the same with real pages, such as the HTML of installed manuals. No text is kept in the repository.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bench.search import VOCABULARY, vocabulary
from holdfast.parse.document import parse_document
from holdfast.search.fingerprints import fingerprint, near

LENGTHS: Final = (30, 100, 400, 2_000)
PRECISION: Final = 0.98
RECALL: Final = 0.90

_AT_ONCE: Final = 200

Line = list[str]
Page = list[Line]
"""A title, then the lines of the text."""
Random = np.random.Generator
Prints = npt.NDArray[np.uint64]

_MONTHS: Final = [date(2000, month, 1).strftime("%B") for month in range(1, 13)]


class Words:
    """Made-up words of one language; how often each is drawn follows Zipf's law."""

    def __init__(self, language: str, rng: Random) -> None:
        self._rng = rng
        self._known = np.array(vocabulary(language), object)
        weights = 1 / np.arange(1, VOCABULARY + 1) ** 1.05
        self._cumulative = np.cumsum(weights / weights.sum())

    def some(self, count: int) -> Line:
        """Return this many words."""
        drawn: Line = self._known[np.searchsorted(self._cumulative, self._rng.random(count)) % VOCABULARY].tolist()
        return drawn

    def rare(self, count: int) -> Line:
        """Return words that few texts have."""
        drawn: Line = self._known[self._rng.integers(300, 20_000, count)].tolist()
        return drawn

    def lines(self, count: int) -> Page:
        """Return sentences of this many words together, about one subject: a third of the words are its own."""
        words, own = self.some(count), self.rare(max(3, count // 12))
        for place in np.flatnonzero(self._rng.random(count) < 0.33).tolist():
            # The first of them most often, as in any text about something.
            words[place] = own[min(int(self._rng.exponential(len(own) / 3)), len(own) - 1)]
        for place in np.flatnonzero(self._rng.random(count) < 0.02).tolist():
            words[place] = str(self._rng.integers(2, 3_000))
        page, at = Page(), 0
        while at < count:
            length = int(self._rng.integers(6, 22))
            sentence = words[at : at + length]
            sentence[0] = sentence[0].capitalize()
            page.append([*sentence[:-1], f"{sentence[-1]}."])
            at += length
        return page


def _date(rng: Random) -> Line:
    return ["Published:", str(rng.integers(1, 29)), _MONTHS[rng.integers(0, 12)], str(rng.integers(2001, 2027))]


def articles(words: Words, rng: Random, length: int, count: int) -> Iterator[Page]:
    """Yield texts that have nothing to do with each other."""
    for _ in range(count):
        lines = words.lines(length - 4)
        yield [[*lines[0][:3], *words.rare(1)], _date(rng), *lines]


def site(words: Words, rng: Random, length: int, count: int) -> Iterator[Page]:
    """Yield pages of one site: two fifths of each are the same everywhere."""
    around = words.lines(length * 2 // 5)
    for title, *page in articles(words, rng, length * 3 // 5, count):
        yield [title, *around[: len(around) // 2], *page, *around[len(around) // 2 :]]


def releases(words: Words, rng: Random, length: int, count: int) -> Iterator[Page]:
    """Yield release notes: the same introduction and advice, other fixes."""
    name, intro, advice = words.rare(1)[0], words.lines(length // 5), words.lines(length // 5)
    for number in range(count):
        head = [name, f"{number // 10}.{number % 10}", *_date(rng)]
        fixes = [["Fix", *line] for line in words.lines(length * 3 // 5 - 6)]
        yield [head[:2], head, *intro, *fixes, *advice]


def products(words: Words, rng: Random, length: int, count: int) -> Iterator[Page]:
    """Yield product pages: the same labels and terms of sale; values and a description of their own."""
    labels, terms = words.rare(max(4, length // 10)), words.lines(length * 3 // 10)
    for _ in range(count):
        values = [[f"{label}:", str(rng.integers(1, 900)), *words.rare(1)] for label in labels]
        name = words.rare(3)
        yield [name, name, *values, *words.lines(length * 3 // 10), *terms]


def tables(words: Words, rng: Random, length: int, count: int) -> Iterator[Page]:
    """Yield timetables: the same places and columns, other numbers."""
    places = words.rare(max(4, length // 5))
    for _ in range(count):
        title = words.rare(2)
        rows = ([place, *(f"{rng.integers(0, 24)}:{rng.integers(0, 60):02}" for _ in range(4))] for place in places)
        yield [title, title, _date(rng), *rows]


KINDS: Final[tuple[Callable[[Words, Random, int, int], Iterator[Page]], ...]] = (
    articles, site, releases, products, tables,
)  # fmt: skip


def generated(length: int, count: int, *, seed: int) -> list[Page]:
    """Return this many pages of about a length: a fifth of each kind, on several sites, in two languages."""
    rng = np.random.default_rng(seed)
    pages: list[Page] = []
    for number, kind in enumerate(KINDS):
        # Four sites of each kind: of one template there are then many pages.
        for n in range(4):
            words = Words(("en", "fr")[(number + n) % 2], rng)
            pages += kind(words, rng, length, count // (4 * len(KINDS)))
    return pages


def manual(folder: Path) -> list[Page]:
    """Return the pages of a manual as the index reads them."""
    pages = []
    for path in sorted(folder.rglob("*.html")):
        body = path.read_bytes()
        found = parse_document(body, kind="html", media_type="text/html", charset="utf-8", url="https://manual.test/")
        pages.append([(found.title or "").split(), *(line.split() for line in found.text.split("\n"))])
    return pages


class Mutation(StrEnum):
    """What is done to a page to make its copy."""

    DATED = "date line changed"
    MOVED = "a fifth of the lines moved"
    REPLACED_5 = "5 % of words replaced"
    REPLACED = "10 % of words replaced"
    DELETED = "10 % of words deleted"
    INSERTED = "10 % of words inserted"
    MIXED = "10 %: replaced, deleted, inserted"
    ALL = "10 % mixed, lines moved"
    REPLACED_15 = "15 % of words replaced"
    REPLACED_20 = "20 % of words replaced"


# At most 10 % of the words: what the promise speaks of. The others are shown to see where it ends.
PROMISED: Final = tuple(one for one in Mutation if one not in (Mutation.REPLACED_15, Mutation.REPLACED_20))
_SHARES: Final[dict[Mutation, tuple[float, float, float]]] = {
    Mutation.REPLACED_5: (0.05, 0, 0),
    Mutation.REPLACED: (0.10, 0, 0),
    Mutation.DELETED: (0, 0.10, 0),
    Mutation.INSERTED: (0, 0, 0.10),
    Mutation.MIXED: (0.04, 0.03, 0.03),
    Mutation.ALL: (0.04, 0.03, 0.03),
    Mutation.REPLACED_15: (0.15, 0, 0),
    Mutation.REPLACED_20: (0.20, 0, 0),
}


def mutated(page: Page, mutation: Mutation, words: Words, rng: Random) -> Page:
    """Return a copy of a page that was changed a little."""
    copy = [list(line) for line in page]
    if mutation in _SHARES:
        copy = _edited(copy, _SHARES[mutation], words, rng)
    if mutation in (Mutation.MOVED, Mutation.ALL):
        for _ in range(max(1, len(copy) // 5)):
            line = copy.pop(int(rng.integers(1, len(copy))))
            copy.insert(int(rng.integers(1, len(copy) + 1)), line)
    if mutation is Mutation.DATED:
        dated = [n for n, line in enumerate(copy) if "Published:" in line]
        copy[dated[0] if dated else 1 : dated[0] + 1 if dated else 1] = [_date(rng)]
    return copy


def _edited(page: Page, shares: tuple[float, float, float], words: Words, rng: Random) -> Page:
    flat = [(number, word) for number, line in enumerate(page) for word in line]
    replaced, deleted, inserted = (round(share * len(flat)) for share in shares)
    places = rng.permutation(len(flat)).tolist()
    new = iter(words.some(replaced + inserted))
    changes = {place: [next(new)] for place in places[:replaced]}
    changes |= {place: [] for place in places[replaced : replaced + deleted]}
    end = replaced + deleted + inserted
    changes |= {place: [flat[place][1], next(new)] for place in places[replaced + deleted : end]}
    copy: Page = [[] for _ in page]
    for place, (number, word) in enumerate(flat):
        copy[number] += changes.get(place, [word])
    return copy


def text_of(page: Page) -> str:
    """Return a page's text as the index keeps it: one block a line."""
    return "\n".join(" ".join(line) for line in page[1:])


class Score(NamedTuple):
    """How many copies were found, and how many pairs were taken for copies that are none."""

    found: int
    copies: int
    wrong: int

    @property
    def recall(self) -> float:
        """Copies found of those there are."""
        return self.found / max(1, self.copies)

    @property
    def precision(self) -> float:
        """Pairs that are copies of those taken for one."""
        return self.found / max(1, self.found + self.wrong)


def prints_of(pages: Iterable[Page]) -> Prints:
    """Return the fingerprints of pages."""
    return np.array([fingerprint(text_of(page), " ".join(page[0])) for page in pages], np.uint64)


def judged(originals: Prints, copies: Prints) -> Score:
    """Compare every page with every copy and every other page; a page's own copy is the only right one."""
    found = wrong = 0
    for first in range(0, len(originals), _AT_ONCE):
        block = originals[first : first + _AT_ONCE]
        pages, copied = near(block, copies)
        right = int(np.count_nonzero(pages + first == copied))
        found += right
        wrong += len(copied) - right
        # Each pair of originals once.
        pages, others = near(block, originals)
        wrong += int(np.count_nonzero(others > pages + first))
    return Score(found, len(originals), wrong)


def scores(pages: Sequence[Page], mutations: Iterable[Mutation], *, seed: int) -> dict[Mutation, Score]:
    """Return how well the copies of pages are found, by what was done to them."""
    rng = np.random.default_rng(seed)
    words = Words("en", rng)
    originals = prints_of(pages)
    return {one: judged(originals, prints_of(mutated(page, one, words, rng) for page in pages)) for one in mutations}


def _show(name: str, found: dict[Mutation, Score]) -> bool:
    kept = True
    for mutation, score in found.items():
        promised = mutation in PROMISED
        good = score.precision >= PRECISION and score.recall >= RECALL
        kept &= good or not promised
        mark = "" if not promised else ("  kept" if good else "  MISSED")
        print(f"{name:<24} {mutation.value:<34} precision {score.precision:.4f}  recall {score.recall:.4f}"
              f"  ({score.copies} copies, {score.wrong} wrong){mark}")  # fmt: skip
    return kept


def main() -> None:
    """Measure and print; a miss is printed as a miss."""
    parser = argparse.ArgumentParser(prog="python -m bench.near_duplicates", description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000, help="pages of each length")
    parser.add_argument("--manuals", nargs="*", type=Path, default=[], help="folders of HTML pages, such as manuals")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    kept = True
    for length in LENGTHS:
        pages = generated(length, options.pages, seed=options.seed)
        kept &= _show(f"{length} words", scores(pages, Mutation, seed=options.seed + 1))
    for folder in options.manuals:
        kept &= _show(folder.resolve().parent.name, scores(manual(folder), Mutation, seed=options.seed + 2))
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
