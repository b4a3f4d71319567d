"""`holdfast storage`: the files of an execution: sizes, verification, stable names, clean-up, smaller copies.

Nothing is changed without --apply, except by `cleanup`, which refuses unsafe removals instead.
"""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from holdfast.cli.formatting import counted, size
from holdfast.cli.job_selector import RUN
from holdfast.cli.parameters import Apply, AsJson, command_group
from holdfast.cli.printing import DRY_RUN, described, picked
from holdfast.cli.progress import ProgressLine
from holdfast.cli.resource import Done, Listing, OpenDatabase, Rows, command
from holdfast.db.engine import Database
from holdfast.errors import Conflict, NotFound, Unavailable
from holdfast.imports.importer import KEPT
from holdfast.jobs.administration.maintenance import DirectoryRun, find_run, note_storage, registered, runs_of_source
from holdfast.jobs.store import JobNotFound
from holdfast.metrics import WarcCheckFigures
from holdfast.operations import cleaning
from holdfast.operations.crawl_watchdog import is_tool_run, write_textfile
from holdfast.operations.stores import CleanTarget, clean, weigh
from holdfast.records import Operator, Spelling, encode, from_row, record
from holdfast.sources.queries import source_id_of
from holdfast.storage.disk import disk_error, write_whole
from holdfast.storage.roots import local_path
from holdfast.wiring import Runtime, open_runtime
from holdfast.wiring.archive import Archive
from holdfast.zimit import storage
from holdfast.zimit.output_directory import (
    RESUME_NAME,
    STATE_NAME,
    forget_end,
    hold_output,
    load_state,
    temp_dirs_in,
)
from holdfast.zimit.run import reset
from holdfast.zimit.warc_files import ToolWarcFile, consolidate, discover_warcs, temp_warcs


class OfRun(NamedTuple):
    """Options that name one run."""

    job_id: Annotated[int | None, typer.Option("--id", help="The job's number; its newest execution.")] = None
    execution: Annotated[int | None, typer.Option(help="Another of its executions, by number.")] = None

    def find(self, database: Database) -> DirectoryRun:
        """Return the run; exit code 2 if none is named, NotFound for an unknown one."""
        job_id, execution_id = self
        if job_id is None and execution_id is None:
            raise typer.BadParameter("name a job; see them with: holdfast job list", param_hint="--id")
        try:
            with database.read() as session:
                found = find_run(session, job_id=job_id, execution_id=execution_id)
        except JobNotFound as exc:
            raise NotFound(f"there is no job {job_id}; see them with: holdfast job list") from exc
        # Both were given and do not match: one of the two is a mistake.
        if job_id is not None and found.job.id != job_id:
            raise NotFound(f"execution {execution_id} is one of job {found.job.id}, not of job {job_id}")
        return found


def demand_tool(run: DirectoryRun) -> DirectoryRun:
    """Return the run if archive-tool made it; otherwise raise Conflict, which names the command for our own
    crawler.
    """
    if not is_tool_run(run):
        raise Conflict(
            f"execution {run.execution.id} was crawled by our own crawler, and this checks runs of archive-tool; check "
            f"its files with: holdfast verify-warcs --execution {run.execution.id}"
        )
    return run


def warcs_of(database: Database, home: Path, run: DirectoryRun) -> list[ToolWarcFile]:
    """Return every WARC file of a run: those in its directory, and other registered ones, even missing ones."""
    found = discover_warcs(Path(run.execution.output_dir))
    known = {file.identity for file in found}
    with database.read() as session:
        paths = [
            local_path(home, row.file_key)
            for row in registered(session, execution_id=run.execution.id)
            if row.state == "sealed"
        ]
    for path in paths:
        seen = path.stat() if path.is_file() else None
        file = ToolWarcFile(path, seen.st_size, seen.st_dev, seen.st_ino) if seen else ToolWarcFile(path, 0, 0, 0)
        # List a registered file that is missing, too: verifying exists to report it.
        if seen is None or file.identity not in known:
            found.append(file)
    return found


def run_facts(run: DirectoryRun) -> dict[str, Any]:
    return picked(run, f"{RUN} output_dir=execution.output_dir")


app_command = command_group("Files of executions on disk. Example: holdfast storage report --source hc")


