"""An execution and a worker name the data directory that their files lie in"""

from alembic import op
import sqlalchemy as sa

revision = '0030'
down_revision = '0029'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('executions', sa.Column('directory', sa.String(length=32), nullable=True))
    op.add_column('owners', sa.Column('directory', sa.String(length=32), nullable=True))
    where = sa.text('directory IS NOT NULL')
    op.create_index(
        'ix_owners_directory', 'owners', ['directory', 'heartbeat_at'], unique=False,
        sqlite_where=where, postgresql_where=where,
    )
