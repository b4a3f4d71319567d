"""The only module that uses tantivy: schema, analysers, a writer, a reader that returns numbers, never objects.

Two kinds of entries share one index: a document (its text in the fields of its language, and trigrams of title and
snippet) and a URL (the texts of links to it, and trigrams of the URL). It rejects a second writer.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from math import log1p
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import tantivy

from holdfast.errors import Unavailable
from holdfast.parse.text import fold, is_unspaced, one_line_a_block, words_of
from holdfast.search.analysis import (
    ANALYSERS,
    LANGUAGES,
    UNSTEMMED,
    author_terms,
    compounds_in,
    exact_words,
    is_letter,
    language_field,
    prepared,
    query_pairs,
    single_letters,
    spelled_out,
    spellings,
    stem,
    stems,
    terms_of,
    unfolded_words,
    whole_forms,
    within,
    words_of_path,
)
from holdfast.search.linked_folder import LinkedFolder
from holdfast.search.query import And, Field, Node, Not, Or, Term, plain
from holdfast.search.query_terms import (
    BORDER,
    Clause,
    Kind,
    QueryTerms,
    TextWeights,
    address_clauses,
    document_clauses,
    kept_stems,
    query_terms,
)
from holdfast.values import dataclass

Ids = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

# Ends every text of trigrams, so that its last letters start a trigram too: a term of two letters is then a prefix.
_EDGE: Final = "\x01\x01"
# Of a text with accents, whose words are kept unfolded, too.
_UNFOLDED_CHARS: Final = 4_000
# Of headings and terms, and of link texts.
_MAX_HEADS_CHARS: Final = 100_000
# Main content, and the rest of what a page shows.
_PARTS: Final = ("body", "rest")
# What a word is worth outside the main content.
_REST_WEIGHT: Final = 0.25


class IndexBroken(Unavailable):
    """The search index on disk is unusable; it can always be rebuilt."""

    code = "search_index_broken"


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    # Signed: deleting by term does not find an unsigned number (tantivy 0.27; a test holds the way we use it).
    builder.add_integer_field("key", indexed=True, fast=True)
    for language in LANGUAGES:
        for name in _PARTS:
            builder.add_text_field(f"{name}_{language}", tokenizer_name=language)
    # Stemmed before they come here, each in its language: short texts, so that one field of each serves all languages.
    for name in ("title", "heads", "anchors", "path"):
        builder.add_text_field(name, tokenizer_name="listed")
    for name in ("exact", "exact_heads", "exact_anchors", "whole"):
        builder.add_text_field(name, tokenizer_name="listed", index_option="basic")
    builder.add_text_field("words", tokenizer_name="exact", index_option="basic")
    for field in (Field.TITLE, Field.SNIPPET, Field.URL):
        builder.add_text_field(f"{field}_grams", tokenizer_name="grams", index_option="basic")
    # Split before they come here: the analysers would split the words of some scripts elsewhere than a query does.
    builder.add_text_field("author", tokenizer_name="listed", index_option="basic")
    # Of a document, from `language_field`: titles of all languages share a field, and a stem of one language may
    # be a word of another.
    builder.add_text_field("language", tokenizer_name="listed", index_option="basic")
    return builder.build()


_SCHEMA: Final = _schema()
SCHEMA_VERSION: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """A document; its texts have marks where several lines belong to one block."""

    key: int
    language: str | None
    author: str = ""
    title: str
    snippet: str
    text: str
    rest: str = ""
    heads: Sequence[str] = ()


def _open(folder: Path) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        index = tantivy.Index(_SCHEMA, path=str(folder))
    except ValueError as exc:
        raise IndexBroken(
            f"the search index in {folder} cannot be opened: {exc}; run: holdfast search-index rebuild"
        ) from exc
    for name, analyser in ANALYSERS.items():
        index.register_tokenizer(name, analyser)
    return index


class Writer:
    """Adds entries, replacing those with the same key. Nothing is visible before `commit`."""

    def __init__(self, folder: Path, *, heap_bytes: int = 48_000_000) -> None:
        try:
            self._writer = _open(folder).writer(heap_size=heap_bytes, num_threads=1)
        except ValueError as exc:
            raise IndexBroken(f"the search index cannot be written: {exc}") from exc

    def add(self, entry: IndexEntry, *, replace: bool = True) -> None:
        """Add one document; `replace` may be False if it is known to be new."""
        document = tantivy.Document()
        language = language_field(entry.language)
        text, rest = one_line_a_block(entry.text), one_line_a_block(entry.rest)
        compounds, rest_compounds = compounds_in(text), compounds_in(rest)
        # The title belongs to the body: words of one query may stand in either. So do the parts of compounds. No phrase
        # reaches from one value of a field into the next, nor from one block of the page.
        body = [prepared(entry.title), *prepared(text).split("\n"), *spelled_out(compounds)]
        others = [*prepared(rest).split("\n"), *spelled_out(rest_compounds)] if rest else []
        for name, values in (("body", body), ("rest", others)):
            for value in values:
                document.add_text(f"{name}_{language}", value)
        heads = within(entry.heads, _MAX_HEADS_CHARS)
        document.add_text("language", language)
        document.add_text("title", _bordered([entry.title], language))
        document.add_text("heads", _bordered(heads, language))
        document.add_text("exact_heads", _exact([entry.title, *heads]))
        document.add_text("exact", unfolded_words(f"{entry.title}\n{text}\n{rest}", _UNFOLDED_CHARS) or BORDER)
        names = [*compounds_in(entry.title), *compounds, *rest_compounds]
        document.add_text("whole", whole_forms(dict.fromkeys(names)))
        document.add_text("words", "\n".join([*body, *others, single_letters(f"{entry.title}{text}{rest}")]))
        document.add_text("title_grams", fold(entry.title) + _EDGE)
        document.add_text("snippet_grams", fold(entry.snippet) + _EDGE)
        if entry.author:
            document.add_text("author", " ".join(author_terms(entry.author)))
        self._put(entry.key, document, replace=replace)

    def add_address(
        self, key: int, url: str, *, anchors: Sequence[str] = (), language: str | None = None, replace: bool = True
    ) -> None:
        document = tantivy.Document()
        document.add_text("url_grams", fold(url) + _EDGE)
        kept = language_field(language)
        document.add_text("path", _bordered([words_of_path(url)], kept))
        if anchors:
            texts = within(anchors, _MAX_HEADS_CHARS)
            document.add_text("anchors", _bordered(texts, kept))
            document.add_text("exact_anchors", _exact(texts))
        self._put(key, document, replace=replace)

    def _put(self, key: int, document: Any, *, replace: bool) -> None:
        document.add_integer("key", key)
        try:
            if replace:
                self._writer.delete_documents_by_term("key", key)
            self._writer.add_document(document)
        except ValueError as exc:
            # A thread of tantivy writes the entries: that the disk is full shows at one of the next.
            raise Unavailable(f"the search index cannot be written: {exc}; nothing is lost, drain again") from exc

    def commit(self) -> None:
        """Make additions visible and durable; raise Unavailable if the disk fails."""
        try:
            self._writer.commit()
        except ValueError as exc:
            raise Unavailable(f"the search index did not take the commit: {exc}") from exc

    def close(self) -> None:
        """Wait for merges and release the writer's lock; uncommitted additions are lost."""
        self._writer.rollback()
        # Its lock is held until its merges end: the next writer would be refused.
        self._writer.wait_merging_threads()


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedKeys:
    """Matching keys, best first if scored; `count` may exceed the requested number."""

    keys: Ids
    scores: Scores
    count: int


