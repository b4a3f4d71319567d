"""`holdfast archive`: checks and repairs data derived from WARC files. Rows change only with --apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Annotated, Any, NoReturn

import typer

from holdfast.cli.formatting import counted, text
from holdfast.cli.index import as_object, file_lines, reading, take_in
from holdfast.cli.job_selector import OfExecutions, OneExecution, SelectedExecutions
from holdfast.cli.parameters import Apply, AsJson, OfSource, command_group
from holdfast.cli.printing import counter, picked
from holdfast.cli.resource import Done, OpenDatabase, command
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.errors import Conflict, NotFound, Unavailable
from holdfast.imports.importer import Importer, IndexedExecution, NothingToIndex, index_execution
from holdfast.index import queries
from holdfast.index.indexer import Indexer
from holdfast.index.maintenance import Duplicates, LinkReader, dedupe, group_pages, rebuild_groups, restore
from holdfast.jobs.imports import ImportOptions
from holdfast.parse.child import ParseChild
from holdfast.processes.runfile import step_back
from holdfast.replay.checks import Replayable, check_execution, each_execution
from holdfast.search.outbox import take_over_signals
from holdfast.search.signals import recompute
from holdfast.sources.queries import source_id_of
from holdfast.wiring import Runtime, open_runtime
from holdfast.wiring.archive import Archive

app_command = command_group(
    "Check and repair data derived from WARC files. Example: holdfast archive check-replay --id 3"
)
_command = partial(command, app_command, opened=open_runtime)
# A page that takes longer is pathological: its parser is killed, and the next page gets a fresh one.
_CHILD_S = 20.0


@_command("index", example="index-job --id 3", is_derived=True)
def index_job(runtime: Runtime, database: OpenDatabase, which: OneExecution, json: AsJson = False) -> Done:
    """Index all WARC files of a job's run again, including unregistered files in its folder."""
    chosen = which.find(database)
    with reading(runtime, quiet=json) as (indexer, _):
        done = _index_execution(runtime, database, indexer, chosen.only)
        take_in(runtime.settings, runtime.clock)
    files = [as_object(one) for one in done.files]
    names = "source snapshots taken_in busy errors"
    facts = picked(done, names, job=chosen.job_id, execution=done.execution_id, files=files)
    count = f"{chosen.label()}: {counted(len(done.files), 'file')}, {counted(done.snapshots, 'snapshot')}"
    printed = [*map(file_lines, done.files), count]
    return Done(facts, printed, not done.errors, [f"failed: {text(error)}" for error in done.errors])


def _index_execution(runtime: Runtime, database: Database, indexer: Indexer, execution_id: int) -> IndexedExecution:
    # Its files already belong to an execution: source and name are not used.
    request = ImportOptions(source="", name=None, home=runtime.settings.home, config={})
    importer = Importer(database, runtime.raw_db, runtime.clock, indexer, request)
    return index_execution(database, importer, indexer, execution_id, clock=runtime.clock)


def read_executions(settings: Settings, execution_ids: Sequence[int], *, quiet: bool) -> list[str]:
    """Index the pending files of executions, one after another; return the errors, one line each.

    Executions that Ctrl-C leaves over wait for a worker, or for `holdfast index`.
    """
    if not execution_ids:
        return []
    step_back(settings.index.nice)
    errors = []
    with (
        open_runtime(settings) as runtime,
        closing(Database(settings.database)) as database,
        reading(runtime, quiet=quiet) as (indexer, _),
    ):
        for execution_id in execution_ids:
            try:
                done = _index_execution(runtime, database, indexer, execution_id)
            except (NotFound, NothingToIndex, Conflict) as exc:
                # Continue with the others: one lost file must not block a whole list of executions.
                errors.append(f"execution {execution_id}: {exc}")
                continue
            if done.errors:
                errors.append(f"execution {execution_id}: {done.errors[0]}")
        take_in(settings, runtime.clock)
    return errors


@command(app_command, "page-signals", example="recompute-page-signals", is_derived=True)
def recompute_page_signals(archive: Archive) -> Done:
    """Compute the link signals of pages, which search uses for ranking."""
    pages = recompute(archive.database, archive.clock)
    take_over_signals(archive.database, archive.home)
    return Done({"pages": pages}, f"signals of {counted(pages, 'page')}")


