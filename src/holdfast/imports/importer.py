"""`holdfast import`: adds foreign files to the archive one by one, so that a bad file does not stop the others.

Errors that no file caused (an unavailable database, a full disk) end the import; the same command resumes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipInfo

from holdfast import log
from holdfast.clock import Clock, to_micros
from holdfast.db.engine import Database
from holdfast.db.raw import RawDatabase
from holdfast.errors import Conflict, HoldfastError, Invalid, NotFound, Unavailable
from holdfast.failpoints import reach
from holdfast.imports.packages import (
    BadPackage,
    Fixity,
    FoundFiles,
    WaczPackage,
    discover,
    is_package,
    name_in_package,
    open_package,
    spelled,
)
from holdfast.imports.placing import (
    ImportForm,
    InspectedFile,
    Keeping,
    PlacementTarget,
    digest_all,
    digest_of,
    inspect_file,
    new_name,
    place,
    sealed_as,
    write_new,
)
from holdfast.index import queries
from holdfast.index.indexer import Indexed, Indexer, Interrupted
from holdfast.index.writing import index_transaction
from holdfast.jobs import indexing
from holdfast.jobs.imports import ImportOptions, begin_import
from holdfast.series.counting import Counts
from holdfast.series.raw_queries import add_counts
from holdfast.steps import FileStep, OnStep, ignore_step
from holdfast.storage import roots
from holdfast.storage.disk import Digests
from holdfast.storage.store import FileKey
from holdfast.values import dataclass
from holdfast.warc import queries as files
from holdfast.warc.manifest import add_to_manifest
from holdfast.warc.outfile import SealedFile
from holdfast.warc.verify import RecordProblem, verify_file

if TYPE_CHECKING:
    from holdfast.imports.signatures import Signature

_log = log.get(room="index")


class Unfaithful(Invalid):
    """A file contradicts its own digests or structure, and the import was started with rejection of such files."""

    code = "unfaithful_archive"


@dataclass(slots=True, kw_only=True)
class ImportedFile:
    origin: str
    state: str = "failed"
    """`imported`, `again` (known before, indexed again) or `failed`."""
    warc_file_id: int | None = None
    how: str = ""
    records: int = 0
    indexed: Indexed | None = None
    damage: list[RecordProblem] = field(default_factory=list)
    damaged: int = 0
    notes: list[str] = field(default_factory=list)
    fixity: list[str] = field(default_factory=list)
    """Mismatches with the surrounding package; digest mismatches of records are among the warnings of `indexed`."""
    signature: Signature | None = None
    error: str | None = None


class Importer:
    """One import command: files of one source, grouped under one execution."""

    def __init__(
        self, database: Database, raw_db: RawDatabase, clock: Clock, indexer: Indexer, options: ImportOptions
    ) -> None:
        self._database, self._clock, self._indexer, self._options = database, clock, indexer, options
        self.raw_db = raw_db
        self.group: tuple[int, Path] | None = None
        """Where new files go; made when the first one comes, unless the caller sets it."""
        self.in_place = False
        """Register files where they lie, if that can be."""
        self.keeping = Keeping.COPY
        """How files that are kept as they are come below the data directory."""
        self.strict = False
        """Refuse a file with damage, or with digests that are not those of its bytes."""
        self.only_register = False
        """Leave the indexing to the worker that looks for sealed files that wait."""
        self.is_crawl = False
        """Whether a tool has just crawled the files: they count as downloaded, and not as imported."""
        self.on_step: OnStep = ignore_step
        self._step = FileStep()

    def run(self, paths: list[Path]) -> Iterator[ImportedFile]:
        """Import each file and yield its result; raise Interrupted between two steps if the indexer should stop.

        Raise Unavailable or NoSpace if the database or the disk fails: no file is at fault, and none is skipped.
        """
        for number, path in enumerate(paths, 1):
            self._step = FileStep(number, len(paths), path.name)
            try:
                if is_package(path):
                    yield from self._package(path, spelled(path.resolve()))
                else:
                    yield self._file(path, spelled(path.resolve()), path.name)
            except (Interrupted, Unavailable):
                raise
            except HoldfastError as exc:
                yield ImportedFile(origin=spelled(path), error=str(exc))
            except OSError as exc:
                # An invalid file does not stop the others: a folder of thousands is imported overnight.
                yield ImportedFile(origin=spelled(path), error=f"cannot read {spelled(path)}: {exc.strerror}")

    def is_known(self, path: Path) -> bool:
        with self.raw_db.read() as tx:
            if files.known_file(tx, key=self._stored(path)) is not None:
                return True
        # Hash between two transactions: a file of gigabytes takes minutes.
        digests = digest_of(path, self._pulse)
        with self.raw_db.read() as tx:
            return files.known_file(tx, sha256=digests.sha256) is not None

    def _package(self, path: Path, origin: str, *, is_inner: bool = False) -> Iterator[ImportedFile]:
        with open_package(path) as package:
            fixity, inner = package.fixity(), package.inner()
            try:
                members = package.files()
            # A package may contain only other packages (a multi-WACZ).
            except BadPackage:
                if not inner or is_inner:
                    raise
                members = []
            for member in inner:
                if is_inner:
                    package.refused.append((member.filename, "packages are read one inside another, and no deeper"))
                else:
                    yield from self._inner(package, member, fixity, f"{origin}!{member.filename}")
            for number, member in enumerate(members):
                place = f"{origin}!archive/{name_in_package(member)}"
                try:
                    yield self._member(package, member, place, fixity if number == 0 else fixity._replace(notes=()))
                except (Interrupted, Unavailable):
                    raise
                except HoldfastError as exc:
                    yield ImportedFile(origin=place, error=str(exc))
            for name, why in package.refused:
                yield ImportedFile(origin=f"{origin}!{name}", error=f"{name} is not read: {why}")

    def _inner(self, package: WaczPackage, member: ZipInfo, fixity: Fixity, origin: str) -> Iterator[ImportedFile]:
        fresh = new_name(self._ensure_group()[1])
        try:
            self._phase("unpacking", member.file_size)
            digests = write_new(package.pieces(member), fresh, self._pulse)
            wrong = _wrong_digest(fixity, member.filename, digests)
            if wrong and self.strict:
                raise Unfaithful(wrong[0])
            for one in self._package(fresh, origin, is_inner=True):
                one.fixity += wrong
                yield one
        except (Interrupted, Unavailable):
            raise
        except HoldfastError as exc:
            yield ImportedFile(origin=origin, error=str(exc).replace(fresh.name, name_in_package(member)))
        finally:
            fresh.unlink(missing_ok=True)

    def _member(self, package: WaczPackage, member: ZipInfo, origin: str, fixity: Fixity) -> ImportedFile:
        self._phase("hashing", member.file_size)
        # Read it once for its digest and again to unpack: a known file need not be written.
        digests = digest_all(package.pieces(member), self._pulse)
        wrong = [*fixity.problems, *_wrong_digest(fixity, member.filename, digests)]
        if wrong and self.strict:
            raise Unfaithful(f"{name_in_package(member)} is refused: {wrong[0]}")
        with self.raw_db.read() as tx:
            known = files.known_file(tx, sha256=digests.sha256)
        if known is not None:
            self._demand_same_source(known)
        if known is not None and self._lost(known) is None:
            done = self._index(ImportedFile(origin=origin, state="again", how="known"), known)
        else:
            _, folder = self._ensure_group()
            self._phase("unpacking", member.file_size)
            fresh = new_name(folder, name_in_package(member))
            try:
                write_new(package.pieces(member), fresh, self._pulse)
                # Members of different packages share names (data.warc.gz, rec-0.warc.gz): prefix the package's name.
                stem = Path(origin.rpartition("!")[0].rpartition("!")[2]).stem
                done = self._file(fresh, origin, f"{stem}--{name_in_package(member)}", is_unpacked=True)
            finally:
                fresh.unlink(missing_ok=True)
        done.fixity += wrong
        done.notes += fixity.notes
        done.signature = fixity.signature
        return done

    def _file(self, path: Path, origin: str, name: str, *, is_unpacked: bool = False) -> ImportedFile:
        """Import a file. One that we unpacked ourselves is moved; a user's file never is, whatever its path."""
        # Resolve links once, here, so that the same file is hashed, inspected and kept.
        path = path.resolve(strict=True)
        self._phase("hashing", path.stat().st_size)
        digests = self._digests(path, is_ours=is_unpacked)
        with self.raw_db.read() as tx:
            known = files.known_file(tx, key=self._stored(path), sha256=digests.sha256)
        if known is not None:
            self._demand_same_source(known)
            done = ImportedFile(origin=origin, state="again", warc_file_id=known, how="known")
            if self.in_place and roots.may_lie_at(path):
                roots.record_root(self._options.home, path.parent)
            if (lost := self._lost(known)) is not None:
                self._bring_back(done, lost, path, digests, Keeping.MOVE if is_unpacked else self.keeping)
            return self._index(done, known)
        self._phase("reading", 0)
        inspected = inspect_file(path, self._pulse)
        if self.strict:
            self._demand_faithful(path, inspected, name)
        done = ImportedFile(origin=origin, damage=inspected.damage, damaged=inspected.damaged)
        if self.in_place and not is_unpacked and inspected.form is ImportForm.WARC and roots.may_lie_at(path):
            sealed, done.how = sealed_as(path, digests, inspected), "in place"
        else:
            keeping = Keeping.MOVE if is_unpacked else self.keeping
            target = PlacementTarget(self._ensure_group()[1], name, keeping)
            sealed, done.how = place(path, inspected, digests, target, self._pulse)
        self._note(done, inspected, sealed.record_count)
        reach("import_placed")
        return self._index(done, self._register(done, sealed, digests))

    def _digests(self, path: Path, *, is_ours: bool) -> Digests:
        try:
            return digest_of(path, self._pulse)
        except Unavailable as exc:
            if is_ours:
                raise
            # An error of a user's file concerns only that file; an error of one that we unpacked concerns the archive's
            # disk.
            raise Invalid(str(exc)) from exc

    def _demand_faithful(self, path: Path, inspected: InspectedFile, name: str) -> None:
        """Reject a damaged file before anything is created from it; ARC files have no digests to check."""
        if inspected.damage:
            first = inspected.damage[0]
            raise Unfaithful(f"{name} is refused: at {first.offset}: {first.kind}: {first.detail}")
        if inspected.form is not ImportForm.ARC:
            self._phase("checking", path.stat().st_size)
            report = verify_file(path, advance=self._pulse)
            # Several records in one member are not damage: such a file is rewritten.
            faults = [one for one in report.problems if one.kind != "not_per_record"]
            if faults:
                raise Unfaithful(f"{name} is refused: at {faults[0].offset}: {faults[0].kind}: {faults[0].detail}")

    def _note(self, done: ImportedFile, inspected: InspectedFile, records: int) -> None:
        done.state, done.records = "imported", records
        if inspected.form is ImportForm.ARC:
            done.notes.append("ARC, converted to WARC 1.1; the ARC stays where it is")
        elif inspected.form is ImportForm.UNSEEKABLE:
            done.notes.append("several records in one compressed member; rewritten, one member per record")
        if self.in_place and done.how != "in place":
            done.notes.append("cannot be used in place; kept below the data directory")

    def _counts(self, stored: SealedFile) -> Counts:
        if self.is_crawl:
            return Counter(bytes=stored.size)
        return Counter(imported_records=stored.record_count, imported_bytes=stored.size)

    def _register(self, done: ImportedFile, sealed: SealedFile, origin: Digests) -> int:
        (execution_id, _), now = self._ensure_group(), to_micros(self._clock.now())
        key = self._stored(sealed.path)
        # Record the folder before the row: readers reject a row with an unrecorded folder.
        roots.record_root(self._options.home, sealed.path.resolve().parent)
        with index_transaction(self.raw_db) as tx:
            # Check again: another worker may have imported the same file, which is kept once.
            known = files.known_file(tx, key=key, sha256=origin.sha256)
            if known is None:
                file_id = files.insert_imported(
                    tx, key, sealed, origin=(done.origin, origin.sha256), execution_id=execution_id, now=now
                )
                is_postgres = self.raw_db.dialect == "postgresql"
                add_counts(tx, execution_id, self._counts(sealed), now=now, is_postgres=is_postgres)
        if known is not None:
            return self._taken_before(done, sealed, known)
        reach("import_registered")
        # A file that stays in place gets no line: any manifest there belongs to its owner.
        if done.how != "in place":
            add_to_manifest(file_id, sealed)
        _log.info("import.file", origin=done.origin, file=file_id, how=done.how, records=done.records)
        return file_id

    def _taken_before(self, done: ImportedFile, sealed: SealedFile, known: int) -> int:
        """Delete the copy of a file that another worker imported first; return the id of that import."""
        with self.raw_db.read() as tx:
            taken = files.sealed_file(tx, known)
        if done.how != "in place" and (taken is None or taken.file_key != self._stored(sealed.path)):
            sealed.path.unlink(missing_ok=True)
        self._demand_same_source(known)
        done.state, done.how = "again", "known"
        return known

    def _demand_same_source(self, file_id: int) -> None:
        """Reject a file that belongs to another source: the source decides who may see its captures."""
        with self.raw_db.read() as tx:
            source = files.source_of_file(tx, file_id)
        # Without a source the files belong to an existing execution.
        if self._options.source not in ("", source):
            raise Conflict(
                f"source {source} has this file already (file {file_id}) and keeps it; index it again with --source "
                f"{source}, or restrict that source with: holdfast source edit {source} --visibility members"
            )

    def _lost(self, file_id: int) -> SealedFile | None:
        with self.raw_db.read() as tx:
            row = files.sealed_file(tx, file_id)
        if row is None or row.file_key.location or roots.find_file(self._options.home, row.file_key) is not None:
            return None
        try:
            path = roots.local_path(self._options.home, row.file_key)
        except roots.StrayFile:  # a row that points elsewhere: the indexer rejects and reports it
            return None
        # A missing folder is unmounted storage: write nothing in its place.
        return replace(row.sealed, path=path) if path.parent.is_dir() and not path.exists() else None

    def _bring_back(self, done: ImportedFile, lost: SealedFile, path: Path, digests: Digests, keeping: Keeping) -> None:
        self._phase("reading", 0)
        target = PlacementTarget(lost.path.parent, lost.path.name, keeping)
        sealed, _ = place(path, inspect_file(path, self._pulse), digests, target, self._pulse)
        # Rows point to offsets in the old copy: other bytes under its name would show other records.
        if sealed.sha256 != lost.sha256:
            sealed.path.unlink()
            raise Invalid(
                f"the archive's copy {lost.path} is gone, and this file gives other data today: "
                "restore the copy from a backup"
            )
        if sealed.path != lost.path:  # another process has restored it meanwhile
            sealed.path.unlink()
        done.how = "brought back"
        _log.info("import.brought_back", origin=done.origin, path=lost.path.name)

    def _ensure_listed(self, file_id: int) -> None:
        """Complete the manifest after an import that died between the row and the manifest."""
        with self.raw_db.read() as tx:
            row = files.sealed_file(tx, file_id)
        file = roots.find_file(self._options.home, row.file_key) if row is not None else None
        path = file.local_path() if file is not None else None
        if row is not None and row.origin is not None and not row.file_key.location and path is not None:
            add_to_manifest(file_id, replace(row.sealed, path=path))

    def _index(self, done: ImportedFile, file_id: int) -> ImportedFile:
        done.warc_file_id = file_id
        if done.state == "again":
            self._ensure_listed(file_id)
        if self.only_register:
            return done
        self._phase("indexing", 0)
        done.indexed = self._indexer.index_file(file_id)
        if done.indexed is None:
            done.notes.append("another process indexes it")
        elif done.indexed.error:
            done.state, done.error = "failed", done.indexed.error
        else:
            done.records = done.indexed.records
        return done

    def _ensure_group(self) -> tuple[int, Path]:
        if self.group is None:
            self.group = begin_import(self._database, self._clock, self._options)
        return self.group

    def _stored(self, path: Path) -> FileKey:
        # No row has a name that is not valid UTF-8: such a file gets another name (`roots.may_lie_at`).
        return roots.key_of(self._options.home, Path(spelled(path.resolve())))

    def _phase(self, phase: str, total: int) -> None:
        self._step = self._step._replace(phase=phase, done=0, total=total)
        self._pulse(0)

    def _pulse(self, count: int) -> None:
        self._step = self._step._replace(done=self._step.done + count)
        self.on_step(self._step)
        if self._indexer.stopping:
            raise Interrupted("stopped; the same command goes on from here")


