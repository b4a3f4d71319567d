"""The only file that speaks to tantivy: schema, analysers, a writer, a reader that gives numbers, never objects.

Two kinds of entries share one index: a document (its text once, in the field of its language, and trigrams of title and
snippet) and an address (trigrams of the URL). It refuses a second writer.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final
from weakref import finalize

import numpy as np
import numpy.typing as npt
import tantivy

from holdfast.errors import Unavailable
from holdfast.parse.text import analysable, fold
from holdfast.search.query import Field

Ids = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

LANGUAGES: Final = ("en", "fr", "xx")
"""Languages that have a field of their own; `xx` is everything else, folded and not stemmed."""

# Ends every text of trigrams, so that its last letters start a trigram too: a term of two letters is then a prefix.
_EDGE: Final = "\x01\x01"
MAX_TEXT_CHARS: Final = 2_000_000
"""Of one document; what is beyond is not indexed."""
# Of a document that its words are taken from for typos: what is not there in any document is too rare to be meant.
_VOCABULARY_CHARS: Final = 4_000
# Trigrams that a term of one or two letters is looked for in, the most frequent ones: joining more costs more than all
# documents do.
_SHORT_GRAMS: Final = 512
_TITLE_WEIGHT: Final = 2.0
_PHRASE_WEIGHT: Final = 0.5


class IndexBroken(Unavailable):
    """The search index on disk cannot be used; it can always be made anew."""

    code = "search_index_broken"


def _analyser(*stems: str) -> Any:
    # Accents go before the stemmer, so that `securite` and `sécurité` always meet. French is stemmed twice: without
    # accents one pass leaves `vaccinees` at `vaccine`; the second brings it to `vaccin` with the rest of its family.
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    filters = [tantivy.Filter.remove_long(64), tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold()]
    for step in [*filters, *map(tantivy.Filter.stemmer, stems)]:
        builder = builder.filter(step)
    return builder.build()


_ANALYSERS: Final = {"en": _analyser("english"), "fr": _analyser("french", "french"), "xx": _analyser()}
_GRAMS: Final = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.ngram(3, 3)).build()


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    # Signed: deleting by term does not find an unsigned number (tantivy 0.27; a test holds the way we use it).
    builder.add_integer_field("key", indexed=True, fast=True)
    for language in LANGUAGES:
        builder.add_text_field(f"title_{language}", tokenizer_name=language)
        builder.add_text_field(f"body_{language}", tokenizer_name=language)
    builder.add_text_field("words", tokenizer_name="xx", index_option="basic")
    for field in (Field.TITLE, Field.SNIPPET, Field.URL):
        builder.add_text_field(f"{field}_grams", tokenizer_name="grams", index_option="basic")
    builder.add_text_field("author", tokenizer_name="xx", index_option="basic")
    return builder.build()


_SCHEMA: Final = _schema()
SCHEMA_VERSION: Final = 1


def language_field(language: str | None) -> str:
    """Return which of the languages a document's text is kept in."""
    primary = (language or "").partition("-")[0].lower()
    return primary if primary in LANGUAGES else "xx"


def stem(word: str, language: str) -> str | None:
    """Return what the index keeps of one word in a language; None if nothing."""
    found: list[str] = _ANALYSERS[language].analyze(word)
    return found[0] if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """One document as the index takes it in."""

    key: int
    language: str | None
    author: str = ""
    title: str
    snippet: str
    text: str


def _open(folder: Path) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        index = tantivy.Index(_SCHEMA, path=str(folder))
    except ValueError as exc:
        raise IndexBroken(
            f"the search index in {folder} cannot be opened: {exc}; run: holdfast search-index rebuild"
        ) from exc
    for name, analyser in (*_ANALYSERS.items(), ("grams", _GRAMS)):
        index.register_tokenizer(name, analyser)
    return index


