"""The process of one operation: `python -m holdfast.operations.process ID ATTEMPT`, started by a server process."""

from __future__ import annotations

import os
import sys
import threading

from holdfast import log
from holdfast.clock import SystemClock
from holdfast.errors import Unavailable
from holdfast.operations.long_running import HeldOperation
from holdfast.operations.running import run_operation
from holdfast.operations.works import WORKS
from holdfast.processes.runfile import step_back
from holdfast.wiring import begin_program


def main() -> None:
    settings = begin_program()
    step_back(settings.index.nice)
    stopping = threading.Event()

    def listen() -> None:
        # Bypass Python's buffer: a waiting thread would hold its lock when the process ends.
        while os.read(0, 4096):
            pass
        stopping.set()

    threading.Thread(target=listen, name="end of the server", daemon=True).start()
    held = HeldOperation(int(sys.argv[1]), int(sys.argv[2]))
    try:
        run_operation(settings, SystemClock(), held, WORKS, stopping=stopping)
    except Unavailable as exc:
        # A serving process starts it again after a pause.
        log.get().error("operation.waits", operation=held.operation_id, attempt=held.attempt, message=str(exc))
        sys.exit(1)


if __name__ == "__main__":
    main()
