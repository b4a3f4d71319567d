"""The order of results does not hang on how the index came about: piece by piece, or all at once."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

from holdfast.db.schema import make_fresh
from holdfast.search.near_duplicates import SimilarResults
from holdfast.search.outbox import rebuild
from holdfast.search.search import SearchService
from tests.search_bed import DAY, Bed, Capture, open_bed

_WORDS = [f"w{a}{b}x" for a in "abcdefghijkl" for b in "abcdef"]


def _orders(bed: Bed, queries: list[str]) -> dict[str, list[tuple[int, float]]]:
    found = {}
    for query in queries:
        hits = bed.ask(query, page_size=100, explain=True, similar=SimilarResults.SHOW).hits
        found[query] = [(hit.row.id, round(sum(hit.parts.values()), 4)) for hit in hits]
    return found


def test_an_index_that_grew_in_steps_gives_the_order_of_one_made_at_once(tmp_path: Path) -> None:
    chance = random.Random(9)
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    make_fresh(url)
    with open_bed(url, tmp_path / "home") as bed:
        for step in range(10):
            bed.fill(
                Capture(
                    url=f"https://h{n % 7}.test/{chance.choice(_WORDS)}/{step}-{n}",
                    title=" ".join(chance.choices(_WORDS, k=3)),
                    text=" ".join(chance.choices(_WORDS, k=chance.randint(15, 60))),
                    at=DAY + timedelta(days=chance.randint(0, 50)),
                    language=chance.choice(["en", "fr", "de"]),
                )
                for n in range(40)
            )
        queries = [" ".join(chance.choices(_WORDS, k=words)) for words in (1, 2, 3, 3, 4) for _ in range(12)]
        grown = _orders(bed, queries)
        rebuild(bed.database, bed.home, bed.clock)
        bed.search = SearchService(bed.database, bed.home, bed.clock)
        whole = _orders(bed, queries)

    assert sum(map(len, whole.values())) > 500
    assert [query for query in queries if grown[query] != whole[query]] == []
