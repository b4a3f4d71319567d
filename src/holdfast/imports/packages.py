"""WARC files inside a WACZ: named members only, streamed, within limits. No member is unpacked under its own name.

Rejects what honest packages do not have: encryption, links, members that overlap or are zip bombs.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Invalid
from holdfast.gzip_streams import largest_honest
from holdfast.values import dataclass
from holdfast.zimit.output_directory import STATE_NAME, json_object

if TYPE_CHECKING:
    from holdfast.imports.signatures import Signature

_MEMBER = re.compile(r"archive/(?P<name>[^/\\\x00-\x1f]{1,200}\.(?:warc|warc\.gz|warc\.zst))")
_ARCHIVES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")
_LISTING, _SEAL = "datapackage.json", "datapackage-digest.json"
_MAX_LISTING_BYTES = 64 * 1024 * 1024
# Enough for ten terabytes in files of a gigabyte. Each WARC file becomes a row and is read separately: 20,000 tiny ones
# kept an import busy for minutes.
_MAX_MEMBERS = 10_000
_MAX_DIRECTORY_BYTES = 8 * 1024 * 1024
_END = struct.Struct("<4sHHHHIIH")
_END_64 = struct.Struct("<4sQHHIIQQQQ")
_PIECE_BYTES = 1 << 20
_ENCRYPTED = 0x1


class BadPackage(Invalid):
    """This is not a readable WACZ."""

    code = "bad_package"


class Fixity(NamedTuple):
    """The digests that a package states for its own content, and the mismatches."""

    stated: dict[str, str]
    """`sha256:` and hex, by the path of a resource."""
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    signature: Signature | None = None


class WaczPackage:
    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive, self._path = archive, path
        self.refused: list[tuple[str, str]] = []
        """Members that are not read, and why."""

    def files(self) -> list[zipfile.ZipInfo]:
        """Return the WARC files in it, by name; raise BadPackage if there are none, or the package is malicious."""
        found: dict[str, zipfile.ZipInfo] = {}
        for info in self._archive.infolist():
            match = _MEMBER.fullmatch(info.filename)
            if match is None:
                if info.filename.lower().endswith(_ARCHIVES):
                    self.refused.append((info.filename, "it does not stand directly below archive/ under a plain name"))
                continue
            why = _objection(info) or ("a second member of this name" if match["name"] in found else "")
            if why:
                self.refused.append((info.filename, why))
            else:
                found[match["name"]] = info
        self._refuse_overlaps()
        if not found:
            why = "; ".join(f"{name}: {reason}" for name, reason in self.refused[:3])
            raise BadPackage(f"{self._path.name} holds no WARC file below archive/" + (f" ({why})" if why else ""))
        return [found[name] for name in sorted(found)]

    def inner(self) -> list[zipfile.ZipInfo]:
        """Return nested packages, as in a multi-WACZ of Browsertrix; raise BadPackage if the package is malicious."""
        found = []
        for info in self._archive.infolist():
            if info.filename.lower().endswith(".wacz") and not info.is_dir():
                why = _objection(info)
                if why:
                    self.refused.append((info.filename, why))
                else:
                    found.append(info)
        if found:
            self._refuse_overlaps()
        return sorted(found, key=lambda info: (name_in_package(info), info.file_size))

    def fixity(self) -> Fixity:
        """Check the stated digests of the package's resources, and the digest of their list.

        The importer checks the WARC files, which it reads anyway. Raises nothing: mismatches are listed.
        """
        raw, seal = self._small(_LISTING), self._small(_SEAL)
        if raw is None:
            return Fixity({}, (), (f"there is no {_LISTING}, so nothing says what its bytes should be",))
        try:
            stated = _stated(json.loads(raw))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return Fixity({}, (f"{_LISTING} makes no sense",))
        problems, signature = self._resources(stated), None
        if seal is not None:
            wrong, signature = _check_seal(seal, raw)
            problems += wrong
        # A broken signature is one of the problems that a strict import rejects.
        notes = [] if signature is None or signature.is_broken else [signature.sentence()]
        return Fixity(stated, tuple(problems), tuple(notes), signature)

    def _resources(self, stated: dict[str, str]) -> list[str]:
        problems = []
        known = {info.filename: info for info in self._archive.infolist()}
        for path, digest in stated.items():
            info = known.get(path)
            if info is None:
                problems.append(f"{path} is listed and not there")
            elif not path.lower().endswith((*_ARCHIVES, ".wacz")) and not _objection(info):
                hasher = hashlib.sha256()
                try:
                    for piece in self.pieces(info):
                        hasher.update(piece)
                except BadPackage as bad:
                    problems.append(str(bad))
                    continue
                if f"sha256:{hasher.hexdigest()}" != digest:
                    problems.append(f"{path} does not have the digest that {_LISTING} says")
        return problems

    def _small(self, name: str) -> bytes | None:
        info = next((one for one in self._archive.infolist() if one.filename == name), None)
        if info is None or info.file_size > _MAX_LISTING_BYTES or _objection(info):
            return None
        try:
            return b"".join(self.pieces(info))
        except BadPackage:
            return None

    def _refuse_overlaps(self) -> None:
        end = 0
        for info in sorted(self._archive.infolist(), key=lambda one: one.header_offset):
            # A small file can unpack to petabytes if members share bytes; each of them stays within the limit by
            # itself.
            if info.header_offset < end and info.compress_size:
                raise BadPackage(f"{self._path.name} has members that overlap, as no honest package has")
            end = max(end, info.header_offset + 30 + info.compress_size)

    def pieces(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """Yield the bytes of one file; raise BadPackage if they are damaged or longer than declared."""
        left, name = info.file_size, info.filename
        try:
            with self._archive.open(info) as member:
                while piece := member.read(min(_PIECE_BYTES, left + 1)):
                    left -= len(piece)
                    # The size in the directory is a claim. zipfile stops there by itself; this does not rely on it.
                    if left < 0:
                        raise BadPackage(f"{name} is longer than the package says")
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as exc:
            raise BadPackage(
                f"{name} in {self._path.name} is damaged: its bytes are not those that were packed"
            ) from exc
        if left:
            raise BadPackage(f"{name} in {self._path.name} ends {left} bytes too early")


def name_in_package(info: zipfile.ZipInfo) -> str:
    """Return the name of a member without its folders."""
    return info.filename.rpartition("/")[2]


@contextmanager
def open_package(path: Path) -> Iterator[WaczPackage]:
    """Open a WACZ; raise BadPackage if it is not one."""
    _check_directory(path)
    try:
        with zipfile.ZipFile(path) as archive:
            # The number that `_check_directory` reads is a claim.
            if len(archive.infolist()) > _MAX_MEMBERS:
                raise BadPackage(_too_many(path, len(archive.infolist())))
            yield WaczPackage(archive, path)
    except (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OverflowError) as exc:
        raise BadPackage(f"{path.name} is no package that can be opened: its list of members makes no sense") from exc


def is_package(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


def _stated(listing: object) -> dict[str, str]:
    """Return the digests in a list of resources, by path; raise KeyError, TypeError or ValueError if it is
    malformed.
    """
    if not isinstance(listing, dict):
        raise TypeError("no object")
    found = {}
    for one in listing["resources"]:
        path, digest = one.get("path"), one.get("hash")
        if isinstance(path, str) and isinstance(digest, str) and digest.startswith("sha256:"):
            found[path] = digest.lower()
    return found


def _check_seal(seal: bytes, listing: bytes) -> tuple[list[str], Signature | None]:
    """Return the problems with the digest of the resource list, and the result of checking its signature."""
    digest = f"sha256:{hashlib.sha256(listing).hexdigest()}"
    try:
        content = json.loads(seal)
        stated, signed = content["hash"], content.get("signedData")
        if not isinstance(signed, dict | None):
            raise TypeError("no object")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return [f"{_SEAL} makes no sense"], None
    problems = [] if stated == digest else [f"{_LISTING} does not have the digest that {_SEAL} says"]
    if signed is None:
        return problems, None
    # Import it only for a signed package: the library for certificates takes a tenth of a second.
    signature: Signature = importlib.import_module(".signatures", __package__).check_signed_data(signed)
    if signed.get("hash") != digest:
        # The signature may be valid, but for another package.
        signature = signature.broken(f"it is one of another {_LISTING}")
    if signature.is_broken:
        problems.append(signature.sentence())
    return problems, signature


def _objection(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & _ENCRYPTED:
        return "encrypted"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "a link"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"compression {info.compress_type}"
    if info.file_size > largest_honest(info.compress_size):
        return f"it would swell from {info.compress_size} to {info.file_size} bytes"
    return ""


def _check_directory(path: Path) -> None:
    """Reject a member list that would take too much memory, before reading it."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        # Largest distance of the end record from the end: 22 bytes and a comment of at most 65,535.
        file.seek(max(0, size - 65_557))
        tail = file.read()
        at = tail.rfind(b"PK\x05\x06")
        if at < 0 or len(tail) - at < _END.size:
            raise BadPackage(f"{path.name} is no package: it has no list of members at its end")
        _, _, _, _, count, directory_bytes, _, _ = _END.unpack_from(tail, at)
        locator = tail.rfind(b"PK\x06\x07", 0, at)
        if locator >= 0 and at - locator == 20:
            file.seek(min(struct.unpack_from("<Q", tail, locator + 8)[0], size))
            raw = file.read(_END_64.size)
            if len(raw) == _END_64.size and raw.startswith(b"PK\x06\x06"):
                *_, count, directory_bytes, _ = _END_64.unpack(raw)
    # zipfile creates an object for every member when it opens a file.
    if count > _MAX_MEMBERS or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise BadPackage(_too_many(path, count))


