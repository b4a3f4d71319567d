"""The revisits of a capture are found by it: they go out of sight with it"""

from alembic import op
import sqlalchemy as sa

revision = '0021'
down_revision = '0020'
branch_labels = None
depends_on = None

KNOWN = sa.text('original_id IS NOT NULL')


def upgrade() -> None:
    op.create_index(
        'ix_snapshots_original', 'snapshots', ['original_id'], sqlite_where=KNOWN, postgresql_where=KNOWN
    )
