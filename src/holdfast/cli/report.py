"""`holdfast report`: the account of an execution. Every URL met has one current outcome and its reason."""

from __future__ import annotations

import csv as csvlib
import json as jsonlib
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.latest import find_execution
from holdfast.cli.options import AsJson, ExecutionId, Home
from holdfast.frontier import Account, Summary
from holdfast.frontier.queries import account, summary
from holdfast.jobs.reading import shortfall_text
from holdfast.jobs.status import Status, read_status
from holdfast.wiring import open_ground

_TOP = 15


def report(
    execution: ExecutionId = None,
    urls: Annotated[bool, typer.Option("--urls", help="List every URL and outcome, a JSON object a line.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="List every URL with its outcome as CSV.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Print counts by outcome, status, type, domain and depth, and what was left out, by reason.

    Example: holdfast report 3 --csv > urls.csv
    """
    if csv + urls + json > 1:
        raise typer.BadParameter("choose one of --urls, --csv and --json")
    with open_ground(config.load(home=home)) as ground:
        status = read_status(ground.hot, ground.clock, find_execution(ground, execution))
        if csv:
            _write_csv(account(ground.hot, status.frontier_id))
        elif urls:
            for row in account(ground.hot, status.frontier_id):
                print(jsonlib.dumps(_row(row)))
        elif json:
            print(jsonlib.dumps({**_ending(status), **as_object(summary(ground.hot, status.frontier_id))}))
        else:
            _print(status, summary(ground.hot, status.frontier_id))


def _ending(status: Status) -> dict[str, Any]:
    """Return how a run ended and what it fell short of, for `--json`."""
    return {
        "execution": status.execution_id,
        "state": status.state,
        "reason": status.reason,
        "shortfalls": status.shortfalls,
        "sentence": status.sentence,
        "research_ready": status.rule.is_ready if status.sentence is not None else None,
    }


def _row(row: Account) -> dict[str, Any]:
    fields = row._asdict()
    fields["outcome"] = row.outcome.value if row.outcome is not None else "open"
    fields["kind"] = row.kind.value
    fields["completed_at"] = row.completed_at.isoformat() if row.completed_at else None
    return fields


def _write_csv(rows: Iterable[Account]) -> None:
    out = csvlib.writer(sys.stdout, lineterminator="\n")
    out.writerow(Account._fields)
    for row in rows:
        out.writerow([_cell(value) for value in _row(row).values()])


def _cell(value: Any) -> Any:
    """Return a value that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def as_object(found: Summary) -> dict[str, Any]:
    """Return the summary for `--json`."""
    return {
        "total": found.total, "open": found.open, "bytes": found.wire_bytes, "outcomes": dict(found.outcomes),
        "reasons": _pairs(found.reasons, "outcome", "reason"), "kinds": _pairs(found.kinds, "kind", "outcome"),
        "statuses": {str(k): v for k, v in found.statuses.items()}, "types": dict(found.media_types),
        "domains": dict(found.domains), "depths": {str(k): v for k, v in found.depths.items()},
        "excluded": _pairs(found.exclusions, "rule", "host"),
    }  # fmt: skip


def _pairs(counts: Mapping[tuple[str, str], int], first: str, second: str) -> list[dict[str, Any]]:
    return [{first: a, second: b, "count": count} for (a, b), count in counts.items()]


def _print(status: Status, found: Summary) -> None:
    ended = f" ({status.reason})" if status.reason else ""
    print(f"execution {status.execution_id} {status.state}{ended}: {found.total:,} URLs, {found.open:,} open")
    for word, count in status.shortfalls.items():
        print(f"  fell short: {shortfall_text(word, count)}")
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
        print(f"  {count:>10,}  {name}")
    if len(rows) > _TOP:
        print(f"  {sum(count for _, count in rows[_TOP:]):>10,}  in {len(rows) - _TOP} more")


app_command = report
