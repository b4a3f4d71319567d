"""Work after a crawl, in small steps: index files, classify captures, update search, compare captures.

Everything pending is in rows: sealed files, executions that are pending or indexing, the search outbox,
captures not yet compared. So a worker may be killed at any time, and the next one continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from holdfast import log
from holdfast.changes.compute import Computed, compute_pending
from holdfast.clock import to_micros
from holdfast.crawl.recovery import RecoveryReport, recover
from holdfast.errors import Unavailable
from holdfast.imports.importer import KEPT, Importer
from holdfast.imports.packages import discover
from holdfast.imports.placing import Keeping
from holdfast.index.indexer import Indexer, Interrupted, open_indexer
from holdfast.index.leases import FileToIndex, ReadProgress, pending_files
from holdfast.jobs import indexing
from holdfast.jobs.imports import ImportOptions
from holdfast.jobs.indexing import ToIndex, file_states, open_files
from holdfast.jobs.store import OWN
from holdfast.noise.classifier import judge_pending
from holdfast.search.directory import IndexBusy, IndexDirectory
from holdfast.search.outbox import drain
from holdfast.storage.roots import StrayFile, key_of, local_path
from holdfast.storage.store import FileKey, captures_folder
from holdfast.warc import queries as files
from holdfast.worker.background import BackgroundContext
from holdfast.zimit.errors import StoreMissing
from holdfast.zimit.output_directory import store_is_present

_log = log.get()
_BEAT_S = 15.0
_COMPARE_S = 60.0
_DRAIN_S = 5.0
_REFUSED_S = 15.0
_EVENTS = 200
_JUDGED = 2_000
# Limit of executions per turn; the next turn continues after them.
_LOOKED_AT = 20

_SILENT = "lies on a machine that has been silent for a day; index the run again when it is back"


class AfterCrawl:
    name = "index, search, changes"

    def __init__(self, context: BackgroundContext, *, judged: int = _JUDGED) -> None:
        # `judged`: approximate number of captures classified per turn.
        self._context, self._judged = context, judged
        self._beat_at = 0.0
        self._compared_at = 0.0
        # Whether some captures may not have been compared yet.
        self._news = True
        # Executions whose folder was searched for a tool's files, and the files that could not be imported.
        self._refused: dict[int, list[str]] = {}
        self._after = 0
        # Executions whose folder or database refused a write, and when to retry them.
        self._not_before: dict[int, float] = {}

    def run_once(self) -> bool:
        """Index a file; if none is pending, classify some captures, update search, and compare some."""
        try:
            if self._index():
                return True
            # Search indexes classified captures, and comparisons use their classes, hence the order. Each turn does a
            # piece of each: after an update the whole archive may need classifying, and new captures must not wait for
            # that.
            more = self._judge()
            more |= self._search()
            return self._compare() or more
        except Interrupted:
            return False

    @cached_property
    def _indexer(self) -> Indexer:
        runtime = self._context.runtime
        # The indexer stays open: it is an owner with a heartbeat, and each new one adds a row.
        opened = open_indexer(runtime.raw_db, runtime.clock, runtime.settings.home, on_progress=self._look)
        return self._context.on_end.enter_context(opened)

    def _look(self, _file: FileToIndex, _progress: ReadProgress) -> None:
        self._indexer.stopping = self._context.is_stopping()

    def _index(self) -> bool:
        self._beat()
        now, monotonic = self._context.runtime.clock.now(), self._context.runtime.clock.monotonic()
        for _ in range(_LOOKED_AT):
            if self._context.is_stopping():
                return False
            with self._context.database.read() as session:
                found = indexing.next_to_index(session, self._directory, now=now, after=self._after)
            if found is None:
                self._after = 0
                break
            if self._not_before.get(found.execution_id, 0.0) <= monotonic and self._gone_on_with(found):
                return True
            self._after = found.execution_id
        # Files sealed while their crawl still runs, and files of crawls without a job.
        return self._read_one(self._pending())

    @cached_property
    def _directory(self) -> str:
        return IndexDirectory(self._context.runtime.settings.home).identity()

    def _gone_on_with(self, found: ToIndex) -> bool:
        try:
            done = self._go_on_with(found)
        except Unavailable as exc:
            self._not_before[found.execution_id] = self._context.runtime.clock.monotonic() + _REFUSED_S
            _log.warning("worker.index_waits", execution=found.execution_id, message=str(exc))
            return False
        self._not_before.pop(found.execution_id, None)
        return done

    def _pending(self) -> Iterator[int]:
        runtime, after = self._context.runtime, 0
        while True:
            with runtime.raw_db.read() as tx:
                waiting = pending_files(tx, after=after, now=to_micros(runtime.clock.now()))
            yield from waiting
            if not waiting:
                return
            after = waiting[-1]

    def _read_one(self, waiting: Iterable[int]) -> bool:
        for warc_file_id in waiting:
            if self._context.is_stopping():
                return False
            if self._is_there(warc_file_id) and self._indexer.index_file(warc_file_id, only_waiting=True) is not None:
                self._news = True
                return True
        return False

    def _is_there(self, warc_file_id: int) -> bool:
        """Return whether the folder of a file exists; if its storage is unreachable, the file waits, not fails."""
        with self._context.runtime.raw_db.read() as tx:
            key = files.key_of_file(tx, warc_file_id)
        return key is not None and self._has_folder(key)

    def _has_folder(self, key: FileKey) -> bool:
        try:
            return local_path(self._context.runtime.settings.home, key).parent.is_dir()
        except StrayFile:
            # No file may lie outside the archive: the reader reports it.
            return True

    def _beat(self) -> None:
        now = self._context.runtime.clock.monotonic()
        if now - self._beat_at >= _BEAT_S and "_indexer" in self.__dict__:
            self._beat_at = now
            self._indexer.beat()

    def _go_on_with(self, found: ToIndex) -> bool:
        """Index one file of an execution, or conclude its index; return False if its other files are not free."""
        now = self._context.runtime.clock.now()
        try:
            with self._context.database.write() as session:
                # No worker holds an execution in state `indexing`: its files are leased one by one, by any number of
                # workers.
                is_new = indexing.take_up(session, found.execution_id, now=now)
        except indexing.NotIndexable:
            # Another worker finished the execution.
            self._refused.pop(found.execution_id, None)
            return False
        # Indexing was requested again: the folder may contain other files now.
        if is_new:
            self._refused.pop(found.execution_id, None)
        self._take_in(found)
        waiting, failed = self._files(found)
        if is_new and failed:
            with self._context.runtime.raw_db.write() as tx:
                for warc_file_id in failed:
                    files.set_index_state(tx, warc_file_id, "pending")
            waiting, _ = self._files(found)
        if self._read_one(waiting):
            return True
        return (lost := self._lost(found, waiting)) is not None and self._conclude(found, lost)

    def _files(self, found: ToIndex) -> tuple[dict[int, FileKey], dict[int, FileKey]]:
        with self._context.database.read() as session:
            return file_states(session, execution_id=found.execution_id)[:2]

    def _take_in(self, found: ToIndex) -> None:
        """Register and index a tool's files in the execution's folder; our own crawler registers its files itself.

        Raise Unavailable or NoSpace for database or disk, StoreMissing for a lost mount: the folder is searched again
        then.
        """
        folder, runtime = Path(found.output_dir), self._context.runtime
        # A tool's folder is searched once, not at each file.
        if found.backend in OWN or found.execution_id in self._refused:
            return
        if found.directory not in (None, self._directory):
            self._refused[found.execution_id] = [f"{folder} {_SILENT}"]
            return
        if not folder.is_dir():
            store = runtime.settings.zimit.store_root or captures_folder(runtime.settings.home) / found.source
            # Do not wait for a deleted folder, only for one below a lost mount.
            if folder.is_relative_to(store.resolve()) and not store_is_present(store):
                raise StoreMissing(folder, "its storage is not mounted")
            return
        request = ImportOptions(source=found.source, name=None, home=runtime.settings.home, config={})
        importer = Importer(self._context.database, runtime.raw_db, runtime.clock, self._indexer, request)
        # A link costs no space, and the tool never changes a sealed file.
        importer.keeping, importer.is_crawl = Keeping.LINK, True
        importer.on_step = lambda _step: setattr(self._indexer, "stopping", self._context.is_stopping())
        there = discover([folder], follow_state=True)
        new = [path for path in there.files if not importer.is_known(path)]
        importer.group = found.execution_id, folder / KEPT
        if new:
            (folder / KEPT).mkdir(exist_ok=True)
        self._refused[found.execution_id] = [
            *(f"{path} cannot be looked into: {why}" for path, why in there.unreadable),
            *(one.error for one in importer.run(new) if one.error is not None),
        ]

    def _is_elsewhere(self, found: ToIndex, key: FileKey) -> bool:
        """Return whether a silent machine has a file: its folder is missing, and the run did not create it here."""
        if found.directory is None or self._has_folder(key):
            return False
        # A run taken over by this machine has its earlier files in another folder; its own may be on a lost mount.
        own = key_of(self._context.runtime.settings.home, Path(found.output_dir))
        return found.directory != self._directory or not key.is_below(own)

    def _lost(self, found: ToIndex, waiting: Mapping[int, FileKey]) -> list[int] | None:
        """Seal files that a dead process left open; return the lost files, None if one may still become readable."""
        away = [number for number, key in waiting.items() if self._is_elsewhere(found, key)]
        if len(away) < len(waiting):
            return None
        with self._context.database.read() as session:
            still_written = open_files(session, execution_id=found.execution_id)
        # The process of these files died, or is sealing them now.
        mended = recover(self._context.runtime) if still_written else RecoveryReport()
        left = [number for number in still_written if number in mended.left and self._is_there(number)]
        lost = {number: mended.left[number] for number in left}
        lost |= {number: mended.elsewhere[number] for number in still_written if number in mended.elsewhere}
        # A live process may be sealing one of them now.
        if len(lost) < len(still_written):
            return None
        missing = [f"{Path(str(waiting[away[0]])).parent} {_SILENT} (files: {len(away)})"] if away else []
        self._refused.setdefault(found.execution_id, []).extend((*lost.values(), *missing))
        return [*lost, *away]

    def _conclude(self, found: ToIndex, lost: Sequence[int]) -> bool:
        """Conclude the index of an execution; return False if one of its files is pending again."""
        errors = self._refused.pop(found.execution_id, [])
        database, clock = self._context.database, self._context.runtime.clock
        closed = indexing.close_account(
            database, clock, found.execution_id, errors=errors, lost=lost, folder=found.output_dir
        )
        if closed:
            _log.info("worker.indexed", execution=found.execution_id, errors=len(errors))
        return closed

    def _judge(self) -> bool:
        if self._context.is_stopping():
            return False
        database, clock = self._context.database, self._context.runtime.clock
        done = judge_pending(database, clock, most=self._judged, is_stopping=self._context.is_stopping)
        # New classes change which captures are compared.
        self._news = self._news or bool(done.marked) or done.cleared > 0
        return done.captures > 0 and not done.finished

    def _search(self) -> bool:
        if self._context.is_stopping():
            return False
        runtime = self._context.runtime
        # The search index has one writer: if another process is the writer, it indexes everything that is queued.
        with suppress(IndexBusy):
            done = drain(
                self._context.database,
                runtime.settings.home,
                runtime.clock,
                limit_s=_DRAIN_S,
                is_stopping=self._context.is_stopping,
            )
            return done.changes > 0
        return False

    def _compare(self) -> bool:
        """Compare captures after something was indexed, and periodically, because other processes index too."""
        now = self._context.runtime.clock.monotonic()
        if self._context.is_stopping() or not (self._news or now - self._compared_at >= _COMPARE_S):
            return False
        done = compute_pending(self._context.database, self._context.runtime.clock, self._pause, max_events=_EVENTS)
        self._compared_at, self._news = now, done.looked_at > 0
        return done.looked_at > 0

    def _pause(self, _so_far: Computed) -> None:
        if self._context.is_stopping():
            raise Interrupted("stopped between two batches")