@_command("rebuild-pages", example="rebuild-pages --apply")
def rebuild_pages(runtime: Runtime, database: OpenDatabase, source: OfSource = None, apply: Apply = False) -> Done:
    """Check the page groups used for browsing against their captures; with --apply, rewrite those that are wrong."""
    with database.read() as session:
        source_id = source_id_of(session, source)
    found = rebuild_groups(runtime.raw_db, source_id=source_id, apply=apply, seen=counter("groups"))
    were = "were" if apply else "are"
    sentence = f"{counted(found.looked, 'group')}, {found.wrong:,} {were} wrong, {found.empty:,} empty"
    return Done({"groups": found.looked, "wrong": found.wrong, "empty": found.empty}, sentence)


@_command("backfill-groups", example="backfill-normalized-url-groups --apply")
def backfill_groups(runtime: Runtime, database: OpenDatabase, source: OfSource = None, apply: Apply = False) -> Done:
    """Assign pages without a group to their group: scheme, host and path without the query."""
    with database.read() as session:
        source_id = source_id_of(session, source)
    count = group_pages(runtime.raw_db, runtime.clock, source_id=source_id, apply=apply, seen=counter("pages"))
    if apply and count:
        take_in(runtime.settings, runtime.clock)
    return Done({"pages": count}, f"{counted(count, 'page')} {'had' if apply else 'with'} no group")


@_command("dedupe", example="dedupe-snapshots --id 3 --apply")
def dedupe_snapshots(runtime: Runtime, database: OpenDatabase, which: OfExecutions, apply: Apply = False) -> Done:
    """Settle which captures are duplicates: same source, address, UTC day and body; the earliest is canonical.

    Indexing always applies this rule; the command is for archives that were changed by hand.
    """
    chosen = which.find(database)
    done = _each(runtime, dedupe, chosen, apply=apply)
    what = "settled" if apply else "to settle"
    sentence = f"{chosen.label()}: {counted(done.looked, 'capture')}, {done.changed:,} {what}"
    return Done({**chosen.facts(), "captures": done.looked, "changed": done.changed}, sentence)


def _each(runtime: Runtime, work: Callable[..., Duplicates], chosen: SelectedExecutions, *, apply: bool) -> Duplicates:
    """Do something to the captures of each execution, and let search know; return all that came of it."""
    done, count = Duplicates(), counter("captures")

    def seen(looked: int) -> None:
        count(done.looked + looked)

    for one in chosen.each():
        part = work(runtime.raw_db, runtime.clock, execution_id=one, apply=apply, seen=seen)
        done.looked, done.changed = done.looked + part.looked, done.changed + part.changed
    if apply and done.changed:
        take_in(runtime.settings, runtime.clock)
    return done


@_command("restore-duplicates", example="restore-deduped-snapshots --id 3 --apply")
def restore_duplicates(runtime: Runtime, database: OpenDatabase, which: OfExecutions, apply: Apply = False) -> Done:
    """Restore captures that were marked as duplicates; `dedupe` marks them again."""
    chosen = which.find(database)
    done = _each(runtime, restore, chosen, apply=apply)
    sentence = f"{chosen.label()}: {counted(done.looked, 'duplicate')}" + (", restored" if apply else "")
    return Done({**chosen.facts(), "duplicates": done.looked, "restored": done.changed}, sentence)


@_command("refresh-metadata", example="refresh-snapshot-metadata --source hc", is_derived=True)
def refresh_metadata(
    runtime: Runtime, database: OpenDatabase, which: OfExecutions, source: OfSource = None, json: AsJson = False
) -> Done:
    """Read sealed WARC files again: titles, languages, types and texts as this program extracts them; ids stay.

    Ctrl-C stops between two batches. Only results of an older extraction are replaced.
    """
    chosen = which.find(database)
    ids, done = _files(database, chosen, source), []
    with reading(runtime, quiet=json) as (indexer, line):
        for file_id in ids:
            one = indexer.index_file(file_id)
            line.clear()
            if one is not None:
                done.append(one)
                if not json:
                    print(file_lines(one))
        take_in(runtime.settings, runtime.clock)
    failed, changed = sum(bool(one.error) for one in done), sum(one.changed for one in done)
    count = f"{counted(len(done), 'file')} read, {failed} failed, {counted(changed, 'snapshot')} changed"
    facts = {**chosen.facts(), "files": [as_object(one) for one in done], "changed": changed, "failed": failed}
    return Done(facts, f"{chosen.label()}: {count}", not failed)


