"""What a crawl process is started with: JSON on its standard input. Apart, so that who starts one stays small."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Self

from holdfast.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The part of one process in an execution."""

    plan: str
    execution_id: int
    source_code: str
    output_dir: str
    run_file: str
    processes: int
    seconds_left: float | None
    supervisor: int
    """The number of the process that looks after this one: when it is gone, this one hands back and ends."""
    epoch: int | None = None
    """Of the lease under which the execution runs: when it is over, this one drains. None for a crawl of its own."""
    goes_on_with: int | None = None
    """The execution whose frontier this one goes on with, if it retries one."""

    @property
    def frontier_id(self) -> int:
        """The execution whose frontier is worked on."""
        return self.execution_id if self.goes_on_with is None else self.goes_on_with

    def to_json(self) -> str:
        """Return it as text for standard input."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what `to_json` wrote."""
        return cls(**json.loads(text))
