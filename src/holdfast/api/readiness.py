"""Readiness of this process: checks each part on its own thread and connection, within a deadline.

All callers within a second share one check, and a hanging check does not delay the response: a load balancer
learns that this server is not ready however many requests wait for a thread, a connection, or a dead disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from enum import StrEnum
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Final, Literal

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.db import connect
from holdfast.db.raw import RawDatabase
from holdfast.db.schema import SCHEMA, schema_in
from holdfast.processes.part_states import PartState
from holdfast.records import IfKnown, Public, record
from holdfast.search.directory import IndexDirectory

DEADLINE_S: Final = 2.0
FRESH_S: Final = 1.0
_OK: Final = "ok"
_log = log.get()
Check = Callable[[], str | None]
"""Returns the problem of a part, None if it works; an exception is a problem too."""


class BesideState(StrEnum):
    """Why a background part is not running."""

    NOT_BEGUN = "not_begun"
    """It failed to start, and is retried; the log has the reason."""
    OPENING = "opening"
    """The search index is being opened for the first time; only searches wait for it."""


@record
class Ready:
    """Whether this process is ready, and which part is not."""

    status: Public[Literal["ready", "not_ready"]]
    parts: Public[dict[str, str]]
    """`ok`, or the problem, by part: database, storage, search."""
    serve: Public[IfKnown[dict[str, PartState]]] = None
    """State of the parts of `holdfast serve`, if it is running; a `failing` part does not affect readiness."""
    beside: Public[IfKnown[dict[str, BesideState]]] = None
    """Background parts (operations, upkeep, webhooks, search) that are not running: `not_begun` is retried,
    `opening` means that the search index is being opened for the first time. Neither affects readiness.
    """


class ReadinessProbe:
    """Runs the checks on request; for one event loop at a time."""

    def __init__(
        self,
        checks: Mapping[str, Check],
        clock: Clock,
        *,
        served: Callable[[], dict[str, PartState] | None] = lambda: None,
        beside: Callable[[], Mapping[str, BesideState]] = dict,
        deadline_s: float = DEADLINE_S,
        fresh_s: float = FRESH_S,
    ) -> None:
        self._served, self._beside = served, beside
        self._checks, self._clock, self._deadline_s, self._fresh_s = dict(checks), clock, deadline_s, fresh_s
        self._wishes: SimpleQueue[Future[Ready] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._starting = Lock()
        self._look: Future[Ready] | None = None
        self._began_at = 0.0
        self._results: dict[str, str] = {}
        """Results of the check in progress, by part."""

    async def read(self) -> Ready:
        """Return the state of the parts, at most a second old, within the deadline."""
        now, look = self._clock.monotonic(), self._look
        if look is None or (look.done() and now - self._began_at >= self._fresh_s):
            look = self._begin(now)
        if not look.done():
            # Count from the start of the check: a request that arrives while a check hangs must not wait again.
            left_s = self._began_at + self._deadline_s - now
            await asyncio.wait([asyncio.wrap_future(look)], timeout=max(0.0, left_s))
        return look.result() if look.done() else self._unfinished()

    def close(self) -> None:
        """Let the thread end once it can; a hanging one is abandoned and does not keep the process alive."""
        self._wishes.put(None)

    def _begin(self, now: float) -> Future[Ready]:
        look: Future[Ready] = Future()
        self._look, self._began_at = look, now
        with self._starting:
            if self._thread is None:
                self._thread = Thread(target=self._run, name="readiness", daemon=True)
                self._thread.start()
        self._wishes.put(look)
        return look

    def _run(self) -> None:
        while (look := self._wishes.get()) is not None:
            self._results = results = {}
            for name, check in self._checks.items():
                results[name] = self._asked(name, check)
            look.set_result(self._ready(results, self._parts_served()))

    def _parts_served(self) -> dict[str, PartState] | None:
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
            # Catch everything: a part that cannot be checked is not ready, and the thread continues.
            _log.warning("readiness.failed", part=name, message=str(exc).partition("\n")[0])
            return "does not answer"

    def _unfinished(self) -> Ready:
        """Return the results so far; the first part without a result is the one that hangs."""
        results, parts = dict(self._results), dict[str, str]()
        for name in self._checks:
            waits = f"no answer in {self._deadline_s:g} s" if len(parts) == len(results) else "not asked"
            parts[name] = results.get(name, waits)
        _log.warning("readiness.hangs", parts=parts)
        return self._ready(parts, None)

    def _ready(self, parts: dict[str, str], serve: dict[str, PartState] | None) -> Ready:
        status: Literal["ready", "not_ready"] = "ready" if set(parts.values()) <= {_OK} else "not_ready"
        return Ready(status=status, parts=parts, serve=serve, beside=dict(self._beside()) or None)


class ArchiveChecks:
    """Checks that an archive can be served; only the probe's thread uses the connection."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._raw_db: RawDatabase | None = None

    def as_mapping(self) -> dict[str, Check]:
        return {"database": self._database, "storage": self._storage, "search": self._search}

    def _database(self) -> str | None:
        if self._raw_db is None:
            self._raw_db = connect(self._settings.database)
        try:
            with self._raw_db.read() as tx:
                found = schema_in(tx)
        except Exception:
            # Reopen it next time: a broken connection is not reused.
            broken, self._raw_db = self._raw_db, None
            broken.close()
            raise
        return None if found == SCHEMA else f"has schema {found}, and not {SCHEMA}; run: holdfast migrate up"

    def _storage(self) -> str | None:
        return None if self._settings.home.is_dir() else "the data directory is not there; is its disk mounted?"

    def _search(self) -> str | None:
        # A server is ready while its index opens: most requests (pages, lists, replay) do not need it. It is also ready
        # without an index: nothing was captured yet, or another machine has it.
        IndexDirectory(self._settings.home).mark()
        return None
