"""Puts the WACZ 1.1.1 of an execution or an edition together: sealed files as they lie, and an index, a page list and
a description that are written to a folder once. The same rows give the same bytes, wherever and whenever it is done.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from holdfast import __version__
from holdfast.db.engine import Database
from holdfast.db.visibility import is_any_withdrawn
from holdfast.editions.volume import read_volume
from holdfast.errors import Conflict
from holdfast.exports import queries
from holdfast.exports.cdxj import captures, write_zipnum
from holdfast.exports.pages import write_pages
from holdfast.exports.queries import ExecutionRow, FileRow, HiddenRecord
from holdfast.exports.records import Records
from holdfast.exports.redaction import blanked, find_gaps
from holdfast.exports.zipping import FileRange, Member, MemberChanged, Segment, read_segments
from holdfast.index.queries import withdrawals_word
from holdfast.jobs.names import execution_name
from holdfast.sorting import sorted_lines
from holdfast.warc.roots import locate

WACZ_VERSION = "1.1.1"
LAYOUT_VERSION = 3
"""Raised with any change that gives the same rows other bytes."""
_AT_ONCE = 500
_ODD_IN_NAME = re.compile(r"[^A-Za-z0-9._=@-]+")


class NothingSealed(Conflict):
    """This execution, or this edition, has no sealed file yet."""

    code = "nothing_sealed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a package is made of, read in one short session."""

    executions: tuple[ExecutionRow, ...]
    title: str
    name: str
    """What the file is called, without its ending."""
    files: tuple[FileRow, ...]
    hidden: tuple[HiddenRecord, ...]
    withdrawals: str
    """A word for all withdrawals as they stand: the originals that are borrowed hang on them too."""

    @property
    def fingerprint(self) -> str:
        """What the bytes hang on: files, when they were indexed, what was withdrawn, and how it is laid out."""
        facts: list[Any] = [LAYOUT_VERSION, __version__, self.title]
        facts += [fact for one in self.executions for fact in (one.id, one.source_name, one.config)]
        facts += [[file.id, file.path, file.size, file.sha256, str(file.indexed_at)] for file in self.files]
        facts += [self.withdrawals, *map(list, self.hidden)]
        return sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:32]

    @property
    def moment(self) -> datetime:
        """When the last file was sealed: the package's own date."""
        return max(file.sealed_at for file in self.files)


def read_contents(database: Database, execution_id: int) -> Contents:
    """Return what a package would hold now; NotFound if there is no such execution, NothingSealed if it has no file."""
    with database.read() as session:
        execution = queries.execution(session, execution_id)
        title = f"{execution.source_name}, execution {execution.id}"
        found = _contents(session, [execution], title, execution_name(execution.source_code, execution.id))
    if not found.files:
        raise NothingSealed(
            f"execution {execution_id} has no sealed and indexed WARC file yet; wait until it has, see: holdfast status"
        )
    return found


def read_edition(database: Database, edition_id: int) -> Contents:
    """Return what the package of an edition would hold now: everything that its shards captured.

    EditionNotFound, or NothingSealed if they have no file.
    """
    with database.read() as session:
        volume = read_volume(session, edition_id)
        source, year = volume.source, volume.edition.year
        executions = [queries.execution(session, run.id) for _, run in volume.runs]
        found = _contents(session, executions, f"{source.name}, edition {year}", f"{source.code}-{year}")
    if not found.files:
        raise NothingSealed(f"{source.code} {year} has no indexed WARC file yet; see: holdfast edition status")
    return found


def _contents(session: Session, executions: list[ExecutionRow], title: str, name: str) -> Contents:
    files: list[FileRow] = []
    hidden: list[HiddenRecord] = []
    for execution in executions:
        sealed = queries.sealed_files(session, execution.id)
        hidden += queries.hidden_records(session, execution.id, [file.id for file in sealed])
        files += sealed
    return Contents(
        executions=tuple(executions), title=title, name=name, files=tuple(files), hidden=tuple(hidden),
        withdrawals=withdrawals_word(session),
    )  # fmt: skip


