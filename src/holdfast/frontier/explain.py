"""Assembles an explanation: spelling, scope, robots, domain, attempts, captures, visibility, outlook.

URL            normalised step by step; captures are looked up even if no crawl would request it
rules          of every source, by the configuration of its next run
robots         from the stored record, unless the caller passes a fresh one
rows           of the page under every identity that a source with it in scope gives it
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from holdfast.config import Settings
from holdfast.db.models import Domain, Page, Source
from holdfast.errors import UrlRefused
from holdfast.frontier.domains import robots_of_origin
from holdfast.frontier.explain_domain import explain_domain
from holdfast.frontier.explain_for_readers import for_readers
from holdfast.frontier.explain_history import ReplayPath, explain_attempts, explain_snapshots, explain_visibility
from holdfast.frontier.explain_next import explain_outlook
from holdfast.frontier.explain_records import ExplainedAddress, ExplainedStep, Explanation
from holdfast.frontier.explain_robots import explain_robots
from holdfast.frontier.explain_sources import FindNextRuns, Judgements, judge_sources
from holdfast.outside_text import clean
from holdfast.types import RobotsRecord
from holdfast.urls import MAX_URL_CHARS, Url, hash64, normalised_or_plain, page_key, priority, url_hash, url_key
from holdfast.urls.address import host_problem, without_userinfo
from holdfast.urls.steps import Spelling, spell
from holdfast.values import dataclass
from holdfast.withdrawals.visibility import may_see, visible, visible_source, withdrawn_among

DEFAULT_LIMIT = 20
MAX_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest:
    url: str
    """Valid or not."""
    limit: int = DEFAULT_LIMIT
    """Attempts and captures to return, each."""
    before: int | None = None
    """Only attempts with smaller ids."""
    is_reader: bool = False
    """Whether only data visible to the viewer counts, and nothing internal is included."""
    live_robots: RobotsRecord | None = None
    """A robots.txt that the caller has just fetched."""


def explain(
    session: Session,
    settings: Settings,
    request: ExplainRequest,
    *,
    now: datetime,
    find_next_runs: FindNextRuns,
    replay_path: ReplayPath,
) -> Explanation:
    """Return everything known about a URL."""
    given, limit, is_reader, live_robots = request.url, request.limit, request.is_reader, request.live_robots
    text = clean(given, MAX_URL_CHARS + 1) or ""
    bare = without_userinfo(text)
    judged = judge_sources(session, bare, settings, find_next_runs, now=now)
    if is_reader:
        judged = judged._replace(all=[one for one in judged.all if may_see(one.source)])
    spelling, refused = _spelled(text, given, judged)
    url = spelling.url if spelling is not None else None
    normalised = url.normalised if url is not None else normalised_or_plain(bare)[:MAX_URL_CHARS]
    inside = [one.explained for one in judged.in_scope]
    state = live_robots or (robots_of_origin(session, url.origin) if url is not None else None)
    robots = explain_robots(url, state, inside, now=now, live=live_robots is not None)
    domain = explain_domain(session, url.domain, inside, robots, settings, now=now) if url is not None else None
    # To a reader a page that is taken down is one that was never requested.
    is_hidden = is_reader and bool(withdrawn_among(session, keys={page_key(normalised)}))
    pages = [] if is_hidden else _page_ids(session, _identities(url, judged))
    number = hash64(normalised)
    snapshots = explain_snapshots(
        session,
        url_hash=number,
        key=url_key(bare if url is None else url.fetch),
        limit=limit,
        replay_path=replay_path,
        seen=visible() if is_reader else (),
    )
    attempts = explain_attempts(
        session,
        pages,
        before=request.before,
        limit=limit,
        seen=(visible_source(Source.id),) if is_reader else (),
    )
    found = Explanation(
        address=_address(bare, refused, spelling, normalised),
        sources=judged.explained(),
        robots=robots,
        domain=domain,
        attempts=attempts,
        snapshots=snapshots,
        visibility=explain_visibility(
            session,
            snapshots,
            [one.source for one in judged.in_scope],
            url_hash=number,
            key=page_key(normalised),
        ),
        outlook=explain_outlook(session, pages, judged, robots, domain, now=now),
        at=now,
    )
    return for_readers(session, found) if is_reader else found


def _spelled(text: str, given: str, judged: Judgements) -> tuple[Spelling | None, str | None]:
    """Return how a URL is normalised (None if invalid), and why no crawl would request it as given."""
    try:
        spelling = spell(text)
    except UrlRefused as exc:
        # A source may allow what is refused in general: a port where websites rarely live.
        allowing = next((one.policy for one in judged.in_scope if one.policy is not None), None)
        return (None, exc.reason) if allowing is None else (spell(text, allowing), None)
    if text != given:
        # A question mark stands for half a character, and for a NUL: what is explained is not what was given.
        return spelling, "it contains a NUL or half a character, which no URL can contain"
    return spelling, host_problem(text)


def _identities(url: Url | None, judged: Judgements) -> set[tuple[str, int]]:
    """Return the identities of the page: sources with other normalisation rules know it by another hash."""
    spelled = [one.url for one in judged.in_scope if one.url is not None]
    return {(one.domain, one.hash64) for one in (*([url] if url is not None else []), *spelled)}


def _address(bare: str, refused: str | None, spelling: Spelling | None, normalised: str) -> ExplainedAddress:
    url = spelling.url if spelling is not None else None
    return ExplainedAddress(
        given=bare[:MAX_URL_CHARS],
        refused=refused,
        steps=[
            ExplainedStep(step=one.step, after=one.after, sentence=one.sentence)
            for one in (spelling.steps if spelling is not None else ())
        ],
        fetch=url.fetch if url is not None else None,
        normalised=normalised,
        key=url_key(bare if url is None else url.fetch),
        url_hash=url_hash(normalised),
        group=url.group if url is not None else None,
        domain=url.domain if url is not None else None,
        origin=url.origin if url is not None else None,
        priority=priority(url.normalised, None) if url is not None else None,
    )


def _page_ids(session: Session, identities: Collection[tuple[str, int]]) -> list[int]:
    if not identities:
        return []
    rows = session.scalars(
        select(Page.id)
        .join(Domain, Domain.id == Page.domain_id)
        .where(tuple_(Domain.name, Page.url_hash).in_(sorted(identities)))
        .order_by(Page.id)
    )
    return list(rows)