class _LinkedFolder:
    """A folder of our own with links to the files of an index; removed when no reader has it any more."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.path = folder, Path(mkdtemp(prefix="holdfast-index-"))
        finalize(self, rmtree, self.path, ignore_errors=True)
        self.add_new()

    def add_new(self) -> None:
        """Link the files that have come since."""
        for path in self._folder.iterdir():
            if not path.name.endswith(".lock"):
                with suppress(FileExistsError):
                    (self.path / path.name).symlink_to(path.resolve())


class Writer:
    """Adds entries; what was there under the same key goes. Nothing is seen before `commit`."""

    def __init__(self, folder: Path, *, heap_bytes: int = 48_000_000) -> None:
        try:
            self._writer = _open(folder).writer(heap_size=heap_bytes, num_threads=1)
        except ValueError as exc:
            raise IndexBroken(f"the search index cannot be written: {exc}") from exc

    def add(self, entry: IndexEntry, *, replace: bool = True) -> None:
        """Take in one document; `replace` may be False where it is known to be new."""
        if replace:
            self._writer.delete_documents_by_term("key", entry.key)
        document = tantivy.Document()
        document.add_integer("key", entry.key)
        language = language_field(entry.language)
        title = analysable(entry.title)
        # The title belongs to the body: words of one query may stand in either.
        body = f"{title}\n{analysable(entry.text[:MAX_TEXT_CHARS])}"
        document.add_text(f"title_{language}", title)
        document.add_text(f"body_{language}", body)
        document.add_text("words", body[:_VOCABULARY_CHARS])
        document.add_text("title_grams", fold(title) + _EDGE)
        document.add_text("snippet_grams", fold(entry.snippet) + _EDGE)
        if entry.author:
            document.add_text("author", entry.author)
        self._writer.add_document(document)

    def add_address(self, key: int, url: str, *, replace: bool = True) -> None:
        """Take in one address under the hash of its spelling."""
        if replace:
            self._writer.delete_documents_by_term("key", key)
        document = tantivy.Document()
        document.add_integer("key", key)
        document.add_text("url_grams", fold(url) + _EDGE)
        self._writer.add_document(document)

    def commit(self) -> None:
        """Make what was added visible and lasting; Unavailable if the disk does not take it."""
        try:
            self._writer.commit()
        except ValueError as exc:
            raise Unavailable(f"the search index did not take the commit: {exc}") from exc

    def close(self) -> None:
        """Wait for merges and let go of the writer's lock; what was not committed is gone."""
        self._writer.rollback()
        # Its lock is held until its merges end: the next writer would be refused.
        self._writer.wait_merging_threads()


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedKeys:
    """Keys that match, best first where they are scored; `count` may be more than were asked for."""

    keys: Ids
    scores: Scores
    count: int


