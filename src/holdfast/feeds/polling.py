"""The feeds of one source while an execution polls them: evaluates responses and enqueues new items.

The crawl settles the attempt of a document first. Then its items are stored as waiting, the feed's row is
written, and waiting items are given to the execution and its frontier in one transaction. After a kill at any
point, the next owner finds documents that were settled but not read, requests them again, and takes the items
that wait: an item is enqueued exactly once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from random import randrange

from holdfast import log
from holdfast.clock import Clock, from_micros, to_micros
from holdfast.config import FeedSettings, Settings
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.errors import UrlRefused
from holdfast.failpoints import reach
from holdfast.feeds import polling_queries
from holdfast.feeds.health import (
    BY_HAND,
    FORGOTTEN_AFTER,
    Trouble,
    after_backlog,
    after_failure,
    after_success,
    asked_to_wait,
    interval_of,
    trouble_of,
)
from holdfast.feeds.polling_queries import FeedItemRow, FeedRow, WaitingItem
from holdfast.frontier import Frontier
from holdfast.frontier.sql import FrontierTransaction
from holdfast.outside_text import clean
from holdfast.types import FoundUrl, ListedUrl, Outcome, PolledListing, UrlKind, Visit
from holdfast.urls import parse
from holdfast.values import dataclass

USUAL_PLACES = ("/feed", "/rss", "/feed.xml", "/rss.xml", "/atom.xml", "/index.xml")


class FeedSearch:
    """One search for feeds, in the memory of its process; lost with it, and repeated some hours later."""

    def __init__(self, start: int) -> None:
        self._starts = {start}
        # Set while the usual paths may still have to be tried.
        self._origin: str | None = None
        self._pending: set[int] = set()
        self._named: set[int] = set()
        self._found = False

    def visited(self, visit: Visit) -> list[FoundUrl]:
        """Return the URLs to try after a visit: the feeds that the start page links, or else the usual paths."""
        if visit.attempt.url_hash not in self._starts:
            return []
        try:
            landed = parse(visit.redirected_to or visit.attempt.url)
        except UrlRefused:
            return []
        if visit.redirected_to is not None and visit.status is not None and 300 <= visit.status < 400:
            # Another domain is requested separately, under its own lease; its response is the start page.
            self._starts.add(landed.hash64)
            return []
        self._origin = landed.origin
        # The usual paths are guesses, tried only if none of the linked feeds is valid: six requests less for most
        # sites.
        self._pending = {found.url_hash for found in visit.feeds}
        return list(visit.feeds) or self._places()

    def tried(self, url_hash: int, *, good: bool) -> list[FoundUrl]:
        """Record the result of one candidate; return what to try next: the usual paths if no candidate was a feed."""
        if url_hash not in self._pending:
            return []
        self._pending.discard(url_hash)
        self._found = self._found or good
        return self._places() if not self._pending and not self._found else []

    def named(self, found: Iterable[FoundUrl]) -> None:
        """Record the sitemaps that a robots.txt names."""
        self._named.update(one.url_hash for one in found)

    def is_named(self, url_hash: int) -> bool:
        return url_hash in self._named

    def _places(self) -> list[FoundUrl]:
        origin, self._origin = self._origin, None
        urls = [parse(f"{origin}{path}") for path in USUAL_PLACES] if origin is not None else []
        return [FoundUrl(url.fetch, url.hash64, url.domain, UrlKind.SITEMAP, 1, 0) for url in urls]


# Ignore dates further in the future: nothing could ever be newer.
_AHEAD = timedelta(days=1)
# If more than five known URLs, and four of five, changed at the same time, their dates are meaningless.
_MANY, _NEARLY_ALL = 5, 0.8


@dataclass(slots=True)
class SortedItems:
    fresh: list[FeedItemRow] = field(default_factory=list)
    """New items."""
    moved: list[FeedItemRow] = field(default_factory=list)
    """Known items with a newer date."""
    dated: list[FeedItemRow] = field(default_factory=list)
    """Known items without news: only the date is stored."""
    trusted: bool = True
    """False if too many dates changed at once to trust any of them."""


def sort_items(
    items: Iterable[ListedUrl], known: Mapping[int, int | None], *, now: datetime, max_age: timedelta
) -> SortedItems:
    """Classify the items of a document. `known` contains the earlier dates by URL hash.

    Items older than `max_age` are dropped; items without a date stay.
    """
    news, seen = SortedItems(), 0
    oldest, latest = to_micros(now - max_age), to_micros(now + _AHEAD)
    for found, told_at in items:
        item_date = None if told_at is None else to_micros(told_at)
        # Server clocks run fast, and some feeds announce events; allow one day for such a clock.
        if item_date is not None and item_date > latest:
            item_date = None
        row = FeedItemRow(found.url_hash, found.url, item_date)
        too_old = item_date is not None and item_date < oldest
        if found.url_hash not in known:
            if not too_old:
                news.fresh.append(row)
            continue
        seen += 1
        before = known[found.url_hash]
        if item_date is not None and (before is None or item_date > before):
            (news.dated if before is None or too_old else news.moved).append(row)
    # A deployment that touches every file changes every date of a sitemap and would cause a recrawl of the site.
    if len(news.moved) > _MANY and len(news.moved) > seen * _NEARLY_ALL:
        news.dated, news.moved, news.trusted = news.dated + news.moved, [], False
    return news


_log = log.get()
# Items per transaction: some 20 ms.
_ITEMS_AT_ONCE = 2000
# Limit of nested indexes: a hostile one links to itself under ever new URLs.
_MAX_DEPTH = 3
_LIST_PRIORITY = 3
# Request feed items before sitemap items: feeds have news, a sitemap may list the whole site.
_FEED_PRIORITY, _SITEMAP_PRIORITY = 3, 2
# Discover feeds on the start page and one link from it: every article of a blog has a comment feed.
_NOTICED_DEPTH = 1
_TRIES = 3
# Share of the item queue that sitemaps may fill: the rest is for news from feeds.
_SITEMAP_SHARE = 0.8


class _Overtaken(Exception):
    """Another poll claimed some of these items, or the execution is no longer running."""


class FeedPolling:
    """Writes poll results to the database. Use only on its connection's thread; every call may be repeated."""

    def __init__(
        self,
        raw_db: RawDatabase,
        frontier: Frontier,
        clock: Clock,
        settings: Settings,
        *,
        source_id: int,
        execution_id: int,
        polls: bool = True,
        start: int | None = None,
    ) -> None:
        """Without `polls`, as in an ordinary crawl, feeds linked by pages are recorded and nothing is polled.

        `start` is the hash of the start page of a feed search; None without a search.
        """
        self._raw_db, self._frontier, self._clock = raw_db, frontier, clock
        self._settings, self._limits = settings.feeds, settings.timings
        self._source_id, self._execution_id, self._polls = source_id, execution_id, polls
        self._search = FeedSearch(start) if start is not None else None
        self._room = self._limits.feeds_items
        # The page of each feed polled here: items record it as their origin.
        self._pages: dict[int, int] = {}
        # Lists that have responded here.
        self._heard: set[int] = set()
        # Feeds that temporarily redirect to another domain, by target: its response is theirs.
        self._sent: dict[int, set[int]] = {}

    def resume(self) -> None:
        """Request documents again that were settled but not read because a process died, and take waiting items."""
        source_id, execution_id = self._source_id, self._execution_id
        with self._raw_db.read() as tx:
            settled = polling_queries.settled_lists(tx, source_id=source_id, execution_id=execution_id)
        for attempt_id, outcome, is_unread in settled:
            if is_unread:
                self._frontier.reopen_one(attempt_id, was_fetched=outcome == Outcome.SUCCESS)
        # Not at the first start: news must not find the room taken by what waits.
        if settled:
            self.take()

    def read_settled(self, visits: Collection[Visit]) -> frozenset[int]:
        """Write what these settled visits mean for feeds, and enqueue new items; return the domains of documents."""
        # Lists, including feeds, are requested as attempts of kind sitemap.
        lists = {id(visit) for visit in visits if self._polls and visit.attempt.kind is UrlKind.SITEMAP}
        if lists:
            reach("feed_settled")
        for visit in visits:
            if id(visit) in lists:
                self._polled(visit)
            elif visit.attempt.kind is UrlKind.PAGE:
                self._met(visit)
        if lists:
            self.take()
        return frozenset(one.attempt.domain_id for one in visits if one.listing is not None or one.feeds)

    def offer(self, found: Sequence[FoundUrl]) -> None:
        """Process sitemaps from a robots.txt: read immediately in a crawl, tried as candidates in a feed search."""
        if not self._polls:
            self._frontier.add(self._execution_id, found)
        elif self._search is not None:
            self._search.named(found)
            self._try(found)

    def take(self) -> int:
        """Enqueue waiting items up to this poll's limit; return how many. Each step is atomic."""
        # Two workers may poll for one source at the same time; the loser reads the rest again.
        for _ in range(_TRIES):
            with self._raw_db.read() as tx:
                waiting = polling_queries.waiting_items(tx, source_id=self._source_id, limit=self._room)
            if not waiting:
                return 0
            try:
                # One transaction per feed: pages record the feed that led to them.
                for feed_id in dict.fromkeys(item.feed_id for item in waiting):
                    self._enqueue([item for item in waiting if item.feed_id == feed_id], via=self._pages.get(feed_id))
            except _Overtaken:
                continue
            return len(waiting)
        _log.warning("feed.items_left", source=self._source_id, execution=self._execution_id)
        return 0

    def _enqueue(self, waiting: Sequence[WaitingItem], *, via: int | None) -> None:
        ids = [item.id for item in waiting]

        def mark(tx: FrontierTransaction) -> None:
            reach("feed_enqueued")
            # Claim all or nothing, in the transaction that adds the pages: a kill neither loses an item nor requests it
            # twice.
            if polling_queries.take_items(tx, ids, execution_id=self._execution_id) != len(ids):
                raise _Overtaken

        pages = [found for item in waiting for found in _page(item)]
        self._frontier.add(self._execution_id, pages, via=via, also=mark)
        self._room -= len(waiting)
        reach("feed_taken")

    # One document.

    def _polled(self, visit: Visit) -> None:
        """Evaluate the response of a feed or sitemap; an unregistered one becomes a feed if it lists anything."""
        attempt, listing = visit.attempt, visit.listing
        row = self._row(attempt.url_hash)
        named = listing is not None and listing.problem is None and listing.named > 0
        # A redirect to a list that has responded must not wait for it again.
        self._heard.add(attempt.url_hash)
        # A feed that redirects temporarily to another domain is judged by the response from there and keeps its URL.
        if row is None and (senders := self._sent.get(attempt.url_hash)):
            for sender in filter(None, map(self._row, senders)):
                self._judge(sender, visit, named=named)
            return
        if row is None:
            if named and listing is not None:
                row = self._adopt(visit, listing)
            if self._search is not None:
                self._try(self._search.tried(attempt.url_hash, good=row is not None))
            if row is None:
                return
        self._judge(row, visit, named=named)

    def _row(self, url_hash: int) -> FeedRow | None:
        with self._raw_db.read() as tx:
            return polling_queries.feed_by_hash(tx, source_id=self._source_id, url_hash=url_hash)

    def _judge(self, row: FeedRow, visit: Visit, *, named: bool) -> None:
        """Count a response for or against a feed; after a temporary redirect, the target's response counts."""
        self._pages[row.id] = visit.attempt.page_id
        # If an operator disabled it during the request, it stays disabled, whatever the response.
        if row.health.trouble == BY_HAND:
            return
        # This visit was counted before the process was killed, and is now settled again.
        if row.last_polled_at is not None and row.last_polled_at >= to_micros(visit.finished_at):
            return
        elsewhere, trouble = _sent_to(visit), _trouble(visit)
        if elsewhere is not None and elsewhere not in self._heard and self._row(elsewhere) is None:
            self._sent.setdefault(elsewhere, set()).add(row.url_hash)
        elif trouble is not None:
            self._failed(row, visit, trouble)
        # A discovered or guessed URL that is not a feed: kept, it would use one of its source's places.
        elif row.count is None and row.origin != "configured" and not named:
            with self._raw_db.write() as tx:
                polling_queries.delete_unverified(tx, feed_id=row.id)
        else:
            self._succeeded(row, visit, visit.listing)

    def _adopt(self, visit: Visit, listing: PolledListing) -> FeedRow | None:
        attempt = visit.attempt
        kind = "feed" if listing.is_feed else "sitemap"
        origin = "robots" if self._search is not None and self._search.is_named(attempt.url_hash) else "discovered"
        with self._raw_db.write() as tx:
            # Count disabled feeds, too, or a site could forever name new ones that vanish at once.
            if self._room_for_feeds(tx) == 0:
                _log.warning("feed.too_many", url=attempt.url, limit=self._limits.feeds_per_source)
                return None
            self._insert(tx, attempt.url, attempt.url_hash, kind=kind, origin=origin)
            return polling_queries.feed_by_hash(tx, source_id=self._source_id, url_hash=attempt.url_hash)

    def _insert(self, tx: Transaction, url: str, url_hash: int, *, kind: str, origin: str) -> bool:
        source_id, now = self._source_id, to_micros(self._clock.now())
        return polling_queries.insert_feed(
            tx, source_id=source_id, url=url, url_hash=url_hash, kind=kind, origin=origin, now=now
        )

    def _room_for_feeds(self, tx: Transaction) -> int:
        """Return how many more feeds the source may have; deletes long-disabled feeds first if it is full."""
        source_id, most = self._source_id, self._limits.feeds_per_source
        room = most - polling_queries.count_feeds(tx, source_id=source_id)
        if room <= 0:
            before = to_micros(self._clock.now() - FORGOTTEN_AFTER)
            room += polling_queries.forget_disabled(tx, source_id=source_id, before=before)
        return max(0, room)

    def _failed(self, row: FeedRow, visit: Visit, trouble: Trouble) -> None:
        retry_after = visit.listing.retry_after_s if visit.listing is not None else None
        health = after_failure(
            row.health, trouble, now=visit.finished_at, interval=self._interval(row), retry_after_s=retry_after
        )
        # The parser's message helps an operator more than the reason of a successful response.
        words = visit.listing.problem if visit.listing is not None and trouble is Trouble.PARSE_ERROR else visit.reason
        error = clean(": ".join(filter(None, (words, visit.message))), 500) or trouble.value
        with self._raw_db.write() as tx:
            written = polling_queries.write_poll(
                tx, replace(row, last_polled_at=to_micros(visit.finished_at), health=health), error=error
            )
        if written and health.disabled_at is not None and row.health.disabled_at is None:
            _log.warning("feed.disabled", url=row.url, trouble=trouble.value, errors=health.errors, error=error)
        elif written:
            _log.info("feed.failed", url=row.url, trouble=trouble.value, errors=health.errors, error=error)

    def _succeeded(self, row: FeedRow, visit: Visit, listing: PolledListing | None) -> None:
        """Store a document's items, then that it was polled; a 304 or identical bytes contain nothing new."""
        updated, left = row, 0
        if listing is not None and visit.status is not None and 200 <= visit.status < 300:
            # A server without validators sends the same bytes at each poll: they contain nothing new.
            if visit.content_hash is None or visit.content_hash != row.content_hash:
                left = self._record(row, listing)
                self._follow(row, listing.children, depth=visit.attempt.depth + 1)
            # Skipped items are read again: the next response must be the whole document.
            updated = replace(
                row,
                kind="feed" if listing.is_feed else "sitemap",
                count=listing.named,
                content_hash=None if left else visit.content_hash,
                etag=None if left else visit.etag,
                last_modified=None if left else visit.last_modified,
            )
        judged = after_backlog if left else after_success
        health = judged(now=visit.finished_at, interval=self._interval(updated))
        error = (
            f"{left:,} of its items are left until fewer wait; {self._limits.feeds_waiting:,} may wait"
            if left
            else None
        )
        with self._raw_db.write() as tx:
            polled_at = to_micros(visit.finished_at)
            polling_queries.write_poll(tx, replace(updated, last_polled_at=polled_at, health=health), error=error)
            # Only a permanent redirect (301, 308) changes a feed's URL.
            target = _moved_to(visit)
            if target is not None:
                self._move(tx, row, target)

    def _move(self, tx: Transaction, row: FeedRow, target: str) -> None:
        try:
            url = parse(target)
        except UrlRefused:
            return
        if polling_queries.move_feed(tx, feed_id=row.id, source_id=self._source_id, url=url.fetch, url_hash=url.hash64):
            _log.info("feed.moved", url=row.url, to=url.fetch)

    def _interval(self, row: FeedRow) -> timedelta:
        return interval_of(row.origin, self._settings)

    # What it names.

    def _record(self, row: FeedRow, listing: PolledListing) -> int:
        """Store new items and items with a newer date as waiting. Return how many exceeded the limit."""
        source_id, now, items = self._source_id, self._clock.now(), listing.items
        # A sitemap that changes its URLs at each poll would fill the table and leave feeds no room.
        most = self._limits.feeds_waiting if listing.is_feed else int(self._limits.feeds_waiting * _SITEMAP_SHARE)
        left = 0
        with self._raw_db.read() as tx:
            known = polling_queries.known_items(tx, source_id=source_id, hashes=[item.found.url_hash for item in items])
        news = sort_items(items, known, now=now, max_age=timedelta(days=self._settings.max_age_days))
        if not news.trusted:
            _log.warning("feed.dates_not_believed", url=row.url, moved=len(news.dated))
        micros = to_micros(now)
        for rows, write in ((news.moved, polling_queries.renew_items), (news.fresh, polling_queries.insert_items)):
            # Use short transactions: SQLite has one writer, and the crawl settles pages at the same time.
            for part in _parts(rows):
                with self._raw_db.write() as tx:
                    # Count in the same transaction: another poll of the source may be filling the queue.
                    room = most - polling_queries.count_waiting(tx, source_id=source_id, limit=most)
                    write(tx, part[:room], source_id=source_id, feed_id=row.id, now=micros)
                left += len(part) - min(room, len(part))
        for part in _parts(news.dated):
            with self._raw_db.write() as tx:
                polling_queries.date_items(tx, part, source_id=source_id)
        reach("feed_recorded")
        if news.fresh or news.moved:
            _log.info("feed.news", url=row.url, fresh=len(news.fresh), moved=len(news.moved), left=left)
        if left:
            _log.warning("feed.backlog", url=row.url, left=left, limit=most)
        return left

    def _follow(self, row: FeedRow, children: Sequence[ListedUrl], *, depth: int) -> None:
        """Request the sitemaps of an index that are new or changed since they were read, according to the index."""
        if depth > _MAX_DEPTH:
            return
        now = self._clock.now()
        oldest = now - timedelta(days=self._settings.max_age_days)
        recent = [child for child in children if child.told_at is None or child.told_at >= oldest]
        # Ignore an index that lists itself.
        recent = [child for child in recent if child.found.url_hash != row.url_hash]
        # Sort newest first: the limit then drops the oldest.
        recent.sort(key=lambda child: child.told_at or oldest, reverse=True)
        due = [child.found for child in recent[: self._limits.feeds_per_source] if self._wants(child, now)]
        self._frontier.add(self._execution_id, [_list(found, depth) for found in due])

    def _wants(self, child: ListedUrl, now: datetime) -> bool:
        """Return whether a sitemap of an index should be read now; a new one becomes a feed of its own."""
        source_id, found = self._source_id, child.found
        with self._raw_db.write() as tx:
            row = polling_queries.feed_by_hash(tx, source_id=source_id, url_hash=found.url_hash)
            if row is None:
                if self._room_for_feeds(tx) == 0:
                    return False
                return self._insert(tx, found.url, found.url_hash, kind="sitemap", origin="index")
            read_at = None if row.last_polled_at is None else from_micros(row.last_polled_at)
            waits = asked_to_wait(row.health, polled_at=read_at, interval=self._interval(row))
            if row.health.disabled_at is not None or waits:
                return False
            # It was read before, and its index reports no change since: its own interval applies.
            if read_at is not None and (child.told_at is None or child.told_at <= read_at):
                return False
            polling_queries.make_due(tx, feed_id=row.id, now=to_micros(now))
            return True

    # Finding feeds.

    def _met(self, visit: Visit) -> None:
        """Process the feeds linked by a page: tried immediately in a feed search, recorded in an ordinary crawl."""
        if self._search is not None:
            self._try(self._search.visited(visit))
        # Every article of a blog has a comment feed: ignore feeds deeper in the site.
        elif not self._polls and visit.feeds and visit.attempt.depth <= _NOTICED_DEPTH:
            self._notice(visit.feeds)

    def _notice(self, feeds: Sequence[FoundUrl]) -> None:
        with self._raw_db.write() as tx:
            for found in feeds[: self._room_for_feeds(tx)]:
                if self._insert(tx, found.url, found.url_hash, kind="feed", origin="discovered"):
                    _log.info("feed.noticed", url=found.url)

    def _try(self, candidates: Sequence[FoundUrl]) -> None:
        if not candidates:
            return
        with self._raw_db.read() as tx:
            unknown = [
                found
                for found in candidates[: self._limits.feeds_per_source]
                if polling_queries.feed_by_hash(tx, source_id=self._source_id, url_hash=found.url_hash) is None
            ]
        self._frontier.add(self._execution_id, [_list(found, 1) for found in unknown])


