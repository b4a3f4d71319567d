"""What a serving process loads and makes when it is first asked for: a start pays for what it uses."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from threading import RLock
from typing import Any, Final

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.datastructures import State

LOADING: Final = RLock()
"""One thread loads at a time: of modules that import one another, two threads may see one half done."""
BUILDING: Final = CapacityLimiter(4)
"""Threads that load and make: apart from those that routes run on, and never one for each request that waits."""


def load(module: str) -> Any:
    """Return a module, loaded if it is not there yet; ImportError, or whatever it fails with, and again next time."""
    # One that is there costs no wait for what others load.
    if _is_whole(module):
        return sys.modules[module]
    with LOADING:
        return importlib.import_module(module)


async def load_beside(module: str) -> Any:
    """Return a module, for the event loop, which must never wait for one: a thread loads what is not there."""
    return sys.modules[module] if _is_whole(module) else await run_sync(load, module, limiter=BUILDING)


def _is_whole(module: str) -> bool:
    """Return whether a module is loaded; it stands there, half done, from the first line of its loading."""
    found = sys.modules.get(module)
    return found is not None and not getattr(found.__spec__, "_initializing", False)


class LateState(State):
    """What an application holds for as long as it runs; some of it is made by the first who asks for it."""

    def __init__(self) -> None:
        super().__init__()
        vars(self)["_makers"] = {}

    def promise(self, name: str, make: Callable[[], Any]) -> None:
        """Let something be made at the first look at it, once, on whichever thread that is."""
        # A lock of its own: who looks at one thing does not wait until another is made or loaded.
        vars(self)["_makers"][name] = (make, RLock())

    def is_made(self, name: str) -> bool:
        """Return whether something is there already."""
        return name in self._state

    async def look_up(self, name: str) -> Any:
        """Return what is held, for the event loop, which must never wait for a module: a thread makes what is not."""
        if name in vars(self)["_makers"] and not self.is_made(name):
            return await run_sync(getattr, self, name, limiter=BUILDING)
        return getattr(self, name)

    def __getattr__(self, key: Any) -> Any:
        makers = vars(self).get("_makers", {})
        if key in makers and not self.is_made(key):
            make, lock = makers[key]
            with lock:
                if not self.is_made(key):
                    self._state[key] = make()
        return super().__getattr__(key)
