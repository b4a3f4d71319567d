"""Places a foreign file below the data directory: inspected, then copied, linked or rewritten.

A placed file is complete and synced. A file that is not an archive is rejected before anything is created.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from holdfast.errors import Conflict, HoldfastError, Invalid
from holdfast.storage.disk import Digests, digests_of, disk_error, sync_directory, synced
from holdfast.storage.folder import give_name
from holdfast.values import dataclass
from holdfast.warc.conversion import convert_arc, is_arc, read_arc, rewrite_warc
from holdfast.warc.member import MAGIC
from holdfast.warc.member import ZSTD_MAGIC as ZSTD_MAGIC
from holdfast.warc.outfile import SealedFile
from holdfast.warc.reader import DamagedWarc, read_records
from holdfast.warc.verify import Advance, RecordProblem

_PIECE_BYTES = 1 << 20
_MAX_NOTED = 100
# The Linux ioctl that makes two files share their blocks until one of them changes.
_FICLONE = 0x40049409
_STRANGE = re.compile(r"[^A-Za-z0-9._~+=@-]+")
_SUFFIX = re.compile(r"\.(?:warc|arc)(?:\.gz|\.zst)?$", re.IGNORECASE)


class NotAnArchive(Invalid):
    """This file contains no WARC or ARC record."""

    code = "not_an_archive"


class ImportForm(StrEnum):
    WARC = "warc"
    UNSEEKABLE = "unseekable"
    """WARC with many records in one compressed member: no record has an offset of its own."""
    ARC = "arc"


class Keeping(StrEnum):
    COPY = "copy"
    """A separate file, unaffected by later changes to the original. Shares blocks where the file system supports
    it.
    """
    LINK = "link"
    """A hard link to the same file, which must never change again."""
    MOVE = "move"
    """For a file that an import has created itself."""


class PlacementTarget(NamedTuple):
    folder: Path
    name: str
    keeping: Keeping = Keeping.COPY


@dataclass(slots=True, kw_only=True)
class InspectedFile:
    form: ImportForm
    records: int = 0
    damage: list[RecordProblem] = field(default_factory=list)
    damaged: int = 0


def digest_of(path: Path, pulse: Advance) -> Digests:
    """Return size and digests of a file; raise Unavailable if it cannot be read."""
    return digest_all(_chunks(path), pulse)


def digest_all(chunks: Iterable[bytes], pulse: Advance) -> Digests:

    def counted() -> Iterator[bytes]:
        for piece in chunks:
            yield piece
            pulse(len(piece))

    return digests_of(counted())


def _chunks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece
    except OSError as exc:
        raise disk_error(exc, f"cannot read {path}: {exc.strerror}") from exc


def inspect_file(path: Path, pulse: Advance) -> InspectedFile:
    """Read a file once from start to end; raise NotAnArchive, which quotes its start, if it holds no record."""
    inspected = InspectedFile(form=ImportForm.WARC)

    def damaged(damage: DamagedWarc) -> None:
        inspected.damaged += 1
        if len(inspected.damage) < _MAX_NOTED:
            inspected.damage.append(RecordProblem(damage.offset, damage.kind, damage.detail))

    if is_arc(path):
        inspected.form = ImportForm.ARC
        inspected.records = sum(1 for _ in read_arc(path, "", damaged, lambda: pulse(0)))
        return inspected
    last = -1
    try:
        for record in read_records(path, damaged, lambda: pulse(0), with_cut=True):
            inspected.records += 1
            # Two records have one offset: the member contains several, of which replay could seek only the first.
            if record.offset == last:
                inspected.form = ImportForm.UNSEEKABLE
            last = record.offset
    except Invalid as bad:
        inspected.damage.append(RecordProblem(max(last, 0), getattr(bad, "kind", bad.code), str(bad)))
        inspected.damaged += 1
    if inspected.records == 0:
        # Import a file with at least one record, however damaged the rest is; without any it is not an archive.
        raise NotAnArchive(_why_not(path, inspected))
    return inspected


def _why_not(path: Path, inspected: InspectedFile) -> str:
    with path.open("rb") as file:
        start = file.read(16)
    if not start:
        return f"{path.name} is empty"
    broken = inspected.damage[0] if inspected.damage else None
    if broken is not None and start.startswith((MAGIC, ZSTD_MAGIC, b"WARC/")):
        return f"{path.name} holds no record that can be read: at {broken.offset}: {broken.kind}: {broken.detail}"
    text = start.decode("ascii", "replace").split("\n")[0]
    shown = f"“{text}”" if text.isprintable() and "\ufffd" not in text else f"the bytes {start.hex(' ')}"
    return f"{path.name} is not a WARC, ARC or WACZ file: it begins with {shown}"


def place(
    path: Path, inspected: InspectedFile, digests: Digests, target: PlacementTarget, pulse: Advance
) -> tuple[SealedFile, str]:
    """Put a file into a folder; a form without seekable records is rewritten, one member per record.

    Return the file there, and how it was placed: `copied`, `linked`, `unpacked`, `rewritten` or `converted`.
    """
    folder, name = target.folder, clean_name(target.name, path)
    fresh = new_name(folder)
    if inspected.form is ImportForm.WARC:
        try:
            how = _keep(path, fresh, digests, target.keeping, pulse)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        return sealed_as(_settle(fresh, name), digests, inspected), how
    name = f"{_SUFFIX.sub('', name)}.warc.gz"

    def tick(_damage: DamagedWarc | None = None) -> None:
        pulse(0)

    if inspected.form is ImportForm.ARC:
        sealed = convert_arc(path, folder, fresh.name, seed=digests.sha256, on_damage=tick, pulse=tick)
        how = "converted"
    else:
        sealed, how = rewrite_warc(path, folder, fresh.name, tick, tick), "rewritten"
    return replace(sealed, path=_settle(sealed.path, name)), how


def sealed_as(path: Path, digests: Digests, inspected: InspectedFile) -> SealedFile:
    return SealedFile(path=path, record_count=inspected.records, **digests._asdict())


def new_name(folder: Path, name: str = "") -> Path:
    """Return a path for a temporary file in the folder that no other process will choose; it ends like `name`.

    Readers rely on the extension when a file starts with damage.
    """
    match = _SUFFIX.search(name)
    return folder / f".{uuid4().hex}.new{match[0] if match else ''}"


def _settle(fresh: Path, name: str) -> Path:
    """Give a complete file its name, or a similar free one; return its path. An existing file is never overwritten."""
    try:
        while True:
            target = free_name(fresh.parent, name)
            # Several workers may fill one folder, so a free name may be taken a moment later.
            with suppress(Conflict):
                give_name(fresh, target)
                return target
    except OSError as exc:
        fresh.unlink(missing_ok=True)
        raise disk_error(exc, f"cannot write {fresh.with_name(name)}: {exc.strerror}") from exc


def write_new(chunks: Iterable[bytes], fresh: Path, pulse: Advance) -> Digests:
    """Write a stream to a new file, synced; an incomplete file is deleted."""
    try:
        # Use `x`: the name is random, but never overwrite an existing file.
        with synced(fresh, "xb") as out:

            def copied() -> Iterator[bytes]:
                for piece in chunks:
                    out.write(piece)
                    yield piece

            digests = digest_all(copied(), pulse)
        sync_directory(fresh.parent)
    except OSError as exc:
        fresh.unlink(missing_ok=True)
        raise disk_error(exc, f"cannot write to {fresh.parent}: {exc.strerror}") from exc
    except (HoldfastError, KeyboardInterrupt):
        fresh.unlink(missing_ok=True)
        raise
    return digests


def _keep(path: Path, target: Path, digests: Digests, keeping: Keeping, pulse: Advance) -> str:
    """Put a file into its place unchanged; return the method used. The result is a file, never a symbolic link."""
    # Link to the file itself: a link to the user's symbolic link would break when its owner moves or deletes that.
    real = path.resolve()
    try:
        if keeping is Keeping.MOVE:
            real.rename(target)
            sync_directory(target.parent)
            return "unpacked"
        if keeping is Keeping.LINK:
            os.link(real, target, follow_symlinks=False)
            sync_directory(target.parent)
            return "linked"
    except OSError:
        # It is on another disk, or the system does not support links: copy the bytes.
        pass
    if _clone(real, target):
        # Read the clone back: the original may have changed since it was first read.
        if digest_of(target, pulse) == digests:
            return "copied"
        target.unlink()
    elif write_new(_chunks(real), target, pulse) == digests:
        return "copied"
    else:
        target.unlink()
    raise Invalid(f"{path} changed while it was copied; import it again")


def _clone(path: Path, target: Path) -> bool:
    """Clone a file so that it shares the original's blocks; return False and leave nothing if this is unsupported."""
    try:
        with path.open("rb") as source, synced(target, "xb") as out:
            fcntl.ioctl(out.fileno(), _FICLONE, source.fileno())
    except OSError:
        target.unlink(missing_ok=True)
        return False
    return True


def clean_name(name: str, path: Path) -> str:
    """Return a file name that is safe anywhere and has the extension of its content."""
    # Keep the end of a long name, which has the suffix; file systems allow 255 bytes, and a name may get a number.
    plain = _STRANGE.sub("_", name).lstrip(".")[-150:] or "archive"
    if _SUFFIX.search(plain):
        return plain
    with path.open("rb") as file:
        start = file.read(4)
    return plain + (".warc.gz" if start.startswith(MAGIC) else ".warc.zst" if start == ZSTD_MAGIC else ".warc")


def free_name(folder: Path, name: str) -> Path:
    match = _SUFFIX.search(name)
    stem, suffix = (name[: match.start()], match[0]) if match else (name, "")
    for number in range(1, 100_000):
        path = folder / (f"{stem}{suffix}" if number == 1 else f"{stem}-{number}{suffix}")
        if not path.exists() and not path.with_name(f"{path.name}.open").exists():
            return path
    raise Invalid(f"there are too many files called {name} in {folder}")
