"""`holdfast changes`: what changed on the archived pages: a list, two captures, two whole crawls."""

from __future__ import annotations

import json as jsonlib
import sys
from collections import Counter
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.changes import listing
from holdfast.changes.compute import Computed, ComputeWish, compute_pending
from holdfast.changes.listing import ChangeScope, ListedChange
from holdfast.changes.pairs import TextMode, WantedComparison, compare_captures
from holdfast.changes.rendering import diff_object, diff_text
from holdfast.changes.site_comparison import PageDifference, SiteKind, count_kinds, walk_site
from holdfast.cli.formatting import counted, lines, text
from holdfast.cli.parameters import AsJson, Home, command_group
from holdfast.coordination.runfile import step_back
from holdfast.sources.queries import find_source
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
    """Say of every capture what happened to its page since the one before: new, unchanged, updated, gone, error, noise.

    Acts at once: what it writes is derived; --dry-run only counts.
    Example: holdfast compute-changes --source example-org
    """
    settings = config.load(home=home)
    # Comparing is derived work: it gives way to crawls and to readers of the API.
    step_back(settings.index.nice)
    with open_archive(settings) as archive:
        wish = ComputeWish(
            source_id=_source_id(archive, source),
            max_events=max_events,
            since_days=since_days,
            backfill=backfill,
            dry_run=dry_run,
        )
        result = compute_pending(archive.database, archive.clock, wish, _show if sys.stderr.isatty() else None)
    if sys.stderr.isatty():
        # The counter leaves no line behind.
        print("\r\x1b[K", end="", file=sys.stderr)
    if json:
        print(jsonlib.dumps(_computed_object(result, dry_run=dry_run)))
        return
    counts = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in sorted(result.types.items()))
    would = " would be said" if dry_run else ""
    print(
        f"{counted(result.looked_at, 'capture')} looked at, {counted(result.events, 'event')}{would}"
        f"{f': {counts}' if counts else ''}"
    )
    if result.left:
        print(f"{result.left:,} left for the next run: captures arrived while they were compared")


def _source_id(archive: Archive, code: str | None) -> int | None:
    with archive.database.read() as session:
        return None if code is None else find_source(session, code).id


def _show(result: Computed) -> None:
    print(
        f"\r{counted(result.looked_at, 'capture')}, {counted(result.events, 'event')}",
        end="",
        file=sys.stderr,
        flush=True,
    )


def _computed_object(result: Computed, *, dry_run: bool) -> dict[str, object]:
    return {
        "looked_at": result.looked_at,
        "events": result.events,
        "types": dict(result.types),
        "diffs": result.diffs,
        "left": result.left,
        "dry_run": dry_run,
    }


app_command = command_group("Look at what changed. Example: holdfast changes list --source example-org")
app_command.command(name="compute")(compute_changes)


