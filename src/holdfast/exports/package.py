"""Assembles the WACZ 1.1.1 of an execution or an edition: sealed files unchanged, plus an index, page lists and
a description, written to a folder once. The same rows always give the same bytes.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy.orm import Session

from holdfast import __version__, cancellation
from holdfast.clock import digits14
from holdfast.config import DiskSettings
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot
from holdfast.editions.edition_view import view_edition
from holdfast.errors import Conflict, NotFound, UrlRefused
from holdfast.exports import queries
from holdfast.exports.queries import BrokenEnd, ExportedExecution, ExportedFile, ExportedPage, file_key
from holdfast.exports.redaction import blanked, find_gaps
from holdfast.exports.zipping import FileRange, MemberChanged, Segment, ZipMember, read_segments
from holdfast.index.queries import CdxRow, cdx_rows
from holdfast.jobs.store import execution_name
from holdfast.processes.disk import demand_room
from holdfast.sorting import sorted_lines
from holdfast.steps import FileStep, OnStep, ignore_step
from holdfast.storage.disk import disk_error
from holdfast.storage.roots import StrayFile, find_file, stored_file
from holdfast.storage.store import StoredFile
from holdfast.urls import parse_seed
from holdfast.values import dataclass
from holdfast.withdrawals.hidden_captures import HiddenRecord, hidden_records, veiled_revisits
from holdfast.withdrawals.visibility import is_any_withdrawn, withdrawals_fingerprint, withdrawn_among

PAGES, EXTRA = "pages.jsonl", "extraPages.jsonl"
_PAGES_AT_ONCE = 1000
# An execution without known seeds, such as an import, lists this many of its pages first.
_FEW = 1000


def write_pages(
    database: Database, executions: Iterable[ExportedExecution], folder: Path, left_out: Container[int] = ()
) -> tuple[dict[str, str], list[str]]:
    """Write the page lists below `folder/pages`, without the captures in `left_out`.

    Return the main page's fields, and the names of the lists.
    """
    every = list(executions)
    seeds = {page for execution in every for page in _seed_hashes(execution)}
    below = folder / "pages"
    below.mkdir()
    main: ExportedPage | None = None
    first_count = count = 0
    with (below / PAGES).open("wb") as first, (below / EXTRA).open("wb") as extra:
        first.write(_header("pages", "Pages"))
        extra.write(_header("extra-pages", "More pages"))
        for row in _pages(database, [execution.id for execution in every], left_out):
            is_first = row.url_hash in seeds if seeds else count < _FEW
            (first if is_first else extra).write(_line(row))
            if main is None or (is_first and not first_count):
                main = row
            first_count += is_first
            count += 1
    if first_count == count:
        (below / EXTRA).unlink()
    elif not first_count:
        # No seed was captured under its own URL: a reader still needs a page to start with.
        (below / EXTRA).replace(below / PAGES)
    names = [name for name in (PAGES, EXTRA) if (below / name).exists()]
    return ({} if main is None else {"mainPageUrl": main.url, "mainPageDate": _stamp(main.captured_at)}), names


def _seed_hashes(execution: ExportedExecution) -> set[int]:
    hashes = set()
    for seed in (*execution.config.get("seeds", ()), *execution.job_config.get("seeds", ())):
        try:
            hashes.add(parse_seed(str(seed)).hash64)
        except UrlRefused:
            continue
    return hashes


def _pages(database: Database, executions: Iterable[int], left_out: Container[int]) -> Iterator[ExportedPage]:
    """Yield each page once: its first capture, by execution and id."""
    seen: set[int] = set()
    for execution_id in executions:
        for row in _captured(database, execution_id):
            if row.url_hash not in seen and row.id not in left_out:
                seen.add(row.url_hash)
                yield row


def _captured(database: Database, execution_id: int) -> Iterator[ExportedPage]:
    after = -1
    while True:
        cancellation.check()
        # An export may run for hours, and such a long transaction would keep old rows alive.
        with database.read() as session:
            rows = queries.page_rows(session, execution_id, after=after, limit=_PAGES_AT_ONCE)
        yield from rows
        if len(rows) < _PAGES_AT_ONCE:
            return
        after = rows[-1].id


def page_list(pages: Iterable[ExportedPage]) -> bytes:
    return b"".join([_header("pages", "Pages"), *map(_line, pages)])


def _header(name: str, title: str) -> bytes:
    return json.dumps({"format": "json-pages-1.0", "id": name, "title": title, "hasText": False}).encode() + b"\n"


def _line(row: ExportedPage) -> bytes:
    fields = {"id": row.record_id or str(row.id), "url": row.url, "ts": _stamp(row.captured_at)}
    if row.title:
        fields["title"] = row.title
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


# Lines per compressed block, as in other tools' packages; a reader fetches whole blocks.
BLOCK_LINES = 1024
# Bytes of disk per record while an index is sorted: every other one is a line of some 300, plus its share of a merge.
RECORD_BYTES = 200
_PAGE = 2000


def cdxj_line(row: CdxRow, filename: str, *, offset: int | None = None) -> bytes:
    """Return the line of one capture; numbers are strings, as in all CDXJ writers."""
    fields = {
        "url": row.url,
        "mime": "warc/revisit" if row.record_type == "revisit" else row.media_type or "unk",
        "status": str(row.status) if row.status is not None else "200" if row.record_type == "resource" else "-",
        "digest": row.digest or "-",
        "length": str(row.length),
        "offset": str(row.offset if offset is None else offset),
        "filename": filename,
    }
    if row.method is not None:
        fields["method"] = row.method
    text = json.dumps(fields, separators=(", ", ": "), ensure_ascii=True)
    return f"{row.url_key} {digits14(row.captured_at)} {text}\n".encode("utf-8", "replace")


def captures(database: Database, *, execution_id: int | None = None, source_id: int | None = None) -> Iterator[CdxRow]:
    after = -1
    while True:
        cancellation.check()
        with database.read() as session:
            page = cdx_rows(session, execution_id=execution_id, source_id=source_id, after=after, limit=_PAGE)
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].id


def export_cdxj(
    database: Database,
    scratch: Path,
    *,
    execution_id: int | None = None,
    source_id: int | None = None,
    disk: DiskSettings | None = None,
) -> Iterator[bytes]:
    """Yield the sorted index of an execution or a source; `scratch` is a folder for data that does not fit in memory.

    Raise NoSpace if that folder has too little room; with `disk`, before anything is written.
    """
    names: dict[int, str] = {}
    if disk is not None:
        with database.read() as session:
            records = queries.records_noted(session, execution_id=execution_id, source_id=source_id)
        demand_room(scratch, disk, for_bytes=records * RECORD_BYTES)

    def lines() -> Iterator[bytes]:
        for row in captures(database, execution_id=execution_id, source_id=source_id):
            if row.warc_file_id not in names:
                with database.read() as session:
                    found = queries.file_keys(session, [row.warc_file_id]).get(row.warc_file_id)
                names[row.warc_file_id] = found.name if found is not None else f"{row.warc_file_id}.warc.gz"
            yield cdxj_line(row, names[row.warc_file_id])

    try:
        yield from sorted_lines(lines(), scratch)
    except OSError as exc:
        raise disk_error(exc, f"cannot sort the index below {scratch}: {exc.strerror}") from exc


def write_zipnum(lines: Iterable[bytes], blocks: BinaryIO, index: Callable[[bytes], object], *, name: str) -> int:
    """Write sorted lines as gzip blocks, and a line for each block to `index`; return the number of lines."""
    meta = {"format": "cdxj-gzip-1.0", "filename": name}
    index(b"!meta 0 " + json.dumps(meta).encode() + b"\n")
    total = at = 0
    incoming = iter(lines)
    while part := list(islice(incoming, BLOCK_LINES)):
        total += len(part)
        # Write no time and no name in the header: the same lines give the same bytes.
        block = gzip.compress(b"".join(part), 6, mtime=0)
        blocks.write(block)
        where = {"offset": at, "length": len(block), "digest": f"sha256:{sha256(block).hexdigest()}", "filename": name}
        index(b"%b %b\n" % (part[0].partition(b" {")[0], json.dumps(where).encode()))
        at += len(block)
    return total


_ENDINGS = (".warc.gz", ".warc")


class CopiedRecords:
    """Records of other files, which a package contains one after another in members of its own."""

    def __init__(self, stem: str) -> None:
        self._stem = stem
        self._segments: dict[str, list[FileRange]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, row: CdxRow, file: StoredFile | None) -> tuple[str, int] | None:
        """Add a record; return its member and offset there, None if its file is missing or has another format."""
        ending = next((end for end in _ENDINGS if file is not None and file.name.endswith(end)), None)
        if file is None or ending is None:
            return None
        name = f"{self._stem}{ending}"
        at = self._sizes.get(name, 0)
        self._segments.setdefault(name, []).append(FileRange(file, row.offset, row.length))
        self._sizes[name] = at + row.length
        return name, at

    def resources(self) -> list[Resource]:
        return [Resource(f"archive/{name}", segments) for name, segments in sorted(self._segments.items())]


class Records:
    """The records of one package; collects borrowed originals while the index is written."""

    def __init__(self, database: Database, home: Path, names: Mapping[int, str]) -> None:
        self._database, self._home, self._names = database, home, names
        self._files: dict[int, StoredFile | None] = {}
        self._places: dict[int, tuple[str, int]] = {}
        self.originals = CopiedRecords("originals")
        """Bodies that earlier executions captured."""

    def lines(self, batch: Sequence[CdxRow]) -> Iterator[bytes]:
        originals = self._originals(row.original_id for row in batch if row.original_id is not None)
        for original in originals.values():
            if original.warc_file_id in self._names or original.id in self._places:
                continue
            # No file of this package has an earlier execution's original: without a copy pywb and wabac.js show nothing
            # for its revisits.
            place = self.originals.add(original, self._files.get(original.warc_file_id))
            if place is not None:
                self._places[original.id] = place
                name, offset = place
                yield cdxj_line(original, name, offset=offset)
        for row in batch:
            # Do not list a 304: pywb would respond with the 304 itself, and wabac.js never finishes loading. Unlisted,
            # the nearest capture is shown, which is what the server confirmed.
            if row.warc_file_id in self._names and not (row.record_type == "revisit" and row.status == 304):
                yield cdxj_line(row, self._names[row.warc_file_id])

    def _originals(self, ids: Iterable[int]) -> dict[int, CdxRow]:
        with self._database.read() as session:
            rows = queries.whole_rows_of(session, ids)
            unknown = {row.warc_file_id for row in rows.values()} - self._names.keys() - self._files.keys()
            keys = queries.file_keys(session, sorted(unknown))
        for file_id in unknown:
            self._files[file_id] = find_file(self._home, keys.get(file_id))
        return rows


WACZ_VERSION = "1.1.1"
# Increase it with any change that gives the same rows other bytes.
LAYOUT_VERSION = 6
_AT_ONCE = 500
_ODD_IN_NAME = re.compile(r"[^A-Za-z0-9._=@-]+")


class NothingSealed(Conflict):
    """This execution or edition has no sealed file yet."""

    code = "nothing_sealed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    executions: tuple[ExportedExecution, ...]
    title: str
    name: str
    files: tuple[ExportedFile, ...]
    hidden: tuple[HiddenRecord, ...]
    withdrawals: str
    """Fingerprint of all current takedowns and of the sources restricted to members."""
    noted: frozenset[tuple[int, str]] | None = None
    """Pairs of file id and page under takedown that the file names; None if this was not determined."""

    @property
    def fingerprint(self) -> str:
        """Everything the package's bytes depend on: files, time of indexing, takedowns, and layout version."""
        # Include the version: the description inside the package names it.
        facts: list[Any] = [LAYOUT_VERSION, __version__, self.title]
        facts += [fact for one in self.executions for fact in (one.id, one.source_name, one.config)]
        facts += [[one.id, str(file_key(one)), one.size, one.sha256, str(one.indexed_at)] for one in self.files]
        # Include only takedowns that concern it, if known, and all sources that are for members.
        sources = self.withdrawals.split("-", 3)[3:]
        facts += [self.withdrawals] if self.noted is None else [sources, sorted(self.noted)]
        facts += map(list, self.hidden)
        return sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:32]

    @property
    def moment(self) -> datetime:
        """Time when the last file was sealed: the package's own date."""
        moment: datetime = max(file.sealed_at for file in self.files)
        return moment


