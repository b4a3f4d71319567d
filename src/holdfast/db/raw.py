"""The raw connection of crawl, index and processes: one thread, explicit transactions, bulk loading.

Statements are written once, with `?`. This module has the differences between the two databases (bulk load,
transaction start, error names) and the handling of the SQLite file: opening it read-only, checking for damage,
and detecting that it was replaced. It does not import SQLAlchemy, so that a crawl process stays small.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, unquote, urlsplit

from holdfast import log
from holdfast.clock import Clock, SystemClock, from_micros
from holdfast.db.sqlite import DatabaseLocked, boot_micros, is_locked
from holdfast.errors import HoldfastError, NoSpace, Unavailable
from holdfast.records import Operator, record

NOTE = "write_refused.json"
FULL = "the disk of the database is full; free some space, nothing committed is lost"
_OVER_QUOTA = (
    "the disk takes no more of the database, by a quota or a limit on the size of files; lift it, "
    "nothing committed is lost"
)
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# The bits of an extended result code that hold the primary code.
_PRIMARY = 0xFF
_PROBE_BYTES = 64 * 1024
# A full disk still accepts writes that fit into existing pages: a note expires after this time without a refusal.
_STANDS = timedelta(minutes=1)

_clock = SystemClock()
# The data directory of each database that this process has opened, by `_key`.
_homes: dict[str, Path] = {}
# Databases that may have a note.
_noted: set[str] = set()


@record
class WriteRefusal:
    """A write that failed because the disk was full."""

    at: Operator[datetime]
    message: Operator[str]

    def sentence(self) -> str:
        return f"the last write was refused for want of room at {self.at:%Y-%m-%d %H:%M:%S} UTC: {self.message}"


def note_below(home: Path, database_url: str) -> None:
    """Record write refusals of this database in a data directory; a successful write of ours clears an old record."""
    _homes[_key(database_url)] = home
    if (home / NOTE).exists():
        _noted.add(_key(database_url))


def last_refusal(home: Path) -> WriteRefusal | None:
    """Return the current refusal; None if a write has succeeded since."""
    try:
        content = (home / NOTE).read_bytes()
        if not content:
            return WriteRefusal(at=datetime.fromtimestamp((home / NOTE).stat().st_mtime, UTC), message=FULL)
        note = json.loads(content)
        return WriteRefusal(at=datetime.fromisoformat(note["at"]), message=str(note["message"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def want_of_room(database_url: str, message: str = FULL) -> NoSpace:
    """Record a write that failed because the disk was full, and return the error for it."""
    key = _key(database_url)
    home = _homes.get(key)
    if home is not None:
        _noted.add(key)
        with suppress(OSError):
            text = json.dumps({"at": _clock.now().isoformat(), "message": message})
            fresh = home / f".{NOTE}.{os.getpid()}"
            try:
                fresh.write_text(text)
            except OSError:
                # The note is usually on the full disk, which still has room for an empty file: that is a note, too.
                os.truncate(fresh, 0)
            # Rename, so that a reader never sees half of the file.
            fresh.replace(home / NOTE)
    return NoSpace(message)


def taken(database_url: str) -> None:
    """Record a successful write: an old enough note of a refusal is deleted."""
    key = _key(database_url)
    if key not in _noted or (home := _homes.get(key)) is None:
        return
    found = last_refusal(home)
    # Ignore a note from the future (the clock was set back), which would never expire.
    if found is not None and timedelta(0) <= _clock.now() - found.at < _STANDS:
        return
    with suppress(OSError):
        (home / NOTE).unlink(missing_ok=True)
        _noted.discard(key)


def sqlite_refusal(path: Path, exc: sqlite3.Error) -> NoSpace | None:
    """Record a refusal and return its error if the disk of the file is full; None for other errors."""
    address = f"sqlite:///{path}"
    if exc.sqlite_errorcode & _PRIMARY == sqlite3.SQLITE_FULL:
        return want_of_room(address)
    # SQLite reports a full disk, but a quota or file size limit only as an I/O error. A test write next to the file
    # distinguishes them from a broken disk.
    if exc.sqlite_errorcode & _PRIMARY == sqlite3.SQLITE_IOERR and _is_refused_beside(path):
        return want_of_room(address, _OVER_QUOTA)
    return None


def _is_refused_beside(path: Path) -> bool:
    beside = (path, path.with_name(f"{path.name}-wal"))
    try:
        end = max(one.stat().st_size for one in beside if one.exists())
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            # Write at the file's current end: a file size limit takes effect there, not at the start of a new file.
            os.pwrite(probe.fileno(), b"\0" * _PROBE_BYTES, end)
    except OSError as exc:
        return exc.errno in _NO_ROOM
    # Both files are gone.
    except ValueError:
        return False
    return False


def _key(database_url: str) -> str:
    return unquote(database_url.partition("://")[2])


class DatabaseMoved(Unavailable):
    """The SQLite file was moved away or replaced while it was open."""

    code = "database_moved"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"the database {path} was moved away or replaced while it was in use, or is written again although it was "
            "opened to be read only; put it back, or restart this"
        )


class StatementTimeout(Unavailable):
    """A statement exceeded STATEMENT_S. The database is up; the same statement would time out again."""

    code = "statement_timeout"

    def __init__(self) -> None:
        super().__init__(
            f"a statement took the database longer than {STATEMENT_S:.0f} s; check its load, its disk and that "
            "autovacuum is on, then start this again: the work so far is kept"
        )


class DatabaseDamaged(HoldfastError):
    """The SQLite file is damaged. Not Unavailable: callers retry that, and waiting repairs no file."""

    code = "database_damaged"


def damaged(path: Path | None, trouble: str) -> DatabaseDamaged:
    """Return the error for a damaged file, with the two ways to recover."""
    return DatabaseDamaged(
        f"the database {path} is damaged: {trouble}; end all processes, move the file away, and put a copy of it back, "
        "or rebuild its rows from the WARC files: holdfast index --rebuild"
    )


def damage_of(exc: BaseException | None, path: Path | None) -> DatabaseDamaged | None:
    """Return the error for a file that SQLite cannot read as a database; None for any other problem."""
    code = getattr(exc, "sqlite_errorcode", None)
    if code is None or code & _PRIMARY not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return None
    return damaged(path, str(exc))


class DatabaseReadOnly(Unavailable):
    """The SQLite file is read-only here."""

    code = "database_read_only"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"nothing can be changed here: {path} or its folder is read-only for this user; make both writable, or "
            "choose another data directory with --home"
        )


def open_sqlite(path: Path, *, timeout_s: float, cached_statements: int = 128) -> sqlite3.Connection:
    """Open a file for use from any thread; create a missing one, open an unwritable one read-only.

    Raise sqlite3.Error if that fails too: `refused` explains it.
    """
    address = _read_only_address(path)
    # Different threads use a connection, one at a time; transactions are explicit.
    return sqlite3.connect(
        path if address is None else address,
        uri=address is not None,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=cached_statements,
    )


_SWITCH_S = 0.02


def switch_to_wal(connection: sqlite3.Connection, *, timeout_s: float) -> None:
    """Switch a file to WAL mode, so that readers and a writer do not block each other.

    While others write to a new file, SQLite rejects this immediately, whatever the connection's timeout: two
    commands that start on an empty folder conflict here.
    """
    for left in range(max(1, round(timeout_s / _SWITCH_S)), -1, -1):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or not left:
                raise
        else:
            return
        time.sleep(_SWITCH_S)


def is_read_only(path: Path) -> bool:
    return _read_only_address(path) is not None


def _read_only_address(path: Path) -> str | None:
    log, shared = path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")
    if not path.is_file():
        return None
    # A writer needs both files next to the database; if the folder is read-only, they have to exist.
    if os.access(path, os.W_OK) and (
        os.access(path.parent, os.W_OK) or (os.access(log, os.W_OK) and os.access(shared, os.W_OK))
    ):
        return None
    # Without a log no process writes and the file is complete: only then can it be read where no file can be created.
    # With a log both are read, if the log's index exists.
    has_log = log.is_file() and log.stat().st_size > 0
    return f"file:{quote(str(path))}?mode=ro" + ("" if has_log else "&immutable=1")


def refused(path: Path, exc: sqlite3.Error) -> Unavailable:
    """Return the error for a file that could not be opened or written, with the next step."""
    if not path.parent.is_dir():
        return Unavailable(
            f"there is no folder {path.parent}, so there is no database in it; is its storage mounted? If it never was "
            "there, make it, or choose another data directory with --home"
        )
    if not path.exists() and not os.access(path.parent, os.W_OK):
        return Unavailable(
            f"there is no database in {path.parent}, and none can be made: the folder is read-only for this user; make "
            "it writable, or choose another data directory with --home"
        )
    if is_read_only(path) and exc.sqlite_errorcode & _PRIMARY == sqlite3.SQLITE_CANTOPEN:
        return Unavailable(
            f"{path} was not closed, and its last changes are in {path.name}-wal, which can only be read "
            "where the folder can be written: make it writable, or copy the data directory to where it is"
        )
    if exc.sqlite_errorcode & _PRIMARY == sqlite3.SQLITE_READONLY:
        return DatabaseReadOnly(path)
    return Unavailable(f"cannot open the database {path}: {exc}; check the folder and its free space")


class OpenSqliteFile:
    """A SQLite file identified by its inode, as it was before it was opened.

    A file that was moved away, deleted or replaced still works for processes that have it open: they would read
    data that no other connection sees, and their writes would be lost when the last of them ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # A file opened as immutable is read without locks and without the log: correct until another user writes it.
        self._is_fixed = "immutable" in (_read_only_address(path) or "")
        self._opened = self._found()

    def note(self) -> None:
        """Record the file's identity if it did not exist before the first connection."""
        self._opened = self._opened or self._found()

    def demand_same(self) -> None:
        """Raise DatabaseMoved if the path has another file or none. Costs one stat call."""
        # Writes to a file that was moved away would be lost silently when the last process closes it.
        if not self.is_same():
            raise DatabaseMoved(self._path)

    def is_same(self) -> bool:
        """Return whether the path still leads to the file opened first; true before any was opened."""
        return self._opened is None or self._found() == self._opened

    def _found(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - a third of the time of Path.stat, for every transaction
        except OSError:
            return None
        # A deleted file's inode number may be reused at once for a folder in its place.
        identity = found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode)
        if not self._is_fixed:
            return identity
        log = self._path.with_name(f"{self._path.name}-wal")
        return *identity, found.st_mtime_ns, log.stat().st_size if log.exists() else 0


