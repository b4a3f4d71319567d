"""The quick ways of routes for single rows (`api.quick`)."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

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
from holdfast.replay.cdx.question import read_question
from holdfast.replay.cdx.server import TYPES, looked_up
from holdfast.replay.origins import browse_url, origins_of
from holdfast.withdrawals.viewers import Visibility


class _Located(NamedTuple):
    id: int
    url: str
    captured_at: datetime


def quick_snapshot(settings: Settings) -> QuickHandler:
    """Return the quick way of `/api/snapshot/{id}`."""

    def answer(scope: Scope, connections: RawConnections) -> QuickAnswer | None:
        digits = scope["path"].removeprefix("/api/snapshot/")
        # Without a zero in front and nothing else: what else there is, the route says what is wrong with it.
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19 or (snapshot_id := int(digits)) > MAX_ID:
            return None
        with connections.read() as (tx, dialect):
            rows = SNAPSHOT_IN_FULL.rows(tx, dialect, snapshot_id=snapshot_id)
        if not rows:
            return None
        execution_id, url, captured, backend, fidelity, media_type, status, noise, code, name, visibility = rows[0][:11]
        title, language, snippet, author, published, modified, keywords, words, page_type, evidence = rows[0][11:]
        if visibility == Visibility.MEMBERS:
            return None
        captured_at = from_micros(captured)
        detail = SnapshotDetail(
            id=snapshot_id,
            title=title,
            source_code=code,
            source_name=name,
            language=language,
            capture_date=captured_at.date(),
            capture_timestamp=captured_at,
            job_id=execution_id,
            original_url=url,
            snippet=snippet,
            raw_snapshot_url=raw_path(snapshot_id),
            browse_url=browse_url(settings, _Located(snapshot_id, url, captured_at)),
            capture_backend=backend,
            capture_fidelity=fidelity,
            mime_type=media_type,
            status_code=status,
            author=author,
            published_at=None if published is None else from_micros(published),
            modified_at=None if modified is None else from_micros(modified),
            keywords=(keywords or "").splitlines(),
            word_count=words,
            page_type=page_type,
            noise=noise,
            noise_evidence=None if noise is None else evidence,
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
