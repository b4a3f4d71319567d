"""`holdfast index`: what is sealed becomes searchable. Any number of these may run at once; each file is read once."""

from __future__ import annotations

import json as jsonlib
import time
from contextlib import closing
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.display import indexing
from holdfast.cli.formatting import counted, duration, lines, size
from holdfast.cli.parameters import Apply, AsJson, Home, configure_log
from holdfast.cli.progress import ProgressLine, as_object, describe, stoppable, take_in
from holdfast.clock import Clock
from holdfast.coordination.runfile import step_back
from holdfast.db.engine import Database
from holdfast.db.models import IndexRun
from holdfast.imports.rebuild import plan_rebuild, restore_files
from holdfast.index.indexer import Indexed, Indexer, Interrupted, each_pending, open_indexer
from holdfast.index.leases import latest_runs
from holdfast.jobs.indexing import close_accounts
from holdfast.sources.registry import find
from holdfast.warc.queries import read_all_again
from holdfast.wiring import Runtime, open_runtime
from holdfast.withdrawals.hiding import restore_withdrawals

_LOOK_S = 1.0
_SLICE_S = 0.1


def index(
    follow: Annotated[bool, typer.Option("--follow", help="Go on with each file as it is sealed.")] = False,
    source: Annotated[str | None, typer.Option("--source", "-s", help="Only files of this source.")] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Processes that read at once.")] = 1,
    search: Annotated[bool, typer.Option("--search/--no-search", help="Let search take it in at once.")] = True,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Register what manifests list and rows lost; read all files again.")
    ] = False,
    apply: Apply = False,
    status: Annotated[bool, typer.Option("--status", help="Only show what is being read, and what was.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Index all sealed WARC files that wait for it, and let search find them.

    Ctrl-C stops between two batches, the same command goes on. --rebuild makes an archive anew from its files and their
    manifests, with the same ids; without --apply it says what it would do. Stopped, it goes on with: holdfast index

    Example: holdfast index --follow
    """
    settings = config.load(home=home)
    configure_log(settings, as_json=False)
    with open_runtime(settings) as runtime:
        if status:
            _show_status(runtime, as_json=json)
            return
        if rebuild and not _rebuild(runtime, source, apply=apply, as_json=json):
            return
        if source is not None:  # only now: a rebuild may have brought it back
            _demand_source(runtime, source)
        step_back(settings.index.nice)
        wanted = [*(["--follow"] if follow else []), *(["--source", source] if source else [])]
        wanted += [] if search else ["--no-search"]
        helpers = [indexing(settings, *wanted) for _ in range(workers - 1)]
        try:
            done, is_whole = _run(runtime, follow=follow, source=source, search=search, quiet=json)
        finally:
            for helper in helpers:
                if follow:
                    helper.terminate()
                helper.communicate()
    failed = [one for one in done if one.error]
    if json:
        print(jsonlib.dumps({"finished": is_whole, "files": [as_object(one) for one in done]}))
    else:
        total = sum(one.snapshots for one in done)
        typer.echo(f"{len(done) - len(failed)} of {counted(len(done), 'file')} indexed, {counted(total, 'snapshot')}")
    if failed or not is_whole:
        raise typer.Exit(130 if not is_whole and not follow else 1 if failed else 0)


def _demand_source(runtime: Runtime, code: str) -> None:
    with closing(Database(runtime.settings.database)) as database, database.read() as session:
        find(session, code)


def _rebuild(runtime: Runtime, source: str | None, *, apply: bool, as_json: bool) -> bool:
    """Register the files that rows lost and have all read again; return whether there is something to read now."""
    home = runtime.settings.home
    found = plan_rebuild(runtime.raw_db, home)
    for problem in found.problems:
        typer.echo(f"warning: {problem}", err=True)
    if not apply:
        if as_json:
            told = {"known": found.known, "lost": len(found.lost), "problems": found.problems, "applied": False}
            print(jsonlib.dumps(told))
        else:
            typer.echo(
                f"{found.known:,} files have their rows, {len(found.lost):,} lost theirs and would get them back"
            )
            typer.echo("nothing was written; add --apply to do so and to read all of them again")
        return False
    with closing(Database(runtime.settings.database)) as database:
        # First: no file that is read again may show what was hidden.
        hidden = restore_withdrawals(database, home)
        restored = restore_files(database, runtime.raw_db, runtime.clock, home, found.lost)
    with runtime.raw_db.write() as tx:
        waiting = read_all_again(tx, source=source)
    if not as_json:
        typer.echo(f"{restored:,} files got their rows back; {waiting:,} files are read again")
        if hidden:
            typer.echo(f"{hidden:,} withdrawals are in force again")
    return True


def _run(
    runtime: Runtime, *, follow: bool, source: str | None, search: bool, quiet: bool
) -> tuple[list[Indexed], bool]:
    line = ProgressLine(runtime.clock, quiet=quiet)
    done: list[Indexed] = []
    told, home = 0, runtime.settings.home
    with open_indexer(runtime.raw_db, runtime.clock, home, on_progress=line.progress) as indexer, stoppable(indexer):
        try:
            while True:
                for one in each_pending(indexer, runtime.raw_db, runtime.clock, source=source):
                    done.append(one)
                    line.clear()
                    if not quiet:
                        told_of = f"{one.path.rpartition('/')[2]}: {one.error or describe(one)}"
                        typer.echo(lines(told_of), err=bool(one.error))
                _conclude(runtime, done[told:])
                told = len(done)
                if search:
                    take_in(runtime.settings, runtime.clock)
                if not follow or not _wait(indexer):
                    return done, not indexer.stopping or follow
        except Interrupted:
            line.clear()
            return done, follow


def _conclude(runtime: Runtime, read: list[Indexed]) -> None:
    """Say on the executions of these files that they are indexed, where nothing else of them waits."""
    if read:
        with closing(Database(runtime.settings.database)) as database:
            close_accounts(database, runtime.clock, [one.warc_file_id for one in read])


def _wait(indexer: Indexer) -> bool:
    """Wait for files to be sealed; False once somebody asked to stop."""
    for _ in range(int(_LOOK_S / _SLICE_S)):
        if indexer.stopping:
            return False
        time.sleep(_SLICE_S)
    return True


def _show_status(runtime: Runtime, *, as_json: bool) -> None:
    with closing(Database(runtime.settings.database)) as database, database.read() as session:
        rows = latest_runs(session, limit=20)
    shown = [{"file": file.id, "source": code, **run_object(run, file.path, runtime.clock)} for run, file, code in rows]
    if as_json:
        print(jsonlib.dumps({"runs": shown}))
    elif not shown:
        typer.echo("nothing was indexed yet; index what is sealed with: holdfast index")
    for one in shown if not as_json else ():
        typer.echo(
            f"{one['file']:>6}  {one['source']:<16} {one['phase']:<10} {one['recordsProcessed']:>9,} records  "
            f"{size(one['bytesProcessed'])} of {size(one['bytesTotal'])}  {duration(one['elapsedSeconds'])}"
            + (f"  {one['error']}" if one["error"] else "")
        )


def run_object(run: IndexRun, path: str, clock: Clock) -> dict[str, Any]:
    """Return the progress of one reading, as 1.5 of the facts names its fields."""
    until = run.finished_at or run.progress_at
    return {
        "phase": run.phase,
        "currentWarc": path,
        "recordsProcessed": run.records,
        "pages": run.pages,
        "bytesProcessed": run.bytes_done,
        "bytesTotal": run.bytes_total,
        "startedAt": run.started_at.isoformat(),
        "lastProgressAt": run.progress_at.isoformat(),
        "elapsedSeconds": round((until - run.started_at).total_seconds(), 3),
        "lastProgressAgeSeconds": round((clock.now() - run.progress_at).total_seconds(), 3),
        "warnings": run.warnings,
        "error": run.error,
    }


app_command = index
