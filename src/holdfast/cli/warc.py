"""`holdfast warc`: the sealed files of the archive, and single records out of them."""

from __future__ import annotations

import itertools
import json as jsonlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy.orm import Session

from holdfast import config
from holdfast.cli.display import size
from holdfast.cli.meant import OfExecution, OfJob, find_executions
from holdfast.cli.options import AsJson, Home
from holdfast.cli.tables import table
from holdfast.cli.wording import counted
from holdfast.db.models import WarcFile
from holdfast.errors import Invalid, NotFound
from holdfast.index import queries
from holdfast.sources.registry import find
from holdfast.warc.extract import packed_record, record_pieces
from holdfast.warc.outfile import disk_error
from holdfast.wiring.archive import open_archive

app_command = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True,
    help="List WARC files; take a record out of one. Example: holdfast warc list",
)  # fmt: skip
_RECENT = 20


@app_command.command("list")
def list_files(
    source: Annotated[str | None, typer.Option("--source", "-s", help="Only files of this source.")] = None,
    job_id: OfJob = None,
    execution: OfExecution = None,
    recent: Annotated[bool, typer.Option("--recent", help="Newest first, and only the newest.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Most files; 20 with --recent.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List the WARC files: where they are, how large, and whether they are indexed.

    Example: holdfast warc list --source hc
    """
    wanted = limit or (_RECENT if recent else None)
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        if source is not None:
            find(session, source)
        meant = find_executions(archive.database, job_id, execution).each()
        rows = (row for one in (reversed(meant) if recent else meant)
                for row in queries.warc_files(session, source=source, execution_id=one, newest=recent))  # fmt: skip
        shown = [_facts(file, code) for file, code in itertools.islice(rows, wanted)]
    if json:
        print(jsonlib.dumps({"files": shown}))
        return
    if shown:
        print(table(("file", "source", "state", "index", "records", "size", "path"), [
            (one["id"], one["source"], one["state"], one["index"], one["records"], size(one["size"] or 0), one["path"])
            for one in shown
        ]))  # fmt: skip
    print(f"{counted(len(shown), 'file')}, {size(sum(one['size'] or 0 for one in shown))}")


def _facts(file: WarcFile, source: str) -> dict[str, Any]:
    return {
        "id": file.id, "source": source, "execution": file.execution_id, "path": file.path, "state": file.state,
        "index": file.index_state, "size": file.size, "records": file.record_count, "sha256": file.sha256,
        "repaired": file.repaired, "origin": file.origin,
        "sealed_at": file.sealed_at.isoformat() if file.sealed_at else None,
    }  # fmt: skip


@app_command.command("extract")
def take_out(
    what: Annotated[str, typer.Argument(help="A snapshot's id, or FILE:OFFSET.", metavar="ID|FILE:OFFSET")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write here; .gz packs it.")] = None,
    home: Home = None,
) -> None:
    """Write one whole record as a WARC file of its own, to a file or to standard output.

    FILE is a file's number, its name or a path.

    Example: holdfast warc extract 4194305 -o page.warc.gz
    """
    with open_archive(config.load(home=home)) as archive:
        with archive.database.read() as session:
            path, offset = _place(session, archive.home, what)
        if output is None:
            for piece in record_pieces(path, offset):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return
        try:
            with output.open("xb") as out:
                if output.name.endswith(".gz"):
                    out.write(packed_record(path, offset))
                else:
                    for piece in record_pieces(path, offset):
                        out.write(piece)
        except FileExistsError as exc:
            raise Invalid(f"{output} exists already; name another file") from exc
        except OSError as exc:
            raise disk_error(exc, f"cannot write {output}: {exc.strerror}") from exc


def _place(session: Session, home: Path, what: str) -> tuple[Path, int]:
    """Return file and offset of what somebody named; a hidden snapshot is not found."""
    if what.isascii() and what.isdecimal():
        snapshot = queries.snapshot(session, int(what[:19]))
        return queries.path_of(session, home, snapshot.warc_file_id), snapshot.warc_offset
    name, colon, offset = what.rpartition(":")
    if not colon or not offset.isascii() or not offset.isdecimal():
        raise Invalid(f"{what!r} is neither a snapshot's id nor FILE:OFFSET")
    if name.isascii() and name.isdecimal():
        return queries.path_of(session, home, int(name[:18])), int(offset[:18])
    file = queries.file_by_path(session, name)
    if file is not None:
        return queries.path_of(session, home, file.id), int(offset[:18])
    if Path(name).is_file():
        return Path(name), int(offset[:18])
    raise NotFound(f"there is no WARC file {name}; see them with: holdfast warc list")
