"""The process of one operation: `python -m holdfast.operations.process ID JOB TOKEN EPOCH`, started by a worker."""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress
from typing import Any

from holdfast import log
from holdfast.clock import SystemClock
from holdfast.errors import Unavailable
from holdfast.jobs.schedule_queries import LeaseClaim
from holdfast.operations.running import HeldOperation, run_operation
from holdfast.operations.works import WORKS
from holdfast.processes.child_process import when_input_ends
from holdfast.processes.runfile import step_back
from holdfast.wiring import begin_program


def main() -> None:
    settings = begin_program()
    step_back(settings.index.nice)
    # Only our lines go to the worker: whatever else writes to standard output writes to standard error.
    worker = os.dup(1)
    os.dup2(2, 1)
    stopping = threading.Event()
    when_input_ends(stopping.set)
    operation_id, job_id, token, epoch = sys.argv[1:5]
    held = HeldOperation(int(operation_id), LeaseClaim(int(job_id), token, int(epoch)))

    def tell(told: dict[str, Any]) -> None:
        # Ignore that the worker is dead: the end of standard input stops this process.
        with suppress(BrokenPipeError):
            os.write(worker, json.dumps(told, default=str).encode() + b"\n")

    try:
        run_operation(settings, SystemClock(), held, WORKS, tell=tell, stopping=stopping)
    except Unavailable as exc:
        # The worker starts it again after a rest.
        log.get().error("operation.waits", operation=held.operation_id, message=str(exc))
        sys.exit(1)


if __name__ == "__main__":
    main()
