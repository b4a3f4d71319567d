"""`holdfast report`: the report of an execution. Every discovered URL has one current outcome and its reason."""

from __future__ import annotations

import importlib
import json as jsonlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from itertools import chain
from typing import Annotated, Any

import typer

from holdfast.cli.formatting import counted, text
from holdfast.cli.parameters import AsJson, ExecutionId
from holdfast.cli.printing import Done, runnable
from holdfast.errors import NotFound
from holdfast.frontier import Summary
from holdfast.frontier.queries import summary
from holdfast.jobs import execution_queries
from holdfast.jobs.endings import ending_text, shortfall_text
from holdfast.jobs.views.run_report import csv_pieces, run_report, run_urls
from holdfast.jobs.views.status import ExecutionStatus, read_status
from holdfast.records import Spelling, encode
from holdfast.wiring import Runtime, open_runtime

_TOP = 15


@runnable(opened=open_runtime, example="report --all-runs --failed --csv > failed.csv")
def report(
    runtime: Runtime,
    execution: ExecutionId = None,
    urls: Annotated[bool, typer.Option("--urls", help="List every URL and outcome, a JSON object a line.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="List every URL with its outcome as CSV.")] = False,
    all_runs: Annotated[bool, typer.Option("--all-runs", help="List URLs of all runs, the newest run first.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="List only URLs that failed.")] = False,
    reason: Annotated[str | None, typer.Option(help="List only URLs with this reason.")] = None,
    source: Annotated[str | None, typer.Option(help="With --all-runs: only of this source.")] = None,
    json: AsJson = False,
) -> Done | None:
    """Print counts by outcome, status, type, domain and depth, and excluded or noise captures by reason.

    Example: holdfast report 3 --csv > urls.csv
    """
    if csv + urls + json > 1:
        raise typer.BadParameter("choose one of --urls, --csv and --json")
    if (all_runs or failed or reason) and not (csv or urls):
        raise typer.BadParameter("--all-runs, --failed and --reason are for --csv and --urls")
    if source and not all_runs:
        raise typer.BadParameter("--source is for --all-runs")
    if all_runs:
        with runtime.raw_db.read() as tx:
            runs = execution_queries.executions_of(tx, source)
        _list(runtime, runs, failed=failed, reason=reason, as_csv=csv)
        return None
    # The report is that of the frontier: a run that continued another's shows both together.
    status = read_status(runtime.raw_db, runtime.clock, find_execution(runtime, execution))
    if csv or urls:
        _list(runtime, [status.frontier_id], failed=failed, reason=reason, as_csv=csv)
        return None
    noise = _noise(runtime, status)
    if json:
        found = run_report(runtime.raw_db, runtime.clock, status.execution_id)
        return Done({**encode(found, spelling=Spelling.SNAKE), "noise": noise})
    lines = [*_lines(status, summary(runtime.raw_db, status.frontier_id))]
    return Done(None, [*lines, *_table("captures that show no page, by reason", noise)])


def _noise(runtime: Runtime, status: ExecutionStatus) -> dict[str, int]:
    # Import them by name: the lists of URLs need neither SQLAlchemy nor this.
    engine, queries = importlib.import_module("holdfast.db.engine"), importlib.import_module("holdfast.noise.queries")
    with closing(engine.Database(runtime.settings.database)) as database, database.read() as session:
        return dict(queries.counts_of(session, status.execution_id))


def find_execution(runtime: Runtime, wanted: int | None) -> int:
    """Return the given execution, or the newest one; raise NotFound without any."""
    with runtime.raw_db.read() as tx:
        # In an empty archive the error says how to start, whatever number was typed.
        ids = execution_queries.latest_executions(tx, limit=1)
        found = execution_queries.execution(tx, wanted) if wanted is not None else None
    if not ids:
        raise NotFound("no executions yet; start one with: holdfast crawl https://example.org")
    if wanted is not None and found is None:
        raise NotFound(f"there is no execution {wanted}; see them with: holdfast status")
    return ids[0] if wanted is None else wanted


def _list(runtime: Runtime, runs: Iterable[int], *, failed: bool, reason: str | None, as_csv: bool) -> None:
    # Stream the rows: a crawl has millions.
    slices = run_urls(lambda: nullcontext(runtime.raw_db), runs, failed=failed, reason=reason)
    if as_csv:
        sys.stdout.writelines(csv_pieces(slices))
        return
    for fields in chain.from_iterable(slices):
        print(jsonlib.dumps(fields))


def _lines(status: ExecutionStatus, found: Summary) -> Iterator[str]:
    ended = ending_text(status.state, status.reason)
    yield f"execution {status.execution_id} {ended}: {found.total:,} URLs, {found.open:,} open"
    for word, count in status.shortfalls.items():
        yield f"  fell short: {shortfall_text(word, count)}"
    if found.redirects:
        yield f"  {counted(found.redirects, 'redirect')} to another address, not counted as pages"
    for place in status.config.get("landing") or ():
        yield f"  a seed led to {text(place)}: its host is in scope too"
    if status.frontier_id != status.execution_id:
        yield f"  it went on with the frontier of execution {status.frontier_id}: the counts are of both together"
    omitted = {f"{outcome}: {reason}": n for (outcome, reason), n in found.reasons.items() if outcome != "success"}
    left_out = {f"{rule}  {host}": n for (rule, host), n in found.exclusions.items()}
    for title, counts in (
        ("by outcome", found.outcomes),
        ("by status", found.statuses),
        ("by type", found.media_types),
        ("by domain", found.domains),
        ("by depth", found.depths),
        ("omitted, by reason", omitted),
        ("links left out, by rule and host", left_out),
    ):
        yield from _table(title, counts)


def _table(title: str, counts: Mapping[Any, int]) -> Iterator[str]:
    if not counts:
        return
    yield f"\n{title}"
    rows = sorted(counts.items(), key=lambda row: (-row[1], str(row[0])))
    for name, count in rows[:_TOP]:
        yield f"  {count:>10,}  {text(name)}"
    if len(rows) > _TOP:
        yield f"  {sum(count for _, count in rows[_TOP:]):>10,}  in {len(rows) - _TOP} more"
