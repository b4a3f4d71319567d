"""Stopping a run from a serving process, which holds no runtime of its own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from holdfast.config import Settings
from holdfast.wiring import open_runtime

if TYPE_CHECKING:
    from holdfast.crawl_process.stopping import HeldExecution


def stop_execution(settings: Settings, execution_id: int, *, discard: bool) -> tuple[list[int], list[HeldExecution]]:
    """Ask a run to drain, or to be thrown away; return what was asked, and what of it has not ended. NotFound."""
    # Loaded by name: it brings the repair of WARC files, which a server that stops nothing does not need.
    stopping = importlib.import_module("holdfast.crawl_process.stopping")
    with open_runtime(settings) as runtime:
        ids: list[int] = stopping.ask_to_stop(runtime, execution_id=execution_id, cancel=discard)
        held: list[HeldExecution] = stopping.still_held(runtime, ids)
    return ids, held
