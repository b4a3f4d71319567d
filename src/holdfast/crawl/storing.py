"""Stores responses before parsing: in the WARC file, as a revisit if the page's original has the same bytes.

Waits for a full disk or an unavailable database until the writer is stopped. The other policy, which stores no
bodies, is `crawl.signal_storage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Event, Lock
from typing import NamedTuple, Protocol, TypeVar

from holdfast import log
from holdfast.crawl.outcomes import ROBOTS, PageUnderWay, StoredExchange, is_conditional
from holdfast.crawl.page_reading import DocumentFacts
from holdfast.crawl.warc_output import WarcOutput
from holdfast.db.raw import RawDatabase
from holdfast.errors import HoldfastError, NoSpace, NotFound, Unavailable
from holdfast.storage.roots import find_file, stored_file
from holdfast.storage.store import FileKey, StoredFile
from holdfast.types import Attempt, Fetched, FetchFailed, Original, UrlKind, Visit
from holdfast.warc import queries as files
from holdfast.warc.outfile import OPEN_SUFFIX
from holdfast.warc.payload import HttpHead, parse_head, payload_chunks
from holdfast.warc.reader import read_response_at
from holdfast.warc.record import Profile, RecordType, sha256_of
from holdfast.warc.writer import ExchangeDraft, RecordDraft

T = TypeVar("T")

_log = log.get()
_AGAIN_S = 1.0


class Payload(NamedTuple):
    """A body after transfer decoding."""

    data: bytes | None
    """None if it is too large to be read."""
    digest: str


class Storage(Protocol):
    """A storage policy as used by the writer thread: how responses are stored, and which parsed data remains."""

    no_space: Event
    """Set while the disk is full; cleared when a write succeeds again."""
    storing: Lock
    """Held during a write; shared by all storages that write to the same file."""

    def store(self, hop: Fetched, page: PageUnderWay, payload: Payload | None = None) -> StoredExchange:
        """Store one response; raise `Unavailable` if stopped while waiting for the disk or the database.

        `payload` is the result of `read_payload` for it, if that was called before.
        """
        ...

    def store_evidence(self, failure: FetchFailed) -> None:
        """Store the received bytes of a malformed response; raise `Unavailable` like `store`."""
        ...

    def rotate(self) -> None:
        """Start a new file if this one is full, old or idle."""
        ...

    def stop(self) -> None: ...

    def judged(self, page: PageUnderWay, attempt: Attempt, reading: DocumentFacts) -> PageUnderWay: ...

    def kept(self, visit: Visit, page: PageUnderWay, reading: DocumentFacts) -> Visit:
        """Return the visit with the data that this policy stores of the page."""
        ...


class WarcStorage:
    """Writes to a WARC file. `refer_to` returns the original that a revisit of an attempt's page may refer to.

    With `polls`, lists of URLs are the feeds requested by a poll.
    """

    def __init__(
        self, output: WarcOutput, *, refer_to: Callable[[Attempt], Original | None], limit: int, polls: bool = False
    ) -> None:
        self._output, self._refer_to, self._limit, self._polls = output, refer_to, limit, polls
        self._stop = Event()
        self.no_space, self.storing = Event(), output.appending

    def store(self, hop: Fetched, page: PageUnderWay, payload: Payload | None = None) -> StoredExchange:
        head = parse_head(hop.response_head)
        data, digest = payload or read_payload(head, hop, self._limit)
        attempt = page.attempt
        original = self._refer_to(attempt) if attempt is not None and hop is page.hops[0] else None
        profile = _profile(hop, digest, original)
        exchange = ExchangeDraft(
            fetched=hop,
            payload_digest=digest,
            revisit_of=original if profile else None,
            profile=profile,
            purpose=_purpose(page, polls=self._polls),
        )
        appended = self._patiently(lambda: self._output.append(exchange))
        fresh = None
        # A revisit may only refer to a whole response: one of a partial page would be partial, too.
        if profile is None and hop.status == 200 and hop.truncated is None:
            fresh = Original(
                record_id=appended.record_id,
                url=hop.url,
                captured_at=hop.started_at,
                payload_digest=digest,
                warc_file_id=appended.ref.warc_file_id,
                offset=appended.ref.offset,
            )
        return StoredExchange(
            ref=appended.ref,
            head=head,
            payload=data,
            payload_digest=digest,
            original=fresh,
            is_revisit=profile is not None,
        )

    def store_evidence(self, failure: FetchFailed) -> None:
        """Write the received bytes as a metadata record."""
        # A response record must contain a response, and these bytes are not one.
        draft = RecordDraft(
            type=RecordType.METADATA,
            content_type="application/octet-stream",
            block=failure.received,
            at=failure.started_at,
            url=failure.url,
        )
        self._patiently(lambda: self._output.append_record(draft))

    def _patiently(self, write: Callable[[], T]) -> T:
        """Return the result of a write; wait while the disk is full or the database unavailable, until stopped."""
        while True:
            try:
                written = write()
                self.no_space.clear()
                return written
            except Unavailable as exc:
                full = isinstance(exc, NoSpace)
                # A disk may be full for hours: log it once.
                if not self.no_space.is_set() or not full:
                    _log.error("crawl.no_space" if full else "crawl.file_later", message=str(exc))
                if full:
                    self.no_space.set()
                if self._stop.wait(_AGAIN_S):
                    raise

    def rotate(self) -> None:
        """Seal the file if it is full, old or idle."""
        self._output.rotate()

    def stop(self) -> None:
        self._stop.set()

    def judged(self, page: PageUnderWay, attempt: Attempt, reading: DocumentFacts) -> PageUnderWay:
        """Return the page unchanged: every kind of response is stored."""
        return page

    def kept(self, visit: Visit, page: PageUnderWay, reading: DocumentFacts) -> Visit:
        """Return the visit unchanged: the WARC file has the rest."""
        return visit


def read_payload(head: HttpHead, hop: Fetched, limit: int) -> Payload:
    """Return the transfer-decoded body (unless too large to read) and its digest; callable from any thread."""
    if hop.body.size <= limit:
        data = b"".join(payload_chunks(head, hop.body))
        return Payload(data, sha256_of((data,)))
    return Payload(None, sha256_of(payload_chunks(head, hop.body)))


def _purpose(page: PageUnderWay, *, polls: bool) -> str | None:
    # Write it with the record, so that no reader has to guess it from the URL.
    if page.attempt is None:
        return "robots" if page.reason == ROBOTS else None
    if page.attempt.kind is not UrlKind.SITEMAP:
        return None
    return "feed" if polls else "sitemap"


def _profile(hop: Fetched, digest: str, original: Original | None) -> Profile | None:
    """Return the revisit profile if this response repeats the page's last committed original."""
    if original is None:
        return None
    # Ignore an unrequested 304: some servers send one to a request without a condition.
    if hop.status == 304:
        return Profile.SERVER_NOT_MODIFIED if is_conditional(hop.request_head) else None
    same = hop.status == 200 and digest == original.payload_digest and hop.truncated is None and hop.body.size > 0
    return Profile.IDENTICAL_PAYLOAD if same else None


