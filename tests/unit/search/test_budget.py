"""What one search may cost: typos, substrings and time are bounded, and what is read in part is never wrong."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from holdfast.search import matching
from holdfast.search.engine import MatchedKeys
from holdfast.search.matching import MatchMode, SearchReach, best_documents, corrected, nearest
from holdfast.search.query import And, Field, Node, Not, Or, Term
from holdfast.search.readers import ReaderCache, ResultCache
from holdfast.search.search import SearchRequest, SearchService
from holdfast.search.substrings import Budget, SearchTooLong, Substrings
from tests.clock import FakeClock
from tests.search_bed import Bed, Capture, pages

_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvwz" for vowel in "aeiou"]


def test_hidden_keys_are_read_up_to_the_limit_and_not_beyond(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_MOST_KEYS", 10)
    bed.fill(pages(["parrot"]))
    columns, asked = ReaderCache(bed.home, bed.clock).view().columns, list[int]()
    nothing = SearchReach(scan=1, gate=np.zeros(len(columns), np.uint8), budget=Budget(bed.clock), named=1)

    def read(*, limit: int) -> MatchedKeys:
        asked.append(limit)
        return MatchedKeys(keys=-np.arange(1, limit + 1), scores=np.ones(limit, np.float32), count=1_000)

    assert len(best_documents(read, columns, nothing, 1).keys) == 0
    assert asked == [2, 8, 10]


class _Words:
    """A vocabulary that counts how much of it is read."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words, self._known = sorted(words), set(words)
        self.read = 0

    def shown(self, word: str) -> bool:
        """Return whether a visible document has the word."""
        return word in self._known

    def frequency(self, word: str) -> int:
        """Look one word up."""
        self.read += 1
        return 1 + len(word) if word in self._known else 0

    def vocabulary(self, prefix: str, *, limit: int) -> list[tuple[str, int]]:
        """Return words that start so."""
        first, last = bisect_left(self._words, prefix), bisect_left(self._words, f"{prefix}\U0010ffff")
        found = [(word, 1) for word in self._words[first:last]]
        self.read += len(found) + 1
        return found[:limit]


def _made_up(count: int) -> list[str]:
    rng = random.Random(7)
    return sorted({"".join(rng.choices(_SYLLABLES, k=4)) for _ in range(count)})


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("vacine", "vaccine"),
        ("xaccine", "vaccine"),
        ("avccine", "vaccine"),
        ("vaccinees", "vaccine"),
        ("vaxcinne", "vaccine"),
        ("vaccine", "vaccine"),
        ("clinc", "clinic"),
        ("klnic", None),
        ("zzzzzzzz", None),
        ("v" * 40, None),
        ("привте", "привет"),
        ("IBM", None),
        ("flo", None),
        ("猫", None),
        ("図書室内", None),
    ],
)
def test_the_nearest_word_is_one_edit_away_or_two_in_a_long_word(typed: str, meant: str | None) -> None:
    words = _Words(["vaccine", "clinic", "vaccinated", "привет", "im", "flu", "a", "図書館内"])

    assert nearest(words, typed, Budget(FakeClock()), words.shown) == ([meant] if meant else [])


def test_of_several_words_that_were_meant_one_differs_at_a_time() -> None:
    words = _Words(["keep", "keeper", "lighthouse", "lighthouses"])

    found = corrected(words, ["lighthouss", "keepr"], Budget(FakeClock()), words.shown)

    assert found == [("lighthouses", "keeper"), ("lighthouse", "keeper"), ("lighthouses", "keep")]
    assert corrected(words, ["lighthouse", "keep"], Budget(FakeClock()), words.shown) == []


def test_an_unknown_word_reads_no_more_of_a_large_vocabulary_than_of_a_small_one() -> None:
    reads = []
    for count in (2_000, 200_000):
        words = _Words(_made_up(count))
        assert corrected(words, ["qqqqxyqq", "xyqqzqqq"], Budget(FakeClock()), words.shown) == []
        reads.append(words.read)

    assert reads[1] <= 1.5 * reads[0] + 2_000
    assert max(reads) < 25_000


def test_a_word_that_may_not_be_shown_is_passed_over() -> None:
    words = _Words(["vaccine", "vaccina"])

    assert nearest(words, "vaccinx", Budget(FakeClock()), lambda word: word == "vaccine") == ["vaccine"]
    assert nearest(words, "vaccina", Budget(FakeClock()), lambda word: word == "vaccine") == ["vaccine"]
    assert nearest(words, "vaccinx", Budget(FakeClock()), lambda _word: False) == []


def test_a_storm_of_unknown_words_is_answered_within_its_budget(bed: Bed) -> None:
    rng = random.Random(3)
    vocabulary = _made_up(20_000)
    bed.fill(pages([" ".join(rng.sample(vocabulary, 100)) for _ in range(200)]))
    queries = [" ".join("".join(rng.choices("qxyz", k=9)) for _ in range(8)) for _ in range(60)]

    with ThreadPoolExecutor(12) as clients:
        answers = list(clients.map(bed.ask, queries))

    assert {(answer.total, answer.did_you_mean) for answer in answers} == {(0, None)}
    assert max(answer.spent for answer in answers) < 50_000
    assert bed.ask(vocabulary[0]).mode in (MatchMode.FTS, MatchMode.FUZZY, MatchMode.FALLBACK), "it goes on answering"


_TERMS = [
    *(Term("a"), Term("page"), Term("ge 1"), Term("example"), Term("odd"), Term("7", Field.TITLE), Term("zzz")),
    *(Term("odd", Field.TEXT), Term("eve", Field.TEXT, is_prefix=True), Term("text 1", Field.TEXT)),
]


