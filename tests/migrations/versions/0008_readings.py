"""What an execution fell short of, whose frontier it goes on with, and what it had done when its last holder was lost"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('executions', sa.Column('frontier_id', sa.BigInteger(), nullable=True))
    op.add_column('executions', sa.Column('lost_items', sa.BigInteger(), server_default='0', nullable=False))
    op.add_column('executions', sa.Column('shortfalls', holdfast.db.models.base.Json, server_default=sa.text("'{}'"), nullable=False))
