"""Reads the knowledge of an edition's executions about each address. Short sessions, constant memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import Row
from sqlalchemy.orm import Session

from holdfast.clock import to_micros
from holdfast.db.engine import Database
from holdfast.db.models import Execution
from holdfast.editions import queries
from holdfast.editions.campaign import FIRST_YEAR, campaign_date
from holdfast.editions.edition_view import EditionView, Shard, ended_as
from holdfast.editions.ledger import (
    FEED_ITEM_POLLED,
    FEED_ITEM_WAITS,
    NOISE,
    AddressSighting,
    LedgerOutcome,
    SightingOrigin,
    as_noise,
    outcome_of,
    outcome_of_status,
    rank_of,
)
from holdfast.editions.queries import CaptureRow
from holdfast.errors import UrlRefused
from holdfast.frontier.attempts import last_attempts
from holdfast.noise.queries import kinds_at, kinds_of
from holdfast.types import REDIRECTED
from holdfast.urls import Scope, ScopeKind, Url, parse_seed
from holdfast.warc.record import snapshot_id

# The limit of browsers.
_MAX_HOPS: Final = 20


class _Stop(NamedTuple):
    outcome: LedgerOutcome
    reason: str
    http_status: int | None = None
    redirected_to: str | None = None

    @property
    def leads_on(self) -> bool:
        return self.outcome is LedgerOutcome.CAPTURED and self.reason == REDIRECTED


class RedirectTrail:
    """Follows redirects through the executions of one edition."""

    def __init__(
        self,
        database: Database,
        runs: Iterable[tuple[Shard, Execution]],
        scope: Scope | None,
        *,
        with_frontier: Collection[int],
    ) -> None:
        self._database, self._scope = database, scope
        self._ended = {run.id: ended_as(run) for _, run in runs}
        self._with_frontier = [run_id for run_id in self._ended if run_id in with_frontier]
        self._without = [run_id for run_id in self._ended if run_id not in with_frontier]

    def followed(self, found: Sequence[AddressSighting]) -> list[AddressSighting]:
        """Return these sightings in order; redirects get the outcome of their final target."""
        ends = list(found)
        under_way = {
            at: one.redirected_to
            for at, one in enumerate(found)
            if one.outcome is LedgerOutcome.CAPTURED and one.reason == REDIRECTED
        }
        # Follow all URLs one hop at a time: two queries per hop for a slice of 2,000, instead of one per URL.
        for _ in range(_MAX_HOPS):
            if not under_way:
                return ends
            known = self._known(target for target in under_way.values() if target is not None)
            further: dict[int, str | None] = {}
            for at, target in under_way.items():
                stop = _NOWHERE if target is None else known[target]
                if stop.leads_on:
                    further[at] = stop.redirected_to
                else:
                    ends[at] = _ended(ends[at], target, stop)
            under_way = further
        for at, target in under_way.items():
            # A loop ends here, too: none of its URLs could be a capture.
            ends[at] = _ended(ends[at], target, _Stop(LedgerOutcome.FAILED, "too_many_redirects"))
        return ends

    def _known(self, targets: Iterable[str]) -> dict[str, _Stop]:
        """Return the best result of all executions for each address, or why none requested it."""
        urls: dict[str, Url | None] = {}
        for target in targets:
            try:
                urls[target] = parse_seed(target)
            except UrlRefused:
                urls[target] = None
        stops = self._stops([url for url in urls.values() if url is not None])
        return {
            target: _NOWHERE if url is None else stops.get(url.hash64) or self._unasked(url)
            for target, url in urls.items()
        }

    def _stops(self, urls: Sequence[Url]) -> dict[int, _Stop]:
        pages = {url.hash64 for url in urls}
        best: dict[int, _Stop] = {}
        with self._database.read() as session:
            asked = last_attempts(session, self._with_frontier, pages, {url.domain for url in urls})
            seen = queries.captures_of_pages(session, self._without, pages)
            noise = kinds_of(session, {_number(one.warc_file_id, one.warc_ordinal) for one in asked})
            at_pages = kinds_at(session, self._with_frontier, pages)
        for page, execution_id, outcome, reason, status, target, *place in asked:
            outcome, why = outcome_of(outcome, reason, ended=self._ended[execution_id])
            kind = noise.get(_number(*place)) or at_pages.get((execution_id, page))
            _keep_best(best, page, _stop(_Stop(outcome, why, status, target), kind))
        for page, status, target, truncated, kind in seen:
            outcome, why = outcome_of_status(status, truncated)
            _keep_best(best, page, _stop(_Stop(outcome, why, status, target), kind))
        return best

    def _unasked(self, url: Url) -> _Stop:
        # A redirect out of scope follows a rule of the source and is not a failure.
        if self._scope is not None and not (verdict := self._scope.decide(url, 1)).allowed:
            return _Stop(LedgerOutcome.EXCLUDED, f"out_of_scope:{verdict.rule}")
        return _Stop(LedgerOutcome.NOT_REACHED, "not_followed")


def _stop(stop: _Stop, noise: str | None) -> _Stop:
    is_none = noise is not None and stop.outcome is LedgerOutcome.CAPTURED
    return stop._replace(outcome=LedgerOutcome.FAILED, reason=f"{NOISE}{noise}") if is_none else stop


def _number(warc_file_id: int | None, ordinal: int | None) -> int:
    return -1 if warc_file_id is None or ordinal is None else snapshot_id(warc_file_id, ordinal)


# A redirect without a target, or with one that cannot be requested.
_NOWHERE = _Stop(LedgerOutcome.FAILED, "nowhere")


def _keep_best(best: dict[int, _Stop], page: int, stop: _Stop) -> None:
    """Add a stop unless a better one is known; of two captures, prefer the one that is a page itself."""
    known = best.get(page)
    if known is None or _order(stop) < _order(known):
        best[page] = stop


def _order(stop: _Stop) -> tuple[object, ...]:
    # Break ties by every field: two runs of a report must not differ.
    return rank_of(stop.outcome), stop.leads_on, stop.reason, stop.redirected_to or "", stop.http_status or 0


def _ended(one: AddressSighting, target: str | None, stop: _Stop) -> AddressSighting:
    if stop.outcome is LedgerOutcome.CAPTURED:
        return one._replace(redirected_to=target)
    # Add the prefix once: the crawl's own reasons of failed redirects already have it (redirect_refused).
    reason = stop.reason if stop.reason.startswith("redirect_") else f"redirect_{stop.reason}"
    return one._replace(
        outcome=stop.outcome,
        reason=reason,
        redirected_to=target or one.redirected_to,
        snapshot_id=None,
        backend=None,
        fidelity=None,
        http_status=stop.http_status or one.http_status,
    )


NATIVE = "native"
_MAX_DETAIL = 500


class SeedInput(NamedTuple):
    url: str
    shards: list[Shard]
    """All shards with this seed."""
    is_decided: bool = False
    """Whether an operator accepted or excluded this address itself."""

    @property
    def is_accepted(self) -> bool:
        """Whether an operator accepted it, or the gap of one of its shards: then it may be missing."""
        return self.is_decided or any(shard.state.is_accepted for shard in self.shards)


# Bounded repetition: the name comes from the web and is matched for every capture of another crawler.
_SITEMAP = re.compile(r"[^.]{0,200}sitemap[^.]{0,200}\.(?:xml|txt)(?:\.gz)?", re.I)


def is_plumbing(url: str) -> bool:
    """Return whether an address is one that crawlers request themselves: robots.txt, and sitemaps."""
    path = urlsplit(url).path.lstrip("/")
    # They are not content, and a missing one is not a failed page.
    return path == "robots.txt" or _SITEMAP.fullmatch(path.rpartition("/")[2]) is not None


def seeds_of(view: EditionView) -> dict[int, SeedInput]:
    found: dict[int, SeedInput] = {}
    decisions = view.decisions
    for seed, shards in view.seeds.items():
        try:
            url = parse_seed(seed)
        except UrlRefused:
            continue
        found.setdefault(url.hash64, SeedInput(url.fetch, [], url.hash64 in decisions)).shards.extend(shards)
    return found


def is_in_edition(session: Session, view: EditionView, url: Url, *, now: datetime) -> bool:
    """Return whether an address is a seed of an edition, or was found by one of its runs or a feed of its source."""
    pages, runs = {url.hash64}, [run.id for _, run in view.runs]
    since = campaign_date(max(view.edition.year - 1, FIRST_YEAR))
    items = queries.feed_items(session, view.source.id, since=since, until=now, after=url.hash64 - 1, limit=1)
    return (
        url.hash64 in seeds_of(view)
        or any(item.url_hash == url.hash64 for item in items)
        or bool(last_attempts(session, runs, pages, {url.domain}))
        or bool(queries.captures_of_pages(session, runs, pages))
    )


def sightings(
    database: Database, view: EditionView, *, now: datetime, on_row: Callable[[int], None]
) -> Iterator[AddressSighting]:
    """Yield the sightings of every execution of an edition, and intended addresses that may never have been requested.

    A seed is always intended, so it has a row even if no shard ran. `on_row` gets the number of rows so far.
    """
    seeds = seeds_of(view)
    # Yield seeds first, even if they are found again: a seed that no shard reached must be in the ledger.
    yield from (_seed(page, seed) for page, seed in seeds.items())
    if not view.runs:
        return
    scope = _scope(view, seeds)
    if scope is not None:
        yield from _items(database, view, scope, now=now)
    with database.read() as session:
        kept = queries.with_frontier(session, [run.id for _, run in view.runs])
    trail = RedirectTrail(database, view.runs, scope, with_frontier=kept)
    count = 0
    for shard, run in view.runs:
        own = _Read(database, shard, run, trail)
        for sighting in own.from_frontier() if run.id in kept else own.from_captures(frozenset(seeds)):
            count += 1
            on_row(count)
            yield sighting


def _seed(page: int, seed: SeedInput) -> AddressSighting:
    shard = seed.shards[0] if seed.shards else None
    return AddressSighting(
        url=seed.url,
        url_hash=page,
        origin=SightingOrigin.SEED,
        outcome=LedgerOutcome.NOT_REACHED,
        depth=0,
        reason="no_shard" if shard is None else f"shard_{shard.status}",
        job_id=shard.job.id if shard else None,
        shard_key=shard.key if shard else None,
        shard_kind=shard.kind if shard else None,
    )


def _scope(view: EditionView, seeds: dict[int, SeedInput]) -> Scope | None:
    """Return the scope of an edition's crawls, including the redirect targets of seeds; None without seeds."""
    if not seeds:
        return None
    urls = [parse_seed(seed.url) for seed in seeds.values()]
    scope = Scope.build(urls, ScopeKind(view.config.scope), view.config.include, view.config.exclude)
    return scope.with_landing_hosts(
        parse_seed(str(place)) for place in {place for _, run in view.runs for place in run.config.get("landing") or ()}
    )


