"""Reads a sealed file as batches of captures, once from start to end with bounded memory.

Damage is recorded with its offset and skipped; a request other than GET gives its capture another key.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any

from holdfast import log
from holdfast.clock import Clock, to_micros
from holdfast.db.raw import RawDatabase
from holdfast.errors import Conflict, HoldfastError, Unavailable
from holdfast.index import writing_queries
from holdfast.index.capture import (
    MAX_DATA_BYTES,
    IndexedCapture,
    identify,
    is_captured,
    method_of,
    read_capture,
    request_data,
)
from holdfast.index.writing import SeenKeys
from holdfast.storage.folder import AnyFile
from holdfast.warc.member import BadBytes, Pulse
from holdfast.warc.payload import split_head
from holdfast.warc.reader import DamagedWarc, Record, read_records
from holdfast.warc.record import ORDINALS, BadHead, RecordType, bare_id

# A batch ends at the first of these limits: captures, bytes to parse, seconds.
BATCH_CAPTURES = 250
BATCH_BYTES = 16 * 1024 * 1024
BATCH_S = 2.0
_WAITING = 1000
_KINDS = frozenset(one.value for one in RecordType)
# Schemes that readers may search for; `dns:`, `urn:` and the like are a crawler's own records.
_EXPECTED_SCHEMES = frozenset({"ftp", "ftps", "sftp", "file", "gopher"})
# Problems of a capture that its importer should see; the others are common among writers, and stored in its row.
_TOLD_PROBLEMS = {
    "digest_mismatch": "the payload does not have the digest that the record states",
    "address_bytes": "the address holds bytes that are not UTF-8; they are percent-encoded",
    "beyond_content_length": "the body has more bytes than its Content-Length says",
}
_INFO_BYTES = 64 * 1024
_log = log.get(room="index")


class Interrupted(HoldfastError):
    """The reading was stopped. Its results so far are stored, and the same command resumes it."""

    code = "interrupted"


Sent = tuple[str, str]
"""Method and data of a request."""


class Warnings:
    def __init__(self) -> None:
        self.kinds: dict[str, dict[str, Any]] = {}

    def add(self, kind: str, offset: int, detail: str) -> None:
        known = self.kinds.setdefault(kind, {"count": 0, "offset": offset, "detail": detail[:300].replace("\0", "")})
        known["count"] += 1

    @property
    def total(self) -> int:
        return sum(known["count"] for known in self.kinds.values())


class FileReading:
    def __init__(self, file: AnyFile, warc_file_id: int, clock: Clock, *, pulse: Pulse) -> None:
        self._file, self._file_id, self._clock, self._pulse = file, warc_file_id, clock, pulse
        self._latest = to_micros(clock.now() + timedelta(days=1))
        self.warnings = Warnings()
        self.kinds: Counter[str] = Counter()
        """Records by type; `other_scheme` are captures of addresses that are not http(s)."""
        self.software = ""
        self.position = 0
        self._info_date: datetime | None = None
        self._captures: list[IndexedCapture] = []
        self._bytes = 0
        self._last: Record | None = None
        self._waiting: OrderedDict[str, Sent] = OrderedDict()
        self._last_sent: tuple[str, str | None, Sent] | None = None

    @property
    def records(self) -> int:
        """Number of records read so far, including those without a snapshot."""
        return sum(count for kind, count in self.kinds.items() if kind != "other_scheme")

    def batches(self) -> Generator[tuple[list[IndexedCapture], bool], None, None]:
        """Yield the captures in order of their ids, with a flag for the last batch, which always comes.

        A batch may be empty: a file may hold only metadata for minutes, and its reader has to show that it is alive.
        """
        began = self._clock.monotonic()
        try:
            for record in read_records(self._file, self._damaged, self._pulse, with_cut=True):
                if record.ordinal >= ORDINALS:
                    self.warnings.add("too_many_records", record.offset, f"only {ORDINALS} fit into one file")
                    break
                self.position = record.offset
                is_full = len(self._captures) >= BATCH_CAPTURES or self._bytes >= BATCH_BYTES
                is_due = self._clock.monotonic() - began >= BATCH_S
                # Cut before a capture: the request of the last one often follows it.
                if (is_full or is_due) and (is_captured(record.head) or not self._captures):
                    yield self._taken(), False
                    began = self._clock.monotonic()
                self._take(record)
        # The rest of the file cannot be read; the part read so far counts.
        except (BadBytes, BadHead) as bad:
            self.warnings.add(getattr(bad, "kind", "record_header"), self.position, str(bad))
        yield self._taken(), True

    def _taken(self) -> list[IndexedCapture]:
        captures, self._captures, self._bytes = self._captures, [], 0
        return captures

    def _damaged(self, damage: DamagedWarc) -> None:
        self.warnings.add(damage.kind, damage.offset, damage.detail)

    def _take(self, record: Record) -> None:
        head = record.head
        # A file may give each record its own type, of tens of kilobytes: count only known ones by name.
        self.kinds[head.type if head.type in _KINDS else "unknown"] += 1
        try:
            if is_captured(head):
                self._take_capture(record)
            elif head.type == "request":
                self._take_request(record)
            elif head.type == "warcinfo":
                self._take_info(record)
            elif head.type in ("response", "resource", "revisit"):
                self._take_other(record)
            record.check()
        except DamagedWarc as damage:
            self._damaged(damage)
        except BadHead as bad:
            self.warnings.add("record_header", record.offset, str(bad))
        except (Conflict, Interrupted, Unavailable):
            raise  # another reader took over, the reading is to end, or the disk does not answer
        except Exception as error:
            # Files of other writers contain unforeseen things: a failing record must not affect the others.
            _log.warning("index.record", action="read_record", offset=record.offset, error=repr(error)[:300])
            self.warnings.add("unreadable", record.offset, f"it cannot be read ({type(error).__name__}; see the log)")
        self._last = record

    def _take_capture(self, record: Record) -> None:
        # Several records in one member share one offset: replay could seek only the first.
        if self._last is not None and self._last.offset == record.offset:
            self.warnings.add("not_seekable", record.offset, "several records in one member; import it to rewrite them")
            return
        capture = read_capture(record, self._file_id, self._info_date, pulse=self._pulse)
        record.check()
        if capture is None:
            self.warnings.add("bad_date", record.offset, f"WARC-Date is {record.head.get('WARC-Date')!r}; left out")
            return
        # Writers link a request to its capture in three ways: the capture names it, it names the capture, or both have
        # the same URL and date and are adjacent.
        sent = next((self._waiting.pop(one) for one in capture.concurrent_to if one in self._waiting), None)
        if sent is None and capture.record_id is not None:
            sent = self._waiting.pop(f">{capture.record_id}", None)
        if sent is None and self._last_sent is not None and self._last_sent[:2] == (capture.url, _date(record)):
            sent = self._last_sent[2]
        self._last_sent = None
        if sent is not None:
            _give(capture, sent)
        if capture.captured_at > self._latest:
            self.warnings.add(
                "future_date", record.offset, f"WARC-Date is {_date(record)!r}, later than now; is this clock right?"
            )
        for problem in capture.problems:
            if problem in _TOLD_PROBLEMS:
                self.warnings.add(problem, record.offset, _TOLD_PROBLEMS[problem])
        self._captures.append(capture)
        self._bytes += len(capture.body)

    def _take_other(self, record: Record) -> None:
        self.kinds["other_scheme"] += 1
        scheme = record.head.url.partition(":")[0].lower()
        if scheme in _EXPECTED_SCHEMES:
            self.warnings.add(
                "other_scheme", record.offset, f"a capture of {scheme}:; only http and https become snapshots"
            )

    def _take_request(self, record: Record) -> None:
        raw, size = [], 0
        for piece in record.block():
            raw.append(piece)
            size += len(piece)
            # Nearly all are GET: skip the rest of their blocks.
            if size > MAX_DATA_BYTES or method_of(raw[0]) == "GET":
                break
        block = b"".join(raw)
        method = method_of(block)
        if method is None or method == "GET":
            return
        head, body = split_head(block)
        sent = method, request_data(method, head, body[:MAX_DATA_BYTES])
        of = {bare_id(value) for value in record.head.every("WARC-Concurrent-To")}
        for capture in reversed(self._captures[-8:]):
            if capture.record_id in of or record.head.record_id in capture.concurrent_to:
                _give(capture, sent)
                return
        # Some writers link the two only by position: the request directly follows its capture.
        last = self._captures[-1] if self._captures else None
        if not of and last is not None and last.method is None and self._follows(last, record):
            _give(last, sent)
            return
        for name in (record.head.record_id, *(f">{one}" for one in of)):
            self._waiting[name] = sent
        # Requests without a capture would be kept forever.
        while len(self._waiting) > _WAITING:
            self._waiting.popitem(last=False)
        self._last_sent = (record.head.url, _date(record), sent)

    def _follows(self, capture: IndexedCapture, record: Record) -> bool:
        last = self._last
        return (
            last is not None
            and last.offset == capture.offset
            and (last.head.url, _date(last)) == (record.head.url, _date(record))
        )

    def _take_info(self, record: Record) -> None:
        if self._info_date is None:
            try:
                self._info_date = record.head.date
            except BadHead as bad:
                self.warnings.add("bad_date", record.offset, str(bad))
        fields = record.read(_INFO_BYTES) if record.head.content_length <= _INFO_BYTES else b""
        for line in fields.decode("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip().lower() == "software" and not self.software:
                self.software = value.strip()[:200]


def _date(record: Record) -> str | None:
    return record.head.get("WARC-Date")


def _give(capture: IndexedCapture, sent: Sent) -> None:
    method, data = sent
    capture.method = method[:16]
    capture.identity = identify(capture.url, data)


_MOST = 1000


class RepeatedIds:
    """Probable repeats of record ids, in two megabytes for any file size; the rows decide finally."""

    def __init__(self) -> None:
        self._seen = SeenKeys(), SeenKeys()
        self._suspects: set[str] = set()

    def add(self, capture: IndexedCapture) -> None:
        one = capture.record_id
        if one is None or len(self._suspects) >= _MOST:
            return
        # Use two filters: of a hundred thousand ids one alone matches every hundredth falsely, both together hardly
        # any.
        keys = one, f"{one} again"
        if all(key in seen for key, seen in zip(keys, self._seen, strict=True)):
            self._suspects.add(one)
        for key, seen in zip(keys, self._seen, strict=True):
            seen.add(key)

    def confirmed(self, raw_db: RawDatabase, warc_file_id: int) -> list[tuple[str, int]]:
        if not self._suspects:
            return []
        first = warc_file_id * ORDINALS
        with raw_db.read() as tx:
            return writing_queries.ambiguous_ids(
                tx, sorted(self._suspects), first_id=first, last_id=first + ORDINALS - 1
            )
