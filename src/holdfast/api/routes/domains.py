"""`/api/domains`: the state of each domain, its robots.txt, and its settings."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from holdfast.api.dependencies import ArchiveDep, FrontierCountsDep, FrontierDep, SessionDep
from holdfast.api.routes.frontier import PORTION_S, WhichExecution, within
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RequestForm
from holdfast.api.schemas.lists import ListCursor, Piece, decode_cursor, decode_id, encode_cursor
from holdfast.auth.roles import Permission
from holdfast.frontier.actions import ClearReceipt, domain_of, purge, reset_domain
from holdfast.frontier.control import DomainSettings, DomainUpdate
from holdfast.frontier.domains import (
    DomainDetail,
    DomainOrder,
    DomainRecord,
    DomainState,
    find_domain,
    page_of_domains,
    robots_of_domain,
)
from holdfast.frontier.domains import domain_detail as detail_of
from holdfast.frontier.explain_robots import DomainRobots
from holdfast.frontier.explain_robots import domain_robots as robots_of
from holdfast.frontier.figures import select_frontier
from holdfast.records import Operator, record
from holdfast.urls import parse_seed

router = LazyRouter(tags=["crawler"])
DomainName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=255,
        description="A host, with its port if that is neither 80 nor 443.",
        examples=["example.org"],
    ),
]


@record
class DomainReceipt:
    """Result of a change to a domain."""

    domain: Operator[str]
    changed: Operator[bool]


class Direction(StrEnum):
    """Order of a list."""

    ASC = "asc"
    DESC = "desc"


class DomainFilter(StrEnum):
    """States by which domains can be filtered."""

    FORBIDDEN = DomainState.FORBIDDEN.value
    PAUSED = DomainState.PAUSED.value
    UNREACHABLE = DomainState.UNREACHABLE.value
    ACTIVE = DomainState.ACTIVE.value


@router.get("/api/domains", Permission.WATCH)
def list_domains(
    archive: ArchiveDep,
    session: SessionDep,
    counts: FrontierCountsDep,
    sort_by: Annotated[DomainOrder, Query(alias="sortBy", description="Sort key.")] = DomainOrder.DOMAIN,
    order: Annotated[Direction, Query(description="Order.")] = Direction.ASC,
    state: Annotated[DomainFilter | None, Query(description="Only these; with `domain` and `created_at`.")] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="How many to list at most.")] = 50,
    cursor: ListCursor = None,
) -> Piece[DomainRecord]:
    """Return the known domains with their state, delay and circuit."""
    if sort_by in (DomainOrder.DOMAIN, DomainOrder.CREATED_AT):
        place = decode_cursor(cursor, int if sort_by is DomainOrder.CREATED_AT else str)
        after = None if place is None else place[0]
    else:
        after = decode_id(cursor)
    items, following = page_of_domains(
        session,
        order=sort_by,
        falls=order is Direction.DESC,
        state=None if state is None else DomainState(state.value),
        after=after,
        limit=limit,
        largest=counts.largest_domains,
        now=archive.now(session),
    )
    return Piece(items=items, next=None if following is None else encode_cursor(following), limit=limit)


@router.get("/api/domains/{domain}", Permission.WATCH, errors=(404,))
def domain_detail(
    archive: ArchiveDep, session: SessionDep, domain: DomainName, execution: WhichExecution = None
) -> DomainDetail:
    """Return state, delay, circuit and robots files of a domain, and its queue in a crawl."""
    return detail_of(session, domain_of(domain), execution=execution, now=archive.now(session))


@router.get("/api/domains/{domain}/robots", Permission.WATCH, errors=(404,))
def domain_robots(
    archive: ArchiveDep,
    session: SessionDep,
    domain: DomainName,
    url: Annotated[
        str | None,
        Query(max_length=8192, description="A URL of the domain: the response names the rule and line that decide."),
    ] = None,
) -> DomainRobots:
    """Return the last known robots files of a domain, and their decision about a URL."""
    row, asked = find_domain(session, domain_of(domain)), None if url is None else parse_seed(url)
    return robots_of(row.name, robots_of_domain(session, row.id), asked, archive.now(session))


class DomainSettingsForm(RequestForm):
    """Settings to change; missing ones keep their value."""

    crawl_delay: Annotated[float, Field(ge=0, le=86_400)] | None = Field(
        default=None,
        alias="crawlDelay",
        description="Seconds between two requests, at least 1; null: the source's delay. It only slows.",
    )
    paused: bool | None = Field(default=None, description="A paused domain is not requested; its queue is kept.")
    is_allowed: bool | None = Field(
        default=None, alias="isAllowed", description="A forbidden domain is never requested; its queue is excluded."
    )


@router.put("/api/domains/{domain}/settings", Permission.OPERATE)
def change_domain(frontier: FrontierDep, domain: DomainName, form: DomainSettingsForm) -> DomainSettings:
    """Slow a domain down, pause it or forbid it; a running crawl applies this within two seconds."""
    says_delay = "crawl_delay" in form.model_fields_set
    update = DomainUpdate(
        delay_s=form.crawl_delay,
        default_delay=says_delay and form.crawl_delay is None,
        allowed=form.is_allowed,
        paused=form.paused,
    )
    name = domain_of(domain)
    with frontier.open() as runtime:
        return runtime.frontier.control.set_domain(name, update)


@router.post("/api/domains/{domain}/refresh-robots", Permission.OPERATE, errors=(404,))
def refresh_domain_robots(frontier: FrontierDep, domain: DomainName) -> DomainReceipt:
    """Fetch the robots files of a domain again before its next page, also in a running crawl."""
    name = domain_of(domain)
    with frontier.open() as runtime:
        runtime.frontier.control.refresh_robots(name)
    return DomainReceipt(domain=name, changed=True)


@router.post("/api/admin/domains/{domain}/reset", Permission.OPERATE, errors=(404, 409))
def reset_domain_circuit(frontier: FrontierDep, domain: DomainName) -> DomainReceipt:
    """Clear the record that a domain was unreachable, so that it is crawled immediately; 409 while a crawl holds
    it.
    """
    name = domain_of(domain)
    with frontier.open() as runtime:
        changed = reset_domain(runtime.frontier, name)
    return DomainReceipt(domain=name, changed=changed)


@router.post("/api/domains/{domain}/purge", Permission.OPERATE, errors=(404,))
def purge_domain(
    archive: ArchiveDep, frontier: FrontierDep, domain: DomainName, execution: WhichExecution = None
) -> ClearReceipt:
    """Remove the queued URLs of a domain from one execution, or from all; captures stay."""
    name = domain_of(domain)
    frontier_id = None
    if execution is not None:
        with archive.database.read() as session:
            frontier_id = select_frontier(session, execution).frontier_id
    with frontier.open() as runtime:
        return purge(
            runtime.frontier,
            name,
            execution_id=frontier_id,
            goes_on=within(archive.clock, PORTION_S),
        )
