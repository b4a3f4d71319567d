"""What a supervisor says of its parts, for readiness and operators: a small file that it alone writes.

The file counts only while its lock is held. The kernel frees that with the process, so that what a killed supervisor
left behind is never believed, even if another process has its number by now.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from holdfast.coordination.runfile import alone, is_held
from holdfast.errors import Conflict

_LOCK = "serve.lock"
_STATE = "serve.json"
_TRIES = 5
_AGAIN_S = 0.05


class PartState(StrEnum):
    """How a part of `serve` does."""

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    """It ended and is started again in a moment."""
    FAILING = "failing"
    """It ended too often within a minute; it is tried once a minute."""
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStatus:
    """One part, as the supervisor sees it."""

    name: str
    state: PartState
    pid: int | None
    since: datetime
    """When it came into this state."""
    restarts: int
    last_exit: str | None
    """How it ended the last time, in words."""


def lock_path(home: Path) -> Path:
    """Return the file whose lock the one supervisor of a data directory holds."""
    return home / "run" / _LOCK


def address_path(home: Path) -> Path:
    """Return the file that holds the address of the API of a data directory while it runs."""
    return home / "run" / "address"


def write_parts(home: Path, parts: list[PartStatus]) -> None:
    """Say how the parts do; what cannot be written (a full disk) is left unsaid."""
    path = home / "run" / _STATE
    draft = path.with_suffix(".new")
    with suppress(OSError):
        draft.write_text(json.dumps({"pid": os.getpid(), "parts": [asdict(part) for part in parts]}, default=str))
        # Replaced, not rewritten: a reader never sees half of it.
        draft.replace(path)


@contextmanager
def alone_at(home: Path) -> Iterator[None]:
    """Be the one supervisor of a data directory while the block runs; Conflict if there is another."""
    path = lock_path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for left in reversed(range(_TRIES)):
            try:
                stack.enter_context(alone(path, _busy(home)))
                break
            except Conflict:
                # `read_parts` of another process takes the lock for a moment, to see whether it is free.
                if not left:
                    raise
                time.sleep(_AGAIN_S)
        yield


def _busy(home: Path) -> Conflict:
    try:
        held = f" (process {int(json.loads((home / 'run' / _STATE).read_text())['pid'])})"
    except (OSError, ValueError, KeyError, TypeError):
        held = ""
    return Conflict(
        f"holdfast serve runs already for {home.resolve()}{held}; stop that one first, or choose another data "
        "directory with --home"
    )


def read_parts(home: Path) -> list[PartStatus] | None:
    """Return how the parts do, None if no supervisor runs here or it cannot be read."""
    if not is_held(lock_path(home)):
        return None
    try:
        return [_part(one) for one in json.loads((home / "run" / _STATE).read_text())["parts"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def served_parts(home: Path) -> dict[str, PartState] | None:
    """Return the states of the parts by name, None if no supervisor runs here."""
    parts = read_parts(home)
    return None if parts is None else {part.name: part.state for part in parts}


def _part(one: dict[str, Any]) -> PartStatus:
    return PartStatus(**{**one, "state": PartState(one["state"]), "since": datetime.fromisoformat(one["since"])})
