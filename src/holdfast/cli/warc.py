"""`holdfast warc`: the sealed files of the archive, and single records extracted from them."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from json import dumps
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from sqlalchemy.orm import Session

from holdfast.cli.formatting import counted, size, text
from holdfast.cli.job_selector import OfExecutions
from holdfast.cli.parameters import OfSource, command_group
from holdfast.cli.printing import picked
from holdfast.cli.progress import byte_bar
from holdfast.cli.resource import Listing, Reading, Rows, command
from holdfast.cli.runner import example
from holdfast.errors import Invalid, NotFound, Unavailable
from holdfast.index import queries
from holdfast.records import from_row
from holdfast.sources.queries import source_id_of
from holdfast.storage.disk import disk_error
from holdfast.storage.folder import AnyFile
from holdfast.warc.conversion import packed_record, record_pieces
from holdfast.warc.manifest import MANIFEST, ManifestDamaged, read_manifest
from holdfast.warc.outfile import SealedFile
from holdfast.warc.records import WarcFileRecord
from holdfast.warc.verify import VerifyReport, verify_file
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.visibility import visible_snapshot

app_command = command_group("List WARC files; take a record out of one. Example: holdfast warc list")
_RECENT = 20
_FILES = Listing("files", "id=file source state index_state=index record_count=records size path", "0 files, 0 B")


@command(app_command, "list", listing=_FILES, example="warc list --source hc")
def list_files(
    archive: Archive,
    session: Reading,
    which: OfExecutions,
    source: OfSource = None,
    recent: Annotated[bool, typer.Option("--recent", help="Newest first, and only the newest.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Most files; 20 with --recent.")] = None,
) -> Rows:
    """List the WARC files: where they are, how large, and whether they are indexed."""
    source_id_of(session, source)
    selected = which.find(archive.database).each()
    rows = (
        row
        for one in (reversed(selected) if recent else selected)
        for row in queries.warc_files(session, source=source, execution_id=one, newest=recent)
    )
    found = itertools.islice(rows, limit or (_RECENT if recent else None))
    files = [from_row(WarcFileRecord, file, source=code) for file, code in found]
    return Rows(files, footer=f"{counted(len(files), 'file')}, {size(sum(one.size or 0 for one in files))}")


@command(app_command, "extract", example="warc extract 4194305 -o page.warc.gz")
def take_out(
    archive: Archive,
    what: Annotated[str, typer.Argument(help="A snapshot's id, or FILE:OFFSET.", metavar="ID|FILE:OFFSET")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write here; .gz packs it.")] = None,
) -> None:
    """Write one complete record as a WARC file of its own, to a file or to standard output.

    FILE is a file's number, its name or a path.
    """
    with archive.database.read() as session:
        path, offset = _place(session, archive.home, what)
    if output is None:
        sys.stdout.buffer.writelines(record_pieces(path, offset))
        sys.stdout.buffer.flush()
        return
    packs = output.name.endswith(".gz")
    try:
        # Never overwrite a file: a wrong -o must not cost a WARC file.
        with output.open("xb") as out:
            out.writelines([packed_record(path, offset)] if packs else record_pieces(path, offset))
    except FileExistsError as exc:
        raise Invalid(f"{output} exists already; name another file") from exc
    except OSError as exc:
        raise disk_error(exc, f"cannot write {output}: {exc.strerror}") from exc


def _place(session: Session, home: Path, what: str) -> tuple[AnyFile, int]:
    """Return the file and offset of an argument; raise NotFound for a hidden snapshot."""
    if what.isascii() and what.isdecimal():
        snapshot = visible_snapshot(session, _number(what))
        return queries.file_of(session, home, snapshot.warc_file_id), snapshot.warc_offset
    name, colon, offset = what.rpartition(":")
    if not colon or not offset.isascii() or not offset.isdecimal():
        raise Invalid(f"{what!r} is neither a snapshot's id nor FILE:OFFSET")
    if name.isascii() and name.isdecimal():
        return queries.file_of(session, home, _number(name)), _number(offset)
    file = queries.file_by_path(session, name)
    if file is not None:
        return queries.file_of(session, home, file.id), _number(offset)
    if Path(name).is_file():
        return Path(name), _number(offset)
    raise NotFound(f"there is no WARC file {name}; see them with: holdfast warc list")


def _number(digits: str) -> int:
    # No database accepts a number that is larger than any id or offset, and int() rejects more than 4,300 digits.
    if (number := int(digits.lstrip("0")[:20] or "0")) >= 1 << 63:
        raise NotFound(f"there is nothing under the number {digits[:40]}")
    return number


_PATTERNS = ("*.warc", "*.warc.gz", "*.warc.zst", "*.warc.gz.open")
_SHOWN = 25
# Size from which a terminal shows the progress.
_LONG_BYTES = 64 << 20


class Checked(NamedTuple):
    path: Path
    state: str
    """`ok`; `damaged`; `missing`: listed in the manifest; `open`: being written, so it is skipped unless named."""
    report: VerifyReport


@example("verify holdfast-home")
def verify(
    paths: Annotated[list[Path], typer.Argument(help="WARC files, or folders to look through.", metavar="PATH")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check gzip members, record heads, lengths and ends, block and payload digests, and the manifest beside them.

    Every problem is shown with its offset. Exit 0 if all is well, 1 if anything is wrong or nothing was found.
    """
    # The cache is for one run; in tests and shells several runs share a process.
    _manifest.cache_clear()
    targets = list(_targets(paths))
    checked: list[Checked] = []
    total = sum(path.stat().st_size for path, _ in targets if path.is_file())
    with byte_bar("verifying", total, is_shown=total >= _LONG_BYTES) as advance:
        for path, is_named in targets:
            result = _check(path, is_named, advance)
            checked.append(result)
            if not json:
                _print(result)
    if json:
        all_ok = bool(checked) and all(report.ok for *_, report in checked)
        totals = {name: sum(getattr(report, name) for *_, report in checked) for name in ("records", "bytes")}
        print(dumps({"ok": all_ok, **totals, "files": [_facts(result) for result in checked]}, indent=2))
    else:
        _print_summary(checked)
    if not checked or not all(report.ok for *_, report in checked):
        raise typer.Exit(1)


