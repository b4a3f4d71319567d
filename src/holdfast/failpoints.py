"""Named places where a test may kill, stop or slow a process; no-ops unless `HOLDFAST_FAILPOINT` is set.

Its value is `PLACE[@TEXT]:ACTION[:SKIP[:FOLDER]]`, several separated by commas. With TEXT, only passes with
this text count. The first SKIP passes of a process do nothing. With FOLDER, each act consumes one file
`PLACE.…` in it, so that a test decides how often all processes together act, and sees that they did; without
such a file nothing happens. `hold` acts until a file `go` appears there.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import Unavailable

Reach = Callable[..., None]
Act = Callable[[str, Path | None], None]


def _nothing(_place: str, _about: str = "") -> None:
    return None


class Failpoint:
    def __init__(self, spec: str) -> None:
        where, action, *rest = spec.split(":", 3)
        self.place, _, self._text = where.partition("@")
        self._act = _ACTIONS[action]
        self._left = int(rest[0]) if rest and rest[0] else 0
        self._folder = Path(rest[1]) if len(rest) > 1 else None

    def reach(self, about: str = "") -> None:
        if self._text not in about:
            return
        self._left -= 1
        if self._left < 0 and self._may_act():
            self._act(self.place, self._folder)

    def _may_act(self) -> bool:
        if self._folder is None:
            return True
        for token in sorted(self._folder.glob(f"{self.place}.*")):
            try:
                token.unlink()
            except FileNotFoundError:
                # Another process took it: tokens count the acts of all processes together.
                continue
            return True
        return False


def armed(spec: str) -> Reach:
    """Return the function to call at every place; raise ValueError or KeyError for an invalid spec."""
    points = [Failpoint(part) for part in spec.split(",")]

    def reach(place: str, about: str = "") -> None:
        for point in points:
            if point.place == place:
                point.reach(about)

    return reach


def _signal(number: signal.Signals) -> Act:
    # To this thread: a signal to the process may be taken by another, and this one would get further.
    return lambda _place, _folder: signal.raise_signal(number)


def _raise(place: str, _folder: Path | None) -> None:
    raise RuntimeError(f"failpoint {place}")


def _lose(place: str, _folder: Path | None) -> None:
    raise Unavailable(f"failpoint {place}: the answer was lost")


def _sleep(_place: str, _folder: Path | None) -> None:
    time.sleep(3600)


def _hold(_place: str, folder: Path | None) -> None:
    while folder is not None and not (folder / "go").exists():
        time.sleep(0.01)


def _hang(_place: str, _folder: Path | None) -> None:
    while True:
        pass


_ACTIONS: dict[str, Act] = {
    "kill": _signal(signal.SIGKILL),
    "crash": _signal(signal.SIGSEGV),
    "stop": _signal(signal.SIGSTOP),
    "raise": _raise,
    "lose": _lose,
    "sleep": _sleep,
    "hold": _hold,
    "hang": _hang,
}
# Read once, when the module is loaded: in production every place costs one call that does nothing.
_spec = os.environ.get("HOLDFAST_FAILPOINT")
reach: Reach = armed(_spec) if _spec else _nothing
"""Called with the name of the place, and the object that is processed there."""
