"""Kinds of jobs, and how to tell those of a source from those of the whole archive."""

from __future__ import annotations

from typing import Final

CRAWL, FEED, IMPORT = "crawl", "feed", "import"
UNCAPPED = ("annual", "shard")
"""Kinds of jobs that are bounded only by scope, not by page count or depth."""

OF_SOURCE: Final = "source_id IS NOT NULL"
"""Selects the jobs of sources in plain SQL, as `jobs.store.of_source` does."""