NONE_MATCHED: Final = MatchedKeys(keys=np.empty(0, np.int64), scores=np.empty(0, np.float32), count=0)


class IndexReader:
    """Queries the index in the state of one commit; `reopened` costs a fraction of a millisecond."""

    def __init__(self, folder: Path, before: IndexReader | None = None) -> None:
        self._folder = folder
        self._unnamed: Any = None
        self._links: LinkedFolder | None = None if before is None else before._links
        try:
            if before is None:
                # An index that this process may only read can be searched: tantivy locks what it reads, and only the
                # lock file needs a place to be written.
                if not os.access(folder, os.W_OK):
                    self._links = LinkedFolder(folder)
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
        """Return a reader of the latest commit; this one stays usable. Raise IndexBroken if files are gone."""
        return IndexReader(self._folder, self)

    def without_names(self, addresses: Ids | None = None) -> IndexReader:
        """Return a reader that finds these pages (by default all) by no link text and no path."""
        found, query = copy(self), tantivy.Query
        found._unnamed = (
            query.all_query() if addresses is None else query.term_set_query(_SCHEMA, "key", addresses.tolist())
        )
        return found

    def _named(self, query: Any) -> Any:
        if query is None or self._unnamed is None:
            return query
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.MustNot, self._unnamed)])

    @property
    def entries(self) -> int:
        return int(self._searcher.num_docs)

    def words(self, query: QueryTerms, languages: Sequence[str], weights: TextWeights, *, limit: int) -> MatchedKeys:
        """Return documents with every word and every phrase, scored; if there is a tree, it selects."""
        matched = _joined(query.tree or query, _texts, languages)
        if matched is None:
            return NONE_MATCHED
        clauses = (clause for one in languages for clause in document_clauses(query, one))
        must = (tantivy.Occur.Must, _boosted(matched, weights.body))
        return self._ask(tantivy.Query.boolean_query([must, *self._weighted(clauses, weights)]), limit)

    def accented(self, query: QueryTerms, *, limit: int) -> MatchedKeys:
        if not query.accented:
            return NONE_MATCHED
        return self._ask(_constant(_all([_term("exact", word) for word in query.accented])), limit)

    def some_words(
        self, query: QueryTerms, languages: Iterable[str], weights: TextWeights, *, limit: int
    ) -> MatchedKeys:
        found = []
        for one in languages:
            kept = [term for word in query.terms if (term := stem(word, one))]
            found += [_boosted(_in_text(one, partial(_term, text=term)), weights.body) for term in kept]
            clauses = [Clause(field, Kind.TERM, field, (term,)) for field in ("title", "heads") for term in kept]
            found += [query for _, query in self._weighted(clauses, weights)]
        return self._ask(_any(found), limit)

    def addresses(
        self, query: QueryTerms, languages: Sequence[str], weights: TextWeights, *, limit: int
    ) -> MatchedKeys:
        """Return URLs that have all words in their link texts, or all in their path."""
        wanted = self._named(_joined(query.tree or query, _names, languages))
        if wanted is None:
            return NONE_MATCHED
        clauses = (clause for one in languages for clause in address_clauses(query, one))
        must = (tantivy.Occur.Must, _constant(wanted, 0.0))
        return self._ask(tantivy.Query.boolean_query([must, *self._weighted(clauses, weights)]), limit)

    def _rarity(self, field: str, term: str) -> float:
        found = self._searcher.doc_freq(field, term)
        return log1p((self._searcher.num_docs - found + 0.5) / (found + 0.5))

    def _weighted(self, clauses: Iterable[Clause], weights: TextWeights) -> list[tuple[Any, Any]]:
        weighed = [(clause, getattr(weights, clause.name)) for clause in dict.fromkeys(clauses)]
        return [
            (tantivy.Occur.Should, _boosted(_query(one, self._rarity), weight)) for one, weight in weighed if weight
        ]

    def substring(self, text: str, field: Field, *, limit: int) -> MatchedKeys:
        """Return candidates whose trigrams allow the substring; the caller checks them against the text."""
        name = f"{field}_grams"
        grams = ANALYSERS["grams"].analyze(text)
        # Sixteen spread over the term narrow it enough; the check decides anyway.
        step = max(1, len(grams) // 16)
        some = dict.fromkeys([*grams[::step], *grams[-1:]])
        return self._ask(_constant(_all([_term(name, gram) for gram in some]) if some else _prefix(name, text)), limit)

    def frequency(self, word: str) -> int:
        """Return the number of documents with a word, folded and unstemmed; one look-up."""
        return int(self._searcher.doc_freq("words", word))

    def vocabulary(self, prefix: str, *, limit: int) -> list[tuple[str, int]]:
        """Return the most frequent words with this prefix, folded and unstemmed, with the number of their
        documents.
        """
        found: list[tuple[str, int]] = self._searcher.terms_with_prefix("words", prefix, limit=limit)
        return found

    def with_word(self, word: str, *, limit: int) -> MatchedKeys:
        """Return documents with exactly this word, folded: the stem of a misspelling may be one of another language."""
        return self._ask(_constant(_term("words", word)), limit)

    def in_titles(self, words: Sequence[str], *, limit: int) -> MatchedKeys:
        """Return documents whose title has these words side by side, in any of their forms (`intitle:`)."""
        runs: dict[tuple[str, ...], list[str]] = {}
        for language in LANGUAGES:
            for terms in spellings(words):
                if kept := kept_stems(terms, language):
                    runs.setdefault(kept, []).append(language)
        return self._ask(_constant(_any([_titled(run, languages) for run, languages in runs.items()])), limit)

    def with_phrase(self, words: Sequence[str], *, limit: int, accented: Sequence[str] = ()) -> MatchedKeys:
        """Return documents with these words side by side in their text, in any of their forms, unscored.

        Those of them that are `accented` must have their accents in the text.
        """
        return self._ask(_constant(_all([_side_by_side(words), *(_term("exact", word) for word in accented)])), limit)

    def with_text(self, term: Term, languages: Sequence[str], *, limit: int, among: Ids | None = None) -> MatchedKeys:
        """Return the results of a plain query, unscored: documents, or URLs by their names; only from `among` if
        given.
        """
        is_name = term.field is Field.NAMES
        query = self._named(_joined(term, _names, languages)) if is_name else _joined(term, _texts, languages)
        if query is not None and among is not None:
            query = _all([query, tantivy.Query.term_set_query(_SCHEMA, "key", among.tolist())])
        return self._ask(_constant(query), limit)

    def near(self, words: Sequence[str], languages: Sequence[str], *, distance: int, limit: int) -> MatchedKeys:
        """Return documents in which each word is near the next, in any order (`near:`)."""
        found = []
        for language in languages:
            kept = [kept_stems(terms_of(word), language) for word in words]
            # Two forms of one word have the same stem, so one word would match both: ignore such pairs.
            pairs = [(a, b) for a, b in pairwise(kept) if a and b and a != b]
            if pairs and all(kept):
                # Both orders: alone, a phrase that is turned round would count as two words further apart.
                for part in _PARTS:
                    beside = partial(_beside, f"{part}_{language}", distance=distance)
                    found.append(_all([_any([beside(a, b), beside(b, a)]) for a, b in pairs]))
        return self._ask(_constant(_any(found)), limit)

    def authors(self, words: Sequence[str], *, limit: int) -> MatchedKeys:
        terms = dict.fromkeys(term for word in words for term in terms_of(word))
        return self._ask(_constant(_all([_run("author", (term,)) for term in terms])), limit)

    def some(self, words: Sequence[str], languages: Sequence[str], *, least: int, limit: int) -> MatchedKeys:
        """Return documents with at least `least` of these words, scored (`like:`)."""
        found = []
        for language in languages:
            terms = dict.fromkeys(kept for word in words if (kept := stem(word, language)))
            clauses = [(tantivy.Occur.Should, _term(f"body_{language}", term)) for term in terms]
            if len(clauses) >= least:
                found.append(tantivy.Query.boolean_query(clauses, minimum_number_should_match=least))
        return self._ask(_any(found), limit)

    def _ask(self, query: Any, limit: int) -> MatchedKeys:
        # tantivy refuses a limit of 0.
        if query is None or limit < 1 or self._searcher.num_docs == 0:
            return NONE_MATCHED
        result = self._searcher.search(query, limit=min(limit, self._searcher.num_docs))
        with _uncollected():
            hits = result.hits
            if not hits:
                return NONE_MATCHED
            scores = np.fromiter(map(itemgetter(0), hits), np.float32, len(hits))
            values = self._searcher.fast_field_values("key", list(map(itemgetter(1), hits)))
            keys = np.fromiter(values, np.int64, len(hits))
            return MatchedKeys(keys=keys, scores=scores, count=int(result.count))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable the garbage collector during the block: it would examine tens of thousands of short-lived pairs."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _term(field: str, text: Any) -> Any:
    return tantivy.Query.term_query(_SCHEMA, field, text)


def _any(queries: Iterable[Any]) -> Any:
    found = list(queries)
    if len(found) < 2:
        return found[0] if found else None
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in found])


