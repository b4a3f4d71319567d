"""Cache of assembled packages in the data directory: their layout and generated members.

The key of a package is a fingerprint of everything its bytes depend on, so a relevant takedown or a new index
makes a new package immediately. One process builds it at a time; others get PackageBusy. The cache has a size
limit: beyond it, the least recently requested packages are deleted, never one that any process reads or builds.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any

from cachetools import LRUCache

from holdfast.clock import from_micros, to_micros
from holdfast.config import DiskSettings
from holdfast.db.engine import Database
from holdfast.errors import Unavailable
from holdfast.exports.package import RECORD_BYTES, Contents, build, read_contents, read_edition
from holdfast.exports.queries import ExportedFile, file_key, records_noted
from holdfast.exports.redaction import FOLDER, is_noted, noted_pages, stored_notes
from holdfast.exports.zipping import FileRange, Segment, VirtualZip, ZipMember
from holdfast.processes.disk import CachedFile, demand_room, trim
from holdfast.processes.runfile import alone
from holdfast.steps import FileStep, OnStep, ignore_step
from holdfast.storage.disk import disk_error, sync_directory
from holdfast.storage.roots import stored_file
from holdfast.storage.store import FileKey, StoredFile
from holdfast.values import dataclass
from holdfast.withdrawals.viewers import Viewer, seen_by
from holdfast.withdrawals.visibility import is_any_withdrawn, pages_taken_down

# The package's contents. This file is written last, its age shows the package's last use, and all readers of the
# package share a lock on it.
LAYOUT = "layout.json"
_LOCK = ".lock"
# The work of the process that holds the lock.
_STEP = ".step"
# Layouts that stay in memory.
_HELD = 16
# Packages whose relevant takedowns are known in memory.
_NOTED = 256


class PackageBusy(Unavailable):
    """This package is being assembled; try again later."""

    code = "package_busy"

    def __init__(self, place: Path | None = None) -> None:
        at = ""
        if place is not None:
            with suppress(OSError):
                at = f" ({(place / _STEP).read_text()})"
        super().__init__(f"this package is being built{at}; try again in a few seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPackage:
    name: str
    etag: str
    """Identical for identical bytes."""
    archive: VirtualZip
    folder: Path

    def read(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from `start` to `end`; the package stays in the cache until the iterator ends or is closed.

        Raise PackageBusy if it was just removed; NotFound or MemberChanged if a file differs from its sealed state.
        """
        with _reading(self.folder):
            yield from self.archive.read(start, end)


WantedPackage = tuple[Callable[[], Contents], str]
"""A function that reads the current content of a package, and the name of its folder."""