def _too_many(path: Path, count: int) -> str:
    return f"{path.name} lists {count} members, more than the {_MAX_MEMBERS} that are read; split it, or unpack it"


SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".wacz")
# Folders of archive-tool's output that are skipped: damaged files, and copies of others.
ASIDE = ("warcs_quarantine", "warcs_compacted")
# File endings that an archivist would expect to be imported, and why they are not.
PASSED_OVER = {
    ".open": "still being written, or left open by a crawl that died; seal it first",
    ".wet": "text taken out of captures, not captures",
    ".wet.gz": "text taken out of captures, not captures",
    ".wat": "metadata taken out of captures, not captures",
    ".wat.gz": "metadata taken out of captures, not captures",
    ".har": "HAR, which is not read; convert it to WARC",
    ".har.gz": "HAR, which is not read; convert it to WARC",
}
_MAX_STATE_BYTES = 16 * 1024 * 1024


@dataclass(slots=True)
class FoundFiles:
    files: list[Path] = field(default_factory=list)
    passed_over: list[tuple[Path, str]] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)
    unreadable: list[tuple[Path, str]] = field(default_factory=list)
    """Folders that this user may not read: their content is unknown, which differs from empty."""


def spelled(path: Path) -> str:
    """Return a path in a form safe for rows, logs and people: bytes of a name that are not UTF-8 become numbers."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def discover(paths: Iterable[Path], *, follow_state: bool = False) -> FoundFiles:
    """Return the files that these paths denote, each once, in order. A file named explicitly may have any name.

    A state file inside a folder may name any folder of this machine: those are read only with `follow_state`.
    """
    found, seen = FoundFiles(), set[tuple[int, int]]()
    for path in paths:
        if path.is_dir():
            for file in _below(path, found, follow_state=follow_state):
                _take(file, found, seen)
        elif path.is_file():
            _take(path, found, seen, named=True)
        else:
            found.missing.append(path)
    return found


def _take(path: Path, found: FoundFiles, seen: set[tuple[int, int]], *, named: bool = False) -> None:
    try:
        stat = path.stat()
    except OSError:
        found.passed_over.append((path, "dangling link"))
        return
    # Compare inodes: tools leave hard links of one file in several folders.
    identity = stat.st_dev, stat.st_ino
    if identity in seen:
        found.passed_over.append((path, "the same file under another name"))
    elif stat.st_size == 0 and not named:
        found.passed_over.append((path, "empty"))
    else:
        seen.add(identity)
        found.files.append(path)


def _below(folder: Path, discovered: FoundFiles, *, follow_state: bool) -> Iterator[Path]:
    """Yield the archives of a folder by name, stable ones before those in temporary folders.

    Links to folders are not followed: targets inside the folder are found anyway, and others are reported. Folders
    that a tool's state file names as its temporary ones belong to it, wherever they are.
    """

    def refuse(exc: OSError) -> None:
        discovered.unreadable.append((Path(str(exc.filename)), exc.strerror or str(exc)))

    elsewhere = _tracked(folder)
    if not follow_state:
        discovered.passed_over += [(path, f"{STATE_NAME} names it, outside of {folder}") for path in elsewhere]
    found = []
    roots = [folder, *(elsewhere if follow_state else ())]
    for root in roots:
        for parent, folders, names in os.walk(root, onerror=refuse, followlinks=False):
            folders[:] = sorted(name for name in folders if name not in ASIDE)
            outside = ((Path(parent, name), _link_outside(parent, name, root)) for name in folders)
            discovered.passed_over += [(path, why) for path, why in outside if why]
            found += [Path(parent, name) for name in names if name.lower().endswith(SUFFIXES)]
            discovered.passed_over += [(Path(parent, name), why) for name in sorted(names) if (why := _reason(name))]
    # Use the first of two names of one file: the one in a temporary folder may vanish.
    yield from sorted(set(found), key=lambda path: (any(part.startswith(".tmp") for part in path.parts), str(path)))


def _link_outside(parent: str, name: str, root: Path) -> str:
    path = f"{parent}{os.sep}{name}"
    if not os.path.islink(path):  # noqa: PTH114 - pathlib raises where a path is too long to be looked at
        return ""
    target = Path(path).resolve()
    if target.is_relative_to(root.resolve()):
        return ""
    return f"a link to the folder {target}, outside of {root}; name that folder to import it"


def _reason(name: str) -> str:
    lowered = name.lower()
    if lowered.endswith(".open") and not lowered.endswith(tuple(f"{suffix}.open" for suffix in SUFFIXES)):
        return ""
    return next((why for ending, why in PASSED_OVER.items() if lowered.endswith(ending)), "")


def _tracked(folder: Path) -> list[Path]:
    """Return the temporary folders that archive-tool stores in its state; empty if the state is missing or
    invalid.
    """
    state = folder / STATE_NAME
    try:
        # The state file comes with the folder and is untrusted.
        if state.stat().st_size > _MAX_STATE_BYTES:
            return []
        listed = json_object(state.read_bytes()).get("temp_dirs_host_paths")
    except OSError:
        return []
    if not isinstance(listed, list):
        return []
    kept = [Path(one) for one in listed if isinstance(one, str) and "\0" not in one]
    return [path for path in kept if path.is_dir() and not path.resolve().is_relative_to(folder.resolve())]
