"""Readers find the next capture of the sources that they may see without a walk through those of other sources"""

from alembic import op

revision = '0031'
down_revision = '0030'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index('ix_snapshots_source_key', 'snapshots', ['source_id', 'url_key'], unique=False)
