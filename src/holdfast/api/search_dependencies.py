"""What routes ask for that find captures: the search, and histories that are kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from holdfast.api.costly_answers import CostlyAnswers
from holdfast.api.dependencies import held
from holdfast.replay.history import CountedYears, PageHistory
from holdfast.search.search import SearchService

SearchDep = Annotated[SearchService, Depends(held("search"))]
"""One for the process, with the columns that it keeps in memory."""


CountedYearsDep = Annotated[CostlyAnswers[CountedYears], Depends(held("counted_years"))]
"""What is kept of addresses with many captures, which take long to count, by address alone."""
HistoriesDep = Annotated[CostlyAnswers[PageHistory], Depends(held("histories"))]
"""The same by address and year."""
