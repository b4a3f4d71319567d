"""`holdfast report`: the account of an execution. Every URL met has one current outcome and its reason."""

from __future__ import annotations

import importlib
import json as jsonlib
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext
from itertools import chain
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import counted, text
from holdfast.cli.parameters import AsJson, ExecutionId, Home
from holdfast.errors import NotFound
from holdfast.frontier import Summary
from holdfast.frontier.queries import summary
from holdfast.jobs import execution_queries
from holdfast.jobs.endings import ending_text, shortfall_text
from holdfast.jobs.views.run_report import run_report
from holdfast.jobs.views.run_urls import csv_pieces, run_urls
from holdfast.jobs.views.status import ExecutionStatus, read_status
from holdfast.wiring import Runtime, open_runtime

_TOP = 15


def report(
    execution: ExecutionId = None,
    urls: Annotated[bool, typer.Option("--urls", help="List every URL and outcome, a JSON object a line.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="List every URL with its outcome as CSV.")] = False,
    all_runs: Annotated[bool, typer.Option("--all-runs", help="List URLs of all runs, the newest run first.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="List only URLs that failed.")] = False,
    reason: Annotated[str | None, typer.Option("--reason", help="List only URLs with this reason.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="With --all-runs: only of this source.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Print counts by outcome, status, type, domain and depth, and what was left out or shows no page, by reason.

    Example: holdfast report 3 --csv > urls.csv
    Example: holdfast report --all-runs --failed --csv > failed.csv
    """
    if csv + urls + json > 1:
        raise typer.BadParameter("choose one of --urls, --csv and --json")
    if (all_runs or failed or reason) and not (csv or urls):
        raise typer.BadParameter("--all-runs, --failed and --reason are for --csv and --urls")
    if source and not all_runs:
        raise typer.BadParameter("--source is for --all-runs")
    with open_runtime(config.load(home=home)) as runtime:
        if all_runs:
            with runtime.raw_db.read() as tx:
                runs = execution_queries.executions_of(tx, source)
            _list(runtime, runs, failed=failed, reason=reason, as_csv=csv)
            return
        # The account is of the frontier: a run that went on with another's shows both together.
        status = read_status(runtime.raw_db, runtime.clock, find_execution(runtime, execution))
        if csv or urls:
            _list(runtime, [status.frontier_id], failed=failed, reason=reason, as_csv=csv)
        elif json:
            found = run_report(runtime.raw_db, runtime.clock, status.execution_id)
            print(jsonlib.dumps({**found, "noise": _noise(runtime, status)}))
        else:
            _print(status, summary(runtime.raw_db, status.frontier_id))
            _table("captures that show no page, by reason", _noise(runtime, status))


def _noise(runtime: Runtime, status: ExecutionStatus) -> dict[str, int]:
    """Return how many captures of the run show something else than their page, by reason."""
    # Loaded by name: the lists of URLs need neither SQLAlchemy nor this.
    counts_of = importlib.import_module("holdfast.noise.queries").counts_of
    engine = importlib.import_module("holdfast.db.engine")
    with closing(engine.Database(runtime.settings.database)) as database, database.read() as session:
        found: dict[str, int] = counts_of(session, status.execution_id)
    return found


def find_execution(runtime: Runtime, wanted: int | None) -> int:
    """Return the execution that is meant: this one, or the newest; NotFound if there is none."""
    with runtime.raw_db.read() as tx:
        # An empty archive is told how to begin, whatever number was typed.
        ids = execution_queries.latest_executions(tx, limit=1)
        found = execution_queries.execution(tx, wanted) if wanted is not None else None
    if not ids:
        raise NotFound("no executions yet; start one with: holdfast crawl https://example.org")
    if wanted is not None and found is None:
        raise NotFound(f"there is no execution {wanted}; see them with: holdfast status")
    return ids[0] if wanted is None else wanted


def _list(runtime: Runtime, runs: Iterable[int], *, failed: bool, reason: str | None, as_csv: bool) -> None:
    # Streamed: a crawl has millions of rows.
    slices = run_urls(lambda: nullcontext(runtime.raw_db), runs, failed=failed, reason=reason)
    if as_csv:
        sys.stdout.writelines(csv_pieces(slices))
        return
    for fields in chain.from_iterable(slices):
        print(jsonlib.dumps(fields))


def _print(status: ExecutionStatus, found: Summary) -> None:
    ended = ending_text(status.state, status.reason)
    print(f"execution {status.execution_id} {ended}: {found.total:,} URLs, {found.open:,} open")
    for word, count in status.shortfalls.items():
        print(f"  fell short: {shortfall_text(word, count)}")
    if found.redirects:
        print(f"  {counted(found.redirects, 'redirect')} to another address, not counted as pages")
    for place in status.config.get("landing") or ():
        print(f"  a seed led to {text(place)}: its host is in scope too")
    if status.frontier_id != status.execution_id:
        print(f"  it went on with the frontier of execution {status.frontier_id}: the counts are of both together")
    _table("outcome", found.outcomes)
    _table("status", found.statuses)
    _table("type", found.media_types)
    _table("domain", found.domains)
    _table("depth", found.depths)
    omitted = {f"{outcome}: {reason}": n for (outcome, reason), n in found.reasons.items() if outcome != "success"}
    _table("omitted, by reason", omitted)
    _table("links left out, by rule and host", {f"{rule}  {host}": n for (rule, host), n in found.exclusions.items()})


def _table(title: str, counts: Mapping[Any, int]) -> None:
    if not counts:
        return
    print(f"\nby {title}" if "," not in title else f"\n{title}")
    rows = sorted(counts.items(), key=lambda row: (-row[1], str(row[0])))
    for name, count in rows[:_TOP]:
        print(f"  {count:>10,}  {text(name)}")
    if len(rows) > _TOP:
        print(f"  {sum(count for _, count in rows[_TOP:]):>10,}  in {len(rows) - _TOP} more")


app_command = report
