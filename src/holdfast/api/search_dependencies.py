"""Dependencies of routes that find captures: the search service, and cached histories."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from holdfast.api.adaptive_cache import AdaptiveCache
from holdfast.api.dependencies import held
from holdfast.replay.history import PageHistory
from holdfast.search.search import SearchService

SearchDep = Annotated[SearchService, Depends(held("search"))]
"""One per process, with its in-memory columns."""


CountedYearsDep = Annotated[AdaptiveCache[tuple[dict[int, int], bool]], Depends(held("counted_years"))]
"""Cached counts of URLs with many captures, which are slow to count, by URL."""
HistoriesDep = Annotated[AdaptiveCache[PageHistory], Depends(held("histories"))]
"""Cached histories, by URL and year."""