def _trouble(visit: Visit) -> Trouble | None:
    trouble = trouble_of(visit.outcome, visit.status)
    if trouble is None and visit.listing is not None and visit.listing.problem is not None:
        return Trouble.PARSE_ERROR
    return trouble


def _sent_to(visit: Visit) -> int | None:
    """Return the hash of the URL on another domain that a response temporarily redirects to."""
    if visit.listing is not None or visit.redirected_to is None or visit.status not in (302, 303, 307):
        return None
    try:
        return parse(visit.redirected_to).hash64
    except UrlRefused:
        return None


def _moved_to(visit: Visit) -> str | None:
    if visit.listing is not None:
        return visit.listing.moved_to
    return visit.redirected_to if visit.status in (301, 308) else None


def _parts(rows: Sequence[polling_queries.FeedItemRow]) -> Iterator[Sequence[polling_queries.FeedItemRow]]:
    return (rows[start : start + _ITEMS_AT_ONCE] for start in range(0, len(rows), _ITEMS_AT_ONCE))


def _page(item: WaitingItem) -> Iterator[FoundUrl]:
    try:
        url = parse(item.url)
    except UrlRefused:
        return
    rank = _FEED_PRIORITY if item.is_feed else _SITEMAP_PRIORITY
    yield FoundUrl(url.fetch, url.hash64, url.domain, UrlKind.PAGE, 0, rank)


