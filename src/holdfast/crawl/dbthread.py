"""The one thread of a crawl process that speaks to the database; the loop and the desk hand it what to do, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class DatabaseThread:
    """Runs calls one after the other; answers come back to the loop in the same order."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")

    async def run(self, call: Callable[[], T]) -> T:
        """Do something there, from the loop, and return what it gives."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def wait(self, call: Callable[[], T]) -> T:
        """Do something there, from another thread than the loop's, and return what it gives."""
        return self._executor.submit(call).result()

    def close(self) -> None:
        """Finish what was handed over, and end."""
        self._executor.shutdown(wait=True)
