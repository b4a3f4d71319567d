"""`holdfast verify`: is every byte of these WARC files still what was written? It changes nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from holdfast.cli.wording import counted
from holdfast.errors import NotFound, Unavailable
from holdfast.warc.manifest import MANIFEST, ManifestDamaged, ManifestEntry, read_manifest
from holdfast.warc.verify import Problem, verify_file

_PATTERNS = ("*.warc", "*.warc.gz", "*.warc.zst", "*.warc.gz.open")
_SHOWN = 25
_LONG_BYTES = 64 << 20
"""From here on a terminal is shown how far it got."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What came of one file."""

    path: Path
    state: str
    """ok; damaged; missing: the manifest lists it; open: somebody writes it, so it is not looked at unless named."""
    records: int = 0
    bytes: int = 0
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.problem_count == 0


def verify(
    paths: Annotated[list[Path], typer.Argument(help="WARC files, or folders to look through.", metavar="PATH")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check gzip members, record heads, lengths and ends, block and payload digests, and the manifest beside them.

    Every problem is shown with its offset. Exit 0 if all is well, 1 if anything is wrong or nothing was found.

    Example: holdfast verify holdfast-home
    """
    _manifest.cache_clear()
    targets = list(_targets(paths))
    checked: list[Checked] = []
    with _progress(sum(path.stat().st_size for path, _ in targets if path.is_file())) as advance:
        for path, is_named in targets:
            result = _check(path, is_named, advance)
            checked.append(result)
            if not json:
                _print(result)
    if json:
        typer.echo(dumps(_facts(checked), indent=2))
    else:
        _print_summary(checked)
    if not checked or not all(result.ok for result in checked):
        raise typer.Exit(1)


def _targets(paths: list[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield what to look at, and whether it was named or found: files, manifests, and what a manifest lists."""
    for path in paths:
        if path.is_file():
            yield path, True
        elif not path.is_dir():
            raise NotFound(f"there is no file or folder {path}")
        else:
            found = {file for pattern in _PATTERNS for file in path.rglob(pattern) if file.is_file()}
            manifests = set(path.rglob(MANIFEST))
            listed = {manifest.parent / name for manifest in manifests for name in _manifest(manifest.parent)[0]}
            for file in sorted(found | listed | {m for m in manifests if _manifest(m.parent)[1] is not None}):
                yield file, False


@lru_cache(maxsize=64)
def _manifest(folder: Path) -> tuple[dict[str, ManifestEntry], str | None]:
    """Return what a folder's manifest lists, by name, and why it cannot be read, if it cannot."""
    try:
        return {entry.name: entry for entry in read_manifest(folder)}, None
    except ManifestDamaged as exc:
        return {}, str(exc) if exc.is_ours else None
    except Unavailable as exc:
        return {}, str(exc)


def _check(path: Path, is_named: bool, advance: Callable[[int], None]) -> Checked:
    entries, broken = _manifest(path.parent)
    if path.name == MANIFEST:
        return _bad(path, "damaged", "manifest", broken or "it lists the files beside it, and is no WARC file itself")
    if path.name.endswith(".open") and not is_named:
        return Checked(path=path, state="open", bytes=path.stat().st_size)
    try:
        report = verify_file(path, entries.get(path.name), advance)
    except NotFound:
        return _bad(path, "missing", "missing", "the manifest lists it, and it is not there")
    except Unavailable as exc:
        return _bad(path, "damaged", "unreadable", str(exc))
    return Checked(
        path=path, state="ok" if report.ok else "damaged", records=report.records, bytes=report.bytes,
        problem_count=report.problem_count, problems=report.problems, notes=report.notes,
    )  # fmt: skip


def _bad(path: Path, state: str, kind: str, detail: str) -> Checked:
    return Checked(path=path, state=state, problem_count=1, problems=(Problem(0, kind, detail),))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how far a long check got; yield what is to be told of every byte that was looked at."""
    columns = (TextColumn("verifying"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    shown = total >= _LONG_BYTES and sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown) as progress:
        task = progress.add_task("verifying", total=total)
        yield lambda count: progress.advance(task, count)


def _print(result: Checked) -> None:
    facts = f"{result.records:>9,} records {result.bytes:>15,} bytes  " if result.state in ("ok", "damaged") else ""
    typer.echo(f"{result.state:<8} {facts}{result.path}")
    for problem in result.problems[:_SHOWN]:
        typer.echo(f"  at {problem.offset}: {problem.kind}: {problem.detail}")
    if result.problem_count > _SHOWN:
        typer.echo(f"  and {result.problem_count - _SHOWN:,} more; --json lists them")
    for kind, count in sorted(Counter(note.kind for note in result.notes).items()):
        first = next(note for note in result.notes if note.kind == kind)
        typer.echo(f"  note: {kind}, {count} times, first at {first.offset}: {first.detail}")


def _print_summary(checked: list[Checked]) -> None:
    if not checked:
        typer.echo("holdfast: no WARC files there (looked for .warc, .warc.gz and .warc.zst)", err=True)
        return
    bad = sum(not result.ok for result in checked)
    records = sum(result.records for result in checked)
    typer.echo(
        f"{counted(len(checked), 'file')}, {counted(records, 'record')}: "
        f"{f'{bad} with problems' if bad else 'all is well'}"
    )


def _facts(checked: list[Checked]) -> dict[str, Any]:
    return {
        "ok": bool(checked) and all(result.ok for result in checked),
        "records": sum(result.records for result in checked),
        "bytes": sum(result.bytes for result in checked),
        "files": [
            {
                "path": str(result.path),
                "state": result.state,
                "ok": result.ok,
                "records": result.records,
                "bytes": result.bytes,
                "problem_count": result.problem_count,
                "problems": [problem._asdict() for problem in result.problems],
                "notes": [note._asdict() for note in result.notes],
            }
            for result in checked
        ],
    }


app_command = verify
