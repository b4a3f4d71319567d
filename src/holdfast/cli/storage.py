"""`holdfast storage`: what an execution keeps on disk: weighed, verified, named for good, cleaned up, made smaller.

Nothing is changed without --apply; `cleanup` is the exception, and has refusals instead.
"""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.archive_tool.output_directory import STATE_NAME, forget_end, hold_output, load_state, write_whole
from holdfast.archive_tool.run import RESUME_NAME, reset
from holdfast.archive_tool.storage import (
    NO_WEIGHT,
    ManifestLevel,
    StorageVerdict,
    compact,
    integrity_report,
    measure,
    storage_statistics,
    verify_manifest,
    verify_warc,
    warc_report,
)
from holdfast.archive_tool.warc_files import ToolWarcFile, all_temp_dirs, consolidate, discover_warcs, warcs_in
from holdfast.cli.formatting import counted, fields, size, table
from holdfast.cli.parameters import Apply, AsJson, Home
from holdfast.cli.progress import ProgressLine
from holdfast.db.engine import Database
from holdfast.errors import Conflict, NotFound, Unavailable
from holdfast.jobs.administration.maintenance import DirectoryRun, find_run, note_storage, registered, runs_of_source
from holdfast.jobs.store import JobNotFound
from holdfast.metrics import WarcCheckFigures
from holdfast.operations.cleaning import (
    CleanMode,
    CleanupRefused,
    Sweep,
    check_cleanup,
    check_quarantine,
    clean_up,
    demand_idle,
    move_damaged,
    would_lose,
)
from holdfast.operations.crawl_watchdog import is_tool_run, write_textfile
from holdfast.operations.stores import CleanTarget, clean, weigh
from holdfast.sources.queries import find_source
from holdfast.warc.outfile import disk_error
from holdfast.wiring import open_runtime
from holdfast.wiring.archive import Archive, open_archive

JobId = Annotated[int | None, typer.Option("--id", help="The job's number; its newest execution is meant.")]
ExecutionNumber = Annotated[int | None, typer.Option("--execution", help="Another of its executions, by number.")]


def the_run(database: Database, job_id: int | None, execution_id: int | None) -> DirectoryRun:
    """Return the run that is meant; exit code 2 if none is named, NotFound if it is not there."""
    if job_id is None and execution_id is None:
        raise typer.BadParameter("name a job; see them with: holdfast job list", param_hint="--id")
    try:
        with database.read() as session:
            found = find_run(session, job_id=job_id, execution_id=execution_id)
    except JobNotFound as exc:
        raise NotFound(f"there is no job {job_id}; see them with: holdfast job list") from exc
    # Both were named and do not belong together: one of the two is a mistake.
    if job_id is not None and found.job.id != job_id:
        raise NotFound(f"execution {execution_id} is one of job {found.job.id}, not of job {job_id}")
    return found


def demand_tool(run: DirectoryRun) -> DirectoryRun:
    """Return the run if archive-tool made it; Conflict names what our own crawler's files are checked with."""
    if not is_tool_run(run):
        raise Conflict(
            f"execution {run.execution.id} is of our own crawler, and this looks at what archive-tool leaves; check "
            f"its files with: holdfast verify-warcs --execution {run.execution.id}"
        )
    return run


def warcs_of(database: Database, home: Path, run: DirectoryRun) -> list[ToolWarcFile]:
    """Return every WARC file of a run: what a tool left in its directory, and what else is registered, there or not."""
    found = list(discover_warcs(Path(run.execution.output_dir)).files)
    known = {file.identity for file in found}
    with database.read() as session:
        paths = [
            home.resolve() / row.path
            for row in registered(session, execution_id=run.execution.id)
            if row.state == "sealed"
        ]
    for path in paths:
        seen = path.stat() if path.is_file() else None
        file = ToolWarcFile(path, seen.st_size, seen.st_dev, seen.st_ino) if seen else ToolWarcFile(path, 0, 0, 0)
        # A registered file that is missing is listed, too: to be told of that is what verifying is for.
        if seen is None or file.identity not in known:
            found.append(file)
    return found


