"""How long things take, in one place, each scaled by one factor so that tests run in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds on this machine's monotonic clock."""

    stop_grace: float = 90.0
    """What `docker stop` gives the container before it is killed."""
    stop_margin: float = 30.0
    """How much longer than the grace we wait for `docker` itself."""
    lookup_every: float = 2.0
    """Between two looks for the container's id; there are five."""
    docker_answer: float = 60.0
    """How long a `docker ps` or `docker --version` may take."""
    vpn_limit: float = 120.0
    vpn_settle: float = 15.0
    status_every: float = 30.0
    """Between two statistics lines of our own crawl."""

    @classmethod
    def scaled(cls, factor: float) -> Self:
        """Return all of it multiplied; waiting for a program to answer keeps a floor."""
        plain = cls()
        return cls(
            stop_grace=plain.stop_grace * factor, stop_margin=max(10.0, plain.stop_margin * factor),
            lookup_every=plain.lookup_every * factor, vpn_limit=plain.vpn_limit * factor,
            vpn_settle=plain.vpn_settle * factor, status_every=max(3.0, plain.status_every * factor),
        )  # fmt: skip


LOOKUPS = 5