def read_contents(database: Database, execution_id: int) -> Contents:
    """Return the current content of a package; raise NotFound if the execution is missing, NothingSealed if
    unsealed.
    """
    with database.read() as session:
        execution = queries.execution(session, execution_id)
        title = f"{execution.source_name}, execution {execution.id}"
        found = _contents(session, [execution], title, execution_name(execution.source_code, execution.id))
    if not found.files:
        raise NothingSealed(
            f"execution {execution_id} has no sealed and indexed WARC file: nothing of it was kept, or it waits; index "
            "the sealed files with: holdfast index, see how it stands with: holdfast status"
        )
    return found


def read_edition(database: Database, edition_id: int) -> Contents:
    """Return the current content of an edition's package: everything its shards captured.

    Raise EditionNotFound, or NothingSealed if the shards have no file.
    """
    with database.read() as session:
        view = view_edition(session, edition_id)
        source, year = view.source, view.edition.year
        executions = [queries.execution(session, run.id) for _, run in view.runs]
        found = _contents(session, executions, f"{source.name}, edition {year}", f"{source.code}-{year}")
    if not found.files:
        raise NothingSealed(f"{source.code} {year} has no indexed WARC file yet; see: holdfast edition status")
    return found


def _contents(session: Session, executions: list[ExportedExecution], title: str, name: str) -> Contents:
    files: list[ExportedFile] = []
    hidden: list[HiddenRecord] = []
    for execution in executions:
        sealed = queries.sealed_files(session, execution.id)
        hidden += hidden_records(session, execution.id, [file.id for file in sealed])
        files += sealed
    # Read all in one session, so that files, hidden records and fingerprint are consistent.
    return Contents(
        executions=tuple(executions),
        title=title,
        name=name,
        files=tuple(files),
        hidden=tuple(hidden),
        withdrawals=withdrawals_fingerprint(session),
    )


