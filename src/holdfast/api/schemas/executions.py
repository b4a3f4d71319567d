"""Requests about runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from holdfast.api.schemas.base import RequestForm
from holdfast.jobs.administration.run_exclusions import MOST_RULES


class ExclusionsForm(RequestForm):
    """Patterns of URLs to exclude."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"rules": ["/calendar/"]}]})

    rules: list[Annotated[str, StringConstraints(min_length=1, max_length=2000)]] = Field(
        max_length=MOST_RULES, description="RE2 patterns; they replace those that were added before."
    )