def _files(database: Database, chosen: SelectedExecutions, source: str | None) -> list[int]:
    with database.read() as session:
        source_id_of(session, source)
        ids = [
            file.id
            for execution in chosen.each()
            for file, _ in queries.warc_files(session, source=source, execution_id=execution)
            if file.state == "sealed"
        ]
    if not ids:
        raise NotFound(f"there is no sealed WARC file to read ({chosen.label()}); see them with: holdfast warc list")
    return ids


@_command("backfill-outlinks", example="backfill-outlinks --id 3")
def backfill_outlinks(runtime: Runtime, database: OpenDatabase, which: OfExecutions) -> Done:
    """Read the links of pages without stored links from their WARC records; then run: holdfast recompute-page-signals.

    Acts at once: it only adds missing rows.
    """
    step_back(runtime.settings.index.nice)
    chosen = which.find(database)
    with closing(ParseChild(deadline_s=_CHILD_S)) as child:
        reader = LinkReader(database, runtime.raw_db, runtime.settings.home, child, clock=runtime.clock)
        done = [reader.backfill(execution_id=one, seen=counter("pages")) for one in chosen.each()]
    pages, links = sum(one.pages for one in done), sum(one.links for one in done)
    failed = {str(key): why for one in done for key, why in one.failed.items()}
    count = f"{counted(pages, 'page')} read, {counted(links, 'link')} stored, {len(failed)} not readable"
    facts = {**chosen.facts(), "pages": pages, "links": links, "failed": failed}
    return Done(facts, f"{chosen.label()}: {count}", not failed)


@command(app_command, example="replay-index-job --id 3")
def check_replay(
    archive: Archive,
    which: OneExecution,
    sample: Annotated[int | None, typer.Option(min=1, help="Number of captures, about; default: all.")] = None,
) -> Done:
    """Check that a job's run can be replayed: its files are there, and each capture finds its record.

    Replay reads the snapshot table, so nothing has to be built: indexed captures can be replayed immediately.
    """
    chosen, seen = which.find(archive.database), counter("captures")
    found = check_execution(archive.database, archive.home, chosen.only, sample=sample, seen=seen)
    return Done({"job": chosen.job_id, **_replay_object(found)}, _replay_text(found, chosen.label()), found.is_whole)


@command(app_command, example="replay-reconcile")
def reconcile_replay(
    archive: Archive,
    sample: Annotated[int, typer.Option(min=1, help="Captures that are opened of each execution.")] = 20,
    json: AsJson = False,
) -> Done:
    """Check every execution: all of its files, and a sample of its captures; exit 1 if any cannot be replayed."""
    found: list[Replayable] = []
    for execution_id in each_execution(archive.database):
        found.append(check_execution(archive.database, archive.home, execution_id, sample=sample))
        if not json:
            print(_replay_text(found[-1], f"execution {execution_id}"))
    broken = sum(not one.is_whole for one in found)
    facts = {"executions": [_replay_object(one) for one in found], "broken": broken}
    return Done(facts, f"{counted(len(found), 'execution')}, {broken} with faults", not broken)


def _replay_text(found: Replayable, name: str) -> str:
    head = f"{name}: {counted(found.files, 'file')}, {counted(found.captures, 'capture')}, {found.checked:,} checked"
    if found.is_whole:
        return f"{head}, replayable"
    faults = ", ".join(f"{name} {count}" for name, count in sorted(found.faults.items()))
    return "\n".join([f"{head}; {faults}", *(f"  {text(example)}" for example in found.examples)])


def _replay_object(found: Replayable) -> dict[str, Any]:
    names = "execution=execution_id replayable=is_whole faults files captures checked examples"
    return picked(found, names)


@_command("generate-previews", example="replay-generate-previews")
def generate_previews(_runtime: Runtime) -> NoReturn:
    """Create preview images of sources; needs the browser, which this version does not have."""
    raise Unavailable("previews need a browser, which this version of holdfast does not run; nothing was made")
