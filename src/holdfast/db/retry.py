"""Patience with a database that is away for a moment (TC-061). Only for calls that may be repeated without harm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from holdfast import log
from holdfast.errors import NoSpace, Unavailable

WAITS_S = (0.1, 0.2, 0.4)
_log = log.get()
_Answer = TypeVar("_Answer")


def persist(call: Callable[[], _Answer], *, sleep: Callable[[float], object],
            waits_s: Sequence[float] = WAITS_S) -> _Answer:  # fmt: skip
    """Return what the call returns, trying again after each wait while it raises Unavailable.

    The last Unavailable is raised; a full disk (NoSpace) at once, because waiting does not empty it. A commit whose
    answer was lost counts as not done: the call must be harmless when repeated.
    """
    for wait_s in waits_s:
        try:
            return call()
        except NoSpace:
            raise
        except Unavailable as exc:
            _log.warning("db.retry", message=str(exc), wait_s=wait_s)
            sleep(wait_s)
    return call()
