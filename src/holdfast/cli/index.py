"""`holdfast index` and `holdfast import`: make sealed files, and archives of other programs, searchable.

Any number of these may run at the same time; each file is read once. Files that are not archives are rejected
by name.
"""

from __future__ import annotations

import ctypes
import gc
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from holdfast.cli.display import indexing
from holdfast.cli.formatting import counted, dumps, lines, table
from holdfast.cli.formatting import text as plain
from holdfast.cli.parameters import Apply, AsJson, OfSource
from holdfast.cli.printing import picked, runnable
from holdfast.cli.progress import ProgressLine
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.imports.importer import ImportedFile, Importer
from holdfast.imports.packages import FoundFiles, discover, spelled
from holdfast.imports.placing import Keeping
from holdfast.imports.rebuild import plan_rebuild, restore_files
from holdfast.index.indexer import Indexed, Indexer, Interrupted, each_pending, open_indexer
from holdfast.index.leases import count_pending, latest_runs
from holdfast.jobs.imports import ImportOptions, ensure_import_source
from holdfast.jobs.indexing import close_accounts, close_if_read
from holdfast.noise.classifier import judge_pending
from holdfast.noise.labels import restore_labels
from holdfast.processes.runfile import step_back
from holdfast.search.directory import IndexBusy
from holdfast.search.linked_hosts import refresh_linked_hosts
from holdfast.search.outbox import drain
from holdfast.search.signals import refresh
from holdfast.sources.members_file import restore_members
from holdfast.sources.queries import source_id_of
from holdfast.warc.queries import read_all_again
from holdfast.wiring import Runtime, open_runtime
from holdfast.withdrawals.hiding import restore_withdrawals

_LOOK_S = 1.0
_SLICE_S = 0.1


@runnable(opened=open_runtime, example="index --follow")
def index(
    runtime: Runtime,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with each file as it is sealed.")] = False,
    source: OfSource = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that read at once.")] = 1,
    search: Annotated[bool, typer.Option("--search/--no-search", help="Let search take it in at once.")] = True,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Register what manifests list and rows lost; read all files again.")
    ] = False,
    apply: Apply = False,
    status: Annotated[bool, typer.Option("--status", help="Only show files that are being indexed or were.")] = False,
    json: AsJson = False,
) -> None:
    """Index all sealed WARC files that are waiting, and make them searchable.

    Ctrl-C stops between two batches, and the same command continues. --rebuild rebuilds an archive from its files
    and their manifests, with the same ids; without --apply it shows what it would do. To continue a stopped
    rebuild, run: holdfast index
    """
    settings = runtime.settings
    if status:
        _show_status(runtime, as_json=json)
        return
    if rebuild and not _rebuild(runtime, source, apply=apply, as_json=json):
        return
    # Check only now: a rebuild may have restored the source.
    with closing(Database(settings.database)) as database, database.read() as session:
        source_id_of(session, source)
    step_back(settings.index.nice)
    wanted = [*(["--follow"] if follow else []), *(["--source", source] if source else [])]
    wanted += [] if search else ["--no-search"]
    helpers = [indexing(settings, *wanted) for _ in range(workers - 1)]
    try:
        done, is_whole = _run(runtime, follow=follow, source=source, search=search, quiet=json)
    finally:
        for helper in helpers:
            if follow:
                # A follower waits for files forever; the others end when nothing is left.
                helper.terminate()
            helper.communicate()
    failed = [one for one in done if one.error]
    if json:
        print(dumps({"finished": is_whole, "files": [as_object(one) for one in done]}))
    else:
        total = sum(one.snapshots for one in done)
        print(f"{len(done) - len(failed)} of {counted(len(done), 'file')} indexed, {counted(total, 'snapshot')}")
    if failed or not is_whole:
        raise typer.Exit(130 if not is_whole and not follow else 1 if failed else 0)


def _rebuild(runtime: Runtime, source: str | None, *, apply: bool, as_json: bool) -> bool:
    """Register files whose rows were lost and mark all files to be indexed again; return whether any are waiting."""
    home = runtime.settings.home
    found = plan_rebuild(runtime.raw_db, home)
    for problem in found.problems:
        _say(f"warning: {problem}", err=True)
    if not apply:
        if as_json:
            lost = len(found.lost)
            print(dumps({"known": found.known, "lost": lost, "problems": found.problems, "applied": False}))
        else:
            print(f"{found.known:,} files have their rows, {len(found.lost):,} lost theirs and would get them back")
            print("nothing was written; add --apply to do so and to read all of them again")
        return False
    with closing(Database(runtime.settings.database)) as database:
        # Do this first: reading a file again must not show hidden captures.
        hidden = restore_withdrawals(database, home)
        restore_members(database, runtime.clock, home)
        ruled = restore_labels(database, runtime.clock, home)
        restored = restore_files(database, runtime.raw_db, runtime.clock, home, found.lost)
    with runtime.raw_db.write() as tx:
        waiting = read_all_again(tx, source=source)
    if not as_json:
        print(f"{restored:,} files got their rows back; {waiting:,} files are read again")
        for count, what in ((hidden, "takedowns"), (ruled, "rulings on noise")):
            if count:
                print(f"{count:,} {what} are in force again")
    return True