class IndexReader:
    """Asks the index as one commit left it; `reopened` costs a fraction of a millisecond."""

    def __init__(self, folder: Path, before: IndexReader | None = None) -> None:
        self._folder = folder
        self._links: _LinkedFolder | None = None if before is None else before._links
        try:
            if before is None:
                # An index that this process may only read can be searched: tantivy locks what it reads, and only the
                # lock file needs a place to be written.
                if not os.access(folder, os.W_OK):
                    self._links = _LinkedFolder(folder)
                self._index = _open(folder if self._links is None else self._links.path)
                # By itself it would move on in the middle of a search, away from the columns that belong to it.
                self._index.config_reader(reload_policy="manual")
            else:
                self._index = before._index
                # A process that may write has committed since: its new files have no link yet.
                if self._links is not None:
                    self._links.add_new()
            self._index.reload()
            self._searcher = self._index.searcher()
        except (ValueError, OSError) as exc:
            raise IndexBroken(f"the search index cannot be read: {exc}; run: holdfast search-index rebuild") from exc

    def reopened(self) -> IndexReader:
        """Return a reader that sees the latest commit; this one goes on as it is. IndexBroken if files are gone."""
        return IndexReader(self._folder, self)

    @property
    def entries(self) -> int:
        """How many documents and addresses it holds."""
        return int(self._searcher.num_docs)

    def words(self, words: Sequence[str], phrases: Sequence[Sequence[str]], *, limit: int) -> MatchedKeys:
        """Return documents in which every word and every phrase occurs, scored; titles and nearness count more."""
        queries = [q for language in LANGUAGES if (q := _in_language(language, words, phrases)) is not None]
        return self._ask(_any(queries), limit)

    def titles(self, words: Sequence[str], *, every: bool, limit: int) -> Ids:
        """Return documents whose title has every one of the words, or any of them."""
        found = []
        for language in LANGUAGES:
            terms = [_term(f"title_{language}", kept) for word in words if (kept := stem(word, language))]
            if terms and (not every or len(terms) == len(words)):
                found.append(_all(terms) if every else _any(terms))
        return self._ask(_constant(_any(found)), limit).keys

    def title_phrase(self, words: Sequence[str], *, limit: int) -> Ids:
        """Return documents whose title has the words side by side in this order."""
        found = []
        for language in LANGUAGES:
            kept = _stems(words, language)
            if kept is not None and len(kept) > 1:
                found.append(tantivy.Query.phrase_query(_SCHEMA, f"title_{language}", kept))
        return self._ask(_constant(_any(found)), limit).keys

    def substring(self, text: str, field: Field, *, limit: int) -> MatchedKeys:
        """Return keys whose trigrams allow the substring: candidates, to be checked against the text itself.

        More are counted than are returned where there are more, or may be.
        """
        least = 0
        name = f"{field}_grams"
        grams = _GRAMS.analyze(text)
        if grams:
            # Sixteen spread over the term narrow it enough; the check decides anyway.
            step = max(1, len(grams) // 16)
            query = _all([_term(name, gram) for gram in dict.fromkeys([*grams[::step], grams[-1]])])
        else:
            starts = self._searcher.terms_with_prefix(name, text, limit=_SHORT_GRAMS + 1)
            query = _any([_term(name, gram) for gram, _ in starts[:_SHORT_GRAMS]])
            least = limit + 1 if len(starts) > _SHORT_GRAMS else 0
        found = self._ask(_constant(query), limit)
        return replace(found, count=max(found.count, least))

    def frequency(self, word: str) -> int:
        """Return in how many documents a word occurs, folded and unstemmed; one look-up in the dictionary."""
        return int(self._searcher.doc_freq("words", word))

    def vocabulary(self, prefix: str, *, limit: int) -> list[tuple[str, int]]:
        """Return the most frequent words that start so, folded and unstemmed, with the number of their documents."""
        found: list[tuple[str, int]] = self._searcher.terms_with_prefix("words", prefix, limit=limit)
        return found

    def with_word(self, word: str, *, limit: int) -> Ids:
        """Return documents in which a word of the vocabulary occurs, as it is."""
        return self._ask(_constant(_term("words", word)), limit).keys

    def in_titles(self, words: Sequence[str], *, limit: int) -> MatchedKeys:
        """Return documents whose title has these words side by side, in any of their forms: what `intitle:` asks."""
        runs = [(language, kept) for language in LANGUAGES if (kept := _stems(words, language))]
        return self._ask(_constant(_any([_run(f"title_{language}", kept) for language, kept in runs])), limit)

    def with_phrase(self, words: Sequence[str], *, limit: int) -> MatchedKeys:
        """Return documents with these words side by side in their text, in any of their forms, unscored."""
        runs = [(language, kept) for language in LANGUAGES if (kept := _stems(words, language))]
        return self._ask(_constant(_any([_run(f"body_{language}", kept) for language, kept in runs])), limit)

    def near(self, words: Sequence[str], *, distance: int, limit: int) -> MatchedKeys:
        """Return documents in which each word stands near the next, in any order: what `near:` asks."""
        found = []
        for language in LANGUAGES:
            kept = _stems(words, language)
            if kept is None:
                continue
            body = f"body_{language}"
            # Both orders: alone, a phrase that is turned round would count as two words further apart.
            pairs = [[_run(body, pair, distance), _run(body, pair[::-1], distance)] for pair in pairwise(kept)]
            found.append(_all(map(_any, pairs)))
        return self._ask(_constant(_any(found)), limit)

    def authors(self, words: Sequence[str], *, limit: int) -> MatchedKeys:
        """Return documents by an author whose name has all these words: what `author:` asks."""
        return self._ask(_constant(_all([_term("author", word) for word in words])), limit)

    def some(self, words: Sequence[str], *, least: int, limit: int) -> MatchedKeys:
        """Return documents in which at least so many of these words occur, scored: what `similar:` asks."""
        found = []
        for language in LANGUAGES:
            terms = dict.fromkeys(kept for word in words if (kept := stem(word, language)))
            clauses = [(tantivy.Occur.Should, _term(f"body_{language}", term)) for term in terms]
            if len(clauses) >= least:
                found.append(tantivy.Query.boolean_query(clauses, minimum_number_should_match=least))
        return self._ask(_any(found), limit)

    def _ask(self, query: Any, limit: int) -> MatchedKeys:
        # tantivy refuses a limit of 0.
        if query is None or limit < 1 or self._searcher.num_docs == 0:
            return MatchedKeys(keys=np.empty(0, np.int64), scores=np.empty(0, np.float32), count=0)
        result = self._searcher.search(query, limit=min(limit, self._searcher.num_docs))
        with _uncollected():
            hits = result.hits
            if not hits:
                return MatchedKeys(keys=np.empty(0, np.int64), scores=np.empty(0, np.float32), count=0)
            scores = np.fromiter(map(itemgetter(0), hits), np.float32, len(hits))
            values = self._searcher.fast_field_values("key", list(map(itemgetter(1), hits)))
            keys = np.fromiter(values, np.int64, len(hits))
            return MatchedKeys(keys=keys, scores=scores, count=int(result.count))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Hold the garbage collector off while tens of thousands of short-lived pairs pass: it would look at each."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _run(field: str, terms: Sequence[Any], slop: int = 0) -> Any:
    if len(terms) == 1:
        return _term(field, terms[0])
    return tantivy.Query.phrase_query(_SCHEMA, field, list(terms), slop=slop)


def _term(field: str, text: Any) -> Any:
    return tantivy.Query.term_query(_SCHEMA, field, text)


def _any(queries: Iterable[Any]) -> Any:
    found = list(queries)
    if len(found) < 2:
        return found[0] if found else None
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in found])