class Originals:
    """Locations of original records; paths are loaded on the database thread and used from any thread."""

    def __init__(self, raw_db: RawDatabase, home: Path, execution_id: int = 0) -> None:
        self._raw_db, self._home, self._execution_id = raw_db, home.resolve(), execution_id
        self._files: dict[int, StoredFile | None] = {}
        self._spoiled: set[tuple[int, int]] = set()

    def learn(self, attempts: Iterable[Attempt]) -> None:
        unknown = {a.original.warc_file_id for a in attempts if a.original is not None} - self._files.keys()
        if not unknown:
            return
        with self._raw_db.read() as tx:
            for file_id in unknown:
                # A revisit of another source's members-only capture would show nothing to everybody else.
                is_closed = files.is_of_other_members(tx, file_id, execution_id=self._execution_id)
                self._files[file_id] = None if is_closed else self._find(files.key_of_file(tx, file_id))

    def _find(self, key: FileKey | None) -> StoredFile | None:
        """Return a file under the name it has once sealed; None if it is missing."""
        if (file := find_file(self._home, key)) is not None or key is None:
            return file
        is_open = find_file(self._home, key.with_suffix(OPEN_SUFFIX)) is not None
        return stored_file(self._home, key) if is_open else None

    def readable(self, attempt: Attempt) -> bool:
        """Return whether this attempt's original is readable, as far as known."""
        original = attempt.original
        if original is None or self._files.get(original.warc_file_id) is None:
            return False
        # Never refer to a damaged record again: the next request fetches the page again.
        return not self._spoiled or (original.warc_file_id, original.offset) not in self._spoiled

    def load(self, original: Original) -> tuple[HttpHead, bytes] | None:
        """Return an original's head and transfer-decoded body; None if unreadable, from then on for good."""
        file = self._files.get(original.warc_file_id)
        if file is None:
            return None
        # A file that a process of this crawl still writes has its temporary name; it may be sealed between two checks.
        for place in (file, file.with_suffix(OPEN_SUFFIX), file):
            try:
                return read_response_at(place, original.offset)
            except NotFound:
                continue
            except (HoldfastError, OSError):
                break
        self._spoiled.add((original.warc_file_id, original.offset))
        return None