class Resource:
    __slots__ = ("member", "sha256")

    def __init__(self, name: str, segments: Iterable[Segment], *, crc32: int | None = None, digest: str = "") -> None:
        parts = tuple(segments)
        if crc32 is None:
            hasher, crc32 = sha256(), 0
            for piece in read_segments(parts):
                hasher.update(piece)
                crc32 = zlib.crc32(piece, crc32)
            digest = hasher.hexdigest()
        self.member = ZipMember(name=name, crc32=crc32, segments=parts)
        self.sha256 = digest

    def described(self) -> dict[str, Any]:
        name = self.member.name.rpartition("/")[2]
        return {
            "name": name.lower(),
            "path": self.member.name,
            "hash": f"sha256:{self.sha256}",
            "bytes": self.member.size,
        }


def build(
    database: Database, home: Path, contents: Contents, folder: Path, on_step: OnStep = ignore_step
) -> list[ZipMember]:
    """Write the generated members into an empty folder and return all members in order.

    Raise StrayFile, NotFound or MemberChanged if a WARC file is missing or differs from its sealed state.
    """
    with database.read() as session:
        veiled = veiled_revisits(session, Snapshot.execution_id.in_([one.id for one in contents.executions]))
        broken = queries.broken_ends(session, [file.id for file in contents.files])
    left_out = veiled.keys() | {capture_id for _, capture_id in broken.values() if capture_id is not None}
    archive = _archive_members(database, home, contents, veiled.values(), broken, on_step)
    last = FileStep(len(contents.files), len(contents.files), contents.name)
    names = {file.id: found.member.name.rpartition("/")[2] for file, found in zip(contents.files, archive, strict=True)}
    records = Records(database, home, names)
    on_step(last._replace(phase="indexing"))
    _write_index(database, contents, folder, records, left_out)
    on_step(last._replace(phase="listing pages"))
    main, pages = write_pages(database, contents.executions, folder, left_out)
    resources = [
        *archive,
        *records.originals.resources(),
        # Write both: wabac.js loads the .idx and ignores a .cdx.gz alone, `wacz validate` requires the .cdx.gz.
        *(_generated(folder, f"indexes/{name}") for name in ("index.cdx.gz", "index.idx")),
        *(_generated(folder, f"pages/{name}") for name in pages),
    ]
    times = in_seconds(min(one.created_at for one in contents.executions)), in_seconds(contents.moment)
    about = contents.executions[0].description
    more = main | ({"description": about} if about else {})
    for name, content in describe(resources, title=contents.title, times=times, more=more).items():
        (folder / name).write_bytes(content)
        resources.append(_generated(folder, name))
    return [resource.member for resource in resources]


