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
from holdfast.errors import Unavailable
from holdfast.jobs.status import read_status
from holdfast.wiring import Ground, open_ground
from holdfast.worker.stopping import ask_to_stop, still_held


def stop(
    execution: ExecutionId = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Discard what was captured.")] = False,
    wait: Annotated[float, typer.Option(min=0.0, help="Seconds to wait for the end.")] = 60.0,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Ask running crawls to stop: they finish what is under way, seal and keep it. `--cancel` discards instead.

    A crawl ends where it runs, on whatever machine: this command leaves it a word, and waits.

    Example: holdfast stop 3
    """
    configure_log(config.load(home=home), unless_set="ERROR")
    with open_ground(config.load(home=home)) as ground:
        ids = ask_to_stop(ground, execution_id=execution, cancel=cancel)
        states = _wait(ground, ids, wait)
    if json:
        print(jsonlib.dumps({"executions": states}))
    for execution_id, state in states.items():
        if not json:
            print(f"execution {execution_id}: {state}")


def _wait(ground: Ground, ids: list[int], seconds: float) -> dict[int, str]:
    """Return how the executions stand once all have ended; Unavailable says who is to end those that have not."""
    clock = SystemClock()
    until = clock.monotonic() + seconds
    while held := still_held(ground, ids):
        may_end = any(one.holder is not None and not one.is_silent for one in held)
        if not may_end or clock.monotonic() >= until:
            raise Unavailable("; ".join(one.sentence() for one in held))
        time.sleep(0.2)
    return {one: read_status(ground.hot, ground.clock, one).state for one in ids}


app_command = stop
