"""The work of each kind of operation: the same flows that the commands call, with progress reports."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from holdfast.editions.comparison import write_comparison
from holdfast.editions.freezing import freeze, verify_frozen
from holdfast.editions.report import write_report
from holdfast.errors import Invalid, NotFound, Unavailable
from holdfast.imports.importer import ImportedFile, Importer
from holdfast.imports.placing import Keeping
from holdfast.imports.rebuild import plan_rebuild, restore_files
from holdfast.index.indexer import Indexed, Indexer, Interrupted, each_pending, open_indexer
from holdfast.index.leases import FileToIndex, ReadProgress
from holdfast.index.queries import sealed_files_after, sealed_total
from holdfast.jobs.imports import ImportOptions, ensure_import_source
from holdfast.jobs.indexing import close_accounts, close_if_read
from holdfast.jobs.kinds import OperationKind
from holdfast.noise.classifier import judge_pending
from holdfast.noise.labels import restore_labels
from holdfast.operations import queries
from holdfast.operations.records import EditionVerificationResult, FreezeResult, ImportedFileResult, ImportResult
from holdfast.operations.running import OperationContext, OperationFailed, OperationWork
from holdfast.operations.uploads import UploadGone, UploadState, part_path, settle_imported
from holdfast.records import encode, from_row
from holdfast.search.directory import IndexBusy
from holdfast.search.outbox import drain, rebuild
from holdfast.sources.members_file import restore_members
from holdfast.steps import FileStep
from holdfast.storage.roots import stored_file
from holdfast.warc import queries as files
from holdfast.warc.queries import SealedRow
from holdfast.warc.verify import verify_file
from holdfast.withdrawals.hiding import restore_withdrawals

_LISTED = 100
_CHUNK = 1 << 20
_AT_ONCE = 200
# A rebuild of a large index takes minutes; it includes the imported captures when it ends.
_TRIES = 300


class UploadDigestWrong(Invalid):
    """The complete upload does not match its digest."""

    code = "upload_digest_wrong"

    def __init__(self, stated: str, found: str) -> None:
        super().__init__(f"the upload has the SHA-256 {found} and not {stated}; upload it again")


class ImportFailed(OperationFailed):
    """No file of an upload could be imported."""

    code = "import_failed"


class ArchiveDamaged(OperationFailed):
    """A verification found files that are damaged or missing."""

    code = "archive_damaged"


class EditionBroken(OperationFailed):
    """Captures in an edition's frozen list are missing from the archive."""

    code = "edition_broken"


def import_upload(context: OperationContext) -> dict[str, Any]:
    """Import a complete upload and index it; fail if no file of it could be imported."""
    upload_id, settings = int(context.parameters["upload"]), context.settings
    with context.database.read() as session:
        row = queries.upload_by_id(session, upload_id)
    # The process before this one died after `settle_imported`, which stored the result.
    if row is None or row.state == UploadState.IMPORTED:
        return context.result
    path = part_path(settings.home, upload_id)
    if not path.is_file():
        raise UploadGone(upload_id, "lost: its file is not here any more")
    if row.sha256 is not None:
        _demand_digest(context, path, row.sha256)
    ensure_import_source(context.database, context.clock, code=row.source_code, name=row.source_name)
    # Record the origin by our own name: the client's name is only for display.
    config = {"upload": upload_id, "name": row.name}
    request = ImportOptions(source=row.source_code, name=row.source_name, home=settings.home, config=config)
    context.result = _imported(context, request, path, strict=row.strict)
    settle_imported(context.database, context.clock, settings.home, upload_id, store_result=context.store_result)
    _take_in(context)
    return context.result


def _demand_digest(context: OperationContext, path: Path, stated: str) -> None:
    digest, done, size = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            context.say("checking the digest", done, size)
    if digest.hexdigest() != stated:
        raise UploadDigestWrong(stated, digest.hexdigest())