def _wrong_digest(fixity: Fixity, path: str, digests: Digests) -> list[str]:
    stated = fixity.stated.get(path)
    if stated is None or stated == f"sha256:{digests.sha256}":
        return []
    return [f"{path} does not have the digest that the package says"]


# Folder of other writers' files in an execution's folder; `warcs` belongs to a tool, with its own manifest.
KEPT = "archive"


class NothingToIndex(HoldfastError):
    """An execution has no WARC file."""

    code = "nothing_to_index"


@dataclass(slots=True, kw_only=True)
class IndexedExecution:
    execution_id: int
    source: str
    files: list[Indexed] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    taken_in: int = 0
    busy: int = 0

    @property
    def snapshots(self) -> int:
        return sum(one.snapshots for one in self.files)


def index_execution(
    database: Database, importer: Importer, indexer: Indexer, execution_id: int, *, clock: Clock
) -> IndexedExecution:
    """Index every file of a completed execution, registered or found in its folder, and set its state to `indexed`.

    It stays `indexing` if another process reads one of its files. Raise NotFound if the execution or its folder is
    missing; Conflict unless it is completed; NothingToIndex.
    """
    with database.read() as session:
        found = queries.execution_with_source(session, execution_id)
        if found is None:
            raise NotFound(f"there is no execution {execution_id}; see them with: holdfast status")
        execution, source = found
    if execution.state != "completed":
        raise Conflict(
            f"execution {execution_id} is {execution.state}; only a completed one is indexed as a whole; index "
            "sealed files of any with: holdfast index"
        )
    folder = Path(execution.output_dir)
    if not folder.is_dir() and not _sealed(importer.raw_db, execution_id):
        raise NotFound(f"the folder of execution {execution_id} is gone: {folder}")
    done = IndexedExecution(execution_id=execution_id, source=source.code)
    with database.write() as session:
        indexing.begin(session, execution_id, now=clock.now())
    _take_in(importer, folder, execution_id, done)
    ids = _sealed(importer.raw_db, execution_id)
    if not ids:
        indexing.close_account(database, clock, execution_id, errors=done.errors)
        raise NothingToIndex(f"execution {execution_id} has no WARC file, and none was found in {folder}")
    for warc_file_id in ids:
        # It was just read during the import.
        if any(one.warc_file_id == warc_file_id for one in done.files):
            continue
        result = indexer.index_file(warc_file_id)
        if result is None:
            done.busy += 1
        else:
            done.files.append(result)
    refused = list(done.errors)
    done.errors += [one.error for one in done.files if one.error]
    if not done.busy:
        indexing.close_account(database, clock, execution_id, errors=refused)
    return done


def _sealed(raw_db: RawDatabase, execution_id: int) -> list[int]:
    with raw_db.read() as tx:
        return [row.id for row in files.files_of(tx, execution_id=execution_id) if row.state == "sealed"]


def _take_in(importer: Importer, folder: Path, execution_id: int, done: IndexedExecution) -> None:
    found = discover([folder], follow_state=True) if folder.is_dir() else FoundFiles()
    done.errors += [f"{path} cannot be looked into: {why}" for path, why in found.unreadable]
    new = [path for path in found.files if not importer.is_known(path)]
    if not new:
        return
    # Do not use `warcs`: the tool itself writes that folder's manifest.
    importer.group = execution_id, folder / KEPT
    (folder / KEPT).mkdir(exist_ok=True)
    importer.keeping = Keeping.LINK  # the folder belongs to the tool, which never changes a sealed file
    for one in importer.run(new):
        if one.state == "imported":
            done.taken_in += 1
        if one.indexed is not None:
            done.files.append(one.indexed)
        elif one.error is not None:
            done.errors.append(one.error)
