"""What a crawl's two longest paths cross: the packages that the modules on a path import themselves.

The modules of the words floor do not count, nor `config` and `db`, which every room uses. A path ends where another
process or another room takes over by rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tests.house.floors import FLOORS, imported
from tests.house.source import Module

_PLUMBING = frozenset({*FLOORS["words"], "__version__", "config", "db"})


class CallPath(NamedTuple):
    """Modules that call each other, and the packages that they may import in total."""

    modules: tuple[str, ...]
    packages: frozenset[str]


LEASE = CallPath(
    ("worker.native", "crawl.supervisor", "crawl.assignment", "crawl.process", "crawl.engine", "crawl.domains",
     "crawl.domain_worker", "crawl.robots_gate", "crawl.paced_client"),
    frozenset({"crawl", "fetch", "frontier", "jobs", "processes", "sources", "warc", "wiring", "worker"}),
)  # fmt: skip
"""From the lease of an execution to the first request of a crawl process."""
ATTEMPT = CallPath(
    ("crawl.domains", "crawl.domain_worker", "crawl.robots_gate", "crawl.politeness", "crawl.paced_client",
     "crawl.writer_thread", "crawl.storing", "crawl.warc_output", "crawl.page_reading", "crawl.link_filter",
     "crawl.settling"),
    # `processes`: the run file, which names the page that is parsed. `storage`: where files of earlier runs are.
    frozenset({"crawl", "fetch", "frontier", "parse", "processes", "storage", "warc"}),
)  # fmt: skip
"""From the lease of a domain to the settling of one attempt."""


def crossed(path: CallPath, modules: Iterable[Module]) -> set[str]:
    """Return the packages that the modules of a path import, and their own."""
    on_path = [module for module in modules if module.name in path.modules]
    assert len(on_path) == len(path.modules), "name the modules of the path as they are called now"
    rooms = {name.partition(".")[0] for module in on_path for _, name in imported(module)}
    return (rooms | {module.room for module in on_path}) - _PLUMBING