def _imported(context: OperationContext, request: ImportOptions, path: Path, *, strict: bool) -> dict[str, Any]:
    runtime, done = context.runtime, list[ImportedFile]()
    with open_indexer(
        runtime.raw_db, runtime.clock, request.home, on_progress=lambda _file, read: _reading(context, indexer, read)
    ) as indexer:
        importer = Importer(context.database, runtime.raw_db, runtime.clock, indexer, request)
        importer.strict = strict
        # A link takes no space, and the upload stays complete for a process that has to start again.
        importer.keeping = Keeping.LINK

        def step(one: FileStep) -> None:
            one = one._replace(phase=one.phase or "reading")
            context.phase, context.done, context.total = str(one), one.done, one.total or None
            indexer.stopping = indexer.stopping or context.stopping.is_set()

        importer.on_step = step
        done.extend(importer.run([path]))
    if importer.group is not None:
        close_if_read(context.database, runtime.clock, importer.group[0])
    good = [one for one in done if one.error is None]
    result: dict[str, Any] = encode(
        ImportResult(
            execution=importer.group[0] if importer.group else None,
            imported=sum(one.state == "imported" for one in done),
            again=sum(one.state == "again" for one in done),
            failed=len(done) - len(good),
            records=sum(one.records for one in good),
            snapshots=sum(one.indexed.snapshots for one in good if one.indexed is not None),
            pages=sum(one.indexed.pages for one in good if one.indexed is not None),
            damaged=sum(one.damaged for one in done),
            files=[_file_result(one) for one in done[:_LISTED]],
        )
    )
    if not good:
        first = next((one.error for one in done if one.error), "there is no archive in it")
        raise ImportFailed(str(first), result)
    return result


def _reading(context: OperationContext, indexer: Indexer, read: ReadProgress) -> None:
    context.phase, context.done, context.total = "indexing", read.bytes_done, read.bytes_total
    indexer.stopping = indexer.stopping or context.stopping.is_set()


def _file_result(one: ImportedFile) -> ImportedFileResult:
    # Remove folders: the result is shown over HTTP.
    name, notes = one.origin.rpartition("/")[2], [*one.notes, *one.fixity][:20]
    return from_row(ImportedFileResult, one, name=name, file=one.warc_file_id, notes=notes)


def _take_in(context: OperationContext) -> None:
    """Update the search index, or wait while another process that holds it does so."""
    context.say("taking into search")
    for _ in range(_TRIES):
        with suppress(IndexBusy):
            judge_pending(context.database, context.clock, is_stopping=context.stopping.is_set)
            drain(context.database, context.settings.home, context.clock, is_stopping=context.stopping.is_set)
            return
        if context.stopping.wait(0.2):
            return


def verify(context: OperationContext) -> dict[str, Any]:
    """Read every sealed file, or those of a source or an execution, and verify its digest.

    A process that resumes the operation starts after the last file checked.
    """
    source, execution_id = context.parameters.get("source"), context.parameters.get("execution")
    quick = bool(context.parameters.get("quick"))
    found: dict[str, Any] = {
        "after": 0,
        "files": 0,
        "bytes": 0,
        "records": 0,
        "ok": 0,
        "damaged": 0,
        "missing": 0,
        "problems": [],
    }
    found |= context.result
    with context.database.read() as session:
        _, total = sealed_total(session, source=source, execution_id=execution_id)
    while True:
        with context.database.read() as session:
            rows = sealed_files_after(
                session, source=source, execution_id=execution_id, after=int(found["after"]), limit=_AT_ONCE
            )
        if not rows:
            break
        for file_id, _, _ in rows:
            context.say("verifying", int(found["bytes"]), total)
            _verify_one(context, file_id, found, quick=quick)
            found["after"] = file_id
            # Pass a copy: another thread stores it meanwhile.
            context.result = {**found, "problems": list(found["problems"])}
    result = {name: value for name, value in found.items() if name != "after"}
    if found["damaged"] or found["missing"]:
        raise ArchiveDamaged(
            f"{found['damaged']} of {found['files']} files are damaged, {found['missing']} are missing", result
        )
    return result


