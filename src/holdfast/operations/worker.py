"""A worker for operations alone: `python -m holdfast.operations.worker`, started by a server without one.

It runs the operations that wait, two at a time, until none is left or its standard input is closed.
"""

from __future__ import annotations

from holdfast.crawl.stopping import obeying_signals
from holdfast.operations.runner import ALL_RUNNERS
from holdfast.processes.child_process import when_input_ends
from holdfast.wiring import begin_program
from holdfast.worker.loop import RunnerTable, WorkerOptions, work


def main() -> None:
    settings = begin_program()
    with obeying_signals() as stops:
        when_input_ends(lambda: stops.ask(1))
        work(settings, WorkerOptions(once=True, concurrency=0, schedules=False), stops, RunnerTable(ALL_RUNNERS))


if __name__ == "__main__":
    main()
