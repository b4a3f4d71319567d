"""Answers of search, of single captures and of pages."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from pydantic import Field

from holdfast.api.schemas.base import Answer


class TextPiece(Answer):
    """Part of a passage; joined, the pieces are the passage."""

    text: str = Field(description="Plain text, never markup.")
    hit: bool = Field(description="Whether this is a word that was asked for.")


class Highlights(Answer):
    """Where the words were found."""

    title: list[TextPiece]
    text: list[list[TextPiece]] = Field(
        description="As many passages as were asked for, the best one first, each of at most 240 characters. An "
        "ellipsis stands where something is left out, a raised dot between two lines. The start of the page where no "
        "word stands in its text."
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
    """How many results have one value."""

    value: str = Field(description="What the filter of the same name takes.")
    label: str
    count: int


class Facets(Answer):
    """How the results spread; the 20 most frequent values each, all years and sources.

    Page type, author and year of publication are counted where a page says them.
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
    """Results over time; units without any are left out."""

    unit: str = Field(description="day, month or year, by how long the results span.")
    buckets: list[Bucket]


class SearchResults(Answer):
    """A page of results, and what was counted of all of them."""

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
    """Something that can be asked without operators."""

    example: str
    meaning: str


class SearchSyntax(Answer):
    """The query language, as the command line and the documentation tell it."""

    operators: list[SyntaxOperator]
    words: list[SyntaxExample]
    rules: list[str]


class TermVolume(Answer):
    """All captures of one unit of time."""

    start: str = Field(description="A year, or a month.", examples=["2025", "2025-03"])
    captures: int


class TermCount(TermVolume):
    """What one unit of time has of a term."""

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
    """A host that captures link to and of which nothing is kept."""

    host: str = Field(description="Without `www.`.", examples=["example.net"])
    links: int = Field(description="Links to it, each page and body once.")
    linking_sites: int = Field(description="Registrable domains that link to it.")


class LinkedHostList(Answer):
    """Hosts that could be sources, those that most sites link to first."""

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


_ID = 4194305
_REPLAY = "http://replay.localhost:8060/web/20260901120000/https://example.org/#ha_snapshot=4194305"


class SnapshotDetail(Answer):
    """One capture of a page."""

    id: int = Field(examples=[_ID])
    title: str | None = Field(examples=["Tides"])
    source_code: str = Field(examples=["example-org"])
    source_name: str = Field(examples=["example.org"])
    language: str | None = Field(description="BCP-47, where it is known.", examples=["en"])
    capture_date: date
    capture_timestamp: datetime
    job_id: int = Field(description="The execution that captured it.", examples=[1])
    original_url: str = Field(examples=["https://example.org/"])
    snippet: str | None = Field(examples=["High water at the station."])
    raw_snapshot_url: str = Field(description="Path of the raw view.", examples=[f"/api/snapshots/raw/{_ID}"])
    browse_url: str | None = Field(description="Where the capture is replayed.", examples=[_REPLAY])
    capture_backend: str = Field(examples=["native"])
    capture_fidelity: str = Field(examples=["high"])
    mime_type: str | None = Field(examples=["text/html"])
    status_code: int | None = Field(examples=[200])
    author: str | None = Field(None, description="As the page states it.", examples=["Ann Example"])
    published_at: datetime | None = Field(None, description="As the page states it.")
    modified_at: datetime | None = Field(None, description="As the page states it.")
    keywords: list[str] = Field(default_factory=list, description="Of the page's own metadata.", examples=[["tides"]])
    word_count: int | None = Field(None, description="Of the main text; null if it was not read.", examples=[420])
    page_type: str | None = Field(
        None,
        description="article, listing, home, product, reference, form, media or other; null if it was not read.",
        examples=["article"],
    )
    noise: str | None = Field(
        None,
        description="What it shows instead of its page: soft_404, block_page, consent_wall, login_wall or parked.",
        examples=["soft_404"],
    )
    noise_evidence: str | None = Field(None, description="How that is known.")


class Provenance(Answer):
    """How a capture came about."""

    snapshot_id: int = Field(examples=[_ID])
    execution_id: int = Field(examples=[1])
    job_id: int = Field(examples=[1])
    job_name: str | None = Field(None, examples=["example-org-20260101"])
    edition_id: int | None = None
    shard_key: str | None = None
    shard_kind: str | None = None
    capture_backend: str = Field(examples=["native"])
    capture_fidelity: str = Field(description="high, fallback or unknown.", examples=["high"])
    worker_id: int | None = Field(None, description="The process that wrote the file; null for imports.")
    settings: dict[str, Any] = Field(description="What the run was told, without headers and cookies.")
    warc_info: dict[str, str] = Field(
        description="What the WARC file says of its writer; empty if it cannot be read now.",
        examples=[{"software": "Holdfast/1.0"}],
    )
    warc_file: str = Field(description="Its name.", examples=["example-org-1-00000.warc.gz"])
    warc_record_id: str | None = None
    warc_offset: int
    warc_length: int
    raw_snapshot_path: str = Field(description="Path of the raw view.", examples=[f"/api/snapshots/raw/{_ID}"])


class LatestCapture(Answer):
    """The newest capture of the same page."""

    found: bool = Field(examples=[True])
    snapshot_id: int | None = Field(None, examples=[_ID])
    capture_timestamp: datetime | None = None
    mime_type: str | None = Field(None, examples=["text/html"])


class Resolved(LatestCapture):
    """The capture that answers for an address and a moment."""

    resolved_url: str | None = Field(None, examples=["https://example.org/"])
    browse_url: str | None = Field(None, examples=[_REPLAY])


class PageSummary(Answer):
    """One page and what is kept of it."""

    id: int
    url: str
    url_hash: str
    domain: str
    source_code: str | None
    status_code: int | None
    content_type: str | None
    content_hash: str | None
    title: str | None
    description: str | None
    language: str | None
    word_count: int
    links_count: int
    crawled_at: datetime
    status: str = Field(description="never_crawled, fetched, failed or blocked (by robots.txt).", examples=["fetched"])
    content_length: int | None = Field(description="Bytes of the last good response as sent.", examples=[5120])
    crawl_duration_ms: int | None = Field(description="Of the last attempt.", examples=[120])
    error_message: str | None = Field(description="Why the last attempt failed.", examples=[None])


class Keyword(Answer):
    """A folded word and how often it occurs."""

    word: str
    count: int


class PageDetail(PageSummary):
    """One page with its keywords, the most frequent first, and the addresses that it leads to."""

    keywords: list[Keyword]
    links: list[str]


class PageList(Answer):
    """One window of what a question finds."""

    pages: list[PageSummary]
    total: int
    limit: int
    offset: int
