"""Takedowns and their previews, as operators see them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from holdfast.records import Operator, record

TakedownKind = Literal["snapshot", "page"]
TakedownState = Literal["in_force", "lifted"]


@record
class Takedown:
    """A capture or a page that an operator has hidden from every reader."""

    id: Operator[int]
    kind: Operator[TakedownKind]
    state: Operator[TakedownState]
    subject: Operator[str]
    """As it was written."""
    snapshot_id: Operator[int | None]
    """The hidden capture; null for a page."""
    url_key: Operator[str | None]
    """The hidden page, under all spellings of its address; null for a capture."""
    reason: Operator[str]
    hidden_by: Operator[str]
    hidden_at: Operator[datetime]
    shown_by: Operator[str | None]
    shown_at: Operator[datetime | None]


@record
class TakedownReceipt(Takedown):
    """A takedown that was just made or lifted."""

    captures: Operator[int]
    """Number of stored captures that it affects."""


@record
class TakedownCapture:
    """A capture affected by a takedown."""

    id: Operator[int]
    url: Operator[str]
    captured_at: Operator[datetime]
    source: Operator[str]
    status_code: Operator[int | None]


@record
class TakedownPreview:
    """The effect of a takedown that has not been made; nothing is changed."""

    subject: Operator[str]
    kind: Operator[TakedownKind]
    snapshot_id: Operator[int | None]
    url_key: Operator[str | None]
    captures: Operator[int]
    first_capture: Operator[datetime | None]
    last_capture: Operator[datetime | None]
    sources: Operator[dict[str, int]]
    """Captures by the code of their source."""
    sample: Operator[list[TakedownCapture]]
    """The newest of them."""
    in_force: Operator[list[Takedown]]
    """Takedowns that hide it already."""


def kind_of(snapshot_id: int | None) -> TakedownKind:
    return "page" if snapshot_id is None else "snapshot"
