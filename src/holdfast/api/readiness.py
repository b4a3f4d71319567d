"""Whether this process can serve: asked of each part on a thread and a connection of its own, within a deadline.

A look is shared by all who ask within a second, and one that hangs is answered for at once: a balancer learns that this
server is not ready however many of its requests wait for a thread, for a connection, or for a dead disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from enum import StrEnum
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Final

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.db import connect
from holdfast.db.raw import RawDatabase
from holdfast.db.schema import SCHEMA, schema_in
from holdfast.search.directory import IndexDirectory
from holdfast.values import dataclass

DEADLINE_S: Final = 2.0
FRESH_S: Final = 1.0
_OK: Final = "ok"
_log = log.get()
Check = Callable[[], str | None]
"""Says what is wrong with a part, None if nothing is; what it raises is wrong, too."""


class BesideState(StrEnum):
    """Why something that runs beside requests is not there."""

    NOT_BEGUN = "not_begun"
    """It could not begin, and is tried again; the log says why."""
    OPENING = "opening"
    """The search index is being opened for the first time: who searches waits for it, all other requests do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyParts:
    """How the parts answered."""

    parts: Mapping[str, str]
    """`ok`, or what is wrong, by part."""
    serve: Mapping[str, str] | None = None
    """How the parts of `holdfast serve` do, if that runs here: none of them keeps this process from answering."""
    beside: Mapping[str, BesideState] | None = None
    """What runs beside requests and is not there: that keeps none of them from being answered."""

    @property
    def is_ready(self) -> bool:
        """Whether all of them are well."""
        return all(word == _OK for word in self.parts.values())


class ReadinessProbe:
    """Asks the parts when it is asked itself; for one event loop at a time."""

    def __init__(
        self,
        checks: Mapping[str, Check],
        clock: Clock,
        *,
        served: Callable[[], Mapping[str, str] | None] = lambda: None,
        beside: Callable[[], Mapping[str, BesideState]] = dict,
        deadline_s: float = DEADLINE_S,
        fresh_s: float = FRESH_S,
    ) -> None:
        self._served, self._beside = served, beside
        self._checks, self._clock, self._deadline_s, self._fresh_s = dict(checks), clock, deadline_s, fresh_s
        self._wishes: SimpleQueue[Future[ReadyParts] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._starting = Lock()
        self._look: Future[ReadyParts] | None = None
        self._began_at = 0.0
        self._told: dict[str, str] = {}
        """What the parts have said in the look that is under way."""

    async def read(self) -> ReadyParts:
        """Return how the parts are: as of a second ago at most, within the deadline."""
        now, look = self._clock.monotonic(), self._look
        if look is None or (look.done() and now - self._began_at >= self._fresh_s):
            look = self._begin(now)
        if not look.done():
            # Counted from the beginning of the look: who comes while one hangs does not wait once more.
            left_s = self._began_at + self._deadline_s - now
            await asyncio.wait([asyncio.wrap_future(look)], timeout=max(0.0, left_s))
        return look.result() if look.done() else self._unfinished()

    def close(self) -> None:
        """Let the thread end once it can; one that hangs is left behind, and does not keep the process."""
        self._wishes.put(None)

    def _begin(self, now: float) -> Future[ReadyParts]:
        look: Future[ReadyParts] = Future()
        self._look, self._began_at = look, now
        with self._starting:
            if self._thread is None:
                self._thread = Thread(target=self._run, name="readiness", daemon=True)
                self._thread.start()
        self._wishes.put(look)
        return look

    def _run(self) -> None:
        while (look := self._wishes.get()) is not None:
            self._told = told = {}
            for name, check in self._checks.items():
                told[name] = self._asked(name, check)
            look.set_result(ReadyParts(parts=told, serve=self._parts_served(), beside=self._beside()))

    def _parts_served(self) -> Mapping[str, str] | None:
        try:
            return self._served()
        except Exception as exc:
            # If the thread ended here, this process would never be ready again.
            _log.warning("readiness.failed", part="serve", message=str(exc).partition("\n")[0])
            return None

    def _asked(self, name: str, check: Check) -> str:
        try:
            return check() or _OK
        except Exception as exc:
            # Whatever it is: a part that cannot be asked is not ready, and the thread goes on.
            _log.warning("readiness.failed", part=name, message=str(exc).partition("\n")[0])
            return "does not answer"

    def _unfinished(self) -> ReadyParts:
        """Return what was said so far: the first part that has not answered is the one that hangs."""
        told, parts = dict(self._told), dict[str, str]()
        for name in self._checks:
            waits = f"no answer in {self._deadline_s:g} s" if len(parts) == len(told) else "not asked"
            parts[name] = told.get(name, waits)
        _log.warning("readiness.hangs", parts=parts)
        return ReadyParts(parts=parts, beside=self._beside())


class ArchiveChecks:
    """What an archive needs to be served; its connection is used by the probe's thread alone."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._raw_db: RawDatabase | None = None

    def as_mapping(self) -> dict[str, Check]:
        """Return the checks by part, in the order in which they are made."""
        return {"database": self._database, "storage": self._storage, "search": self._search}

    def _database(self) -> str | None:
        if self._raw_db is None:
            self._raw_db = connect(self._settings.database)
        try:
            with self._raw_db.read() as tx:
                found = schema_in(tx)
        except Exception:
            # Opened anew the next time: a connection that broke once is not asked again.
            broken, self._raw_db = self._raw_db, None
            broken.close()
            raise
        return None if found == SCHEMA else f"has schema {found}, and not {SCHEMA}; run: holdfast migrate up"

    def _storage(self) -> str | None:
        return None if self._settings.home.is_dir() else "the data directory is not there; is its disk mounted?"

    def _search(self) -> str | None:
        # One that opens its index is ready: pages, lists and replay, most of what is asked for, do not wait for it.
        # None is well: nothing was captured yet, or the index is kept elsewhere.
        IndexDirectory(self._settings.home).mark()
        return None
