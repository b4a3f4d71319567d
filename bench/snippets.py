"""`python -m bench.snippets`: do passages answer? Asked with the index entries of two installed manuals.

For each entry the page that it leads to is read as the index reads it, and the passage for the entry's words is judged:
whether it holds every word that the page has, and whether it is taken from what the entry's anchor leads to, the
definition. `--other FILE` judges another `highlight.py` beside ours and times both in turns, on the same texts. No text
of the manuals is kept: judgements are made from the installed pages at run time.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import log
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

from holdfast.parse.document import parse_document
from holdfast.parse.text import words_of
from holdfast.search import highlight
from holdfast.search.passages import SearchedText
from holdfast.search.query import parse_query

MANUALS: Final = {
    "Python": (Path("/usr/share/doc/python3.11/html"), "genindex-?.html", "td li > a"),
    "PostgreSQL": (Path("/usr/share/doc/postgresql-doc-15/html"), "bookindex.html", "dt > a.indexterm"),
}
# Of what stands at an anchor: so much is its definition.
_DEFINITION: Final = 700
_SEED: Final = 11


class Entry(NamedTuple):
    """One entry of an index: what is asked, and where the answer stands."""

    query: str
    page: Path
    anchor: str


class PageText(NamedTuple):
    """A page as it is indexed."""

    title: str
    headings: str
    text: str


class Judged(NamedTuple):
    """What one passage came to."""

    every_word: bool
    defines: bool | None
    """None where the entry leads to a whole page."""
    shown: str
    chars: int


def entries(folder: Path, pattern: str, selector: str) -> Iterator[Entry]:
    """Yield the entries of a manual's index."""
    for path in sorted(folder.glob(pattern)):
        for link in LexborHTMLParser(path.read_text()).css(selector):
            file, _, anchor = unquote(link.attributes.get("href") or "").partition("#")
            page, query = folder / file, _query(link)
            if file and page.is_file() and parse_query(query).words.all_words:
                yield Entry(query, page, anchor)


_QUALIFIED: Final = re.compile(r"^(.*?)(?:\(\))? *\((?:in module |built-in |C )?([\w.]+)(?: \w+)*\)$")
_KIND_LIST: Final = "function member macro type class variable struct attribute method module enum"
_KINDS: Final = frozenset(_KIND_LIST.split())


def _query(link: LexborNode) -> str:
    """Return what an entry asks: its own words after those of the entry that it stands below."""
    item = link.parent
    assert item is not None
    own = link.text() if item.tag == "li" else _leading(item)
    if own.startswith("["):
        return ""
    # `mac_ver() (in module platform)`: the name, and the module that it is in.
    if (match := _QUALIFIED.match(own)) is not None:
        own = match[1] if match[2] in _KINDS else f"{match[1]} {match[2]}"
    above = item.parent
    outer = above.parent if above is not None else None
    if item.tag == "dt" and outer is not None and outer.tag == "dd":
        outer = outer.prev
    name = _leading(outer) if outer is not None and outer.tag in ("li", "dt") else ""
    return " ".join(f"{name} {own}".replace("()", "").split())


def _leading(node: LexborNode) -> str:
    """Return the text before the first link or list of an entry."""
    parts, child = [], node.first_child
    while child is not None and child.tag not in ("a", "ul", "dl"):
        parts.append(child.text())
        child = child.next
    return "".join(parts).strip(" ,\n")


@cache
def page_text(path: Path) -> PageText:
    """Return a page of a manual as the index keeps it."""
    parsed = parse_document(path.read_bytes(), kind="html", media_type="text/html", charset="utf-8")
    return PageText(parsed.title or "", "\n".join(parsed.headings), parsed.text)


@cache
def _tree(path: Path) -> LexborHTMLParser:
    return LexborHTMLParser(path.read_bytes())


def definition(entry: Entry) -> Counter[str] | None:
    """Return the words that stand where an entry leads to; None for a whole page."""
    node = next((one for one in _tree(entry.page).css("[id]") if one.attributes.get("id") == entry.anchor), None)
    if node is None or not entry.anchor:
        return None
    text = node.text(separator=" ")
    after = node.next
    while node.tag == "dt" and after is not None and len(text) < _DEFINITION:
        text += " " + after.text(separator=" ")
        after = after.next
    if len(text) < 40 and node.parent is not None:
        text = node.parent.text(separator=" ")
    return Counter(words_of(text[:_DEFINITION]))


Answer = Callable[[str], Callable[[PageText], list[str]]]
"""From a query to what gives the passages of a page."""


def ours(query: str) -> Callable[[PageText], list[str]]:
    """Return what shows the passage of a page as a search does, its title too."""
    words = parse_query(query).words
    finder = highlight.Finder(words, (), "en", asked=query, rarity=rarity(words.all_words))

    def passages(page: PageText) -> list[str]:
        finder.pieces(page.title)
        return [_plain(p) for p in finder.passages(SearchedText(page.text, page.title, page.headings))]

    return passages


