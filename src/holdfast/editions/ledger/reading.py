"""Reads from the rows of an edition's executions what each of them knows of an address. Short sessions, flat memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from holdfast.clock import to_micros
from holdfast.db.engine import Database
from holdfast.editions import queries
from holdfast.editions.ledger.rows import Fate, Origin, Sighting, fate_of
from holdfast.editions.queries import AttemptRow, CaptureRow, ItemRow
from holdfast.editions.volume import Run, Shard, Volume
from holdfast.errors import UrlRefused
from holdfast.urls import Scope, ScopeKind, parse_seed
from holdfast.warc.ids import snapshot_id

NATIVE = "native"
_MAX_DETAIL = 500


def seeds_of(volume: Volume) -> dict[int, tuple[str, Shard | None]]:
    """Return the address of each seed by its page, with the shard that has it, if one does."""
    found: dict[int, tuple[str, Shard | None]] = {}
    for seed, shard in volume.seeds.items():
        try:
            url = parse_seed(seed)
        except UrlRefused:
            continue
        if url.hash64 not in found or found[url.hash64][1] is None:
            found[url.hash64] = url.fetch, shard
    return found


def sightings(database: Database, volume: Volume, *, now: datetime, tell: Callable[[int], None]) -> Iterator[Sighting]:
    """Yield what every execution of an edition knows, and all that was meant and may never have been asked for.

    A seed is meant whatever happens, so it is sighted even if nobody ran. `tell` hears of every row that was read.
    """
    yield from _seeds(volume)
    yield from _items(database, volume, now=now)
    count = 0
    for shard, run in volume.runs:
        for sighting in _run(database, shard, run):
            count += 1
            tell(count)
            yield sighting


def _seeds(volume: Volume) -> Iterator[Sighting]:
    for url_hash, (url, shard) in seeds_of(volume).items():
        reason = "no_shard" if shard is None else f"shard_{shard.status}"
        yield Sighting(
            url=url, url_hash=url_hash, origin=Origin.SEED, fate=Fate.NOT_REACHED, reason=reason, depth=0,
            job_id=shard.job_id if shard else None, shard_key=shard.key if shard else None,
            shard_kind=shard.kind if shard else None,
        )  # fmt: skip


def _items(database: Database, volume: Volume, *, now: datetime) -> Iterator[Sighting]:
    """Yield what feeds and sitemaps told and these executions took or left waiting, as far as it is in scope."""
    runs, seeds = volume.runs, [parse_seed(url) for url, _ in seeds_of(volume).values()]
    if not runs or not seeds:
        return
    ends = [run.finished_at or now for _, run in runs]
    scope = Scope.build(seeds, ScopeKind(volume.config.scope), volume.config.include, volume.config.exclude)
    owners = {run.id: shard for shard, run in runs}
    after = 0
    while True:
        with database.read() as session:
            rows = queries.feed_items(session, volume.source.id, executions=list(owners), until=max(ends), after=after)
        for row in rows:
            try:
                meant = scope.decide(parse_seed(row.url), 1).allowed
            except UrlRefused:
                continue
            if meant:
                yield _item(row, owners.get(row.execution_id or 0))
        if len(rows) < queries.STRETCH:
            return
        after = rows[-1].id


def _item(row: ItemRow, shard: Shard | None) -> Sighting:
    return Sighting(
        url=row.url, url_hash=row.url_hash, origin=Origin.SITEMAP if row.kind == "sitemap" else Origin.FEED,
        fate=Fate.NOT_REACHED, reason="feed_item_waits" if shard is None else "feed_item_not_reached",
        via=row.feed, execution_id=row.execution_id if shard else None, job_id=shard.job_id if shard else None,
        shard_key=shard.key if shard else None, shard_kind=shard.kind if shard else None,
    )  # fmt: skip


def _run(database: Database, shard: Shard, run: Run) -> Iterator[Sighting]:
    """Yield what one execution knows: from its frontier, or from its captures where another program kept that."""
    with database.read() as session:
        has_frontier = queries.has_attempts(session, run.id)
    if has_frontier:
        yield from _from_frontier(database, shard, run)
    else:
        yield from _from_captures(database, shard, run)


def _from_frontier(database: Database, shard: Shard, run: Run) -> Iterator[Sighting]:
    after = -1, -1
    while True:
        with database.read() as session:
            rows = queries.attempts(session, run.id, after=after)
        for row in rows:
            yield _attempted(row, shard, run)
        if len(rows) < queries.STRETCH:
            return
        after = rows[-1].domain_id, rows[-1].page_id


def _attempted(row: AttemptRow, shard: Shard, run: Run) -> Sighting:
    fate, reason = fate_of(row.outcome, row.reason, ended=run.ended)
    stored = fate is Fate.CAPTURED and row.warc_file_id is not None and row.warc_ordinal is not None
    return Sighting(
        url=row.url, url_hash=row.url_hash, origin=Origin.SITEMAP if row.via_kind == "sitemap" else Origin.LINK,
        fate=fate, reason=reason, detail=row.message[:_MAX_DETAIL] if row.message else None,
        http_status=row.status_code, at=row.completed_at, via=row.via, depth=row.depth,
        redirected_to=row.redirected_to, job_id=shard.job_id, execution_id=run.id, shard_key=shard.key,
        shard_kind=shard.kind,
        snapshot_id=snapshot_id(row.warc_file_id or 0, row.warc_ordinal or 0) if stored else None,
        backend=NATIVE if fate is Fate.CAPTURED else None, fidelity="unknown" if fate is Fate.CAPTURED else None,
    )  # fmt: skip


def _from_captures(database: Database, shard: Shard, run: Run) -> Iterator[Sighting]:
    after = -1
    while True:
        with database.read() as session:
            rows = queries.captures(session, run.id, after=after)
        # What was sent with a POST is part of such an address: nobody meant it, a script asked for it.
        yield from (_captured(row, shard, run) for row in rows if row.method is None)
        if len(rows) < queries.STRETCH:
            return
        after = rows[-1].id


def _captured(row: CaptureRow, shard: Shard, run: Run) -> Sighting:
    status = row.status
    is_error = status is not None and status >= 400
    fate = Fate.FAILED if is_error else Fate.CAPTURED
    reason = f"http_{status}" if is_error else "redirected" if status is not None and 300 <= status < 304 else "ok"
    return Sighting(
        url=row.url, url_hash=row.url_hash, origin=Origin.CRAWLER, fate=fate, reason=reason, http_status=status,
        at=to_micros(row.captured_at), redirected_to=row.redirect_to, job_id=shard.job_id, execution_id=run.id,
        shard_key=shard.key, shard_kind=shard.kind, snapshot_id=row.id if fate is Fate.CAPTURED else None,
        backend=row.backend if fate is Fate.CAPTURED else None,
        fidelity=row.fidelity if fate is Fate.CAPTURED else None,
    )  # fmt: skip
