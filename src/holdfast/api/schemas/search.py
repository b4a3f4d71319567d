"""Responses of search, of single captures and of pages."""

from __future__ import annotations

from datetime import date, datetime

from pydantic import Field

from holdfast.api.schemas.base import Answer


class TextPiece(Answer):
    """Part of a passage; joined, the pieces are the passage."""

    text: str = Field(description="Plain text, never markup.")
    hit: bool = Field(description="Whether this is a word that was asked for.")


class Highlights(Answer):
    """The title and passages, with the matching words."""

    title: list[TextPiece]
    text: list[list[TextPiece]] = Field(
        description="As many passages as were asked for, the best one first, each of at most 240 characters. An "
        "ellipsis stands where something is left out, a raised dot between two lines. The start of the page if its "
        "text contains no word."
    )


class SearchResult(Answer):
    """One result: a capture, or a page with its latest matching capture."""

    id: int
    title: str | None
    source_code: str
    source_name: str
    language: str | None = Field(description="BCP-47, where it is known.")
    capture_date: date
    capture_timestamp: datetime
    job_id: int = Field(description="The execution that captured it.")
    original_url: str = Field(description="As captured; of a page, its address without the query.")
    snippet: str | None = Field(description="The start of the page's text; plain text.")
    highlights: Highlights
    mime_type: str | None
    status_code: int | None
    raw_snapshot_url: str
    browse_url: str | None
    capture_backend: str
    capture_fidelity: str
    page_snapshots_count: int | None = Field(description="Captures of the page; only with view=pages.")
    similar_count: int | None = Field(
        description="Its near-duplicates among the first 400 results, left out of the list; null if they are shown."
    )
    similar_url: str | None = Field(description="Where these are listed.")
    noise: str | None = Field(description="What it shows instead of its page; null but with noise=show.")


class FacetCount(Answer):
    """The number of results with one value."""

    value: str = Field(description="What the filter of the same name takes.")
    label: str
    count: int


class Facets(Answer):
    """Counts of results by value; the 20 most frequent values of each facet, and all years and sources.

    Page type, author and year of publication are counted if a page states them.
    """

    source: list[FacetCount]
    language: list[FacetCount]
    year: list[FacetCount]
    type: list[FacetCount]
    status: list[FacetCount]
    host: list[FacetCount]
    pageType: list[FacetCount]
    author: list[FacetCount]
    published: list[FacetCount] = Field(description="By year of publication.")


class Bucket(Answer):
    """Results of one day, month or year."""

    start: date
    count: int


class Histogram(Answer):
    """Results over time; units without results are left out."""

    unit: str = Field(description="day, month or year, by how long the results span.")
    buckets: list[Bucket]


class SearchResults(Answer):
    """A page of results, and counts over all of them."""

    results: list[SearchResult]
    total: int = Field(description="Results that can be paged through; near-duplicates that are left out do not count.")
    total_is_exact: bool = Field(description="False if more match than is read: there are at least `total` results.")
    collapsed: int = Field(description="Near-duplicates of a better result that are left out of the list.")
    page: int
    page_size: int
    mode: str = Field(
        description="How they were found: newest, relevance_fts, relevance_fallback, relevance_fuzzy, "
        "relevance_some_words (none has all of them), "
        "boolean, url, similar, pages_fastpath."
    )
    did_you_mean: str | None = Field(
        description="The query that was answered instead, because the one asked found nothing."
    )
    facets: Facets
    histogram: Histogram
    took_ms: float


class SyntaxOperator(Answer):
    """One operator of the query language."""

    name: str = Field(examples=["site"])
    value: str = Field(description="What follows the colon.", examples=["HOST[/DIRECTORY]"])
    meaning: str
    examples: list[str]


class SyntaxExample(Answer):
    """An example of a query without operators."""

    example: str
    meaning: str


class SearchSyntax(Answer):
    """The query language, as the command line and the documentation describe it."""

    operators: list[SyntaxOperator]
    words: list[SyntaxExample]
    rules: list[str]


class TermVolume(Answer):
    """The number of all captures in one unit of time."""

    start: str = Field(description="A year, or a month.", examples=["2025", "2025-03"])
    captures: int


class TermCount(TermVolume):
    """Captures with a term in one unit of time."""

    captures: int = Field(description="Captures that have it.")
    new_documents: int = Field(description="Different bodies that have it and were first captured then.")
    share: float = Field(description="Captures that have it over all captures of that time, 0 to 1.")


class TermOverTime(Answer):
    """One term over time."""

    term: str = Field(description="As it was typed, without blanks around it.")
    captures: int
    new_documents: int
    is_exact: bool = Field(description="False if more documents have it than are read: the counts are too low then.")
    counts: list[TermCount]


class TermsOverTime(Answer):
    """Terms over time, every unit from the first capture to the last."""

    unit: str
    volume: list[TermVolume]
    terms: list[TermOverTime]


class LinkedHostShown(Answer):
    """A host without captures that captures link to."""

    host: str = Field(description="Without `www.`.", examples=["example.net"])
    links: int = Field(description="Links to it, each page and body once.")
    linking_sites: int = Field(description="Registrable domains that link to it.")


class LinkedHostList(Answer):
    """Hosts that could become sources, those with the most linking sites first."""

    items: list[LinkedHostShown]
    limit: int
    offset: int


class ExplainedResult(Answer):
    """One result and the parts of its score."""

    id: int
    original_url: str
    title: str | None
    status_code: int | None
    rank_text: float = Field(description="BM25 over the best BM25 found: 0 to 1.")
    title_boost: float
    archived_penalty: float
    query_penalty: float
    tracking_penalty: float
    depth_penalty: float
    authority_boost: float
    hubness_boost: float
    pagerank_boost: float
    recency_boost: float
    total_score: float
    group_score: float = Field(description="Of the group's best capture; for view=pages.")
    best_snapshot_id: int | None


class SearchDebug(Answer):
    """A page of results, explained."""

    dialect: str
    mode: str
    ranking_version: str
    query_mode: str = Field(description="broad, mixed or specific.")
    total: int
    total_is_exact: bool
    collapsed: int = Field(description="Near-duplicates that are left out, as in a search.")
    page: int
    page_size: int
    did_you_mean: str | None
    took_ms: float
    results: list[ExplainedResult]
