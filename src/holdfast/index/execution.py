"""All files of one execution, read anew; what its folder holds without a row is taken in first.

That is how the output of a tool that ran outside the worker joins the archive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.errors import Conflict, HoldfastError, NotFound
from holdfast.index import queries
from holdfast.index.indexer import Indexed, Indexer
from holdfast.index.intake.discovery import Found, discover
from holdfast.index.intake.importer import Importer
from holdfast.index.intake.placing import Keeping
from holdfast.index.runs import queries as runs
from holdfast.jobs.imports import ImportBegun
from holdfast.jobs.indexing import steps

KEPT = "archive"
"""Where files of other writers stand in an execution's folder; `warcs` is a tool's own, with a manifest of its own."""


class NothingToIndex(HoldfastError):
    """An execution has no WARC file."""

    code = "nothing_to_index"


@dataclass(slots=True, kw_only=True)
class IndexedExecution:
    """What came of an execution."""

    execution_id: int
    source: str
    files: list[Indexed] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    taken_in: int = 0
    """Files of its folder that were not registered before."""
    busy: int = 0
    """Files that another process reads now."""

    @property
    def snapshots(self) -> int:
        """Captures in all its files."""
        return sum(one.snapshots for one in self.files)


def index_execution(
    database: Database, importer: Importer, indexer: Indexer, execution_id: int, *, clock: Clock
) -> IndexedExecution:
    """Read every file of a completed execution, registered or found in its folder, and say so on it: it is `indexed`.

    One of which another process reads a file stays `indexing`. NotFound if there is no such execution or its folder is
    gone; Conflict unless it is completed; NothingToIndex.
    """
    with database.read() as session:
        found = queries.execution_with_source(session, execution_id)
        if found is None:
            raise NotFound(f"there is no execution {execution_id}; see them with: holdfast status")
        execution, source = found
        known = queries.sealed_paths(session, execution_id)
    if execution.state != "completed":
        raise Conflict(
            f"execution {execution_id} is {execution.state}; only a completed one is indexed as a whole, what is "
            "sealed of any is read by: holdfast index"
        )
    folder = Path(execution.output_dir)
    if not folder.is_dir() and not known:
        raise NotFound(f"the folder of execution {execution_id} is gone: {folder}")
    done = IndexedExecution(execution_id=execution_id, source=source.code)
    with database.write() as session:
        steps.begin(session, execution_id, now=clock.now())
    _take_in(importer, folder, execution_id, done)
    with importer.hot.read() as tx:
        ids = runs.sealed_files_of(tx, execution_id)
    if not ids:
        steps.close_account(database, clock, execution_id, errors=done.errors)
        raise NothingToIndex(f"execution {execution_id} has no WARC file, and there is none in {folder}")
    for warc_file_id in ids:
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
        steps.close_account(database, clock, execution_id, errors=refused)
    return done


def _take_in(importer: Importer, folder: Path, execution_id: int, done: IndexedExecution) -> None:
    found = discover([folder], follow_state=True) if folder.is_dir() else Found()
    done.errors += [f"{path} cannot be looked into: {why}" for path, why in found.unreadable]
    new = [path for path in found.files if not importer.is_known(path)]
    if not new:
        return
    importer.begun = ImportBegun(execution_id=execution_id, folder=folder / KEPT)
    importer.begun.folder.mkdir(exist_ok=True)
    importer.keeping = Keeping.LINK  # the folder is the tool's own, and what it sealed it never writes again
    for one in importer.run(new):
        if one.state == "imported":
            done.taken_in += 1
        if one.indexed is not None:
            done.files.append(one.indexed)
        elif one.error is not None:
            done.errors.append(one.error)
