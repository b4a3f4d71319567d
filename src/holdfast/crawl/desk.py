"""Where captures are written and read: bytes first into the WARC file, then parsed, then sieved for new addresses.

All of it happens on one thread beside the event loop. A page that a parser cannot finish is named in the run file's
slot, so that only it is blamed if the process dies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread

from holdfast import log
from holdfast.clock import Clock
from holdfast.coordination.runfile import RunFile
from holdfast.crawl.crew import Capture
from holdfast.crawl.links import Sieve, Sieved
from holdfast.crawl.outcomes import is_conditional
from holdfast.crawl.reading import UNREADABLE, Later, Reader, Reading
from holdfast.crawl.slow_desk import SlowDesk
from holdfast.crawl.tape import Tape
from holdfast.errors import NoSpace, Unavailable
from holdfast.failpoints import reach
from holdfast.types import Attempt, Fetched, Original, Outcome, RecordRef, Visit
from holdfast.warc.digest import sha256_of
from holdfast.warc.payload import HttpHead, parse_head, payload_chunks
from holdfast.warc.writer import Exchange, Profile

_log = log.get()
_NO_SPACE_WAIT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    """One exchange in the WARC file."""

    ref: RecordRef
    head: HttpHead
    payload: bytes | None
    """The transfer-decoded body, if it is small enough to be read."""
    payload_digest: str
    original: Original | None
    """Set if a later capture of the page may point here."""
    is_revisit: bool


class Desk:
    """The thread that files and reads captures, in the order they come."""

    def __init__(self, *, tape: Tape, sieve: Sieve, reader: Reader, run: RunFile, clock: Clock,
                 done: Callable[[Capture, Visit | None], None]) -> None:  # fmt: skip
        self._tape, self._sieve, self._reader = tape, sieve, reader
        self._run, self._clock, self._done = run, clock, done
        self._inbox: SimpleQueue[Capture | Callable[[], None] | None] = SimpleQueue()
        self._slow = SlowDesk()
        self._stop = Event()
        self.no_space = Event()
        """Set while the disk has no room; cleared when a write succeeds again."""
        self.busy_since: float | None = None
        """Since when a parser has the page in hand; filing may wait for disk and database, and nobody is to blame."""
        self._in_hand: tuple[Capture, Attempt, list[Filed]] | None = None
        self._abandoned = Event()
        self._thread = Thread(target=self._work, name="desk", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def put(self, capture: Capture) -> None:
        """Hand over a capture; `done` is called from the desk's thread when it is filed and read."""
        self._inbox.put(capture)

    def stop(self) -> None:
        """Finish what is in the inbox; give up waiting for disk space."""
        self._stop.set()
        self._inbox.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end; False if it did not."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def do(self, call: Callable[[], None]) -> None:
        """Have something done on the desk's thread, between two captures."""
        self._inbox.put(call)

    def _work(self) -> None:
        while not self._abandoned.is_set() and (item := self._inbox.get()) is not None:
            if isinstance(item, Capture):
                self._survive(partial(self._handle, item), item)
            else:
                item()
        self._slow.close(wait=not self._abandoned.is_set())

    def _survive(self, work: Callable[[], None], capture: Capture) -> None:
        """Do the work on a capture; the one place where what nobody foresaw ends, with the page closed and named."""
        try:
            work()
        except Exception as exc:
            _log.exception("crawl.desk_failed", action="desk", url=capture.attempt.url if capture.attempt else None)
            visit = None
            if capture.attempt is not None:
                reason, message = "internal_error", repr(exc)[:500]
                failed = replace(capture, hops=(), outcome=Outcome.FAILED, reason=reason, message=message)
                visit = _visit(failed, capture.attempt, self._clock.now(), [], None, Sieved())
            self._finish(capture, visit)

    def _handle(self, capture: Capture) -> None:
        try:
            filed = [self._file(hop, capture) for hop in capture.hops]
        except Unavailable:
            self._finish(capture, None)  # told to stop while waiting for disk or database: the attempt stays open
            return
        self._tape.rotate()
        attempt = capture.attempt
        if attempt is None:
            self._finish(capture, None)
        elif not filed:
            self._finish(capture, _visit(capture, attempt, self._clock.now(), [], None, Sieved()))
        else:
            self._read(capture, attempt, filed)

    def _read(self, capture: Capture, attempt: Attempt, filed: list[Filed]) -> None:
        """Parse the last answer here, or on the slow thread if it looks as if that would take long."""
        self._in_hand = capture, attempt, filed
        self.busy_since = self._clock.monotonic()
        self._run.take(0, attempt.id, self.busy_since)
        reach("parse", attempt.url)
        last = filed[-1]
        reading = self._reader.read(capture, attempt, last.head, last.payload, last.payload_digest)
        if self._abandoned.is_set():
            return
        self._run.put_down(0)
        self.busy_since = self._in_hand = None
        if isinstance(reading, Reading):
            self._conclude(capture, attempt, filed, reading)
        else:
            lean = [replace(one, payload=None) for one in filed]
            call = partial(self._read_slowly, capture, attempt, lean, reading)
            self._slow.put(partial(self._survive, call, capture), size=reading.size)

    def _read_slowly(self, capture: Capture, attempt: Attempt, filed: list[Filed], later: Later) -> None:
        self._run.take(1, attempt.id, self._clock.monotonic())
        try:
            reading = later.call()
        finally:
            self._run.put_down(1)
        self._conclude(capture, attempt, filed, reading)

    def _conclude(self, capture: Capture, attempt: Attempt, filed: list[Filed], reading: Reading) -> None:
        if reading.problem == UNREADABLE:
            now = self._clock.now()
            capture = replace(capture, outcome=Outcome.FAILED, reason=UNREADABLE, retry_at=now)
        sieved = self._reader.sift(self._sieve, capture, attempt, reading)
        self._finish(capture, _visit(capture, attempt, self._clock.now(), filed, reading, sieved))

    def _finish(self, capture: Capture, visit: Visit | None) -> None:
        self._done(capture, visit)
        for hop in capture.hops:
            hop.body.close()

    def abandon(self) -> Iterator[tuple[Capture, Visit | None]]:
        """Give up a thread that cannot finish a page: yield that page as parse_timeout, then what waits behind it."""
        self._abandoned.set()
        if self._in_hand is not None:
            capture, attempt, filed = self._in_hand
            reading = Reading(problem="parse_timeout")
            yield capture, _visit(capture, attempt, self._clock.now(), filed, reading, Sieved())
            self._run.put_down(0)
        while not self._inbox.empty():
            if isinstance(waiting := self._inbox.get(), Capture):
                yield waiting, None

    def _file(self, hop: Fetched, capture: Capture) -> Filed:
        """Write one exchange, as a revisit if the page's original has the same bytes; wait while the disk is full."""
        head = parse_head(hop.response_head)
        payload, digest = _payload(head, hop, self._reader.max_bytes)
        attempt = capture.attempt
        original = self._reader.may_refer_to(attempt) if attempt is not None and hop is capture.hops[0] else None
        profile = _profile(hop, digest, original)
        exchange = Exchange(
            url=hop.url, started_at=hop.started_at, ip=hop.ip, request_head=hop.request_head,
            response_head=hop.response_head, body=hop.body, payload_digest=digest, truncated=hop.truncated,
            revisit_of=original if profile else None, profile=profile, tls_verified=hop.tls_verified,
        )  # fmt: skip
        while True:
            try:
                appended = self._tape.append(exchange)
                self.no_space.clear()
                break
            except Unavailable as exc:
                full = isinstance(exc, NoSpace)
                if not self.no_space.is_set() or not full:
                    _log.error("crawl.no_space" if full else "crawl.file_later", message=str(exc))
                if full:
                    self.no_space.set()
                if self._stop.wait(_NO_SPACE_WAIT_S):
                    raise
        fresh = None
        if profile is None and hop.status == 200 and hop.truncated is None:
            fresh = Original(
                record_id=appended.record_id, url=hop.url, captured_at=hop.started_at, payload_digest=digest,
                warc_file_id=appended.ref.warc_file_id, offset=appended.ref.offset,
            )  # fmt: skip
        return Filed(ref=appended.ref, head=head, payload=payload, payload_digest=digest, original=fresh,
                     is_revisit=profile is not None)  # fmt: skip