def _verify_one(context: OperationContext, file_id: int, found: dict[str, Any], *, quick: bool) -> None:
    """Verify a file by its current row: listed files may have been moved or discarded since."""
    row = _row_now(context, file_id)
    while row is not None:
        state, problems, records = _look_at(context, row, quick=quick)
        if state == "ok" or (now := _row_now(context, file_id)) == row:
            break
        # Its row was changed during the check.
        row = now
    if row is None:
        return
    found["files"] += 1
    found["bytes"] += row.sealed.size
    found["records"] += records
    found[state] += 1
    room = _LISTED - len(found["problems"])
    found["problems"] += [
        {"file": file_id, "name": row.file_key.name, "kind": kind, "detail": why} for kind, why in problems
    ][:room]


def _row_now(context: OperationContext, file_id: int) -> SealedRow | None:
    with context.runtime.raw_db.read() as tx:
        return files.sealed_file(tx, file_id)


def _look_at(context: OperationContext, row: SealedRow, *, quick: bool) -> tuple[str, list[tuple[str, str]], int]:
    """Return ok, damaged or missing; the problems, by kind; and the number of records read."""

    def advance(count: int) -> None:
        context.done += count
        context.check()

    # An unavailable database is not a problem of the file: nothing here uses the database.
    try:
        file, sealed = stored_file(context.settings.home, row.file_key), row.sealed
        if quick:
            size = file.size()
            wrong = [("size", f"it has {size:,} bytes and was sealed with {sealed.size:,}")] * (size != sealed.size)
            return "damaged" if wrong else "ok", wrong, 0
        report = verify_file(file, sealed, advance)
        problems = [(one.kind, f"at {one.offset}: {one.detail}") for one in report.problems[:5]]
        return "ok" if report.ok else "damaged", problems, report.records
    except NotFound:
        return "missing", [("missing", "it is not where its row says")], 0
    except Interrupted:
        raise
    except (Unavailable, Invalid) as exc:
        return "damaged", [("unreadable", str(exc))], 0


def rebuild_index(context: OperationContext) -> dict[str, Any]:
    """Register files whose rows were lost, and index all files of the archive, or of a source, again."""
    runtime, home, source = context.runtime, context.settings.home, context.parameters.get("source")
    found: dict[str, Any] = {
        "restored": 0,
        "withdrawals": 0,
        "waiting": 0,
        "files": 0,
        "snapshots": 0,
        "errors": [],
        "problems": [],
    }
    found |= context.result
    if not found.get("marked"):
        context.say("reading manifests")
        plan = plan_rebuild(runtime.raw_db, home)
        # Do this first: no file that is read again may show a hidden capture.
        found["withdrawals"] = restore_withdrawals(context.database, home)
        restore_members(context.database, runtime.clock, home)
        restore_labels(context.database, runtime.clock, home)
        found["restored"] = restore_files(context.database, runtime.raw_db, runtime.clock, home, plan.lost)
        found["problems"] = plan.problems[:_LISTED]
        with runtime.raw_db.write() as tx:
            found["waiting"] = files.read_all_again(tx, source=source)
        # From here on, a process that continues it reads the pending files instead of all files again.
        context.result = found = {**found, "marked": True}

    def progress(_file: FileToIndex, _read: ReadProgress) -> None:
        indexer.stopping = indexer.stopping or context.stopping.is_set()

    with open_indexer(runtime.raw_db, runtime.clock, home, on_progress=progress) as indexer:
        for one in each_pending(indexer, runtime.raw_db, runtime.clock, source=source):
            found = _note_read(found, one)
            context.result = found
            close_accounts(context.database, runtime.clock, [one.warc_file_id])
            context.say("reading files", int(found["files"]), max(int(found["waiting"]), int(found["files"])))
    _take_in(context)
    return {name: value for name, value in found.items() if name != "marked"}