def run_facts(run: DirectoryRun) -> dict[str, Any]:
    """Return which run a report is about."""
    return {
        "job": run.job.id,
        "execution": run.execution.id,
        "source": run.source.code,
        "output_dir": run.execution.output_dir,
    }


def tell(facts: Mapping[str, Any], *, json: bool) -> None:
    """Print facts: one object, or a line each."""
    if json:
        print(jsonlib.dumps(facts, default=str))
    else:
        print(fields((name.replace("_", " "), value) for name, value in facts.items()))


def dry_run(apply: bool, *, json: bool) -> None:
    """Say that nothing was changed, unless it was, or unless a program listens."""
    if not apply and not json:
        print("dry run: nothing was changed; do it with --apply")


app_command = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="What executions keep on disk. Example: holdfast storage report --source hc",
)


@contextmanager
def _idle_run(
    home: Path | None, job_id: int | None, execution: int | None
) -> Iterator[tuple[Archive, DirectoryRun, Path]]:
    """Open the archive, the run that is meant and its directory; JobInUse if a run is there, or is about to be."""
    with open_archive(config.load(home=home)) as archive:
        run = the_run(archive.database, job_id, execution)
        # A crawl that runs would change these files under the command.
        yield archive, run, demand_idle(archive.database, run).resolve()


Level = Annotated[int, typer.Option("--level", min=0, max=2, help="0 the file, 1 its gzip stream, 2 every record.")]


