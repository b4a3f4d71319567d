"""A Redis of one's own for a test: on a socket in a folder, with nothing kept on disk."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests import needs, patience


@contextmanager
def running_redis(folder: Path) -> Iterator[str]:
    """Run a server for the length of a block; give its address."""
    program, place = needs.program("redis-server"), folder / "redis.sock"
    arguments = ("--port", "0", "--unixsocket", str(place), "--save", "", "--appendonly", "no", "--dir", str(folder))
    with subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL) as process:
        try:
            _await_answer(str(place))
            yield f"unix://{place}"
        finally:
            process.kill()


def _await_answer(place: str) -> None:
    until = time.monotonic() + patience.deadline(10)
    with redis.Redis(unix_socket_path=place) as client:
        while True:
            try:
                client.ping()
                return
            except redis.ConnectionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
