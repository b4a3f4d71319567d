"""`holdfast changes`: lists changes of archived pages, and compares two captures or two whole crawls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import typer

from holdfast.changes import listing
from holdfast.changes.compute import compute_pending
from holdfast.changes.listing import ChangeScope
from holdfast.changes.pairs import Compared, TextMode, compare_captures
from holdfast.changes.records import structured_diff
from holdfast.changes.rendering import diff_text
from holdfast.changes.site_comparison import SiteKind, count_kinds, walk_site
from holdfast.cli.formatting import counted, dumps, lines, text
from holdfast.cli.parameters import OfSource, command_group
from holdfast.cli.printing import counter, picked
from holdfast.cli.resource import Done, Reading, command
from holdfast.processes.runfile import step_back
from holdfast.records import Spelling, encode
from holdfast.sources.queries import source_id_of
from holdfast.wiring.archive import Archive

app_command = command_group("Look at what changed. Example: holdfast changes list --source example-org")


@command(app_command, "compute", example="compute-changes --source example-org")
def compute_changes(
    archive: Archive,
    source: OfSource = None,
    max_events: Annotated[
        int | None, typer.Option(min=1, help="Stop after this number of events; the next run continues.")
    ] = None,
    since_days: Annotated[
        float | None, typer.Option(min=0, help="Only captures of the last days; all if left out.")
    ] = None,
    backfill: Annotated[
        bool,
        typer.Option("--backfill", help="Also captures that were compared before, as after a new version."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the changes, and write nothing.")] = False,
) -> Done:
    """Compare every capture with the one before it: new, unchanged, updated, gone, error, noise.

    Acts at once: what it writes is derived; --dry-run only counts.
    """
    # Comparing can be repeated at any time: it yields to crawls and to readers of the API.
    step_back(archive.settings.index.nice)
    with archive.database.read() as session:
        source_id = source_id_of(session, source)
    seen = counter("captures compared")
    result = compute_pending(
        archive.database,
        archive.clock,
        lambda result: seen(result.looked_at),
        source_id=source_id,
        max_events=max_events,
        since_days=since_days,
        backfill=backfill,
        dry_run=dry_run,
    )
    counts = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in sorted(result.types.items()))
    events = f"{counted(result.events, 'event')}{' would be written' if dry_run else ''}"
    printed = [f"{counted(result.looked_at, 'capture')} compared, {events}{f': {counts}' if counts else ''}"]
    if result.left:
        printed.append(f"{result.left:,} left for the next run: captures arrived while they were compared")
    return Done(picked(result, "types looked_at events diffs left", dry_run=dry_run), printed)


@command(app_command, "list", example="changes list --execution 3")
def list_changes(
    session: Reading,
    source: OfSource = None,
    execution: Annotated[int | None, typer.Option(min=0, help="Only this crawl.")] = None,
    unchanged: Annotated[bool, typer.Option("--unchanged", help="Also captures without a change.")] = False,
    noise: Annotated[
        bool, typer.Option("--show-noise", help="Also captures that show something else than their page.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to print.")] = 50,
) -> Done:
    """List changes, newest first; without a filter, those of the latest crawl of each source."""
    # Without a filter the list would have every change ever: start with the latest crawl of each source.
    is_latest = execution is None and source is None
    source_id = source_id_of(session, source)
    scope = ChangeScope(source_id, execution, is_latest, unchanged=unchanged, noise=noise)
    events, total, is_exact = listing.page_of_events(session, scope, offset=0, limit=limit)
    printed = []
    for one in events:
        printed += [f"{one.to_captured_at:%Y-%m-%d %H:%M}  {one.type:<9}  {text(one.group or '')}  {one.summary}"]
        printed += [f"{'':18}{one.from_snapshot_id or '-'} -> {one.to_snapshot_id}"]
    if not events:
        printed.append("no changes; holdfast compute-changes looks for them")
    elif total > len(events):
        printed.append(f"{total - len(events):,} more; see --limit")
    shown = {"total": total, "total_is_exact": is_exact, "changes": events}
    return Done(shown, printed)


@command(app_command, example="changes compare 4194305 8388609")
def compare(
    archive: Archive,
    snapshots: Annotated[list[int], typer.Argument(help="[EARLIER] LATER: snapshot ids of one page.", metavar="ID…")],
    mode: Annotated[TextMode, typer.Option(help="The page's content, or all that it shows (full).")] = TextMode.MAIN,
) -> Done:
    """Show the differences between two captures of a page, or between one and the previous capture."""
    if len(snapshots) > 2:
        raise typer.BadParameter("name one snapshot, or two")
    before = snapshots[0] if len(snapshots) == 2 else None
    found = compare_captures(archive.database, archive.home, archive.clock, snapshots[-1], before, mode=mode)
    diff = None if found.hunks is None else structured_diff(found.hunks, found.touched)
    more = {"truncated": found.truncated, "mode": found.mode.value, "diff": diff}
    return Done({**encode(found.event, spelling=Spelling.COMMAND), **more}, _comparison_lines(found, mode))


def _comparison_lines(found: Compared, mode: TextMode) -> Iterator[str]:
    if found.mode is not mode:
        yield "the record cannot be read any more; the content is compared instead of all that the page shows"
    if found.earlier is not None:
        yield f"--- {text(found.earlier.url)}  {found.earlier.captured_at:%Y-%m-%d %H:%M:%S}  {found.earlier.id}"
    yield f"+++ {text(found.later.url)}  {found.later.captured_at:%Y-%m-%d %H:%M:%S}  {found.later.id}"
    yield found.event.summary
    if found.hunks:
        yield lines(diff_text(found.hunks))
    if found.truncated:
        yield "the diff goes on; only its first 400 lines are kept"


@command(app_command, example="changes site 1 2")
def site(
    archive: Archive,
    earlier: Annotated[int, typer.Argument(help="The earlier crawl's number.")],
    later: Annotated[int, typer.Argument(help="The later crawl's number.")],
    unchanged: Annotated[bool, typer.Option("--unchanged", help="Also list pages that are the same.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object a page, then one with the counts.")] = False,
) -> Done:
    """Compare two crawls of a site: new, gone, changed, unchanged, moved.

    A page is listed as error if the later crawl failed to fetch it or did not reach it: its state is unknown.
    """
    counts: Counter[str] = Counter({kind.value: 0 for kind in SiteKind})
    for entry in count_kinds(walk_site(archive.database, earlier, later), counts):
        if unchanged or entry.kind != SiteKind.UNCHANGED:
            moved = f"  (was {entry.from_url})" if entry.from_url else ""
            line = text(f"{entry.kind:<9}  {entry.url or 'a page'}{moved}")
            print(dumps(entry._asdict()) if json else line)
    return Done({"counts": dict(counts)}, ", ".join(f"{count:,} {kind}" for kind, count in counts.items()))
