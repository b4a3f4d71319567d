"""The rows of an execution, as a running process reads and writes them."""

from __future__ import annotations

from typing import Any

from holdfast.db.hot import Transaction


def stop_word(tx: Transaction, *, execution_id: int) -> tuple[str | None, Any]:
    """Return the stop request of an execution, and its stored configuration."""
    rows = tx.execute("SELECT stop_requested, config FROM executions WHERE id = ?", (execution_id,))
    return (rows[0][0], rows[0][1]) if rows else ("cancel", None)


def totals_of_others(tx: Transaction, *, execution_id: int, owner_id: int) -> list[Any]:
    """Return the running totals of an execution's other processes."""
    rows = tx.execute(
        "SELECT counts FROM execution_counts WHERE execution_id = ? AND owner_id <> ?", (execution_id, owner_id)
    )
    return [row[0] for row in rows]


def store_config(tx: Transaction, *, execution_id: int, config: str) -> None:
    """Replace the stored configuration of an execution (JSON text)."""
    tx.execute("UPDATE executions SET config = ? WHERE id = ?", (config, execution_id))