def _idle_run(archive: Archive, which: OfRun) -> tuple[DirectoryRun, Path]:
    """Return a run and its directory; raise JobInUse if a crawl runs there, or is about to."""
    run = which.find(archive.database)
    # A running crawl would change these files during the command.
    return run, cleaning.demand_idle(archive.database, run).resolve()


Level = Annotated[int, typer.Option("--level", min=0, max=2, help="0 the file, 1 its gzip stream, 2 every record.")]


_RUNS = Listing(
    "runs", "job execution source warc_files warc_bytes output_bytes tmp_bytes tmp_non_warc_bytes error", "no such runs"
)


@record
class RunStorage:
    """The size of an execution's directory."""

    job: Operator[int]
    execution: Operator[int]
    source: Operator[str]
    output_dir: Operator[str]
    warc_files: Operator[int]
    warc_bytes: Operator[int]
    output_bytes: Operator[int]
    tmp_bytes: Operator[int]
    tmp_non_warc_bytes: Operator[int]
    missing: Operator[bool]
    error: Operator[str | None]
    """Why its size is unknown."""


@command(app_command, listing=_RUNS, example="storage report --id 3 --apply")
def report(
    archive: Archive,
    which: OfRun,
    source: Annotated[str | None, typer.Option(help="Every job of this source.", metavar="CODE")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Most jobs to look at.")] = 100,
    store: Annotated[bool, typer.Option("--apply", help="Store the figures with the executions.")] = False,
) -> Rows:
    """Measure the directories of jobs: WARC files, everything, temporary ones; hard links of a file count once."""
    if which == OfRun():
        with archive.database.read() as session:
            source_id_of(session, source)
            runs = runs_of_source(session, source=source, limit=limit)
    else:
        runs = [which.find(archive.database)]
    rows = []
    for run in runs:
        weight, trouble = _weigh(Path(run.execution.output_dir))
        rows.append(from_row(RunStorage, weight, **run_facts(run), missing=trouble == "missing", error=trouble))
        # Do not store figures of a disk that does not respond.
        if store and trouble is None:
            with archive.database.write() as session:
                note_storage(session, archive.clock, run.execution.id, encode(weight, spelling=Spelling.SNAKE))
    return Rows(rows, {"stored": store})


def _weigh(folder: Path) -> tuple[storage.StorageStatistics, str | None]:
    try:
        return storage.storage_statistics(folder), None if folder.is_dir() else "missing"
    except OSError as exc:
        return storage.NO_WEIGHT, exc.strerror


def _facts(run: DirectoryRun, found: Any) -> dict[str, Any]:
    return {**run_facts(run), **encode(found, spelling=Spelling.COMMAND)}


@command(app_command, "verify", opened=open_runtime, example="storage verify --id 3 --level 2 --quarantine --apply")
def verify_files(
    runtime: Runtime,
    database: OpenDatabase,
    which: OfRun,
    level: Level = 1,
    report_file: Annotated[Path | None, typer.Option("--report", help="Write the JSON report here.")] = None,
    metrics_file: Annotated[Path | None, typer.Option(help="Write figures for an exporter.")] = None,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Move damaged files aside and run the job again.")
    ] = False,
    acts: Apply = False,
    json: AsJson = False,
) -> Done:
    """Verify the WARC files of a job; exit 1 if one is damaged. A disk that does not respond is not damage."""
    run = which.find(database)
    if quarantine:
        # Reject at once, before hours of reading.
        cleaning.check_quarantine(database, run)
    line = ProgressLine(runtime.clock, quiet=json)
    files = warcs_of(database, runtime.settings.home, run)
    verdicts = [storage.verify_warc(file.path, level) for file in _one_by_one(files, line)]
    line.clear()
    found = _facts(run, storage.warc_report(verdicts, level))
    bad = found["warcs_failed"]
    if quarantine and acts and bad:
        moved, runs_again = cleaning.move_damaged(runtime, database, run, verdicts)
        found |= {"quarantined": [str(path) for path in moved], "runs_again": runs_again}
    if report_file is not None:
        _write(report_file, found)
    if metrics_file is not None:
        totals = {"ok": found["warcs_ok"], "failed": bad}
        now = runtime.clock.now().timestamp()
        write_textfile(metrics_file, WarcCheckFigures(totals, found["errors"], written_at=now))
    lines = [f"{one['error_kind']}: {one['path']}: {one['error']}" for one in found["results"] if not one["ok"]]
    lines += [f"moved to {path}" for path in found.get("quarantined", ())]
    lines.append(f"{found['warcs_ok']} of {found['warcs_total']} WARC files are whole (level {level})")
    lines += [DRY_RUN] if quarantine and bad and not acts else []
    return Done(found, lines, not bad)