def _all(queries: Iterable[Any]) -> Any:
    found = list(queries)
    return (
        found[0] if len(found) == 1 else tantivy.Query.boolean_query([(tantivy.Occur.Must, query) for query in found])
    )


def _constant(query: Any) -> Any:
    return None if query is None else tantivy.Query.const_score_query(query, 1.0)


def _stems(words: Sequence[str], language: str) -> list[str | tuple[int, str]] | None:
    """Return what a language keeps of each word; None if it keeps nothing of one."""
    kept: list[str | tuple[int, str]] = [term for word in words if (term := stem(word, language))]
    return kept if len(kept) == len(words) else None


def _in_language(language: str, words: Sequence[str], phrases: Sequence[Sequence[str]]) -> Any:
    """Return the query over one language's documents; None if a word has nothing that it keeps."""
    body, title = f"body_{language}", f"title_{language}"
    kept = _stems(words, language)
    runs = [run for phrase in phrases if (run := _stems(phrase, language)) is not None]
    if kept is None or len(runs) < len(phrases) or not (kept or runs):
        return None
    must = [_term(body, term) for term in dict.fromkeys(kept)]
    must += [tantivy.Query.phrase_query(_SCHEMA, body, run) for run in runs]
    should = [tantivy.Query.boost_query(_term(title, term), _TITLE_WEIGHT) for term in dict.fromkeys(kept)]
    if len(kept) > 1:
        near = tantivy.Query.phrase_query(_SCHEMA, body, kept)
        should.append(tantivy.Query.boost_query(near, _PHRASE_WEIGHT))
    clauses = [(tantivy.Occur.Must, query) for query in must] + [(tantivy.Occur.Should, query) for query in should]
    return tantivy.Query.boolean_query(clauses)