def _tree(rng: random.Random, depth: int) -> Node:
    kind = rng.randrange(4) if depth else 0
    if kind == 0:
        return rng.choice(_TERMS)
    if kind == 1:
        return Not(_tree(rng, depth - 1))
    parts = tuple(_tree(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    return And(parts) if kind == 2 else Or(parts)


@pytest.mark.parametrize("checks", [0, 50, 100_000])
@pytest.mark.parametrize("candidates", [0, 7, 60, 100_000])
def test_what_is_read_in_part_holds_nothing_wrong(bed: Bed, candidates: int, checks: int) -> None:
    bed.fill(pages([f"{'odd' if n % 2 else 'even'} text {n}" for n in range(40)]))
    view = ReaderCache(bed.home, bed.clock).view()
    assert view.reader is not None
    whole = Substrings(view.reader, view.columns, Budget(bed.clock))
    rng = random.Random(candidates)

    for _ in range(300):
        tree = _tree(rng, 3)
        budget = Budget(bed.clock, candidates=candidates, checks=checks)
        rows, exact = Substrings(view.reader, view.columns, budget, each=5).matching(tree)
        truth, all_of_it = Substrings(view.reader, view.columns, Budget(bed.clock)).matching(tree)
        assert all_of_it
        assert set(rows.tolist()) <= set(truth.tolist()), tree
        assert not exact or rows.tolist() == truth.tolist(), tree
        assert budget.spent <= candidates
        assert budget.checks_left >= -4 * 40, "at most one look at everything goes beyond"
    assert whole.matching(Term("page"))[1]


def test_a_text_is_looked_at_once_for_a_term_however_often_it_is_asked_for(bed: Bed) -> None:
    bed.fill(pages([f"text {n}" for n in range(40)]))
    view = ReaderCache(bed.home, bed.clock).view()
    assert view.reader is not None
    nested: Node = Term("text")
    for _ in range(20):
        nested = Not(And((nested, Term("page"))))
    budget = Budget(bed.clock, candidates=5)

    Substrings(view.reader, view.columns, budget, each=5).matching(nested)

    assert 600_000 - budget.checks_left <= 2 * 4 * 40


@pytest.mark.parametrize("q", ["url:example", "title:page", "url:zzz OR text:tex*"])
def test_a_search_that_reads_in_part_says_so(bed: Bed, q: str) -> None:
    bed.fill(pages([f"text {n}" for n in range(40)]))
    search = SearchService(bed.database, bed.home, bed.clock)
    search.candidates = 10

    partly, whole = search.ask(SearchRequest(q=q)), bed.ask(q)

    assert (partly.exact, 0 < partly.total <= 10) == (False, True)
    assert (whole.exact, whole.total) == (True, 40)


class _Racing(FakeClock):
    """A clock that runs on with every look at it."""

    def monotonic(self) -> float:
        """Return a second more each time."""
        self.advance(1.0)
        return super().monotonic()


@pytest.mark.parametrize("q", ["title:a OR title:b OR title:c OR title:d", "qxqxqxqx yzyzyzyz xyxyxyxy"])
def test_a_search_whose_time_is_up_ends(bed: Bed, q: str) -> None:
    bed.fill(pages(["text"]))
    search = SearchService(bed.database, bed.home, _Racing())
    search.seconds = 3.0

    with pytest.raises(SearchTooLong):
        search.ask(SearchRequest(q=q))


def test_guesses_and_substrings_take_turns_and_words_wait_for_none(bed: Bed) -> None:
    bed.fill(pages(["granite and gneiss"]))
    found = bed.ask("url:example").total
    bed.search.seconds = 0.01

    with Budget(bed.clock).turn():
        assert bed.ask("granite").total == 1
        for q in ("url:exampl", "granxte"):
            with pytest.raises(SearchTooLong):
                bed.ask(q)

    bed.search.seconds = 10.0
    assert bed.ask("url:exampl").total == found
    assert bed.ask("granxte").did_you_mean == "granite"


class _Nothing:
    size = 0


def test_results_that_found_nothing_are_not_kept_without_end(bed: Bed) -> None:
    bed.fill([Capture(url="https://example.org/")])
    notes: ResultCache[_Nothing] = ResultCache(ReaderCache(bed.home, bed.clock).view())

    for number in range(5_000):
        notes.result(number, _Nothing)

    assert notes.kept <= 2_000
    assert notes.result(4_999, lambda: pytest.fail("it is kept")).size == 0


def test_many_sources_are_not_marked_without_end(bed: Bed) -> None:
    bed.fill(Capture(url=f"https://example.org/{n}", source=f"s{n}") for n in range(30))
    notes: ResultCache[_Nothing] = ResultCache(ReaderCache(bed.home, bed.clock).view())

    for number in range(1, 31):
        assert notes.documents_of(number).sum() == 1


def test_search_out_of_time_shows_snippets_for_passages(bed: Bed) -> None:
    bed.fill([Capture(url="https://a.test/", text=f"{'The start of a page. ' * 20}\nThe needle stands here.")])
    in_time = bed.ask("needle").hits[0].passages

    # What was counted is kept, so that only the passages are left to do.
    bed.search.seconds = 0
    late = bed.ask("needle").hits[0].passages

    assert "".join(piece.text for piece in in_time[0]) == "The needle stands here."
    assert "".join(piece.text for piece in late[0]).startswith("The start of a page.")
