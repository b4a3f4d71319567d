"""Chores done one after the other on a thread of their own, round after round; one that fails holds up no other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from holdfast import log
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.wiring import open_ground
from holdfast.worker.chores import Bench, Chore

_log = log.get()
_AGAIN_S = 5.0
_LONGEST_S = 60.0


@dataclass(slots=True)
class _Turn:
    """One chore, and when it is looked at again after it failed."""

    chore: Chore
    failures: int = 0
    not_before: float = 0.0
    error: str | None = None


class Rounds:
    """The chores of one worker."""

    def __init__(self, settings: Settings, chores: Sequence[Callable[[Bench], Chore]]) -> None:
        self._settings, self._chores = settings, chores
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._changed = threading.Condition()
        self._count = 0
        self._idle = False
        self._hurried = False
        self.errors: dict[str, str] = {}
        """By chore, for those that failed the last time."""
        self._thread = threading.Thread(target=self._run, name="chores", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ask the chore in hand to leave off at its next good moment."""
        self._stopping.set()
        self._wake.set()

    def stop(self, seconds: float | None = None) -> bool:
        """Ask to stop and wait so long; return whether the thread has ended."""
        self.ask_to_stop()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def wake(self) -> None:
        """Say that there may be something to do: a run has ended."""
        self._wake.set()

    def exhaust(self, is_wanted: Callable[[], bool]) -> None:
        """Wait until a whole round, begun after this call, has found nothing to do; or until it is not wanted."""
        with self._changed:
            goal, self._hurried = self._count + 2, True
            self._wake.set()
            while not (self._count >= goal and self._idle) and is_wanted() and self._thread.is_alive():
                self._changed.wait(0.2)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._work()
            except Exception as exc:  # the database is away, or a chore cannot be made: try again
                _log.warning("worker.chores_wait", action="open", message=str(exc))
                self._report(idle=True, errors={"chores": str(exc)})
                self._stopping.wait(self._settings.worker.rest_s)

    def _work(self) -> None:
        settings = self._settings
        with ExitStack() as stack:
            ground = stack.enter_context(open_ground(settings))
            database = stack.enter_context(closing(Database(settings.database)))
            bench = Bench(ground=ground, database=database, is_stopping=self._stopping.is_set, on_end=stack)
            turns = [_Turn(make(bench)) for make in self._chores]
            while not self._stopping.is_set():
                self._wake.clear()
                busy = False
                for turn in turns:
                    busy |= self._take(turn, ground.clock.monotonic())
                self._report(idle=not busy, errors={t.chore.name: t.error for t in turns if t.error is not None})
                if not busy:
                    self._wake.wait(0.05 if self._hurried else settings.worker.rest_s)

    def _report(self, *, idle: bool, errors: dict[str, str]) -> None:
        with self._changed:
            self._count += 1
            self._idle, self.errors = idle, errors
            self._changed.notify_all()

    def _take(self, turn: _Turn, now: float) -> bool:
        if self._stopping.is_set() or now < turn.not_before:
            return False
        try:
            busy = turn.chore.run_once()
        except Exception as exc:  # the one place where a chore may fail: the others go on
            turn.failures += 1
            turn.error = f"{type(exc).__name__}: {exc}"
            turn.not_before = now + min(_AGAIN_S * 2 ** (turn.failures - 1), _LONGEST_S)
            _log.warning("worker.chore_failed", action=turn.chore.name, message=str(exc), times=turn.failures)
            return False
        turn.failures, turn.error = 0, None
        return busy