def _in_text(language: str, query_of: Callable[[str], Any]) -> Any:
    """Return a query on both parts of a document's text; the rest of a page weighs less than its body."""
    return _any([query_of(f"body_{language}"), _boosted(query_of(f"rest_{language}"), _REST_WEIGHT)])


def _all(queries: Iterable[Any]) -> Any:
    found = list(queries)
    return (
        found[0] if len(found) == 1 else tantivy.Query.boolean_query([(tantivy.Occur.Must, query) for query in found])
    )


def _constant(query: Any, score: float = 1.0) -> Any:
    return None if query is None else tantivy.Query.const_score_query(query, score)


def _phrase(field: str, terms: Sequence[str], slop: int = 0) -> Any:
    if len(terms) == 1:
        return _term(field, terms[0])
    return tantivy.Query.phrase_query(_SCHEMA, field, list(terms), slop=slop)


def _run(field: str, terms: Sequence[str]) -> Any:
    """Return a query for adjacent terms; a single unspaced letter at either end may be part of a pair."""
    if not (is_letter(terms[0]) or is_letter(terms[-1])):
        return _phrase(field, terms)
    # Terms are letters, digits and marks: nothing of them has a meaning in a pattern.
    first, last = (".?" if is_letter(end) else "" for end in (terms[0], terms[-1]))
    if len(terms) == 1:
        return tantivy.Query.regex_query(_SCHEMA, field, f"{first}{terms[0]}{last}")
    patterns = [f"{first}{terms[0]}", *terms[1:-1], f"{terms[-1]}{last}"]
    return tantivy.Query.regex_phrase_query(_SCHEMA, field, [*patterns])


