"""What was archived before there was any judging is judged behind what is new, and a file tells whether it waits"""

from alembic import op
import sqlalchemy as sa

revision = '0013'
down_revision = '0012'
branch_labels = None
depends_on = None

# Ids of snapshots begin with the number of their file.
ORDINALS = 1 << 22


def upgrade() -> None:
    op.add_column('noise_queue', sa.Column('late', sa.Boolean(), server_default=sa.text('false'), nullable=False))
    # Whole files were queued by 0011; the index queues what it has read.
    op.execute(f"UPDATE noise_queue SET late = true WHERE last_id - first_id = {ORDINALS - 1}")
    op.create_index('ix_noise_queue_order', 'noise_queue', ['late', 'id'], unique=False)
    op.create_index('ix_noise_queue_first_id', 'noise_queue', ['first_id'], unique=False)
