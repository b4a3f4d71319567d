"""`holdfast noise`: captures that show something else than their page: what was found, and what a person rules."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import counted, one_line, text
from holdfast.cli.parameters import AsJson, Home, command_group
from holdfast.cli.snapshot import Subject
from holdfast.noise import queries
from holdfast.noise.chore import judge_pending
from holdfast.noise.queries import ListedNoise
from holdfast.noise.rulings import GivenRuling, rule
from holdfast.noise.words import NoiseKind
from holdfast.sources.queries import find_source
from holdfast.wiring.archive import open_archive

app_command = command_group(
    "Captures that show something else than their page: list them, mark one, clear one. Example: holdfast noise list"
)
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the audit log.")]


@app_command.command("list")
def list_noise(
    source: Annotated[str | None, typer.Option("--source", help="Only this source.", metavar="CODE")] = None,
    kind: Annotated[NoiseKind | None, typer.Option("--as", help="Only these.")] = None,
    before: Annotated[int | None, typer.Option("--before", min=0, help="Only snapshots with a smaller id.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Rows to print.")] = 50,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List captures that are left out of results, changes and coverage, with the evidence; the newest ids first.

    Example: holdfast noise list --source example-org --as login_wall
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        source_id = None if source is None else find_source(session, source).id
        rows = queries.listed(session, source_id=source_id, kind=kind, before=before, limit=limit)
        is_waiting = queries.is_waiting(session)
    following = rows[-1].id if len(rows) == limit else None
    if json:
        found = [noise_object(row) for row in rows]
        print(jsonlib.dumps({"noise": found, "next_before": following, "judged": not is_waiting}))
        return
    for row in rows:
        by = f" (ruled by {text(row.decided_by)})" if row.decided_by else ""
        print(f"{row.id}  {row.captured_at:%Y-%m-%d %H:%M}  {row.kind:<12}  {text(row.url)}{by}")
        print(f"      {one_line(row.evidence or '')}")
    if not rows:
        print("no capture is left out")
    if following is not None:
        print(f"go on with: holdfast noise list --before {following}")
    if is_waiting:
        print("some captures are not judged yet; run: holdfast noise judge")


def noise_object(row: ListedNoise) -> dict[str, Any]:
    """Return a capture that is noise, as JSON can hold it."""
    moments = {"captured_at": row.captured_at, "decided_at": row.decided_at}
    return row._asdict() | {name: at.isoformat() if at is not None else None for name, at in moments.items()}


@app_command.command()
def mark(
    subject: Subject,
    kind: Annotated[NoiseKind, typer.Option("--as", help="What it shows instead of its page.")],
    reason: Reason,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Rule that a capture, or a page with all its captures, shows something else; it wins over what is found.

    Of a page it holds for captures to come, too. Replay, exports and CDX show it as before.

    Example: holdfast noise mark 4194305 --as block_page --reason "a firewall answered"
    """
    with open_archive(config.load(home=home)) as archive:
        _say(rule(archive.database, archive.clock, subject, kind=kind, reason=reason, home=archive.home), as_json=json)


@app_command.command()
def clear(subject: Subject, reason: Reason, json: AsJson = False, home: Home = None) -> None:
    """Rule that a capture, or a page with all its captures, shows the page; it wins over what is found.

    Example: holdfast noise clear https://example.org/private --reason "an article"
    """
    with open_archive(config.load(home=home)) as archive:
        _say(rule(archive.database, archive.clock, subject, kind=None, reason=reason, home=archive.home), as_json=json)


def _say(done: GivenRuling, *, as_json: bool) -> None:
    if as_json:
        print(jsonlib.dumps({"subject": done.subject, "noise": done.kind, "snapshots": done.snapshots}))
        return
    what = "shows its page" if done.kind is None else f"is {done.kind.value}"
    typer.echo(f"{done.subject}: {what}, {counted(done.snapshots, 'capture')}")


@app_command.command()
def judge(json: AsJson = False, home: Home = None) -> None:
    """Judge what was indexed and not looked at yet; workers and the server do this by themselves.

    Acts at once: what it writes is derived, and a ruling stands.
    Example: holdfast noise judge
    """
    with open_archive(config.load(home=home)) as archive:
        done = judge_pending(archive.database, archive.clock)
    if json:
        print(jsonlib.dumps({"captures": done.captures, "marked": dict(done.marked), "cleared": done.cleared}))
        return
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(done.marked.items())) or "none is noise"
    typer.echo(
        f"{counted(done.captures, 'capture')} judged: {kinds}" + (f", {done.cleared:,} cleared" if done.cleared else "")
    )
