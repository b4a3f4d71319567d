"""Problem reports: what is taken in, and what is shown to whom."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from holdfast.api.schemas.base import Answer
from holdfast.api.schemas.forms import Form, check_fields
from holdfast.feedback.reports import Category, ReportStatus

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_EMAIL = r"^[^@\s<>\x00-\x1f]{1,64}@[^@\s<>\x00-\x1f]{1,190}$"


def _without_controls(text: object) -> object:
    return _CONTROLS.sub("", text) if isinstance(text, str) else text


Line = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2048), BeforeValidator(_without_controls)]
Email = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=254, pattern=_EMAIL), BeforeValidator(_without_controls)
]
Sentences = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=20, max_length=4000), BeforeValidator(_without_controls)
]


class ReportForm(Answer):
    """What a reader sends."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True,
        json_schema_extra={"examples": [{
            "category": "broken_snapshot", "description": "The images of this page are missing in the archive.",
            "snapshotId": 4194305,
        }]},
    )  # fmt: skip

    @model_validator(mode="before")
    @classmethod
    def _few(cls, content: Any) -> Any:
        return check_fields(content)

    category: Category
    description: Sentences
    snapshot_id: int | None = Field(None, ge=0, lt=1 << 63)
    original_url: Line | None = None
    reporter_email: Email | None = None
    page_url: Line | None = None
    website: str | None = Field(None, max_length=2048, description="Leave empty: only programs fill it.")


class ReportChanges(Form):
    """How far a report is by now, and what was found out; what is left out stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "resolved", "notes": "Captured again."}]})

    status: Annotated[ReportStatus | None, Field(strict=False, description="new, triaged or resolved.")] = None
    notes: Annotated[
        str | None, Field(max_length=4000, description="For who runs the archive; empty takes them away.")
    ] = None


class ReportReceipt(Answer):
    """What the sender is told."""

    report_id: int | None
    status: ReportStatus
    received_at: datetime


class ReportDetail(Answer):
    """A report, as whoever runs the archive reads it."""

    report_id: int
    category: str
    description: str
    snapshot_id: int | None
    original_url: str | None
    reporter_email: str | None
    page_url: str | None
    status: str
    notes: str | None
    created_at: datetime
    updated_at: datetime


class ReportList(Answer):
    """A page of reports, newest first."""

    items: list[ReportDetail]
    total: int
    limit: int
    offset: int
