"""The quick ways of routes for single rows (`api.quick`)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from holdfast.api.queries import SNAPSHOT_IN_FULL
from holdfast.api.quick import QuickAnswer, QuickHandler, json_answer
from holdfast.api.routes.replay import make_text, takes_gzip
from holdfast.api.schemas.base import MAX_ID
from holdfast.api.schemas.search import SnapshotDetail
from holdfast.clock import from_micros
from holdfast.config import Settings
from holdfast.db.prepared import RawConnections
from holdfast.errors import HoldfastError
from holdfast.replay.address import raw_path
from holdfast.replay.cdx.question import Output, read_question
from holdfast.replay.cdx.server import TYPES, looked_up
from holdfast.replay.origins import browse_url, origins_of


class _Located(NamedTuple):
    id: int
    url: str
    captured_at: datetime


class _FullRow(NamedTuple):
    """A row of `SNAPSHOT_IN_FULL`."""

    execution_id: int
    url: str
    captured: int
    backend: str
    fidelity: str
    media_type: Any
    status: Any
    noise: Any
    code: str
    name: str
    is_for_members: bool
    title: Any
    language: Any
    snippet: Any
    author: Any
    published: Any
    modified: Any
    keywords: Any
    words: Any
    page_type: Any
    evidence: Any


def quick_snapshot(settings: Settings) -> QuickHandler:
    """Return the quick way of `/api/snapshot/{id}`."""

    def answer(scope: Scope, connections: RawConnections) -> QuickAnswer | None:
        if scope["query_string"]:
            return None
        digits = scope["path"].removeprefix("/api/snapshot/")
        # Without a zero in front and nothing else: what else there is, the route says what is wrong with it.
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19 or (snapshot_id := int(digits)) > MAX_ID:
            return None
        with connections.read() as (tx, dialect):
            rows = SNAPSHOT_IN_FULL.rows(tx, dialect, snapshot_id=snapshot_id)
        if not rows:
            return None
        row = _FullRow._make(rows[0])
        # The route leads a member there, and does not count it among what everybody reads.
        if row.is_for_members:
            return None
        captured_at = from_micros(row.captured)
        detail = SnapshotDetail(
            id=snapshot_id,
            title=row.title,
            source_code=row.code,
            source_name=row.name,
            language=row.language,
            capture_date=captured_at.date(),
            capture_timestamp=captured_at,
            job_id=row.execution_id,
            original_url=row.url,
            snippet=row.snippet,
            raw_snapshot_url=raw_path(snapshot_id),
            browse_url=browse_url(settings, _Located(snapshot_id, row.url, captured_at)),
            capture_backend=row.backend,
            capture_fidelity=row.fidelity,
            mime_type=row.media_type,
            status_code=row.status,
            author=row.author,
            published_at=None if row.published is None else from_micros(row.published),
            modified_at=None if row.modified is None else from_micros(row.modified),
            keywords=(row.keywords or "").splitlines(),
            word_count=row.words,
            page_type=row.page_type,
            noise=row.noise,
            noise_evidence=None if row.noise is None else row.evidence,
        )
        return json_answer(detail.__pydantic_serializer__.to_json(detail, by_alias=True))

    return answer


def quick_cdx(settings: Settings) -> QuickHandler:
    """Return the quick way of `/cdx`: the captures of one address."""

    def answer(scope: Scope, connections: RawConnections) -> QuickAnswer | None:
        request = Request(scope)
        try:
            question = read_question(request.query_params.multi_items())
        except HoldfastError:
            return None
        # Its addresses depend on who looks, and on the capability in front of the path.
        if question.output is Output.LINK:
            return None
        origins = origins_of(
            request.url.scheme,
            request.headers.get("host", ""),
            replay_origin=settings.replay.origin,
            site_url=settings.api.site_url,
        )
        with connections.read() as (tx, dialect):
            text = looked_up(tx, dialect, question, origins)
        if text is None:
            return None
        plain = request.query_params.get("gzip", "").lower() in ("false", "0", "no")
        made = make_text(iter((text,)), TYPES[question.output], packed=takes_gzip(request) and not plain)
        return QuickAnswer(200, made.raw_headers, bytes(made.body)) if isinstance(made, Response) else None

    return answer