class PackageCache:
    """All packages of one data directory. Thread-safe."""

    def __init__(
        self,
        database: Database,
        home: Path,
        *,
        most_bytes: int,
        folder: Path | None = None,
        disk: DiskSettings | None = None,
    ) -> None:
        """Store packages below `folder`, by default in the data directory.

        With `disk`, no build starts that would leave less free space on the volume than its settings require.
        """
        self._disk = disk
        self._database, self._home, self._most_bytes = database, home.resolve(), most_bytes
        self._folder = (self._home / "cache" if folder is None else folder.resolve()) / "wacz"
        self._held: LRUCache[str, CachedPackage] = LRUCache(_HELD)
        self._noted: LRUCache[Hashable, frozenset[tuple[int, str]]] = LRUCache(_NOTED)
        self._lock = Lock()
        self.on_step: OnStep = ignore_step

    def package(self, execution_id: int) -> CachedPackage:
        """Return the current package of an execution, building it if necessary.

        Raise NotFound, NothingSealed, MemberChanged; PackageBusy while another process builds it; Unavailable if the
        disk fails.
        """
        return self.made(self.of_execution(execution_id))

    def edition(self, edition_id: int) -> CachedPackage:
        """Return the package of an annual edition with all its shards; raises the same errors as `package`."""
        return self.made(self.of_edition(edition_id))

    def of_execution(self, execution_id: int) -> WantedPackage:
        return lambda: read_contents(self._database, execution_id), str(execution_id)

    def of_edition(self, edition_id: int) -> WantedPackage:
        return lambda: read_edition(self._database, edition_id), f"edition-{edition_id}"

    def made(self, wanted: WantedPackage) -> CachedPackage:
        """Return a package, building it if it is not in the cache. Raises the same errors as `package`."""
        contents = self._read(wanted, is_allowed=True)
        folder = self._folder / wanted[1] / contents.fingerprint
        if not _touched(folder):
            self._build(contents, folder, wanted)
        return self._held_or_opened(contents, folder)

    def ready(self, wanted: WantedPackage) -> CachedPackage | None:
        """Return a cached package without reading a WARC file, None if it is not cached; raise NotFound or
        NothingSealed.
        """
        contents = self._read(wanted, is_allowed=False)
        folder = self._folder / wanted[1] / contents.fingerprint
        return self._held_or_opened(contents, folder) if _touched(folder) else None

    def _read(self, wanted: WantedPackage, *, is_allowed: bool) -> Contents:
        """Return the package's current content and the takedowns that affect it; read files for that only if
        `is_allowed`.
        """
        read, place = wanted
        contents = read()
        key = contents.withdrawals, tuple(file.id for file in contents.files)
        with self._lock:
            noted = self._noted.get(key)
        if noted is None:
            unread = [file for file in contents.files if not is_noted(self._folder, file.sha256)]
            with self._database.read() as session:
                is_any = is_any_withdrawn(session)
            # Without a takedown no file has to be read; until they are read, every takedown concerns the package.
            if is_any and unread and not is_allowed:
                return contents
            noted = self._find_noted(contents, place, unread) if is_any else frozenset[tuple[int, str]]()
            with self._lock:
                self._noted[key] = noted
        return replace(contents, noted=noted)

    def _find_noted(self, contents: Contents, place: str, unread: list[ExportedFile]) -> frozenset[tuple[int, str]]:
        found = set()
        with self._database.read() as session:
            taken_down = pages_taken_down(session)
        with ExitStack() as stack:
            on_step: OnStep = ignore_step
            if unread:  # one at a time: it may take minutes
                (self._folder / place).mkdir(parents=True, exist_ok=True)
                on_step = stack.enter_context(self._building(self._folder / place))
            for number, file in enumerate(contents.files, 1):
                on_step(FileStep(number, len(contents.files), file.key.rpartition("/")[2], "reading"))
                try:
                    keys = noted_pages(self._folder, stored_file(self._home, file_key(file)), file.sha256)
                except OSError as exc:
                    raise disk_error(exc, f"cannot note the pages of {file_key(file)}: {exc.strerror}") from exc
                found |= {(file.id, key) for key in taken_down.intersection(keys)}
        return frozenset(found)

    def _held_or_opened(self, contents: Contents, folder: Path) -> CachedPackage:
        with self._lock:
            found = self._held.get(folder.name)
        found = found or self._opened(contents, folder)
        with self._lock:
            self._held[folder.name] = found
        return found

    def _opened(self, contents: Contents, folder: Path) -> CachedPackage:
        try:
            layout = json.loads((folder / LAYOUT).read_bytes())
        except FileNotFoundError as exc:  # another process needed the room at this very moment
            raise PackageBusy from exc
        members = [_member(item, self._home) for item in layout["members"]]
        return CachedPackage(
            name=f"{contents.name}.wacz",
            etag=sha256(repr([(item.name, item.crc32, item.size) for item in members]).encode()).hexdigest()[:32],
            archive=VirtualZip(members, from_micros(layout["moment"])),
            folder=folder,
        )

    def _build(self, contents: Contents, folder: Path, wanted: WantedPackage) -> None:
        """Build in a temporary folder, then move it into place: other processes see all of the package or nothing."""
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with self._building(folder.parent) as on_step:
                if (folder / LAYOUT).exists():
                    return
                _remove_unfinished(folder.parent)
                self._demand_room(contents, folder.parent)
                fresh = Path(mkdtemp(dir=folder.parent, prefix=".building-"))
                try:
                    self._write(contents, fresh, folder, on_step)
                    # A takedown may happen while the members are written: a package that is completed after it must
                    # not contain the hidden captures.
                    if self._read(wanted, is_allowed=False).fingerprint != contents.fingerprint:
                        raise PackageBusy
                    fresh.rename(folder)
                    sync_directory(folder.parent)
                except BaseException:
                    shutil.rmtree(fresh, ignore_errors=True)
                    raise
                for package in _packages_in(folder.parent):
                    if package.path != folder:  # it shows what has changed since
                        _remove(package.path)
            self._trim(keep=folder)
        except OSError as exc:
            raise disk_error(exc, f"cannot write the package's index below {self._folder}: {exc.strerror}") from exc

    @contextmanager
    def _building(self, place: Path) -> Iterator[OnStep]:
        with alone(place / _LOCK, PackageBusy(place)):

            def note(step: FileStep) -> None:
                (place / _STEP).write_text(str(step))
                self.on_step(step)

            try:
                yield note
            finally:
                (place / _STEP).unlink(missing_ok=True)

    def _demand_room(self, contents: Contents, place: Path) -> None:
        """Raise if the build would fill the volume: sorting the index and listing the pages need scratch space."""
        if self._disk is None:
            return
        with self._database.read() as session:
            records = sum(records_noted(session, execution_id=one.id) for one in contents.executions)
        demand_room(place, self._disk, for_bytes=records * RECORD_BYTES)

    def _write(self, contents: Contents, fresh: Path, folder: Path, on_step: OnStep) -> None:
        """Write a package into the folder `fresh`; members are named by their final path in `folder`."""
        # The first request builds it for all readers that may have it: with public originals and those of its source.
        with seen_by(Viewer(granted=contents.executions[0].source_id)):
            members = build(self._database, self._home, contents, fresh, on_step)
        items = [_item(member, self._home, fresh, folder) for member in members]
        layout = {"moment": to_micros(contents.moment), "members": items}
        (fresh / LAYOUT).write_text(json.dumps(layout))
        # After a power loss a package must be complete or missing: name it when its bytes are on disk.
        for path in fresh.rglob("*"):
            # This works for files, too: open and sync are the same calls.
            sync_directory(path)
        sync_directory(fresh)

    def _trim(self, *, keep: Path) -> None:
        """Delete packages and page lists, least recently used first, until the cache fits its limit; `keep` stays."""
        for place in _places_in(self._folder):
            if place != keep.parent:
                # A locked folder is being built: unfinished folders in it belong to its builder.
                with suppress(PackageBusy), alone(place / _LOCK, PackageBusy()):
                    _remove_unfinished(place)
        found = [*_packages_below(self._folder), *stored_notes(self._folder)]
        trim(found, self._most_bytes, keep=keep, remove=_remove)