@lru_cache(maxsize=64)
def _prefix(field: str, text: str) -> Any:
    pattern = "".join(char if char.isalnum() else f"\\x{{{ord(char):X}}}" for char in text)
    return tantivy.Query.regex_query(_SCHEMA, field, f"{pattern}(.|\n)*")


def _word(language: str, term: str) -> Any:
    return _constant(_term("words", term)) if is_letter(term) else _in_text(language, partial(_term, text=term))


def _texts(query: QueryTerms, languages: Sequence[str]) -> Any:
    return _any([_all(musts) for one in languages if (musts := _musts(query, one))])


def _musts(query: QueryTerms, language: str) -> list[Any]:
    kept = kept_stems(query.words, language)
    runs = [run for phrase in query.phrases if (run := kept_stems(query_pairs(phrase), language)) is not None]
    if kept is None or len(runs) < len(query.phrases) or not (kept or runs):
        return []
    must = [_word(language, term) for term in dict.fromkeys(kept)]
    must += [_term("exact", word) for word in query.required] + [_term("whole", name) for name in query.signed]
    return must + [_in_text(language, partial(_run, terms=run)) for run in runs]


def _names(query: QueryTerms, languages: Sequence[str]) -> Any:
    clauses = (one for language in languages for one in address_clauses(query, language) if one.kind is Kind.ALL)
    named = _any(_all([_term(one.field, term) for term in one.terms]) for one in dict.fromkeys(clauses))
    return named and _all([named, *(_term("exact_anchors", word) for word in query.required + query.signed)])


