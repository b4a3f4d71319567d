"""Which storage policy a crawl process follows: everything into WARC files, or signals only."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import NamedTuple

from holdfast.crawl.crew import Memory
from holdfast.crawl.filing import Storage, WarcStorage
from holdfast.crawl.originals import Originals
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl.reading import Reader
from holdfast.crawl.tape import Tape
from holdfast.wiring import Ground

LinksOf = Callable[[int], tuple[str, ...]]
"""Where a page leads whose body was not kept, asked from the desk's thread."""


class Policy(NamedTuple):
    """What is known of earlier captures, and how a desk's storage is made."""

    memory: Memory
    make_storage: Callable[[Reader, LinksOf], Storage]


def policy_of(plan: CrawlPlan, ground: Ground, tape: Tape) -> Policy:
    """Return the policy that a plan asks for."""
    if plan.keeps_bodies:
        return Policy(
            Originals(ground.hot, ground.settings.home),
            lambda reader, _: WarcStorage(tape, refer_to=reader.may_refer_to, limit=reader.max_bytes, polls=plan.polls),
        )
    # Loaded by name: the tables that fold letters take time and memory which other crawls need not spend.
    signals = importlib.import_module("holdfast.crawl.signals.taking")
    memory = signals.SignalMemory(ground.frontier)
    return Policy(memory, lambda reader, links_of: signals.SignalStorage(memory, links_of, limit=reader.max_bytes))
