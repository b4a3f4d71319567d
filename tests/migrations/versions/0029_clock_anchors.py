"""Processes on one SQLite file share a clock that a step of the wall clock does not move"""

from alembic import op
import sqlalchemy as sa

revision = '0029'
down_revision = '0028'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        'clock_anchors',
        sa.Column('boot_id', sa.String(length=36), nullable=False),
        sa.Column('micros', sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint('boot_id', name=op.f('pk_clock_anchors')),
    )
