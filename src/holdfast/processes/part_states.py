"""A supervisor's status of its parts, for readiness checks and operators: a small file that only it writes.

The file is valid only while its lock is held. The kernel releases the lock with the process, so that the file
of a killed supervisor is never trusted, even if another process has its pid by now.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from holdfast.errors import Conflict
from holdfast.processes.runfile import alone, is_held
from holdfast.values import dataclass

_LOCK = "serve.lock"
_STATE = "serve.json"
_TRIES = 5


class PartState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    """It ended and will be restarted shortly."""
    FAILING = "failing"
    """It ended too often within a minute; it is restarted once a minute."""
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStatus:
    name: str
    state: PartState
    pid: int | None
    since: datetime
    """When it entered this state."""
    restarts: int
    last_exit: str | None
    """Description of its last exit."""


def lock_path(home: Path) -> Path:
    return home / "run" / _LOCK


def address_path(home: Path) -> Path:
    return home / "run" / "address"


def write_parts(home: Path, parts: list[PartStatus]) -> None:
    """Write the state of the parts; a failed write (a full disk) is ignored."""
    path = home / "run" / _STATE
    draft = path.with_suffix(".new")
    with suppress(OSError):
        draft.write_text(json.dumps({"pid": os.getpid(), "parts": [asdict(part) for part in parts]}, default=str))
        # Replace the file, so that a reader never sees half of it.
        draft.replace(path)


@contextmanager
def alone_at(home: Path) -> Iterator[None]:
    """Hold the supervisor lock of a data directory during the block; raise `Conflict` if it is already held."""
    path = lock_path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    # `read_parts` of another process locks it briefly to check whether it is free.
    with alone(path, _busy(home), tries=_TRIES):
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
    """Return the state of the parts; None if no supervisor runs here or the file cannot be read."""
    if not is_held(lock_path(home)):
        return None
    try:
        return [_part(one) for one in json.loads((home / "run" / _STATE).read_text())["parts"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def served_parts(home: Path) -> dict[str, PartState] | None:
    parts = read_parts(home)
    return None if parts is None else {part.name: part.state for part in parts}


def _part(one: dict[str, Any]) -> PartStatus:
    return PartStatus(**{**one, "state": PartState(one["state"]), "since": datetime.fromisoformat(one["since"])})
