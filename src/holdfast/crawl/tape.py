"""The WARC file that a process is writing: opened, registered, rotated, synced and sealed.

Appending belongs to one thread; `sync` may be called from another and returns when every byte appended before is on
disk. A file's row exists before the file, and its bytes are synced before any row that points into it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock

from holdfast.clock import Clock, digits14
from holdfast.config import WarcSettings
from holdfast.errors import HoldfastError, Unavailable
from holdfast.failpoints import reach
from holdfast.warc.writer import Appended, Exchange, SealedFile, WarcWriter

Register = Callable[[Path], int]
Sealed = Callable[[int, SealedFile], None]


class TapeBroken(HoldfastError):
    """What was written to a WARC file may not be on disk; this process can settle nothing more."""

    code = "tape_broken"


class Tape:
    """One process's WARC output; a file is opened when the first record comes."""

    def __init__(
        self, folder: Path, prefix: str, *, info: Mapping[str, str], clock: Clock, settings: WarcSettings
    ) -> None:
        self.folder = folder
        self._prefix, self._info, self._clock, self._settings = prefix, info, clock, settings
        self._writer: WarcWriter | None = None
        self._serial = 0
        self._lock = Lock()
        self.register: Register = lambda _path: 0
        """Makes the file's row and returns its id; set by the engine."""
        self.sealed: Sealed = lambda _id, _file: None
        """Told about every sealed file; set by the engine."""

    def append(self, exchange: Exchange) -> Appended:
        """Write one exchange and return where its response stands; NoSpace leaves the file as it was."""
        if self._writer is None:
            self._open()
        assert self._writer is not None
        appended = self._writer.append_exchange(exchange)
        reach("after_append")
        return appended

    def sync(self) -> None:
        """Make everything that was appended before this call safe against power loss."""
        with self._lock:
            if self._writer is None:
                return
            try:
                self._writer.sync()
            except Unavailable as exc:
                # What the disk took of this file is unknown now: no row may point into it. The process ends, the
                # file is repaired by whoever comes next, and its attempts are still open.
                raise TapeBroken(f"the disk did not take what was written to {self._writer.path}: {exc}") from exc

    def rotate(self) -> None:
        """Seal the file if it is full, old or idle."""
        if self._writer is not None and self._writer.should_seal(self._clock.now()):
            self.close()

    def close(self) -> None:
        """Seal the file that is open, if any."""
        with self._lock:
            writer, self._writer = self._writer, None
            sealed = writer.seal() if writer is not None else None
        if writer is not None and sealed is not None:
            self.sealed(writer.file_id, sealed)

    def _open(self) -> None:
        self._serial += 1
        name = f"{self._prefix}-{digits14(self._clock.now())}-{self._serial:05d}"
        file_id = self.register(self.folder / f"{name}.warc.gz")
        writer = WarcWriter.create(
            self.folder, name, file_id, self._info, self._clock, max_bytes=self._settings.bytes,
            max_age_s=self._settings.age_s, max_idle_s=self._settings.idle_s,
        )  # fmt: skip
        with self._lock:
            self._writer = writer