def _note_read(found: dict[str, Any], one: Indexed) -> dict[str, Any]:
    errors = list(found["errors"])
    if one.error is not None and len(errors) < _LISTED:
        errors.append({"file": one.warc_file_id, "error": one.error})
    return {**found, "files": found["files"] + 1, "snapshots": found["snapshots"] + one.snapshots, "errors": errors}


def rebuild_search(context: OperationContext) -> dict[str, Any]:
    """Rebuild the search index from the database; the old one serves until the new one is complete."""
    database, home, clock = context.database, context.settings.home, context.clock
    stopping = context.stopping.is_set

    def progress(pages: int) -> None:
        context.phase, context.done = "taking in pages", pages

    pages = rebuild(database, home, clock, progress=progress, is_stopping=stopping)
    context.say("taking in changes")
    with suppress(IndexBusy):
        changes = drain(database, home, clock, is_stopping=stopping).changes
        return {"pages": pages, "changes": changes}
    return {"pages": pages, "changes": 0}


def _now_and_then(context: OperationContext, phase: str) -> Callable[[int], None]:
    """Return a callback that reports every few hundred rows how many were read, and stops the work if necessary."""
    return lambda count: context.say(phase, count) if count % _AT_ONCE == 1 else None


def report_edition(context: OperationContext) -> dict[str, Any]:
    """Account for every URL that should have been captured; write ledger, manifest and report."""
    content, _ = write_report(
        context.database,
        context.settings.home,
        context.clock,
        int(context.parameters["edition"]),
        on_row=_now_and_then(context, "reading rows"),
    )
    return {"edition": context.parameters["edition"], "status": content["status"], "counts": content["counts"]}


def freeze_edition(context: OperationContext) -> dict[str, Any]:
    """Freeze an edition into a list of its captures that can be cited by its digest."""
    context.say("listing captures")
    again = bool(context.parameters.get("again"))
    done = freeze(
        context.database,
        context.settings.home,
        context.clock,
        int(context.parameters["edition"]),
        again=again,
        on_row=_now_and_then(context, "listing captures"),
    )
    found: dict[str, Any] = encode(
        from_row(
            FreezeResult,
            done,
            edition=done.id,
            digest=done.frozen_digest,
            captures=done.frozen_count,
            file=Path(done.frozen_path or "").name,
        )
    )
    return found


def verify_edition(context: OperationContext) -> dict[str, Any]:
    """Check that the archive still holds all captures in an edition's frozen list; fail if it does not."""
    number = 0

    def look(_path: object) -> None:
        nonlocal number
        number += 1
        context.say("reading files", number)

    found = verify_frozen(
        context.database,
        context.settings.home,
        int(context.parameters["edition"]),
        quick=bool(context.parameters.get("quick")),
        on_file=look,
    )
    examples = [str(one) for one in found.examples]
    result: dict[str, Any] = encode(from_row(EditionVerificationResult, found, examples=examples))
    if not found.holds:
        raise EditionBroken("the archive does not hold what the frozen list names", result)
    return result


def compare_editions(context: OperationContext) -> dict[str, Any]:
    """Compare two editions of a source: new, gone, changed, unchanged, moved; written next to the later one."""
    context.say("comparing")
    earlier, later = int(context.parameters["earlier"]), int(context.parameters["later"])
    content, file = write_comparison(
        context.database,
        context.settings.home,
        context.clock,
        earlier,
        later,
        on_row=_now_and_then(context, "comparing"),
    )
    return {"counts": dict(content["counts"]), "file": file.name}


WORKS: Final[dict[OperationKind, OperationWork]] = {
    OperationKind.IMPORT: import_upload,
    OperationKind.VERIFY: verify,
    OperationKind.REBUILD_INDEX: rebuild_index,
    OperationKind.REBUILD_SEARCH: rebuild_search,
    OperationKind.REPORT_EDITION: report_edition,
    OperationKind.FREEZE_EDITION: freeze_edition,
    OperationKind.VERIFY_EDITION: verify_edition,
    OperationKind.COMPARE_EDITIONS: compare_editions,
}
"""The work of each kind."""