def _payload(head: HttpHead, hop: Fetched, limit: int) -> tuple[bytes | None, str]:
    """Return the transfer-decoded body, unless it is too large to read, and its digest."""
    if hop.body.size <= limit:
        payload = b"".join(payload_chunks(head, hop.body))
        return payload, sha256_of((payload,))
    return None, sha256_of(payload_chunks(head, hop.body))


def _profile(hop: Fetched, digest: str, original: Original | None) -> Profile | None:
    """Return how this answer repeats the page's last committed original, if it does."""
    if original is None:
        return None
    if hop.status == 304:
        return Profile.SERVER_NOT_MODIFIED if is_conditional(hop.request_head) else None
    same = hop.status == 200 and digest == original.payload_digest and hop.truncated is None and hop.body.size > 0
    return Profile.IDENTICAL_PAYLOAD if same else None


def _visit(capture: Capture, attempt: Attempt, now: datetime, filed: Sequence[Filed], reading: Reading | None,
           sieved: Sieved) -> Visit:  # fmt: skip
    """Return the whole account of an attempt."""
    last = filed[-1] if filed else None
    own = filed[0] if len(filed) == 1 else None
    unchanged = own is not None and own.is_revisit and capture.reason == "ok"
    outcome, reason = capture.outcome, "unchanged" if unchanged else capture.reason
    notes = reading.notes if reading is not None else ()
    if reading is not None and reading.problem is not None and outcome is Outcome.SUCCESS:
        reason, notes = reading.problem, (*dict.fromkeys((*notes, reading.problem)),)
    if capture.hops and capture.hops[-1].truncated is not None and outcome is Outcome.SUCCESS:
        reason = f"truncated_{capture.hops[-1].truncated.value}"
    page = reading.page if reading is not None else None
    message = capture.message or ", ".join(notes) or None
    return Visit(
        attempt=attempt, token=capture.token, outcome=outcome, reason=reason, message=message,
        started_at=capture.started_at, finished_at=now, status=capture.hops[-1].status if capture.hops else None,
        media_type=last.head.media_type if last else None,
        wire_bytes=sum(len(hop.response_head) + hop.body.size for hop in capture.hops), requests=len(capture.hops),
        record=last.ref if last else None, payload_digest=last.payload_digest if last else None,
        content_hash=reading.content_hash if reading else None, redirected_to=_landed(capture),
        title=page.title if page else None, language=page.language if page else None,
        etag=_validator(own, "etag"), last_modified=_validator(own, "last-modified"),
        original=own.original if own else None,
        found=tuple(sieved.found), excluded=dict(sieved.excluded), retry_at=capture.retry_at, listing=sieved.listing,
        feeds=tuple(sieved.feeds),
    )  # fmt: skip


def _landed(capture: Capture) -> str | None:
    return capture.redirected_to or (capture.hops[-1].url if len(capture.hops) > 1 else None)


def _validator(filed: Filed | None, name: str) -> str | None:
    """Return a validator that is worth sending back (R11: no megabyte ETags)."""
    value = filed.head.get(name) if filed is not None and filed.head.status in (200, 304) else None
    return value if value is not None and 0 < len(value) <= 1024 and value.isprintable() else None
