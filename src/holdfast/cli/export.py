"""`holdfast export`: snapshots, changes, an index or a whole crawl as a file to take away. Files appear when whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, BinaryIO, TypeVar

import typer

from holdfast import config
from holdfast.changes.listing import span
from holdfast.cli.formatting import counted
from holdfast.cli.parameters import Home, OnlyPublic, command_group
from holdfast.cli.progress import ProgressLine
from holdfast.coordination.steps import FileStep
from holdfast.editions.edition_view import find_edition
from holdfast.errors import READ_ONLY, Invalid, Unavailable
from holdfast.exports.package import export_cdxj
from holdfast.exports.package_cache import CachedPackage, PackageCache
from holdfast.exports.queries import ExportReach
from holdfast.exports.queries import execution as find_execution
from holdfast.exports.tables import (
    CHANGE_COLUMNS,
    SNAPSHOT_COLUMNS,
    ExportExtent,
    Format,
    change_rows,
    snapshot_rows,
    write_rows,
)
from holdfast.sources.queries import find_source
from holdfast.warc.outfile import sync_directory
from holdfast.wiring.archive import Archive, open_archive
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, seen_by

T = TypeVar("T")

app_command = command_group("Take things out of the archive. Example: holdfast export wacz 3 -o site.wacz")

Out = Annotated[Path | None, typer.Option("-o", "--output", help="File to write; standard output if left out.")]
Form = Annotated[Format, typer.Option("--format", help="jsonl (ndjson is the same) or csv.")]
SourceCode = Annotated[str | None, typer.Option("--source", help="Only this source.", metavar="CODE")]
AfterId = Annotated[int, typer.Option("--after-id", min=-1, help="Only rows behind this id.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Rows at most; all if left out.")]
Since = Annotated[datetime | None, typer.Option("--from", formats=["%Y-%m-%d"], help="First day, UTC.")]
Until = Annotated[datetime | None, typer.Option("--to", formats=["%Y-%m-%d"], help="Last day, UTC.")]


@app_command.command()
def snapshots(
    form: Form = Format.JSONL,
    source: SourceCode = None,
    after_id: AfterId = -1,
    limit: Limit = None,
    since: Since = None,
    until: Until = None,
    public: OnlyPublic = False,
    output: Out = None,
    home: Home = None,
) -> None:
    """Write captures of pages, one a line, by id.

    Example: holdfast export snapshots --format csv -o snapshots.csv
    """
    with open_archive(config.load(home=home)) as archive, seen_by(PUBLIC if public else EVERYTHING):
        extent = ExportExtent(_reach(archive, source, since, until), after_id, limit)
        rows = _Tally(snapshot_rows(archive.database, extent, site=_site(archive)))
        _write(write_rows(rows, SNAPSHOT_COLUMNS, form), output)
    _tell(output, rows.count)


@app_command.command()
def changes(
    form: Form = Format.JSONL,
    source: SourceCode = None,
    after_id: AfterId = -1,
    limit: Limit = None,
    since: Since = None,
    until: Until = None,
    public: OnlyPublic = False,
    output: Out = None,
    home: Home = None,
) -> None:
    """Write changes of pages, one a line, by id.

    Example: holdfast export changes --source example-org -o changes.jsonl
    """
    with open_archive(config.load(home=home)) as archive, seen_by(PUBLIC if public else EVERYTHING):
        extent = ExportExtent(_reach(archive, source, since, until), after_id, limit)
        rows = _Tally(change_rows(archive.database, extent, site=_site(archive)))
        _write(write_rows(rows, CHANGE_COLUMNS, form), output)
    _tell(output, rows.count)


@app_command.command()
def cdxj(
    execution: Annotated[int | None, typer.Argument(help="A crawl's number.")] = None,
    source: SourceCode = None,
    output: Out = None,
    home: Home = None,
) -> None:
    """Write the CDXJ index of a crawl or of a source: captures of any type, sorted by the bytes of their lines.

    Example: holdfast export cdxj 3 -o index.cdxj
    """
    if (execution is None) == (source is None):
        raise typer.BadParameter("name either a crawl's number or --source")
    with open_archive(config.load(home=home)) as archive:
        with archive.database.read() as session:
            source_id = None if source is None else find_source(session, source).id
            if execution is not None:
                find_execution(session, execution)
        with _scratch(archive) as scratch:
            lines = _Tally(
                export_cdxj(
                    archive.database, scratch, execution_id=execution, source_id=source_id, disk=archive.settings.disk
                )
            )
            _write(lines, output)
    _tell(output, lines.count)


@app_command.command()
def wacz(
    execution: Annotated[int, typer.Argument(help="A crawl's number.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; SOURCE-N.wacz if not.")] = None,
    home: Home = None,
) -> None:
    """Write a crawl as a WACZ 1.1.1 package, which ReplayWeb.page and other tools replay.

    Example: holdfast export wacz 3 -o site.wacz
    """
    with open_archive(config.load(home=home)) as archive, _packages(archive) as packages:
        done = _write_package(packages, packages.package(execution), output)
    print(done)


@app_command.command()
def edition(
    code: Annotated[str, typer.Argument(help="The source's code.", metavar="CODE")],
    year: Annotated[int, typer.Argument(min=1, max=9999, help="The edition's year.", metavar="YEAR")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; CODE-YEAR.wacz if not.")] = None,
    home: Home = None,
) -> None:
    """Write an annual edition as one WACZ 1.1.1 package, all its shards in it.

    Example: holdfast export edition hc 2026
    """
    with open_archive(config.load(home=home)) as archive:
        with archive.database.read() as session:
            found = find_edition(session, find_source(session, code), year)
        with _packages(archive) as packages:
            done = _write_package(packages, packages.edition(found.id), output)
    print(done)


def _write_package(packages: PackageCache, package: CachedPackage, output: Path | None) -> str:
    """Write a package, and return a sentence that describes it."""
    target, size = output or Path(package.name), package.archive.size

    def pieces() -> Iterator[bytes]:
        done = 0
        for piece in package.read():
            yield piece
            done += len(piece)
            packages.on_step(FileStep(1, 1, target.name, "writing", done, size))

    _write(pieces(), target)
    return f"{target}: {size:,} bytes"


class _Tally(Iterable[T]):
    """Passes rows on and counts them."""

    def __init__(self, rows: Iterable[T]) -> None:
        self._rows, self.count = rows, 0

    def __iter__(self) -> Iterator[T]:
        for row in self._rows:
            self.count += 1
            yield row


def _tell(output: Path | None, rows: int) -> None:
    """Say what was written to a file. On standard error: standard output is for the rows alone."""
    if output is not None:
        print(f"{output}: {counted(rows, 'row')}, {output.stat().st_size:,} bytes", file=sys.stderr)


@contextmanager
def _scratch(archive: Archive) -> Iterator[Path]:
    """Give a folder for what is kept between two exports; where the archive is read-only, one for this export alone."""
    folder = archive.home / "cache"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        # An archive on a read-only disc can be exported all the same; a full disk is an error.
        if exc.errno not in READ_ONLY:
            raise
    if os.access(folder, os.W_OK):
        yield folder
    else:
        with TemporaryDirectory(prefix="holdfast-export-") as own:
            yield Path(own)


@contextmanager
def _packages(archive: Archive) -> Iterator[PackageCache]:
    with _scratch(archive) as folder:
        settings = archive.settings
        most_bytes = settings.exports.cache_bytes
        cache = PackageCache(archive.database, archive.home, most_bytes=most_bytes, folder=folder, disk=settings.disk)
        line = ProgressLine(archive.clock)
        cache.on_step = line.step
        try:
            yield cache
        finally:
            line.clear()


def _reach(archive: Archive, source: str | None, since: datetime | None, until: datetime | None) -> ExportReach:
    with archive.database.read() as session:
        source_id = None if source is None else find_source(session, source).id
    first, last = span(since and since.date(), until and until.date())
    return ExportReach(source_id, first, last)


def _site(archive: Archive) -> str:
    return (archive.settings.api.site_url or "").rstrip("/")


def _write(pieces: Iterable[bytes], output: Path | None) -> None:
    """Write to standard output, or to a file that takes its name when it is whole."""
    if output is None:
        _copy(pieces, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    if not output.name:
        raise Invalid(f"cannot write to {str(output)!r}: name a file behind -o")
    # Beside its target, for rename() to work; with the process's number, since two exports may have one target.
    fresh = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        with fresh.open("wb") as file:
            _copy(pieces, file)
            file.flush()
            # A power loss must not leave a package with its final name and half its bytes.
            os.fsync(file.fileno())
        fresh.replace(output)
        sync_directory(output.parent)
    except FileNotFoundError as exc:
        raise Invalid(f"cannot write {output}: its folder is not there") from exc
    except OSError as exc:
        raise Unavailable(f"cannot write {output}: {exc.strerror}") from exc
    finally:
        fresh.unlink(missing_ok=True)


def _copy(pieces: Iterable[bytes], file: BinaryIO) -> None:
    for piece in pieces:
        file.write(piece)
