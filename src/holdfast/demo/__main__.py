"""`python -m holdfast.demo ADDRESS PORT NAMES_PORT`: serves the demo's sites; `holdfast serve` can run it."""

from __future__ import annotations

import signal
import sys

from holdfast.demo.server import DemoWeb


def main() -> None:
    address, port, names_port = sys.argv[1:]
    ends = {signal.SIGINT, signal.SIGTERM}
    # Blocked before the threads begin, so that they inherit it and the signal waits for this one.
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    with DemoWeb((address, int(port), int(names_port))):
        signal.sigwait(ends)


if __name__ == "__main__":
    main()
