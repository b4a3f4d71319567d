"""`/api/pages`: pages that were fetched, of every storage; those that keep signals are also found by keyword."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from sqlalchemy.orm import Session

from holdfast.api.crawled_pages.queries import fetched_by_hash, fetched_pages
from holdfast.api.deps import SessionDep
from holdfast.api.errors import answers
from holdfast.api.roles import ADMIN
from holdfast.api.schemas.pages import Keyword, PageDetail, PageList, PageSummary
from holdfast.crawl.signals.finding import PageInFull, find_pages, page_by_hash
from holdfast.crawl.signals.queries import PageRow, Question
from holdfast.errors import NotFound
from holdfast.urls import parse, url_hash

router = APIRouter(tags=["pages"], dependencies=[ADMIN])
Limit = Annotated[int, Query(ge=1, le=100, description="Pages to return.")]
Offset = Annotated[int, Query(ge=0, le=100_000, description="Pages to pass over.")]
Search = Annotated[
    str,
    Query(
        max_length=500,
        examples=["vaccine"],
        description="Words that a page must have all of, among pages of `signals` storage; others: /api/search.",
    ),
]
DOMAIN = "A host, with its port if that is neither 80 nor 443."


@router.get("/api/pages", responses=answers(403, 422, 503))
def list_pages(
    session: SessionDep,
    limit: Limit = 20,
    offset: Offset = 0,
    domain: Annotated[str | None, Query(max_length=255, description=DOMAIN)] = None,
    search: Search = "",
) -> PageList:
    """Return pages that were fetched, those that were known last first; with `search`, those that have the words."""
    return _listed(session, search, Question(domain=domain or None, limit=limit, offset=offset))


@router.get("/api/pages/domain/{domain}", responses=answers(403, 422, 503))
def list_pages_of_domain(
    session: SessionDep,
    domain: Annotated[str, Path(max_length=255, description=DOMAIN, examples=["example.org"])],
    limit: Limit = 20,
    offset: Offset = 0,
    search: Search = "",
) -> PageList:
    """Return the pages of one domain."""
    return _listed(session, search, Question(domain=domain, limit=limit, offset=offset))


@router.get("/api/pages/{urlHash}", responses=answers(403, 404, 422, 503))
def page_detail(
    session: SessionDep,
    url_hash_text: Annotated[
        str,
        Path(alias="urlHash", pattern="^[0-9a-f]{16}(?:[0-9a-f]{48})?$", examples=["0123456789abcdef"],
             description="The SHA-256 of the normalised address in hex, or its first 16 digits."),
    ],
) -> PageDetail:  # fmt: skip
    """Return one page, with its keywords and links if its storage is `signals`."""
    found = _page(session, url_hash_text)
    return PageDetail(
        **_shown(found.page).model_dump(), keywords=[Keyword(word=word, count=count) for word, count in found.words],
        links=list(found.links),
    )  # fmt: skip


def _page(session: Session, digest: str) -> PageInFull:
    try:
        return page_by_hash(session, digest)
    except NotFound:
        number = int.from_bytes(bytes.fromhex(digest[:16]), "big", signed=True)
        for row in fetched_by_hash(session, number):
            if len(digest) == 16 or url_hash(parse(row.url).normalised) == digest:
                return PageInFull(page=row, words=(), links=())
        raise


def _listed(session: SessionDep, search: str, question: Question) -> PageList:
    if "\x00" in (question.domain or ""):  # no domain has one, and PostgreSQL takes none
        return PageList(pages=[], total=0, limit=question.limit, offset=question.offset)
    if not search.strip():
        window = fetched_pages(session, domain=question.domain, limit=question.limit, offset=question.offset)
        return PageList(
            pages=[_shown(row) for row in window.pages],
            total=window.total,
            limit=question.limit,
            offset=question.offset,
        )
    found = find_pages(session, search, question)
    return PageList(
        pages=[_shown(row) for row in found.pages], total=found.total, limit=question.limit, offset=question.offset
    )


def _shown(row: PageRow) -> PageSummary:
    return PageSummary(
        id=row.page_id, url=row.url, url_hash=url_hash(parse(row.url).normalised), domain=row.domain,
        source_code=row.source, status_code=row.status_code, content_type=row.media_type,
        content_hash=row.content_hash, title=row.title, description=row.description, language=row.language,
        word_count=row.word_count, links_count=row.links_count, crawled_at=row.fetched_at,
    )  # fmt: skip
