"""`holdfast search-index`: look after the search index: take in what waits, make it anew, see how it stands."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Callable

import typer

from holdfast import config
from holdfast.cli.logs import configure_log
from holdfast.cli.options import AsJson, Home
from holdfast.cli.wording import counted
from holdfast.coordination.priority import step_back
from holdfast.search import queries
from holdfast.search.drain import drain as drain_outbox
from holdfast.search.drain import rebuild as rebuild_index
from holdfast.search.shelf import Shelf
from holdfast.wiring.archive import open_archive

app_command = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True,
    help="Take in what waits, make the index anew, see how it stands. Example: holdfast search-index status",
)  # fmt: skip


def _progress(*, quiet: bool) -> Callable[[int], None]:
    def show(pages: int) -> None:
        if not quiet and sys.stderr.isatty():
            print(f"\r{pages:,} pages taken in", end="", file=sys.stderr, flush=True)

    return show


@app_command.command()
def drain(json: AsJson = False, home: Home = None) -> None:
    """Take in what was indexed since; Ctrl-C stops, the next drain goes on.

    Acts at once: what it writes is derived, and can be made anew.
    Example: holdfast search-index drain
    """
    configure_log(config.load(home=home), as_json=False)
    settings = config.load(home=home)
    step_back(settings.index.nice)
    with open_archive(settings) as archive:
        done = drain_outbox(archive.database, archive.home, archive.clock, progress=_progress(quiet=json))
    if json:
        print(jsonlib.dumps({"changes": done.changes, "pages": done.pages, "finished": done.finished}))
    else:
        typer.echo(f"{counted(done.changes, 'change')} taken in, {counted(done.pages, 'page')}")


@app_command.command()
def rebuild(json: AsJson = False, home: Home = None) -> None:
    """Make the index anew from the database; the old one serves until the new one is whole.

    Acts at once: what it writes is derived, and can be made anew.
    Example: holdfast search-index rebuild
    """
    configure_log(config.load(home=home), as_json=False)
    settings = config.load(home=home)
    step_back(settings.index.nice)
    with open_archive(settings) as archive:
        pages = rebuild_index(archive.database, archive.home, archive.clock, progress=_progress(quiet=json))
        done = drain_outbox(archive.database, archive.home, archive.clock)
    if json:
        print(jsonlib.dumps({"pages": pages, "changes": done.changes}))
    else:
        typer.echo(f"{counted(pages, 'page')} in the new index, {counted(done.changes, 'change')} taken in since")


@app_command.command()
def status(json: AsJson = False, home: Home = None) -> None:
    """Show how many pages, documents and addresses it holds, and how many changes wait.

    Example: holdfast search-index status
    """
    with open_archive(config.load(home=home)) as archive:
        view = Shelf(archive.home, archive.clock).view()
        with archive.database.read() as session:
            waiting = queries.waiting_count(session)
    facts = {
        "generation": view.folder.name, "sequence": view.manifest.sequence, "segments": len(view.manifest.segments),
        "pages": len(view.columns), "documents": len(view.columns.documents.keys),
        "addresses": len(view.columns.addresses.keys), "waiting": waiting,
    }  # fmt: skip
    if json:
        print(jsonlib.dumps(facts))
        return
    for name, value in facts.items():
        typer.echo(f"{name:<11} {value:,}" if isinstance(value, int) else f"{name:<11} {value}")
