"""Takedowns: what was taken out of sight, and what would be."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import Answer, RequestForm
from holdfast.withdrawals.hiding import MAX_REASON_CHARS, MIN_REASON_CHARS, TakedownRow

SUBJECT_CHARS: Final = 8192
"""What can be taken out of sight can be looked at before."""
_TAKEDOWN: dict[str, Any] = {
    "id": 4,
    "kind": "page",
    "state": "in_force",
    "subject": "https://example.org/old",
    "snapshotId": None,
    "urlKey": "org,example)/old",
    "reason": "asked for by its author",
    "hiddenBy": "admin@127.0.0.1",
    "hiddenAt": "2026-11-15T12:15:00Z",
    "shownBy": None,
    "shownAt": None,
}


class TakedownKind(StrEnum):
    """What is taken out of sight."""

    SNAPSHOT = "snapshot"
    PAGE = "page"


class TakedownState(StrEnum):
    """Whether it is out of sight now."""

    IN_FORCE = "in_force"
    LIFTED = "lifted"


class Takedown(Answer):
    """Something that was taken out of sight."""

    model_config = ConfigDict(json_schema_extra={"examples": [_TAKEDOWN]})

    id: int
    kind: TakedownKind
    state: TakedownState
    subject: str = Field(description="As it was written.")
    snapshot_id: int | None = Field(description="The one capture, if it is one.")
    url_key: str | None = Field(description="The page, under all spellings of its address, if it is one.")
    reason: str
    hidden_by: str
    hidden_at: datetime
    shown_by: str | None
    shown_at: datetime | None

    @classmethod
    def of(cls, row: TakedownRow) -> Takedown:
        """Return what is shown of a row."""
        return cls(
            id=row.id,
            kind=TakedownKind.SNAPSHOT if row.snapshot_id is not None else TakedownKind.PAGE,
            state=TakedownState.IN_FORCE if row.lifted_at is None else TakedownState.LIFTED,
            subject=row.subject,
            snapshot_id=row.snapshot_id,
            url_key=row.url_key,
            reason=row.reason,
            hidden_by=row.actor,
            hidden_at=row.created_at,
            shown_by=row.lifted_by,
            shown_at=row.lifted_at,
        )


class TakedownForm(RequestForm):
    """What is to be taken out of sight, and why."""

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


class TakedownReceipt(Takedown):
    """What was done."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**_TAKEDOWN, "captures": 12}]})

    captures: int = Field(description="Captures here now that it concerns.")


class TakedownCapture(Answer):
    """A capture that a takedown concerns."""

    id: int
    url: str
    captured_at: datetime
    source: str
    status_code: int | None


class TakedownPreview(Answer):
    """What no reader would see any more; nothing is changed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subject": "https://example.org/old",
                    "kind": "page",
                    "snapshotId": None,
                    "urlKey": "org,example)/old",
                    "captures": 12,
                    "firstCapture": "2024-02-03T10:00:00Z",
                    "lastCapture": "2026-11-01T09:00:00Z",
                    "sources": {"example": 12},
                    "sample": [],
                    "inForce": [],
                }
            ]
        }
    )

    subject: str
    kind: TakedownKind
    snapshot_id: int | None
    url_key: str | None
    captures: int
    first_capture: datetime | None
    last_capture: datetime | None
    sources: dict[str, int] = Field(description="Captures by the code of their source.")
    sample: list[TakedownCapture] = Field(description="The newest of them.")
    in_force: list[Takedown] = Field(description="What hides it already.")
