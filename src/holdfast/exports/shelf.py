"""Packages that were put together before: their layout and generated members lie in the data directory's cache.

A package is found by what its bytes hang on, so a withdrawal or another index is another package at once. One process
builds it at a time; the others are told to come back.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any

from holdfast.clock import from_micros, to_micros
from holdfast.coordination.turns import alone
from holdfast.db.engine import Database
from holdfast.errors import NoSpace, Unavailable
from holdfast.exports.package import Contents, build, read_contents, read_edition
from holdfast.exports.zipping import FileRange, Member, Segment, VirtualZip

LAYOUT = "layout.json"
_HELD = 16
"""Layouts that stay in memory."""


class PackageBusy(Unavailable):
    """This package is being put together."""

    code = "package_busy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package that can be read."""

    name: str
    """What to call the file."""
    etag: str
    """The same for the same bytes."""
    archive: VirtualZip


class Shelf:
    """All packages of one data directory; used by any number of threads."""

    def __init__(self, database: Database, home: Path, cache: Path | None = None) -> None:
        """Keep what is put together below `cache`, in the data directory if none is given."""
        self._database, self._home = database, home.resolve()
        self._folder = (self._home / "cache" if cache is None else cache.resolve()) / "wacz"
        self._held: OrderedDict[str, Package] = OrderedDict()
        self._lock = Lock()

    def package(self, execution_id: int) -> Package:
        """Return the package of an execution as it is now, put together if need be.

        NotFound, NothingSealed, MemberChanged; PackageBusy while another builds it; NoSpace.
        """
        return self._package(read_contents(self._database, execution_id), str(execution_id))

    def edition(self, edition_id: int) -> Package:
        """Return the package of an annual edition, all its shards in one; otherwise as `package`."""
        return self._package(read_edition(self._database, edition_id), f"edition-{edition_id}")

    def _package(self, contents: Contents, place: str) -> Package:
        fingerprint = contents.fingerprint
        with self._lock:
            found = self._held.get(fingerprint)
            if found is not None:
                self._held.move_to_end(fingerprint)
                return found
        folder = self._folder / place / fingerprint
        if not (folder / LAYOUT).exists():
            self._build(contents, folder)
        found = self._opened(contents, folder)
        with self._lock:
            self._held[fingerprint] = found
            while len(self._held) > _HELD:
                self._held.popitem(last=False)
        return found

    def _opened(self, contents: Contents, folder: Path) -> Package:
        layout = json.loads((folder / LAYOUT).read_bytes())
        members = [_member(item, self._home) for item in layout["members"]]
        return Package(
            name=f"{contents.name}.wacz",
            etag=sha256(repr([(item.name, item.crc32, item.size) for item in members]).encode()).hexdigest()[:32],
            archive=VirtualZip(members, from_micros(layout["moment"])),
        )

    def _build(self, contents: Contents, folder: Path) -> None:
        """Build into a folder of its own, then move it to its place: whoever sees it sees all of it."""
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            busy = PackageBusy("this package is being put together; ask again in a few seconds")
            with alone(folder.parent / ".lock", busy):
                if (folder / LAYOUT).exists():
                    return
                _forget(folder.parent)
                fresh = Path(mkdtemp(dir=folder.parent, prefix=".building-"))
                # Generated members are named by where they will lie.
                members = build(self._database, self._home, contents, fresh)
                items = [_item(member, self._home, fresh, folder) for member in members]
                layout = {"moment": to_micros(contents.moment), "members": items}
                (fresh / LAYOUT).write_text(json.dumps(layout))
                fresh.rename(folder)
        except OSError as exc:
            raise NoSpace(f"cannot write the index of the package below {self._folder}: {exc.strerror}") from exc


def _forget(folder: Path) -> None:
    """Remove what earlier builds left, but not the last one: somebody may be reading it."""
    found = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    for old in [path for path in found if not (path / LAYOUT).exists()] + found[:-1]:
        shutil.rmtree(old, ignore_errors=True)


def _item(member: Member, home: Path, fresh: Path, folder: Path) -> dict[str, Any]:
    """Return a member as the layout keeps it; paths below the data directory are relative to it."""
    segments = [_kept(segment, home, fresh, folder) for segment in member.segments]
    return {"name": member.name, "crc32": member.crc32, "segments": _joined(segments)}


def _kept(segment: Segment, home: Path, fresh: Path, folder: Path) -> list[Any]:
    if isinstance(segment, bytes):
        return ["bytes", zlib.compress(segment, 9).hex()]
    path = folder / segment.path.relative_to(fresh) if segment.path.is_relative_to(fresh) else segment.path
    shown = path.relative_to(home) if path.is_relative_to(home) else path
    return ["file", str(shown), segment.start, segment.size]


def _joined(segments: Sequence[list[Any]]) -> list[list[Any]]:
    """Return segments with stretches of one file that touch made one."""
    joined: list[list[Any]] = []
    for segment in segments:
        last = joined[-1] if joined else None
        if last and segment[0] == last[0] == "file" and segment[1] == last[1] and last[2] + last[3] == segment[2]:
            last[3] += segment[3]
        else:
            joined.append(list(segment))
    return joined


def _member(item: dict[str, Any], home: Path) -> Member:
    same: dict[str, bytes] = {}
    segments: list[Segment] = []
    for kind, *facts in item["segments"]:
        if kind == "file":
            segments.append(FileRange(home / facts[0], facts[1], facts[2]))
        else:
            # A long gap is one piece many times over; it is held once.
            segments.append(same.setdefault(facts[0], zlib.decompress(bytes.fromhex(facts[0]))))
    return Member(name=item["name"], crc32=item["crc32"], segments=tuple(segments))
