"""Answers about one page through time, and about what a single capture is made of."""

from __future__ import annotations

from datetime import date, datetime

from pydantic import Field

from holdfast.api.schemas.base import Answer
from holdfast.api.schemas.lists import Listed

_ID = 4194305
_CHANGE = "new_page, updated, gone, unchanged, error or noise; null before it was compared."


class HistoryCapture(Answer):
    """One capture in the history of its address."""

    snapshot_id: int = Field(examples=[_ID])
    capture_timestamp: datetime
    url: str = Field(description="As captured.", examples=["https://example.org/"])
    status_code: int | None = Field(examples=[200])
    mime_type: str | None = Field(examples=["text/html"])
    record_type: str = Field(description="response, resource or revisit.", examples=["response"])
    digest: str | None = Field(examples=["sha256:6b86b273ff34fce1"])
    change: str | None = Field(description=_CHANGE, examples=["updated"])
    is_change: bool = Field(description="Whether its content is another than that of the capture before.")
    noise: str | None = Field(description="What it shows instead of its page.", examples=[None])
    job_id: int = Field(description="The execution that captured it.", examples=[1])


class YearCount(Answer):
    """Captures of one year."""

    year: int = Field(examples=[2026])
    captures: int = Field(examples=[12])


class DayShown(Answer):
    """Captures of one day."""

    day: date
    captures: int = Field(examples=[2])
    changes: int = Field(examples=[1])
    statuses: dict[str, int] = Field(description="By class: 2xx, 3xx, 4xx, 5xx, other.", examples=[{"2xx": 2}])
    first_snapshot_id: int = Field(examples=[_ID])
    first_timestamp: datetime


class PageHistoryShown(Listed[HistoryCapture]):
    """A page through time: how many captures each year has, and one year in full."""

    url: str = Field(examples=["https://example.org/"])
    years: list[YearCount]
    year: int = Field(description="The year that days and items are of.", examples=[2026])
    days: list[DayShown]
    is_cut: bool = Field(description="Whether there are more captures than are counted.", examples=[False])


class NeighbourShown(Answer):
    """Another capture of the same address."""

    snapshot_id: int = Field(examples=[_ID])
    capture_timestamp: datetime
    url: str = Field(examples=["https://example.org/"])
    status_code: int | None = Field(examples=[200])


class CaptureView(Answer):
    """One capture with all that a reader sees around it."""

    snapshot_id: int = Field(examples=[_ID])
    url: str = Field(examples=["https://example.org/"])
    capture_timestamp: datetime
    title: str | None = Field(examples=["Tides"])
    language: str | None = Field(examples=["en"])
    status_code: int | None = Field(examples=[200])
    mime_type: str | None = Field(examples=["text/html"])
    redirect_to: str | None = Field(examples=[None])
    source_code: str = Field(examples=["example-org"])
    source_name: str = Field(examples=["example.org"])
    job_id: int = Field(description="The execution that captured it.", examples=[1])
    job_name: str = Field(examples=["example-org-1"])
    capture_backend: str = Field(examples=["native"])
    capture_fidelity: str = Field(examples=["high"])
    noise: str | None = Field(description="What it shows instead of its page.", examples=[None])
    truncated: str | None = Field(description="Why its body is not all there.", examples=[None])
    record_id: str | None = Field(examples=["urn:uuid:f2a6cf9e-8b7c-4a5e-9a55-3a5d1f2b7c11"])
    record_type: str = Field(examples=["response"])
    digest: str | None = Field(examples=["sha256:6b86b273ff34fce1"])
    warc_file: str = Field(description="The file's name.", examples=["example-org-1-00000.warc.gz"])
    warc_offset: int = Field(examples=[1234])
    warc_length: int = Field(examples=[5678])
    change: str | None = Field(description=_CHANGE, examples=["updated"])
    frame_url: str = Field(
        description="Where it is shown without a bar, for a frame; of a members' source, for a while.",
        examples=["http://replay.localhost:8060/web/20260901120000mp_/https://example.org/"],
    )
    frame_seconds: float | None = Field(
        description="For how long `frameUrl` of a members' capture can be used; null if it does not end.",
        examples=[None],
    )
    permalink: str = Field(
        description="Its address for citations.",
        examples=["http://replay.localhost:8060/web/20260901120000/https://example.org/"],
    )
    raw_url: str = Field(
        description="The bytes as they were captured.",
        examples=["http://replay.localhost:8060/web/20260901120000id_/https://example.org/"],
    )
    renderer_url: str | None = Field(
        description="Where ReplayWeb.page shows it, for a frame; null where that is not installed, or for members.",
        examples=["http://replay.localhost:8060/replay-web-page/open/4194305"],
    )
    can_compare_live: bool = Field(description="Whether the client may compare it with the live page.")
    first: NeighbourShown | None
    previous: NeighbourShown | None
    next: NeighbourShown | None
    last: NeighbourShown | None
    previous_change: NeighbourShown | None = Field(description="Among the nearest thousand captures.")
    next_change: NeighbourShown | None = Field(description="Among the nearest thousand captures.")


class HeaderShown(Answer):
    """One header."""

    name: str = Field(examples=["Content-Type"])
    value: str = Field(examples=["text/html; charset=utf-8"])


class CaptureRecord(Answer):
    """What a capture's record says of itself."""

    snapshot_id: int = Field(examples=[_ID])
    status_code: int | None = Field(examples=[200])
    reason: str = Field(examples=["OK"])
    headers: list[HeaderShown] = Field(description="Of the answer, in the order in which they came.")
    record_headers: list[HeaderShown] = Field(description="Of the WARC record.")


class CaptureContent(Answer):
    """The text of a capture."""

    snapshot_id: int = Field(examples=[_ID])
    form: str = Field(description="text: what the page says. source: its markup as it was sent.", examples=["text"])
    text: str | None = Field(description="Null for what is no text.", examples=["High water at the station."])
    charset: str | None = Field(examples=["utf-8"])
    is_cut: bool = Field(description="Whether there is more than is answered.", examples=[False])


class PartShown(Answer):
    """One thing that a page needs."""

    url: str = Field(examples=["https://example.org/mark.png"])
    kind: str = Field(description="img, css, script, font, media, frame, object.", examples=["img"])
    snapshot_id: int | None = Field(description="The capture that replay shows; null if it is missing.", examples=[_ID])
    capture_timestamp: datetime | None
    seconds_apart: int | None = Field(description="From the page to it; negative if it is older.", examples=[3])
    status_code: int | None = Field(examples=[200])
    mime_type: str | None = Field(examples=["image/png"])


class PartsShown(Answer):
    """What a page is made of beside itself, as its own markup names it."""

    snapshot_id: int = Field(examples=[_ID])
    is_readable: bool = Field(description="Whether the page could be read for this at all.", examples=[True])
    named: int = Field(description="Parts that the page names; the first 300 are looked for.", examples=[7])
    missing: int = Field(description="Of those looked for, without a capture.", examples=[0])
    earliest_seconds: int | None = Field(description="The oldest part against the page.", examples=[-5])
    latest_seconds: int | None = Field(description="The newest part against the page.", examples=[12])
    parts: list[PartShown]
