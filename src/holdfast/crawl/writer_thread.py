"""Where captures are filed and read: bytes first into the WARC file, then parsed, then sieved for new addresses.

One thread beside the event loop does it, so that records stand in one order in one file. No single answer may hold it
up: a large body is taken out of its framing and digested on a second thread before it is filed, and a document that
takes long to read is read on a third (`slow_desk`). A page that a parser cannot finish is named in the run file's slot,
so that only it is blamed if the process dies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from threading import Condition, Event, Lock, Thread
from typing import NamedTuple

from holdfast import log
from holdfast.clock import Clock
from holdfast.coordination.runfile import RunFile
from holdfast.crawl.context import FetchedPage
from holdfast.crawl.page_reading import UNREADABLE, DocumentFacts, DocumentReader, Later, LinkSieve, SievedLinks
from holdfast.crawl.storing import Payload, Storage, StoredPage
from holdfast.errors import Unavailable
from holdfast.failpoints import reach
from holdfast.types import Attempt, Link, Outcome, Truncated, Visit
from holdfast.values import dataclass

ROOM_BYTES = 48 * 1024 * 1024
"""Documents that wait here are in memory, decoded; one of the largest size that is parsed always fits."""


class SlowReader:
    """Does one thing after the other."""

    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._room_bytes = room_bytes
        self._held = 0
        self._freed = Condition()
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="slow-desk")

    def put(self, call: Callable[[], None], *, size: int) -> None:
        """Have something done that holds so many bytes until then; waits while there is no room for them."""
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
        """Take nothing more; finish what is here if `wait`."""
        with self._freed:
            self._closed = True
            self._freed.notify_all()
        self._thread.shutdown(wait=wait)


_log = log.get()
LARGE_BYTES = 1024 * 1024
"""A larger body is prepared on a thread of its own: 100 MB in chunks of one byte take a minute to put together."""
_POLL_S = 0.2
_AT_ONCE = 16
"""Captures that are ended before the loop is woken for them, while more wait: waking it for each costs two switches of
threads a page, and nothing waits for one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A large capture whose bodies were taken out of their framing and digested, on its way back to the desk."""

    capture: FetchedPage
    payloads: tuple[Payload, ...]
    problem: Exception | None = None
    """What went wrong meanwhile: told where all such things end."""
    taken: Event = field(default_factory=Event)
    """Set by the desk: only then is the next one prepared, so that at most two payloads are in memory."""


class _Slow(NamedTuple):
    """Something for the slow desk."""

    call: Callable[[], None]
    size: int


class CaptureWriter:
    """The thread that files and reads captures, in the order they come; large ones when they are prepared."""

    def __init__(
        self,
        *,
        storage: Storage,
        sieve: LinkSieve,
        reader: DocumentReader,
        run: RunFile,
        clock: Clock,
        done: Callable[[FetchedPage, Visit | None], None],
    ) -> None:
        self._storage, self._sieve, self._reader = storage, sieve, reader
        self._run, self._clock, self._done = run, clock, done
        self._inbox: SimpleQueue[FetchedPage | Prepared | _Slow | Callable[[], None] | None] = SimpleQueue()
        self._slow = SlowReader()
        self._digests = ThreadPoolExecutor(max_workers=1, thread_name_prefix="digests")
        self._preparing: dict[int, FetchedPage] = {}
        """Large captures that have not come back yet, by number; changed by the desk's thread alone."""
        self._filing = Lock()
        """Held while a record is written: an abandoned desk must not write beside its successor."""
        self.no_space = storage.no_space
        """Set while the disk has no room; cleared when a write succeeds again."""
        self.busy_since: float | None = None
        """Since when a parser has the page in hand; filing may wait for disk and database, and nobody is to blame."""
        self._in_hand: tuple[FetchedPage, Attempt, list[StoredPage]] | None = None
        self._abandoned = Event()
        self._given_up: int | None = None
        """The capture that was closed as parse_timeout while a parser still had it."""
        self.flush: Callable[[], None] = _nothing
        """Called when those that `done` was called for are to be taken up; set by who collects them."""
        self._thread = Thread(target=self._work, name="desk", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def put(self, capture: FetchedPage) -> None:
        """Hand over a capture; `done` is called from one of the desk's threads when it is filed and read."""
        self._inbox.put(capture)

    def stop(self) -> None:
        """Finish what is in the inbox; give up waiting for disk space."""
        self._storage.stop()
        self._inbox.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end; False if it did not."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def is_filing(self) -> bool:
        """Return whether a record is being written now; once abandoned and false, it stays so."""
        if self._filing.acquire(blocking=False):
            self._filing.release()
            return False
        return True

    def later(self, call: Callable[[], None], *, size: int) -> None:
        """Have a stored document read again, on the thread for those that take long."""
        self._inbox.put(_Slow(call, size))

    def do(self, call: Callable[[], None]) -> None:
        """Have something done on the desk's thread, between two captures."""
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
            elif isinstance(item, FetchedPage):
                self._survive(partial(self._receive, item), item)
            elif isinstance(item, Prepared):
                self._preparing.pop(item.capture.number, None)
                item.taken.set()
                self._survive(partial(self._handle_prepared, item), item.capture)
            elif isinstance(item, _Slow):
                self._slow.put(item.call, size=item.size)
            else:
                self._between(item)
        self.flush()
        self._digests.shutdown(wait=False, cancel_futures=True)
        self._slow.close(wait=not self._abandoned.is_set())

    def _between(self, call: Callable[[], None]) -> None:
        with self._filing:
            if not self._abandoned.is_set():
                call()

    def _receive(self, capture: FetchedPage) -> None:
        """File a capture, or have it prepared first if it is large."""
        if any(hop.body.size > LARGE_BYTES for hop in capture.hops):
            self._preparing[capture.number] = capture
            self._digests.submit(self._prepare, capture)
        else:
            self._handle(capture, ())

    def _prepare(self, capture: FetchedPage) -> None:
        """Take the bodies of a large capture out of their framing, and wait until the desk has taken them."""
        if self._abandoned.is_set():
            return
        payloads: tuple[Payload, ...] = ()
        problem = None
        try:
            reach("prepare", capture.hops[-1].url)
            payloads = tuple(self._storage.read(hop) for hop in capture.hops)
        except Exception as exc:
            problem = exc
        prepared = Prepared(capture=capture, payloads=payloads, problem=problem)
        self._inbox.put(prepared)
        while not prepared.taken.wait(_POLL_S) and not self._abandoned.is_set():
            pass

    def _handle_prepared(self, prepared: Prepared) -> None:
        if prepared.problem is not None:
            raise prepared.problem
        self._handle(prepared.capture, prepared.payloads)

    def _survive(self, work: Callable[[], None], capture: FetchedPage) -> None:
        """Do the work on a capture; the one place where what nobody foresaw ends, with the page closed and named."""
        try:
            work()
        except Exception as exc:
            _log.exception("crawl.desk_failed", action="desk", url=capture.attempt.url if capture.attempt else None)
            visit = None
            if capture.attempt is not None:
                reason, message = "internal_error", repr(exc)[:500]
                failed = replace(capture, hops=(), outcome=Outcome.FAILED, reason=reason, message=message)
                visit = _visit(failed, capture.attempt, self._clock.now(), [], None, SievedLinks())
            self._done(capture, visit)
            self.flush()

    def _file(self, capture: FetchedPage, payloads: Sequence[Payload]) -> list[StoredPage] | None:
        """Write a capture's exchanges; None if that is not ours any more."""
        with self._filing:
            if self._abandoned.is_set():
                return None
            read = payloads or (None,) * len(capture.hops)
            filed = [self._storage.file(hop, capture, one) for hop, one in zip(capture.hops, read, strict=True)]
            if capture.evidence is not None:
                self._storage.note(capture.evidence)
            return filed

    def _handle(self, capture: FetchedPage, payloads: Sequence[Payload]) -> None:
        try:
            filed = self._file(capture, payloads)
        except Unavailable:
            self._done(capture, None)  # told to stop while waiting for disk or database: the attempt stays open
            return
        if filed is None:
            return
        self._between(self._storage.rotate)
        attempt = capture.attempt
        if attempt is None:
            self._done(capture, None)
        elif not filed:
            self._done(capture, _visit(capture, attempt, self._clock.now(), [], None, SievedLinks()))
        elif (recalled := filed[-1].recalled) is not None:
            reading = DocumentFacts(links=tuple(Link(url, "a") for url in recalled))
            self._conclude(capture, attempt, filed, reading)
        else:
            self._read(capture, attempt, filed)

    def _read(self, capture: FetchedPage, attempt: Attempt, filed: list[StoredPage]) -> None:
        """Parse the last answer here, or on the slow thread if it looks as if that would take long."""
        self._in_hand = capture, attempt, filed
        self.busy_since = self._clock.monotonic()
        self._run.take(0, attempt.id, self.busy_since)
        reach("parse", attempt.url)
        last = filed[-1]
        reading = self._reader.read(capture, attempt, last.head, last.payload, last.payload_digest)
        if self._given_up == capture.number:
            return
        self._run.put_down(0)
        self.busy_since = self._in_hand = None
        if isinstance(reading, DocumentFacts):
            self._conclude(capture, attempt, filed, reading)
        else:
            lean = [replace(one, payload=None) for one in filed]
            call = partial(self._read_slowly, capture, attempt, lean, reading)
            self._slow.put(partial(self._survive, call, capture), size=reading.size)

    def _read_slowly(self, capture: FetchedPage, attempt: Attempt, filed: list[StoredPage], later: Later) -> None:
        self._run.take(1, attempt.id, self._clock.monotonic())
        try:
            reach("read_slowly", attempt.url)
            reading = later.call()
        finally:
            self._run.put_down(1)
        self._conclude(capture, attempt, filed, reading)
        self.flush()

    def _conclude(
        self, capture: FetchedPage, attempt: Attempt, filed: list[StoredPage], reading: DocumentFacts
    ) -> None:
        if reading.problem == UNREADABLE:
            now = self._clock.now()
            capture = replace(capture, outcome=Outcome.FAILED, reason=UNREADABLE, retry_at=now)
        capture = self._storage.judged(capture, attempt, reading)
        sieved = self._reader.sift(self._sieve, capture, attempt, reading)
        visit = _visit(capture, attempt, self._clock.now(), filed, reading, sieved)
        self._done(capture, self._storage.kept(visit, capture, reading))

    def abandon(self) -> Iterator[tuple[FetchedPage, Visit | None]]:
        """Give up a thread that cannot finish a page: yield that page as parse_timeout, then what waits behind it.

        What the slow desk has is still finished there. Whoever takes these must expect one of them from `done`, too:
        the thread may have ended its page at this very moment.
        """
        self._abandoned.set()
        self.flush()
        if (in_hand := self._in_hand) is not None:
            capture, attempt, filed = in_hand
            self._given_up = capture.number
            reading = DocumentFacts(problem="parse_timeout")
            yield capture, _visit(capture, attempt, self._clock.now(), filed, reading, SievedLinks())
            self._run.put_down(0)
        yield from ((capture, None) for capture in list(self._preparing.values()))
        while not self._inbox.empty():
            if isinstance(waiting := self._inbox.get(), FetchedPage):
                yield waiting, None
        self._inbox.put(None)  # wakes a thread that waits for work: there is none


def _visit(
    capture: FetchedPage,
    attempt: Attempt,
    now: datetime,
    filed: Sequence[StoredPage],
    reading: DocumentFacts | None,
    sieved: SievedLinks,
) -> Visit:
    """Return the whole account of an attempt."""
    last = filed[-1] if filed else None
    own = filed[0] if len(filed) == 1 else None
    unchanged = own is not None and own.is_revisit and capture.reason == "ok"
    outcome, reason = capture.outcome, "unchanged" if unchanged else capture.reason
    notes = reading.notes if reading is not None else ()
    if reading is not None and reading.problem is not None and outcome is Outcome.SUCCESS:
        reason, notes = reading.problem, (*dict.fromkeys((*notes, reading.problem)),)
    if capture.hops and capture.hops[-1].truncated is Truncated.LENGTH and outcome is Outcome.SUCCESS:
        reason = "truncated_length"
    page = reading.page if reading is not None else None
    message = capture.message or ", ".join(notes) or None
    return Visit(
        attempt=attempt,
        token=capture.token,
        outcome=outcome,
        reason=reason,
        message=message,
        started_at=capture.started_at,
        finished_at=capture.answered_at or now,
        status=capture.hops[-1].status if capture.hops else None,
        media_type=last.head.media_type if last else None,
        wire_bytes=sum(len(hop.response_head) + hop.body.size for hop in capture.hops),
        requests=len(capture.hops),
        record=last.ref if last else None,
        payload_digest=last.payload_digest if last else None,
        content_hash=reading.content_hash if reading else None,
        redirected_to=_landed(capture),
        title=page.title if page else None,
        language=page.language if page else None,
        etag=_validator(own, "etag"),
        last_modified=_validator(own, "last-modified"),
        original=own.original if own else None,
        found=tuple(sieved.found),
        shallower=tuple(sieved.shallower),
        excluded=dict(sieved.excluded),
        retry_at=capture.retry_at,
        listing=sieved.listing,
        feeds=tuple(sieved.feeds),
    )


def _nothing() -> None:
    """Collect nothing."""


def _landed(capture: FetchedPage) -> str | None:
    return capture.redirected_to or (capture.hops[-1].url if len(capture.hops) > 1 else None)


def _validator(filed: StoredPage | None, name: str) -> str | None:
    """Return a validator that is worth sending back (R11: no megabyte ETags)."""
    value = filed.head.get(name) if filed is not None and filed.head.status in (200, 304) else None
    return value if value is not None and 0 < len(value) <= 1024 and value.isprintable() else None
