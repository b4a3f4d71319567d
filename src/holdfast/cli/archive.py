"""`holdfast archive`: what was derived from WARC files, checked and set right. Rows change only with --apply."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import counted, lines, text
from holdfast.cli.index import as_object, describe, stoppable, take_in
from holdfast.cli.job_selector import (
    NewestOfJob,
    OfExecution,
    OfJob,
    OneExecution,
    SelectedExecutions,
    find_completed,
    find_executions,
)
from holdfast.cli.parameters import Apply, AsJson, Home, command_group, configure_log
from holdfast.cli.progress import ProgressLine
from holdfast.config import Settings
from holdfast.coordination.runfile import step_back
from holdfast.db.engine import Database
from holdfast.errors import Conflict, NotFound, Unavailable
from holdfast.imports.importer import Importer, IndexedExecution, NothingToIndex, index_execution
from holdfast.index import queries
from holdfast.index.indexer import Indexed, open_indexer
from holdfast.index.maintenance import Duplicates, LinkReader, dedupe, group_pages, rebuild_groups, restore
from holdfast.jobs.imports import ImportWish
from holdfast.parse.child import ParseChild
from holdfast.replay.checks import Replayable, check_execution, each_execution
from holdfast.search.outbox import take_over_signals
from holdfast.search.signals import recompute
from holdfast.sources.queries import find_source
from holdfast.wiring import Runtime, open_runtime
from holdfast.wiring.archive import open_archive


def index_job(
    job_id: NewestOfJob = None, execution: OneExecution = None, json: AsJson = False, home: Home = None
) -> None:
    """Index all WARC files of a job's run again, with what lies in its folder and was not registered before.

    Acts at once: what it writes is derived, and can be made anew.
    Example: holdfast index-job --id 3
    """
    settings = config.load(home=home)
    configure_log(settings, as_json=False)
    step_back(settings.index.nice)
    with open_runtime(settings) as runtime, closing(Database(settings.database)) as database:
        meant = find_completed(database, job_id, execution)
        line = ProgressLine(runtime.clock, quiet=json)
        opened = open_indexer(runtime.raw_db, runtime.clock, settings.home, on_progress=line.progress)
        with opened as indexer, stoppable(indexer):
            # Its files belong to an execution already: source and name are not used.
            wish = ImportWish(source="", name=None, home=settings.home, config={})
            importer = Importer(database, runtime.raw_db, runtime.clock, indexer, wish)
            done = index_execution(database, importer, indexer, meant.only, clock=runtime.clock)
        take_in(settings, runtime.clock)
        line.clear()
    if json:
        print(jsonlib.dumps({"job": meant.job_id, **_facts(done)}))
    else:
        for one in done.files:
            typer.echo(lines(f"{one.path.rpartition('/')[2]}: {one.error or describe(one)}"))
        typer.echo(f"{meant.told()}: {counted(len(done.files), 'file')}, {counted(done.snapshots, 'snapshot')}")
        for error in done.errors:
            typer.echo(f"failed: {text(error)}", err=True)
    if done.errors:
        raise typer.Exit(1)


def read_executions(settings: Settings, execution_ids: Sequence[int], *, quiet: bool) -> list[str]:
    """Read the files of executions that wait for it, one after the other; return what went wrong, one line each.

    Those that Ctrl-C leaves over wait for a worker, or for `holdfast index`.
    """
    if not execution_ids:
        return []
    step_back(settings.index.nice)
    errors = []
    with open_runtime(settings) as runtime, closing(Database(settings.database)) as database:
        line = ProgressLine(runtime.clock, quiet=quiet)
        opened = open_indexer(runtime.raw_db, runtime.clock, settings.home, on_progress=line.progress)
        with opened as indexer, stoppable(indexer):
            wish = ImportWish(source="", name=None, home=settings.home, config={})
            for execution_id in execution_ids:
                importer = Importer(database, runtime.raw_db, runtime.clock, indexer, wish)
                try:
                    done = index_execution(database, importer, indexer, execution_id, clock=runtime.clock)
                except (NotFound, NothingToIndex, Conflict) as exc:
                    # The others go on: one lost file must not keep a whole list of executions unread.
                    errors.append(f"execution {execution_id}: {exc}")
                    continue
                if done.errors:
                    errors.append(f"execution {execution_id}: {done.errors[0]}")
        take_in(settings, runtime.clock)
        line.clear()
    return errors


def _facts(done: IndexedExecution) -> dict[str, object]:
    return {
        "execution": done.execution_id,
        "source": done.source,
        "snapshots": done.snapshots,
        "taken_in": done.taken_in,
        "busy": done.busy,
        "errors": done.errors,
        "files": [as_object(one) for one in done.files],
    }


def recompute_page_signals(json: AsJson = False, home: Home = None) -> None:
    """Compute what links say of pages, and let search rank by it.

    Acts at once: what it writes is derived, and can be made anew.
    Example: holdfast recompute-page-signals
    """
    settings = config.load(home=home)
    configure_log(settings, as_json=False)
    step_back(settings.index.nice)
    with open_archive(settings) as archive:
        pages = recompute(archive.database, archive.clock)
        take_over_signals(archive.database, archive.home)
    typer.echo(jsonlib.dumps({"pages": pages}) if json else f"signals of {counted(pages, 'page')}")


app_command = command_group(
    "What was derived from WARC files: check it, set it right. Example: holdfast archive check-replay --id 3"
)
app_command.command(name="index")(index_job)
app_command.command(name="page-signals")(recompute_page_signals)

OneSource = Annotated[str | None, typer.Option("--source", help="Only this source's.", metavar="CODE")]
Settling = Callable[..., Duplicates]
_DRY = "nothing was written; add --apply to do so"
# A page that takes longer is pathological: its parser is killed, and the next page gets a fresh one.
_CHILD_S = 20.0


@contextmanager
def _opened(settings: Settings) -> Iterator[tuple[Runtime, Database]]:
    configure_log(settings, as_json=False)
    with open_runtime(settings) as runtime, closing(Database(settings.database)) as database:
        yield runtime, database


def _counter(what: str, *, quiet: bool) -> Callable[[int], None]:
    """Return what shows a growing number on a terminal."""

    def seen(count: int) -> None:
        if not quiet and sys.stderr.isatty():
            print(f"\r{count:,} {what}", end="", file=sys.stderr, flush=True)

    return seen


def _source_id(database: Database, code: str | None) -> int | None:
    with database.read() as session:
        return None if code is None else find_source(session, code).id


def _print_result(content: dict[str, Any], sentence: str, *, json: bool, dry: bool = False) -> None:
    if sys.stderr.isatty() and not json:
        print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
    print(jsonlib.dumps(content) if json else sentence)
    if dry and not json:
        print(_DRY)


@app_command.command(name="rebuild-pages")
def rebuild_pages(source: OneSource = None, apply: Apply = False, json: AsJson = False, home: Home = None) -> None:
    """Hold the groups that people browse against their captures, and rewrite those that are wrong.

    Example: holdfast rebuild-pages --apply
    """
    with _opened(config.load(home=home)) as (runtime, database):
        found = rebuild_groups(
            runtime.raw_db, source_id=_source_id(database, source), apply=apply, seen=_counter("groups", quiet=json)
        )
    content = {"groups": found.looked, "wrong": found.wrong, "empty": found.empty, "applied": apply}
    sentence = (
        f"{counted(found.looked, 'group')}, {found.wrong:,} {'were' if apply else 'are'} wrong, {found.empty:,} empty"
    )
    _print_result(content, sentence, json=json, dry=bool(found.wrong) and not apply)


@app_command.command(name="backfill-groups")
def backfill_groups(source: OneSource = None, apply: Apply = False, json: AsJson = False, home: Home = None) -> None:
    """Give pages that belong to no group theirs: scheme, host and path without the query.

    Example: holdfast backfill-normalized-url-groups --apply
    """
    settings = config.load(home=home)
    with _opened(settings) as (runtime, database):
        count = group_pages(
            runtime.raw_db,
            runtime.clock,
            source_id=_source_id(database, source),
            apply=apply,
            seen=_counter("pages", quiet=json),
        )
        if apply and count:
            take_in(settings, runtime.clock)
    sentence = f"{counted(count, 'page')} {'had' if apply else 'with'} no group"
    _print_result({"pages": count, "applied": apply}, sentence, json=json, dry=bool(count) and not apply)


@app_command.command(name="dedupe")
def dedupe_snapshots(
    job_id: OfJob = None, execution: OfExecution = None, apply: Apply = False, json: AsJson = False, home: Home = None
) -> None:
    """Settle which captures are duplicates: same source, address, UTC day and body; the earliest is canonical.

    The rule is kept whenever captures are indexed; this is for archives that were changed by hand.
    Example: holdfast dedupe-snapshots --id 3 --apply
    """
    meant, done = _each(dedupe, (job_id, execution), "captures", apply=apply, json=json, home=home)
    sentence = (
        f"{meant.told()}: {counted(done.looked, 'capture')}, {done.changed:,} {'settled' if apply else 'to settle'}"
    )
    content = {**meant.facts(), "captures": done.looked, "changed": done.changed, "applied": apply}
    _print_result(content, sentence, json=json, dry=bool(done.changed) and not apply)


def _each(
    work: Settling, named: tuple[int | None, int | None], what: str, *, apply: bool, json: bool, home: Home
) -> tuple[SelectedExecutions, Duplicates]:
    """Do something to the captures of each execution that is meant, and let search know; return all that came of it."""
    settings, done = config.load(home=home), Duplicates()
    with _opened(settings) as (runtime, database):
        meant, count = find_executions(database, *named), _counter(what, quiet=json)
        for one in meant.each():
            before = done.looked
            part = work(
                runtime.raw_db,
                runtime.clock,
                execution_id=one,
                apply=apply,
                # Bound now: the lambda is called while the loop goes on.
                seen=lambda looked, before=before: count(before + looked),
            )
            done.looked, done.changed = done.looked + part.looked, done.changed + part.changed
        if apply and done.changed:
            take_in(settings, runtime.clock)
    return meant, done


@app_command.command(name="restore-duplicates")
def restore_duplicates(
    job_id: OfJob = None, execution: OfExecution = None, apply: Apply = False, json: AsJson = False, home: Home = None
) -> None:
    """Let captures that count as duplicates count by themselves again; `dedupe` settles them once more.

    Example: holdfast restore-deduped-snapshots --id 3 --apply
    """
    meant, done = _each(restore, (job_id, execution), "duplicates", apply=apply, json=json, home=home)
    sentence = f"{meant.told()}: {counted(done.looked, 'duplicate')}" + (", restored" if apply else "")
    content = {**meant.facts(), "duplicates": done.looked, "restored": done.changed, "applied": apply}
    _print_result(content, sentence, json=json, dry=bool(done.looked) and not apply)


@app_command.command(name="refresh-metadata")
def refresh_metadata(
    job_id: OfJob = None,
    execution: OfExecution = None,
    source: OneSource = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Read sealed WARC files again: titles, languages, types and texts as this program extracts them; ids stay.

    Ctrl-C stops between two batches. What an older extraction made is made anew, the rest is found as it is.
    Acts at once: what it writes is derived, and can be made anew.
    Example: holdfast refresh-snapshot-metadata --source hc
    """
    settings = config.load(home=home)
    with _opened(settings) as (runtime, database):
        step_back(settings.index.nice)
        meant = find_executions(database, job_id, execution)
        ids = _files(database, meant, source)
        line = ProgressLine(runtime.clock, quiet=json)
        done: list[Indexed] = []
        opened = open_indexer(runtime.raw_db, runtime.clock, settings.home, on_progress=line.progress)
        with opened as indexer, stoppable(indexer):
            for file_id in ids:
                one = indexer.index_file(file_id)
                line.clear()
                if one is not None:
                    done.append(one)
                    if not json:
                        print(lines(f"{one.path.rpartition('/')[2]}: {one.error or describe(one)}"))
        take_in(settings, runtime.clock)
    failed = [one for one in done if one.error]
    changed = sum(one.changed for one in done)
    _print_result(
        {**meant.facts(), "files": [as_object(one) for one in done], "changed": changed, "failed": len(failed)},
        f"{meant.told()}: {counted(len(done), 'file')} read, {len(failed)} failed, "
        f"{counted(changed, 'snapshot')} changed",
        json=json,
    )
    if failed:
        raise typer.Exit(1)