def is_driver_error(exc: BaseException | None) -> bool:
    """Return whether a database driver raised it; such messages contain hosts, ports and files."""
    # Compare the module's name: psycopg is not loaded where it is unused.
    return isinstance(exc, sqlite3.Error) or (exc is not None and type(exc).__module__.startswith("psycopg"))


Row = tuple[Any, ...]


class Transaction(Protocol):
    """Runs statements inside `RawDatabase.write` or `RawDatabase.read`."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows, if it has any."""
        ...

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None: ...

    def load(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Append rows to a (temporary) table by the database's fastest method."""
        ...


class RawDatabase(Protocol):
    """One connection, used by one thread at a time."""

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        ...

    @property
    def generation(self) -> int:
        """Incremented with each new connection, which has no temporary tables or session settings of the old one."""
        ...

    def write(self) -> AbstractContextManager[Transaction]:
        """Open a transaction that may write; commits at the end of the block, rolls back on an error.

        Raise Unavailable if the database does not answer, is busy for too long, or rolled back (deadlock). It may or
        may not have been committed, so repeat only idempotent work. Raise NoSpace if its disk is full.
        """
        ...

    def read(self) -> AbstractContextManager[Transaction]: ...

    def now_micros(self, machine: Clock) -> int:
        """Return the database's time: the server's clock, or the one that all processes on a file share."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


# Rows of one SQLite insert: binding dominates, so 3.0 us a row of eight columns fall to 1.9; 250 give 1.8.
_ROWS_AT_ONCE = 50


class _SqliteTransaction:
    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)

    def load(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        # Names come from our own constants, never from data.
        insert = f"INSERT INTO {table}({','.join(columns)}) VALUES "  # noqa: S608
        marks = f"({','.join('?' * len(columns))})"
        whole = len(rows) - len(rows) % _ROWS_AT_ONCE
        wide = insert + ",".join([marks] * _ROWS_AT_ONCE)
        for start in range(0, whole, _ROWS_AT_ONCE):
            self._connection.execute(wide, tuple(chain.from_iterable(rows[start : start + _ROWS_AT_ONCE])))
        if whole < len(rows):
            self._connection.executemany(insert + marks, rows[whole:])


class SqliteRawDatabase:
    """SQLite in WAL mode; `synchronous=FULL` is free at one commit for some hundred pages."""

    dialect = "sqlite"
    generation = 1

    def __init__(self, path: Path, *, busy_timeout_s: float = 30.0) -> None:
        self._path = path
        # Create this before opening: it notices a writer that starts in between.
        self._file = OpenSqliteFile(path)
        try:
            self._connection = open_sqlite(path, timeout_s=busy_timeout_s, cached_statements=256)
            # Checkpoint every 16 MB of log, not 4: a batch of 5,000 links writes 2 MB, and pages that two batches
            # change are copied once (13.9 against 13.1 us of CPU a link).
            pragmas = ["synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY", "cache_size=-16000"]
            pragmas += ["mmap_size=268435456", "journal_size_limit=67108864", "wal_autocheckpoint=4000"]
            if not is_read_only(path):
                switch_to_wal(self._connection, timeout_s=busy_timeout_s)
            for pragma in pragmas:
                self._connection.execute(f"PRAGMA {pragma}")
            self._file.note()
        except sqlite3.Error as exc:
            if (damage := damage_of(exc, path)) is not None:
                raise damage from exc
            raise refused(path, exc) from exc

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_SqliteTransaction]:
        self._file.demand_same()
        try:
            # Writers use `BEGIN IMMEDIATE`: a reader that becomes a writer halfway is refused at once, whatever its
            # timeout.
            self._connection.execute(begin)
            try:
                yield _SqliteTransaction(self._connection)
            except BaseException:
                # After some errors (a full disk) SQLite has rolled back already; a second ROLLBACK would be an error.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.DatabaseError as exc:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if (damage := damage_of(exc, self._path)) is not None:
                raise damage from exc
            # A violated constraint is a bug of ours, which a retry does not fix.
            if not isinstance(exc, sqlite3.OperationalError):
                raise
            if (full := sqlite_refusal(self._path, exc)) is not None:
                raise full from exc
            if exc.sqlite_errorcode & _PRIMARY in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise refused(self._path, exc) from exc
            if is_locked(exc):
                raise DatabaseLocked(self._path) from exc
            raise Unavailable(f"the database did not take the transaction: {exc}") from exc
        if begin != "BEGIN":
            taken(f"sqlite:///{self._path}")

    def write(self) -> AbstractContextManager[Transaction]:
        return self._transaction("BEGIN IMMEDIATE")

    def read(self) -> AbstractContextManager[Transaction]:
        return self._transaction("BEGIN")

    def now_micros(self, machine: Clock) -> int:
        with self.read() as tx:
            return boot_micros(tx.execute, machine)

    def close(self) -> None:
        self._connection.close()


# OFFSET keeps PostgreSQL from turning the subquery into a join. Before the first ANALYZE it assumes that tables are
# nearly empty and would compare each attempt of an execution with all others.
IS_LAST_ATTEMPT = (
    "NOT EXISTS (SELECT 1 FROM page_crawls n WHERE n.execution_id = c.execution_id AND n.domain_id = c.domain_id"
    " AND n.page_id = c.page_id AND n.attempt = c.attempt + 1 LIMIT 1 OFFSET 0)"
)
"""A condition on `page_crawls c`: no later attempt on the page exists."""


STATEMENT_S = 30.0
"""Statement timeout; a statement reads a page of rows, or writes a batch."""


def connect_arguments(*, statement_s: float | None = STATEMENT_S) -> dict[str, Any]:
    """Return psycopg's connection arguments: five seconds to connect, a statement timeout, TCP keepalives.

    None lifts the limits on statements and idle transactions: only a migration may use it.
    """
    limit_ms = int((statement_s or 0) * 1000)
    return {
        "connect_timeout": 5,
        # No JIT: compiling takes longer than our short queries (jobs by status took 614 ms with it, 56 without).
        "options": f"-c statement_timeout={limit_ms} -c idle_in_transaction_session_timeout={limit_ms} -c jit=off",
        # Detect a server that vanished without closing the connection after about ten seconds, not two hours.
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": limit_ms or int(STATEMENT_S * 1000),
    }


WAITS_S = (0.1, 0.2, 0.4)
_log = log.get()
_Answer = TypeVar("_Answer")


def persist(
    call: Callable[[], _Answer], *, sleep: Callable[[float], object], waits_s: Sequence[float] = WAITS_S
) -> _Answer:
    """Return the result of the call, retrying after each wait while it raises Unavailable.

    The last Unavailable is raised, a full disk (NoSpace) immediately. A commit whose response was lost counts as
    failed: the call must be idempotent.
    """
    for wait_s in waits_s:
        try:
            return call()
        # NoSpace is an Unavailable, so it comes first: waiting does not empty a disk.
        except NoSpace:
            raise
        except Unavailable as exc:
            _log.warning("db.retry", message=str(exc), wait_s=wait_s)
            sleep(wait_s)
    return call()


# Repeat a round trip that took longer than this, up to the limit below.
_QUICK_S = 0.05
_READINGS = 3


class DatabaseClock:
    """The database's time, by offset from the monotonic clock; for any thread, adjusted by the connection's thread."""

    def __init__(self, raw_db: RawDatabase, base: Clock | None = None) -> None:
        self._raw_db = raw_db
        self.base: Clock = base or SystemClock()
        """The clock of this machine."""
        # The server's time and ours (monotonic) in one attribute: other threads read it at any time.
        self._reading = self.base.now(), self.base.monotonic()
        self.synchronise()

    def synchronise(self) -> float:
        """Read the database's clock again; return the seconds by which this one was behind. Raise Unavailable."""
        # The server reads its clock during the round trip, so the middle is wrong by at most half of it. A process
        # frozen during a reading would be wrong by that long: it reads again, and the quickest reading counts.
        readings: list[tuple[float, int, float]] = []
        while len(readings) < _READINGS:
            before = self.base.monotonic()
            micros = self._raw_db.now_micros(self.base)
            after = self.base.monotonic()
            readings.append((after - before, micros, (before + after) / 2))
            if after - before <= _QUICK_S:
                break
        _, quickest, mark = min(readings)
        at = from_micros(quickest)
        known, known_mark = self._reading
        behind = at - (known + timedelta(seconds=mark - known_mark))
        self._reading = at, mark
        return behind.total_seconds()

    def now(self) -> datetime:
        at, mark = self._reading
        return at + timedelta(seconds=self.base.monotonic() - mark)

    def monotonic(self) -> float:
        return self.base.monotonic()


def sqlite_path(database_url: str) -> Path | None:
    parts = urlsplit(database_url)
    return Path(unquote(database_url[len("sqlite:///") :])) if parts.scheme == "sqlite" else None


def synchronise(*clocks: Clock) -> None:
    """Synchronise each `DatabaseClock` with its server, and ignore other clocks; call on their connection's thread."""
    for clock in clocks:
        if isinstance(clock, DatabaseClock):
            clock.synchronise()
