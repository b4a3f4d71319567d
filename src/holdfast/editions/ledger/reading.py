"""Reads from the rows of an edition's executions what each of them knows of an address. Short sessions, flat memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.clock import to_micros
from holdfast.db.engine import Database
from holdfast.editions import queries
from holdfast.editions.campaign import FIRST_YEAR, campaign_date
from holdfast.editions.ledger.redirects import Trail
from holdfast.editions.ledger.rows import (
    FEED_ITEM_POLLED,
    FEED_ITEM_WAITS,
    REDIRECTED,
    Fate,
    Origin,
    Sighting,
    fate_of,
    fate_of_status,
)
from holdfast.editions.queries import AttemptRow, CaptureRow, ItemRow
from holdfast.editions.volume import Run, Shard, Volume
from holdfast.errors import UrlRefused
from holdfast.urls import Scope, ScopeKind, parse_seed
from holdfast.warc.ids import snapshot_id

NATIVE = "native"
_MAX_DETAIL = 500


class MeantSeed(NamedTuple):
    """A seed of an edition."""

    url: str
    shards: list[Shard]
    """All that were to bring it."""

    @property
    def is_accepted(self) -> bool:
        """Whether somebody accepted the gap of one of them: then it may be missing."""
        return any(shard.state.is_accepted for shard in self.shards)


_SITEMAP = re.compile(r"[^.]{0,200}sitemap[^.]{0,200}\.(?:xml|txt)(?:\.gz)?", re.I)


def is_plumbing(url: str) -> bool:
    """Return whether an address is one that crawlers ask for on their own account: robots.txt, and sitemaps.

    They are no content, and one that is not there is no page that failed.
    """
    path = urlsplit(url).path.lstrip("/")
    return path == "robots.txt" or _SITEMAP.fullmatch(path.rpartition("/")[2]) is not None


def seeds_of(volume: Volume) -> dict[int, MeantSeed]:
    """Return the seeds of an edition by their pages."""
    found: dict[int, MeantSeed] = {}
    for seed, shards in volume.seeds.items():
        try:
            url = parse_seed(seed)
        except UrlRefused:
            continue
        found.setdefault(url.hash64, MeantSeed(url.fetch, [])).shards.extend(shards)
    return found


def sightings(database: Database, volume: Volume, *, now: datetime, tell: Callable[[int], None]) -> Iterator[Sighting]:
    """Yield what every execution of an edition knows, and all that was meant and may never have been asked for.

    A seed is meant whatever happens, so it is sighted even if nobody ran. `tell` hears of every row that was read.
    """
    seeds = seeds_of(volume)
    yield from (_seed(page, seed) for page, seed in seeds.items())
    if not volume.runs:
        return
    scope = _scope(volume, seeds)
    if scope is not None:
        yield from _items(database, volume, scope, now=now)
    with database.read() as session:
        kept = queries.with_frontier(session, [run.id for _, run in volume.runs])
    trail = Trail(database, volume.runs, scope, with_frontier=kept)
    count = 0
    for shard, run in volume.runs:
        own = _Read(database, shard, run, trail)
        for sighting in own.from_frontier() if run.id in kept else own.from_captures(frozenset(seeds)):
            count += 1
            tell(count)
            yield sighting


def _seed(page: int, seed: MeantSeed) -> Sighting:
    shard = seed.shards[0] if seed.shards else None
    return Sighting(
        url=seed.url, url_hash=page, origin=Origin.SEED, fate=Fate.NOT_REACHED, depth=0,
        reason="no_shard" if shard is None else f"shard_{shard.status}", job_id=shard.job_id if shard else None,
        shard_key=shard.key if shard else None, shard_kind=shard.kind if shard else None,
    )  # fmt: skip


def _scope(volume: Volume, seeds: dict[int, MeantSeed]) -> Scope | None:
    """Return what an edition's crawls may have asked for, their seeds' landing places included; None without seeds."""
    if not seeds:
        return None
    urls = [parse_seed(seed.url) for seed in seeds.values()]
    scope = Scope.build(urls, ScopeKind(volume.config.scope), volume.config.include, volume.config.exclude)
    return scope.with_landing_hosts(
        parse_seed(place) for place in {place for _, run in volume.runs for place in run.landing}
    )


def _items(database: Database, volume: Volume, scope: Scope, *, now: datetime) -> Iterator[Sighting]:
    """Yield what feeds and sitemaps named since the campaign before, as far as it is in scope.

    Only polls take items, and no poll is part of an edition: what no shard met besides is not reached.
    """
    since = campaign_date(max(volume.edition.year - 1, FIRST_YEAR))
    until = max(run.finished_at or now for _, run in volume.runs)
    after: int | None = None
    while True:
        with database.read() as session:
            rows = queries.feed_items(session, volume.source.id, since=since, until=until, after=after)
        for row in rows:
            try:
                if scope.decide(parse_seed(row.url), 1).allowed:
                    yield _item(row)
            except UrlRefused:
                continue
        if len(rows) < queries.STRETCH:
            return
        after = rows[-1].url_hash


def _item(row: ItemRow) -> Sighting:
    taken = row.execution_id is not None
    return Sighting(
        url=row.url, url_hash=row.url_hash, origin=Origin.SITEMAP if row.kind == "sitemap" else Origin.FEED,
        fate=Fate.NOT_REACHED, reason=FEED_ITEM_POLLED if taken else FEED_ITEM_WAITS,
        detail=f"taken by execution {row.execution_id}" if taken else None, via=row.feed,
    )  # fmt: skip


class _Read:
    """What one execution of a shard knows."""

    def __init__(self, database: Database, shard: Shard, run: Run, trail: Trail) -> None:
        self._database, self._shard, self._run, self._trail = database, shard, run, trail

    def from_frontier(self) -> Iterator[Sighting]:
        """Yield every address that it met, as its frontier has it."""
        after: queries.Place | None = (-1, -1, -1)
        while after is not None:
            with self._database.read() as session:
                rows, after = queries.attempts(session, self._run.id, after=after)
            yield from self._trail.followed([self._attempted(row) for row in rows])

    def _attempted(self, row: AttemptRow) -> Sighting:
        shard, run = self._shard, self._run
        fate, reason = fate_of(row.outcome, row.reason, ended=run.ended)
        captured = fate is Fate.CAPTURED
        stored = captured and row.warc_file_id is not None and row.warc_ordinal is not None
        return Sighting(
            url=row.url, url_hash=row.url_hash, origin=Origin.SITEMAP if row.via_kind == "sitemap" else Origin.LINK,
            fate=fate, reason=reason, detail=row.message[:_MAX_DETAIL] if row.message else None,
            http_status=row.status_code, at=row.completed_at, via=row.via, depth=row.depth,
            redirected_to=row.redirected_to, job_id=shard.job_id, execution_id=run.id, shard_key=shard.key,
            shard_kind=shard.kind,
            snapshot_id=snapshot_id(row.warc_file_id or 0, row.warc_ordinal or 0) if stored else None,
            backend=NATIVE if captured else None, fidelity="unknown" if captured else None,
        )  # fmt: skip

    def from_captures(self, seeds: frozenset[int]) -> Iterator[Sighting]:
        """Yield what it captured, where another program kept the frontier.

        An answer that leads elsewhere does not tell whether a page was asked for or what one embeds: it counts where
        it led to a page, or where it is a seed's.
        """
        after = -1
        while True:
            with self._database.read() as session:
                rows = queries.captures(session, self._run.id, after=after, which=queries.Which.PAGES_AND_REDIRECTS)
            # What was sent with a POST is part of such an address: nobody meant it, a script asked for it.
            asked = [row for row in rows if row.method is None and (row.url_hash in seeds or not is_plumbing(row.url))]
            found = [self._captured(row) for row in asked]
            for one, end in zip(found, self._trail.followed(found), strict=True):
                if one.reason != REDIRECTED or end.fate in (Fate.CAPTURED, Fate.FAILED) or one.url_hash in seeds:
                    yield end
            if len(rows) < queries.STRETCH:
                return
            after = rows[-1].id

    def _captured(self, row: CaptureRow) -> Sighting:
        shard, (fate, reason) = self._shard, fate_of_status(row.status, row.truncated)
        captured = fate is Fate.CAPTURED
        return Sighting(
            url=row.url, url_hash=row.url_hash, origin=Origin.CRAWLER, fate=fate, reason=reason,
            http_status=row.status, at=to_micros(row.captured_at), redirected_to=row.redirect_to, job_id=shard.job_id,
            execution_id=self._run.id, shard_key=shard.key, shard_kind=shard.kind,
            snapshot_id=row.id if captured else None, backend=row.backend if captured else None,
            fidelity=row.fidelity if captured else None,
        )  # fmt: skip
