"""Puts an explanation together: spelling, scope, robots, domain, attempts, captures, visibility, outlook.

the address    spelled step by step; what no crawl would ask for is still looked for among the captures
the rules      of every source, by the configuration of its next run
robots         from what is kept, unless the caller hands in what it has just read
the rows       of the page under every identity that a source with it in scope gives it
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from holdfast.config import Settings
from holdfast.db.models import Source
from holdfast.errors import UrlRefused
from holdfast.explanation import queries
from holdfast.explanation.history import explain_attempts, explain_snapshots, explain_visibility
from holdfast.explanation.model import ExplainedAddress, ExplainedStep, Explanation
from holdfast.explanation.outlook import explain_outlook
from holdfast.explanation.readers import for_readers
from holdfast.explanation.scopes import Judgements, judge_sources
from holdfast.explanation.treatment import explain_domain, explain_robots
from holdfast.outside_text import clean
from holdfast.types import RobotsState
from holdfast.urls import MAX_URL_CHARS, Url, hash64, normalised_or_plain, page_key, priority, url_hash, url_key
from holdfast.urls.address import host_problem, without_userinfo
from holdfast.urls.steps import Spelling, spell
from holdfast.values import dataclass
from holdfast.withdrawals.visibility import may_see, visible, visible_source, withdrawn_among

DEFAULT_LIMIT = 20
MAX_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainWish:
    """What is asked: the address as a person wrote it, how much of each list, and from where on."""

    url: str
    limit: int = DEFAULT_LIMIT
    before: int | None = None
    """Attempts before this one."""
    is_reader: bool = False
    """Whether the caller is no operator: only what the viewer may see counts, and nothing of how the house works."""
    live_robots: RobotsState | None = None
    """What was just read of its robots.txt, if the caller asked for it."""


def explain(session: Session, wish: ExplainWish, settings: Settings, *, now: datetime) -> Explanation:
    """Return everything that is known of an address; whatever it is, there is an answer."""
    text = clean(wish.url, MAX_URL_CHARS + 1) or ""
    bare = without_userinfo(text)
    judged = judge_sources(session, bare, settings)
    if wish.is_reader:
        judged = judged._replace(all=[one for one in judged.all if may_see(one.source)])
    spelling, refused = _spelled(text, wish.url, judged)
    url = spelling.url if spelling is not None else None
    normalised = url.normalised if url is not None else normalised_or_plain(bare)[:MAX_URL_CHARS]
    inside = [one.told for one in judged.in_scope]
    state = wish.live_robots or (queries.robots_of(session, url.origin) if url is not None else None)
    robots = explain_robots(url, state, inside, now=now, live=wish.live_robots is not None)
    domain = explain_domain(session, url.domain, inside, robots, settings, now=now) if url is not None else None
    # To a reader a page that is taken down is one that was never requested.
    is_hidden = wish.is_reader and bool(withdrawn_among(session, keys={page_key(normalised)}))
    pages = [] if is_hidden else queries.page_ids(session, _identities(url, judged))
    number = hash64(normalised)
    snapshots = explain_snapshots(
        session,
        url_hash=number,
        key=url_key(bare if url is None else url.fetch),
        limit=wish.limit,
        seen=visible() if wish.is_reader else (),
    )
    attempts = explain_attempts(
        session,
        pages,
        before=wish.before,
        limit=wish.limit,
        seen=(visible_source(Source.id),) if wish.is_reader else (),
    )
    found = Explanation(
        address=_address(bare, refused, spelling, normalised),
        sources=judged.told(),
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
    return for_readers(session, found) if wish.is_reader else found


def _spelled(text: str, given: str, judged: Judgements) -> tuple[Spelling | None, str | None]:
    """Return how an address is spelled, None if it is none; and why no crawl would ask for it as it was given."""
    try:
        spelling = spell(text)
    except UrlRefused as exc:
        # A source may allow what is refused in general: a port where websites rarely live.
        allowing = next((one.policy for one in judged.in_scope if one.policy is not None), None)
        return (None, exc.reason) if allowing is None else (spell(text, allowing), None)
    if text != given:
        # A question mark stands for half a character, and for a NUL: what is explained is not what was given.
        return spelling, "it holds a NUL or half a character, which no address has"
    return spelling, host_problem(text)


def _identities(url: Url | None, judged: Judgements) -> set[tuple[str, int]]:
    """Return what the page may be known by: sources that spell it otherwise know it by another hash."""
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
