"""Stores and reads fetched pages: bytes go into the WARC file first, then are parsed and filtered for new URLs.

One thread beside the event loop does this, so that records have one order in one file. No single response may
block it: a large body is transfer-decoded and digested on a second thread before it is stored, and a document
that is slow to parse is parsed on a third (`SlowReader`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from threading import Condition, Event, Thread
from typing import NamedTuple

from holdfast import log
from holdfast.clock import Clock
from holdfast.crawl.link_filter import FilteredLinks, LinkFilter
from holdfast.crawl.outcomes import PageUnderWay, StoredExchange
from holdfast.crawl.page_reading import UNREADABLE, DocumentFacts, DocumentReader, SlowDocument, left_out
from holdfast.crawl.storing import Payload, Storage, read_payload
from holdfast.errors import Unavailable
from holdfast.failpoints import reach
from holdfast.processes.runfile import RunFile
from holdfast.types import Attempt, Link, Outcome, Truncated, Visit
from holdfast.values import dataclass
from holdfast.warc.payload import parse_head

# Waiting documents are decoded in memory; this fits two pages of the largest parsed size.
ROOM_BYTES = 24 * 1024 * 1024


class SlowReader:
    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._room_bytes = room_bytes
        self._held = 0
        self._freed = Condition()
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="slow-reader")

    def put(self, call: Callable[[], None], *, size: int) -> None:
        """Queue a call that holds `size` bytes until it runs; blocks while there is no room for them."""
        with self._freed:
            self._freed.wait_for(lambda: self._held == 0 or self._held + size <= self._room_bytes or self._closed)
            self._held += size
        self._thread.submit(self._do, call, size)

    def _do(self, call: Callable[[], None], size: int) -> None:
        try:
            call()
        finally:
            with self._freed:
                self._held -= size
                self._freed.notify_all()

    def close(self, *, wait: bool) -> None:
        """Accept no more calls; finish the queued ones if `wait`."""
        with self._freed:
            self._closed = True
            self._freed.notify_all()
        self._thread.shutdown(wait=wait)


_log = log.get()
# Prepare a larger body on a separate thread: assembling 100 MB from chunks of one byte takes a minute.
LARGE_BYTES = 1024 * 1024
_POLL_S = 0.2
# Number of finished pages before the loop is woken, while more wait: waking it for each costs two thread switches per
# page, and nothing waits for a single page.
_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPage:
    page: PageUnderWay
    payloads: tuple[Payload, ...]
    problem: Exception | None = None
    """Error during preparation; raised again on the writer thread, where such errors are handled."""
    # The writer thread sets it: only then is the next page prepared, so that at most two payloads are in memory.
    taken: Event = field(default_factory=Event)


class _SlowCall(NamedTuple):
    call: Callable[[], None]


class CaptureWriter:
    """The thread that stores and reads pages in the order of arrival; large ones when they are prepared."""

    def __init__(
        self,
        *,
        storage: Storage,
        link_filter: LinkFilter,
        reader: DocumentReader,
        run: RunFile,
        clock: Clock,
        done: Callable[[PageUnderWay, Visit | None], None],
    ) -> None:
        self._storage, self._link_filter, self._reader = storage, link_filter, reader
        self._run, self._clock, self._done = run, clock, done
        self._inbox: SimpleQueue[PageUnderWay | PreparedPage | _SlowCall | Callable[[], None] | None] = SimpleQueue()
        self._slow = SlowReader()
        self._digests = ThreadPoolExecutor(max_workers=1, thread_name_prefix="digests")
        self._preparing: dict[int, PageUnderWay] = {}
        """Large pages that have not come back yet, by number; changed by the writer thread alone."""
        # Hold it while writing a record: an abandoned writer must not write beside its successor, and may have just
        # started its next page.
        self._storing = storage.storing
        self.no_space = storage.no_space
        """Set while the disk has no room; cleared when a write succeeds again."""
        # Ignore time in which a page is stored: that may wait for disk and database, which is not the page's fault.
        self.parsing_since: float | None = None
        """Since when a parser has a page; None while none has."""
        self._parsing: PageUnderWay | None = None
        self._abandoned = Event()
        self._given_up: int | None = None
        """The page that was closed as parse_timeout while a parser still had it."""
        self.flush: Callable[[], None] = _nothing
        """Called when those that `done` was called for are to be taken up; set by `crawl.process`."""
        self._thread = Thread(target=self._work, name="capture-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, page: PageUnderWay) -> None:
        """Queue a page; `done` is called from one of the writer's threads when it is stored and read."""
        self._inbox.put(page)

    def stop(self) -> None:
        """Finish the queued pages; stop waiting for disk space."""
        self._storage.stop()
        self._inbox.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end; return False if it did not."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def is_storing(self) -> bool:
        """Return whether a record is being written now; once abandoned and false, it stays false."""
        if self._storing.acquire(blocking=False):
            self._storing.release()
            return False
        return True

    def later(self, call: Callable[[], None]) -> None:
        """Run a call that reads a whole document on the thread for slow documents."""
        self._inbox.put(_SlowCall(call))

    def do(self, call: Callable[[], None]) -> None:
        """Run a call on the writer thread, between two pages."""
        self._inbox.put(call)

    def _work(self) -> None:
        closing, ended = False, 0
        while not self._abandoned.is_set() and not (closing and not self._preparing):
            if ended >= _AT_ONCE or self._inbox.empty():
                self.flush()
                ended = 0
            ended += 1
            item = self._inbox.get()
            if item is None:
                closing = True
            elif isinstance(item, PageUnderWay):
                self._survive(partial(self._receive, item), item)
            elif isinstance(item, PreparedPage):
                self._preparing.pop(item.page.number, None)
                item.taken.set()
                self._survive(partial(self._handle_prepared, item), item.page)
            elif isinstance(item, _SlowCall):
                self._slow.put(item.call, size=self._reader.max_bytes)
            else:
                self._between(item)
        self.flush()
        self._digests.shutdown(wait=False, cancel_futures=True)
        self._slow.close(wait=not self._abandoned.is_set())

    def _between(self, call: Callable[[], None]) -> None:
        with self._storing:
            if not self._abandoned.is_set():
                call()

    def _receive(self, page: PageUnderWay) -> None:
        """Store a page, or have it prepared first if it is large."""
        if any(hop.body.size > LARGE_BYTES for hop in page.hops):
            self._preparing[page.number] = page
            self._digests.submit(self._prepare, page)
        else:
            self._handle(page, ())

    def _prepare(self, page: PageUnderWay) -> None:
        """Decode the bodies of a large page, and wait until the writer thread has received them."""
        if self._abandoned.is_set():
            return
        payloads: tuple[Payload, ...] = ()
        problem = None
        try:
            reach("prepare", page.hops[-1].url)
            most = self._reader.max_bytes
            payloads = tuple(read_payload(parse_head(hop.response_head), hop, most) for hop in page.hops)
        except Exception as exc:
            problem = exc
        prepared = PreparedPage(page=page, payloads=payloads, problem=problem)
        self._inbox.put(prepared)
        while not prepared.taken.wait(_POLL_S) and not self._abandoned.is_set():
            pass

    def _handle_prepared(self, prepared: PreparedPage) -> None:
        if prepared.problem is not None:
            raise prepared.problem
        self._handle(prepared.page, prepared.payloads)

    def _survive(self, work: Callable[[], None], page: PageUnderWay) -> None:
        """Run the work on a page; the single place that handles unexpected errors, by closing and naming the page."""
        try:
            work()
        except Exception as exc:
            _log.exception("crawl.write_failed", action="write", url=page.attempt.url if page.attempt else None)
            visit = None
            if page.attempt is not None:
                reason, message = "internal_error", repr(exc)[:500]
                failed = replace(page, hops=[], stored=[], outcome=Outcome.FAILED, reason=reason, message=message)
                visit = _visit(failed, page.attempt, self._clock.now(), None, FilteredLinks())
            self._done(page, visit)
            self.flush()

    def _store(self, page: PageUnderWay, payloads: Sequence[Payload]) -> bool:
        """Store a page's responses; return False if this writer was abandoned meanwhile."""
        with self._storing:
            if self._abandoned.is_set():
                return False
            read = payloads or (None,) * len(page.hops)
            page.stored = [self._storage.store(hop, page, one) for hop, one in zip(page.hops, read, strict=True)]
            if page.evidence is not None:
                self._storage.store_evidence(page.evidence)
            return True

    def _handle(self, page: PageUnderWay, payloads: Sequence[Payload]) -> None:
        try:
            if not self._store(page, payloads):
                return
        except Unavailable:
            self._done(page, None)  # the writer was stopped while waiting for disk or database: the attempt stays open
            return
        self._between(self._storage.rotate)
        attempt = page.attempt
        if attempt is None:
            self._done(page, None)
        elif not page.stored:
            self._done(page, _visit(page, attempt, self._clock.now(), None, FilteredLinks()))
        elif (recalled := page.stored[-1].recalled) is not None:
            self._conclude(page, attempt, DocumentFacts(links=tuple(Link(url, "a") for url in recalled)))
        else:
            self._read(page, attempt)

    def _read(self, page: PageUnderWay, attempt: Attempt) -> None:
        """Parse the last response here, or on the slow thread if it looks slow to parse."""
        self._parsing = page
        self.parsing_since = self._clock.monotonic()
        # Record the page in the run file, which outlives this process: if a parser kills the process, only this page is
        # blamed.
        self._run.take(0, attempt.id, self.parsing_since)
        try:
            reach("parse", attempt.url)
            reading = self._reader.read(page, attempt, page.stored[-1])
        finally:
            # Clear the slot in any case: a page that is no longer being parsed must not look as if it hung. Skip this
            # if it was given up meanwhile: the slot may be the next writer's.
            is_ours = self._given_up != page.number
            if is_ours:
                self._run.put_down(0)
                self.parsing_since = self._parsing = None
        if not is_ours:
            return
        if isinstance(reading, DocumentFacts):
            self._conclude(page, attempt, reading)
        else:
            # Exclude the bodies: the call holds the one that it reads, and counts it.
            page.stored = [replace(one, payload=None) for one in page.stored]
            call = partial(self._read_slowly, page, attempt, reading)
            self._slow.put(partial(self._survive, call, page), size=reading.size)

    def _read_slowly(self, page: PageUnderWay, attempt: Attempt, slow: SlowDocument) -> None:
        self._run.take(1, attempt.id, self._clock.monotonic())
        try:
            reach("read_slowly", attempt.url)
            reading = slow.call()
        finally:
            self._run.put_down(1)
        self._conclude(page, attempt, reading)
        self.flush()

    def _conclude(self, page: PageUnderWay, attempt: Attempt, reading: DocumentFacts) -> None:
        if reading.problem == UNREADABLE:
            # Retry at once: the original was marked as damaged, so the next request has no condition.
            page = replace(page, outcome=Outcome.FAILED, reason=UNREADABLE, retry_at=self._clock.now())
        page = self._storage.judged(page, attempt, reading)
        filtered = self._reader.sift(self._link_filter, page, attempt, reading)
        if filtered.refused is not None:
            page = replace(page, outcome=filtered.refused[0], reason=filtered.refused[1])
        visit = _visit(page, attempt, self._clock.now(), reading, filtered)
        self._done(page, self._storage.kept(visit, page, reading))

    def abandon(self) -> Iterator[tuple[PageUnderWay, Visit | None]]:
        """Abandon a thread that cannot finish a page: yield that page as parse_timeout, then the queued ones.

        The slow reader still finishes its calls. One of these pages may also come from `done`: the thread may have
        finished its page at this very moment.
        """
        self._abandoned.set()
        self.flush()
        if (page := self._parsing) is not None and page.attempt is not None:
            self._given_up = page.number
            reading = DocumentFacts(problem="parse_timeout")
            filtered = FilteredLinks(excluded=left_out(page, page.attempt, reading))
            yield page, _visit(page, page.attempt, self._clock.now(), reading, filtered)
            self._run.put_down(0)
        yield from ((page, None) for page in list(self._preparing.values()))
        while not self._inbox.empty():
            if isinstance(waiting := self._inbox.get(), PageUnderWay):
                yield waiting, None
        self._inbox.put(None)  # wakes a thread that waits for work


