"""Answers about captures that show something else than their page, and the forms of rulings."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from holdfast.api.schemas.base import Answer, RequestForm
from holdfast.noise.queries import ListedNoise

_KINDS = Literal["soft_404", "block_page", "consent_wall", "login_wall", "parked"]


class NoiseCapture(Answer):
    """A capture that shows something else than its page."""

    snapshot_id: int
    noise: str = Field(description="soft_404, block_page, consent_wall, login_wall or parked.")
    evidence: str | None = Field(description="How that is known.")
    original_url: str
    source_code: str
    job_id: int = Field(description="The execution that captured it.")
    capture_timestamp: datetime
    status_code: int | None
    title: str | None
    decided_by: str | None = Field(description="The person who ruled so; null if it was found.")
    decided_at: datetime | None

    @classmethod
    def of(cls, row: ListedNoise) -> NoiseCapture:
        """Return a capture as it is answered."""
        return cls(
            snapshot_id=row.id,
            noise=row.kind,
            evidence=row.evidence,
            original_url=row.url,
            source_code=row.source_code,
            job_id=row.execution_id,
            capture_timestamp=row.captured_at,
            status_code=row.status,
            title=row.title,
            decided_by=row.decided_by,
            decided_at=row.decided_at,
        )


class NoiseList(Answer):
    """Some of them, the newest ids first."""

    items: list[NoiseCapture]
    next_before: int | None


class RulingForm(RequestForm):
    """What is ruled on, and why."""

    subject: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(
        description="A snapshot's id, or an address: all its captures, those to come too.", examples=["4194305"]
    )
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000)] = Field(
        description="Why; kept in the audit log.", examples=["it is the glossary's entry"]
    )


class MarkForm(RulingForm):
    """What it shows instead of its page."""

    kind: _KINDS = Field(description="What it is.", examples=["soft_404"])


class RulingReceipt(Answer):
    """What was ruled."""

    subject: str
    noise: str | None = Field(description="null: it shows the page.")
    snapshots: int = Field(description="Captures that it holds for now.")
