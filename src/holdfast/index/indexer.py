"""Turns sealed files into snapshots: one reader per file, under a lease; after a kill, another one starts over.

Nothing stored disappears while a file is read again: rows are replaced in place, and ids never change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from holdfast import log
from holdfast.clock import Clock, to_micros
from holdfast.db.raw import RawDatabase, persist
from holdfast.errors import HoldfastError, LeaseLost, NotFound, Unavailable
from holdfast.failpoints import reach
from holdfast.index import leases
from holdfast.index.capture import IndexedCapture
from holdfast.index.documents import Extractor, NewDocument
from holdfast.index.leases import FileLease, FileToIndex, ReadProgress, claim, note_spans
from holdfast.index.reading import FileReading, RepeatedIds
from holdfast.index.reading import Interrupted as Interrupted
from holdfast.index.writing import (
    Batch,
    LinkTexts,
    SeenKeys,
    hidden_captures,
    linking_pages,
    random_start,
    resolve_late,
    resolve_some,
    write_batch,
)
from holdfast.parse.child import ParseChild
from holdfast.processes.owners import OwnerProcess, beat_owner
from holdfast.processes.recovery import INDEXER, recover_owners
from holdfast.processes.runfile import RunFile
from holdfast.storage.roots import stored_file
from holdfast.storage.store import StoredFile
from holdfast.values import dataclass
from holdfast.warc.queries import Span
from holdfast.warc.record import ORDINALS

# Increase it with any change that gives a record another row: files that were read before may then be read again.
INDEX_VERSION = 3
_PDF_DEADLINE_S = 20.0
# How many readers of one file may be killed in a row before every page is parsed in a child, which may crash without
# harm, and before the file fails, so that the other waiting files are read.
_CAREFUL_KILLS = 2
MAX_KILLS = 10
_WAITS_S = (0.1, 0.3, 1.0, 3.0)
_Answer = TypeVar("_Answer")
_log = log.get(room="index")

OnProgress = Callable[[FileToIndex, ReadProgress], None]


class DatabaseAway(Unavailable):
    """The database did not come back in time. The file stays pending, and nothing is lost."""

    code = "database_away"


@dataclass(slots=True, kw_only=True)
class Indexed:
    warc_file_id: int
    path: str
    records: int = 0
    snapshots: int = 0
    pages: int = 0
    changed: int = 0
    """Number of snapshots that were added, changed or deleted."""
    kinds: dict[str, int] = field(default_factory=dict)
    warnings: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: str | None = None


class Indexer:
    """Reads files into one archive. Used by one thread; close it to stop its child process."""

    def __init__(
        self,
        raw_db: RawDatabase,
        clock: Clock,
        home: Path,
        *,
        owner_id: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._raw_db, self._clock, self._home = raw_db, clock, home
        self._owner_id = owner_id
        self._on_progress = on_progress
        self._child = ParseChild(deadline_s=_PDF_DEADLINE_S)
        self.stopping = False
        """Set from a signal handler: the reader releases its file after the current batch."""

    def close(self) -> None:
        self._child.close()

    def beat(self) -> None:
        if self._owner_id is not None:
            with self._raw_db.write() as tx:
                beat_owner(tx, self._clock, self._owner_id)

    def index_file(self, warc_file_id: int, *, only_waiting: bool = False) -> Indexed | None:
        """Index one sealed file, for the first time or again; None if another reader holds it or finished it
        meanwhile.

        Raise NotFound if it is not sealed. A file that cannot be read is closed as failed, with the reason in the
        result. Raise LeaseLost if another reader took over; Interrupted if a stop was requested.
        """
        with self._raw_db.read() as tx:
            file = leases.file_to_index(tx, warc_file_id)
        if file is None:
            raise NotFound(f"there is no sealed WARC file {warc_file_id}; see them with: holdfast warc list")
        lease = claim(
            self._raw_db,
            self._clock,
            warc_file_id,
            owner_id=self._owner_id,
            version=INDEX_VERSION,
            only_waiting=only_waiting,
        )
        if lease is None:
            return None
        run = _Run(self._raw_db, self._clock, file, lease)
        try:
            if lease.killed >= MAX_KILLS:
                raise HoldfastError(
                    f"{lease.killed} readers of {file.file_key.name} were killed in a row (out of memory or a crash;"
                    " see the server log); then read it again with: holdfast refresh-snapshot-metadata --execution"
                    f" {file.execution_id}"
                )
            run.read(stored_file(self._home, file.file_key), self._child, self._report, self._check)
        except (LeaseLost, Interrupted, KeyboardInterrupt, DatabaseAway):
            # Release it at once if possible; otherwise the lease expires by itself.
            with suppress(Unavailable):
                lease.give_back()
            raise
        except HoldfastError as exc:
            run.done.error = str(exc)
        except Exception as exc:
            # An unexpected error fails this file, not the other waiting ones.
            _log.exception("index.failed", action="index_file", file=str(file.file_key))
            run.done.error = f"unexpected {type(exc).__name__}: {exc}"[:1000].replace("\0", "")
        if run.done.records == 0 and run.done.error is None:
            run.done.error = _no_warc(run.done)
        run.done.pages = lease.end(error=run.done.error, span=run.span)
        _log.info(
            "index.file",
            file=str(file.file_key),
            records=run.done.records,
            snapshots=run.done.snapshots,
            changed=run.done.changed,
            warnings=sum(one["count"] for one in run.done.warnings.values()),
            error=run.done.error,
        )
        return run.done

    def _report(self, file: FileToIndex, progress: ReadProgress) -> None:
        if self._on_progress is not None:
            self._on_progress(file, progress)
        self._check()

    def _check(self) -> None:
        """Raise Interrupted if the reading should stop; called between batches and while a long record streams by."""
        if self.stopping:
            raise Interrupted("stopped; written data is kept, and the same command continues from here")


def _no_warc(done: Indexed) -> str:
    first = next(iter(done.warnings.values()), {"offset": 0, "detail": "there is nothing in it"})
    return f"{Path(done.path).name} holds no readable WARC record (at {first['offset']}: {first['detail']})"


class _Run:
    def __init__(self, raw_db: RawDatabase, clock: Clock, file: FileToIndex, lease: FileLease) -> None:
        self._raw_db, self._clock, self._file, self._lease = raw_db, clock, file, lease
        self._first_id = file.id * ORDINALS
        self._seen, self._repeats, self._texts = SeenKeys(), RepeatedIds(), LinkTexts()
        self.span: Span | None = None
        """From when to when the captures are that were written so far."""
        self.done = Indexed(warc_file_id=file.id, path=str(file.file_key))

    def read(self, stored: StoredFile, child: ParseChild, report: OnProgress, check: Callable[[], None]) -> None:

        def pulse() -> None:
            check()
            self._lease.pulse()

        reading = FileReading(stored, self._file.id, self._clock, pulse=pulse)
        reading.warnings.kinds |= leases.killed_warning(self._lease.killed)
        careful = self._lease.killed >= _CAREFUL_KILLS
        extractor = Extractor(self._raw_db, child, self._file.template, careful=careful)
        with closing(reading.batches()) as batches:
            for captures, is_last in batches:
                # Parse before the transaction: it blocks all other writers, and parsing takes most of the time.
                documents = _with_retries(partial(extractor.prepare, captures))
                progress = self._write(reading, captures, documents, is_last=is_last)
                report(self._file, progress)
        self._warn_of_repeats(reading, progress)
        reach("index_resolving")
        # Do this only now: files of one crawl are read in any order, and revisits in others may wait for originals of
        # this one.
        resolve_late(self._raw_db, self._lease, self._seen, now=to_micros(self._clock.now()))
        reach("index_finishing")

    def _write(
        self,
        reading: FileReading,
        captures: Sequence[IndexedCapture],
        documents: Sequence[NewDocument],
        *,
        is_last: bool,
    ) -> ReadProgress:
        # An empty batch covers no id: snapshots stored behind the last capture are not checked yet.
        last_id = captures[-1].id if captures else self._first_id - 1
        if is_last:
            last_id = (self._file.id + 1) * ORDINALS - 1
        linking = linking_pages(captures)
        hidden = _with_retries(partial(self._hidden, captures)) if linking else set()
        texts = self._texts.new(linking, hidden=hidden)
        batch = Batch(
            captures=captures,
            documents=documents,
            linking=linking,
            link_texts=texts,
            first_id=self._first_id,
            last_id=last_id,
        )
        done = self.done
        done.records, done.kinds, done.warnings = reading.records, dict(reading.kinds), reading.warnings.kinds
        done.snapshots += len(captures)
        done.pages += sum(capture.is_page for capture in captures)
        position = self._file.size if is_last else reading.position
        progress = ReadProgress(
            "finalize" if is_last else "read_warc", done.records, done.pages, position, self._file.size, done.warnings
        )
        file = _with_fidelity(self._file, reading.software)

        def write() -> int:
            with self._raw_db.write() as tx:
                self._lease.hold(tx, progress)
                changed = write_batch(tx, file, batch, now=to_micros(self._clock.now()))
                reach("index_batch")
            return changed

        done.changed += _with_retries(write)
        self._texts.keep(texts, hidden=hidden)
        reach("index_committed")
        for capture in captures:
            self._repeats.add(capture)
            if capture.record_type != "revisit":
                self._seen.add(capture.identity.url_key)
        self._widen([capture.captured_at for capture in captures])
        self._first_id = last_id + 1
        return progress

    def _hidden(self, captures: Sequence[IndexedCapture]) -> set[int]:
        with self._raw_db.read() as tx:
            return hidden_captures(tx, captures)

    def _warn_of_repeats(self, reading: FileReading, progress: ReadProgress) -> None:
        for record_id, offset in self._repeats.confirmed(self._raw_db, self._file.id):
            reading.warnings.add("record_id_reused", offset, f"different bodies have the id {record_id}")
        if "record_id_reused" in reading.warnings.kinds:
            with self._raw_db.write() as tx:
                self._lease.hold(tx, progress)

    def _widen(self, moments: Sequence[int]) -> None:
        if moments:
            known = self.span or (moments[0], moments[0])
            self.span = min(known[0], *moments), max(known[1], *moments)


def _with_retries(call: Callable[[], _Answer]) -> _Answer:
    """Return the call's result, retrying while the database is briefly unavailable; raise DatabaseAway if it stays
    so.
    """
    try:
        return persist(call, sleep=time.sleep, waits_s=_WAITS_S)
    except Unavailable as exc:
        raise DatabaseAway(str(exc)) from exc


# Programs that write the responses they fetch themselves, as a warcinfo names them. Others may have converted a mirror.
_DIRECT_WRITERS = (
    *("archiveweb.page", "brozzler", "browsertrix", "heritrix", "holdfast", "pywb", "scrapy", "wget", "zimit"),
)


def _with_fidelity(file: FileToIndex, software: str) -> FileToIndex:
    backend = file.backend or ("import" if file.job_kind == "import" else "native")
    writer = software.lower()
    if backend == "zimit" and writer.startswith("holdfast"):
        backend = "http_warc"  # archive-tool continued with our own crawl after zimit had failed
    # Written while the page was fetched, so the record is what the server sent; a cut body is recorded in its own row.
    is_direct = backend in ("browser", "native", "zimit") or any(name in writer for name in _DIRECT_WRITERS)
    fallback = backend in ("http_warc", "playwright_warc")
    fidelity = "fallback" if fallback else "high" if is_direct else "unknown"
    return file._replace(backend=backend[:16], fidelity=fidelity)


def index_pending(indexer: Indexer, raw_db: RawDatabase, clock: Clock, *, source: str | None = None) -> list[Indexed]:
    """Index every pending sealed file, oldest first; several processes may do this in parallel."""
    return list(each_pending(indexer, raw_db, clock, source=source))


def each_pending(
    indexer: Indexer, raw_db: RawDatabase, clock: Clock, *, source: str | None = None
) -> Iterator[Indexed]:
    """Do the same as `index_pending`, but yield the result of each file as it is done."""
    after = 0
    while True:
        with raw_db.read() as tx:
            waiting = leases.pending_files(tx, after=after, now=to_micros(clock.now()), source=source)
        if not waiting:
            return
        for warc_file_id in waiting:
            after = warc_file_id
            result = indexer.index_file(warc_file_id, only_waiting=True)
            if result is not None:
                yield result


@contextmanager
def open_indexer(
    raw_db: RawDatabase, clock: Clock, home: Path, *, on_progress: OnProgress | None = None
) -> Iterator[Indexer]:
    """Register this process, release leases of dead indexers on this machine, and yield the indexer."""
    folder = home.resolve() / "run"
    # Do this before this process registers: it releases the files of a killed indexer on this machine at once, not
    # after its lease.
    recover_owners(raw_db, clock, folder=folder, stale_s=0.0, kinds=(INDEXER,))
    note_spans(raw_db)
    resolve_some(raw_db, after=random_start(raw_db), now=to_micros(clock.now()))
    owner = OwnerProcess(raw_db, clock, run=RunFile(folder), kind=INDEXER, execution_id=None)
    try:
        with closing(Indexer(raw_db, clock, home, owner_id=owner.id, on_progress=on_progress)) as indexer:
            yield indexer
    finally:
        owner.end()
