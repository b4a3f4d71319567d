"""`holdfast import`: archives of other writers become snapshots of a source. What is no archive is refused, by name."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import counted
from holdfast.cli.formatting import text as plain
from holdfast.cli.parameters import AsJson, Home, configure_log
from holdfast.cli.progress import ProgressLine, as_object, stoppable, take_in, warning_lines
from holdfast.coordination.runfile import step_back
from holdfast.db.engine import Database
from holdfast.imports.importer import ImportedFile, Importer
from holdfast.imports.packages import FoundFiles, discover, spelled
from holdfast.imports.placing import Keeping
from holdfast.imports.signatures import Signature
from holdfast.index.indexer import Interrupted, open_indexer
from holdfast.jobs.imports import ImportWish, ensure_import_source
from holdfast.jobs.indexing import close_if_read
from holdfast.wiring import Runtime, open_runtime

_SHOWN = 10


def import_(
    paths: Annotated[list[Path], typer.Argument(help="WARC, ARC and WACZ files, or folders of them.", metavar="PATH")],
    source: Annotated[str, typer.Option("--source", "-s", help="Code of the source; made if it is new.")],
    name: Annotated[str | None, typer.Option("--name", help="Name of a new source.")] = None,
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
    home: Home = None,
) -> None:
    """Import archives and index them: .warc, .warc.gz, .warc.zst, .arc, .arc.gz, .wacz, folders, a tool's output.

    Files are copied below the data directory (sharing their blocks where the disk can). The same file again is indexed
    anew and keeps its ids. Damage, wrong digests and signatures are reported, whole records are kept; --strict
    refuses such a file. Exit 1 if a file could not be imported.

    Example: holdfast import crawls/ --source health
    """
    settings = config.load(home=home)
    configure_log(settings, as_json=False)
    step_back(settings.index.nice)
    found = discover(paths, follow_state=follow_state)
    with open_runtime(settings) as runtime, closing(Database(settings.database)) as database:
        ensure_import_source(database, runtime.clock, code=source, name=name)
        wish = ImportWish(
            source=source,
            name=name,
            home=settings.home,
            config={"paths": [spelled(path.resolve()) for path in paths], "in_place": in_place},
        )

        def prepare(importer: Importer) -> None:
            importer.in_place, importer.strict = in_place, strict
            importer.keeping = Keeping.LINK if link else Keeping.COPY

        done, is_whole = _run(runtime, database, wish, found, prepare, quiet=json)
    if json:
        print(jsonlib.dumps(_facts(source, done, found, is_whole=is_whole)))
    else:
        _print_rest(done, found, is_whole=is_whole)
    if found.missing or found.unreadable or not done or any(one.error for one in done) or not is_whole:
        raise typer.Exit(130 if not is_whole else 1)


def _run(
    runtime: Runtime,
    database: Database,
    wish: ImportWish,
    found: FoundFiles,
    prepare: Callable[[Importer], None],
    *,
    quiet: bool,
) -> tuple[list[ImportedFile], bool]:
    """Import the files; return what came of each, and whether all were reached."""
    line = ProgressLine(runtime.clock, quiet=quiet)
    done: list[ImportedFile] = []
    with (
        open_indexer(runtime.raw_db, runtime.clock, wish.home, on_progress=line.progress) as indexer,
        stoppable(indexer),
    ):
        importer = Importer(database, runtime.raw_db, runtime.clock, indexer, wish)
        importer.on_step = line.step
        prepare(importer)
        try:
            for one in importer.run(found.files):
                done.append(one)
                line.clear()
                if not quiet:
                    _print(one)
        except Interrupted:
            line.clear()
            return done, False
    if importer.begun is not None:
        close_if_read(database, runtime.clock, importer.begun.execution_id)
    line.say("search takes it in")
    take_in(runtime.settings, runtime.clock)
    line.clear()
    return done, True


def _say(line: str, *, err: bool = False) -> None:
    """Print a line: names of files and members, and what stands in them, are written by others."""
    typer.echo(plain(line), err=err)


def _print(one: ImportedFile) -> None:
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
    for wrong in one.fixity:
        _say(f"  warning: fixity: {wrong}", err=True)
    for damage in one.damage[:_SHOWN]:
        _say(f"  warning: at {damage.offset}: {damage.kind}: {damage.detail}", err=True)
    if one.damaged > _SHOWN:
        _say(f"  and {one.damaged - _SHOWN:,} more; --json lists them", err=True)
    if one.indexed is not None:
        told = {damage.kind for damage in one.damage}
        for line in warning_lines(one.indexed, leaving_out=told):
            _say(line, err=True)


def _print_rest(done: list[ImportedFile], found: FoundFiles, *, is_whole: bool) -> None:
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
    _say(f"{len(good)} of {counted(len(done) + len(found.missing), 'file')} imported, {counted(snapshots, 'snapshot')}")
    if not is_whole:
        _say("stopped; the same command goes on from here", err=True)


def _facts(source: str, done: list[ImportedFile], found: FoundFiles, *, is_whole: bool) -> dict[str, Any]:
    return {
        "source": source,
        "finished": is_whole,
        "files": [_file(one) for one in done],
        "missing": [spelled(path) for path in found.missing],
        "unreadable": [{"path": spelled(path), "reason": why} for path, why in found.unreadable],
        "passed_over": [{"path": spelled(path), "reason": why} for path, why in found.passed_over],
    }


def _file(one: ImportedFile) -> dict[str, Any]:
    return {
        "origin": one.origin,
        "state": one.state,
        "file": one.warc_file_id,
        "how": one.how,
        "records": one.records,
        "notes": one.notes,
        "fixity": one.fixity,
        "signature": _signature(one.signature),
        "damage": [damage._asdict() for damage in one.damage],
        "damaged": one.damaged,
        "indexed": as_object(one.indexed) if one.indexed is not None else None,
        "error": one.error,
    }


def _signature(one: Signature | None) -> dict[str, str | None] | None:
    if one is None:
        return None
    at = f"{one.at:%Y-%m-%dT%H:%M:%SZ}" if one.at is not None else None
    return {"worth": one.worth, "kind": one.kind, "by": one.by, "at": at, "why": one.why or None}


app_command = import_
