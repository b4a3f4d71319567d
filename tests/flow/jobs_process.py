"""Schedulers and workers as processes of their own, on a clock that runs fast: their minute is our second."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from holdfast.config import Settings
from holdfast.errors import LeaseLost, Unavailable
from tests.jobs_bed import DONE, Party, holder

_fork = get_context("fork")
"""A fork is a process like any other and starts in milliseconds; nothing of ours is open across it."""


class FastClock:
    """The time since a moment that all processes know, multiplied."""

    def __init__(self, since: float, factor: float) -> None:
        self._since, self._factor = since, factor

    def now(self) -> datetime:
        """Return the fast wall time."""
        return datetime(2026, 9, 1, tzinfo=UTC) + timedelta(seconds=(time.time() - self._since) * self._factor)

    def monotonic(self) -> float:
        """Return fast seconds."""
        return time.monotonic() * self._factor


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What all processes of a test share."""

    url: str
    home: Path
    settings: Settings
    since: float
    factor: float = 60.0

    def clock(self) -> FastClock:
        """Return the clock that all agree on."""
        return FastClock(self.since, self.factor)

    def party(self) -> Party:
        """Open the connections of one process."""
        return Party(self.url, self.clock(), self.settings, self.home)


def schedule(world: World) -> None:
    """Be a scheduler for ever."""
    party = world.party()
    pause = threading.Event()
    with suppress(Unavailable):
        party.scheduler.start()
    while True:
        pause.wait(0.1)
        with suppress(Unavailable):
            party.scheduler.tick()


def work(world: World, owner: str, busy_s: float) -> None:
    """Be a worker for ever: take, stay busy while saying so, settle."""
    party, chance, pause = world.party(), random.Random(owner), threading.Event()
    owner_id = holder(party.database, owner)
    while True:
        with suppress(Unavailable):
            lease = party.leases.take(owner_id)
            if lease is None:
                pause.wait(0.05)
                continue
            with suppress(LeaseLost):
                for _ in range(chance.randint(1, 3)):
                    pause.wait(busy_s)
                    party.leases.renew(lease)
                party.leases.settle(lease, DONE)


class Crew:
    """Processes that end with the block, whatever became of them."""

    def __init__(self) -> None:
        self.processes: list[BaseProcess] = []

    def start(self, role: Callable[..., None], *arguments: Any) -> BaseProcess:
        """Start one process."""
        process = _fork.Process(target=role, args=arguments, daemon=True)
        process.start()
        self.processes.append(process)
        return process

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_error: object) -> None:
        for process in self.processes:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
            process.join()
