"""Answers of search, of single captures and of pages."""

from __future__ import annotations

from datetime import date, datetime

from pydantic import Field

from holdfast.api.schemas.base import Answer


class TextPiece(Answer):
    """Part of a passage; joined, the pieces are the passage."""

    text: str = Field(description="Plain text, never markup.")
    hit: bool = Field(description="Whether this is a word that was asked for.")


class Highlights(Answer):
    """Where the words were found."""

    title: list[TextPiece]
    text: list[list[TextPiece]] = Field(description="At most two passages of the page's text.")


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
    noise: str | None = Field(description="What it shows instead of its page; null but with noise=show.")


class FacetCount(Answer):
    """How many results have one value."""

    value: str = Field(description="What the filter of the same name takes.")
    label: str
    count: int


class Facets(Answer):
    """How the results spread; the 20 most frequent values each, all years and sources."""

    source: list[FacetCount]
    language: list[FacetCount]
    year: list[FacetCount]
    type: list[FacetCount]
    status: list[FacetCount]
    host: list[FacetCount]


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
    total: int = Field(description="Results that can be paged through.")
    total_is_exact: bool = Field(description="False if more than 10,000 documents match: the total may then be less.")
    page: int
    page_size: int
    mode: str = Field(
        description="How they were found: newest, relevance_fts, relevance_fallback, relevance_fuzzy, "
        "boolean, url, pages_fastpath."
    )
    did_you_mean: str | None = Field(
        description="The query that was answered instead, because the one asked found nothing."
    )
    facets: Facets
    histogram: Histogram
    took_ms: float


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
    noise: str | None = Field(
        None,
        description="What it shows instead of its page: soft_404, block_page, consent_wall, login_wall or parked.",
        examples=["soft_404"],
    )
    noise_evidence: str | None = Field(None, description="How that is known.")


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