@contextmanager
def reading(runtime: Runtime, *, quiet: bool) -> Iterator[tuple[Indexer, ProgressLine]]:
    """Open what reads files, and the line that shows how far it is; the first Ctrl-C stops between two batches."""
    line = ProgressLine(runtime.clock, quiet=quiet)
    opened = open_indexer(runtime.raw_db, runtime.clock, runtime.settings.home, on_progress=line.progress)
    with opened as indexer, stoppable(indexer):
        yield indexer, line
    line.clear()


def _run(
    runtime: Runtime, *, follow: bool, source: str | None, search: bool, quiet: bool
) -> tuple[list[Indexed], bool]:
    done: list[Indexed] = []
    concluded = 0
    with reading(runtime, quiet=quiet) as (indexer, line):
        try:
            while True:
                with runtime.raw_db.read() as tx:
                    of = len(done) + count_pending(tx, source=source)
                line.before = f"file {len(done) + 1} of {of}: "
                for one in each_pending(indexer, runtime.raw_db, runtime.clock, source=source):
                    done.append(one)
                    line.before = f"file {len(done) + 1} of {max(of, len(done) + 1)}: "
                    line.clear()
                    if not quiet:
                        typer.echo(file_lines(one), err=bool(one.error))
                # Do this after each round: with --follow there may be no end.
                if read := done[concluded:]:
                    with closing(Database(runtime.settings.database)) as database:
                        close_accounts(database, runtime.clock, [one.warc_file_id for one in read])
                concluded = len(done)
                if search:
                    take_in(runtime.settings, runtime.clock)
                if not follow or not _wait(indexer):
                    # Ctrl-C is the usual end of --follow, not a failure.
                    return done, not indexer.stopping or follow
        except Interrupted:
            line.clear()
            return done, follow


def _wait(indexer: Indexer) -> bool:
    """Wait for files to be sealed; return False after Ctrl-C or TERM."""
    # Wait in slices: a signal handler only sets a flag, and Ctrl-C should not take a second.
    for _ in range(int(_LOOK_S / _SLICE_S)):
        if indexer.stopping:
            return False
        time.sleep(_SLICE_S)
    return True


def _show_status(runtime: Runtime, *, as_json: bool) -> None:
    with closing(Database(runtime.settings.database)) as database, database.read() as session:
        rows = latest_runs(session, limit=20)
    now, shown = runtime.clock.now(), []
    facts = "phase recordsProcessed=records pages bytesProcessed=bytes_done bytesTotal=bytes_total warnings error"
    for run, file, code in rows:
        elapsed = (run.finished_at or run.progress_at) - run.started_at
        times = {
            "startedAt": run.started_at.isoformat(),
            "lastProgressAt": run.progress_at.isoformat(),
            "elapsedSeconds": round(elapsed.total_seconds(), 3),
            "lastProgressAgeSeconds": round((now - run.progress_at).total_seconds(), 3),
        }
        shown.append({"file": file.id, "source": code, "currentWarc": file.path, **picked(run, facts), **times})
    if as_json:
        print(dumps({"runs": shown}))
        return
    names = ("file", "source", "phase", "recordsProcessed", "bytesProcessed", "bytesTotal", "elapsedSeconds", "error")
    heads = ("file", "source", "phase", "records", "bytes", "of", "seconds", "error")
    none = "nothing was indexed yet; index the sealed files with: holdfast index"
    print(table(heads, [[one[name] for name in names] for one in shown]) if shown else none)


_SHOWN_DAMAGE = 10


