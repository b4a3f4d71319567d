"""Who does what in a worker: one line for each backend that runs executions, and one for each chore in between.

To register a runner, name its class, which is made with the settings for each run; to register a chore, a function that
makes it with a Bench.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from holdfast.config import Settings
from holdfast.worker.after_crawl import AfterCrawl
from holdfast.worker.background import Accounting, BackgroundContext, Chore, LinkSignals
from holdfast.worker.feeds import FeedRunner
from holdfast.worker.native import NativeRunner
from holdfast.worker.runner import Runner
from holdfast.worker.zimit import ZimitRunner

RUNNERS: Final[Mapping[str, Callable[[Settings], Runner]]] = {
    "native": NativeRunner,
    "zimit": ZimitRunner,
    "feed": FeedRunner,
}
CHORES: Final[tuple[Callable[[BackgroundContext], Chore], ...]] = (AfterCrawl, Accounting, LinkSignals)
"""In the order in which they are looked at."""
