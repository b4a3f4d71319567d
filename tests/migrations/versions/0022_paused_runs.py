"""A run can be paused: since when, by whom, and for how long it was before"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0022'
down_revision = '0021'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('executions', sa.Column('paused_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('executions', sa.Column('paused_by', sa.String(), nullable=True))
    op.add_column('executions', sa.Column('paused_seconds', sa.Double(), server_default='0', nullable=False))
