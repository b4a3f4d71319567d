"""`holdfast status`: how executions stand, from another terminal or afterwards."""

from __future__ import annotations

import json as jsonlib
import time
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli import feed_words, standing
from holdfast.cli.display import Display, duration, line, outcomes, size
from holdfast.cli.options import AsJson, ExecutionId, Home
from holdfast.cli.wording import counted
from holdfast.clock import Clock
from holdfast.db.hot import Hot
from holdfast.feeds.standing.standing import read_feed_standing
from holdfast.jobs.live import queries
from holdfast.jobs.standing.standing import read_standing
from holdfast.jobs.status import Status, is_abandoned, read_status
from holdfast.wiring import Ground, open_ground

_LOOK_S = 0.5


def status(
    execution: ExecutionId = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep showing it until it ends.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Show running and recent executions, or one of them; and what failed, what waits and why, and who works.

    Example: holdfast status --watch
    """
    with open_ground(config.load(home=home)) as ground:
        hot, clock = ground.hot, ground.clock
        if execution is not None or watch:
            one = execution if execution is not None else _latest(hot)
            shown = _follow(hot, clock, one) if watch else read_status(hot, clock, one)
            print(jsonlib.dumps(_as_seen(ground, shown)) if json else describe(shown) + _abandoned(ground, shown))
            return
        with hot.read() as tx:
            ids = queries.latest_executions(tx, limit=10)
        found = [read_status(hot, clock, execution_id) for execution_id in ids]
        overall = read_standing(hot, clock, ground.settings, run_folder=ground.run_folder)
        objects = [_as_seen(ground, one) for one in found] if json else []
        lines = [] if json else [describe(one) + _abandoned(ground, one) for one in found]
        feeds = read_feed_standing(hot, clock, ground.settings.feeds)
    if json:
        told = {"executions": objects, "jobs": standing.as_object(overall), "feeds": feed_words.as_object(feeds)}
        print(jsonlib.dumps(told))
        return
    if not found:
        print("no executions yet; start one with: holdfast crawl https://example.org")
    print("\n".join([*lines, *standing.lines(overall),
                     *feed_words.lines(feeds)]))  # fmt: skip


def _latest(hot: Hot) -> int:
    with hot.read() as tx:
        ids = queries.latest_executions(tx, limit=1, running=True) or queries.latest_executions(tx, limit=1)
    return ids[0] if ids else 0


def _follow(hot: Hot, clock: Clock, execution_id: int) -> Status:
    display = Display(clock)
    with display.running():
        while (shown := read_status(hot, clock, execution_id)).state == "running":
            display.show(shown)
            time.sleep(_LOOK_S)
    return shown


def _is_abandoned(ground: Ground, shown: Status) -> bool:
    return shown.state == "running" and is_abandoned(
        ground.hot, ground.clock, shown.execution_id, folder=ground.run_folder
    )


def _as_seen(ground: Ground, shown: Status) -> dict[str, Any]:
    """Return an execution for `--json`, with whether a process works on it as far as can be told from here."""
    return {**as_object(shown), "is_abandoned": _is_abandoned(ground, shown)}


def _abandoned(ground: Ground, shown: Status) -> str:
    """Return what to say of a crawl whose processes are gone without a word: a kill, or a machine without power."""
    if not _is_abandoned(ground, shown):
        return ""
    stop = f"holdfast stop {shown.execution_id}"
    return f"\n       no process works on it: the same crawl command resumes it, {stop} ends it"


def describe(shown: Status) -> str:
    """Return an execution as a few lines."""
    head = f"{shown.execution_id:>5}  {shown.source}  {shown.state}" + (f" ({shown.reason})" if shown.reason else "")
    if shown.state == "running":
        slow = [f"\n       slow: {row['domain']} {row['seconds']} s, {row['why']}" for row in shown.slow]
        return f"{head}\n       {line(shown, shown.pages_s)}" + "".join(slow)
    told = f"\n       {shown.sentence}" if shown.shortfalls else ""
    again = f"; tried again at {shown.retry_at:%Y-%m-%d %H:%M} UTC" if shown.retry_at and told else ""
    return (
        f"{head}{told}{again}\n       {counted(shown.pages, 'page')}, {counted(shown.requests, 'request')}, "
        f"{size(shown.bytes)}, "
        f"{duration(shown.run_seconds)}, {shown.queue:,} queued; {outcomes(shown)}"
    )


def as_object(shown: Status) -> dict[str, Any]:
    """Return an execution for `--json`."""
    return {
        "execution": shown.execution_id, "source": shown.source, "state": shown.state, "reason": shown.reason,
        "shortfalls": shown.shortfalls, "sentence": shown.sentence, "error": shown.error,
        "research_ready": shown.rule.is_ready if shown.sentence is not None else None,
        "retry_at": shown.retry_at.isoformat() if shown.retry_at else None,
        "condition": shown.condition if shown.state == "running" else None,
        "trouble": shown.trouble, "pages": shown.pages, "pages_s": shown.pages_s,
        "requests": shown.requests, "bytes": shown.bytes, "queue": shown.queue,
        "active_domains": shown.active_domains, "outcomes": shown.outcomes,
        "slow": list(shown.slow), "seconds": round(shown.run_seconds, 3), "output_dir": str(shown.output_dir),
        "started_at": shown.started_at.isoformat() if shown.started_at else None,
        "finished_at": shown.finished_at.isoformat() if shown.finished_at else None,
    }  # fmt: skip


app_command = status
