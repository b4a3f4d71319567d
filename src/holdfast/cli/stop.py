"""`holdfast stop`: drain a running crawl and keep what it has, or discard it."""

from __future__ import annotations

import json as jsonlib
import time
from typing import Annotated

import typer

from holdfast import config
from holdfast.cli.logs import configure_log
from holdfast.cli.options import AsJson, ExecutionId, Home
from holdfast.clock import SystemClock
from holdfast.coordination.owners import is_working
from holdfast.errors import Unavailable
from holdfast.jobs import executions
from holdfast.jobs.status import read_status
from holdfast.types import Outcome
from holdfast.wiring import Ground, open_ground
from holdfast.worker.discard import discard
from holdfast.worker.recovery import recover


def stop(
    execution: ExecutionId = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Discard what was captured.")] = False,
    wait: Annotated[float, typer.Option(min=0.0, help="Seconds to wait for the end.")] = 60.0,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Ask running crawls to stop: they finish what is under way, seal and keep it. `--cancel` discards instead.

    Example: holdfast stop 3
    """
    configure_log(config.load(home=home), unless_set="ERROR")
    with open_ground(config.load(home=home)) as ground:
        ids = executions.request_stop(ground.hot, execution_id=execution, cancel=cancel)
        for execution_id in ids:
            if not is_working(ground.hot, execution_id=execution_id, kind="supervisor", folder=ground.run_folder):
                _end_here(ground, execution_id, cancel=cancel)
        states = _wait(ground, ids, wait)
    if json:
        print(jsonlib.dumps({"executions": states}))
    for execution_id, state in states.items():
        if not json:
            print(f"execution {execution_id}: {state}")


def _end_here(ground: Ground, execution_id: int, *, cancel: bool) -> None:
    """End an execution whose processes are gone already."""
    recover(ground)
    if cancel:
        while ground.frontier.close_rest(execution_id, outcome=Outcome.EXCLUDED, reason="cancelled"):
            pass
        discard(ground, execution_id)
    state = "cancelled" if cancel else "stopped"
    executions.end(ground.hot, ground.clock, executions.Ending(execution_id, state, "stop requested", 0.0))


def _wait(ground: Ground, ids: list[int], seconds: float) -> dict[int, str]:
    clock = SystemClock()
    until = clock.monotonic() + seconds
    while True:
        states = {one: read_status(ground.hot, ground.clock, one).state for one in ids}
        if "running" not in states.values():
            return states
        if clock.monotonic() >= until:
            raise Unavailable("still draining; look again with: holdfast status")
        time.sleep(0.2)


app_command = stop
