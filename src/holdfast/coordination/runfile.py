"""A process's run file: a lock that the kernel lets go when the process dies, and the pages that it is parsing.

The lock tells the next start on this machine at once which process is gone; the slots tell which page it died on; the
tick tells a watchdog that the event loop gets on. Times are the machine's monotonic clock, the same for all processes.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast import clock
from holdfast.errors import HoldfastError

# The layout of the file, which processes of another version may read: tick at 0, boot id at 16, slots from 64 on.
_SLOTS = 8
_TICK = struct.Struct("<d")
_BOOT = struct.Struct("<36s")
_BOOT_AT = 16
_SLOT = struct.Struct("<qd")
_SIZE = 4096


class RunFile:
    """Held by one live process. Writing a slot costs less than a microsecond; nothing is synced."""

    def __init__(self, folder: Path, name: str | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / (name or new_name())
        # O_EXCL: a name is drawn at random, and a file that is there belongs to another process.
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(self._fd, _SIZE)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Mapped: to write a slot is a copy in memory, and what was written survives the death of the process.
            self._memory = mmap.mmap(self._fd, _SIZE)
        except OSError:
            # Who tries again would leave one more file, and one more descriptor, each time.
            self.path.unlink(missing_ok=True)
            os.close(self._fd)
            raise
        _BOOT.pack_into(self._memory, _BOOT_AT, (boot_id() or "").encode())

    def tick(self, now: float) -> None:
        """Say that the event loop is alive."""
        _TICK.pack_into(self._memory, 0, now)

    def take(self, slot: int, attempt_id: int, now: float) -> None:
        """Say that this attempt is being parsed: if the process dies now, the crash counts against it."""
        _SLOT.pack_into(self._memory, 64 + slot * _SLOT.size, attempt_id, now)

    def put_down(self, slot: int) -> None:
        """Say that nothing is being parsed any more."""
        _SLOT.pack_into(self._memory, 64 + slot * _SLOT.size, 0, 0.0)

    def close(self) -> None:
        """Remove the file and let go of the lock."""
        # Removed before the lock is let go: a free lock on a file that is there says that its process died.
        self.path.unlink(missing_ok=True)
        self.let_go()

    def let_go(self) -> None:
        """Let go of the lock alone, as a process that dies does: the next start cleans up after this one."""
        self._memory.close()
        os.close(self._fd)


def new_name() -> str:
    """Return a name for a run file that no other process has."""
    return f"{os.urandom(16).hex()}.run"


def is_held(path: Path) -> bool:
    """Return whether a live process holds the lock of this file, or may: one of another user tells us nothing."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True
    except OSError as exc:
        if exc.errno != errno.EROFS:
            raise
        # A mount that may only be read: its locks can be asked for all the same.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Shared, so that two starts that look at once do not take each other for the owner.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def is_hidden(path: Path) -> bool:
    """Return whether a run file belongs to another user, so that neither its lock nor its contents can be read."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def boot_id(path: Path | None = None) -> str | None:
    """Return which boot of which kernel a run file was made under, or the one that we run under; None if unknown.

    Containers of one machine share it, and so does a machine that was renamed.
    """
    if path is None:
        return clock.boot_id()
    memory = _read(path)
    return _BOOT.unpack_from(memory, _BOOT_AT)[0].rstrip(b"\0").decode("ascii", "replace") or None if memory else None


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Hold the run file of a dead process while cleaning up after it; False if it lives or another start is at it.

    False also for one of another user, whose next start cleans up.
    """
    claim: Path | None = None
    if is_hidden(path):
        yield False
        return
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        # A run file that is gone cannot be held: a file beside its place is, for as long as it takes.
        claim = path.with_suffix(".claim")
        claim.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(claim, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        # Removed by another start that had it between our opening and our locking: a third one may hold a new file.
        if claim is not None and not _is_at(fd, claim):
            yield False
            return
        try:
            yield True
        finally:
            if claim is not None:
                claim.unlink(missing_ok=True)
    finally:
        os.close(fd)


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def clear_slots(path: Path) -> None:
    """Clear what a dead process was parsing, once the crash was counted: one death counts once against a page."""
    if _read(path):
        with path.open("r+b") as file:
            file.seek(64)
            file.write(bytes(_SLOTS * _SLOT.size))


def last_tick(path: Path) -> float | None:
    """Return when the process's loop was last alive (monotonic), or None if it never was or the file is gone."""
    head = _read(path)
    return (_TICK.unpack_from(head)[0] or None) if head else None


def parsed_attempts(path: Path) -> dict[int, float]:
    """Return the attempts that the process was parsing when last seen, and since when (monotonic seconds)."""
    memory = _read(path)
    slots = [_SLOT.unpack_from(memory, 64 + i * _SLOT.size) for i in range(_SLOTS)] if memory else []
    return {attempt_id: since for attempt_id, since in slots if attempt_id}


def _read(path: Path) -> bytes:
    try:
        memory = path.read_bytes()
    except (FileNotFoundError, PermissionError):
        return b""
    # A file of another size was torn when it was made, or is not a run file.
    return memory if len(memory) == _SIZE else b""


@contextmanager
def alone(path: Path, busy: HoldfastError) -> Iterator[None]:
    """Hold the lock of a file while the block runs; raise `busy` at once if another has it, OSError as `open`."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise busy from exc
        yield
    finally:
        os.close(fd)


def step_back(nice: int) -> int:
    """Give up this process's priority, and that of what it starts, down to this niceness; return the one in force.

    Work that no reader waits for does so: at 10 beside a server on the same core it gets a tenth of it, and all of an
    idle one. A process that is nicer already stays so.
    """
    return os.nice(max(0, nice - os.nice(0)))