def _visit(
    page: PageUnderWay, attempt: Attempt, now: datetime, reading: DocumentFacts | None, filtered: FilteredLinks
) -> Visit:
    hops, stored = page.hops, page.stored
    last = stored[-1] if stored else None
    # Later conditional requests and revisits may only use the page's own response, not the end of a redirect.
    own = stored[0] if len(stored) == 1 else None
    unchanged = own is not None and own.is_revisit and page.reason == "ok"
    outcome, reason = page.outcome, "unchanged" if unchanged else page.reason
    notes = reading.notes if reading is not None else ()
    if reading is not None and reading.problem is not None and outcome is Outcome.SUCCESS:
        reason, notes = reading.problem, (*dict.fromkeys((*notes, reading.problem)),)
    if hops and hops[-1].truncated is Truncated.LENGTH and outcome is Outcome.SUCCESS:
        reason = "truncated_length"
    parsed = reading.page if reading is not None else None
    return Visit(
        attempt=attempt,
        token=page.token,
        outcome=outcome,
        reason=reason,
        message=page.message or ", ".join(notes) or None,
        started_at=page.started_at,
        finished_at=page.answered_at or now,
        status=hops[-1].status if hops else None,
        media_type=last.head.media_type if last else None,
        wire_bytes=sum(len(hop.response_head) + hop.body.size for hop in hops),
        requests=len(hops),
        record=last.ref if last else None,
        payload_digest=last.payload_digest if last else None,
        content_hash=reading.content_hash if reading else None,
        redirected_to=page.redirected_to or (hops[-1].url if len(hops) > 1 else None),
        title=parsed.title if parsed else None,
        language=parsed.language if parsed else None,
        etag=_validator(own, "etag"),
        last_modified=_validator(own, "last-modified"),
        original=own.original if own else None,
        found=tuple(filtered.found),
        shallower=tuple(filtered.shallower),
        excluded=dict(filtered.excluded),
        retry_at=page.retry_at,
        listing=filtered.listing,
        feeds=tuple(filtered.feeds),
    )


def _nothing() -> None:
    """Do nothing; the default `flush` callback."""


def _validator(stored: StoredExchange | None, name: str) -> str | None:
    """Return a validator if it is worth sending back."""
    value = stored.head.get(name) if stored is not None and stored.head.status in (200, 304) else None
    # Every later request sends it: a server may send an ETag of a megabyte, or one that breaks a header.
    return value if value is not None and 0 < len(value) <= 1024 and value.isprintable() else None
