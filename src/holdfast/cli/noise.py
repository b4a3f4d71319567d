"""`holdfast noise`: captures that do not show their page: the classifier's findings, and manual labels."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.formatting import counted, one_line, text
from holdfast.cli.parameters import OfSource, command_group
from holdfast.cli.printing import picked
from holdfast.cli.resource import Done, Reading, command
from holdfast.cli.snapshot import Subject
from holdfast.noise import queries
from holdfast.noise.classifier import judge_pending
from holdfast.noise.labels import set_label
from holdfast.noise.words import NoiseKind
from holdfast.sources.queries import source_id_of
from holdfast.wiring.archive import Archive

app_command = command_group(
    "Captures that show something else than their page: list them, mark one, clear one. Example: holdfast noise list"
)
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the audit log.")]


@command(app_command, "list", example="noise list --source example-org --as login_wall")
def list_noise(
    session: Reading,
    source: OfSource = None,
    kind: Annotated[NoiseKind | None, typer.Option("--as", help="Only these.")] = None,
    before: Annotated[int | None, typer.Option(min=0, help="Only snapshots with a smaller id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to print.")] = 50,
) -> Done:
    """List captures that are left out of results, changes and coverage, with the evidence; newest ids first."""
    source_id = source_id_of(session, source)
    rows = queries.listed(session, source_id=source_id, kind=kind, before=before, limit=limit)
    is_waiting = queries.is_waiting(session)
    following, lines = rows[-1].id if len(rows) == limit else None, []
    for row in rows:
        by = f" (ruled by {text(row.decided_by)})" if row.decided_by else ""
        lines.append(f"{row.id}  {row.captured_at:%Y-%m-%d %H:%M}  {row.kind:<12}  {text(row.url)}{by}")
        lines.append(f"      {one_line(row.evidence or '')}")
    lines += [] if rows else ["no capture is left out"]
    lines += [] if following is None else [f"go on with: holdfast noise list --before {following}"]
    lines += ["some captures are not classified yet; run: holdfast noise judge"] if is_waiting else []
    return Done({"noise": rows, "next_before": following, "judged": not is_waiting}, lines)


@command(app_command, example='noise mark 4194305 --as block_page --reason "a firewall answered"')
def mark(
    archive: Archive,
    subject: Subject,
    kind: Annotated[NoiseKind, typer.Option("--as", help="What it shows instead of its page.")],
    reason: Reason,
) -> Done:
    """Rule that a capture, or a page with all its captures, shows something else; it overrides the classifier.

    Of a page it holds for captures to come, too. Replay, exports and CDX show it as before.
    """
    return _ruled(archive, subject, kind, reason)


@command(app_command, example='noise clear https://example.org/private --reason "an article"')
def clear(archive: Archive, subject: Subject, reason: Reason) -> Done:
    """Rule that a capture, or a page with all its captures, shows the page; it overrides the classifier."""
    return _ruled(archive, subject, None, reason)


def _ruled(archive: Archive, subject: str, kind: NoiseKind | None, reason: str) -> Done:
    done = set_label(archive.database, archive.clock, subject, kind=kind, reason=reason, home=archive.home)
    what = "shows its page" if done.noise is None else f"is {done.noise.value}"
    return Done(done, f"{done.subject}: {what}, {counted(done.snapshots, 'capture')}")


@command(app_command, example="noise judge")
def judge(archive: Archive) -> Done:
    """Classify indexed captures that were not classified yet; workers and the server do this by themselves.

    Acts at once: it writes derived data, and manual labels stay in force.
    """
    done = judge_pending(archive.database, archive.clock)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(done.marked.items())) or "none is noise"
    cleared = f", {done.cleared:,} cleared" if done.cleared else ""
    sentence = f"{counted(done.captures, 'capture')} judged: {kinds}{cleared}"
    return Done(picked(done, "captures marked cleared"), sentence)