class Resource:
    """A member with its digest, as the description lists it."""

    __slots__ = ("member", "sha256")

    def __init__(self, name: str, segments: Iterable[Segment], *, crc32: int | None = None, digest: str = "") -> None:
        parts = tuple(segments)
        if crc32 is None:
            hasher, crc32 = sha256(), 0
            for piece in read_segments(parts):
                hasher.update(piece)
                crc32 = zlib.crc32(piece, crc32)
            digest = hasher.hexdigest()
        self.member = Member(name=name, crc32=crc32, segments=parts)
        self.sha256 = digest

    def described(self) -> dict[str, Any]:
        """Return its entry in `datapackage.json`."""
        name = self.member.name.rpartition("/")[2]
        return {
            "name": name.lower(), "path": self.member.name, "hash": f"sha256:{self.sha256}", "bytes": self.member.size,
        }  # fmt: skip


def build(database: Database, home: Path, contents: Contents, folder: Path) -> list[Member]:
    """Write the generated members into an empty folder and return all members in order.

    StrayFile, NotFound or MemberChanged if a WARC file is not where or as it was sealed.
    """
    archive = _archive_members(database, home, contents)
    names = {file.id: found.member.name.rpartition("/")[2] for file, found in zip(contents.files, archive, strict=True)}
    records = Records(database, home, names)
    _write_index(database, contents, folder, records)
    extra = [Resource(f"archive/{name}", segments) for name, segments in records.borrowed()]
    main, pages = write_pages(database, contents.executions, folder)
    resources = [
        *archive, *extra,
        *(_generated(folder, f"indexes/{name}") for name in ("index.cdx.gz", "index.idx")),
        *(_generated(folder, f"pages/{name}") for name in pages),
    ]  # fmt: skip
    description = _description(contents, resources, main)
    digest = {"path": "datapackage.json", "hash": f"sha256:{sha256(description).hexdigest()}"}
    closing_members = {"datapackage.json": description, "datapackage-digest.json": _pretty(digest)}
    for name, content in closing_members.items():
        (folder / name).write_bytes(content)
        resources.append(_generated(folder, name))
    return [resource.member for resource in resources]


def _archive_members(database: Database, home: Path, contents: Contents) -> list[Resource]:
    def withdrawn(keys: set[str]) -> set[str]:
        with database.read() as session:
            return queries.withdrawn_keys(session, keys)

    with database.read() as session:
        is_any = bool(contents.hidden) or is_any_withdrawn(session)
    found: list[Resource] = []
    taken: set[str] = set()
    for file in contents.files:
        path = locate(home, file.path)
        if not path.is_file() or path.stat().st_size != file.size:
            raise MemberChanged(f"{file.path} is not as it was sealed; see: holdfast verify {home}")
        # Validators of packages take plain names only; ours may carry what its first owner called the file.
        plain = _ODD_IN_NAME.sub("-", path.name)
        name = f"archive/{plain}" if plain not in taken else f"archive/{file.id}-{plain}"
        taken.add(plain)
        hidden = [record for record in contents.hidden if record.warc_file_id == file.id]
        # What goes with a withdrawn record may lie in another file of its crawl, and what was noted of a withdrawn page
        # in a crawl that never captured it.
        gaps = find_gaps(path, hidden, withdrawn) if is_any else []
        if gaps:
            found.append(Resource(name, blanked(path, file.size, gaps, file.sealed_at)))
        else:
            found.append(Resource(name, [FileRange(path, 0, file.size)], crc32=file.crc32, digest=file.sha256))
    return found


def _write_index(database: Database, contents: Contents, folder: Path, records: Records) -> None:
    def lines() -> Iterator[bytes]:
        rows = chain.from_iterable(captures(database, execution_id=one.id) for one in contents.executions)
        while batch := list(islice(rows, _AT_ONCE)):
            yield from records.lines(batch)

    (folder / "indexes").mkdir()
    with (
        (folder / "indexes/index.cdx.gz").open("wb") as blocks,
        (folder / "indexes/index.idx").open("wb") as index,
    ):
        write_zipnum(sorted_lines(lines(), folder), blocks, index.write, name="index.cdx.gz")


def _generated(folder: Path, name: str) -> Resource:
    path = folder / name
    return Resource(name, [FileRange(path, 0, path.stat().st_size)])


def _description(contents: Contents, resources: list[Resource], main: dict[str, str]) -> bytes:
    described: dict[str, Any] = {
        "profile": "data-package",
        "resources": [resource.described() for resource in resources],
        "wacz_version": WACZ_VERSION,
        "title": contents.title,
        "software": f"holdfast {__version__}",
        "created": _seconds(min(one.created_at for one in contents.executions)),
        "modified": _seconds(contents.moment),
        **main,
    }
    if about := contents.executions[0].description:
        described["description"] = about
    return _pretty(described)


def _pretty(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _seconds(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
