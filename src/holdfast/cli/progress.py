"""How reading files looks while it goes on: a live line on a terminal, plain lines elsewhere; Ctrl-C stops gently.

And what follows it: search takes in what was read.
"""

from __future__ import annotations

import ctypes
import gc
import signal
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from types import FrameType
from typing import Any

from rich.console import Console

from holdfast.cli.formatting import counted, size
from holdfast.cli.formatting import text as plain
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.imports.importer import ImportStep
from holdfast.index.indexer import Indexed, Indexer
from holdfast.index.leases import FileToIndex, ReadProgress
from holdfast.search.directory import IndexBusy
from holdfast.search.outbox import drain
from holdfast.search.signals import refresh

_LINE_S = 5.0
_LIVE_S = 0.2


class ProgressLine:
    """Says on standard error how far it is, never more often than anybody reads."""

    def __init__(self, clock: Clock, *, quiet: bool = False) -> None:
        self._clock, self._quiet = clock, quiet
        self._console = Console(stderr=True, highlight=False)
        self._is_live = self._console.is_terminal and not quiet
        self._said_at = clock.monotonic() if not self._is_live else -_LINE_S
        self.before = ""
        """What stands in front: file n of m."""

    def step(self, step: ImportStep) -> None:
        """Show how far an import is with one file."""
        self.before = f"file {step.number} of {step.of}: "
        of = f" of {size(step.total)}" if step.total else ""
        self.say(f"{step.name}: {step.phase} {size(step.done)}{of}" if step.done else f"{step.name}: {step.phase}")

    def progress(self, file: FileToIndex, progress: ReadProgress) -> None:
        """Show how far the reading of one file is."""
        name = file.path.rpartition("/")[2]
        self.say(
            f"{name}: {progress.records:,} records, {progress.pages:,} pages, "
            f"{size(progress.bytes_done)} of {size(progress.bytes_total)}"
        )

    def say(self, text: str) -> None:
        """Show a line if one is due."""
        now = self._clock.monotonic()
        if self._quiet or now - self._said_at < (_LIVE_S if self._is_live else _LINE_S):
            return
        self._said_at = now
        line = plain(f"{self.before}{text}")
        if self._is_live:
            self._console.file.write(f"\r\x1b[2K{line[: self._console.width - 1]}")
            self._console.file.flush()
        else:
            self._console.print(line, soft_wrap=True, markup=False)

    def clear(self) -> None:
        """Make room for a line that stays."""
        if self._is_live:
            self._console.file.write("\r\x1b[2K")
            self._console.file.flush()


@contextmanager
def stoppable(indexer: Indexer) -> Iterator[None]:
    """Let the first Ctrl-C (or a TERM) stop between two batches, and the second at once."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        if indexer.stopping:
            raise KeyboardInterrupt
        indexer.stopping = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def take_in(settings: Settings, clock: Clock) -> None:
    """Let search take in what was read, and what its links say; if another process is at it, that one does it."""
    _give_memory_back()
    with closing(Database(settings.database)) as database, suppress(IndexBusy):
        drain(database, settings.home, clock)
        refresh(database, settings.home, clock)


def _give_memory_back() -> None:
    """Hand what reading files took back to the system, if its library can: search would take as much on top of it."""
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def describe(done: Indexed) -> str:
    """Return what came of one file in a line, and a line for each kind of trouble."""
    lines = [f"{counted(done.records, 'record')}, {counted(done.snapshots, 'snapshot')}, {counted(done.pages, 'page')}"]
    lines += warning_lines(done)
    return "\n".join(lines)


def warning_lines(done: Indexed, *, leaving_out: Collection[str] = ()) -> list[str]:
    """Return a line for each kind of trouble in a file, with its first place."""
    return [
        plain(f"  warning: {kind}, {one['count']} times, first at {one['offset']}: {one['detail']}")
        for kind, one in sorted(done.warnings.items())
        if kind not in leaving_out
    ]


def as_object(done: Indexed) -> dict[str, Any]:
    """Return what came of one file for `--json`."""
    return {
        "file": done.warc_file_id,
        "path": done.path,
        "records": done.records,
        "snapshots": done.snapshots,
        "pages": done.pages,
        "changed": done.changed,
        "kinds": done.kinds,
        "warnings": done.warnings,
        "error": done.error,
    }
