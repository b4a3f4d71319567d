"""Records of search: a page of results, the query language, terms over time, linked hosts, and parts of scores."""

from __future__ import annotations

from datetime import date, datetime

from holdfast.records import Operator, Public, record


@record
class TextPiece:
    """Part of a passage; joined, the pieces are the passage."""

    text: Public[str]
    """Plain text, never markup."""
    hit: Public[bool]
    """Whether this is a word that was asked for."""


@record
class Highlights:
    """The title and passages, with the matching words."""

    title: Public[list[TextPiece]]
    text: Public[list[list[TextPiece]]]
    """As many passages as were asked for, the best one first, each of at most 240 characters. An ellipsis stands where
    something is left out, a raised dot between two lines. The start of the page if its text contains no word.
    """


@record
class SearchResult:
    """One result: a capture, or a page with its latest matching capture."""

    id: Public[int]
    title: Public[str | None]
    source_code: Public[str]
    source_name: Public[str]
    language: Public[str | None]
    """BCP-47, where it is known."""
    capture_date: Public[date]
    capture_timestamp: Public[datetime]
    job_id: Public[int]
    """The execution that captured it."""
    original_url: Public[str]
    """As captured; of a page, its address without the query."""
    snippet: Public[str | None]
    """The start of the page's text; plain text."""
    highlights: Public[Highlights]
    mime_type: Public[str | None]
    status_code: Public[int | None]
    raw_snapshot_url: Public[str]
    browse_url: Public[str | None]
    capture_backend: Public[str]
    capture_fidelity: Public[str]
    page_snapshots_count: Public[int | None]
    """Captures of the page; only with view=pages."""
    similar_count: Public[int | None]
    """Its near-duplicates among the first 400 results, left out of the list; null if they are shown."""
    similar_url: Public[str | None]
    """Where these are listed."""
    noise: Public[str | None]
    """What it shows instead of its page; null but with noise=show."""


@record
class FacetCount:
    """The number of results with one value."""

    value: Public[str]
    """What the filter of the same name takes."""
    label: Public[str]
    count: Public[int]


@record
class Facets:
    """Counts of results by value; the 20 most frequent values of each facet, and all years and sources.

    Page type, author and year of publication are counted if a page states them.
    """

    source: Public[list[FacetCount]]
    language: Public[list[FacetCount]]
    year: Public[list[FacetCount]]
    type: Public[list[FacetCount]]
    status: Public[list[FacetCount]]
    host: Public[list[FacetCount]]
    page_type: Public[list[FacetCount]]
    author: Public[list[FacetCount]]
    published: Public[list[FacetCount]]
    """By year of publication."""


@record
class Bucket:
    """Results of one day, month or year."""

    start: Public[date]
    count: Public[int]


@record
class Histogram:
    """Results over time; units without results are left out."""

    unit: Public[str]
    """day, month or year, by how long the results span."""
    buckets: Public[list[Bucket]]


@record
class SearchResults:
    """A page of results, and counts over all of them."""

    results: Public[list[SearchResult]]
    total: Public[int]
    """Results that can be paged through; near-duplicates that are left out do not count."""
    total_is_exact: Public[bool]
    """False if more match than is read: there are at least `total` results."""
    collapsed: Public[int]
    """Near-duplicates of a better result that are left out of the list."""
    page: Public[int]
    page_size: Public[int]
    mode: Public[str]
    """How they were found: newest, relevance_fts, relevance_fallback, relevance_fuzzy, relevance_some_words (none has
    all of them), boolean, url, similar, pages_fastpath."""
    did_you_mean: Public[str | None]
    """The query that was answered instead, because the one asked found nothing."""
    facets: Public[Facets]
    histogram: Public[Histogram]
    took_ms: Public[float]


@record
class SyntaxOperator:
    """One operator of the query language."""

    name: Public[str]
    value: Public[str]
    """What follows the colon."""
    meaning: Public[str]
    examples: Public[list[str]]


@record
class SyntaxExample:
    """An example of a query without operators."""

    example: Public[str]
    meaning: Public[str]


@record
class SearchSyntax:
    """The query language, as the command line and the documentation describe it."""

    operators: Public[list[SyntaxOperator]]
    words: Public[list[SyntaxExample]]
    rules: Public[list[str]]


@record
class TermVolume:
    """The number of all captures in one unit of time."""

    start: Public[str]
    """A year, or a month."""
    captures: Public[int]


@record
class TermCount(TermVolume):
    """Captures with a term in one unit of time."""

    captures: Public[int]
    """Captures that have it."""
    new_documents: Public[int]
    """Different bodies that have it and were first captured then."""
    share: Public[float]
    """Captures that have it over all captures of that time, 0 to 1."""


@record
class TermOverTime:
    """One term over time."""

    term: Public[str]
    """As it was typed, without blanks around it."""
    captures: Public[int]
    new_documents: Public[int]
    is_exact: Public[bool]
    """False if more documents have it than are read: the counts are too low then."""
    counts: Public[list[TermCount]]


@record
class TermsOverTime:
    """Terms over time, every unit from the first capture to the last."""

    unit: Public[str]
    volume: Public[list[TermVolume]]
    terms: Public[list[TermOverTime]]


@record
class LinkedHostRecord:
    """A host without captures that captures link to."""

    host: Operator[str]
    """Without `www.`."""
    links: Operator[int]
    """Links to it, each page and body once."""
    linking_sites: Operator[int]
    """Registrable domains that link to it."""


@record
class LinkedHostList:
    """Hosts that could become sources, those with the most linking sites first."""

    items: Operator[list[LinkedHostRecord]]
    limit: Operator[int]
    offset: Operator[int]


@record
class ExplainedResult:
    """One result and the parts of its score."""

    id: Operator[int]
    original_url: Operator[str]
    title: Operator[str | None]
    status_code: Operator[int | None]
    rank_text: Operator[float]
    """BM25 over the best BM25 found: 0 to 1."""
    title_boost: Operator[float]
    archived_penalty: Operator[float]
    query_penalty: Operator[float]
    tracking_penalty: Operator[float]
    depth_penalty: Operator[float]
    authority_boost: Operator[float]
    hubness_boost: Operator[float]
    pagerank_boost: Operator[float]
    recency_boost: Operator[float]
    total_score: Operator[float]
    group_score: Operator[float]
    """Of the group's best capture; for view=pages."""
    best_snapshot_id: Operator[int | None]


@record
class SearchDebug:
    """A page of results, explained."""

    dialect: Operator[str]
    mode: Operator[str]
    ranking_version: Operator[str]
    query_mode: Operator[str]
    """broad, mixed or specific."""
    total: Operator[int]
    total_is_exact: Operator[bool]
    collapsed: Operator[int]
    """Near-duplicates that are left out, as in a search."""
    page: Operator[int]
    page_size: Operator[int]
    did_you_mean: Operator[str | None]
    took_ms: Operator[float]
    results: Operator[list[ExplainedResult]]