def _list(found: FoundUrl, depth: int) -> FoundUrl:
    # Request lists before pages, so that their items are requested in the same poll.
    return found._replace(kind=UrlKind.SITEMAP, depth=depth, priority=_LIST_PRIORITY)


# Limit of earlier polls whose items are recovered.
_LOOKED_BACK = 3
# How long items are stored. An edition reads those since the previous campaign, and its report may be repeated until
# the next: two years, plus one for safety.
ITEMS_KEPT = timedelta(days=3 * 366)
# Items that one poll checks for age: twice as many as it captures at most.
_LOOKED_AT = 10_000


def recover_items(raw_db: RawDatabase, *, job_id: int, source_id: int) -> int:
    """Queue items again that earlier polls claimed and never requested: they timed out, failed or were stopped.

    Return how many. Idempotent.
    """
    # Read without a write transaction: usually nothing is left, and SQLite's one writer is not needed.
    with raw_db.read() as tx:
        left = polling_queries.unasked(tx, job_id=job_id, limit=_LOOKED_BACK)
    if not left:
        return 0
    with raw_db.write() as tx:
        return sum(
            polling_queries.release_items(tx, hashes, source_id=source_id, execution_id=number)
            for number, hashes in left.items()
        )


def forget_items(raw_db: RawDatabase, *, now: datetime, looked_at: int = _LOOKED_AT) -> int:
    """Delete some captured items last listed so long ago that no edition reads them; return how many."""
    before = to_micros(now - ITEMS_KEPT)
    with raw_db.read() as tx:
        ids = polling_queries.item_ids(tx)
        if ids is None:
            return 0
        # A feed with new URLs at every poll would fill the table forever. Start at a random id, because old ids may
        # belong to items that were listed again; a later poll finds what this one misses.
        start = ids[0] + randrange(max(1, ids[1] - ids[0] + 2 - looked_at))  # noqa: S311 - no secret
        old = polling_queries.old_items(tx, start=start, limit=looked_at, before=before)
    if not old:
        return 0
    with raw_db.write() as tx:
        return polling_queries.delete_items(tx, old, before=before)


def count_unreached(
    raw_db: RawDatabase, feed_ids: Sequence[int], settings: FeedSettings, *, since: datetime, now: datetime
) -> int:
    """Count a failed poll for the feeds that a run could not request because their domain was unreachable.

    Return how many.
    """
    missed = 0
    with raw_db.write() as tx:
        for row in polling_queries.unpolled(tx, feed_ids, since=to_micros(since)):
            after = after_failure(row.health, Trouble.NETWORK, now=now, interval=interval_of(row.origin, settings))
            polled = replace(row, last_polled_at=to_micros(now), health=after)
            # An operator disabled or removed the feed while the poll ran.
            if not polling_queries.write_poll(tx, polled, error="its domain could not be reached"):
                continue
            missed += 1
            if after.disabled_at is not None:
                _log.warning("feed.disabled", url=row.url, trouble=after.trouble, errors=after.errors)
    return missed
