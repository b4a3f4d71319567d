"""How we reach a PostgreSQL server, whoever asks: nothing waits for ever for one that does not answer."""

from __future__ import annotations

from typing import Any

STATEMENT_S = 30.0
"""No statement of ours may take longer: a page of rows at a time, or a batch."""


def connect_arguments(*, statement_s: float | None = STATEMENT_S) -> dict[str, Any]:
    """Return what psycopg connects with: five seconds to answer, a limit for statements, probes of a silent line.

    None lifts the limits on a statement and on a transaction that stands idle: only a migration may take its time.
    Nothing is compiled: that takes longer than our short questions (jobs by status took 614 ms with it, 56 without).
    """
    limit_ms = int((statement_s or 0) * 1000)
    return {
        "connect_timeout": 5,
        "options": f"-c statement_timeout={limit_ms} -c idle_in_transaction_session_timeout={limit_ms} -c jit=off",
        "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3,
        "tcp_user_timeout": limit_ms or int(STATEMENT_S * 1000),
    }  # fmt: skip