def _targets(paths: list[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield what to check, and whether it was named or found: files, manifests, and files that a manifest lists."""
    for path in paths:
        if path.is_file():
            yield path, True
        elif not path.is_dir():
            raise NotFound(f"there is no file or folder {path}")
        else:
            found = {file for pattern in _PATTERNS for file in path.rglob(pattern) if file.is_file()}
            manifests = set(path.rglob(MANIFEST))
            # Include files that only the manifest lists: a scan of the folder would miss these losses.
            listed = {manifest.parent / name for manifest in manifests for name in _manifest(manifest.parent)[0]}
            for file in sorted(found | listed | {m for m in manifests if _manifest(m.parent)[1] is not None}):
                yield file, False


@lru_cache(maxsize=64)
def _manifest(folder: Path) -> tuple[dict[str, SealedFile], str | None]:
    """Return the files that a folder's manifest lists, by name, and the reason if it cannot be read."""
    try:
        return {sealed.path.name: sealed for sealed in read_manifest(folder).values()}, None
    except ManifestDamaged as exc:
        return {}, str(exc) if exc.is_ours else None
    except Unavailable as exc:
        return {}, str(exc)


def _check(path: Path, is_named: bool, advance: Callable[[int], None]) -> Checked:
    entries, broken = _manifest(path.parent)
    if path.name == MANIFEST:
        return _bad(path, "damaged", "manifest", broken or "it lists the files beside it, and is no WARC file itself")
    # A crawl is writing it, so its last record is incomplete.
    if path.name.endswith(".open") and not is_named:
        return Checked(path, "open", VerifyReport(path.stat().st_size))
    try:
        report = verify_file(path, entries.get(path.name), advance)
    except NotFound:
        return _bad(path, "missing", "missing", "the manifest lists it, and it is not there")
    except Unavailable as exc:
        return _bad(path, "damaged", "unreadable", str(exc))
    return Checked(path, "ok" if report.ok else "damaged", report)


def _bad(path: Path, state: str, kind: str, detail: str) -> Checked:
    report = VerifyReport(0)
    report.problem(0, kind, detail)
    return Checked(path, state, report)


def _print(result: Checked) -> None:
    path, state, report = result
    facts = f"{report.records:>9,} records {report.bytes:>15,} bytes  " if state in ("ok", "damaged") else ""
    typer.echo(f"{state:<8} {facts}{text(path)}")
    for problem in report.problems[:_SHOWN]:
        typer.echo(f"  at {problem.offset}: {problem.kind}: {text(problem.detail)}")
    if report.problem_count > _SHOWN:
        typer.echo(f"  and {report.problem_count - _SHOWN:,} more; --json lists them")
    for kind, count in sorted(Counter(note.kind for note in report.notes).items()):
        first = next(note for note in report.notes if note.kind == kind)
        typer.echo(f"  note: {kind}, {count} times, first at {first.offset}: {text(first.detail)}")


def _print_summary(checked: list[Checked]) -> None:
    if not checked:
        typer.echo("holdfast: no WARC files there (looked for .warc, .warc.gz and .warc.zst)", err=True)
        return
    bad = sum(not report.ok for *_, report in checked)
    records = sum(report.records for *_, report in checked)
    typer.echo(
        f"{counted(len(checked), 'file')}, {counted(records, 'record')}: "
        f"{f'{bad} with problems' if bad else 'all is well'}"
    )


def _facts(result: Checked) -> dict[str, Any]:
    path, state, report = result
    found = {name: [one._asdict() for one in getattr(report, name)] for name in ("problems", "notes")}
    return picked(report, "ok records bytes problem_count", path=str(path), state=state, **found)
