"""From found addresses to rows: each once, in key order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.frontier.adding import rows_of
from holdfast.types import FoundUrl, UrlKind

IDS = {"a.example": 1, "b.example": 2}
addresses = st.builds(
    FoundUrl,
    url=st.just("https://a.example/"),
    url_hash=st.integers(-3, 3),
    domain=st.sampled_from(sorted(IDS)),
    kind=st.sampled_from(UrlKind),
    depth=st.integers(0, 3),
    priority=st.integers(-100_000, 100_000),
    scheduled_for=st.one_of(st.none(), st.integers(0, 20)),
)


@given(st.lists(st.tuples(st.lists(addresses, max_size=8), st.one_of(st.none(), st.integers(1, 9))), max_size=4))
def test_rows_are_unique_sorted_and_the_best_claim_wins(batches: list[tuple[list[FoundUrl], int | None]]) -> None:
    rows = rows_of(batches, IDS, now=10)

    keys = [row[:2] for row in rows]
    everything = [found for batch, _ in batches for found in batch]
    assert keys == sorted({(IDS[found.domain], found.url_hash) for found in everything})
    for domain_id, url_hash, _, kind, priority, depth, scheduled_for, *_ in rows:
        same = [found for found in everything if (IDS[found.domain], found.url_hash) == (domain_id, url_hash)]
        best = max((found.kind is UrlKind.PAGE, -found.depth) for found in same)
        assert (kind == "page", -depth) == best
        assert -32_768 <= priority <= 32_767
        assert scheduled_for is None or scheduled_for > 10


def test_kinds_are_plain_words_for_every_driver() -> None:
    rows = rows_of(
        [([FoundUrl("https://a.example/", 1, "a.example", kind, 0, 0)], None) for kind in UrlKind], IDS, now=0
    )

    assert {type(row[3]) for row in rows} == {str}
