"""`holdfast export`: snapshots, changes, an index or a whole crawl as a file. Files appear only when complete."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple, TypeVar

import typer

from holdfast.changes.listing import span
from holdfast.cli.formatting import counted
from holdfast.cli.parameters import Code, Days, OfSource, OnlyPublic, command_group
from holdfast.cli.progress import ProgressLine
from holdfast.cli.resource import command
from holdfast.editions.edition_view import find_edition
from holdfast.errors import READ_ONLY, Invalid, Unavailable
from holdfast.exports import tables
from holdfast.exports.package import export_cdxj
from holdfast.exports.package_cache import CachedPackage, PackageCache
from holdfast.exports.queries import ExportReach
from holdfast.exports.queries import execution as find_execution
from holdfast.sources.queries import find_source, source_id_of
from holdfast.steps import FileStep
from holdfast.storage.disk import sync_directory, synced
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, seen_by

T = TypeVar("T")

app_command = command_group("Take things out of the archive. Example: holdfast export wacz 3 -o site.wacz")

Out = Annotated[Path | None, typer.Option("-o", "--output", help="File to write; standard output if left out.")]


class TableOptions(NamedTuple):
    """Which rows are written, how and where."""

    form: Annotated[tables.Format, typer.Option("--format", help="jsonl (ndjson is the same) or csv.")] = (
        tables.Format.JSONL
    )
    source: OfSource = None
    after_id: Annotated[int, typer.Option(min=-1, help="Only rows behind this id.")] = -1
    limit: Annotated[int | None, typer.Option(min=1, help="Rows at most; all if left out.")] = None
    public: OnlyPublic = False
    output: Out = None


@command(app_command, example="export snapshots --format csv -o snapshots.csv")
def snapshots(archive: Archive, options: TableOptions, days: Days) -> None:
    """Write page captures by id, one per line."""
    _write_table(archive, tables.snapshot_rows, tables.SNAPSHOT_COLUMNS, options, days)


@command(app_command, example="export changes --source example-org -o changes.jsonl")
def changes(archive: Archive, options: TableOptions, days: Days) -> None:
    """Write changes of pages by id, one per line."""
    _write_table(archive, tables.change_rows, tables.CHANGE_COLUMNS, options, days)


def _write_table(
    archive: Archive,
    rows_of: Callable[..., Iterable[Any]],
    columns: Sequence[str],
    wanted: TableOptions,
    days: Days,
) -> None:
    with archive.database.read() as session:
        source_id = source_id_of(session, wanted.source)
    reach = ExportReach(source_id, *span(days.first, days.last), wanted.after_id, wanted.limit)
    site = (archive.settings.api.site_url or "").rstrip("/")
    with seen_by(PUBLIC if wanted.public else EVERYTHING):
        rows = _Tally(rows_of(archive.database, reach, site=site))
        _write(tables.write_rows(rows, columns, wanted.form), wanted.output)
    _tell(wanted.output, rows.count)


@command(app_command, example="export cdxj 3 -o index.cdxj")
def cdxj(
    archive: Archive,
    execution: Annotated[int | None, typer.Argument(help="A crawl's number.")] = None,
    source: OfSource = None,
    output: Out = None,
) -> None:
    """Write the CDXJ index of a crawl or source: captures of any type, sorted by the bytes of their lines."""
    if (execution is None) == (source is None):
        raise typer.BadParameter("name either a crawl's number or --source")
    with archive.database.read() as session:
        source_id = source_id_of(session, source)
        if execution is not None:
            find_execution(session, execution)
    with _scratch(archive) as scratch:
        disk = archive.settings.disk
        lines = _Tally(export_cdxj(archive.database, scratch, execution_id=execution, source_id=source_id, disk=disk))
        _write(lines, output)
    _tell(output, lines.count)


@command(app_command, example="export wacz 3 -o site.wacz")
def wacz(
    archive: Archive,
    execution: Annotated[int, typer.Argument(help="A crawl's number.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; SOURCE-N.wacz if not.")] = None,
) -> None:
    """Write a crawl as a WACZ 1.1.1 package, which ReplayWeb.page and other tools replay."""
    with _packages(archive) as packages:
        done = _write_package(packages, packages.package(execution), output)
    print(done)


@command(app_command, example="export edition hc 2026")
def edition(
    archive: Archive,
    code: Code,
    year: Annotated[int, typer.Argument(min=1, max=9999, help="The edition's year.", metavar="YEAR")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; CODE-YEAR.wacz if not.")] = None,
) -> None:
    """Write an annual edition, with all its shards, as one WACZ 1.1.1 package."""
    with archive.database.read() as session:
        found = find_edition(session, find_source(session, code), year)
    with _packages(archive) as packages:
        done = _write_package(packages, packages.edition(found.id), output)
    print(done)


def _write_package(packages: PackageCache, package: CachedPackage, output: Path | None) -> str:
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
    def __init__(self, rows: Iterable[T]) -> None:
        self._rows, self.count = rows, 0

    def __iter__(self) -> Iterator[T]:
        for row in self._rows:
            self.count += 1
            yield row


def _tell(output: Path | None, rows: int) -> None:
    """Print the result of an export on standard error: standard output is only for the rows."""
    if output is not None:
        print(f"{output}: {counted(rows, 'row')}, {output.stat().st_size:,} bytes", file=sys.stderr)


@contextmanager
def _scratch(archive: Archive) -> Iterator[Path]:
    """Yield a folder that caches data between exports; a temporary one if the archive is read-only."""
    folder = archive.home / "cache"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        # An archive on a read-only disk can still be exported; a full disk is an error.
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


def _write(pieces: Iterable[bytes], output: Path | None) -> None:
    """Write to standard output, or to a file that gets its name when it is complete."""
    if output is None:
        sys.stdout.buffer.writelines(pieces)
        sys.stdout.buffer.flush()
        return
    if not output.name:
        raise Invalid(f"cannot write to {str(output)!r}: name a file behind -o")
    # Write it beside its target, so that rename() works; include the process id, because two exports may have one
    # target.
    fresh = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        # A power loss must not leave a package with its final name and half its bytes.
        with synced(fresh) as file:
            file.writelines(pieces)
        fresh.replace(output)
        sync_directory(output.parent)
    except FileNotFoundError as exc:
        raise Invalid(f"cannot write {output}: its folder is not there") from exc
    except OSError as exc:
        raise Unavailable(f"cannot write {output}: {exc.strerror}") from exc
    finally:
        fresh.unlink(missing_ok=True)
