"""The WARC file that a process is writing: opened, registered, rotated, synced and sealed.

Only one thread at a time may append; `sync` may be called from another and returns when every byte appended
before is on disk. A file's row exists before the file, and its bytes are synced before any row that refers to
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock

from holdfast import log
from holdfast.clock import Clock, digits14, to_micros
from holdfast.config import WarcSettings
from holdfast.db.raw import RawDatabase
from holdfast.errors import HoldfastError, Unavailable
from holdfast.failpoints import reach
from holdfast.processes.disk import identity_of
from holdfast.storage.roots import key_of, record_root
from holdfast.warc import queries as files
from holdfast.warc.manifest import add_to_manifest
from holdfast.warc.outfile import SealedFile
from holdfast.warc.writer import Appended, ExchangeDraft, RecordDraft, WarcWriter

# An open file can be neither indexed nor fully verified: a slow crawl seals its file hourly, an idle one sooner.
SEAL_AGE_S, SEAL_IDLE_S = 3600.0, 600.0

_AGAIN_S = 1.0
"""Shortest time in seconds between two attempts to report sealed files to an unavailable database."""
_log = log.get()

Register = Callable[[Path], int]
Sealed = Callable[[int, SealedFile], None]


class OutputBroken(HoldfastError):
    """Data written to a WARC file may not be on disk; this process cannot settle anything more."""

    code = "tape_broken"  # the name at the time of the release


class FileRows:
    """The rows of the files that one process writes; use only on its database thread."""

    def __init__(self, raw_db: RawDatabase, clock: Clock, home: Path, *, execution_id: int, owner_id: int) -> None:
        self._raw_db, self._clock, self._home = raw_db, clock, home
        self._execution_id, self._owner_id = execution_id, owner_id

    def insert(self, path: Path) -> int:
        """Create the row of a file before it is written."""
        # Record the folder before the row: every reader rejects a file outside the recorded folders.
        record_root(self._home, path.parent)
        with self._raw_db.write() as tx:
            return files.insert_file(
                tx,
                execution_id=self._execution_id,
                owner_id=self._owner_id,
                key=key_of(self._home, path),
                now=to_micros(self._clock.now()),
            )

    def seal(self, file_id: int, sealed: SealedFile) -> None:
        """List a sealed file in the manifest, then complete its row."""
        # Close the row last: while it is open, the next start repeats all of this.
        reach("after_rename")
        add_to_manifest(file_id, sealed)
        reach("after_manifest")
        with self._raw_db.write() as tx:
            files.seal_file(tx, file_id, sealed, now=to_micros(self._clock.now()))
        reach("after_register")

    def discard_open(self) -> None:
        """Delete the rows of files that were never created."""
        with self._raw_db.write() as tx:
            for file in files.open_files(tx, owner_id=self._owner_id):
                files.discard_file(tx, file.id)


class WarcOutput:
    """One process's WARC output; a file is opened with the first record."""

    def __init__(
        self, folder: Path, prefix: str, *, info: Mapping[str, str], clock: Clock, settings: WarcSettings
    ) -> None:
        self.folder = folder
        # A path without a folder has no device: the folder that replaces it is ours.
        self._identity = identity_of(folder) if folder.is_dir() else None
        self._prefix, self._info, self._clock, self._settings = prefix, info, clock, settings
        self._writer: WarcWriter | None = None
        self._serial = 0
        self._next: tuple[str, int] | None = None
        """The name and id of a file that is registered and not yet made."""
        self.appending = Lock()
        """Held by the thread that appends: one may take the place of another."""
        self._lock = Lock()
        self._broken: OutputBroken | None = None
        self._unreported: list[tuple[int, SealedFile]] = []
        """Sealed files that the database does not know of."""
        self._reported_at = 0.0
        self.register: Register = lambda _path: 0
        """Makes the file's row and returns its id; set by `crawl.process`."""
        self.sealed: Sealed = lambda _id, _file: None
        """Called with every sealed file; set by `crawl.process`."""

    def append(self, exchange: ExchangeDraft) -> Appended:
        """Write one exchange and return the location of its response; after `NoSpace` the file is unchanged."""
        if self._broken is not None:
            raise self._broken
        if self._writer is None:
            self._open()
        assert self._writer is not None
        appended = self._writer.append_exchange(exchange)
        reach("after_append")
        return appended

    def append_record(self, draft: RecordDraft) -> None:
        """Write a record that is not an exchange; after `NoSpace` the file is unchanged."""
        if self._broken is not None:
            raise self._broken
        if self._writer is None:
            self._open()
        assert self._writer is not None
        self._writer.append_record(draft)

    def sync(self) -> None:
        """Make everything appended before this call safe against power loss."""
        with self._lock:
            if self._broken is not None:
                raise self._broken
            if self._writer is None:
                return
            try:
                self._writer.sync()
            except Unavailable as exc:
                raise self._break(self._writer, exc) from exc

    def rotate(self) -> None:
        """Seal the file if full, old or idle; report sealed files again that the database could not store yet."""
        if self._writer is not None and self._writer.should_seal():
            self._seal()
        elif not self._unreported or self._clock.monotonic() - self._reported_at < _AGAIN_S:
            return
        try:
            self._report()
        except Unavailable as exc:
            _log.warning("crawl.register_later", message=str(exc), files=len(self._unreported))

    def close(self) -> None:
        """Seal the open file, if any; raise `Unavailable` if the database cannot record it."""
        self._seal()
        self._report()

    def _seal(self) -> None:
        with self._lock:
            writer, self._writer = self._writer, None
            if writer is None:
                return
            try:
                self._unreported.append((writer.file_id, writer.seal()))
            except HoldfastError as exc:
                writer.abandon()
                raise self._break(writer, exc) from exc

    def _report(self) -> None:
        self._reported_at = self._clock.monotonic()
        while self._unreported:
            self.sealed(*self._unreported[0])
            del self._unreported[0]

    def _break(self, writer: WarcWriter, exc: HoldfastError) -> OutputBroken:
        """Abandon this output and with it the process: its attempts are still open."""
        # After a failed fsync the stored part of a file is unknown, so no row may refer to it. The next start repairs
        # and seals the file (`crawl.recovery`).
        self._broken = OutputBroken(f"cannot write to {writer.path}: {exc}")
        return self._broken

    def _open(self) -> None:
        found = identity_of(self.folder)
        if found is not None and self._identity is not None and found != self._identity:
            # The mount is gone: never write to the folder below it, which is on another disk. Wait for a missing
            # folder, as for a full disk.
            self._broken = OutputBroken(f"{self.folder} is not the folder that it was when this process began")
            raise self._broken
        if self._identity is None and self.folder.is_dir():
            self._identity = found
        # Write the row first: no process would repair a file without a row. After NoSpace the row already exists.
        if self._next is None:
            self._serial += 1
            name = f"{self._prefix}-{digits14(self._clock.now())}-{self._serial:05d}"
            self._next = name, self.register(self.folder / f"{name}.warc.gz")
        name, file_id = self._next
        writer = WarcWriter.create(
            self.folder,
            name,
            file_id,
            self._info,
            self._clock,
            max_bytes=self._settings.bytes,
            max_age_s=SEAL_AGE_S,
            max_idle_s=SEAL_IDLE_S,
        )
        with self._lock:
            self._writer, self._next = writer, None