def _items(database: Database, view: EditionView, scope: Scope, *, now: datetime) -> Iterator[AddressSighting]:
    """Yield in-scope addresses from feeds and sitemaps since the previous campaign."""
    # Start at the previous campaign: older items were due in the previous edition.
    since = campaign_date(max(view.edition.year - 1, FIRST_YEAR))
    # End with the last crawl: it could not find items named later.
    until = max(run.finished_at or now for _, run in view.runs)
    after: int | None = None
    while True:
        with database.read() as session:
            rows = queries.feed_items(session, view.source.id, since=since, until=until, after=after)
        for row in rows:
            try:
                if scope.decide(parse_seed(row.url), 1).allowed:
                    yield _item(row)
            except UrlRefused:
                continue
        if len(rows) < queries.STRETCH:
            return
        after = rows[-1].url_hash


def _item(row: Row[*tuple[Any, ...]]) -> AddressSighting:
    taken = row.execution_id is not None
    return AddressSighting(
        url=row.url,
        url_hash=row.url_hash,
        origin=SightingOrigin.SITEMAP if row.kind == "sitemap" else SightingOrigin.FEED,
        outcome=LedgerOutcome.NOT_REACHED,
        reason=FEED_ITEM_POLLED if taken else FEED_ITEM_WAITS,
        detail=f"taken by execution {row.execution_id}" if taken else None,
        via=row.feed,
    )