def _joined(
    node: Node | QueryTerms, meeting: Callable[[QueryTerms, Sequence[str]], Any], languages: Sequence[str]
) -> Any:
    match node:
        case QueryTerms():
            return meeting(node, languages)
        # Unspaced letters are found inside longer runs anyway.
        case Term(text, is_prefix=True) if not is_unspaced(text[-1]):
            parts = words_of(text)
            known = _prefix("words", parts[0]) if len(parts) == 1 else _prefix("whole", text)
            return _constant(known) if parts and meeting is _texts else None
        case Term(text):
            # What another term finds must not depend on whether any page shows a name with its signs.
            return meeting(replace(query_terms(plain(text), text), signed=()), languages)
        case Or(parts):
            return _any(query for part in parts if (query := _joined(part, meeting, languages)) is not None)
        case Not():
            return _joined(And((node,)), meeting, languages)
        case And(parts):
            wanted = [_joined(part, meeting, languages) for part in parts if not isinstance(part, Not)]
            gone = [_joined(part.part, meeting, languages) for part in parts if isinstance(part, Not)]
            if None in wanted:
                return None
            clauses = [(tantivy.Occur.Must, one) for one in wanted or [_constant(tantivy.Query.all_query(), 0.0)]]
            clauses += [(tantivy.Occur.MustNot, one) for one in gone if one is not None]
            return tantivy.Query.boolean_query(clauses)


