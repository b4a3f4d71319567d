"""`python -m holdfast.demo ADDRESS PORT NAMES_PORT`: the sites of the demo as a part that `holdfast serve` can run."""

from __future__ import annotations

import signal
import sys

from holdfast.demo.server import DemoWeb, WebPlace


def main() -> None:
    """Serve until TERM or Ctrl-C."""
    address, port, names_port = sys.argv[1:]
    ends = {signal.SIGINT, signal.SIGTERM}
    # Blocked before the threads begin, so that they inherit it and the signal waits for this one.
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    with DemoWeb(WebPlace(address, int(port), int(names_port))):
        signal.sigwait(ends)


if __name__ == "__main__":
    main()