def _one_by_one(files: Sequence[ToolWarcFile], line: ProgressLine) -> Iterator[ToolWarcFile]:
    for number, file in enumerate(files, 1):
        line.say(f"file {number} of {len(files)}: {file.path.name}, {size(file.size)}")
        yield file


def _write(path: Path, found: dict[str, Any]) -> None:
    try:
        write_whole(path, (jsonlib.dumps(found, indent=2) + "\n").encode())
    except OSError as exc:
        raise disk_error(exc, f"cannot write {path}: {exc.strerror}") from exc


@command(app_command, "verify-manifest", example="storage verify-manifest --id 3 --level hash")
def verify_listed(
    archive: Archive,
    which: OfRun,
    level: Annotated[storage.ManifestLevel, typer.Option(help="How closely.")] = storage.ManifestLevel.SIZE,
) -> Done:
    """Compare the stable WARC files of a job with their manifest; exit 1 if one is missing or differs."""
    run = demand_tool(which.find(archive.database))
    found = storage.verify_manifest(Path(run.execution.output_dir), level)
    return Done(_facts(run, found), found.describe(), found.valid)


@command(app_command, example="storage integrity --id 3")
def integrity(archive: Archive, which: OfRun, level: Level = 1) -> Done:
    """Check a job's storage as a whole: pass, incomplete or fail, with a code for each issue; exit 1 if it fails."""
    run = demand_tool(which.find(archive.database))
    found = storage.integrity_report(Path(run.execution.output_dir), level=level)
    lines = [f"{'fail' if issue.fails else 'note'}  {issue.code}: {issue.detail}" for issue in found.issues]
    lines.append(f"{found.warc_files} WARC files, {size(found.warc_bytes)}: {found.verdict.value}")
    return Done(_facts(run, found), lines, found.verdict is not storage.StorageVerdict.FAIL)


@command(app_command, "consolidate", example="storage consolidate --id 3 --apply")
def give_names(archive: Archive, which: OfRun, apply: Apply = False) -> Done:
    """Hard-link the temporary WARC files of a job to stable names, and list them in the manifest."""
    run, folder = _idle_run(archive, which)
    files = temp_warcs(folder)
    with hold_output(folder) if apply else nullcontext():
        paths, created = consolidate(folder, files, archive.clock, allow_copy=apply, dry_run=not apply)
    return Done({**run_facts(run), "files": len(files), "created": created, "reused": len(paths) - created})


@command(app_command, opened=open_runtime, example="storage cleanup --id 3 --mode temp-nonwarc")
def cleanup(
    runtime: Runtime,
    database: OpenDatabase,
    which: OfRun,
    mode: Annotated[
        cleaning.CleanMode, typer.Option(help="temp-nonwarc keeps every WARC file.")
    ] = cleaning.CleanMode.TEMP,
    force: Annotated[
        bool, typer.Option("--force", help="Even if archived pages are served, or files are lost.")
    ] = False,
) -> Done:
    """Remove the temporary directories and state of a job that is indexed, or given up as index_failed.

    Registered files are never removed. Without --force, mode temp is refused if archived pages are served
    (HOLDFAST_REPLAY_ORIGIN is set), or if it would remove the only copy of a WARC file.

    Acts at once; cleanup-old-jobs shows first what it would remove.
    """
    settings = runtime.settings
    run = which.find(database)
    replays = settings.replay.origin is not None and not force
    folder = cleaning.check_cleanup(database, settings.home, run, mode, replays=replays)
    loses = mode is cleaning.CleanMode.TEMP and not force
    lost = storage.lost_by_cleaning(folder, [folder / KEPT]) if loses else []
    if lost:
        raise cleaning.CleanupRefused(
            f"{len(lost)} WARC files of job {run.job.id} exist nowhere else ({lost[0].name}); keep them with --mode "
            "temp-nonwarc, or insist with --force"
        )
    with hold_output(folder):
        temp_dirs, had_state, kept = cleaning.clean_up(runtime, database, run, mode, folder)
    counts = {"temp_dirs": temp_dirs, "state_removed": had_state, "kept": kept}
    facts = {**run_facts(run), "mode": mode.value, **counts}
    return Done(facts, described(facts) + ("\nnothing to clean up" if not (temp_dirs or had_state) else ""))


