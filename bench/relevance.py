"""`python -m bench.relevance`: how often the right page comes first, on manuals that Debian packages.

A manual is served from its package, crawled, indexed and asked as users ask (`SearchService`, pages). The questions are
entries of its own back-of-book index, the right pages those that the entry leads to; both are read at run time. Beside
it stands SQLite's FTS5 with BM25 on the same pages, titles weighted five times. The figure is the mean reciprocal rank.

Entries are parted in two halves by a fixed seed. `--fit` looks for weights on the first (every clause of the index is
asked alone once, then weights are tried on what they gave); what counts is the half that was not fitted.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urldefrag

import numpy as np
import numpy.typing as npt
from selectolax.lexbor import LexborHTMLParser

from bench.crawl import HOLDFAST
from holdfast.clock import SystemClock
from holdfast.db.engine import Database
from holdfast.index.queries import unpack_text
from holdfast.search import ranking
from holdfast.search.asked import asked_words
from holdfast.search.matching import languages_of
from holdfast.search.query import plain
from holdfast.search.ranking import FITTED
from holdfast.search.readers import ReaderCache, View
from holdfast.search.search import ResultKind, SearchRequest, SearchService

SEED = 20261116
DEPTH = 20
"""Results that are looked at for the right page."""
Scores = npt.NDArray[np.float32]


class Entry(NamedTuple):
    """An entry of an index: what a reader looks for, and the pages that it leads to."""

    query: str
    pages: frozenset[str]


class Manual(NamedTuple):
    """A manual, the package that brings it, and how its index is read."""

    name: str
    package: str
    folder: Path
    entries: Callable[[Path], Iterator[tuple[str, str]]]


_NOT_TYPED = re.compile(r"\(\)|\((?:in module|class in|C \w+|built-in \w+|module)?|\b(?:method|attribute)\)|[()]")


def _sphinx(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the entries of an index that Sphinx made: what and where, without what only tells two of a name apart."""
    for path in sorted(folder.glob("genindex-?.html")) or [folder / "genindex.html"]:
        for link in LexborHTMLParser(path.read_bytes()).css("table.indextable a, table.genindextable a"):
            text = " ".join(link.text().split())
            if not text.startswith("["):
                named = _NOT_TYPED.sub(" ", text)
                yield " ".join(named.split()), urldefrag(link.attributes.get("href") or "")[0]


