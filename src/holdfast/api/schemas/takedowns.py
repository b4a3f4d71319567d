"""Request bodies of takedowns."""

from __future__ import annotations

from typing import Final

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import RequestForm
from holdfast.withdrawals.hiding import MAX_REASON_CHARS, MIN_REASON_CHARS

SUBJECT_CHARS: Final = 8192
"""Maximum length of a subject, in a takedown and in its preview."""


class TakedownForm(RequestForm):
    """What to hide, and why."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"subject": "https://example.org/old", "reason": "asked for by its author, letter of 3 May"}]
        }
    )

    subject: str = Field(
        min_length=1,
        max_length=SUBJECT_CHARS,
        description="A snapshot's id, or a page by any spelling of its address.",
    )
    reason: str = Field(min_length=MIN_REASON_CHARS, max_length=MAX_REASON_CHARS, description="Kept in the audit log.")