def cached_packages(home: Path) -> list[CachedFile]:
    folder = home.resolve() / "cache" / "wacz"
    return _packages_below(folder) if folder.is_dir() else []


def _packages_below(folder: Path) -> list[CachedFile]:
    return [package for place in _places_in(folder) for package in _packages_in(place)]


def _places_in(folder: Path) -> list[Path]:
    return [place for place in folder.iterdir() if place.is_dir() and place.name != FOLDER]


def remove_packages(home: Path) -> int:
    """Delete every package that is not being read, and return the freed bytes; packages are rebuilt on request."""
    return sum(package.size for package in cached_packages(home) if _remove(package.path))


def _packages_in(place: Path) -> list[CachedFile]:
    found: list[CachedFile] = []
    for folder in place.iterdir():
        with suppress(FileNotFoundError, NotADirectoryError):  # one that another process removes meanwhile
            if not folder.name.startswith("."):
                asked_at = (folder / LAYOUT).stat().st_mtime_ns
                size = sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))
                found.append(CachedFile(asked_at, folder, size))
    return found


def _touched(folder: Path) -> bool:
    """Update a package's time of last use; return False if it does not exist."""
    try:
        os.utime(folder / LAYOUT)
    except FileNotFoundError:
        return False
    except OSError:  # of another owner: its age stays as it is
        return True
    return True


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Keep a package in the cache while the block runs; raise PackageBusy if it is gone or is being deleted."""
    try:
        fd = os.open(folder / LAYOUT, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as exc:
        raise PackageBusy from exc
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            # Another process may have removed and rebuilt it between the two steps.
            is_there = os.path.samestat(os.fstat(fd), (folder / LAYOUT).stat())
        except (BlockingIOError, FileNotFoundError) as exc:
            raise PackageBusy from exc
        if not is_there:
            raise PackageBusy
        yield
    finally:
        os.close(fd)


def _remove(folder: Path) -> bool:
    """Delete a package or page list unless a process is reading it; return True if it is gone."""
    if folder.parent.name == FOLDER:
        folder.unlink(missing_ok=True)
        return True
    try:
        fd = os.open(folder / LAYOUT, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Use a temporary name first: half a package must not have a package's name.
        gone = folder.with_name(f".removed-{folder.name}-{os.getpid()}")
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return True
    finally:
        os.close(fd)
    return True


def _remove_unfinished(place: Path) -> None:
    """Delete the leftovers of killed processes; call this only while holding the lock of the place."""
    for path in place.iterdir():
        if path.is_dir() and path.name.startswith("."):
            shutil.rmtree(path, ignore_errors=True)


def _item(member: ZipMember, home: Path, fresh: Path, folder: Path) -> dict[str, Any]:
    segments = [_kept(segment, home, fresh, folder) for segment in member.segments]
    return {"name": member.name, "crc32": member.crc32, "segments": _joined(segments)}


def _kept(segment: Segment, home: Path, fresh: Path, folder: Path) -> list[Any]:
    if isinstance(segment, bytes):
        # Redacted records are mostly spaces: a gap of 64 KiB becomes some hundred characters of the layout.
        return ["bytes", zlib.compress(segment, 9).hex()]
    if isinstance(segment.file, StoredFile):
        return ["stored", [segment.file.file_key.key, segment.file.file_key.location], segment.start, segment.size]
    path = folder / segment.file.relative_to(fresh)
    return ["file", str(path.relative_to(home) if path.is_relative_to(home) else path), segment.start, segment.size]


def _joined(segments: Sequence[list[Any]]) -> list[list[Any]]:
    joined: list[list[Any]] = []
    for segment in segments:
        last = joined[-1] if joined else None
        if last and segment[0] != "bytes" and segment[:2] == last[:2] and last[2] + last[3] == segment[2]:
            last[3] += segment[3]
        else:
            joined.append(list(segment))
    return joined


def _member(item: dict[str, Any], home: Path) -> ZipMember:
    same: dict[str, bytes] = {}
    files: dict[FileKey, StoredFile] = {}
    segments: list[Segment] = []
    for kind, *facts in item["segments"]:
        if kind == "file":
            segments.append(FileRange(home / facts[0], facts[1], facts[2]))
        elif kind == "stored":
            key = FileKey(*facts[0])
            # One object for all its segments: it is opened once.
            file = files.get(key) or files.setdefault(key, stored_file(home, key))
            segments.append(FileRange(file, facts[1], facts[2]))
        else:
            # A long gap repeats one piece, which is held once.
            segments.append(same.setdefault(facts[0], zlib.decompress(bytes.fromhex(facts[0]))))
    return ZipMember(name=item["name"], crc32=item["crc32"], segments=tuple(segments))
