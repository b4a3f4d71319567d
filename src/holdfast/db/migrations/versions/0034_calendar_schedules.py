"""Jobs that run at a time of day; longer source codes"""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("anchor", sa.String(64)))
    convert(op.get_bind())


def convert(connection: sa.Connection) -> None:
    """Widen the code column; SQLite checks no length."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("ALTER TABLE sources ALTER COLUMN code TYPE VARCHAR(40)"))


def downgrade() -> None:
    op.drop_column("jobs", "anchor")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE sources ALTER COLUMN code TYPE VARCHAR(16)")
