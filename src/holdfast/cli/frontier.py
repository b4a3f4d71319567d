"""`holdfast frontier`: what is queued, leases that were not renewed, domains that could not be reached."""

from __future__ import annotations

import json as jsonlib
from dataclasses import asdict
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.latest import find_execution
from holdfast.cli.logs import configure_log
from holdfast.cli.options import AsJson, ExecutionId, Home
from holdfast.cli.wording import counted
from holdfast.db.audits import append_event
from holdfast.frontier import OpenAttempt
from holdfast.urls import parse_seed
from holdfast.wiring import open_ground
from holdfast.worker.recovery import recover as clean_up

app_command = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True,
    help="Look at what is queued. Example: holdfast frontier stats",
)  # fmt: skip


@app_command.command()
def stats(execution: ExecutionId = None, json: AsJson = False, home: Home = None) -> None:
    """Count what is pending, in flight, completed and failed.

    Example: holdfast frontier stats 3 --json
    """
    with open_ground(config.load(home=home)) as ground:
        if execution is not None:
            find_execution(ground, execution)
        found = ground.frontier.stats(execution)
    if json:
        print(jsonlib.dumps({**asdict(found), "counts": dict(found.counts)}))
        return
    for name in ("pending", "leased_domains", "completed", "failed", "ruled_out", "domains"):
        print(f"{getattr(found, name):>12,}  {name.replace('_', ' ')}")


@app_command.command(name="list")
def list_open(
    execution: ExecutionId = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to print.")] = 50,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List open attempts in the order in which they would be asked.

    Example: holdfast frontier list 3 --limit 20
    """
    with open_ground(config.load(home=home)) as ground:
        one = find_execution(ground, execution)
        rows = list(ground.frontier.list_open(one, limit=limit))
    if json:
        print(jsonlib.dumps({"urls": [_object(row) for row in rows]}))
        return
    for row in rows:
        when = f"  not before {row.scheduled_for:%H:%M:%S}" if row.scheduled_for else ""
        print(f"{row.priority}  depth {row.depth}  try {row.number}  {row.kind.value:<9}  {row.url}{when}")
    if not rows:
        print(f"execution {one}: nothing is queued")


@app_command.command()
def recover(
    minutes: Annotated[
        float | None, typer.Option(min=0.0, help="Age of an expired lease that is freed; 15 if not set otherwise.")
    ] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Free what dead processes of this machine held, and leases that expired long ago anywhere.

    Acts at once: it frees only what no live process holds.
    Example: holdfast frontier recover --minutes 15
    """
    configure_log(config.load(home=home), unless_set="ERROR")
    with open_ground(config.load(home=home)) as ground:
        cleaned = clean_up(ground)
        age_s = ground.settings.lease.recover_s if minutes is None else minutes * 60.0
        expired = ground.frontier.recover(older_than_s=age_s)
    if json:
        print(jsonlib.dumps({"recovered": cleaned.domains + expired, "processes": cleaned.owners,
                             "files": cleaned.repaired, "orphan_records": cleaned.orphans}))  # fmt: skip
        return
    print(
        f"{counted(cleaned.domains + expired, 'domain')} freed, "
        f"{counted(len(cleaned.repaired), 'WARC file')} repaired and sealed"
    )


@app_command.command()
def reset(
    domains: Annotated[list[str], typer.Argument(help="Hosts or addresses, for example example.org:8080.")],
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Forget that domains could not be reached, so that the next crawl asks them at once.

    After half an hour of failures (robots.txt answers 500, connections are refused) a domain is left alone for an hour,
    by every crawl; also after a server's Retry-After. This lifts it, and is written to the audit log.

    Example: holdfast frontier reset example.org
    """
    configure_log(config.load(home=home), unless_set="ERROR")
    names = [parse_seed(domain).domain for domain in domains]
    with open_ground(config.load(home=home)) as ground:
        lifted = {name: ground.frontier.reset(name) for name in names}
        with ground.hot.write() as tx:
            for name in names:
                append_event(tx, ground.clock, action="domain.reset", subject=name, detail={"lifted": lifted[name]})
    if json:
        print(jsonlib.dumps({"domains": [{"domain": name, "lifted": done} for name, done in lifted.items()]}))
        return
    for name, done in lifted.items():
        print(f"{name}: " + ("it may be asked again" if done else "nothing was in the way"))


def _object(row: OpenAttempt) -> dict[str, Any]:
    fields = asdict(row)
    fields["kind"] = row.kind.value
    fields["created_at"] = row.created_at.isoformat()
    fields["scheduled_for"] = row.scheduled_for.isoformat() if row.scheduled_for else None
    return fields