def _archive_members(
    database: Database,
    home: Path,
    contents: Contents,
    veiled: Iterable[HiddenRecord],
    broken: Mapping[int, BrokenEnd],
    on_step: OnStep,
) -> list[Resource]:
    def hidden_among(keys: set[str]) -> set[str]:
        with database.read() as session:
            return {str(key) for key in withdrawn_among(session, keys=keys)}

    with database.read() as session:
        is_any = bool(contents.hidden) or is_any_withdrawn(session)
    found: list[Resource] = []
    taken: set[str] = set()
    named = {number for number, _ in contents.noted or ()}
    for number, file in enumerate(contents.files, 1):
        stored = stored_file(home, file_key(file))
        on_step(FileStep(number, len(contents.files), stored.name, "checking"))
        # The ZIP's sizes and checksums are from sealing: bytes of another file would make a broken package.
        if _size_of(stored) != file.size:
            raise MemberChanged(f"{file_key(file)} is not as it was sealed; see: holdfast verify {home}")
        # Validators accept only plain names; ours may contain the file's original name.
        plain = _ODD_IN_NAME.sub("-", stored.name)
        name = f"archive/{plain}" if plain not in taken else f"archive/{file.id}-{plain}"
        taken.add(plain)
        hidden = [record for record in (*contents.hidden, *veiled) if record.warc_file_id == file.id]
        # Records that belong to a hidden one may be in another file of its crawl, and records about a hidden page in a
        # crawl that never captured it.
        is_concerned = bool(hidden) or (is_any if contents.noted is None else file.id in named)
        gaps = find_gaps(stored, hidden, hidden_among) if is_concerned else []
        end, _ = broken.get(file.id, (file.size, None))
        if gaps or end < file.size:
            gaps = [gap for gap in gaps if gap[0] < end]
            found.append(Resource(name, blanked(stored, end, gaps, file.sealed_at)))
        else:
            found.append(Resource(name, [FileRange(stored, 0, file.size)], crc32=file.crc32, digest=file.sha256))
    return found