@runnable(opened=nullcontext, example="import crawls/ --source hc")
def import_(
    settings: Settings,
    paths: Annotated[list[Path], typer.Argument(help="WARC, ARC and WACZ files, or folders of them.", metavar="PATH")],
    source: Annotated[str, typer.Option("--source", "-s", help="Code of the source; made if it is new.")],
    name: Annotated[str | None, typer.Option(help="Name of a new source.")] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Register the files where they lie; copy none.")] = False,
    link: Annotated[
        bool, typer.Option("--link", help="Hard links instead of copies: files that never change.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse files with damage, or a digest or signature that is wrong.")
    ] = False,
    follow_state: Annotated[
        bool, typer.Option("--follow-state", help="Read folders elsewhere that a tool's state file names.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Import archives and index them: .warc, .warc.gz, .warc.zst, .arc, .arc.gz, .wacz, folders, a tool's output.

    Files are copied below the data directory (sharing their blocks where the disk can). Importing the same file
    again indexes it again with the same ids. Damage, wrong digests and signatures are reported, and intact records
    are imported; --strict rejects such a file. Exit 1 if a file could not be imported.
    """
    step_back(settings.index.nice)
    found = discover(paths, follow_state=follow_state)
    with open_runtime(settings) as runtime, closing(Database(settings.database)) as database:
        ensure_import_source(database, runtime.clock, code=source, name=name)
        request = ImportOptions(
            source=source,
            name=name,
            home=settings.home,
            config={"paths": [spelled(path.resolve()) for path in paths], "in_place": in_place},
        )

        def prepare(importer: Importer) -> None:
            importer.in_place, importer.strict = in_place, strict
            importer.keeping = Keeping.LINK if link else Keeping.COPY

        done, is_whole = _import(runtime, database, request, found, prepare, quiet=json)
    if json:
        print(dumps(_import_object(source, done, found, is_whole=is_whole)))
    else:
        _print_import_rest(done, found, is_whole=is_whole)
    if found.missing or found.unreadable or not done or any(one.error for one in done) or not is_whole:
        # Prefer 130 for Ctrl-C to 1 for a failed file: the same command continues.
        raise typer.Exit(130 if not is_whole else 1)


def _import(
    runtime: Runtime,
    database: Database,
    request: ImportOptions,
    found: FoundFiles,
    prepare: Callable[[Importer], None],
    *,
    quiet: bool,
) -> tuple[list[ImportedFile], bool]:
    done: list[ImportedFile] = []
    with reading(runtime, quiet=quiet) as (indexer, line):
        importer = Importer(database, runtime.raw_db, runtime.clock, indexer, request)
        importer.on_step = line.step
        prepare(importer)
        try:
            for one in importer.run(found.files):
                done.append(one)
                line.clear()
                if not quiet:
                    print_imported(one)
        except Interrupted:
            line.clear()
            return done, False
    # Nothing was imported, so no execution was made.
    if importer.group is not None:
        close_if_read(database, runtime.clock, importer.group[0])
    line.say("search takes it in")
    take_in(runtime.settings, runtime.clock)
    line.clear()
    return done, True


def _say(line: str, *, err: bool = False) -> None:
    """Print a line without control characters: names and content of files are untrusted."""
    typer.echo(plain(line), err=err)


def print_imported(one: ImportedFile) -> None:
    """Print the result of one file; failures and warnings go to standard error."""
    name = one.origin.rpartition("/")[2]
    if one.error is not None:
        _say(f"failed    {name}: {one.error}", err=True)
        return
    counts = (
        f", {counted(one.indexed.snapshots, 'snapshot')}, {counted(one.indexed.pages, 'page')}" if one.indexed else ""
    )
    _say(f"{one.state:<9} {name}: {one.how}, {counted(one.records, 'record')}{counts}, file {one.warc_file_id}")
    for note in one.notes:
        _say(f"  note: {note}")
    if left_out := _left_out(one):
        records = f"{counted(left_out, 'record')} of other addresses (dns:, urn:, …)"
        _say(f"  note: {records} left out: only http and https become snapshots")
    for wrong in one.fixity:
        _say(f"  warning: fixity: {wrong}", err=True)
    for damage in one.damage[:_SHOWN_DAMAGE]:
        _say(f"  warning: at {damage.offset}: {damage.kind}: {damage.detail}", err=True)
    if one.damaged > _SHOWN_DAMAGE:
        _say(f"  and {one.damaged - _SHOWN_DAMAGE:,} more; --json lists them", err=True)
    if one.indexed is not None:
        content = {damage.kind for damage in one.damage}
        for line in warning_lines(one.indexed, leaving_out=content):
            _say(line, err=True)


def _left_out(one: ImportedFile) -> int:
    """Return the number of captures with non-web URLs (dns:, urn:, …), without those that a warning reports."""
    if one.indexed is None:
        return 0
    reported = one.indexed.warnings.get("other_scheme", {"count": 0})
    return int(one.indexed.kinds.get("other_scheme", 0) - reported["count"])


def _print_import_rest(done: list[ImportedFile], found: FoundFiles, *, is_whole: bool) -> None:
    for path, why in found.passed_over:
        _say(f"passed over {spelled(path)}: {why}")
    for path in found.missing:
        _say(f"failed    {spelled(path)}: there is no such file or folder", err=True)
    for path, why in found.unreadable:
        _say(f"failed    {spelled(path)}: it cannot be looked into ({why}); mend that and import it again", err=True)
    if not done and is_whole and not (found.missing or found.unreadable):
        _say("holdfast: no archives there (looked for .warc, .arc and .wacz, compressed or not)", err=True)
    good = [one for one in done if one.error is None]
    snapshots = sum(one.indexed.snapshots for one in good if one.indexed is not None)
    new = sum(one.state == "imported" for one in good)
    failed = len(done) - len(good) + len(found.missing) + len(found.unreadable)
    rest = [f"{count} {word}" for count, word in ((len(good) - new, "known"), (failed, "failed")) if count]
    _say(", ".join([f"{counted(new, 'file')} imported", *rest, counted(snapshots, "snapshot")]))
    if not is_whole:
        _say("stopped; the same command goes on from here", err=True)


def _import_object(source: str, done: list[ImportedFile], found: FoundFiles, *, is_whole: bool) -> dict[str, Any]:
    return {
        "source": source,
        "finished": is_whole,
        "files": [_imported_object(one) for one in done],
        "missing": [spelled(path) for path in found.missing],
        "unreadable": [{"path": spelled(path), "reason": why} for path, why in found.unreadable],
        "passed_over": [{"path": spelled(path), "reason": why} for path, why in found.passed_over],
    }


def _imported_object(one: ImportedFile) -> dict[str, Any]:
    more = {
        "signature": _signature_object(one),
        "damage": [damage._asdict() for damage in one.damage],
        "indexed": as_object(one.indexed) if one.indexed is not None else None,
    }
    return picked(one, "file=warc_file_id origin state how records notes fixity damaged error", **more)


def _signature_object(file: ImportedFile) -> dict[str, str | None] | None:
    one = file.signature
    if one is None:
        return None
    at = f"{one.at:%Y-%m-%dT%H:%M:%SZ}" if one.at is not None else None
    return {"worth": one.worth, "kind": one.kind, "by": one.by, "at": at, "why": one.why or None}


@contextmanager
def stoppable(indexer: Indexer) -> Iterator[None]:
    """Stop between two batches on the first Ctrl-C or TERM, and immediately on the second."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        if indexer.stopping:
            # This is the second Ctrl-C: a batch may take long on a slow disk, and uncommitted records are read again.
            raise KeyboardInterrupt
        indexer.stopping = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def take_in(settings: Settings, clock: Clock) -> None:
    """Classify newly indexed captures and update the search index with their links.

    If another process holds the index, it does the update.
    """
    _give_memory_back()
    # Another process that holds the index also adds these rows: they wait in the outbox.
    with closing(Database(settings.database)) as database, suppress(IndexBusy):
        # Do this first: the search index then includes these labels.
        judge_pending(database, clock)
        drain(database, settings.home, clock)
        while refresh_linked_hosts(database, settings.home, clock):
            pass
        refresh(database, settings.home, clock)


def _give_memory_back() -> None:
    """Return freed memory to the system, if the C library can: search would need as much in addition."""
    gc.collect()
    with suppress(AttributeError, OSError):
        # glibc keeps freed memory; musl and macOS have no such call.
        ctypes.CDLL(None).malloc_trim(0)


def warning_lines(done: Indexed, *, leaving_out: Collection[str] = ()) -> list[str]:
    """Return a line for each kind of problem in a file, with its first position."""
    return [
        plain(f"  warning: {kind}, {one['count']} times, first at {one['offset']}: {one['detail']}")
        for kind, one in sorted(done.warnings.items())
        if kind not in leaving_out
    ]


def file_lines(done: Indexed) -> str:
    """Return the name of a file and what came of it, with a line for each kind of problem."""
    counts = f"{counted(done.records, 'record')}, {counted(done.snapshots, 'snapshot')}, {counted(done.pages, 'page')}"
    result = done.error or "\n".join([counts, *warning_lines(done)])
    return lines(f"{done.path.rpartition('/')[2]}: {result}")


def as_object(done: Indexed) -> dict[str, Any]:
    """Return the result of one file for `--json`."""
    facts = asdict(done)
    return {"file": facts.pop("warc_file_id"), **facts}
