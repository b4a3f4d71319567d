"""Deliveries of webhooks are leased like files to index"""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

_TABLE = "webhook_deliveries"


def upgrade() -> None:
    op.add_column(_TABLE, sa.Column("owner_id", sa.BigInteger()))
    op.add_column(_TABLE, sa.Column("token", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column(_TABLE, sa.Column("lease_expires_at", sa.BigInteger()))
    # No process sends during a migration: a message whose sender was killed is sent at the next start.
    op.drop_column(_TABLE, "lease_token")
    op.drop_column(_TABLE, "lease_until")


def downgrade() -> None:
    op.add_column(_TABLE, sa.Column("lease_token", sa.String(32)))
    op.add_column(_TABLE, sa.Column("lease_until", sa.BigInteger()))
    for name in ("owner_id", "token", "lease_expires_at"):
        op.drop_column(_TABLE, name)
