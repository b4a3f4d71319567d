"""What routes ask for that find captures: the search, and histories that are kept."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from fastapi import Depends

from holdfast.api.costly_answers import CostlyAnswers
from holdfast.api.dependencies import held
from holdfast.replay.history import CountedYears, PageHistory
from holdfast.search.search import SearchService

SearchDep = Annotated[SearchService, Depends(held("search"))]
"""One for the process, with the columns that it keeps in memory."""


class KeptHistories(NamedTuple):
    """Of addresses with many captures, which take long to read."""

    years: CostlyAnswers[CountedYears]
    """By address alone."""
    histories: CostlyAnswers[PageHistory]
    """By address and year."""


HistoriesDep = Annotated[KeptHistories, Depends(held("histories"))]
