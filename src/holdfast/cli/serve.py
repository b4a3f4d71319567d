"""`holdfast serve`: everything that one machine needs, under one supervisor."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from holdfast import config, log
from holdfast.cli.parameters import Home, Host, Port
from holdfast.cli.runner import example
from holdfast.clock import SystemClock
from holdfast.db.schema import make_home
from holdfast.processes.part_process import ServicePart
from holdfast.processes.part_states import alone_at
from holdfast.processes.runfile import own_command
from holdfast.processes.supervisor import ServiceSupervisor
from holdfast.sources.contact import HELP_WITHOUT_OPTION, check_contact

_DRAIN_S = 30.0


@example("serve --port 8060")
def serve(
    host: Host = None,
    port: Port = None,
    processes: Annotated[int | None, typer.Option(min=1, max=64, help="API processes; handed to holdfast api.")] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Worker processes, each runs jobs.")] = 1,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Run no jobs here: workers of other machines do.")
    ] = False,
    drain_seconds: Annotated[
        float, typer.Option(min=1.0, max=3600.0, help="Longest time that a stop may take.")
    ] = _DRAIN_S,
    home: Home = None,
) -> None:
    """Serve the archive and run its jobs: API, scheduler, worker and upkeep, each a supervised process.

    The first Ctrl-C (or TERM) drains: workers release their crawls, then the API ends. The second ends immediately.
    """
    settings = config.load(home=home)
    log.configure(settings.log_level, as_json=not sys.stderr.isatty())
    variables = {"HOLDFAST_HOME": str(settings.home.resolve())}
    if settings.contact:
        check_contact(settings.contact, HELP_WITHOUT_OPTION)  # reject a wrong one before anything starts
    for name, value in (("HOLDFAST_API_HOST", host), ("HOLDFAST_API_PORT", port)):
        if value is not None:
            variables[name] = str(value)
    parts = parts_of(workers=0 if no_worker else workers, processes=processes)
    # Write only the line with the address to standard output: scripts wait for it.
    code = supervise(
        parts,
        settings.home,
        variables=variables,
        drain_s=drain_seconds,
        on_ready=lambda address: print(f"serving {address}", flush=True),
    )
    if code:
        raise typer.Exit(code)


def parts_of(*, workers: int, processes: int | None = None) -> list[ServicePart]:
    """Return the processes to run: the API, which also does the upkeep of search and changes, and any job
    processes.
    """
    several = () if processes is None else ("--processes", str(processes))
    parts = [ServicePart(name="api", command=own_command("api", *several), is_front=True)]
    if workers:
        parts.append(ServicePart(name="scheduler", command=own_command("start-scheduler")))
    for number in range(1, workers + 1):
        name = "worker" if workers == 1 else f"worker-{number}"
        parts.append(ServicePart(name=name, command=own_command("start-worker", "--no-scheduler")))
    return parts


def supervise(
    parts: list[ServicePart],
    home: Path,
    *,
    variables: Mapping[str, str],
    drain_s: float = _DRAIN_S,
    on_ready: Callable[[str], None],
) -> int:
    """Run the parts until a signal and return the exit code; raise Conflict if another supervisor uses this
    directory.
    """
    make_home(home)
    with alone_at(home):
        return ServiceSupervisor(
            parts,
            home=home,
            clock=SystemClock(),
            drain_s=drain_s,
            environment={**os.environ, **variables},
            on_ready=on_ready,
        ).run()
