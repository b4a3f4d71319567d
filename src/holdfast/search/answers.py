"""Search results as JSON: a page of results, one result, and the parts of its score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.search import ranking
from holdfast.search.highlight import Piece
from holdfast.search.near_duplicates import similar_url
from holdfast.search.queries import HitRow
from holdfast.search.search import Hit, ResultKind, SearchAnswer, SearchRequest

Browse = Callable[[HitRow], str | None]
"""Returns the URL that replays a capture; the caller knows it."""


def answer_object(answer: SearchAnswer, request: SearchRequest, browse: Browse) -> dict[str, Any]:
    similar = similar_url(request, SearchRequest()) if any(hit.similar for hit in answer.hits) else ""
    return {
        "results": [_hit_object(hit, request, browse, similar) for hit in answer.hits],
        "total": answer.total,
        "totalIsExact": answer.exact,
        "collapsed": answer.collapsed,
        "page": request.page,
        "pageSize": request.page_size,
        "mode": answer.mode.value,
        "didYouMean": answer.did_you_mean,
        "facets": {
            name: [
                {"value": count.value, "label": count.label or count.value, "count": count.count} for count in counts
            ]
            for name, counts in answer.facets.items()
        },
        "histogram": {
            "unit": answer.histogram_unit,
            "buckets": [{"start": start, "count": count} for start, count in answer.histogram],
        },
        "tookMs": round(answer.took_ms, 1),
    }


def _hit_object(hit: Hit, request: SearchRequest, browse: Browse, similar: str) -> dict[str, Any]:
    row = hit.row
    as_page = request.view is ResultKind.PAGES
    # A moment is in UTC: the day that it is written with is its day.
    moment = row.captured_at.isoformat()
    return {
        "id": row.id,
        "title": row.title,
        "sourceCode": hit.source_code,
        "sourceName": hit.source_name,
        "language": row.language,
        "captureDate": moment[:10],
        "captureTimestamp": moment.replace("+00:00", "Z"),
        "jobId": row.execution_id,
        "originalUrl": (row.group_url or row.url) if as_page else row.url,
        "snippet": row.snippet,
        "highlights": {"title": _pieces(hit.title), "text": [_pieces(passage) for passage in hit.passages]},
        "mimeType": row.media_type,
        "statusCode": row.status,
        "rawSnapshotUrl": f"/api/snapshots/raw/{row.id}",
        "browseUrl": browse(row),
        "captureBackend": row.backend,
        "captureFidelity": row.fidelity,
        "pageSnapshotsCount": hit.captures,
        "noise": row.noise,
        "similarCount": hit.similar,
        "similarUrl": f"{similar}{row.id}" if hit.similar else None,
    }


def debug_object(answer: SearchAnswer, request: SearchRequest, browse: Browse, *, dialect: str) -> dict[str, Any]:
    results = []
    for hit in answer.hits:
        score = sum(hit.parts.values())
        results.append(
            {
                "id": hit.row.id,
                "originalUrl": hit.row.url,
                "title": hit.row.title,
                "statusCode": hit.row.status,
                **dict.fromkeys(PARTS, 0.0),
                **{name: round(part, 5) for name, part in hit.parts.items()},
                "totalScore": round(score, 5),
                "groupScore": round(score, 5),
                "bestSnapshotId": hit.best_id,
            }
        )
    whole = answer_object(answer, request, browse)
    return {
        "dialect": dialect,
        "mode": answer.mode.value,
        "rankingVersion": ranking.VERSION,
        "queryMode": answer.breadth,
        **{
            name: whole[name]
            for name in ("total", "totalIsExact", "collapsed", "page", "pageSize", "didYouMean", "tookMs")
        },
        "results": results,
    }


PARTS = (
    "rankText",
    "titleBoost",
    "archivedPenalty",
    "queryPenalty",
    "trackingPenalty",
    "depthPenalty",
    "authorityBoost",
    "hubnessBoost",
    "pagerankBoost",
    "recencyBoost",
)
"""All parts that an explained score has ever had; parts that the ranking does not use are 0."""


def _pieces(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    return [{"text": piece.text, "hit": piece.hit} for piece in pieces]