@app_command.command()
def report(
    job_id: JobId = None,
    execution: ExecutionNumber = None,
    source: Annotated[str | None, typer.Option("--source", help="Every job of this source.", metavar="CODE")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Most jobs to look at.")] = 100,
    apply: Annotated[bool, typer.Option("--apply", help="Keep the figures with the executions.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Weigh the directories of jobs: WARC files, everything, temporary directories; a file with two names counts once.

    Example: holdfast storage report --id 3 --apply
    """
    with open_archive(config.load(home=home)) as archive:
        if job_id is None and execution is None:
            with archive.database.read() as session:
                if source is not None:
                    find_source(session, source)
                runs = runs_of_source(session, source=source, limit=limit)
        else:
            runs = [the_run(archive.database, job_id, execution)]
        rows = []
        for run in runs:
            weight, trouble = _weigh(Path(run.execution.output_dir))
            rows.append({**run_facts(run), **weight, "missing": trouble == "missing", "error": trouble})
            # A disk that does not answer weighs nothing: such a figure is not kept.
            if apply and trouble is None:
                with archive.database.write() as session:
                    note_storage(session, archive.clock, run.execution.id, weight)
    if json:
        print(jsonlib.dumps({"runs": rows, "stored": apply}))
        return
    print(
        table(
            ("job", "execution", "source", "warcs", "warc bytes", "all", "temporary", "not warc", ""),
            [
                (
                    row["job"],
                    row["execution"],
                    row["source"],
                    row["warc_files"],
                    size(row["warc_bytes"]),
                    size(row["output_bytes"]),
                    size(row["tmp_bytes"]),
                    size(row["tmp_non_warc_bytes"]),
                    row["error"] or "",
                )
                for row in rows
            ],
        )
    )


def _weigh(folder: Path) -> tuple[dict[str, int], str | None]:
    """Return what a directory weighs, and why nothing can be said if that is so."""
    try:
        found = storage_statistics(folder)
        return asdict(found), None if folder.is_dir() else "missing"
    except OSError as exc:
        return asdict(NO_WEIGHT), exc.strerror


@app_command.command("verify")
def verify_files(
    job_id: JobId = None,
    execution: ExecutionNumber = None,
    level: Level = 1,
    report_file: Annotated[Path | None, typer.Option("--report", help="Write the JSON report here.")] = None,
    metrics_file: Annotated[Path | None, typer.Option("--metrics-file", help="Write figures for an exporter.")] = None,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Move damaged files aside and run the job again.")
    ] = False,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Verify the WARC files of a job; exit 1 if one is damaged. A disk that does not answer is told from damage.

    Example: holdfast storage verify --id 3 --level 2 --quarantine --apply
    """
    settings = config.load(home=home)
    with open_runtime(settings) as runtime, closing(Database(settings.database)) as database:
        run = the_run(database, job_id, execution)
        if quarantine:
            # Before hours of reading: what is refused is refused at once.
            check_quarantine(database, run)
        files = warcs_of(database, settings.home, run)
        line = ProgressLine(runtime.clock, quiet=json)
        verdicts = [verify_warc(file.path, level) for file in _one_by_one(files, line)]
        line.clear()
        found: dict[str, Any] = {**run_facts(run), **warc_report(verdicts, level)}
        bad = found["warcs_failed"]
        if quarantine and apply and bad:
            done = move_damaged(runtime, database, run, verdicts)
            found |= {"quarantined": [str(path) for path in done.moved], "runs_again": done.runs_again}
        if report_file is not None:
            _write(report_file, found)
        if metrics_file is not None:
            totals = {"ok": found["warcs_ok"], "failed": bad}
            now = runtime.clock.now().timestamp()
            write_textfile(metrics_file, WarcCheckFigures(totals, found["errors"], written_at=now))
    if json:
        print(jsonlib.dumps(found))
    else:
        for one in found["results"]:
            if not one["ok"]:
                print(f"{one['error_kind']}: {one['path']}: {one['error']}")
        for path in found.get("quarantined", ()):
            print(f"moved to {path}")
        print(f"{found['warcs_ok']} of {found['warcs_total']} WARC files are whole (level {level})")
        if quarantine and bad:
            dry_run(apply, json=json)
    if bad:
        raise typer.Exit(1)


def _one_by_one(files: Sequence[ToolWarcFile], line: ProgressLine) -> Iterator[ToolWarcFile]:
    for number, file in enumerate(files, 1):
        line.say(f"file {number} of {len(files)}: {file.path.name}, {size(file.size)}")
        yield file


def _write(path: Path, found: dict[str, Any]) -> None:
    try:
        write_whole(path, (jsonlib.dumps(found, indent=2) + "\n").encode())
    except OSError as exc:
        raise disk_error(exc, f"cannot write {path}: {exc.strerror}") from exc


@app_command.command("verify-manifest")
def verify_listed(
    job_id: JobId = None,
    execution: ExecutionNumber = None,
    level: Annotated[ManifestLevel, typer.Option("--level", help="How closely.")] = ManifestLevel.SIZE,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Compare the stable WARC files of a job with their manifest; exit 1 if one is missing or differs.

    Example: holdfast storage verify-manifest --id 3 --level hash
    """
    with open_archive(config.load(home=home)) as archive:
        run = demand_tool(the_run(archive.database, job_id, execution))
    found = verify_manifest(Path(run.execution.output_dir), level)
    print(jsonlib.dumps({**run_facts(run), **found.as_json()}) if json else found.describe())
    if not found.valid:
        raise typer.Exit(1)


@app_command.command()
def integrity(
    job_id: JobId = None, execution: ExecutionNumber = None, level: Level = 1, json: AsJson = False, home: Home = None
) -> None:
    """Judge a job's storage as a whole: pass, incomplete or fail, with a code for each issue; exit 1 if it fails.

    Example: holdfast storage integrity --id 3
    """
    with open_archive(config.load(home=home)) as archive:
        run = demand_tool(the_run(archive.database, job_id, execution))
    found = {**run_facts(run), **integrity_report(Path(run.execution.output_dir), level=level)}
    if json:
        print(jsonlib.dumps(found))
    else:
        for issue in found["issues"]:
            print(f"{'fail' if issue['fails'] else 'note'}  {issue['code']}: {issue['detail']}")
        print(f"{found['warc_files']} WARC files, {size(found['warc_bytes'])}: {found['verdict']}")
    if found["verdict"] == StorageVerdict.FAIL:
        raise typer.Exit(1)


@app_command.command("consolidate")
def give_names(
    job_id: JobId = None,
    execution: ExecutionNumber = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Give the temporary WARC files of a job their stable names, by hard link, and list them in the manifest.

    Example: holdfast storage consolidate --id 3 --apply
    """
    with _idle_run(home, job_id, execution) as (archive, run, folder):
        files = warcs_in(all_temp_dirs(folder))
        if apply:
            with hold_output(folder):
                done = consolidate(folder, files, archive.clock, allow_copy=True)
        else:
            done = consolidate(folder, files, archive.clock, dry_run=True)
    facts = {**run_facts(run), "files": len(files), "created": done.created, "reused": done.reused, "applied": apply}
    tell(facts, json=json)
    dry_run(apply, json=json)


@app_command.command()
def cleanup(
    job_id: JobId = None,
    execution: ExecutionNumber = None,
    mode: Annotated[CleanMode, typer.Option("--mode", help="temp-nonwarc keeps every WARC file.")] = CleanMode.TEMP,
    force: Annotated[
        bool, typer.Option("--force", help="Although archived pages are served, or files are lost.")
    ] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Remove the temporary directories and the state of a job that is indexed, or given up as index_failed.

    Files that are registered are never removed. Mode temp is refused, without --force, where archived pages are served
    (HOLDFAST_REPLAY_ORIGIN is set), and where it would remove WARC files whose bytes stand nowhere else.

    Acts at once; cleanup-old-jobs shows first what it would remove.
    Example: holdfast storage cleanup --id 3 --mode temp-nonwarc
    """
    settings = config.load(home=home)
    with open_runtime(settings) as runtime, closing(Database(settings.database)) as database:
        run = the_run(database, job_id, execution)
        replays = settings.replay.origin is not None and not force
        folder = check_cleanup(database, settings.home, run, mode, replays=replays)
        _demand_no_loss(run, folder, mode, force=force)
        with hold_output(folder):
            cleaned = clean_up(runtime, database, run, mode, folder)
    facts = {
        **run_facts(run),
        "mode": mode.value,
        "temp_dirs": cleaned.temp_dirs,
        "state_removed": cleaned.state_removed,
        "kept": len(cleaned.moved),
    }
    tell(facts, json=json)
    if cleaned.is_nothing and not json:
        print("nothing to clean up")


def _demand_no_loss(run: DirectoryRun, folder: Path, mode: CleanMode, *, force: bool) -> None:
    lost = would_lose(folder) if mode is CleanMode.TEMP and not force else []
    if lost:
        raise CleanupRefused(
            f"{len(lost)} WARC files of job {run.job.id} stand nowhere else ({lost[0].name}); keep them with --mode "
            "temp-nonwarc, or insist with --force"
        )


@app_command.command()
def sweep(apply: Apply = False, json: AsJson = False, home: Home = None) -> None:
    """Clean up what old crawls of zimit left temporarily, while their disk is over 80% full; WARC files always stay.

    Only what is indexed, older than 14 days and not one of its source's two newest (HOLDFAST_STORAGE_CLEAN_*), as
    `cleanup --mode temp-nonwarc` does, the oldest first, until there is room. Exit 1 if a directory could not be.

    Example: holdfast cleanup-old-jobs --apply
    """
    settings = config.load(home=home)
    with open_runtime(settings) as runtime, closing(Database(settings.database)) as database:
        cases = Sweep(runtime, database).run(apply=apply)
    rows = [
        {
            **run_facts(case.run),
            "used_percent": case.used_percent and round(case.used_percent, 1),
            "freed_bytes": case.freed_bytes,
            "refusal": case.refusal,
        }
        for case in cases
    ]
    freed = sum(case.freed_bytes for case in cases)
    if json:
        print(jsonlib.dumps({"applied": apply, "freed_bytes": freed, "runs": rows}))
    else:
        for row in rows:
            print(f"job {row['job']}, execution {row['execution']}: {row['refusal'] or size(row['freed_bytes'])}")
        print(f"{len(rows)} directories, {size(freed)} {'freed' if apply else 'would be freed'}")
        dry_run(apply, json=json)
    if any(case.refusal for case in cases):
        raise typer.Exit(1)


@app_command.command("compact")
def make_smaller(
    job_id: JobId = None,
    execution: ExecutionNumber = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Stage smaller copies of WARC files, without video and audio, below warcs_compacted/; originals stay as they are.

    Example: holdfast storage compact --id 3 --apply
    """
    with _idle_run(home, job_id, execution) as (archive, run, folder):
        files = discover_warcs(folder).files
        line = ProgressLine(archive.clock, quiet=json)
        shown = _one_by_one(files, line)
        made: list[dict[str, Any]]
        if apply:
            made = [
                {
                    "file": str(one.source),
                    "staged": str(one.staged),
                    "before_bytes": one.before_bytes,
                    "after_bytes": one.after_bytes,
                    "dropped": one.dropped,
                }
                for one in compact(folder, shown, archive.clock)
            ]
        else:
            made = [
                {
                    "file": str(one.source),
                    "staged": None,
                    "before_bytes": one.before_bytes,
                    "after_bytes": one.before_bytes - one.dropped_bytes,
                    "dropped": one.dropped,
                }
                for one in measure(shown)
            ]
        line.clear()
    if json:
        print(jsonlib.dumps({**run_facts(run), "applied": apply, "files": made}))
        return
    for one in made:
        print(
            f"{one['file']}: {counted(one['dropped'], 'record')} less, "
            f"{size(one['before_bytes'])} to {size(one['after_bytes'])}"
        )
    print(f"{len(made)} of {len(files)} WARC files have something to leave out")
    dry_run(apply, json=json)


@app_command.command("reset")
def forget_state(
    job_id: JobId = None,
    execution: ExecutionNumber = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Forget where a crawl stopped, so that its next run begins anew; every WARC file keeps a stable name first.

    Example: holdfast storage reset --id 3 --apply
    """
    with _idle_run(home, job_id, execution) as (archive, run, folder):
        facts = {
            **run_facts(run),
            "temp_dirs": len(all_temp_dirs(folder)),
            "state": (folder / STATE_NAME).is_file(),
            "saved_queue": (folder / RESUME_NAME).is_file(),
            "warcs": len(discover_warcs(folder).files),
            "applied": apply,
        }
        if apply:
            try:
                with hold_output(folder):
                    reset(load_state(folder, 1), archive.clock)
                    forget_end(folder)
            except OSError as exc:
                raise Unavailable(f"cannot clear {folder}: {exc.strerror}; mend that, and do it again") from exc
    tell(facts, json=json)
    dry_run(apply, json=json)


@app_command.command()
def stores(json: AsJson = False, home: Home = None) -> None:
    """Weigh what takes room: database, WARC files, search index, caches.

    Example: holdfast storage stores
    """
    with open_archive(config.load(home=home)) as archive:
        report = weigh(archive.database, archive.home)
    if json:
        tables = [table._asdict() for table in report.tables]
        print(jsonlib.dumps({**asdict(report), "tables": tables}, default=str))
        return
    for store in report.stores:
        more = "" if store.is_whole else " and more"
        print(f"{size(store.bytes):>12}  {store.name.value}{more}")
    print(f"{size(report.free_bytes):>12}  free of {size(report.disk_bytes)}")


@app_command.command()
def free(
    target: Annotated[list[CleanTarget] | None, typer.Option(help="Only this; all of them if left out.")] = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Remove what can be made anew (cached packages) and what zimit left behind; no capture goes.

    Example: holdfast storage free --apply
    """
    settings = config.load(home=home)
    with open_runtime(settings) as runtime, closing(Database(settings.database)) as database:
        found = clean(runtime, database, target or list(CleanTarget), apply=apply)
    if json:
        print(jsonlib.dumps({"applied": apply, "items": [asdict(one) for one in found]}))
        return
    for one in found:
        print(f"{size(one.bytes):>12}  {one.what}" + (f": {one.refusal}" if one.refusal else ""))
    dry_run(apply, json=json)
