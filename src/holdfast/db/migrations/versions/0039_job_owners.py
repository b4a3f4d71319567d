"""The lock of a job names its owner by id"""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("lock_owner_id", sa.BigInteger()))
    convert(op.get_bind())
    op.drop_column("jobs", "lock_owner")


def convert(connection: sa.Connection) -> None:
    """Read the owner's id from its name, `host/id`; the lock of an unknown owner is released when it is silent."""
    if not any(column["name"] == "lock_owner" for column in sa.inspect(connection).get_columns("jobs")):
        return
    owners = set(connection.scalars(sa.text("SELECT id FROM owners")))
    locked = connection.execute(sa.text("SELECT id, lock_owner FROM jobs WHERE lock_owner IS NOT NULL")).all()
    for job_id, name in locked:
        number = name.rpartition("/")[2]
        if number.isdecimal() and int(number) in owners:
            change = sa.text("UPDATE jobs SET lock_owner_id = :owner WHERE id = :job")
            connection.execute(change, {"owner": int(number), "job": job_id})


def downgrade() -> None:
    op.add_column("jobs", sa.Column("lock_owner", sa.String()))
    name = "(SELECT host || '/' || id FROM owners WHERE owners.id = jobs.lock_owner_id)"
    op.execute(f"UPDATE jobs SET lock_owner = {name} WHERE lock_owner_id IS NOT NULL")  # noqa: S608
    op.drop_column("jobs", "lock_owner_id")
