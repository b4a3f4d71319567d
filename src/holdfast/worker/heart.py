"""The heartbeat of a worker: on a thread of its own it says that every lease is alive, and hears what is asked of each.

A lease that somebody else took is lost: its run is told at once. One that could not be renewed for the stale period
lapses by itself, whatever keeps this thread: each run is told until when its lease is good.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass

from holdfast import log
from holdfast.config import Settings
from holdfast.coordination.owners import Owner
from holdfast.errors import LeaseLost, Unavailable
from holdfast.jobs.leases import Lease, Word
from holdfast.wiring.worker import Pulse, open_pulse
from holdfast.worker.running import Holding, Stop

_log = log.get()
_LISTEN_S = 1.0
_LET_GO_S = 10.0
_OWNER_S = 15.0
"""How often the worker's own row is renewed; a worker is gone after two minutes of silence."""


@dataclass(slots=True)
class _Held:
    lease: Lease
    holding: Holding
    renewed_at: float
    is_ending: bool = False
    """Whether its ending is being written: the rows name no holder a moment before it is dropped."""


class Heart:
    """Keeps the leases of one worker alive until they are dropped."""

    def __init__(self, settings: Settings, owner: Owner) -> None:
        self._settings, self._owner = settings, owner
        self._held: dict[int, _Held] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._owner_at = 0.0
        self._thread = threading.Thread(target=self._run, name="heart", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Beat no more; what is still held falls silent. A beat that hangs in the database is not waited for."""
        self._ended.set()
        self._thread.join(_LET_GO_S)

    def keep(self, lease: Lease, holding: Holding, *, taken_at: float) -> None:
        """Keep a lease alive that was taken no earlier than this moment."""
        holding.good_until(taken_at + self._settings.jobs.stale_s)
        with self._lock:
            self._held[lease.execution_id] = _Held(lease, holding, taken_at)

    def ends(self, lease: Lease) -> None:
        """Say that a run's ending is about to be written; the lease is kept alive until it is dropped."""
        with self._lock:
            if (held := self._held.get(lease.execution_id)) is not None:
                held.is_ending = True

    def drop(self, lease: Lease) -> None:
        """Keep a lease alive no longer: it was settled, handed back or lost."""
        with self._lock:
            self._held.pop(lease.execution_id, None)

    def _run(self) -> None:
        pause = min(_LISTEN_S, self._settings.jobs.heartbeat_s / 2)
        while not self._ended.is_set():
            try:
                with open_pulse(self._settings) as pulse:
                    while not self._ended.wait(pause):
                        self._beat(pulse)
            except Exception as exc:  # a heart that stops loses every run: whatever it was, it goes on
                _log.error("worker.heart_stumbles", action="beat", error=repr(exc))
                self._ended.wait(pause)

    def _beat(self, pulse: Pulse) -> None:
        now = pulse.ground.clock.monotonic()
        with self._lock:
            held = list(self._held.values())
        for one in held:
            try:
                self._renew(pulse, one, pulse.ground.clock.monotonic())
                one.holding.flush()
            except Exception as exc:  # the one place where a lease may fail to beat: the others do not wait for it
                _log.error("worker.beat_failed", action="beat", execution=one.lease.execution_id, error=repr(exc))
        if now - self._owner_at >= min(_OWNER_S, self._settings.jobs.heartbeat_s):
            with suppress(Unavailable), pulse.ground.hot.write() as tx:
                self._owner.beat(tx)
                self._owner_at = now

    def _renew(self, pulse: Pulse, one: _Held, now: float) -> None:
        settings = self._settings.jobs
        if one.holding.stop is Stop.LOST:
            return
        try:
            if now - one.renewed_at >= settings.heartbeat_s:
                word = pulse.leases.renew(one.lease)
                one.renewed_at = now
                one.holding.good_until(now + settings.stale_s)
            else:
                word = pulse.leases.hear(one.lease)
        except LeaseLost as exc:
            with self._lock:
                # Settled meanwhile, or about to be: the runner has come back, and who settles hears of a lost lease.
                if one.lease.execution_id not in self._held or one.is_ending:
                    return
            _log.warning("worker.lease_lost", execution=one.lease.execution_id, message=str(exc))
            one.holding.ask(Stop.LOST)
        except Unavailable as exc:
            _log.warning("worker.database_unavailable", message=str(exc))
        else:
            asked = asked_for(word)
            if asked is not None:
                one.holding.ask(asked)


def asked_for(word: Word) -> Stop | None:
    """Return what a holder is asked by the rows."""
    if word.cancelled:
        return Stop.CANCEL
    if word.stop is None:
        return None
    return Stop.DISCARD if word.stop == "cancel" else Stop.FINISH
