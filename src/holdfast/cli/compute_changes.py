"""`holdfast compute-changes`: compares captures that nobody has compared yet. May be stopped, and run twice at once."""

from __future__ import annotations

import json as jsonlib
import sys
from typing import Annotated

import typer

from holdfast import config
from holdfast.changes.compute import Computed, Wish, compute_pending
from holdfast.cli.options import AsJson, Home
from holdfast.cli.wording import counted
from holdfast.coordination.priority import step_back
from holdfast.sources.queries import source_by_code
from holdfast.sources.refusals import SourceNotFound
from holdfast.wiring.archive import Archive, open_archive


def compute_changes(
    source: Annotated[str | None, typer.Option("--source", help="Only this source's captures.", metavar="CODE")] = None,
    max_events: Annotated[
        int | None, typer.Option("--max-events", min=1, help="Stop after so many events; the next run goes on.")
    ] = None,
    since_days: Annotated[
        float | None, typer.Option("--since-days", min=0, help="Only captures of the last days; all if left out.")
    ] = None,
    backfill: Annotated[
        bool,
        typer.Option("--backfill", help="Also what was compared before, as after a new version."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be said, and write nothing.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Say of every capture what happened to its page since the one before: new, unchanged, updated, gone, error.

    Acts at once: what it writes is derived; --dry-run only counts.
    Example: holdfast compute-changes --source example-org
    """
    settings = config.load(home=home)
    step_back(settings.index.nice)
    with open_archive(settings) as archive:
        wish = Wish(
            source_id=None if source is None else find_source(archive, source), max_events=max_events,
            since_days=since_days, backfill=backfill, dry_run=dry_run,
        )  # fmt: skip
        result = compute_pending(archive.database, archive.clock, wish, _show if sys.stderr.isatty() else None)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    if json:
        print(jsonlib.dumps(_object(result, dry_run=dry_run)))
        return
    counts = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in sorted(result.types.items()))
    would = " would be said" if dry_run else ""
    print(
        f"{counted(result.looked_at, 'capture')} looked at, {counted(result.events, 'event')}{would}"
        f"{f': {counts}' if counts else ''}"
    )
    if result.left:
        print(f"{result.left:,} left for the next run: captures arrived while they were compared")


def find_source(archive: Archive, code: str) -> int:
    """Return the id of a source; SourceNotFound if there is none of this code."""
    with archive.database.read() as session:
        found = source_by_code(session, code)
    if found is None:
        raise SourceNotFound(code)
    return found.id


def _show(result: Computed) -> None:
    print(
        f"\r{counted(result.looked_at, 'capture')}, {counted(result.events, 'event')}",
        end="",
        file=sys.stderr,
        flush=True,
    )


def _object(result: Computed, *, dry_run: bool) -> dict[str, object]:
    return {
        "looked_at": result.looked_at, "events": result.events, "types": dict(result.types), "diffs": result.diffs,
        "left": result.left, "dry_run": dry_run,
    }  # fmt: skip
