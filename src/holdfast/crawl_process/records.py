"""Executions that are stopping, as operators see them."""

from __future__ import annotations

from datetime import datetime

from holdfast.records import Operator, record


@record
class StoppingExecution:
    """An execution that was requested to stop and has not ended, and the process that ends it."""

    execution_id: Operator[int]
    state: Operator[str]
    holder: Operator[str | None]
    """The process that ends it; null if the next worker does."""
    heard_at: Operator[datetime | None]
    """The holder's last heartbeat."""
    is_silent: Operator[bool] = False

    def sentence(self) -> str:
        """Describe what the execution waits for."""
        run = f"execution {self.execution_id}"
        if self.holder is None:
            return f"{run} is {self.state} and no process works on it: the next worker ends it (holdfast start-worker)"
        heard = f"last heartbeat at {self.heard_at:%H:%M:%S} UTC" if self.heard_at else "no heartbeat yet"
        if self.is_silent:
            return f"{run} is held by {self.holder}, {heard}: a worker that takes it over ends it"
        return f"{run} is still draining at {self.holder}, {heard}; check again with: holdfast status"