def other_of(path: Path) -> Answer:
    """Return how another highlighter answers: a `Finder` of words, substrings and a language."""
    spec = importlib.util.spec_from_file_location("other_highlight", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def answer(query: str) -> Callable[[PageText], list[str]]:
        finder = module.Finder(parse_query(query).words, (), "en")

        def passages(page: PageText) -> list[str]:
            finder.pieces(page.title)
            return [_plain(p) for p in finder.passages(SearchedText(page.text))]

        return passages

    return answer


_OPEN, _CLOSE = "\x02", "\x03"


def _plain(pieces: Sequence[Any]) -> str:
    return "".join(f"{_OPEN}{piece.text}{_CLOSE}" if piece.hit else piece.text for piece in pieces)


_PAGES: Counter[str] = Counter()


def rarity(words: Sequence[str]) -> dict[str, float]:
    """Return how much each word tells, as a search works it out from the index."""
    pages = _PAGES["\n"]
    return {word: max(0.15, min(1.0, log(1 + pages / (1 + _PAGES[word])) / log(1 + pages))) for word in words}


def judge(entry: Entry, passages: list[str]) -> Judged:
    """Return what the first passage is worth."""
    first = passages[0] if passages else ""
    shown = first.replace(_OPEN, "").replace(_CLOSE, "")
    has = set(words_of(re.sub("([a-z])([A-Z])", r"\1 \2", shown))) | set(words_of(shown))
    page = set(words_of(page_text(entry.page).text))
    wanted = [word for word in parse_query(entry.query).words.all_words if word in page]
    # By their first letters: a passage with `groups` holds `group`.
    every = all(any(one.startswith(word[: max(4, len(word) - 3)]) for one in has) for word in wanted)
    defining = definition(entry)
    said = words_of(shown)
    defines = None if defining is None else bool(said) and sum(w in defining for w in said) >= 0.8 * len(said)
    return Judged(every, defines, first.replace(_OPEN, "[").replace(_CLOSE, "]"), len(shown))


def timed(finders: dict[str, Answer], pages: dict[str, list[PageText]], rounds: int) -> dict[str, float]:
    """Return the milliseconds that the passages of a result page take, the median of rounds in turns."""
    spent: dict[str, list[float]] = {name: [] for name in finders}
    for _ in range(rounds):
        for name, finder in finders.items():
            started = time.process_time()
            for query, found in pages.items():
                answer = finder(query)
                for page in found:
                    answer(page)
            spent[name].append((time.process_time() - started) / len(pages) * 1_000)
    return {name: median(times) for name, times in spent.items()}


def result_pages(asked: Sequence[Entry], texts: Sequence[PageText], *, queries: int = 30) -> dict[str, list[PageText]]:
    """Return for some queries 20 pages each, as a result page has them: those with the most of its words first."""
    known = [(page, set(words_of(page.text))) for page in texts]
    found: dict[str, list[PageText]] = {}
    for entry in asked[:queries]:
        words = set(parse_query(entry.query).words.all_words)
        best = sorted(known, key=lambda one: -len(words & one[1]))[:20]
        found[entry.query] = [best[at % len(best)][0] for at in range(20)]
    return found


def main() -> None:
    """Judge, show some, and time."""
    parser = argparse.ArgumentParser(prog="python -m bench.snippets", description=__doc__)
    parser.add_argument("--entries", type=int, default=400, help="entries of each manual")
    parser.add_argument("--show", type=int, default=0, help="passages of each manual to print")
    parser.add_argument("--other", type=Path, help="another highlight.py to judge beside ours")
    parser.add_argument("--query", help="only entries of this query")
    parser.add_argument("--rounds", type=int, default=7, help="of the times; 0 for none")
    parser.add_argument("--seed", type=int, default=_SEED, help="which entries are asked")
    options = parser.parse_args()
    answers: dict[str, Answer] = {"ours": ours}
    if options.other:
        answers = {"other": other_of(options.other), **answers}
    for name, (folder, pattern, selector) in MANUALS.items():
        if not folder.is_dir():
            sys.exit(f"bench.snippets: needs the manual in {folder}")
        every = list(dict.fromkeys(entries(folder, pattern, selector)))
        asked = random.Random(options.seed).sample(every, min(options.entries, len(every)))
        if options.query:
            asked = [entry for entry in every if entry.query == options.query]
        _PAGES.clear()
        for page in {entry.page for entry in every}:
            _PAGES.update({"\n", *words_of(page_text(page).text[:4_000])})
        report(name, answers, asked, options)


def report(name: str, answers: dict[str, Answer], asked: Sequence[Entry], options: argparse.Namespace) -> None:
    """Print the figures of one manual."""
    shown = {
        kind: [judge(entry, answer(entry.query)(page_text(entry.page))) for entry in asked]
        for kind, answer in answers.items()
    }
    for kind, judged in shown.items():
        defined = [one.defines for one in judged if one.defines is not None]
        print(
            f"{name} {kind}: every word {sum(one.every_word for one in judged) / len(judged):.3f} of {len(judged)}, "
            f"from the definition {sum(defined) / max(1, len(defined)):.3f} of {len(defined)}, "
            f"longest {max(one.chars for one in judged)}, none {sum(not one.shown for one in judged)}"
        )
    for at, entry in enumerate(asked[: options.show]):
        print(f"\n{entry.query!r}  {entry.page.name}#{entry.anchor}")
        for kind, judged in shown.items():
            print(f"  {kind} {'W' if judged[at].every_word else '-'}{'D' if judged[at].defines else '-'}: "
                  f"{judged[at].shown}")  # fmt: skip
    for size, (low, high) in {"8 KB": (6_000, 10_000), "100 KB": (70_000, 10**9)}.items():
        texts = [page for path in _paths(name) if low <= len((page := page_text(path)).text) < high]
        if texts and options.rounds:
            times = timed(answers, result_pages(asked, texts), options.rounds)
            print(f"{name} passages of 20 texts of about {size} ({len(texts)} texts): "
                  + ", ".join(f"{kind} {ms:.2f} ms" for kind, ms in times.items()))  # fmt: skip


@cache
def _paths(name: str) -> list[Path]:
    folder, pattern, selector = MANUALS[name]
    return sorted({entry.page for entry in entries(folder, pattern, selector)})


if __name__ == "__main__":
    main()