class _Read:
    def __init__(self, database: Database, shard: Shard, run: Execution, trail: RedirectTrail) -> None:
        self._database, self._shard, self._run, self._trail = database, shard, run, trail

    def from_frontier(self) -> Iterator[AddressSighting]:
        after: queries.Place | None = (-1, -1, -1)
        while after is not None:
            with self._database.read() as session:
                rows, after = queries.attempts(session, self._run.id, after=after)
                found = [self._attempted(row) for row in rows]
                # An attempt's record is that of its last hop; a redirect may lead to noise.
                noise = kinds_of(session, {one.snapshot_id for one in found if one.snapshot_id is not None})
                at_pages = kinds_at(session, [self._run.id], {one.url_hash for one in found})
            kinds = [noise.get(one.snapshot_id or -1) or at_pages.get((self._run.id, one.url_hash)) for one in found]
            yield from self._trail.followed(
                [
                    one if kind is None or one.outcome is not LedgerOutcome.CAPTURED else as_noise(one, kind)
                    for one, kind in zip(found, kinds, strict=True)
                ]
            )

    def _attempted(self, row: Row[*tuple[Any, ...]]) -> AddressSighting:
        shard, run = self._shard, self._run
        outcome, reason = outcome_of(row.outcome, row.reason, ended=ended_as(run))
        captured = outcome is LedgerOutcome.CAPTURED
        # A capture without a position belongs to a source that stores only signals: there is no snapshot.
        stored = captured and row.warc_file_id is not None and row.warc_ordinal is not None
        return AddressSighting(
            url=row.url,
            url_hash=row.url_hash,
            # Seeds already have a row, with the nearer origin.
            origin=SightingOrigin.SITEMAP if row.via_kind == "sitemap" else SightingOrigin.LINK,
            outcome=outcome,
            reason=reason,
            detail=row.message[:_MAX_DETAIL] if row.message else None,
            http_status=row.status_code,
            at=row.completed_at,
            via=row.via,
            depth=row.depth,
            redirected_to=row.redirected_to,
            job_id=shard.job.id,
            execution_id=run.id,
            shard_key=shard.key,
            shard_kind=shard.kind,
            snapshot_id=snapshot_id(row.warc_file_id or 0, row.warc_ordinal or 0) if stored else None,
            backend=NATIVE if captured else None,
            fidelity="unknown" if captured else None,
        )

    def from_captures(self, seeds: frozenset[int]) -> Iterator[AddressSighting]:
        """Yield its captures, for executions whose frontier another program had."""
        after = -1
        while True:
            with self._database.read() as session:
                rows = queries.captures(
                    session, self._run.id, after=after, which=queries.WantedCaptures.PAGES_AND_REDIRECTS
                )
            # Such a URL contains POST data: a script requested it, not an editor.
            asked = [row for row in rows if row.method is None and (row.url_hash in seeds or not is_plumbing(row.url))]
            found = [self._captured(row) for row in asked]
            for one, end in zip(found, self._trail.followed(found), strict=True):
                if (
                    one.reason != REDIRECTED
                    or end.outcome in (LedgerOutcome.CAPTURED, LedgerOutcome.FAILED)
                    or one.url_hash in seeds
                ):
                    yield end
            if len(rows) < queries.STRETCH:
                return
            after = rows[-1].id

    def _captured(self, row: CaptureRow) -> AddressSighting:
        shard, (outcome, reason) = self._shard, outcome_of_status(row.status, row.truncated)
        captured = outcome is LedgerOutcome.CAPTURED
        seen = AddressSighting(
            url=row.url,
            url_hash=row.url_hash,
            origin=SightingOrigin.CRAWLER,
            outcome=outcome,
            reason=reason,
            http_status=row.status,
            at=to_micros(row.captured_at),
            redirected_to=row.redirect_to,
            job_id=shard.job.id,
            execution_id=self._run.id,
            shard_key=shard.key,
            shard_kind=shard.kind,
            snapshot_id=row.id if captured else None,
            backend=row.backend if captured else None,
            fidelity=row.fidelity if captured else None,
        )
        return as_noise(seen, row.noise) if captured and row.noise is not None else seen
