"""What a crawl process hears from outside while it runs: stop requests, the others' totals, where seeds landed."""

from __future__ import annotations

from typing import Protocol

from holdfast.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """The latest word from outside."""

    stop: str | None = None
    """`drain`, `cancel`, or nothing."""
    other_pages: int = 0
    other_bytes: int = 0
    """What the other processes of this execution have settled."""
    landing: tuple[str, ...] = ()
    """Where seeds landed, seen by any process."""


class Control(Protocol):
    """How the engine asks; answered from rows by the worker. Called on the database's thread."""

    def listen(self) -> Word:
        """Return the latest word; also says that this process is alive."""
        ...

    def landed(self, url: str) -> None:
        """Take note that a seed landed here, from any thread; the others hear of it with the next `tell`."""
        ...

    def tell(self) -> None:
        """Write down where seeds landed: before anything is settled that was found there."""
        ...