@app_command.command(name="list")
def list_changes(
    source: Annotated[str | None, typer.Option("--source", help="Only this source.", metavar="CODE")] = None,
    execution: Annotated[int | None, typer.Option("--execution", min=0, help="Only this crawl.")] = None,
    unchanged: Annotated[bool, typer.Option("--unchanged", help="Also captures at which nothing had changed.")] = False,
    noise: Annotated[
        bool, typer.Option("--show-noise", help="Also captures that show something else than their page.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Rows to print.")] = 50,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List changes, newest first; without a filter, those of the latest crawl of each source.

    Example: holdfast changes list --execution 3
    """
    with open_archive(config.load(home=home)) as archive:
        source_id = _source_id(archive, source)
        with archive.database.read() as session:
            scope = ChangeScope(source_id=source_id, unchanged=unchanged, noise=noise)
            if execution is not None:
                scope = scope._replace(execution_id=execution)
            # Without a filter the list would be every change there ever was; the latest crawl of each source is what is
            # asked for.
            elif source is None:
                scope = scope._replace(latest=True)
            found = listing.page_of_events(session, scope, offset=0, limit=limit)
    if json:
        rows = [_object(event) for event in found.events]
        print(jsonlib.dumps({"total": found.total, "total_is_exact": found.is_exact, "changes": rows}))
        return
    for event in found.events:
        print(f"{event.to_captured_at:%Y-%m-%d %H:%M}  {event.type:<9}  {text(event.group or '')}  {event.summary}")
        print(f"{'':18}{event.from_snapshot_id or '-'} -> {event.to_snapshot_id}")
    if not found.events:
        print("no changes; holdfast compute-changes looks for them")
    elif found.total > len(found.events):
        print(f"{found.total - len(found.events):,} more; see --limit")


@app_command.command()
def compare(
    snapshots: Annotated[list[int], typer.Argument(help="[EARLIER] LATER: snapshot ids of one page.", metavar="ID…")],
    mode: Annotated[
        TextMode, typer.Option("--mode", help="The page's content, or all that it shows (full).")
    ] = TextMode.MAIN,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Show what differs between two captures of a page, or between one and the capture before it.

    Example: holdfast changes compare 4194305 8388609
    """
    if len(snapshots) > 2:
        raise typer.BadParameter("name one snapshot, or two")
    with open_archive(config.load(home=home)) as archive:
        earlier = snapshots[0] if len(snapshots) == 2 else None
        found = compare_captures(
            archive.database, archive.home, archive.clock, WantedComparison(snapshots[-1], earlier, mode)
        )
    if json:
        diff = None if found.hunks is None else diff_object(found.hunks, found.touched)
        more = {"truncated": found.truncated, "mode": found.mode.value, "diff": diff}
        print(jsonlib.dumps({**_object(found.event), **more}, ensure_ascii=False))
        return
    if found.mode is not mode:
        print("the record cannot be read any more; the content is compared instead of all that the page shows")
    if found.earlier is not None:
        print(f"--- {text(found.earlier.url)}  {found.earlier.captured_at:%Y-%m-%d %H:%M:%S}  {found.earlier.id}")
    print(f"+++ {text(found.later.url)}  {found.later.captured_at:%Y-%m-%d %H:%M:%S}  {found.later.id}")
    print(found.event.summary)
    if found.hunks:
        print(lines(diff_text(found.hunks)))
    if found.truncated:
        print("the diff goes on; only its first 400 lines are kept")


@app_command.command()
def site(
    earlier: Annotated[int, typer.Argument(help="The earlier crawl's number.")],
    later: Annotated[int, typer.Argument(help="The later crawl's number.")],
    unchanged: Annotated[bool, typer.Option("--unchanged", help="Also list pages that are the same.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object a page, then one with the counts.")] = False,
    home: Home = None,
) -> None:
    """Hold two crawls of a site against each other: new, gone, changed, unchanged, moved.

    Listed as error is a page that the later crawl asked for in vain or did not get to: nothing can be said of it.

    Example: holdfast changes site 1 2
    """
    counts: Counter[str] = Counter({kind.value: 0 for kind in SiteKind})
    with open_archive(config.load(home=home)) as archive:
        for entry in count_kinds(walk_site(archive.database, earlier, later), counts):
            if unchanged or entry.kind != SiteKind.UNCHANGED:
                print(jsonlib.dumps(entry._asdict(), ensure_ascii=False) if json else text(_site_line(entry)))
    sys.stdout.flush()
    if json:
        print(jsonlib.dumps({"counts": dict(counts)}))
    else:
        print(", ".join(f"{count:,} {kind}" for kind, count in counts.items()))


def _site_line(entry: PageDifference) -> str:
    return f"{entry.kind:<9}  {entry.url or 'a page'}" + (f"  (was {entry.from_url})" if entry.from_url else "")


def _object(event: ListedChange) -> dict[str, Any]:
    fields = event._asdict()
    for name in ("from_captured_at", "to_captured_at", "computed_at"):
        fields[name] = fields[name].isoformat() if fields[name] is not None else None
    for name in ("diff_id", "diff_noise", "has_diff", "version", "truncated"):
        del fields[name]
    return {
        **fields,
        "summary": event.summary,
        "high_noise": event.high_noise,
        "diff_available": event.diff_available,
    }