def _size_of(file: StoredFile) -> int | None:
    try:
        return file.size()
    except StrayFile:
        raise
    except NotFound:
        return None


def _write_index(
    database: Database, contents: Contents, folder: Path, records: Records, left_out: Container[int]
) -> None:
    def lines() -> Iterator[bytes]:
        rows = chain.from_iterable(captures(database, execution_id=one.id) for one in contents.executions)
        shown = (row for row in rows if row.id not in left_out)
        while batch := list(islice(shown, _AT_ONCE)):
            yield from records.lines(batch)

    (folder / "indexes").mkdir()
    with (folder / "indexes/index.cdx.gz").open("wb") as blocks, (folder / "indexes/index.idx").open("wb") as index:
        write_zipnum(sorted_lines(lines(), folder), blocks, index.write, name="index.cdx.gz")


def _generated(folder: Path, name: str) -> Resource:
    path = folder / name
    return Resource(name, [FileRange(path, 0, path.stat().st_size)])


def describe(
    resources: Iterable[Resource], *, title: str, times: tuple[str, str], more: Mapping[str, str]
) -> dict[str, bytes]:
    """Return the last two members of a package, by name: its description, and the digest of that.

    `times` are those of its making and of its last change.
    """
    described: dict[str, Any] = {
        "profile": "data-package",
        "resources": [resource.described() for resource in resources],
        "wacz_version": WACZ_VERSION,
        "title": title,
        "software": f"holdfast {__version__}",
        "created": times[0],
        "modified": times[1],
        **more,
    }
    description = _pretty(described)
    digest = {"path": "datapackage.json", "hash": f"sha256:{sha256(description).hexdigest()}"}
    return {"datapackage.json": description, "datapackage-digest.json": _pretty(digest)}


def _pretty(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def in_seconds(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
