"""Operations are jobs without a source"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.migration import MigrationContext
from alembic.operations import Operations

from holdfast.db.models.base import Json

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

_KEY = "uq_jobs_operation"
_IS_OPEN = "source_id IS NULL AND state IN ('pending','scheduled','running')"
_FOREIGN_KEY = "fk_uploads_operation_id"
_OPERATIONS = sa.table(
    "operations",
    *(sa.column(name) for name in ("id", "kind", "flight", "subject", "state", "phase", "done_units", "total_units")),
    *(sa.column(name) for name in ("error", "error_code", "actor", "stop_asked", "attempt")),
    *(sa.column(name) for name in ("created_at", "started_at", "updated_at", "finished_at")),
    sa.column("parameters", Json),
    sa.column("result", Json),
)
_JOBS = sa.table(
    "jobs",
    *(sa.column(name) for name in ("id", "kind", "fingerprint", "name", "state", "lock_epoch", "max_retries")),
    *(sa.column(name) for name in ("created_at", "updated_at")),
    sa.column("config", Json),
    sa.column("details", Json),
)
_EXECUTIONS = sa.table(
    "executions",
    *(sa.column(name) for name in ("id", "job_id", "number", "state", "reason", "stop_requested", "output_dir")),
    *(sa.column(name) for name in ("created_at", "started_at", "finished_at", "queued_at", "run_seconds")),
    *(sa.column(name) for name in ("failure", "error", "directory")),
    sa.column("config", Json),
    sa.column("metrics", Json),
)
_HOLDS = sa.table(
    "holds",
    *(sa.column(name) for name in ("job_id", "execution_id", "epoch", "owner", "acquired_at", "ended_at", "ending")),
)
_RUN_STATES = {"done": "completed", "running": "queued"}
_JOB_STATES = {"done": "completed", "queued": "pending", "running": "scheduled"}


def upgrade() -> None:
    convert(op.get_bind())
    condition = sa.text(_IS_OPEN)
    op.create_index(_KEY, "jobs", ["fingerprint"], unique=True, sqlite_where=condition, postgresql_where=condition)


def convert(connection: sa.Connection) -> None:
    """Let jobs have no source, and move the operations to jobs and executions."""
    operations = Operations(MigrationContext.configure(connection))
    with operations.batch_alter_table("jobs") as jobs:
        jobs.alter_column("source_id", existing_type=sa.BigInteger(), nullable=True)
    if not sa.inspect(connection).has_table("operations"):
        return
    with operations.batch_alter_table("uploads") as uploads:
        uploads.drop_constraint(_FOREIGN_KEY, type_="foreignkey")
    moved = {row["id"]: _move(connection, row) for row in connection.execute(sa.select(_OPERATIONS)).mappings().all()}
    uploads_of = connection.execute(sa.text("SELECT id, operation_id FROM uploads WHERE operation_id IS NOT NULL"))
    for upload_id, operation_id in uploads_of.all():
        values = {"id": upload_id, "now": moved[operation_id]}
        connection.execute(sa.text("UPDATE uploads SET operation_id = :now WHERE id = :id"), values)
    with operations.batch_alter_table("uploads") as uploads:
        uploads.create_foreign_key(_FOREIGN_KEY, "executions", ["operation_id"], ["id"])
    connection.execute(sa.text("DROP TABLE operations"))


def _move(connection: sa.Connection, row: Mapping[Any, Any]) -> int:
    """Add the job, the execution and the holds of an operation; return the execution's id. An open one is queued."""
    attempts, parameters = int(row["attempt"]), dict(row["parameters"])
    is_open, directory = row["finished_at"] is None, parameters.pop("directory", None)
    job = {
        "kind": row["kind"],
        "fingerprint": sha256(row["flight"].encode()).hexdigest(),
        "name": row["subject"],
        "state": _JOB_STATES.get(row["state"], row["state"]),
        "lock_epoch": attempts,
        "max_retries": 0,
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "config": {},
        "details": {"actor": row["actor"]},
    }
    job_id = connection.execute(sa.insert(_JOBS).values(job).returning(_JOBS.c.id)).scalar_one()
    progress = {"phase": row["phase"], "done": row["done_units"], "total": row["total_units"]}
    execution = {
        "job_id": job_id,
        "number": 1,
        "state": _RUN_STATES.get(row["state"], row["state"]),
        "reason": row["error_code"],
        "stop_requested": "cancel" if is_open and row["stop_asked"] else None,
        "output_dir": "",
        "created_at": row["created_at"],
        "started_at": row["started_at"],
        "finished_at": row["finished_at"],
        "queued_at": row["created_at"],
        "run_seconds": 0.0,
        "failure": "failed" if row["state"] == "failed" else None,
        "error": row["error"],
        "directory": directory,
        "config": parameters,
        "metrics": {**progress, "result": row["result"]},
    }
    execution_id: int = connection.execute(
        sa.insert(_EXECUTIONS).values(execution).returning(_EXECUTIONS.c.id)
    ).scalar_one()
    at = row["started_at"] or row["created_at"]
    hold = {"job_id": job_id, "execution_id": execution_id, "owner": "", "acquired_at": at, "ended_at": at}
    starts = [{**hold, "epoch": epoch, "ending": "released"} for epoch in range(1, attempts + 1)]
    if starts:
        connection.execute(sa.insert(_HOLDS), starts)
    return execution_id


def downgrade() -> None:
    connection = op.get_bind()
    op.drop_index(_KEY, "jobs")
    with op.batch_alter_table("uploads") as uploads:
        uploads.drop_constraint(_FOREIGN_KEY, type_="foreignkey")
    of = "SELECT e.id FROM executions e JOIN jobs j ON j.id = e.job_id WHERE j.source_id IS NULL"
    for statement in (
        # Without its operation the import can only be started again.
        "UPDATE uploads SET state = 'failed' WHERE state = 'received'",
        "UPDATE uploads SET operation_id = NULL",
        f"DELETE FROM holds WHERE execution_id IN ({of})",  # noqa: S608 - our query
        f"DELETE FROM log_lines WHERE execution_id IN ({of})",  # noqa: S608 - our query
        "DELETE FROM executions WHERE job_id IN (SELECT id FROM jobs WHERE source_id IS NULL)",
        "DELETE FROM jobs WHERE source_id IS NULL",
    ):
        connection.execute(sa.text(statement))
    with op.batch_alter_table("jobs") as jobs:
        jobs.alter_column("source_id", existing_type=sa.BigInteger(), nullable=False)
    op.create_table(
        "operations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("flight", "subject")),
        sa.Column("parameters", Json, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("phase", sa.String(64)),
        sa.Column("done_units", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("total_units", sa.BigInteger()),
        sa.Column("result", Json, nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("error_code", sa.String(64)),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("stop_asked", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_file", sa.Text()),
        sa.Column("lease_until", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
    )
    condition = sa.text("finished_at IS NULL")
    only: dict[str, Any] = {"sqlite_where": condition, "postgresql_where": condition}
    op.create_index("uq_operations_open_flight", "operations", ["flight"], unique=True, **only)
    op.create_index("ix_operations_kind", "operations", ["kind", "id"])
    with op.batch_alter_table("uploads") as uploads:
        uploads.create_foreign_key(_FOREIGN_KEY, "operations", ["operation_id"], ["id"])
