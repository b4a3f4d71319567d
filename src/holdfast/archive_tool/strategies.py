"""What is tried when a crawl is in trouble, in order: one worker less, another VPN exit, a restart, patience."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from holdfast import log
from holdfast.archive_tool.monitor import Signal
from holdfast.archive_tool.options import Watch
from holdfast.archive_tool.state import CrawlState
from holdfast.archive_tool.vpn import Vpn
from holdfast.clock import Clock


class Action(Enum):
    """What the stage does now."""

    STOP_CONTAINER = "stop the container and resume"
    CARRY_ON = "carry on"


class Strategies:
    """Remembers when the VPN last changed; the counts are in the state, and outlive the process."""

    def __init__(self, watch: Watch, state: CrawlState, clock: Clock, vpn: Vpn | None) -> None:
        self._watch, self._state, self._clock, self._vpn = watch, state, clock, vpn
        self._rotated: float | None = None

    def answer(self, signal: Signal, patience: Callable[[float], bool]) -> Action:
        """Try the first strategy that may be tried; `patience` waits while the crawl goes on."""
        said = log.get(status=signal.status, reason=signal.reason)
        if self._may_reduce():
            self._state.reduce_workers()
            said.info("crawl.workers_reduced", workers=self._state.current_workers)
            return Action.STOP_CONTAINER
        if self._may_rotate() and self._vpn is not None and self._vpn.rotate():
            self._rotated = self._clock.monotonic()
            self._state.count_rotation()
            return Action.CARRY_ON
        if self._may_restart():
            self._state.count_restart()
            said.info("crawl.restart", restarts=self._state.container_restarts)
            return Action.STOP_CONTAINER
        said.info("crawl.backoff", seconds=self._watch.backoff_s)
        patience(self._watch.backoff_s)
        return Action.CARRY_ON

    def _may_reduce(self) -> bool:
        return (
            self._watch.adaptive_workers
            and self._state.current_workers > self._watch.min_workers
            and self._state.worker_reductions < self._watch.max_reductions
        )

    def _may_rotate(self) -> bool:
        if not self._watch.vpn or self._state.vpn_rotations >= self._watch.max_rotations:
            return False
        return self._rotated is None or self._clock.monotonic() - self._rotated >= self._watch.rotation_every_s

    def _may_restart(self) -> bool:
        return self._watch.adaptive_restart and self._state.container_restarts < self._watch.max_restarts