def _docbook(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the entries of an index that DocBook made."""
    index = next(path for name in ("bookindex", "gimp-help-index") if (path := folder / f"{name}.html").exists())
    for entry in LexborHTMLParser(index.read_bytes()).css(".indexdiv > dl > dt"):
        text = ""
        for part in entry.iter(include_text=True):
            if part.tag == "a":
                break
            text += part.text()
        named = re.sub(r"\([^)]*\)", " ", text).rstrip(", \n")
        for link in entry.css("a.indexterm"):
            yield " ".join(named.split()), urldefrag(link.attributes.get("href") or "")[0]


def _texinfo(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the entries of the indexes that Texinfo made."""
    for path in sorted(folder.glob("*-Index.html")):
        for link in LexborHTMLParser(path.read_bytes()).css("table[class^=index-] td[valign=top]:nth-child(2) > a"):
            yield " ".join(link.text().split()), urldefrag(link.attributes.get("href") or "")[0]


MANUALS = (
    Manual("python", "python3.11-doc", Path("/usr/share/doc/python3.11/html"), _sphinx),
    Manual("postgresql", "postgresql-doc-15", Path("/usr/share/doc/postgresql-doc-15/html"), _docbook),
)
"""Weights are fitted on one half of the entries of these, and judged by the other."""
OTHERS = (
    Manual("gimp, in French", "gimp-help-fr", Path("/usr/share/gimp/2.0/help/fr"), _docbook),
    Manual("octave", "octave-doc", Path("/usr/share/doc/octave/octave.html"), _texinfo),
    Manual("django", "python-django-doc", Path("/usr/share/doc/python-django-doc/html"), _sphinx),
)
"""Nothing is fitted on these: whether the weights hold elsewhere."""


def entries_of(manual: Manual, known: set[str], count: int) -> list[Entry]:
    """Return entries of an index, in an order that a seed gives: those of three letters and at most three pages."""
    found: dict[str, set[str]] = defaultdict(set)
    for query, page in manual.entries(manual.folder):
        found[query].add(unquote(page).lower())
    usable = [
        Entry(query, frozenset(pages & known))
        for query, pages in sorted(found.items())
        if len(query) >= 3 and len(pages) <= 3 and pages & known and re.search(r"\w{2}", query)
    ]
    random.Random(SEED).shuffle(usable)
    return usable[:count]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback while the block runs."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def crawled(manual: Manual, work: Path) -> tuple[Path, str]:
    """Crawl and index a manual, once for a folder; return its archive and its address."""
    home, note = work / manual.name, work / f"{manual.name}.json"
    if not note.exists():
        with served(manual.folder) as url:
            subprocess.run(
                [HOLDFAST, "crawl", f"{url}index.html", "--scope", "host", "--delay", "0", "--allow-network",
                 "127.0.0.0/8", "--index", "--contact", "bench@example.org", "--json", "--home", str(home)],
                check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        note.write_text(json.dumps({"url": url}))
    return home, json.loads(note.read_text())["url"]


class Asked(NamedTuple):
    """A manual with its entries, ready to be asked."""

    manual: Manual
    search: SearchService
    view: View
    database: Database
    prefix: str
    entries: list[Entry]

    def page_of(self, url: str) -> str:
        """Return the path of a page in its manual, in small letters: the index keeps addresses so."""
        return unquote(url.removeprefix(self.prefix)).lower() or "index.html"


def reciprocal_rank(pages: Sequence[str], right: frozenset[str]) -> float:
    """Return one over the place of the first right page; 0 if none is among them."""
    return next((1 / place for place, page in enumerate(pages[:DEPTH], 1) if page in right), 0.0)


def ours(asked: Asked, entry: Entry) -> float:
    """Return how well an entry's page is found as users search for it."""
    answer = asked.search.ask(SearchRequest(q=entry.query, view=ResultKind.PAGES, page_size=DEPTH))
    return reciprocal_rank([asked.page_of(hit.row.group_url or hit.row.url) for hit in answer.hits], entry.pages)


def plain_fts5(asked: Asked) -> list[float]:
    """Return how well SQLite's own full-text search finds the pages, titles weighted five times."""
    with closing(sqlite3.connect(":memory:")) as index:
        index.execute("CREATE VIRTUAL TABLE pages USING fts5(url UNINDEXED, title, body)")
        with asked.database.read() as session:
            rows = session.connection().exec_driver_sql(
                "SELECT s.url, d.title, t.text FROM snapshots s JOIN documents d ON d.id = s.document_id"
                " JOIN document_texts t ON t.document_id = d.id WHERE s.is_page AND s.status = 200"
            )
            index.executemany(
                "INSERT INTO pages VALUES (?, ?, ?)",
                [(asked.page_of(url), title or "", unpack_text(packed)) for url, title, packed in rows],
            )
        found = []
        for entry in asked.entries:
            words = " ".join(f'"{word}"' for word in re.findall(r"\w+", entry.query))
            ranked = index.execute(
                "SELECT url FROM pages WHERE pages MATCH ? ORDER BY bm25(pages, 0, 5, 1) LIMIT ?", (words, DEPTH)
            )
            found.append(reciprocal_rank([page for (page,) in ranked], entry.pages))
        return found


class Features(NamedTuple):
    """What every clause alone gives each row of one question; rows are those that any clause found."""

    pages: list[str]
    clauses: dict[str, Scores]
    static: dict[str, Scores]


def features_of(asked: Asked, entry: Entry) -> Features | None:
    """Ask every clause of an entry alone; None if nothing is found."""
    columns, reader = asked.view.columns, asked.view.reader
    assert reader is not None
    words = asked_words(plain(entry.query), entry.query)
    whole: dict[str, Scores] = {}
    for name, matched, is_address in reader.clause_scores(words, languages_of(columns)):
        numbering, places = (columns.addresses, columns.url) if is_address else (columns.documents, columns.doc)
        by_place = np.zeros(numbering.none + 1, np.float32)
        at = numbering.places(matched.keys)
        known = at != numbering.none
        by_place[at[known]] = matched.scores[known]
        whole[name] = whole.get(name, np.float32(0)) + by_place[places]
    rows = np.flatnonzero(sum(whole.values())) if whole else np.empty(0, np.int64)
    if not len(rows):
        return None
    worth = ranking.address_parts(columns, _UNIT, columns.url[rows])
    static = {
        "authority": worth["authorityBoost"],
        "depth": worth["depthPenalty"],
        "pagerank": worth["pagerankBoost"],
    }
    pages = [asked.page_of(columns.urls.at(int(place))) for place in columns.url[rows]]
    return Features(pages, {name: scores[rows] for name, scores in whole.items()}, static)


_UNIT = ranking.Coefficients(authority=1.0, hubness=1.0, pagerank=1.0, depth=-1.0, archived=0.0)


def score(features: Features | None, weights: dict[str, float], right: frozenset[str]) -> float:
    """Return the reciprocal rank that weights would give."""
    if features is None:
        return 0.0
    text = np.zeros(len(features.pages), np.float32)
    for name, scores in features.clauses.items():
        text += np.float32(weights.get(name, 0.0)) * scores
    best = float(np.max(text))
    if best <= 0:
        return 0.0
    total = text / best + sum(weights.get(name, 0.0) * scores for name, scores in features.static.items())
    order = np.argsort(-np.where(text > 0, total, -9), kind="stable")[:DEPTH]
    return reciprocal_rank([features.pages[at] for at in order if text[at] > 0], right)


def fit(questions: Sequence[tuple[Features | None, Entry]], weights: dict[str, float], rounds: int) -> dict[str, float]:
    """Move one weight after the other as long as that helps; a clause that hardly helps is left out."""

    def worth(tried: dict[str, float]) -> float:
        found = [score(features, tried, entry.pages) for features, entry in questions]
        return float(np.mean(found)) - 0.0002 * sum(1 for weight in tried.values() if weight)

    best = worth(weights)
    for turn in range(rounds):
        before = best
        for name in weights:
            now = weights[name]
            fresh = (0.02, 0.1, 0.3) if name in ("authority", "depth", "pagerank") else (0.3, 1.0, 3.0, 8.0)
            for tried in (0.0, now * 0.5, now * 0.75, now * 1.33, now * 2, now * 4) if now else fresh:
                if tried != now and (found := worth({**weights, name: tried})) > best + 1e-6:
                    best, weights = found, {**weights, name: tried}
        print(f"round {turn + 1}: {best:.4f}", file=sys.stderr)
        if best - before < 0.0005:
            break
    return weights


def report(asked: Asked, *, misses: int) -> tuple[str, dict[str, float]]:
    """Return the figures of both halves, ours and of FTS5."""
    mine, plain_found = [ours(asked, entry) for entry in asked.entries], plain_fts5(asked)
    figures = {}
    for half, name in ((0, "fitted"), (1, "held out")):
        figures[name] = float(np.mean(mine[half::2]))
        figures[f"{name}, FTS5"] = float(np.mean(plain_found[half::2]))
    for entry, rank in [pair for pair in zip(asked.entries, mine, strict=True) if pair[1] < 0.5][:misses]:
        print(f"  {rank:.2f} {entry.query!r} -> {sorted(entry.pages)}", file=sys.stderr)
    return asked.manual.name, figures


def main() -> None:
    """Print the figures of each manual; with `--fit` look for weights first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, help="keep the crawled archives here")
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--fit", type=int, default=0, metavar="ROUNDS")
    parser.add_argument("--others", action="store_true", help="ask other manuals, too")
    parser.add_argument("--misses", type=int, default=0, help="show so many entries whose page came late")
    options = parser.parse_args()
    manuals = [*MANUALS, *(OTHERS if options.others else ())]
    absent = [manual.package for manual in manuals if not manual.folder.is_dir()]
    if absent:
        sys.exit(f"manuals are missing; install them with: apt-get install {' '.join(absent)}")
    with tempfile.TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        asked = [opened(manual, work, options.queries) for manual in manuals]
        if options.fit:
            questions = []
            for one in asked[: len(MANUALS)]:
                questions += [(features_of(one, entry), entry) for entry in one.entries[0::2]]
            start = {**asdict(FITTED), "authority": 0.45, "depth": 0.0, "pagerank": 0.0}
            print(json.dumps({name: round(weight, 3) for name, weight in fit(questions, start, options.fit).items()}))
        for one in asked:
            name, figures = report(one, misses=options.misses)
            print(json.dumps({"manual": name, "entries": len(one.entries)}
                             | {key: round(value, 3) for key, value in figures.items()}))  # fmt: skip
            one.database.close()


def opened(manual: Manual, work: Path, count: int) -> Asked:
    """Crawl a manual if need be and return it ready to be asked."""
    home, prefix = crawled(manual, work)
    database = Database(f"sqlite:///{home / 'holdfast.db'}")
    search = SearchService(database, home, SystemClock())
    view = ReaderCache(home, SystemClock()).view()
    asked = Asked(manual, search, view, database, prefix, [])
    urls = view.columns.urls
    known = {asked.page_of(urls.at(place)) for place in range(len(view.columns.addresses))}
    return asked._replace(entries=entries_of(manual, known, count))


if __name__ == "__main__":
    main()
