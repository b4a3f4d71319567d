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
    uploads_of = connection.execute(sa.text("SELECT id, operation_id FROM uploads WHERE operation_id IS NOT NULL")).all()
    tables = {name: _table(connection, name) for name in ("operations", "jobs", "executions", "holds")}
    rows = connection.execute(sa.select(tables["operations"])).mappings().all()
    moved = {row["id"]: _move(connection, tables, row) for row in rows}
    for upload_id, operation_id in uploads_of:
        values = {"id": upload_id, "now": moved[operation_id]}
        connection.execute(sa.text("UPDATE uploads SET operation_id = :now WHERE id = :id"), values)
    with operations.batch_alter_table("uploads") as uploads:
        uploads.create_foreign_key(_FOREIGN_KEY, "executions", ["operation_id"], ["id"])
    connection.execute(sa.text("DROP TABLE operations"))


def _table(connection: sa.Connection, name: str) -> sa.Table:
    return sa.Table(name, sa.MetaData(), autoload_with=connection, resolve_fks=False)


def _move(connection: sa.Connection, tables: Mapping[str, sa.Table], row: Mapping[Any, Any]) -> int:
    """Add the job, the execution and the holds of an operation; return the execution's id. An open one is queued."""
    parameters, is_open = dict(row["parameters"]), row["finished_at"] is None

    def insert(into: str, **values: Any) -> int:
        table = tables[into]
        return int(connection.execute(sa.insert(table).values(values).returning(table.c.id)).scalar_one())

    job_id = insert(
        "jobs",
        kind=row["kind"],
        fingerprint=sha256(row["flight"].encode()).hexdigest(),
        name=row["subject"],
        state=_JOB_STATES.get(row["state"], row["state"]),
        lock_epoch=row["attempt"],
        max_retries=0,
        config={},
        details={"actor": row["actor"]},
        **{name: row[name] for name in ("created_at", "updated_at")},
    )
    execution_id = insert(
        "executions",
        job_id=job_id,
        number=1,
        state=_RUN_STATES.get(row["state"], row["state"]),
        reason=row["error_code"],
        failure="failed" if row["state"] == "failed" else None,
        stop_requested="cancel" if is_open and row["stop_asked"] else None,
        output_dir="",
        queued_at=row["created_at"],
        run_seconds=0.0,
        directory=parameters.pop("directory", None),
        config=parameters,
        metrics={
            **{"phase": row["phase"], "done": row["done_units"], "total": row["total_units"]},
            "result": row["result"],
        },
        **{name: row[name] for name in ("created_at", "started_at", "finished_at", "error")},
    )
    at = row["started_at"] or row["created_at"]
    for epoch in range(1, row["attempt"] + 1):
        times = {"acquired_at": at, "ended_at": at}
        insert("holds", job_id=job_id, execution_id=execution_id, epoch=epoch, owner="", ending="released", **times)
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
    text, number = sa.Text(), sa.BigInteger()
    op.create_table(
        "operations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        *(sa.Column(name, text, nullable=False) for name in ("flight", "subject")),
        sa.Column("parameters", Json, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("phase", sa.String(64)),
        sa.Column("done_units", number, server_default="0", nullable=False),
        sa.Column("total_units", number),
        sa.Column("result", Json, nullable=False),
        sa.Column("error", text),
        sa.Column("error_code", sa.String(64)),
        sa.Column("actor", text, nullable=False),
        sa.Column("stop_asked", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_file", text),
        sa.Column("lease_until", number),
        sa.Column("created_at", number, nullable=False),
        sa.Column("started_at", number),
        sa.Column("updated_at", number, nullable=False),
        sa.Column("finished_at", number),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
    )
    condition = sa.text("finished_at IS NULL")
    only: dict[str, Any] = {"sqlite_where": condition, "postgresql_where": condition}
    op.create_index("uq_operations_open_flight", "operations", ["flight"], unique=True, **only)
    op.create_index("ix_operations_kind", "operations", ["kind", "id"])
    with op.batch_alter_table("uploads") as uploads:
        uploads.create_foreign_key(_FOREIGN_KEY, "operations", ["operation_id"], ["id"])
