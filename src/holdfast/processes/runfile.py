"""A process's run file: a lock that the kernel releases when the process dies, and the pages being parsed.

The lock shows the next start on this machine immediately that a process is gone; the slots show which page it
died on; the tick shows a watchdog that the event loop is alive. Times use the machine's monotonic clock, shared
by all processes.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast import clock
from holdfast.errors import HoldfastError

# File layout, also read by processes of other versions: tick at 0, boot id at 16, slots from 64 on.
_SLOTS = 8
_TICK = struct.Struct("<d")
_BOOT = struct.Struct("<36s")
_BOOT_AT = 16
_SLOT = struct.Struct("<qd")
_SIZE = 4096
_AGAIN_S = 0.05


class RunFile:
    """Held by one live process. Writing a slot takes less than a microsecond; nothing is synced."""

    def __init__(self, folder: Path, name: str | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / (name or new_name())
        # O_EXCL: names are random, so an existing file belongs to another process.
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(self._fd, _SIZE)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Writing a slot to mapped memory survives the death of the process.
            self._memory = mmap.mmap(self._fd, _SIZE)
        except OSError:
            # Otherwise each retry would leave one more file and descriptor.
            self.path.unlink(missing_ok=True)
            os.close(self._fd)
            raise
        _BOOT.pack_into(self._memory, _BOOT_AT, (boot_id() or "").encode())

    def tick(self, now: float) -> None:
        _TICK.pack_into(self._memory, 0, now)

    def take(self, slot: int, attempt_id: int, now: float) -> None:
        _SLOT.pack_into(self._memory, 64 + slot * _SLOT.size, attempt_id, now)

    def put_down(self, slot: int) -> None:
        _SLOT.pack_into(self._memory, 64 + slot * _SLOT.size, 0, 0.0)

    def close(self) -> None:
        """Delete the file and release the lock."""
        # Remove the file before releasing the lock: an unlocked file means that its process died.
        self.path.unlink(missing_ok=True)
        self.let_go()

    def let_go(self) -> None:
        """Release only the lock, as when a process dies, so that the next start cleans up after this one."""
        self._memory.close()
        os.close(self._fd)


def new_name() -> str:
    return f"{os.urandom(16).hex()}.run"


def is_held(path: Path) -> bool:
    """Return whether a live process holds, or may hold, the lock of this file; unknown if owned by another user."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True
    except OSError as exc:
        if exc.errno != errno.EROFS:
            raise
        # Locks work on a read-only mount, too.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # A shared lock: two starts that check at the same time must not take each other for the owner.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def has_died(path: Path) -> bool:
    """Return whether the lock of this run file proves that its process has died.

    The lock proves nothing if another kernel created the file: locks on shared storage may be local to each machine.
    Nor do host names: two machines may share one.
    """
    return not is_held(path) and path.exists() and boot_id(path) in (None, boot_id())


def is_hidden(path: Path) -> bool:
    """Return whether a run file belongs to another user, so that its lock and contents are unreadable."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def boot_id(path: Path | None = None) -> str | None:
    """Return the boot id under which a run file was created, or the current one; None if unknown.

    Containers on one machine share it; renaming a machine does not change it.
    """
    if path is None:
        return clock.boot_id()
    memory = _read(path)
    return _BOOT.unpack_from(memory, _BOOT_AT)[0].rstrip(b"\0").decode("ascii", "replace") or None if memory else None


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Lock the run file of a dead process during its clean-up; yield False if it is alive or already locked.

    Also False for a file of another user, whose next start cleans up.
    """
    claim: Path | None = None
    if is_hidden(path):
        yield False
        return
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        # A deleted run file cannot be locked: lock a claim file next to its place instead.
        claim = path.with_suffix(".claim")
        claim.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(claim, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        # Another start may have removed the claim between our opening and locking it: a third may hold a new file.
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
    if _read(path):
        with path.open("r+b") as file:
            file.seek(64)
            file.write(bytes(_SLOTS * _SLOT.size))


def last_tick(path: Path) -> float | None:
    """Return when the process's loop was last alive (monotonic); None if never or if the file is gone."""
    head = _read(path)
    return (_TICK.unpack_from(head)[0] or None) if head else None


def parsed_attempts(path: Path) -> dict[int, float]:
    """Return the attempts the process was last parsing, and since when (monotonic seconds)."""
    memory = _read(path)
    slots = [_SLOT.unpack_from(memory, 64 + i * _SLOT.size) for i in range(_SLOTS)] if memory else []
    return {attempt_id: since for attempt_id, since in slots if attempt_id}


def _read(path: Path) -> bytes:
    try:
        memory = path.read_bytes()
    except (FileNotFoundError, PermissionError):
        return b""
    # A file of another size was truncated at creation, or is not a run file.
    return memory if len(memory) == _SIZE else b""


@contextmanager
def alone(path: Path, busy: HoldfastError, *, tries: int = 1) -> Iterator[None]:
    """Lock a file while the block runs; raise `busy` if it is locked, OSError if it cannot be opened.

    Use several `tries` for a file that others lock for a moment to see whether it is free.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        for left in reversed(range(tries)):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as exc:
                if not left:
                    raise busy from exc
                time.sleep(_AGAIN_S)
        yield
    finally:
        os.close(fd)


def step_back(nice: int) -> int:
    """Lower the priority of this process and its children to this niceness; return the effective one.

    For work that no reader waits for: at 10 it gets a tenth of a core shared with a busy server, and all of an idle
    one. A process with a higher niceness stays unchanged.
    """
    return os.nice(max(0, nice - os.nice(0)))


def own_command(*arguments: str) -> tuple[str, ...]:
    """Return the command line that starts `holdfast` with the current interpreter."""
    return sys.executable, "-P", "-m", "holdfast.cli.main", *arguments