def _side_by_side(words: Sequence[str]) -> Any:
    forms = spellings(words)
    if len(forms[0]) == 1 and is_letter(forms[0][0]):
        return _word(UNSTEMMED, forms[0][0])
    runs = {(one, kept): None for one in LANGUAGES for terms in forms if (kept := kept_stems(terms, one))}
    return _any([_in_text(language, partial(_run, terms=kept)) for language, kept in runs])


def _titled(run: tuple[str, ...], languages: Sequence[str]) -> Any:
    wanted = _run("title", run)
    if len(languages) == len(LANGUAGES):
        return wanted
    return _all([wanted, _any([_term("language", language) for language in languages])])


def _beside(field: str, first: Sequence[str], second: Sequence[str], distance: int) -> Any:
    """Return a query for one word before another, with at most `distance` words or unspaced letters between them."""
    # A pair reaches over the place of the next one.
    slop = distance + (len(first[-1]) - 1 if is_unspaced(first[-1]) else 0)
    words = [_phrase(field, terms) for terms in (first, second) if len(terms) > 1]
    return _all([*words, _phrase(field, [*first, *second], slop)])


def _boosted(query: Any, weight: float) -> Any:
    return tantivy.Query.boost_query(query, weight)


def _query(clause: Clause, rarity: Callable[[str, str], float]) -> Any:
    match clause.kind:
        case Kind.TERM:
            return _term(clause.field, clause.terms[0])
        case Kind.ALL:
            return _constant(_all([_term(clause.field, term) for term in clause.terms]))
        case Kind.PHRASE:
            return _constant(_phrase(clause.field, clause.terms))
        case Kind.TYPED:
            word = clause.terms[0]
            typed, folded = _term("exact", word), _term("words", word)
            if fold(word) == word:
                # A text without accents has its words in `words` alone, and this sign in `exact`.
                typed = _any([typed, _all([_term("exact", BORDER), folded])])
            half = rarity("words", fold(word)) / 2
            return _any([_constant(typed, half), _constant(folded, half)])
        case Kind.RARE:
            return _constant(_term(clause.field, *clause.terms), rarity(clause.field, *clause.terms))
        case Kind.SENTENCE:
            return _phrase(clause.field, clause.terms)


def _bordered(texts: Iterable[str], language: str) -> str:
    lines = [stems(text, language) for text in texts]
    return " ".join([BORDER, *(word for line in lines if line for word in (*line, BORDER))])


def _exact(texts: Iterable[str]) -> str:
    joined = "\n".join(texts)
    return " ".join(dict.fromkeys([*exact_words(joined), *whole_forms(compounds_in(joined)).split()]))
