"""What a distinct search of two words costs: CPU of pages by relevance with passages, on the archives of the bench."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path
from statistics import median

from bench.relevance.manuals import SEED, Manual
from bench.relevance.visible import Page
from holdfast.clock import SystemClock
from holdfast.db.engine import Database
from holdfast.search.search import ResultKind, SearchRequest, SearchService

_ROUNDS = 5
_WORDS = re.compile(r"[^\W\d_]{3,}")


def milliseconds(manual: Manual, home: Path, pages: dict[str, Page], count: int) -> float:
    """Return the median over pairs of words of one page; of each pair the least of five searches, for a busy machine.

    A word is drawn as often as it occurs. A round searches for all pairs without kept results; ten more warm up.
    """
    chance, texts = random.Random(f"{SEED} {manual.name} pairs"), [page.text for page in pages.values()]
    pairs: dict[str, None] = {}
    while len(pairs) < count + 10:
        words = _WORDS.findall(chance.choice(texts))
        if len(set(words)) >= 50 and (first := chance.choice(words)).lower() != (other := chance.choice(words)).lower():
            pairs[f"{first} {other}"] = None
    rounds = [_round(home, list(pairs)) for _ in range(_ROUNDS)]
    least: list[float] = [min(times) for times in zip(*rounds, strict=True)]
    return median(least[10:])


def _round(home: Path, queries: list[str]) -> list[float]:
    database, times = Database(f"sqlite:///{home / 'holdfast.db'}"), list[float]()
    search = SearchService(database, home, SystemClock())
    for query in queries:
        started = time.thread_time()
        search.ask(SearchRequest(q=query, view=ResultKind.PAGES))
        times.append((time.thread_time() - started) * 1_000)
    database.close()
    return times
