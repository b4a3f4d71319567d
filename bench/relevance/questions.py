"""The questions: rare words for recall, and known items of four kinds. A fixed seed draws all from the manual."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from bench.relevance.manuals import SEED, Manual
from bench.relevance.visible import Page

KINDS: Final = ("headings", "index", "descriptions", "links")
RARE_PAGES: Final = 2
"""A rare word stands on at most so many pages."""
RIGHT_PAGES: Final = 3
"""An index entry leads to at most so many pages."""
_WORD = re.compile(r"\b\w{3,64}\b")
_RUN = re.compile("[\u0e01-\u0e5b\u3005\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]{2,}")
"""Thai, kana, Han and Hangul, without punctuation."""
_NUMBER = re.compile(r"^(?:[A-Z]?\d*(?:\.\d+)+\.?|\d+\.)\s+|\s*[¶#]$")
_LONGEST: Final = 200
"""Search accepts 256 characters."""


class Question(NamedTuple):
    """A query, and the pages that are right answers."""

    query: str
    pages: frozenset[str]


def rare_words(manual: Manual, pages: Mapping[str, Page], count: int) -> list[Question]:
    """Draw words that one or two pages show, or runs of two to four characters where words have no spaces."""
    chance = random.Random(f"{SEED} {manual.name} rare")
    if not manual.is_spaced:
        return _rare_runs(pages, count, chance)
    found: dict[str, set[str]] = defaultdict(set)
    written: dict[str, str] = {}
    for address, page in sorted(pages.items()):
        for word in set(_WORD.findall(page.text)):
            if any(map(str.isalpha, word)):
                key = word.casefold().replace("i\u0307", "i")
                found[key].add(address)
                written[key] = min(word, written.get(key, word))
    rare = sorted(key for key, on in found.items() if len(on) <= RARE_PAGES)
    return [Question(written[key], frozenset(found[key])) for key in chance.sample(rare, min(count, len(rare)))]


def _rare_runs(pages: Mapping[str, Page], count: int, chance: random.Random) -> list[Question]:
    """Draw a page, a run of it, a place in the run and a length, until there are enough that are rare."""
    runs = {address: found for address, page in sorted(pages.items()) if (found := _RUN.findall(page.text))}
    addresses, drawn = list(runs), dict[str, Question]()
    for _ in range(count * 50):
        run = chance.choice(runs[chance.choice(addresses)])
        length = min(chance.randint(2, 4), len(run))
        start = chance.randint(0, len(run) - length)
        query = run[start : start + length]
        on = frozenset(address for address, page in pages.items() if query in page.text)
        if len(on) <= RARE_PAGES:
            drawn[query] = Question(query, on)
        if len(drawn) == count:
            break
    return list(drawn.values())


def known_items(manual: Manual, pages: Mapping[str, Page], root: Path, count: int) -> dict[str, list[Question]]:
    """Return the questions of each kind: headings and links that name one page, index entries, descriptions."""
    named = {
        "headings": ((heading, address) for address, page in pages.items() for heading in page.headings),
        "index": manual.entries(root) if manual.entries else (),
        "descriptions": (described for page in pages.values() for described in page.descriptions),
        "links": (link for page in pages.values() for link in page.links),
    }
    most = {"headings": 1, "index": RIGHT_PAGES, "descriptions": RIGHT_PAGES, "links": 1}
    return {
        kind: _drawn(named[kind], set(pages), most[kind], count, random.Random(f"{SEED} {manual.name} {kind}"))
        for kind in KINDS
    }


def _drawn(
    named: Iterable[tuple[str, str]], known: set[str], most: int, count: int, chance: random.Random
) -> list[Question]:
    """Draw texts that name few enough pages. Section numbers are left out: readers do not type them."""
    found: dict[str, set[str]] = defaultdict(set)
    for text, address in named:
        found[_NUMBER.sub("", text)].add(address)
    usable = [
        Question(query, frozenset(on & known))
        for query, on in sorted(found.items())
        if len(query) <= _LONGEST and re.search(r"\w{3}|[^\W\d_a-zA-Z]{2}", query) and len(on) <= most and on & known
    ]
    return chance.sample(usable, min(count, len(usable)))