@command(app_command, opened=open_runtime, example="cleanup-old-jobs --apply")
def sweep(runtime: Runtime, database: OpenDatabase, apply: Apply = False) -> Done:
    """Clean up temporary files of old zimit crawls while their disk is over 80% full; WARC files always stay.

    Applies `cleanup --mode temp-nonwarc` to indexed crawls older than 14 days (HOLDFAST_STORAGE_CLEAN_DAYS), except
    each source's two newest, oldest first, until there is enough space. Exit 1 if a directory could not be cleaned.
    """
    cases = cleaning.Sweep(runtime, database).run(apply=apply)
    rows, lines, freed = [], [], sum(case.freed_bytes for case in cases)
    for case in cases:
        percent = case.used_percent and round(case.used_percent, 1)
        rows.append({**run_facts(case.run), "used_percent": percent, **picked(case, "freed_bytes refusal")})
        what = case.refusal or size(case.freed_bytes)
        lines.append(f"job {case.run.job.id}, execution {case.run.execution.id}: {what}")
    lines.append(f"{len(rows)} directories, {size(freed)} {'freed' if apply else 'would be freed'}")
    return Done({"freed_bytes": freed, "runs": rows}, lines, not any(case.refusal for case in cases))


@command(app_command, "compact", example="storage compact --id 3 --apply")
def make_smaller(archive: Archive, which: OfRun, apply: Apply = False) -> Done:
    """Write smaller copies of WARC files, without video and audio, to warcs_compacted/; originals are not changed."""
    run, folder = _idle_run(archive, which)
    files = discover_warcs(folder)
    line = ProgressLine(archive.clock)
    shown = _one_by_one(files, line)
    made = storage.compact(folder, shown, archive.clock, dry_run=not apply)
    line.clear()
    lines = [
        f"{one.file}: {counted(one.dropped, 'record')} less, {size(one.before_bytes)} to {size(one.after_bytes)}"
        for one in made
    ]
    lines.append(f"{len(made)} of {len(files)} WARC files have records to leave out")
    return Done({**run_facts(run), "files": made}, lines)


@command(app_command, "reset", example="storage reset --id 3 --apply")
def forget_state(archive: Archive, which: OfRun, apply: Apply = False) -> Done:
    """Clear where a crawl stopped, so that its next run starts fresh; all WARC files get stable names first."""
    run, folder = _idle_run(archive, which)
    facts = {
        **run_facts(run),
        "temp_dirs": len(temp_dirs_in(folder)),
        "state": (folder / STATE_NAME).is_file(),
        "saved_queue": (folder / RESUME_NAME).is_file(),
        "warcs": len(discover_warcs(folder)),
    }
    if apply:
        try:
            with hold_output(folder):
                reset(load_state(folder, 1), archive.clock)
                forget_end(folder)
        except OSError as exc:
            raise Unavailable(f"cannot clear {folder}: {exc.strerror}; fix that and try again") from exc
    return Done(facts)


@command(app_command, example="storage stores")
def stores(archive: Archive) -> Done:
    """Show the size of the database, the WARC files, the search index and the caches."""
    report = weigh(archive.database, archive.home)
    lines = [f"{size(one.bytes):>12}  {one.name.value}{'' if one.whole else ' and more'}" for one in report.stores]
    return Done(report, [*lines, f"{size(report.free_bytes):>12}  free of {size(report.disk_bytes)}"])


@command(app_command, opened=open_runtime, example="storage free --apply")
def free(
    runtime: Runtime,
    database: OpenDatabase,
    target: Annotated[list[CleanTarget] | None, typer.Option(help="Only this; all of them by default.")] = None,
    apply: Apply = False,
) -> Done:
    """Remove cached packages and leftovers of zimit; captures are never removed."""
    found = clean(runtime, database, target or list(CleanTarget), apply=apply)
    lines = [f"{size(one.bytes):>12}  {one.what}" + (f": {one.refusal}" if one.refusal else "") for one in found.items]
    return Done(found, lines)