def _files(database: Database, meant: SelectedExecutions, source: str | None) -> list[int]:
    # Only to refuse a code that no source has: an empty list would say that it has no files.
    _source_id(database, source)
    with database.read() as session:
        ids = [
            file.id
            for execution in meant.each()
            for file, _ in queries.warc_files(session, source=source, execution_id=execution)
            if file.state == "sealed"
        ]
    if not ids:
        raise NotFound(f"there is no sealed WARC file to read ({meant.told()}); see them with: holdfast warc list")
    return ids


@app_command.command(name="backfill-outlinks")
def backfill_outlinks(
    job_id: OfJob = None, execution: OfExecution = None, json: AsJson = False, home: Home = None
) -> None:
    """Read links from the WARC records of pages that have none stored; then: holdfast recompute-page-signals.

    Acts at once: it only adds what is missing.
    Example: holdfast backfill-outlinks --id 3
    """
    settings = config.load(home=home)
    with _opened(settings) as (runtime, database), closing(ParseChild(deadline_s=_CHILD_S)) as child:
        step_back(settings.index.nice)
        meant = find_executions(database, job_id, execution)
        reader = LinkReader(database, runtime.raw_db, settings.home, child, clock=runtime.clock)
        done = [reader.backfill(execution_id=one, seen=_counter("pages", quiet=json)) for one in meant.each()]
    pages, links = sum(one.pages for one in done), sum(one.links for one in done)
    failed = {str(key): why for one in done for key, why in one.failed.items()}
    _print_result(
        {**meant.facts(), "pages": pages, "links": links, "failed": failed},
        f"{meant.told()}: {counted(pages, 'page')} read, {counted(links, 'link')} stored, {len(failed)} not readable",
        json=json,
    )
    if failed:
        raise typer.Exit(1)


