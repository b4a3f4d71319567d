"""`/api/domains`: how each domain stands, what its robots.txt says, and what operators set for it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import Path, Query
from sqlalchemy.orm import Session

from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.errors import answers
from holdfast.api.job_dependencies import FrontierCountsDep, FrontierDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.routes.frontier import PORTION_S, WhichExecution, within
from holdfast.api.schemas.crawler import (
    ClearReceipt,
    DomainDetail,
    DomainReceipt,
    DomainRobots,
    DomainSettingsForm,
    DomainSettingsShown,
    DomainSummary,
    QueueInExecution,
    RobotsOfOrigin,
    RobotsRuling,
)
from holdfast.api.schemas.lists import ListCursor, Listed, decode_cursor, encode_cursor
from holdfast.crawl.robots_answers import AGENT, answer_for, text_of
from holdfast.errors import Invalid, NotFound
from holdfast.fetch.robots import RobotsFile
from holdfast.frontier.control import DomainUnknown, DomainWish
from holdfast.jobs.administration.frontier_actions import domain_of, purge, refresh_robots, reset_domain, set_domain
from holdfast.jobs.views.frontier_queries import meant_frontier
from holdfast.jobs.views.host_queries import (
    DomainRow,
    DomainState,
    domain_by_name,
    domains_by_id,
    listed_domains,
    page_count,
    queue_of_domain,
    robots_of_domain,
    slowed_domains,
)
from holdfast.types import RobotsAnswer, RobotsState
from holdfast.urls import parse_seed

router = LateRouter(tags=["crawler"])
DomainName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=255,
        description="A host, with its port if that is neither 80 nor 443.",
        examples=["example.org"],
    ),
]


class DomainOrder(StrEnum):
    """How domains are sorted."""

    DOMAIN = "domain"
    PAGE_COUNT = "page_count"
    """The largest five hundred."""
    CRAWL_DELAY = "crawl_delay"
    """Those that an operator slowed."""
    CREATED_AT = "created_at"


class Direction(StrEnum):
    """Which end of a list comes first."""

    ASC = "asc"
    DESC = "desc"


class DomainFilter(StrEnum):
    """States by which domains can be looked for."""

    FORBIDDEN = DomainState.FORBIDDEN.value
    PAUSED = DomainState.PAUSED.value
    UNREACHABLE = DomainState.UNREACHABLE.value
    ACTIVE = DomainState.ACTIVE.value


@router.get("/api/domains", responses=answers(403, 422, 503))
def list_domains(
    archive: ArchiveDep,
    session: SessionDep,
    counts: FrontierCountsDep,
    sort_by: Annotated[DomainOrder, Query(alias="sortBy", description="By what they are sorted.")] = DomainOrder.DOMAIN,
    order: Annotated[Direction, Query(description="Which end comes first.")] = Direction.ASC,
    state: Annotated[DomainFilter | None, Query(description="Only those; with `domain` and `created_at`.")] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="How many to list at most.")] = 50,
    cursor: ListCursor = None,
) -> Listed[DomainSummary]:
    """Return the domains that crawls have met, with their state, delay and circuit."""
    falls, pages = order is Direction.DESC, dict[int, int]()
    if sort_by in (DomainOrder.PAGE_COUNT, DomainOrder.CRAWL_DELAY):
        if state is not None:
            raise Invalid(
                "state: domains of one state are sorted by domain or created_at; leave one of both out", field="state"
            )
        place = decode_cursor(cursor, int)
        start = 0 if place is None else max(0, int(place[0]))
        if sort_by is DomainOrder.PAGE_COUNT:
            largest = counts.largest_domains(session)
            chosen = (largest if falls else largest[::-1])[start : start + limit]
            pages = dict(chosen)
            found = domains_by_id(session, list(pages))
            rows = [found[number] for number in pages if number in found]
            next_place = encode_cursor(start + limit) if start + limit < len(largest) else None
        else:
            rows = slowed_domains(session, falls=falls, limit=start + limit + 1)[start:]
            next_place = encode_cursor(start + limit) if len(rows) > limit else None
            rows = rows[:limit]
    else:
        by_age = sort_by is DomainOrder.CREATED_AT
        after = decode_cursor(cursor, int if by_age else str)
        rows = listed_domains(
            session,
            by_age=by_age,
            falls=falls,
            state=None if state is None else DomainState(state.value),
            after=None if after is None else after[0],
            limit=limit,
        )
        last = rows[-1] if len(rows) == limit else None
        next_place = None if last is None else encode_cursor(last.id if by_age else last.name)
    now = archive.now(session)
    items = [DomainSummary.of(row, pages=pages.get(row.id) or page_count(session, row.id), now=now) for row in rows]
    return Listed(items=items, next=next_place, limit=limit)


def _found(session: Session, written: str) -> DomainRow:
    name = domain_of(written)
    row = domain_by_name(session, name)
    if row is None:
        raise DomainUnknown(name)
    return row


@router.get("/api/domains/{domain}", responses=answers(403, 404, 422, 503))
def domain_detail(
    archive: ArchiveDep, session: SessionDep, domain: DomainName, execution: WhichExecution = None
) -> DomainDetail:
    """Return how a domain stands: state, delay, circuit, robots files, and what a crawl has queued of it."""
    row = _found(session, domain)
    try:
        queue = queue_of_domain(session, meant_frontier(session, execution).frontier_id, row.id)
    except NotFound:
        if execution is not None:
            raise
        queue = None
    return DomainDetail.in_full(
        row,
        pages=page_count(session, row.id),
        now=archive.now(session),
        robots=[_robots(state) for state in robots_of_domain(session, row.id)],
        queue=None if queue is None else QueueInExecution.of(queue),
    )


def _robots(state: RobotsState) -> RobotsOfOrigin:
    return RobotsOfOrigin(
        origin=state.origin,
        answer=state.answer,
        status=state.status,
        failures=state.failures,
        fetched_at=state.fetched_at,
        checked_at=state.checked_at,
    )


@router.get("/api/domains/{domain}/robots", responses=answers(403, 404, 422, 503))
def domain_robots(
    archive: ArchiveDep,
    session: SessionDep,
    domain: DomainName,
    url: Annotated[
        str | None, Query(max_length=8192, description="An address there: which rule decides, and on which line.")
    ] = None,
) -> DomainRobots:
    """Return the robots files of a domain as crawls have read them, and what they say of an address."""
    row = _found(session, domain)
    states, asked = robots_of_domain(session, row.id), None if url is None else parse_seed(url)
    if asked is not None and asked.domain != row.name:
        raise Invalid(
            f"url: it is on {asked.domain}, not on {row.name}; ask at /api/domains/{asked.domain}/robots", field="url"
        )
    shown = next((one for one in states if asked is None or one.origin == asked.origin), None)
    has_rules = shown is not None and shown.answer is RobotsAnswer.RULES
    rules = RobotsFile.parse(shown.body, AGENT) if shown is not None and has_rules else None
    ruling = None if asked is None else answer_for(asked, states, archive.now(session))
    return DomainRobots(
        domain=row.name,
        robots_txt=text_of(shown.body) if shown is not None and has_rules else None,
        fetched_at=None if shown is None else shown.fetched_at,
        origins=[_robots(state) for state in states],
        crawl_delay=None if rules is None else rules.crawl_delay,
        sitemaps=[] if rules is None else list(rules.sitemaps),
        ruling=None
        if asked is None or ruling is None
        else RobotsRuling(
            url=asked.fetch,
            allowed=ruling.allowed,
            rule=ruling.rule,
            line=ruling.line,
            reason=ruling.reason,
        ),
    )


@router.put("/api/domains/{domain}/settings", responses=answers(403, 422, 503))
def change_domain(frontier: FrontierDep, domain: DomainName, form: DomainSettingsForm) -> DomainSettingsShown:
    """Slow a domain, pause it or forbid it; a crawl that runs obeys within a second or two."""
    says_delay = "crawl_delay" in form.model_fields_set
    wish = DomainWish(
        delay_s=form.crawl_delay,
        default_delay=says_delay and form.crawl_delay is None,
        allowed=form.is_allowed,
        paused=form.paused,
    )
    name = domain_of(domain)
    with frontier.open() as runtime:
        done = set_domain(runtime.frontier, runtime.clock, name, wish)
    return DomainSettingsShown(
        domain=name,
        crawl_delay=done.delay_s,
        is_allowed=done.is_allowed,
        paused=done.paused_at is not None,
        paused_at=done.paused_at,
    )


@router.post("/api/domains/{domain}/refresh-robots", responses=answers(403, 404, 422, 503))
def refresh_domain_robots(frontier: FrontierDep, domain: DomainName) -> DomainReceipt:
    """Let the robots files of a domain be read anew before its next page, in a crawl that runs, too."""
    name = domain_of(domain)
    with frontier.open() as runtime:
        refresh_robots(runtime.frontier, runtime.clock, name)
    return DomainReceipt(domain=name, changed=True)


@router.post("/api/admin/domains/{domain}/reset", responses=answers(403, 404, 409, 422, 503))
def reset_domain_circuit(frontier: FrontierDep, domain: DomainName) -> DomainReceipt:
    """Forget that a domain could not be reached: it is asked at once; 409 while a crawl asks it, for then it can be."""
    name = domain_of(domain)
    with frontier.open() as runtime:
        changed = reset_domain(runtime.raw_db, runtime.frontier, runtime.clock, name)
    return DomainReceipt(domain=name, changed=changed)


@router.post("/api/domains/{domain}/purge", responses=answers(403, 404, 422, 503))
def purge_domain(
    archive: ArchiveDep,
    frontier: FrontierDep,
    domain: DomainName,
    execution: WhichExecution = None,
) -> ClearReceipt:
    """Take what is queued of a domain from one execution, or from all; what was captured stays."""
    name = domain_of(domain)
    frontier_id = None
    if execution is not None:
        with archive.database.read() as session:
            frontier_id = meant_frontier(session, execution).frontier_id
    with frontier.open() as runtime:
        return ClearReceipt.of(
            purge(
                runtime.frontier,
                runtime.clock,
                name,
                execution_id=frontier_id,
                goes_on=within(archive.clock, PORTION_S),
            )
        )