@app_command.command(name="check-replay")
def check_replay(
    job_id: NewestOfJob = None,
    execution: OneExecution = None,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="About so many captures; all if left out.")
    ] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Check that a job's run can be replayed: its files are there, and each capture finds its record.

    Replay reads the snapshot table, so nothing has to be built: what was indexed can be replayed at once.
    Example: holdfast replay-index-job --id 3
    """
    settings = config.load(home=home)
    with _opened(settings) as (_, database):
        meant = find_completed(database, job_id, execution)
        found = check_execution(
            database, settings.home, meant.only, sample=sample, seen=_counter("captures", quiet=json)
        )
    _print_result({"job": meant.job_id, **_replay_object(found)}, _replay_text(found, meant.told()), json=json)
    if not found.is_whole:
        raise typer.Exit(1)


@app_command.command(name="reconcile-replay")
def reconcile_replay(
    sample: Annotated[int, typer.Option("--sample", min=1, help="Captures that are opened of each execution.")] = 20,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Check every execution: all of its files, and a sample of its captures; exit 1 if any cannot be replayed.

    Example: holdfast replay-reconcile
    """
    settings = config.load(home=home)
    found: list[Replayable] = []
    with _opened(settings) as (_, database):
        for execution_id in each_execution(database):
            found.append(check_execution(database, settings.home, execution_id, sample=sample))
            if not json:
                print(_replay_text(found[-1], f"execution {execution_id}"))
    bad = [one for one in found if not one.is_whole]
    if json:
        print(jsonlib.dumps({"executions": [_replay_object(one) for one in found], "broken": len(bad)}))
    else:
        print(f"{counted(len(found), 'execution')}, {len(bad)} with faults")
    if bad:
        raise typer.Exit(1)


def _replay_text(found: Replayable, name: str) -> str:
    head = f"{name}: {counted(found.files, 'file')}, {counted(found.captures, 'capture')}, {found.checked:,} checked"
    if found.is_whole:
        return f"{head}, replayable"
    faults = ", ".join(f"{name} {count}" for name, count in sorted(found.faults.items()))
    return "\n".join([f"{head}; {faults}", *(f"  {text(example)}" for example in found.examples)])


def _replay_object(found: Replayable) -> dict[str, Any]:
    return {
        "execution": found.execution_id,
        "files": found.files,
        "captures": found.captures,
        "checked": found.checked,
        "replayable": found.is_whole,
        "faults": dict(found.faults),
        "examples": found.examples,
    }


Unread = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app_command.command(name="generate-previews")
def generate_previews(_json: Unread = False, _home: Home = None) -> None:
    """Make preview images of sources; needs the browser, which this version does not have.

    Example: holdfast replay-generate-previews
    """
    raise Unavailable("previews need a browser, which this version of holdfast does not run; nothing was made")
